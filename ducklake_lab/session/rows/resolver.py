"""Resolves names in SQL: entries of lakes, catalog databases and the session's database, and rows from the program."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any, Literal

from ducklake_lab.catalog.identity import read_of
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.metadata import metadata_columns
from ducklake_lab.duckdb.evaluation import Settings
from ducklake_lab.duckdb.zones import instant
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.rows import Rows
from ducklake_lab.errors import (
    BindError,
    CapturedNameError,
    DuckLakeError,
    EntryNotFoundError,
    ExpansionError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
    UsageError,
)
from ducklake_lab.model.entries import Macro, View
from ducklake_lab.model.quoting import quote_identifier, schema_path
from ducklake_lab.model.types import DataType
from ducklake_lab.session.functions.registry import Functions
from ducklake_lab.session.names.attached_lakes import Lakes, NamedEntry, Sought
from ducklake_lab.session.names.listing import listing_query
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.names.stored_definitions import stored_macro, stored_view
from ducklake_lab.session.names.system_tables import SystemTables
from ducklake_lab.session.rows import logs
from ducklake_lab.session.rows.handed_in import HandedIn, check_folded
from ducklake_lab.session.rows.named_rows import HandedInRows, LakeTable, MetadataTable, SystemListing
from ducklake_lab.session.rows.result import Result, RunInfo
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query, plan_in_process, plan_query
from ducklake_lab.sql.plan import MOST_EXPANSIONS, Described, NamedRows, QueryPlan, StoredMacro, StoredView
from ducklake_lab.sql.planning.planner import as_text
from ducklake_lab.sql.planning.table_arguments import table_parameters
from ducklake_lab.sql.spark.settings import meaningful
from ducklake_lab.sql.types import type_or_none

#: DuckDB's text for a temporary view over lakes; it keeps the view's name and columns in DuckDB's catalog.
_VIEW_TEXT = "ducklake_lab_view_{}_can_be_read_by_its_bare_name_only"
_VIEW = re.compile(_VIEW_TEXT.format(r"(\d+)"), re.ASCII)
_BIGINT = range(-(2**63), 2**63)
#: A plain integer constant with few enough digits for a BIGINT.
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_SYSTEM_SCHEMAS = ("information_schema", "pg_catalog")
#: Prefixes of system views that need no schema.
_SYSTEM_PREFIXES = ("duckdb_", "sqlite_", "pg_", "pragma_")


class NameResolver:
    """Resolves names for the planner. It reads metadata only.

    Args:
        run: runs a plan, for constant expressions and system views.
        columns_of: returns (name, type) for the columns of a plan; None if DuckDB cannot bind it.
        described: returns the columns of a plan as DESCRIBE does; raises if DuckDB cannot bind it.

    Attributes:
        registered: rows from the program, by their name in plans.
        spark_view: returns the rows of a temporary Spark view; None without a running Spark or such a view.
        functions: the table functions of lakes.
        system: the system tables that list entries of lakes.
    """

    def __init__(
        self,
        lakes: Lakes,
        database: SessionDatabase,
        functions: Functions,
        run: Callable[[QueryPlan], Result],
        columns_of: Callable[[QueryPlan], list[tuple[str, str]] | None],
        described: Callable[[QueryPlan], Sequence[Described]],
        spark_view: Callable[[str], Rows | None],
    ) -> None:
        self._lakes = lakes
        self._database = database
        self._run = run
        self._columns_of = columns_of
        self._described = described
        self.functions = functions
        self.system = SystemTables(lakes, database, self._query_columns)
        self.registered: dict[str, HandedInRows] = {}
        self.spark_view = spark_view
        self._counter = itertools.count(1)
        self._handed_in = HandedIn()
        self._views: dict[int, StoredView] = {}
        self._by_variable: dict[tuple[str, str], op.TableName] = {}
        self.most_expansions = MOST_EXPANSIONS

    def table(self, name: op.TableName, at: op.At | None) -> NamedRows:
        """Returns the rows behind a name: from the program, a catalog table, a system view, or a lake table."""
        if (handed_in := self._handed_in_rows(name)) is not None:
            return handed_in
        if (lake := self._metadata_lake(name)) is not None:
            with lake.connect() as connection:
                columns = metadata_columns(lake.database, connection, name.name)
            return MetadataTable(lake, name.name, columns, name.qualifiers)
        if (query := self._listing(name)) is not None:
            plan = plan_in_process(query, self, UnsupportedFeatureError(name.name))
            return SystemListing(plan, _typed(self._columns_of(plan)), name.qualifiers)
        moment = self.moment(at)
        entry = self._lakes.entry(name.catalog, name.schema, name.name, moment)
        table = entry.table()
        columns = [(column.name, column.data_type) for column in table.columns]
        qualifiers = op.TableName(entry.lake.alias, entry.schema, entry.name).qualifiers
        return LakeTable(entry.lake, moment, table, columns, qualifiers)

    def function(
        self, name: op.TableName, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[tuple[str, DataType]] | None:
        """Returns the columns of a lake's table function; None if it is none.

        Raises:
            EntryNotFoundError: a lake would have the function, and none is attached under that name.
        """
        if name.schema is None and not args and self.system.is_function(name.name):
            return self.system.columns(name.name)
        if self.is_log(name, args):
            return _typed(self._database.describe(logs.PARSED))
        if not self.functions.knows(name.catalog, name.schema, name.name):
            if (alias := name.catalog or name.schema) and name.name.casefold() in self.functions.names:
                self._check_place(name, alias)
            return None
        return self.functions.columns(
            name.catalog, name.schema, name.name, [self.value(a) for a in args], self.values(kwargs)
        )

    def _check_place(self, name: op.TableName, alias: str) -> None:
        """Raises EntryNotFoundError where a qualified name begins with no lake, database or schema."""
        if self._database.is_attached(alias):
            return
        lake = self._lakes.current
        has_schema = lake is not None and self._lakes.state(lake).find_schema(schema_path([alias])) is not None
        if name.catalog is not None or not (has_schema or self._database.has_schema(alias)):
            self._lakes.get(alias)

    def is_log(self, name: op.TableName, args: Sequence[object]) -> bool:
        """Returns whether a call reads the log of catalog queries, a log type that DuckDB does not know."""
        return (
            name.schema is None
            and name.name.casefold() == "duckdb_logs_parsed"
            and [str(self.value(arg)).casefold() for arg in args] == [logs.LOG_TYPE.casefold()]
        )

    def _query_columns(
        self, text: str, lake_schema: tuple[str, str] | None, most_expansions: int
    ) -> list[tuple[str, DataType]]:
        self.most_expansions = most_expansions
        try:
            query = parse_query(text)
            columns = self._columns_of(
                plan_query(query, self, lake_schema) if lake_schema else plan_or_leave(query, self)
            )
        except ExpansionError:
            raise
        except DuckLakeError:
            return []  # a listed view whose tables are gone
        finally:
            self.most_expansions = MOST_EXPANSIONS
        return _typed(columns)

    def moment(self, at: op.At | None) -> At:
        """Returns the snapshot id, tag or time of an AT clause."""
        if at is None:
            return None
        if at.version_sql is not None:
            version = self.value(op.SqlConstant(at.version_sql))
            if isinstance(version, str) and not version.strip().isdecimal():
                return version
            if type(version) is not int or version not in _BIGINT:
                version = self.value(op.SqlConstant(f"CAST({at.version_sql} AS BIGINT)"))
            if not isinstance(version, int):
                raise SnapshotNotFoundError("AT (VERSION => …) needs a snapshot id, not NULL.")
            return version
        moment = self.value(op.SqlConstant(str(at.timestamp_sql)))
        if not isinstance(moment, date | str):
            raise SnapshotNotFoundError(f"AT (TIMESTAMP => …) needs a point in time, not {moment or 'NULL'}.")
        return instant(moment, self._database.global_time_zone())

    def table_parameters(self, name: op.TableName) -> Collection[str | int]:
        """Returns the places and names of parameters by which a function of DuckDB reads tables."""
        return table_parameters(name, self._database.table_macros)

    def value(self, argument: object) -> Any:
        """Returns the Python value of an argument, which may be a constant expression."""
        if not isinstance(argument, op.SqlConstant):
            return argument
        if _INTEGER.fullmatch(argument.sql):
            return int(argument.sql)
        plan = plan_in_process(f"SELECT ({argument.sql}) AS v", self, UnsupportedFeatureError(argument.sql))
        return self._run(plan).arrow().column("v")[0].as_py()

    def values(self, kwargs: Mapping[str, object]) -> dict[str, Any]:
        return {name: self.value(argument) for name, argument in kwargs.items()}

    def texts(self, query: op.Query) -> Sequence[str]:
        """Returns the rows of a query with one text column."""
        texts: list[str] = self._run(plan_or_leave(query, self)).arrow().column(0).to_pylist()
        return texts

    def settings(self) -> Settings:
        """Returns the settings that change the meaning of a query."""
        return self._database.settings(meaningful())

    def entry(self, name: op.TableName, at: op.At | None = None, sought: Sought = "relation") -> NamedEntry:
        return self._lakes.entry(name.catalog, name.schema, name.name, self.moment(at), sought)

    def owns(self, name: op.TableName) -> bool:
        """Returns whether the session's own database has a name, in DuckDB's search order: temp, then the current one."""
        if self._listing(name) is not None:
            return False
        if name.catalog is not None:
            return self._is_own_catalog(name.catalog)
        if name.schema is not None:
            if self._lakes.find(name.schema) is not None or self._lakes.metadata_of(name.schema) is not None:
                return False
            schema = name.schema.casefold()
            if schema == "main" and self._database.has_temporary(name.name):
                return True
            return self._is_own_catalog(name.schema) or schema in _SYSTEM_SCHEMAS or self._lakes.at_home
        if self._handed_in_rows(name) or self.handed_in(name) or self.temporary_view(name):
            return False
        return self._lakes.at_home or self._database.has_temporary(name.name)

    def _listing(self, name: op.TableName) -> str | None:
        """Returns the query of a system view that lists entries; None for other names."""
        named_so = name.name.casefold().startswith(_SYSTEM_PREFIXES) if name.schema is None else False
        if not named_so and (name.schema or "").casefold() not in _SYSTEM_SCHEMAS:
            return None
        return self.system.view_query(name.schema, name.name)

    def _is_own_catalog(self, name: str) -> bool:
        return self._lakes.find(name) is None and self._database.is_attached(name)

    def describe(self, query: str) -> Sequence[tuple[str, DataType | None]] | None:
        """Returns the columns of a query over the session's database and files; None if it cannot be bound.

        Raises:
            SqlError: a file in the query cannot be read.
        """
        try:
            columns = self._database.describe(query)
        except BindError:
            return None
        return [(name, type_or_none(kind)) for name, kind in columns]

    def listing(self, listing: op.Listing) -> str:
        """Returns the query of SHOW TABLES or its like."""
        return listing_query(listing, self._lakes, self._database, self.system)

    def described(self, plan: QueryPlan) -> Sequence[Described]:
        """Returns the columns of a query, as DESCRIBE does.

        Raises:
            BindError: a name does not exist.
        """
        return self._described(plan)

    def is_metadata_table(self, name: op.TableName) -> bool:
        """Returns whether a name is a table of a lake's catalog database."""
        return self._metadata_lake(name) is not None

    def _metadata_lake(self, name: op.TableName) -> Lake | None:
        alias = name.catalog or name.schema
        return self._lakes.metadata_of(alias) if alias is not None else None

    def view(self, name: op.TableName, at: op.At | None) -> StoredView | None:
        """Returns the view with that name; None if there is none."""
        try:
            entry = self.entry(name, at)
        except EntryNotFoundError:
            return None
        view = entry.state.find_view(entry.schema, entry.name)
        return stored_view(entry, view) if view is not None else None

    def macro(self, name: op.TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        """Returns the macro with that qualified name; None if there is none."""
        try:
            entry = self.entry(name)
        except (EntryNotFoundError, UsageError):
            return None
        macro = entry.state.find_macro(entry.schema, entry.name, kind)
        in_main = name.catalog is None and (name.schema or "").casefold() == "main"  # temporary macros are in one, too
        if macro is None or (in_main and (kind, name.name.casefold()) in self._database.temporary_macros()):
            return None
        return stored_macro(entry, macro)

    def macros(self, lake_schema: tuple[str, str] | None) -> Mapping[tuple[str, str], StoredMacro]:
        """Returns the macros of a schema, by default the current one and `main`, by kind and folded name; temporary ones hide them."""
        lake = self._lakes.current if lake_schema is None else self._lakes.find(lake_schema[0])
        if lake is None:
            return {}
        state = self._lakes.state(lake)
        if not state.macros:
            return {}
        names = ("main", self._lakes.current_schema) if lake_schema is None else (lake_schema[1],)
        hidden = self._database.temporary_macros()
        return {
            key: stored_macro(NamedEntry(lake, state, schema.name, macro.name), macro)
            for schema in map(state.find_schema, names)
            if schema is not None
            for macro in state.macros.values()
            if macro.schema_id == schema.schema_id and (key := (macro.kind, macro.name.casefold())) not in hidden
        }

    def note_definitions(self, plan: QueryPlan, info: RunInfo) -> None:
        """Notes the stored views and macros that a plan expands; the tables behind them are its sources."""
        for definition, at in plan.definitions:
            lake, moment = self._lakes.get(definition.lake), self.moment(at)
            state = self._lakes.state(lake, moment)
            entries: Mapping[int, View | Macro] = state.views if isinstance(definition, StoredView) else state.macros
            entry = entries.get(definition.entry_id) if definition.entry_id is not None else None
            if entry is not None:
                is_uncommitted = self._lakes.reads.is_uncommitted(state)
                is_fixed = self._lakes.is_fixed(lake, moment)
                info.read(lake, read_of(lake, state, entry, is_fixed=is_fixed, is_uncommitted=is_uncommitted))

    # Objects of this session only

    def add_view(self, view: StoredView) -> str:
        """Stores a temporary view over lakes; returns the text by which `temporary_view` finds it."""
        number = len(self._views) + 1
        self._views[number] = view
        return _VIEW_TEXT.format(number)

    def temporary_view(self, name: op.TableName) -> StoredView | None:
        """Returns a temporary view over lakes by its name; DuckDB itself resolves all others."""
        if name.schema is not None or not self._views:
            return None
        view = _VIEW.search(self._database.temporary_view(name.name) or "")
        return self._views.get(int(view[1])) if view is not None else None

    @contextmanager
    def handing_in(self, rows: HandedIn) -> Iterator[None]:
        """Makes rows from the program visible to the statements in the block."""
        before = self._handed_in, self._by_variable
        self._handed_in, self._by_variable = rows, {}
        try:
            yield
        finally:
            for view in self._by_variable.values():
                del self.registered[view.name]
            self._handed_in, self._by_variable = before

    def handed_in(self, name: op.TableName) -> op.TableName | None:
        """Returns the plan's name for rows passed with the text, which hide tables; None if there are none.

        Without a current lake, it falls back to `replacement` if the session's database has no such table.
        """
        rows = self._registered_rows("table", name, self._handed_in.table)
        if rows is None and name.schema is None and self._lakes.at_home and not self._is_here(name):
            return self.replacement(name)
        return rows

    def replacement(self, name: op.TableName) -> op.TableName | None:
        """Returns the plan's name for a variable or a temporary Spark view; used if no table has the name."""
        return self._registered_rows("variable", name, self._handed_in.variable) or self._registered_rows(
            "view", name, self.spark_view
        )

    def hint(self, name: op.TableName) -> str:
        """Returns a hint on rows from the program for the message of a missing table."""
        return self._handed_in.hint(name.name) if name.schema is None else ""

    def _registered_rows(
        self, kind: str, name: op.TableName, find: Callable[[str], Rows | None]
    ) -> op.TableName | None:
        if name.schema is not None:
            return None
        key = kind, name.name
        if key not in self._by_variable:
            rows = find(name.name)
            if rows is None:
                return None
            self._by_variable[key] = op.TableName(None, None, self.register(rows, name.name))
        return self._by_variable[key]

    def _is_here(self, name: op.TableName) -> bool:
        """Returns whether the current database, which is no lake, has a table with that name."""
        try:
            self._database.describe(f"FROM {quote_identifier(name.name)}")
        except DuckLakeError:
            return False
        return True

    def _handed_in_rows(self, name: op.TableName) -> HandedInRows | None:
        return self.registered.get(name.name) if name.catalog is None and name.schema is None else None

    def new_view_name(self) -> str:
        return f"ducklake_rows_{next(self._counter)}"

    def register(self, rows: Rows, shown: str = "What you hand in") -> str:
        """Makes rows visible to plans under a new name.

        Args:
            shown: their name in messages.

        Raises:
            UsageError: two column names differ only in case.
        """
        name = self.new_view_name()
        check_folded(rows, shown)
        self.registered[name] = HandedInRows(rows, shown)
        return name


def plan_or_leave(query: op.Query, names: NameResolver) -> QueryPlan:
    """Plans a query; leaves queries that the planner cannot parse or bind to DuckDB."""
    try:
        return plan_query(query, names)
    except (CapturedNameError, ExpansionError):
        raise
    except (BindError, UnsupportedFeatureError) as error:
        return plan_in_process(as_text(query), names, error, query)


def _typed(columns: Sequence[tuple[str, str]] | None) -> list[tuple[str, DataType]]:
    """Returns columns with parsed types; text for unknown types."""
    return [(name, type_or_none(kind) or DataType("varchar")) for name, kind in columns or ()]
