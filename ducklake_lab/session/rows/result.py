"""The result of a statement. Its rows are computed once, on demand."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.duckdb.handing import arrow_table, pandas_frame, python_rows
from ducklake_lab.duckdb.zones import in_zone, process_time_zone
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Placement
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.errors import UsageError
from ducklake_lab.hooks import hook
from ducklake_lab.model.types import from_field
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.session.rows.columns import ViewColumn
from ducklake_lab.session.rows.polars_frame import polars_frame
from ducklake_lab.session.rows.view import MAX_ROWS, MAX_SPARK_ROWS, RowsView
from ducklake_lab.sql.spark.stability import differs_by_run
from ducklake_lab.sql.types import type_or_none

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from ducklake_lab.engine.spark_engine import SparkEngine
    from ducklake_lab.spark.library import DataFrame


@dataclass(slots=True)
class RunInfo:
    """The facts below a displayed result.

    Attributes:
        snapshots: (lake, snapshot id) of each snapshot read or made, without duplicates.
        files_read: data files left after pruning, of `files_total`; the same for bytes.
        seconds: elapsed time so far.
        placement: the engine for the rows; None without rows.
        counted: the word for the counted rows of a statement, e.g. `written`.
        uncommitted: the `snapshots` that were read with, or made by, changes of the open transaction.
        remarks: further facts about the rows.
    """

    snapshots: list[tuple[str, int]] = field(default_factory=list)
    files_read: int = 0
    files_total: int = 0
    bytes_read: int = 0
    bytes_total: int = 0
    seconds: float = 0.0
    placement: Placement | None = None
    counted: str = "changed"
    uncommitted: set[tuple[str, int]] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def note(self, lake: str, snapshot_id: int, *, uncommitted: bool = False) -> None:
        """Notes a snapshot that is read or made, and whether it includes uncommitted changes."""
        if (lake, snapshot_id) not in self.snapshots:
            self.snapshots.append((lake, snapshot_id))
        if uncommitted:
            self.uncommitted.add((lake, snapshot_id))

    def add(self, plan: ScanPlan) -> None:
        """Adds the files of a plan to the counts."""
        self._count(plan, 1)

    def forget(self, plan: ScanPlan) -> None:
        """Removes the files of a plan from the counts."""
        self._count(plan, -1)

    def _count(self, plan: ScanPlan, sign: int) -> None:
        self.files_read += sign * len(plan.files)
        self.files_total += sign * plan.files_total
        self.bytes_read += sign * plan.bytes_read
        self.bytes_total += sign * plan.bytes_total


@dataclass(frozen=True, slots=True)
class Waiting:
    """A query that runs in process on the first request for its rows.

    Attributes:
        columns: names and DuckDB's type names.
        rows: runs the query; returns that many first rows, or all for None.
    """

    columns: Sequence[tuple[str, str]]
    rows: Callable[[int | None], pa.Table]


class Result:
    """Rows of a query, or the number of rows that a statement changed.

    Attributes:
        columns: names, in order.
        types: DuckDB's type names.
        info: facts about the files and snapshots read.
        is_query: whether the rows come from a query.
        limit: rows shown in a notebook; None for the default.
        text: the query as written; "" for other statements, and for a query run `at` a snapshot.
        grid: display in notebooks: a grid that first looks like a table (`quiet`), a grid with filters and
            profiles (`open`), or a table (`none`); None follows `%config DuckLakeMagics.grid`.
        time_zone: the time zone of TIMESTAMPTZ values, as Python values and texts.

    Args:
        on_spark: returns the same rows as a Spark read of the files, or None; for rows read in process.
        waiting: computes the rows.
    """

    def __init__(
        self,
        *,
        arrow: pa.Table | None = None,
        frame: DataFrame | None = None,
        types: Sequence[str] | None = None,
        info: RunInfo | None = None,
        engine: SparkEngine | None = None,
        is_query: bool = True,
        on_spark: Callable[[], DataFrame | None] | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        self._on_spark = on_spark
        self._waiting = waiting
        self._arrow = arrow
        self._frame = frame
        self._given: DataFrame | None = None
        self._engine = engine
        self.time_zone = process_time_zone() if engine is None else engine.time_zone()
        self._head: pa.Table | None = None
        self.info = info or RunInfo()
        self.is_query = is_query
        self.limit: int | None = None
        self.text = ""
        self.grid: Literal["quiet", "open", "none"] | None = None
        if arrow is not None:
            self.columns: list[str] = list(arrow.column_names)
            self.types: list[str] = list(types or (from_field(field).sql() for field in arrow.schema))
        elif frame is not None:
            from ducklake_lab.spark.types import from_spark

            self.columns = list(frame.columns)
            self.types = list(types or (from_spark(field.dataType).sql() for field in frame.schema.fields))
        elif waiting is not None:
            self.columns = [name for name, _ in waiting.columns]
            self.types = [kind for _, kind in waiting.columns]
        else:
            self.columns, self.types = [], []

    @property
    def in_process(self) -> bool:
        """Whether the rows are in this process, or will be computed in it."""
        return self._arrow is not None or self._waiting is not None

    @property
    def differs_by_run(self) -> bool:
        """Whether a second computation may give other values, as with `now()` on Spark."""
        return self._frame is not None and self._arrow is None and differs_by_run(self.text)

    def arrow(self) -> pa.Table:
        """Returns all rows as an Arrow table with DuckDB's types, variants as text; computed once."""
        return in_zone(arrow_table(self.carried()), self.time_zone)

    def carried(self) -> pa.Table:
        """Returns all rows in the Arrow forms of their types (see model/types.py), for other parts; computed once."""
        if self._arrow is None:
            with self._turn():
                if self._arrow is None:  # another thread may have computed them meanwhile
                    self._arrow = self._computed()
        return self._arrow

    def head(self, rows: int) -> pa.Table:
        """Returns at most that many first rows in the form of `carried`; computes no more than needed."""
        found = self._known(rows)
        if found is None:
            with self._turn():
                found = self._known(rows)
                if found is None:  # another thread may have computed them meanwhile
                    found = self._head = self._computed(rows)
                    if found.num_rows < rows:
                        self._arrow = found
        return in_zone(found.slice(0, rows), self.time_zone)

    def _known(self, rows: int) -> pa.Table | None:
        """Returns the computed rows, if they suffice for that many first rows."""
        head = self._head if self._head is not None and self._head.num_rows >= rows else None
        return self._arrow if self._arrow is not None else head

    def rows(self) -> Rows:
        """Returns the rows for other statements; computes nothing on Spark."""
        return InMemory(self.carried()) if self.in_process else OnSpark(self.spark(), engines=self._engine)

    def pandas(self) -> pd.DataFrame:
        """Returns all rows as a pandas DataFrame with DuckDB's types."""
        return pandas_frame(self.carried(), self.time_zone)

    def polars(self) -> pl.DataFrame:
        """Returns all rows as a Polars DataFrame; times with a zone become texts.

        Raises:
            UsageError: Polars is not installed, or has no type for a column.
        """
        return polars_frame(self.carried(), self.time_zone)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns all rows as tuples of DuckDB's Python values."""
        return python_rows(self.carried(), self.time_zone)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Returns the first row, or None."""
        return next(iter(python_rows(self.head(1), self.time_zone)), None)

    def spark(self) -> DataFrame:
        """Returns a lazy Spark DataFrame of the rows, in the user's session; computes nothing."""
        with self._turn():
            if self._given is None:
                if self._engine is None:
                    raise ValueError("This result holds no rows.")
                self._given = self._engine.handed_out(self._on_spark_now(self._engine))
            return self._given

    def _on_spark_now(self, engine: SparkEngine) -> DataFrame:
        if self._frame is not None:
            # new columns: other results may have columns of the same tables, and be joined with this one
            return self._frame.toDF(*self._frame.columns)
        read = self._on_spark() if self._on_spark is not None else None
        if read is not None:
            return read
        from ducklake_lab.spark.frames import from_arrow_table

        with engine.acting() as spark:
            return from_arrow_table(spark, self.carried())

    def view(self) -> RowsView:
        """Returns the rows for sorting, filtering and paging.

        At most `MAX_ROWS` rows are computed, or `MAX_SPARK_ROWS` by Spark, when they are needed. Rows from
        `head` are shown before that.

        Raises:
            UsageError: it is not the result of a query, or two of its columns have the same name.
        """
        if not self.text:
            raise UsageError("Only the rows of a query can be looked through; write AT (VERSION => …) in it, not at=….")
        # names in SQL are case-insensitive
        name, times = Counter(column.casefold() for column in self.columns).most_common(1)[0]
        if times > 1:
            raise UsageError(f'The result has {times} columns "{name}"; name them apart with AS.')
        most = MAX_ROWS if self.in_process else MAX_SPARK_ROWS

        def read() -> tuple[pa.Table, bool]:
            rows = self.head(most + 1)
            return rows.slice(0, most), rows.num_rows > most

        columns = [
            ViewColumn(name, kind, type_or_none(kind)) for name, kind in zip(self.columns, self.types, strict=True)
        ]
        head = self._head if self._arrow is None else None
        # the head does not show whether more rows follow, so its last row is left out
        first = head.slice(0, min(head.num_rows - 1, most)) if head is not None and head.num_rows > 1 else None
        return RowsView("Result", self.text, f"(\n{self.text}\n)", columns, read, self.time_zone, first=first)

    def __len__(self) -> int:
        return int(self.carried().num_rows)

    def __repr__(self) -> str:
        return f"<Result {', '.join(f'{c} {t}' for c, t in zip(self.columns, self.types, strict=True))}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(hook("result.text")(self))

    def _repr_html_(self) -> str:
        html: str = hook("result.html")(self)
        return html

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return hook("result.grid")(self)

    def _turn(self) -> AbstractContextManager[None]:
        """Takes the session's turn, so that only one thread computes."""
        return nullcontext() if self._engine is None else self._engine.turn.taken()

    def _computed(self, limit: int | None = None) -> pa.Table:
        """Returns the first rows, or all rows."""
        started = time.monotonic()
        try:
            if self._waiting is not None:
                return self._waiting.rows(limit).rename_columns(self.columns)
            if self._frame is None:
                return pa.table({})
            assert self._engine is not None  # a caller with a frame also passes its engine
            from ducklake_lab.spark.frames import to_arrow_table

            with self._engine.running():
                rows = to_arrow_table(self._frame if limit is None else self._frame.limit(limit))
        finally:
            self.info.seconds += time.monotonic() - started
        return _typed_again(rows, self.types)


def _typed_again(rows: pa.Table, types: Sequence[str]) -> pa.Table:
    """Returns the columns in the result's types; Spark carries some in other types, see spark/types.py."""
    for index, kind in enumerate(map(type_or_none, types)):
        field = rows.schema.field(index)
        if kind is None:
            continue
        if from_field(field) == kind:
            # for example times, which Spark returns in nanoseconds
            rows = rows.set_column(index, kind.field(field.name), rows.column(index).cast(kind.arrow()))
        else:
            column = cast_columns(
                pa.table({"v": rows.column(index)}, schema=pa.schema([field.with_name("v")])), {"v": kind}
            )
            rows = rows.set_column(index, kind.field(field.name), column.column(0))
    return rows


def count_result(count: int, info: RunInfo) -> Result:
    """Returns the result of a statement that changed rows."""
    return Result(arrow=pa.table({"Count": pa.array([count], pa.int64())}), info=info, is_query=False)


def nothing(info: RunInfo | None = None) -> Result:
    """Returns the result of a statement without rows."""
    return Result(info=info, is_query=False)
