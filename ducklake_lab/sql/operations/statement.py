"""A statement of a text, of any kind."""

from __future__ import annotations

from dataclasses import dataclass

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.sql.operations.clauses import Query
from ducklake_lab.sql.operations.commands import Command, Describe, Listing, Use
from ducklake_lab.sql.operations.entries import EntryStatement
from ducklake_lab.sql.operations.expectations import Check
from ducklake_lab.sql.operations.live import ExplainRefresh, LiveStatement
from ducklake_lab.sql.operations.rows import RowStatement


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a statement that is not itself a DuckLake form."""

    operation: Operation
    analyze: bool = False


@dataclass(frozen=True, slots=True)
class Other:
    """A statement without an operation; the session's own database may run it.

    Attributes:
        words: its first words in upper case, which name its subject.
        refusal: the error if the statement concerns a lake.
    """

    words: tuple[str, ...]
    refusal: DuckLakeError


Operation = Query | EntryStatement | RowStatement | LiveStatement | Command | Explain | Other


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a text.

    Attributes:
        text: the statement without its semicolon.
        line: 1-based line of its first token.
        sql: the text with parameter values.
    """

    operation: Operation
    text: str
    line: int
    sql: str = ""

    @property
    def only_reads(self) -> bool:
        """Whether it changes neither a lake nor a database; a query may call a function that does."""
        return isinstance(self.operation, Query | Explain | ExplainRefresh | Describe | Listing | Use | Check)
