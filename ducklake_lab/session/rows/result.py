"""The result of a statement. Its rows are computed once, on demand."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.duckdb.handing import arrow_table, pandas_frame, python_rows
from ducklake_lab.duckdb.zones import in_zone, process_time_zone
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Placement
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.errors import UsageError
from ducklake_lab.expectations.outcomes import Outcome
from ducklake_lab.hooks import hook
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.model.types import from_field
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.session.rows.columns import ViewColumn
from ducklake_lab.session.rows.lives import TableBehind
from ducklake_lab.session.rows.polars_frame import polars_frame
from ducklake_lab.session.rows.read_parts import Parts
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
        reads: the tables of lakes that are read, and the views and macros in between, without duplicates.
        wrote: whether a statement of the text may have changed something.
        pinned: the names of snapshots that lakes were pinned at when they were read, by the entry of `snapshots`.
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
    reads: list[EntryRead] = field(default_factory=list)
    wrote: bool = False
    pinned: dict[tuple[str, int], str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def read(self, lake: Lake, read: EntryRead) -> None:
        """Notes an entry that is read, and its snapshot."""
        self.note(read.title, read.snapshot_id, uncommitted=read.is_uncommitted)
        if lake.pinned is not None and lake.at == read.snapshot_id:
            self.pinned[read.title, read.snapshot_id] = lake.pinned
        if read not in self.reads:
            self.reads.append(read)

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


class Result:
    """Rows of a query, or the number of rows that a statement changed.

    Attributes:
        columns: names, in order.
        types: DuckDB's type names.
        info: facts about the files and snapshots read.
        is_query: whether the rows come from a query.
        limit: rows shown in a notebook; None for the default.
        find_table: finds the table of which each row of this result is one; None for other rows.
        find_parts: returns the parts of tables that the query confines itself to; see `read_parts`.
        text: the query as written; "" for other statements, and for a query run `at` a snapshot.
        grid: display in notebooks: a grid that first looks like a table (`quiet`), a grid with filters and
            profiles (`open`), or a table (`none`); None follows `%config DuckLakeMagics.grid`.
        time_zone: the time zone of TIMESTAMPTZ values, as Python values and texts.
        outcomes: of a check, one for each expectation; see `expectations.outcomes`.

    Args:
        rows: the rows in any place; None if the statement has none.
        types: DuckDB's type names, if lakes lack a type or Spark carries one in another.
        on_spark: returns the same rows as a Spark read of the files, or None; for rows read in process.
    """

    def __init__(
        self,
        rows: Rows | None = None,
        *,
        types: Sequence[str] | None = None,
        info: RunInfo | None = None,
        engine: SparkEngine | None = None,
        is_query: bool = True,
        on_spark: Callable[[], DataFrame | None] | None = None,
    ) -> None:
        self._rows = rows if rows is None or engine is None else rows.run_by(engine)
        self._on_spark = on_spark
        self._engine = engine
        # computed once: all rows, the first rows, and the DataFrame that `spark` hands out
        self._table: pa.Table | None = rows.table if isinstance(rows, InMemory) else None
        self._head: pa.Table | None = None
        self._handed_out: DataFrame | None = None
        self.time_zone = process_time_zone() if engine is None else engine.time_zone()
        self.info = info or RunInfo()
        self.is_query = is_query
        self.limit: int | None = None
        self.text = ""
        self.find_table: Callable[[Result], TableBehind | None] = lambda _: None
        self.find_parts: Callable[[], Parts] = dict
        self.grid: Literal["quiet", "open", "none"] | None = None
        self.outcomes: Sequence[Outcome] = ()
        self.columns: list[str] = list(rows.names) if rows is not None else []
        if rows is not None and types is None:
            types = [kind.sql() for _, kind in rows.columns]
        self.types: list[str] = list(types or ())

    @property
    def reads(self) -> Sequence[EntryRead]:
        """The tables of lakes whose rows a query read, each with its snapshot."""
        return tuple(self.info.reads) if self.is_query else ()

    @property
    def in_process(self) -> bool:
        """Returns whether the rows are in this process, or will be computed in it."""
        return self._table is not None or (self._rows is not None and not self._rows.is_on_spark)

    @property
    def differs_by_run(self) -> bool:
        """Returns whether a second computation may give other values, as with `now()` on Spark."""
        return self._rows is not None and not self.in_process and differs_by_run(self.text)

    def arrow(self) -> pa.Table:
        """Returns all rows as an Arrow table with DuckDB's types, variants as text; computed once."""
        return in_zone(arrow_table(self.carried()), self.time_zone)

    def carried(self) -> pa.Table:
        """Returns all rows in the Arrow forms of their types (see model/types.py), for other parts; computed once."""
        if self._table is None:
            with self._turn():
                if self._table is None:  # another thread may have computed them meanwhile
                    self._table = self._computed()
        return self._table

    def head(self, rows: int) -> pa.Table:
        """Returns at most that many first rows in the form of `carried`; computes no more than needed."""
        first = self._computed_already(rows)
        if first is None:
            with self._turn():
                first = self._computed_already(rows)
                if first is None:  # another thread may have computed them meanwhile
                    first = self._head = self._computed(rows)
                    if first.num_rows < rows:
                        self._table = first
        return in_zone(first.slice(0, rows), self.time_zone)

    def _computed_already(self, rows: int) -> pa.Table | None:
        """Returns the computed rows, if they suffice for that many first rows."""
        head = self._head if self._head is not None and self._head.num_rows >= rows else None
        return self._table if self._table is not None else head

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
            if self._handed_out is None:
                if self._engine is None:
                    raise ValueError("This result holds no rows.")
                self._handed_out = self._engine.handed_out(self._on_spark_now(self._engine))
            return self._handed_out

    def _on_spark_now(self, engine: SparkEngine) -> DataFrame:
        if isinstance(self._rows, OnSpark):
            # new columns: other results may have columns of the same tables, and be joined with this one
            return self._rows.data.toDF(*self._rows.data.columns)
        read = self._on_spark() if self._on_spark is not None else None
        if read is not None:
            return read
        with engine.acting() as spark:
            return InMemory(self.carried()).frame(spark)

    def view(self) -> RowsView:
        """Returns the rows for sorting, filtering and paging.

        At most `MAX_ROWS` rows are computed, or `MAX_SPARK_ROWS` by Spark, when they are needed. Rows from
        `head` are shown before that.

        Raises:
            UsageError: it is not the result of a query, or two of its columns have the same name.
        """
        if not self.text:
            raise UsageError("Only the rows of a query can be viewed; write AT (VERSION => …) in it, not at=….")
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
        head = self._head if self._table is None else None
        # the head does not show whether more rows follow, so its last row is left out
        first = head.slice(0, min(head.num_rows - 1, most)) if head is not None and head.num_rows > 1 else None
        view = RowsView("Result", self.text, f"(\n{self.text}\n)", columns, read, self.time_zone, first=first)
        view.find_behind = lambda: self.find_table(self)
        return view

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
        if self._rows is None:
            return pa.table({})
        started = time.monotonic()
        try:
            rows = self._rows.arrow() if limit is None else self._rows.head(limit)
        finally:
            self.info.seconds += time.monotonic() - started
        return _typed_again(rows, self.types) if self._rows.is_on_spark else rows


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
    return Result(InMemory(pa.table({"Count": pa.array([count], pa.int64())})), info=info, is_query=False)


def nothing(info: RunInfo | None = None) -> Result:
    """Returns the result of a statement without rows."""
    return Result(info=info, is_query=False)
