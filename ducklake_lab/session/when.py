"""Snapshots at which the answer of a query changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.diff.answers import AnswerDiff, in_one_column, is_same
from ducklake_lab.duckdb.handing import python_rows, texts_to_show
from ducklake_lab.engine.changes import snapshots_with
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.in_process import engine
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import (
    BindError,
    EntryNotFoundError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
    UsageError,
)
from ducklake_lab.hooks import hook
from ducklake_lab.model.entries import SnapshotInfo, Table
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.types import DataType, from_field
from ducklake_lab.scan.changed_snapshots import changing_snapshots, next_known, rewriting_and_changing
from ducklake_lab.session.answers import check_reads, only_query
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.rows.join_keys import condition_sql, paths_of
from ducklake_lab.session.rows.matching_changes import changes_of
from ducklake_lab.session.rows.named_rows import LakeTable
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.spark.stability import differs_by_run

#: Rows of an answer at most.
MOST_ROWS = 10_000
#: Snapshots that are asked without a look at the rows that they changed.
_FEW = 4
#: Errors of a query whose tables or columns a snapshot lacks.
_ABSENT = (EntryNotFoundError, BindError)


class Read(NamedTuple):
    """A table that the query reads as of the snapshot, with a predicate on its relevant rows."""

    table: Table
    predicate: Predicate | None


@dataclass(frozen=True, slots=True)
class Reading:
    """Tables and meaning of a query, while the schema of the lake stays as it is.

    Attributes:
        meaning: equal where the same rows give the same answer.
        reads: tables of the lake.
        reads_more: it reads what no table's rows prove unchanged, such as snapshots or file names.
    """

    meaning: str
    reads: tuple[Read, ...] = ()
    reads_more: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Snapshots in a row at which a query has one reading; None where it cannot be planned."""

    reading: Reading | None
    snapshots: Sequence[SnapshotInfo]


@dataclass(frozen=True, slots=True)
class Line:
    """The answer since a snapshot; None where a table or column of the query is not there."""

    snapshot: SnapshotInfo
    answer: pa.Table | None


class AnswerLine(NamedTuple):
    """A line of the changes of an answer; the answer is a Python value, and None for NULL."""

    snapshot_id: int
    time: datetime
    author: str | None
    message: str | None
    answer: object


class AnswerChanges(Result):
    """The snapshots at which the answer of a query changed, one per row; notebooks draw them.

    Attributes:
        query: the query.
        last: the last snapshot that was looked at.
        compare: returns the diff of the answers at two snapshots.
    """

    query = ""
    last = 0
    compare: Callable[[int, int], AnswerDiff]

    @cached_property
    def lines(self) -> Sequence[AnswerLine]:
        """The rows, with answers other than numbers, texts and bytes as DuckDB's texts."""
        rows = self.carried()
        *told, answers = texts_to_show(rows, self.time_zone)
        moments = [row[1] for row in python_rows(rows.select([0, 1]), self.time_zone)]
        return [
            AnswerLine(int(str(one[0])), moment, *one[2:]) for moment, *one in zip(moments, *told, answers, strict=True)
        ]

    @cached_property
    def numbers(self) -> Sequence[float | None] | None:
        """The answers as numbers to draw, rounded; None where they are no numbers."""
        answers = self.carried().select(["answer"])
        if not from_field(answers.schema.field(0)).is_numeric:
            return None
        answer_numbers: list[float | None] = (
            engine.evaluate("SELECT CAST(answer AS DOUBLE) AS n FROM t", {"t": answers}).column(0).to_pylist()
        )
        return answer_numbers

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return hook("when.live")(self)

    def _repr_html_(self) -> str:
        html: str = hook("when.html")(self)
        return html


class AnswerHistory:
    """The answers of a query at the snapshots of the current lake. Asks only where the answer may have changed.

    Args:
        run: runs a text, as `Session.sql` does.
    """

    def __init__(
        self,
        lakes: Lakes,
        sources: Sources,
        engine: SparkEngine,
        run: Callable[..., Result],
        query: str,
        params: Mapping[str, object] | None,
    ) -> None:
        self._lakes, self._sources, self._engine, self._run = lakes, sources, engine, run
        self._query, self._params = query, params
        self._lake: Lake = lakes.get()
        only_query(query, params)
        self._last = 0
        self.asked = 0

    def result(self, start: At, end: At, *, monotonic: bool) -> AnswerChanges:
        """Returns a line per change of the answer; see `Session.when`."""
        lines = self.lines(start, end, monotonic=monotonic)
        answers, field = in_one_column([line.answer for line in lines])
        infos = [line.snapshot for line in lines]
        text, moment = DataType("varchar").field, DataType("timestamptz").field
        columns: list[tuple[pa.Field, object]] = [
            (DataType("int64").field("snapshot_id"), [info.snapshot_id for info in infos]),
            (moment("time"), [info.snapshot_time for info in infos]),
            (text("author"), [info.author for info in infos]),
            (text("message"), [info.commit_message for info in infos]),
        ]
        arrays = [pa.array(values, shape.type) for shape, values in columns]
        schema = pa.schema([*(shape for shape, _ in columns), field])
        changes = AnswerChanges(InMemory(pa.table([*arrays, answers], schema=schema)), engine=self._engine)
        changes.query, changes.last = self._query, self._last
        return changes

    def lines(self, start: At, end: At, *, monotonic: bool = False) -> list[Line]:
        """Returns the answer at the start, and at each snapshot up to the end that changed it, oldest first."""
        lines: list[Line] = []
        for span in self._spans(start, end):
            for line in self._of_span(span, monotonic=monotonic):
                if not lines or not _is_same(lines[-1].answer, line.answer):
                    lines.append(line)
        if all(line.answer is None for line in lines):
            # says what the newest of them lacks
            self._run(self._query, self._params, at=self._last)
        # a query may be younger than the lake
        return lines[1:] if start is None and len(lines) > 1 and lines[0].answer is None else lines

    # Snapshots and readings

    def _spans(self, start: At, end: At) -> Iterator[Span]:
        infos = self._snapshots(start, end)
        reading: Reading | None = None
        since = 0
        for place, info in enumerate(infos):
            if place and info.schema_version == infos[place - 1].schema_version:
                continue
            current = self._reading(info.snapshot_id)
            if place and current != reading:
                yield Span(reading, infos[since:place])
                since = place
            reading = current
        yield Span(reading, infos[since:])

    def _snapshots(self, start: At, end: At) -> list[SnapshotInfo]:
        lake = self._lake
        self._last = last = self._lakes.state(lake, end).snapshot.snapshot_id
        first = 0 if start is None else self._lakes.state(lake, start).snapshot.snapshot_id
        if first > last:
            raise SnapshotNotFoundError(f"The first snapshot, {first}, is after the last, {last}; swap them.")
        with lake.connect() as connection:
            infos = read_history(connection, between=(first, last))
        return [replace(info, snapshot_time=lake.local(info.snapshot_time)) for info in infos]

    def _reading(self, snapshot_id: int) -> Reading | None:
        """Plans the query at a snapshot.

        Raises:
            UnsupportedFeatureError: its answer differs by run.
        """
        try:
            with self._lakes.statement(snapshot_id):
                plan = self._sources.plan(only_query(self._query, self._params))
        except _ABSENT:
            return None
        if differs_by_run(plan.own_sql):
            raise UnsupportedFeatureError(
                "The answer of this query differs by run, as that of random() or now() does; ask one that depends on the "
                "lake alone."
            )
        check_reads(self._lake, {rows.lake.alias for s in plan.sources if isinstance(rows := s.rows, LakeTable)})
        reads, more = [], False
        for source in plan.sources:
            rows = source.rows
            if source.kind == "local" or (isinstance(rows, LakeTable) and rows.lake is not self._lake):
                continue
            if not isinstance(rows, LakeTable) or source.located:
                more = True
            elif rows.at is None:
                reads.append(Read(rows.table, source.predicate))
        return Reading(_meaning(plan), tuple(reads), more)

    # Snapshots to ask

    def _of_span(self, span: Span, *, monotonic: bool) -> Iterator[Line]:
        """Yields answers at snapshots of a span, among them all that differ from the one before."""
        first, *later = span.snapshots
        if span.reading is None:
            yield Line(first, None)
            return
        chosen = self._changing(span.reading, first.snapshot_id, later, exactly=not monotonic)
        asked = [first, *(info for info in later if info.snapshot_id in chosen)]
        if monotonic:
            yield from self._bisected(asked)
            return
        for info in asked:
            yield self._ask(info)

    def _changing(self, reading: Reading, first: int, later: Sequence[SnapshotInfo], *, exactly: bool) -> set[int]:
        """Returns the snapshots after the first one of a span that may have changed the answer."""
        ids = [info.snapshot_id for info in later]
        if reading.reads_more or not later:
            return set(ids)
        changing: set[int] = set()
        for read in dict.fromkeys(reading.reads):
            if len(changing) == len(ids):
                break
            changing |= self._changing_rows(read, first, ids, exactly=exactly)
            changed = {info.snapshot_id: info.changes_made for info in later}
            changing |= rewriting_and_changing(read.table.table_id, changed)
        return changing

    def _changing_rows(self, read: Read, first: int, ids: Sequence[int], *, exactly: bool) -> set[int]:
        """Returns the snapshots that changed rows for which a predicate may be true."""
        lake, table = self._lake, read.table
        with self._lakes.statement(), lake.connect() as connection:
            state = lake.state(connection, lake.snapshot(connection, ids[-1]))
            plan = changes_of(lake, connection, state, table, first, read.predicate)
        changing = changing_snapshots(plan, ids)
        if read.predicate is None or len(changing) <= _FEW or not exactly:
            return changing
        if not self._engine.placing.place(facts_of(plan.files)).is_here:
            return changing
        wanted = {path[0].casefold() for path in paths_of(read.predicate)}
        columns = [column for column in plan.inserted.columns if column.name.casefold() in wanted]
        names = {column.name.casefold(): f"c{i}" for i, column in enumerate(columns)}
        if len(columns) < len(wanted):
            return changing
        return changing & next_known(snapshots_with(plan, columns, condition_sql(read.predicate, names)), ids)

    # Answers

    def _bisected(self, infos: Sequence[SnapshotInfo]) -> Iterator[Line]:
        """Yields answers, where equal answers at two snapshots mean that none between them differs."""
        low = self._ask(infos[0])
        yield low
        if len(infos) > 1:
            yield from self._between(low, self._ask(infos[-1]), infos[1:-1])

    def _between(self, low: Line, high: Line, infos: Sequence[SnapshotInfo]) -> Iterator[Line]:
        """Yields answers after `low`, up to `high`."""
        if _is_same(low.answer, high.answer):
            return
        if not infos:
            yield high
            return
        half = len(infos) // 2
        middle = self._ask(infos[half])
        yield from self._between(low, middle, infos[:half])
        yield from self._between(middle, high, infos[half + 1 :])

    def _ask(self, info: SnapshotInfo) -> Line:
        self.asked += 1
        try:
            result = self._run(self._query, self._params, at=info.snapshot_id)
            rows = result.head(MOST_ROWS + 1)
        except _ABSENT:
            return Line(info, None)
        if rows.num_rows > MOST_ROWS:
            raise UsageError(
                f"The answer at snapshot {info.snapshot_id} has more than {MOST_ROWS:,} rows; aggregate them, or compare "
                "two snapshots."
            )
        return Line(info, rows)


def _is_same(before: pa.Table | None, after: pa.Table | None) -> bool:
    if before is None or after is None:
        return before is after
    return is_same(before, after)


def _meaning(plan: QueryPlan) -> str:
    """Returns a plan's text and sources without the random parts of their names."""
    text = plan.own_sql
    for number, source in enumerate(plan.sources):
        text = text.replace(source.view, f"source_{number}")
    names = dict.fromkeys(re.findall(r"ducklake_(?:named|macro)_\w+", text))
    for number, name in enumerate(names):
        text = text.replace(name, f"named_{number}")
    return text
