"""The plan of a statement: what to read, and the SQL over it for Spark and for DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.operations import At, TableName


class Resolver(Protocol):
    """What the planner has to know of the attached lakes."""

    def table(self, name: TableName, at: At | None) -> Sequence[tuple[str, DataType]]:
        """The columns of a table.

        Raises:
            EntryNotFoundError: there is no such table, schema or lake.
        """

    def function(
        self, name: TableName, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[tuple[str, DataType]] | None:
        """The columns of a table function of a lake; None if it is none."""


@dataclass(frozen=True, slots=True)
class Source:
    """Rows to be put behind the name `view` before the plan's SQL runs.

    Attributes:
        args: constant arguments of a function, Python values or SqlConstant.
        predicate: implied by the query; rows for which it is not true may be skipped.
        virtual: the view must end with the four virtual columns.
    """

    view: str
    kind: Literal["table", "function"]
    name: TableName
    at: At | None = None
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    predicate: Predicate | None = None
    virtual: bool = False


@dataclass(eq=False, slots=True)
class SourceDraft:
    """A Source while its query is still being read."""

    view: str
    kind: Literal["table", "function"]
    name: TableName
    at: At | None = None
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    predicate: Predicate | None = None
    virtual: bool = False

    def finish(self) -> Source:
        return Source(self.view, self.kind, self.name, self.at, self.args, self.kwargs, self.predicate, self.virtual)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """How to compute a query.

    Attributes:
        sources: in the order they are read in the text.
        spark_sql: "" where nothing but table functions and constants is read and Spark has no
            words for it; then `duckdb_sql` is to be run.
        duckdb_sql: the same query for DuckDB.
        columns: the output names as DuckDB gives them; None where they are not known before running.
    """

    sources: tuple[Source, ...]
    spark_sql: str
    duckdb_sql: str
    columns: tuple[str, ...] | None = None

    @property
    def reads_tables(self) -> bool:
        """Whether any lake table is read; if not, DuckDB computes it in process."""
        return any(source.kind == "table" for source in self.sources)
