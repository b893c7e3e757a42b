"""Chooses the engine for a statement's rows, from facts of the planning, with a displayed reason.

All code that reads or writes rows asks the session's `Placing`: queries, changes, feeds, diffs, maintenance, exports and
EXPLAIN. Rows to look at are few after pruning and are read in process at once; large work runs on Spark. All limits are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from ducklake_lab.errors import UsageError
from ducklake_lab.model.units import size

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession

Engine = Literal["auto", "spark", "duckdb"]
#: The use of the rows: they are displayed, or written to a lake or a file.
Purpose = Literal["look", "change"]
Where = Literal["catalog", "process", "spark"]

_NAMES: dict[Where, str] = {"catalog": "from the catalog", "process": "in process", "spark": "Spark"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of engines, in bytes of data files left after pruning, or in rows.

    Attributes:
        look: limit for displayed rows.
        change: limit for written rows, which are held in memory.
        fetched: limit for files that are first copied to this machine.
        refused: limit for statements that Spark cannot run, although the user chose Spark.
        eager: most bytes of a query that runs at once in process. A larger one runs on demand, and computes
            only the displayed rows.
        joined: below it, DuckDB's own joins skip unneeded rows. From it on, and on Spark, small sides
            of joins are read first, to skip files of the large ones.
        joined_side: largest side of a join that is read first.
        changed_rows: most possibly changed rows of a diff in process.
        row_ids: most rows of local files whose ids alone a restore compares in process; each takes 32 bytes.
        deletions: most rows of a statement on Spark whose positions are fetched, and written to delete files without a job.
        task_rows: most changed rows on Spark that one task writes, without a shuffle.
        fetched_rows: most changed rows of plain Spark that are fetched, and written in process.
        found: most bytes of changed rows, found by Spark's workers, that are fetched and written in process.
        source_rows: most rows of a source of a change that are fetched first, so that they find the changed rows.
    """

    look: int = 256_000_000
    change: int = 64_000_000
    fetched: int = 64_000_000
    refused: int = 64_000_000
    eager: int = 8_000_000
    joined: int = 32_000_000
    joined_side: int = 4 << 20
    changed_rows: int = 1_000_000
    row_ids: int = 10_000_000
    deletions: int = 100_000
    task_rows: int = 200_000
    fetched_rows: int = 10_000
    found: int = 64_000_000
    source_rows: int = 200_000


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of the planning about the rows that a statement reads.

    Attributes:
        bytes: bytes of data files left after pruning.
        files: the number of these files, out of `files_total`.
        purpose: the use of the rows.
        is_fetched: a file is remote, and so is copied here before DuckDB reads it.
        is_far: a file is neither on this machine nor in an object store.
        on_spark: some rows are in a DataFrame, which only Spark can read.
        refusal: returns the reason why Spark cannot run the statement, or None; called only if it decides.
        rows: number of possibly changed rows, if it decides instead of the bytes.
    """

    bytes: int = 0
    files: int = 0
    files_total: int = 0
    purpose: Purpose = "look"
    is_fetched: bool = False
    is_far: bool = False
    on_spark: bool = False
    refusal: Callable[[], Exception | None] | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The engine for rows, and the reason.

    Attributes:
        reason: a readable reason, e.g. `412 MB, from 256 MB on`; "" if there is none.
    """

    where: Where
    reason: str = ""

    @property
    def is_here(self) -> bool:
        """Returns whether no Spark is needed."""
        return self.where != "spark"

    def __str__(self) -> str:
        return f"{_NAMES[self.where]} · {self.reason}" if self.reason else _NAMES[self.where]


def check_engine(engine: str) -> None:
    """Raises UsageError if a word names no engine."""
    if engine not in get_args(Engine):
        raise UsageError(f'"{engine}" is not an engine; use "auto", "spark" or "duckdb".')


def place(facts: Facts, limits: Limits, asked: Engine) -> Placement:
    """Chooses the engine of a statement.

    Args:
        asked: the choice of the session or the statement: `auto` decides by size, other values are fixed.
    """
    read = _read(facts)
    if facts.on_spark:
        return Placement("spark", "a DataFrame is read") if asked != "duckdb" else Placement("process", read)
    if not facts.files and not facts.rows:
        return Placement("process", read)
    if asked == "duckdb":
        return Placement("process", read)
    over = "files of a remote file system" if facts.is_far else _over(facts, limits)
    if asked == "spark":
        if facts.refusal is not None and facts.bytes <= limits.refused and facts.refusal() is not None:
            return Placement("process", f"{read}, not supported on Spark")
        return Placement("spark", "asked for")
    return Placement("spark", over) if over else Placement("process", read)


@dataclass(slots=True)
class Placing:
    """Answers a session's questions about engines, from its limits and the engine that was asked for.

    Attributes:
        asked: the engine that the session or the running statement asks for.
    """

    asked: Engine = "auto"
    limits: Limits = field(default_factory=Limits)

    @contextmanager
    def asking(self, engine: Engine | None) -> Iterator[None]:
        """Asks for an engine in the block; None keeps the session's choice."""
        before = self.asked
        self.asked = engine or before
        try:
            yield
        finally:
            self.asked = before

    def place(self, facts: Facts) -> Placement:
        """Chooses the engine of a statement."""
        return place(facts, self.limits, self.asked)

    def expects_spark(self, size: int) -> bool:
        """Returns whether queries of a lake of that many bytes may need Spark, whose start takes seconds."""
        return self.asked != "duckdb" and size > self.limits.look

    def runs_on_demand(self, size: int) -> bool:
        """Returns whether a query in process waits until its rows are needed, and computes only those."""
        return size > self.limits.eager

    def reads_sides_first(self, size: int, placed: Callable[[], Placement]) -> bool:
        """Returns whether small sides of a join are read first: DuckDB's own joins skip enough of few bytes."""
        return size >= self.limits.joined or not placed().is_here

    def is_small_side(self, size: int) -> bool:
        """Returns whether a side of a join is read first, to skip files of the other side."""
        return size <= self.limits.joined_side

    def compares_row_ids_here(self, facts: Facts, rows: int) -> bool:
        """Returns whether row ids are compared in process; of local files, no other column is read."""
        return self.place(facts).is_here or (not facts.is_fetched and rows <= self.limits.row_ids)

    def looks_up_here(self, facts: Facts) -> bool:
        """Returns whether a few keys are looked up in process: DuckDB streams the keys of local files, whatever their size."""
        return self.place(facts).is_here or (self.asked != "spark" and not facts.is_fetched)

    def fetches_positions(self, count: int) -> bool:
        """Returns whether positions of deletions are fetched from Spark: a job takes longer than their transfer."""
        return count <= self.limits.deletions

    def fetches_changed_rows(self, count: int) -> bool:
        """Returns whether changed rows are fetched from Spark: a job takes longer than writing them in process."""
        return count <= self.limits.fetched_rows

    def writes_in_one_task(self, count: int) -> bool:
        """Returns whether one task writes changed rows on Spark, because a shuffle takes longer."""
        return count <= self.limits.task_rows


class Engines(Protocol):
    """Engines of a session.

    Attributes:
        placing: chooses between them.
    """

    placing: Placing

    def running(self) -> AbstractContextManager[SparkSession]:
        """Runs Spark jobs in the block; starts Spark if necessary."""


def _over(facts: Facts, limits: Limits) -> str:
    """Returns the limit that the work exceeds, as text; "" if none."""
    if facts.rows is not None:
        return f"{facts.rows:,} rows, from {limits.changed_rows:,} on" if facts.rows > limits.changed_rows else ""
    limit = limits.look if facts.purpose == "look" else limits.change
    if facts.is_fetched:
        limit = min(limit, limits.fetched)
    return f"{size(facts.bytes)}, from {size(limit)} on" if facts.bytes > limit else ""


def _read(facts: Facts) -> str:
    if not facts.files_total:
        return ""
    noun = "file" if facts.files_total == 1 else "files"
    return f"{facts.files:,} of {facts.files_total:,} {noun}, {size(facts.bytes)}"
