"""Rows in any place, and queries over them: an operation is written once, for every placement.

All that gives rows is `Rows`: an Arrow table, a query in process, a DataFrame, and the planned reads of `engine/scans.py` and
`engine/changes.py`, which either engine can do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.duckdb.evaluation import Settings
from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import BindError
from ducklake_lab.files.relation import Relation
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.types import DataType, from_field
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query, plan_query
from ducklake_lab.sql.plan import InputRows, NamedRows, Resolver, StoredMacro, StoredView

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame, SparkSession

Columns = Sequence[tuple[str, DataType]]


class Rows(ABC):
    """Rows, with the operations that every place supports."""

    @property
    def files(self) -> Sequence[ScanFile]:
        """The data files that hold the rows, after pruning."""
        return ()

    @property
    def files_total(self) -> int:
        """The number of data files before pruning."""
        return 0

    @property
    def is_on_spark(self) -> bool:
        """Whether the rows are fetched from Spark before this process reads them."""
        return False

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The names and types of the columns."""

    @abstractmethod
    def here(self) -> Here:
        """Returns the rows in this process."""

    @abstractmethod
    def frame(self, spark: SparkSession) -> DataFrame:
        """Returns all rows as a DataFrame."""

    @property
    def key(self) -> Hashable:
        """The key under which their DataFrame is kept for other statements; None if it is not."""
        return None

    def arrow(self) -> pa.Table:
        """Returns all rows as an Arrow table in memory."""
        return self.here().arrow()

    def first(self, count: int, names: Sequence[str] | None = None) -> Rows:
        """Returns the rows with only the first columns, on request under other names."""
        return self.here().first(count, names)

    def pick(self, column: str, values: Sequence[str], without: Sequence[str]) -> Rows:
        """Returns the rows with one of some texts in a column, without some columns."""
        return self.here().pick(column, values, without)

    def query(self, sql: str, **others: Rows) -> Rows:
        """Returns the result of a query in DuckDB's SQL.

        Args:
            sql: the query; it names these rows `rows`. For Spark it is translated like a user's query.
            others: rows in the same place, by their names in the query.

        Raises:
            UnsupportedFeatureError: neither Spark nor a worker can compute a part.
        """
        return self.here().query(sql, **others)


class Here(Rows):
    """Rows in this process, which DuckDB reads on demand."""

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """The rows as a query over files and Arrow tables."""

    @abstractmethod
    def arrow(self) -> pa.Table: ...

    def here(self) -> Here:
        return self

    def frame(self, spark: SparkSession) -> DataFrame:
        from ducklake_lab.spark.frames import from_arrow_table

        return from_arrow_table(spark, self.arrow())

    def first(self, count: int, names: Sequence[str] | None = None) -> Here:
        inner = [f"c{i}" for i in range(count)]
        kept = self.columns[:count]
        if names is not None:
            kept = [(name, kind) for name, (_, kind) in zip(names, kept, strict=True)]
        shown = ", ".join(f"{old} AS {quote_identifier(new)}" for old, (new, _) in zip(inner, kept, strict=True))
        relation = self.relation
        return Query(
            replace(relation, sql=f"SELECT {shown} FROM ({relation.sql}) AS r({', '.join(inner)})"), tuple(kept)
        )

    def pick(self, column: str, values: Sequence[str], without: Sequence[str]) -> Here:
        table = self.arrow()  # splitting a few rows is faster than binding a query
        found = table.filter(pc.is_in(table.column(column), pa.array(values, pa.string())))
        return InMemory(found.drop_columns(list(without)))

    def query(self, sql: str, **others: Rows) -> Here:
        inputs = {"rows": self.relation, **{name: rows.here().relation for name, rows in others.items()}}
        named = ", ".join(f"{name} AS NOT MATERIALIZED ({rows.sql})" for name, rows in inputs.items())
        tables = {name: table for rows in inputs.values() for name, table in rows.tables.items()}
        places = {path: place for rows in inputs.values() for path, place in rows.places.items()}
        return Query(Relation(f"WITH {named} SELECT * FROM ({sql})", tables, places))


@dataclass(frozen=True)
class Query(Here):
    """Rows of a query over files and Arrow tables.

    Attributes:
        declared: the columns, if they are known.
    """

    source: Relation
    declared: Columns | None = None

    @property
    def relation(self) -> Relation:
        return self.source

    @cached_property
    def columns(self) -> Columns:
        return self.declared or _columns_of(
            engine.read_relation(replace(self.relation, sql=f"FROM ({self.relation.sql}) LIMIT 0"))
        )

    @cached_property
    def _table(self) -> pa.Table:
        found = engine.read_relation(self.relation)
        # DuckDB ignores case, and numbers duplicate names
        return found if self.declared is None else found.rename_columns([name for name, _ in self.declared])

    def arrow(self) -> pa.Table:
        return self._table


@dataclass(frozen=True, eq=False)
class InMemory(Here):
    """Rows of an Arrow table."""

    table: pa.Table

    @cached_property
    def columns(self) -> Columns:
        return _columns_of(self.table)

    @cached_property
    def relation(self) -> Relation:
        return engine.carried(unique_name(), self.table)

    def arrow(self) -> pa.Table:
        return self.table


_numbers = count(1)


def unique_name() -> str:
    """Returns a unique prefix for the names of a relation's tables."""
    return f"_ducklake_rows_{next(_numbers)}"


def _columns_of(table: pa.Table) -> list[tuple[str, DataType]]:
    return [(field.name, from_field(field)) for field in table.schema]


@dataclass(frozen=True, eq=False)
class OnSpark(Rows):
    """Rows of a DataFrame, processed by Spark.

    Attributes:
        declared: the columns, if their types are known more precisely than Spark has them.
    """

    data: DataFrame
    declared: tuple[tuple[str, DataType], ...] | None = None

    @property
    def is_on_spark(self) -> bool:
        return True

    @cached_property
    def columns(self) -> Columns:
        from ducklake_lab.spark.types import from_spark

        if self.declared is not None:
            return self.declared
        return [(field.name, from_spark(field.dataType)) for field in self.data.schema.fields]

    def here(self) -> Here:
        from ducklake_lab.spark.frames import to_arrow_table

        return InMemory(to_arrow_table(self.data))

    def frame(self, spark: SparkSession) -> DataFrame:
        from ducklake_lab.spark.frames import of_session

        return of_session(spark, self.data)

    def first(self, count: int, names: Sequence[str] | None = None) -> OnSpark:
        quoted = ["`" + name.replace("`", "``") + "`" for name in self.data.columns[:count]]
        kept = self.columns[:count]
        frame = self.data.select(*quoted)
        if names is None:
            return OnSpark(frame, tuple(kept))
        kinds = (kind for _, kind in kept)
        return OnSpark(frame.toDF(*names), tuple(zip(names, kinds, strict=True)))

    def pick(self, column: str, values: Sequence[str], without: Sequence[str]) -> OnSpark:
        listed = ", ".join(quote_text(value) for value in values)
        excluded = ", ".join(map(quote_identifier, without))
        return self.query(f"SELECT * EXCLUDE ({excluded}) FROM rows WHERE {quote_identifier(column)} IN ({listed})")

    def query(self, sql: str, **others: Rows) -> OnSpark:
        from ducklake_lab.spark import querying

        inputs: dict[str, Rows] = {"rows": self, **others}
        spark = self.data.sparkSession
        plan = plan_query(parse_query(sql), _Inputs({name: rows.columns for name, rows in inputs.items()}))
        frames = {source.view: inputs[source.name.name].frame(spark) for source in plan.sources}
        query = plan.for_spark()
        frame = querying.run(spark, query.sql, query.evaluations, frames)
        # from empty inputs, DuckDB determines the result types
        empty = {
            name: pa.schema([kind.field(column) for column, kind in rows.columns]).empty_table()
            for name, rows in inputs.items()
        }
        return OnSpark(frame, tuple(_columns_of(engine.evaluate(sql, empty))))


class _Inputs(Resolver):
    """Resolves the inputs of a query for the planner; no other names are available."""

    def __init__(self, inputs: Mapping[str, Columns]) -> None:
        self._inputs = inputs

    def table(self, name: op.TableName, at: op.At | None) -> NamedRows:
        if name.name not in self._inputs:
            raise BindError(f'A query over rows names "{name}", which is none of its inputs.')
        return InputRows(self._inputs[name.name])

    def function(self, name: op.TableName, args: Sequence[object], kwargs: Mapping[str, object]) -> Columns | None:
        return None

    def owns(self, name: op.TableName) -> bool:
        return False

    def describe(self, query: str) -> Sequence[tuple[str, DataType | None]] | None:
        return None

    def view(self, name: op.TableName, at: op.At | None) -> StoredView | None:
        return None

    def macro(self, name: op.TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        return None

    def settings(self) -> Settings:
        return (("TimeZone", "UTC"),)

    def macros(self, place: tuple[str, str] | None) -> Mapping[tuple[str, str], StoredMacro]:
        return {}
