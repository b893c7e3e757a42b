"""Rows in any place, and queries over them: an operation is written once, for every placement.

All that gives rows is `Rows`: an Arrow table, a query in process, a DataFrame, and the planned reads of `engine/scans.py` and
`engine/changes.py`, which either engine can do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.duckdb.evaluation import Settings
from ducklake_lab.engine.in_process import engine
from ducklake_lab.engine.in_process.python_rows import filled
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.target import Target, Written
from ducklake_lab.files.constraints import check_rows
from ducklake_lab.files.deletes import write_matched
from ducklake_lab.files.duckdb_query import DuckDbQuery
from ducklake_lab.files.sorting import sort_rows
from ducklake_lab.files.writer import write_rows
from ducklake_lab.model.entries import Column
from ducklake_lab.model.files import WrittenDeletes
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import FILE_ID, ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType, from_field
from ducklake_lab.scan.plan import ScanFile, ScanPlan

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
        """Returns whether the rows are fetched from Spark before this process reads them."""
        return False

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The names and types of the columns."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns, whose types lakes may lack."""
        return [name for name, _ in self.columns]

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

    def count(self) -> int:
        """Returns the number of rows."""
        return self.arrow().num_rows  # type: ignore[no-any-return]

    def head(self, count: int) -> pa.Table:
        """Returns at most that many first rows; computes no more than needed."""
        return self.arrow().slice(0, count)

    def first(self, count: int, names: Sequence[str] | None = None) -> Rows:
        """Returns the rows with only the first columns, on request under other names."""
        return self.here().first(count, names)

    def pick(self, column: str, values: Sequence[str], without: Sequence[str]) -> Rows:
        """Returns the rows with one of some texts in a column, without some columns."""
        return self.here().pick(column, values, without)

    def split(self, column: str, number: int) -> tuple[Rows, Rows]:
        """Returns the rows whose number in a column is lower, and those where it is not."""
        return self.here().split(column, number)

    def query(self, sql: str, **others: Rows) -> Rows:
        """Returns the result of a query in DuckDB's SQL.

        Args:
            sql: the query; it names these rows `rows`. For Spark it is translated like a user's query.
            others: rows in the same place, by their names in the query.

        Raises:
            UnsupportedFeatureError: neither Spark nor a worker can compute a part.
        """
        return self.here().query(sql, **others)

    def run_by(self, engines: Engines) -> Rows:
        """Returns the rows with the engines that run their jobs: with progress, cancellation and one-line errors."""
        return self

    def near(self, most: int) -> Rows:
        """Returns the rows in this process if they are at most that many and nothing need be computed; else the rows."""
        return self

    def fetched(self, most: int) -> Rows:
        """Returns the rows in this process if they are at most that many, else the rows; may compute some of them."""
        return self

    def rest(self, start: int) -> Rows:
        """Returns the rows without their first columns."""
        return self.here().rest(start)

    def counts(self, column: str) -> dict[str, int]:
        """Returns the number of rows by the text in a column."""
        return self.here().counts(column)

    def fit(self, columns: Sequence[Column], settings: Settings) -> Rows:
        """Returns all columns of a table, in their types; matches names, and fills missing columns with their defaults.

        Args:
            settings: the settings of the session that casts and defaults depend on.

        Raises:
            ConstraintError: a value does not fit its column.
        """
        return self.here().fit(columns, settings)

    def write(self, target: Target, *, keeps_ids: bool = False, count: int | None = None) -> Written:
        """Writes the rows to data files, sorted if the table is; returns few rows instead. Creates no snapshot.

        Args:
            keeps_ids: the rows begin with the virtual columns, and keep their row ids; they are not sorted.
            count: the number of rows, if it is known.

        Raises:
            ConstraintError: a row has NULL in a column that is NOT NULL.
        """
        return self.here().write(target, keeps_ids=keeps_ids, count=count)

    def delete(self, target: Target, scan: ScanPlan, count: int) -> tuple[list[int], list[WrittenDeletes]]:
        """Records the deletion of the rows, which begin with the virtual columns. Creates no snapshot.

        Args:
            scan: the read that gave the rows.
            count: their number.

        Returns:
            The row ids of inlined rows, and an entry per data file with deletions.
        """
        return self.here().delete(target, scan, count)


class Here(Rows):
    """Rows in this process, which DuckDB reads on demand."""

    @property
    @abstractmethod
    def duckdb_query(self) -> DuckDbQuery:
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
        columns = self.columns[:count]
        if names is not None:
            columns = [(name, kind) for name, (_, kind) in zip(names, columns, strict=True)]
        shown = ", ".join(f"{old} AS {quote_identifier(new)}" for old, (new, _) in zip(inner, columns, strict=True))
        source = self.duckdb_query
        return Query(
            replace(source, sql=f"SELECT {shown} FROM ({source.sql}) AS r({', '.join(inner)})"), tuple(columns)
        )

    def pick(self, column: str, values: Sequence[str], without: Sequence[str]) -> Here:
        table = self.arrow()  # splitting a few rows is faster than binding a query
        picked = table.filter(pc.is_in(table.column(column), pa.array(values, pa.string())))
        return InMemory(picked.drop_columns(list(without)))

    def split(self, column: str, number: int) -> tuple[Here, Here]:
        table = self.arrow()
        lower = pc.less(table.column(column), number)
        return InMemory(table.filter(lower)), InMemory(table.filter(pc.invert(lower)))

    def query(self, sql: str, **others: Rows) -> Here:
        inputs = {"rows": self.duckdb_query, **{name: rows.here().duckdb_query for name, rows in others.items()}}
        named = ", ".join(f"{name} AS NOT MATERIALIZED ({rows.sql})" for name, rows in inputs.items())
        tables = {name: table for rows in inputs.values() for name, table in rows.tables.items()}
        places = {path: place for rows in inputs.values() for path, place in rows.places.items()}
        return Query(DuckDbQuery(f"WITH {named} SELECT * FROM ({sql})", tables, places))

    def rest(self, start: int) -> Here:
        table = self.arrow()
        return InMemory(table.select(range(start, table.num_columns)))

    def counts(self, column: str) -> dict[str, int]:
        counted = pc.value_counts(self.arrow().column(column)).to_pylist()  # faster than binding a query
        return {entry["values"]: entry["counts"] for entry in counted}

    def fit(self, columns: Sequence[Column], settings: Settings) -> Here:
        named = {column.name.casefold(): column.name for column in columns}
        rows = self.arrow()
        rows = rows.rename_columns([named[name.casefold()] for name in rows.column_names])
        return InMemory(filled(rows, columns, dict(settings)["TimeZone"]))

    def write(self, target: Target, *, keeps_ids: bool = False, count: int | None = None) -> Written:
        table, given = target.table, self.arrow()
        row_ids = given.column(ROW_ID).combine_chunks() if keeps_ids else None
        first = len(VIRTUAL_COLUMNS) if keeps_ids else 0
        types = {column.name: column.data_type for column in table.columns}
        values = given.select(range(first, first + len(types))).rename_columns(list(types))
        rows = cast_columns(values, types)
        check_rows(table, rows)
        if target.sorted is not None and not keeps_ids:
            rows = sort_rows(rows, target.sorted, table.columns, [])
        if target.inlines(rows):
            return Written(rows.num_rows, rows, row_ids)
        # a transfer to Spark would cost more
        files = write_rows(table, rows, target.folder, target.options, row_ids)
        return Written(rows.num_rows, files=files)

    def delete(self, target: Target, scan: ScanPlan, count: int) -> tuple[list[int], list[WrittenDeletes]]:
        positions = self.arrow()
        in_file = pc.is_valid(positions.column(FILE_ID))
        inlined_ids: list[int] = positions.filter(pc.invert(in_file)).column(ROW_ID).to_pylist()
        return inlined_ids, delete_positions(positions.filter(in_file), target, scan)


@dataclass(frozen=True)
class Query(Here):
    """Rows of a query over files and Arrow tables.

    Attributes:
        declared: the columns, if they are known.
    """

    source: DuckDbQuery
    declared: Columns | None = None

    @property
    def duckdb_query(self) -> DuckDbQuery:
        return self.source

    @cached_property
    def columns(self) -> Columns:
        return self.declared or columns_of(
            engine.read_query(replace(self.duckdb_query, sql=f"FROM ({self.duckdb_query.sql}) LIMIT 0"))
        )

    @cached_property
    def _table(self) -> pa.Table:
        table = engine.read_query(self.duckdb_query)
        # DuckDB ignores case, and numbers duplicate names
        return table if self.declared is None else table.rename_columns([name for name, _ in self.declared])

    def arrow(self) -> pa.Table:
        return self._table


@dataclass(frozen=True, eq=False)
class InMemory(Here):
    """Rows of an Arrow table."""

    table: pa.Table

    @cached_property
    def columns(self) -> Columns:
        return columns_of(self.table)

    @property
    def names(self) -> Sequence[str]:
        names: list[str] = self.table.column_names
        return names

    @cached_property
    def duckdb_query(self) -> DuckDbQuery:
        return engine.carried(unique_name(), self.table)

    def arrow(self) -> pa.Table:
        return self.table

    def first(self, count: int, names: Sequence[str] | None = None) -> InMemory:
        kept = self.table.select(range(count))  # faster than binding a query
        return InMemory(kept if names is None else kept.rename_columns(list(names)))


@dataclass(frozen=True, eq=False)
class OnDemand(Here):
    """Rows of a query in process that runs when they are needed.

    Attributes:
        declared: the names of the columns.
        run: runs the query; returns that many first rows, or all for None.
    """

    declared: Sequence[str]
    run: Callable[[int | None], pa.Table]

    @cached_property
    def columns(self) -> Columns:
        return columns_of(self._table)

    @property
    def names(self) -> Sequence[str]:
        return self.declared

    @cached_property
    def duckdb_query(self) -> DuckDbQuery:
        return engine.carried(unique_name(), self._table)

    @cached_property
    def _table(self) -> pa.Table:
        return self.run(None).rename_columns(list(self.declared))

    def arrow(self) -> pa.Table:
        return self._table

    def head(self, count: int) -> pa.Table:
        return self.run(count).rename_columns(list(self.declared))


_numbers = count(1)


def unique_name() -> str:
    """Returns a unique prefix for the names of a query's tables."""
    return f"_ducklake_rows_{next(_numbers)}"


def delete_positions(positions: pa.Table, target: Target, scan: ScanPlan) -> list[WrittenDeletes]:
    """Records the deletion of rows by their data file and position; returns an entry per file."""
    files = {file.data_file.data_file_id: file for file in scan.files}
    deleted = {file_id: files[file_id] for file_id in pc.unique(positions.column(FILE_ID)).to_pylist()}
    return write_matched(positions, deleted, target.folder, target.deletes, target.next_snapshot)


def columns_of(table: pa.Table) -> list[tuple[str, DataType]]:
    return [(field.name, from_field(field)) for field in table.schema]
