"""What a name in SQL means: an entry of a lake, of a catalog's database, of the session's own, or rows handed in."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.metadata import metadata_columns
from ducklake_lab.duckdb.evaluation import Settings
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.errors import BindError, EntryNotFoundError, UsageError
from ducklake_lab.model.entries import View
from ducklake_lab.model.types import DataType, from_field
from ducklake_lab.session.names.attached_lakes import At, Lakes, Place
from ducklake_lab.session.names.stored_definitions import stored_macro, stored_view
from ducklake_lab.session.names.system_tables import SystemTables
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.plan import StoredMacro, StoredView
from ducklake_lab.sql.spark.settings import meaningful
from ducklake_lab.sql.types import type_or_none

_SYSTEM_SCHEMAS = ("information_schema", "pg_catalog")
#: How the names of system views begin that need no schema.
_SYSTEM_PREFIXES = ("duckdb_", "sqlite_", "pg_")


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows handed in under a name: a Spark DataFrame or an Arrow table."""

    columns: tuple[tuple[str, DataType], ...]
    rows: Any


class Names(ABC):
    """Looks names up; nothing is read for it but metadata.

    Attributes:
        frames: rows handed in, by the name under which SQL sees them.
    """

    def __init__(
        self,
        lakes: Lakes,
        database: SessionDatabase,
        view_columns: Callable[[Lake, str, View], list[tuple[str, DataType]]],
    ) -> None:
        self._lakes = lakes
        self._database = database
        self.system = SystemTables(lakes, database, view_columns)
        self.frames: dict[str, Frame] = {}
        self._counter = itertools.count(1)

    @abstractmethod
    def moment(self, at: op.At | None) -> At:
        """The snapshot id or point in time of an AT clause, whose constant is evaluated."""

    def settings(self) -> Settings:
        """The settings that change what a query means."""
        return self._database.settings(meaningful())

    def place(self, name: op.TableName, at: op.At | None = None) -> Place:
        return self._lakes.place(name.catalog, name.schema, name.name, self.moment(at))

    def owns(self, name: op.TableName) -> bool:
        """Whether a name is one of the session's own database, as DuckDB's search path has it: temp, then the current."""
        if self._listing(name) is not None:
            return False
        if name.catalog is not None:
            return self._is_own_catalog(name.catalog)
        if name.schema is not None:
            if self._lakes.find(name.schema) is not None or self._lakes.metadata_of(name.schema) is not None:
                return False
            return self._is_own_catalog(name.schema) or name.schema.casefold() in _SYSTEM_SCHEMAS or self._lakes.at_home
        if self._frame(name) is not None:
            return False
        return self._lakes.at_home or self._database.has_temporary(name.name)

    def _listing(self, name: op.TableName) -> str | None:
        """The query of a system view that lists entries of lakes too; None for all other names."""
        named_so = name.name.casefold().startswith(_SYSTEM_PREFIXES) if name.schema is None else False
        if not named_so and (name.schema or "").casefold() not in _SYSTEM_SCHEMAS:
            return None
        return self.system.view_query(name.schema, name.name)

    def _is_own_catalog(self, name: str) -> bool:
        return self._lakes.find(name) is None and self._database.is_attached(name)

    def describe(self, query: str) -> Sequence[tuple[str, DataType | None]] | None:
        """The columns of a query over the session's own database and files; None where it cannot be bound.

        Raises:
            SqlError: a file that it names cannot be read.
        """
        try:
            found = self._database.describe(query)
        except BindError:
            return None
        return [(name, type_or_none(kind)) for name, kind in found]

    def metadata_table(self, name: op.TableName) -> Sequence[tuple[str, DataType]] | None:
        """The columns of a table of a lake's catalog database; None if the name is not of one."""
        found = self._metadata_lake(name)
        if found is None:
            return None
        with found.connect() as connection:
            return metadata_columns(found.database, connection, name.name)

    def _metadata_lake(self, name: op.TableName) -> Lake | None:
        alias = name.catalog or name.schema
        return self._lakes.metadata_of(alias) if alias is not None else None

    def view(self, name: op.TableName, at: op.At | None) -> StoredView | None:
        """The view of that name; None where there is none."""
        try:
            place = self.place(name, at)
        except EntryNotFoundError:
            return None
        view = place.state.find_view(place.schema, place.name)
        return stored_view(place, view) if view is not None else None

    def macro(self, name: op.TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        """The macro of that qualified name; None where there is none."""
        if name.catalog is not None and self._lakes.find(name.catalog) is None:
            return None
        try:
            place = self.place(name)
        except (EntryNotFoundError, UsageError):
            return None
        macro = place.state.find_macro(place.schema, place.name, kind)
        return stored_macro(place, macro) if macro is not None else None

    def macros(self, place: tuple[str, str] | None) -> Mapping[tuple[str, str], StoredMacro]:
        """The macros of a schema, or of the current one, by kind and folded name."""
        lake = self._lakes.current if place is None else self._lakes.find(place[0])
        if lake is None:
            return {}
        state = self._lakes.state(lake)
        schema = state.find_schema(self._lakes.current_schema if place is None else place[1])
        if schema is None or not state.macros:
            return {}
        return {
            (macro.kind, macro.name.casefold()): stored_macro(Place(lake, state, schema.name, macro.name), macro)
            for macro in state.macros.values()
            if macro.schema_id == schema.schema_id
        }

    # Rows handed in

    def _frame(self, name: op.TableName) -> Frame | None:
        return self.frames.get(name.name) if name.catalog is None and name.schema is None else None

    def new_view_name(self) -> str:
        return f"ducklake_rows_{next(self._counter)}"

    def register(self, rows: Any) -> str:
        """Makes an Arrow table or a Spark DataFrame visible to SQL under a new name."""
        name = self.new_view_name()
        if isinstance(rows, pa.Table):
            columns = tuple((field.name, from_field(field)) for field in rows.schema)
        else:
            from ducklake_lab.spark.types import from_spark

            columns = tuple((field.name, from_spark(field.dataType)) for field in rows.schema.fields)
        folded = [column.casefold() for column, _ in columns]
        if len(set(folded)) < len(folded):
            twice = next(column for column in folded if folded.count(column) > 1)
            raise UsageError(f'The rows have two columns named "{twice}"; rename one of them.')
        self.frames[name] = Frame(columns, rows)
        return name
