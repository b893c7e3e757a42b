"""Rows of DataFrames, which Spark and its workers process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from ducklake_lab.duckdb.evaluation import Settings
from ducklake_lab.engine.in_process import engine
from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import Columns, Here, InMemory, Rows, columns_of, delete_positions
from ducklake_lab.engine.target import Target, Written
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.file_paths import is_local
from ducklake_lab.files.options import check_encrypts
from ducklake_lab.files.sorting import sort_sql
from ducklake_lab.model.entries import ROW_ID_COLUMN, Column, Table
from ducklake_lab.model.files import WrittenDeletes, WrittenFile
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.planner import plan_written
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query, plan_insert, plan_query
from ducklake_lab.sql.plan import InputRows, NamedRows, QueryPlan, Resolver
from ducklake_lab.sql.planning.writes import carrier
from ducklake_lab.storage import Storage

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame, SparkSession

_UTC: Settings = (("TimeZone", "UTC"),)


@dataclass(frozen=True, eq=False)
class OnSpark(Rows):
    """Rows of a DataFrame, processed by Spark.

    Attributes:
        declared: the columns, if their types are known more precisely than Spark has them.
        engines: runs the jobs, with progress and one-line errors; None if the caller does.
    """

    data: DataFrame
    declared: tuple[tuple[str, DataType], ...] | None = None
    engines: Engines | None = None

    @property
    def is_on_spark(self) -> bool:
        return True

    @cached_property
    def columns(self) -> Columns:
        from ducklake_lab.spark.types import from_spark

        if self.declared is not None:
            return self.declared
        return [(field.name, from_spark(field.dataType)) for field in self.data.schema.fields]

    @property
    def names(self) -> Sequence[str]:
        names: list[str] = self.data.columns
        return names

    def _running(self) -> AbstractContextManager[SparkSession]:
        return self.engines.running() if self.engines is not None else nullcontext(self.data.sparkSession)

    def here(self) -> Here:
        from ducklake_lab.spark.frames import to_arrow_table

        with self._running():
            return InMemory(to_arrow_table(self.data))

    def frame(self, spark: SparkSession) -> DataFrame:
        from ducklake_lab.spark.frames import of_session

        return of_session(spark, self.data)

    def run_by(self, engines: Engines) -> OnSpark:
        return replace(self, engines=engines)

    def head(self, count: int) -> pa.Table:
        return replace(self, data=self.data.limit(count)).arrow()

    def near(self, most: int) -> Rows:
        if not self.data.isLocal():
            return self
        rows = self.head(most + 1)
        return InMemory(rows) if rows.num_rows <= most else self

    def fetched(self, most: int) -> Rows:
        if self.declared is not None:
            return self
        rows = self.head(most + 1)
        return InMemory(rows) if rows.num_rows <= most else self

    def count(self) -> int:
        with self._running():
            return self.data.count()

    def first(self, count: int, names: Sequence[str] | None = None) -> OnSpark:
        columns = self.columns[:count]
        frame = self.data.select(*map(_quoted, self.data.columns[:count]))
        if names is None:
            return replace(self, data=frame, declared=tuple(columns))
        kinds = (kind for _, kind in columns)
        return replace(self, data=frame.toDF(*names), declared=tuple(zip(names, kinds, strict=True)))

    def rest(self, start: int) -> OnSpark:
        frame = self.data.select(*map(_quoted, self.data.columns[start:]))
        return replace(self, data=frame, declared=tuple(self.columns[start:]))

    def pick(self, column: str, values: Sequence[str], without: Sequence[str]) -> OnSpark:
        listed = ", ".join(quote_text(value) for value in values)
        excluded = ", ".join(map(quote_identifier, without))
        return self.query(f"SELECT * EXCLUDE ({excluded}) FROM rows WHERE {quote_identifier(column)} IN ({listed})")

    def split(self, column: str, number: int) -> tuple[OnSpark, OnSpark]:
        lower = self.data[column] < number
        return replace(self, data=self.data.where(lower)), replace(self, data=self.data.where(~lower))

    def counts(self, column: str) -> dict[str, int]:
        name = quote_identifier(column)
        counted = self.query(f"SELECT {name} AS v, count(*) AS n FROM rows GROUP BY {name}").arrow().to_pylist()
        return {row["v"]: row["n"] for row in counted}

    def query(self, sql: str, **others: Rows) -> OnSpark:
        inputs: dict[str, Rows] = {"rows": self, **others}
        plan = plan_query(parse_query(sql), _Inputs({name: rows.columns for name, rows in inputs.items()}))
        # from empty inputs, DuckDB determines the result types
        empty = {
            name: pa.schema([kind.field(column) for column, kind in rows.columns]).empty_table()
            for name, rows in inputs.items()
        }
        return replace(self._run(plan, inputs), declared=tuple(columns_of(engine.evaluate(sql, empty))))

    def _run(self, plan: QueryPlan, inputs: Mapping[str, Rows]) -> OnSpark:
        from ducklake_lab.spark import querying

        with self._running() as spark:
            frames = {source.view: inputs[source.name.name].frame(spark) for source in plan.sources}
            query = plan.for_spark()
            return OnSpark(querying.run(spark, query.sql, query.evaluations, frames), engines=self.engines)

    def fit(self, columns: Sequence[Column], settings: Settings) -> OnSpark:
        given = {name.casefold(): (name, kind) for name, kind in self.columns}
        given_columns = [given.get(column.name.casefold(), ("", None)) for column in columns]
        wanted = [(column.data_type, carrier(column.data_type)) for column in columns]
        if all(kind in kinds for (_, kind), kinds in zip(given_columns, wanted, strict=True)):
            frame = self.data.select(*(_quoted(name) for name, _ in given_columns))
            return replace(self, data=frame.toDF(*(column.name for column in columns)), declared=None)
        rows = op.TableName(None, None, "rows")
        insert = op.Insert(rows, columns=None, query=parse_query("SELECT * FROM rows").tree, by_name=True)
        return self._run(plan_insert(insert, columns, _Inputs({"rows": self.columns}, settings)), {"rows": self})

    def write(self, target: Target, *, keeps_ids: bool = False, count: int | None = None) -> Written:
        from ducklake_lab.spark import writer

        assert self.engines is not None  # the caller of a write knows the session's
        check_encrypts(target.options)
        table, ordered = target.table, target.sorted is not None and not keeps_ids
        rows = self._sorted(target.sorted) if target.sorted is not None and ordered else self
        with self._running() as spark:
            frame = rows.frame(spark)
            if keeps_ids:
                names = [_quoted(column.name) for column in table.columns]
                frame = frame.select(*names, frame[ROW_ID].alias(ROW_ID_COLUMN))
            few = count is not None and self.engines.placing.writes_in_one_task(count)
            files = writer.write(
                spark,
                frame.coalesce(1) if few else frame,
                table,
                target.folder,
                options=target.options,
                ordered=ordered,
                compact=keeps_ids and not few,
            )
        return _inlined(target, files) or Written(sum(file.record_count for file in files), files=files)

    def _sorted(self, table: Table) -> OnSpark:
        named = replace(self, data=self.data.toDF(*[column.name for column in table.columns]), declared=None)
        try:
            return named.query(f"FROM rows ORDER BY {', '.join(sort_sql(table.sort))}")
        except UnsupportedFeatureError:
            # row order in a file only affects speed; compaction, in process, sorts the rows
            return self

    def delete(self, target: Target, scan: ScanPlan, count: int) -> tuple[list[int], list[WrittenDeletes]]:
        from ducklake_lab.spark.deletes import write_deletes

        assert self.engines is not None  # as in `write`
        files = {file.data_file.data_file_id: file for file in scan.files}
        folder, options, snapshot = target.folder, target.deletes, target.next_snapshot
        check_encrypts(options)
        inlined_ids: list[int] = []
        with self._running() as spark:
            if scan.inlined is not None:
                ids = self.data.where(self.data[FILE_ID].isNull()).select(ROW_ID).toArrow()
                inlined_ids = ids.column(ROW_ID).to_pylist()
            in_files = self.data.where(self.data[FILE_ID].isNotNull()).select(FILE_ID, POSITION)
            if not self.engines.placing.fetches_positions(count):
                return inlined_ids, write_deletes(spark, in_files, files, folder, options, snapshot)
            positions = in_files.toArrow()
        return inlined_ids, delete_positions(positions, target, scan)


def _inlined(target: Target, files: Sequence[WrittenFile]) -> Written | None:
    """Returns few rows for the catalog, whose number is known only once they are in files; those go."""
    count = sum(file.record_count for file in files)
    if not 0 < count <= target.few or not is_local(target.folder):
        return None
    rows = local_reader.read(plan_written(target.table, files, target.folder))
    if not target.inlines(rows):
        return None
    Storage().discard(target.folder + file.path for file in files)
    return Written(count, rows)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


class _Inputs(Resolver):
    """Resolves the inputs of a query for the planner; no other names are available."""

    def __init__(self, inputs: Mapping[str, Columns], settings: Settings = _UTC) -> None:
        self._inputs = inputs
        self._settings = settings

    def table(self, name: op.TableName, at: op.At | None) -> NamedRows:
        if name.name not in self._inputs:
            raise BindError(f'A query over rows names "{name}", which is none of its inputs.')
        return InputRows(self._inputs[name.name])

    def settings(self) -> Settings:
        return self._settings
