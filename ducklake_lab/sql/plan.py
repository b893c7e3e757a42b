"""The plan of a statement: what to read, and the SQL over it for Spark and for DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

from ducklake_lab.duckdb.evaluation import Evaluation, Settings, printed
from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError
from ducklake_lab.model.entries import MacroImplementation
from ducklake_lab.model.predicates import ColumnPath, Predicate
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.operations import At, Query, TableName

#: Views and macros within views and macros that one statement stands for, at most.
MOST_EXPANSIONS = 1000
#: How the names of sources begin. A random part follows, so that no text has such a name for anything else.
SOURCE_PREFIX = "ducklake_src_"
#: What names of sources begin with that stand in parentheses of a text: an expression with a query is named by it.
NAMED_PREFIX = "ducklake_named_"
_NAMED = re.compile(rf'({NAMED_PREFIX}\w+)( AS (?:"(?:[^"]|"")*"|\w+))?')


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view as a query finds it.

    Attributes:
        columns: names for the first of its columns.
        lake, schema: where it lives, and where the names in its query are looked up first; None for nowhere.
        temporary: it is the session's own, and may read what only this session has.
    """

    name: str
    sql: str
    columns: tuple[str, ...]
    lake: str | None
    schema: str | None
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class StoredMacro:
    """A macro as a query finds it; `lake` and `schema` as for views."""

    name: str
    implementations: tuple[MacroImplementation, ...]
    lake: str
    schema: str


class NamedRows(Protocol):
    """Rows that a name stands for: a table of a lake, or others."""

    @property
    def columns(self) -> Sequence[tuple[str, DataType]]:
        """Names and types."""

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The schema and the lake that may stand before a column's name; what was written for others."""


@dataclass(frozen=True, slots=True)
class InputRows:
    """Named rows that are nothing else."""

    columns: Sequence[tuple[str, DataType]]
    qualifiers: tuple[str, ...] = ()


class Resolver(Protocol):
    """Names of the attached lakes, for the planner.

    Attributes:
        most_expansions: views and macros within others that one statement may stand for.
    """

    most_expansions: int = MOST_EXPANSIONS

    def table(self, name: TableName, at: At | None) -> NamedRows:
        """The rows that a name stands for.

        Raises:
            EntryNotFoundError: there is no such table, schema or lake.
        """

    def function(
        self, name: TableName, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[tuple[str, DataType]] | None:
        """The columns of a table function of a lake; None if it is none."""

    def owns(self, name: TableName) -> bool:
        """Whether a name is one of the session's own database, rather than of a lake."""

    def temporary_view(self, name: TableName) -> StoredView | None:
        """The session's own view of that name, which hides tables of lakes."""
        return None

    def handed_in(self, name: TableName) -> TableName | None:
        """The name of rows that were handed in with the text under a name: they hide tables of lakes."""
        return None

    def replacement(self, name: TableName) -> TableName | None:
        """The name of rows that a program has under a name that no table has."""
        return None

    def hint(self, name: TableName) -> str:
        """What the message of a missing table adds."""
        return ""

    def describe(self, query: str) -> Sequence[tuple[str, DataType | None]] | None:
        """The columns of a query over the session's own database and files; None where it cannot be bound.

        The type is None where lakes have no equal for it.
        """

    def texts(self, query: Query) -> Sequence[str]:
        """The rows of a query of one column of texts, which runs."""
        raise UnsupportedFeatureError("PIVOT without IN (…) is not supported in such a query.")

    def view(self, name: TableName, at: At | None) -> StoredView | None:
        """The view of that name; None where there is none."""

    def macro(self, name: TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        """The macro of that name, which is qualified; None where there is none."""

    def settings(self) -> Settings:
        """The settings that change what a query means, as far as they are not DuckDB's own; the time zone always."""

    def macros(self, place: tuple[str, str] | None) -> Mapping[tuple[str, str], StoredMacro]:
        """The macros that need no qualifier, by kind and folded name.

        Args:
            place: a lake and one of its schemas; None for the current ones.
        """


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A column whose values, in the rows that matter, are all among those of a column of another source.

    Attributes:
        view: of the other source.
        other: the column there.
    """

    column: ColumnPath
    view: str
    other: ColumnPath


@dataclass(eq=False, slots=True)
class Source:
    """Rows to be put behind the name `view` before the plan's SQL runs; binding fills it in.

    Attributes:
        rows: what the resolver found by the name of a table.
        args: constant arguments of a function, Python values or SqlConstant.
        predicate: implied by the query; rows for which it is not true may be skipped.
        virtual: the view must end with the four virtual columns.
        located: and then with the two that say where a row is.
        query: what a local source is, in DuckDB SQL; only Spark needs it behind a view.
        stored: it is named in the text of a view or a macro.
        keys: implied by the query's joins; rows without a match in any one of these may be skipped.
    """

    view: str
    kind: Literal["table", "function", "local"]
    name: TableName
    at: At | None = None
    rows: NamedRows | None = None
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    predicate: Predicate | None = None
    virtual: bool = False
    located: bool = False
    query: str = ""
    stored: bool = False
    keys: tuple[JoinKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Digest:
    """A query over a digest of its one table, with the same result.

    Attributes:
        view: of the table's source; the digest goes by that name.
        sql: the query, in DuckDB SQL.
        columns: those whose extremes are needed.
        counted: whose values are counted.
    """

    view: str
    sql: str
    columns: tuple[str, ...]
    counted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A query for Spark.

    Attributes:
        evaluations: the functions that it calls and DuckDB evaluates.
        duckdb_sql: a query for DuckDB that has its columns without rows too, where that of the plan has not.
    """

    sql: str
    evaluations: tuple[Evaluation, ...] = ()
    duckdb_sql: str | None = None


@dataclass(frozen=True)
class QueryPlan:
    """How to compute a query.

    Attributes:
        sources: in the order they are read in the text.
        duckdb_sql: the query for DuckDB.
        translate: writes the same query for Spark, or raises why it cannot run there; what runs in process needs none.
        columns: the output names as DuckDB gives them; None where they are not known before running.
        bound: names and columns were checked; if not, DuckDB has to, and `refusal` says what was found wrong.
        digest: how the catalog alone may answer; None where rows are needed.
        types: DuckDB's names of the columns' types, where each column is known to have its type.
        written: what the text has for a source, by its view, and whether an alias was added to it.
    """

    sources: tuple[Source, ...]
    duckdb_sql: str
    translate: Callable[[], SparkQuery]
    columns: tuple[str, ...] | None = None
    bound: bool = True
    digest: Digest | None = None
    types: tuple[str, ...] | None = None
    written: Mapping[str, tuple[str, bool]] = field(default_factory=dict)

    def named(self, column: str) -> str:
        """A column's name with what the text has for the sources in it, as DuckDB prints it."""

        def shown(found: re.Match[str]) -> str:
            text, is_added = self.written.get(found[1], (found[1], False))
            name = (printed(f"(SELECT * FROM {text})") or text).removeprefix("(SELECT * FROM ").removesuffix(")")
            return name if is_added else name + (found[2] or "")

        return _NAMED.sub(shown, column) if self.written else column

    @cached_property
    def _translated(self) -> SparkQuery | DuckLakeError:
        try:
            return self.translate()
        except DuckLakeError as error:
            return error

    @property
    def spark_sql(self) -> str:
        """The query for Spark; "" where it cannot run there."""
        return "" if self.refusal is not None else self.for_spark().sql

    @property
    def refusal(self) -> DuckLakeError | None:
        """Why the query cannot run on Spark; None where it can."""
        return self._translated if isinstance(self._translated, DuckLakeError) else None

    def for_spark(self) -> SparkQuery:
        """The query for Spark.

        Raises:
            UnsupportedFeatureError: it cannot run on Spark.
            BindError: it names what does not exist.
        """
        if isinstance(self._translated, DuckLakeError):
            raise self._translated
        return self._translated

    @property
    def reads_tables(self) -> bool:
        """Whether any lake table is read; if not, DuckDB computes it in process."""
        return any(source.kind == "table" for source in self.sources)
