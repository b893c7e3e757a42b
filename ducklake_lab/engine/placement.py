"""Where a statement's rows are worked: one decision, from facts that planning has found, with a reason to show.

Everything that reads or writes rows asks `place`: queries, changes, feeds, diffs, maintenance, exports and EXPLAIN. What a
person looks at is small after pruning and is answered in process at once; what is large runs on Spark.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from ducklake_lab.errors import UsageError
from ducklake_lab.model.units import size

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession

Engine = Literal["auto", "spark", "duckdb"]
#: What happens to the rows: they are looked at, or they are written to a lake or a file.
Purpose = Literal["look", "change"]
Where = Literal["catalog", "process", "spark"]

_NAMES: dict[Where, str] = {"catalog": "from the catalog", "process": "in process", "spark": "Spark"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Up to where rows are worked in process, in bytes of data files left after pruning.

    Attributes:
        look: for what is looked at.
        change: for what is written: its rows are held in memory.
        fetched: where files are copied to this machine first.
        refused: for what Spark cannot run, although Spark was asked for.
        eager: up to which a query in process runs at once; a larger one runs when its rows are asked for, and computes
            no more of them than are shown.
        joined: below so many bytes DuckDB's own joins skip what they do not need; from there on, and on Spark, small sides
            of joins are read ahead, to skip files of the large ones.
        changed_rows: rows of a diff that may have changed, up to which it is computed in process.
    """

    look: int = 256_000_000
    change: int = 64_000_000
    fetched: int = 64_000_000
    refused: int = 64_000_000
    eager: int = 8_000_000
    joined: int = 32_000_000
    changed_rows: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What planning knows of the rows that a statement reads.

    Attributes:
        bytes: of data files left after pruning.
        files: how many these are, of `files_total`.
        purpose: what happens to the rows.
        is_fetched: a file is remote, so that it is copied here before DuckDB reads it.
        is_far: a file is neither on this machine nor in an object store.
        on_spark: rows that only Spark has are among them: a DataFrame.
        refusal: why Spark cannot run the statement; None where it can.
        rows: rows that may have changed, where that counts rather than bytes.
    """

    bytes: int = 0
    files: int = 0
    files_total: int = 0
    purpose: Purpose = "look"
    is_fetched: bool = False
    is_far: bool = False
    on_spark: bool = False
    refusal: Exception | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where rows are worked, and why.

    Attributes:
        reason: for a person, e.g. `412 MB, from 256 MB on`; "" where there is nothing to say.
    """

    where: Where
    reason: str = ""

    @property
    def is_here(self) -> bool:
        """Whether Spark takes no part."""
        return self.where != "spark"

    def __str__(self) -> str:
        return f"{_NAMES[self.where]} · {self.reason}" if self.reason else _NAMES[self.where]


class Engines(Protocol):
    """What says where rows are worked, and lends Spark where it is Spark."""

    def place(self, facts: Facts) -> Placement:
        """Where rows are worked."""

    def running(self) -> AbstractContextManager[SparkSession]:
        """Around jobs of Spark, which is started if need be."""


def check_engine(engine: str) -> None:
    """Raises UsageError where a word names no engine."""
    if engine not in get_args(Engine):
        raise UsageError(f'"{engine}" is not an engine; use "auto", "spark" or "duckdb".')


def place(facts: Facts, limits: Limits, asked: Engine) -> Placement:
    """The placement of a statement.

    Args:
        asked: what the session, or the statement itself, says: `auto` decides by size, the others do not.
    """
    found = _read(facts)
    if facts.on_spark:
        return Placement("spark", "a DataFrame is read") if asked != "duckdb" else Placement("process", found)
    if not facts.files and not facts.rows:
        return Placement("process", found)
    if asked == "duckdb":
        return Placement("process", found)
    over = "files of a remote file system" if facts.is_far else _over(facts, limits)
    if asked == "spark":
        if facts.refusal is not None and facts.bytes <= limits.refused:
            return Placement("process", f"{found}, not supported on Spark")
        return Placement("spark", "asked for")
    return Placement("spark", over) if over else Placement("process", found)


def _over(facts: Facts, limits: Limits) -> str:
    """What is too large to be worked in process; "" where nothing is."""
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
