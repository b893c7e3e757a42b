"""Turns the sources of a query plan into rows behind names, for Spark or for DuckDB in process."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ducklake_lab.errors import SnapshotNotFoundError, UsageError
from ducklake_lab.local import engine as local_engine
from ducklake_lab.local import reader as local_reader
from ducklake_lab.model.entries import Table
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.types import DataType, from_arrow
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.session.engine import SparkEngine
from ducklake_lab.session.feed import feed_frame
from ducklake_lab.session.functions import FeedCall, Functions
from ducklake_lab.session.lakes import At, Lakes, Place
from ducklake_lab.session.result import Result, RunInfo
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.plan import QueryPlan, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows handed in from outside under a name: a Spark DataFrame or an Arrow table."""

    columns: tuple[tuple[str, DataType], ...]
    rows: Any

    @property
    def is_arrow(self) -> bool:
        return isinstance(self.rows, pa.Table)


class Sources:
    """Resolves names for the SQL planner, and makes the planned sources readable.

    Attributes:
        frames: rows handed in, by the name under which SQL sees them.
    """

    def __init__(self, lakes: Lakes, engine: SparkEngine) -> None:
        self._lakes = lakes
        self._engine = engine
        self.functions = Functions(lakes)
        self._counter = itertools.count(1)
        self.frames: dict[str, Frame] = {}

    # What the planner asks

    def table(self, name: op.TableName, at: op.At | None) -> Sequence[tuple[str, DataType]]:
        """The columns of a table, or of rows handed in."""
        frame = self._frame(name)
        if frame is not None:
            return frame.columns
        return [(column.name, column.data_type) for column in self.place(name, at).table().columns]

    def function(
        self, name: op.TableName, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[tuple[str, DataType]] | None:
        """The columns of a table function of a lake; None if it is none."""
        return self.functions.columns(
            name.catalog, name.schema, name.name, [self.value(a) for a in args], self._values(kwargs)
        )

    # Names and constants

    def place(self, name: op.TableName, at: op.At | None = None) -> Place:
        return self._lakes.place(name.catalog, name.schema, name.name, self.moment(at))

    def moment(self, at: op.At | None) -> At:
        """The snapshot id or time of an AT clause."""
        if at is None:
            return None
        if at.version_sql is not None:
            version = self.value(op.SqlConstant(f"CAST({at.version_sql} AS BIGINT)"))
            if not isinstance(version, int):
                raise SnapshotNotFoundError("AT (VERSION => …) needs a snapshot id, not NULL.")
            return version
        moment = self.value(op.SqlConstant(f"CAST({at.timestamp_sql} AS TIMESTAMP WITH TIME ZONE)"))
        if not isinstance(moment, datetime):
            raise SnapshotNotFoundError("AT (TIMESTAMP => …) needs a point in time, not NULL.")
        return moment

    def value(self, argument: object) -> Any:
        """A Python value of an argument, which may be a constant expression."""
        if not isinstance(argument, op.SqlConstant):
            return argument
        return local_engine.evaluate(f"SELECT {argument.sql} AS v", {}).column("v")[0].as_py()

    def _values(self, kwargs: Mapping[str, object]) -> dict[str, Any]:
        return {name: self.value(argument) for name, argument in kwargs.items()}

    def _frame(self, name: op.TableName) -> Frame | None:
        return self.frames.get(name.name) if name.catalog is None and name.schema is None else None

    # Rows

    def scan(self, place: Place, table: Table, predicate: Predicate | None = None) -> ScanPlan:
        """Plans to read a table, the open transaction's changes to it included when it is not read at a snapshot."""
        transaction = self._lakes.transaction
        own = transaction if transaction is not None and place.state is transaction.state else None
        with place.lake.connect() as connection:
            return plan_scan(
                place.lake,
                connection,
                place.state,
                table,
                predicate=predicate,
                staged=own.peek(table) if own is not None else None,
                committed=own is None or own.is_committed(table),
            )

    def run(self, plan: QueryPlan, engine: str = "spark") -> Result:
        """The result of a query: in process where it reads no data file, else lazily by the engine."""
        info = RunInfo()
        loaded = {source.view: self.load(source, info) for source in plan.sources}
        if engine == "duckdb" or all(map(in_memory, loaded.values())):
            tables = {view: self.to_arrow(rows) for view, rows in loaded.items()}
            return Result(arrow=local_engine.evaluate(plan.duckdb_sql, tables), info=info, engine=self._engine)
        self.create_views(loaded)
        return Result(frame=self.spark_sql(plan.spark_sql), info=info, engine=self._engine)

    def spark_sql(self, text: str) -> DataFrame:
        """A lazy DataFrame of Spark SQL, checked."""
        with self._engine.running() as spark:
            frame = spark.sql(text)
            frame.schema  # noqa: B018 - on Connect nothing is checked before this
            return frame

    def create_views(self, loaded: Mapping[str, Any]) -> None:
        """Puts loaded sources behind their names in Spark."""
        with self._engine.running():
            for view, rows in loaded.items():
                self.frame_of(rows).createOrReplaceTempView(view)

    def new_view_name(self) -> str:
        return f"ducklake_rows_{next(self._counter)}"

    def register(self, rows: Any) -> str:
        """Makes an Arrow table or a Spark DataFrame visible to SQL under a new name."""
        name = self.new_view_name()
        if isinstance(rows, pa.Table):
            columns = tuple((field.name, from_arrow(field.type)) for field in rows.schema)
        else:
            from ducklake_lab.spark.types import from_spark

            columns = tuple((field.name, from_spark(field.dataType)) for field in rows.schema.fields)
        folded = [column.casefold() for column, _ in columns]
        if len(set(folded)) < len(folded):
            twice = next(column for column in folded if folded.count(column) > 1)
            raise UsageError(f'The rows have two columns named "{twice}"; rename one of them.')
        self.frames[name] = Frame(columns, rows)
        return name

    def load(self, source: Source, info: RunInfo) -> Any:
        """An Arrow table, a Spark DataFrame, or a ScanPlan with whether it needs virtual columns."""
        if source.kind == "function":
            name = source.name
            args = [self.value(a) for a in source.args]
            found = self.functions.evaluate(name.catalog, name.schema, name.name, args, self._values(source.kwargs))
            if not isinstance(found, FeedCall):
                return found
            info.snapshot_id = self._lakes.state(found.lake, found.end).snapshot.snapshot_id
            return feed_frame(self._lakes, found, self._engine())
        frame = self._frame(source.name)
        if frame is not None:
            return frame.rows
        place = self.place(source.name, source.at)
        plan = self.scan(place, place.table(), source.predicate)
        info.snapshot_id = place.state.snapshot.snapshot_id
        info.files_read += len(plan.files)
        info.files_total += plan.files_total
        info.bytes_read += plan.bytes_read
        info.bytes_total += plan.bytes_total
        return Scan(plan, source.virtual)

    def frame_of(self, rows: Any) -> DataFrame:
        """A loaded source as a Spark DataFrame."""
        from ducklake_lab.spark import reader
        from ducklake_lab.spark.frames import from_arrow_table

        if isinstance(rows, Scan):
            return reader.read(self._engine(), rows.plan, virtual=rows.virtual)
        if isinstance(rows, pa.Table):
            return from_arrow_table(self._engine(), rows)
        frame: DataFrame = rows
        return frame

    def to_arrow(self, rows: Any) -> pa.Table:
        """A loaded source as an Arrow table."""
        if isinstance(rows, Scan):
            return local_reader.read(rows.plan, virtual=rows.virtual)
        return rows if isinstance(rows, pa.Table) else rows.toArrow()


@dataclass(frozen=True, slots=True)
class Scan:
    """A planned read of a lake table, not begun yet."""

    plan: ScanPlan
    virtual: bool


def in_memory(rows: Any) -> bool:
    """Whether a loaded source is all here: metadata, or a table whose rows are all inlined."""
    return isinstance(rows, pa.Table) or (isinstance(rows, Scan) and not rows.plan.files)
