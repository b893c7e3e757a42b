"""The plan of a statement: its sources, and its SQL for Spark and for DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

from ducklake_lab.duckdb.evaluation import Evaluation, Settings, printed
from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError
from ducklake_lab.model.entries import MacroImplementation
from ducklake_lab.model.predicates import ColumnPath, Predicate
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.operations import At, Listing, Query, TableName

#: Most nested views and macros that one statement may expand.
MOST_EXPANSIONS = 1000
#: DuckDB's functions that describe a table of its own catalog.
DESCRIBERS = ("pragma_table_info", "pragma_show", "pragma_storage_info")
#: Columns of DESCRIBE.
DESCRIPTION = ("column_name", "column_type", "null", "key", "default", "extra")
#: A column: its name, its type, whether it may be NULL, and its default; None for columns of no table.
Described = tuple[str, str, bool, str | None]
#: Prefix of source names. A random part follows, so that no text contains such a name by chance.
SOURCE_PREFIX = "ducklake_src_"
#: Prefix of names of macros in the session's database that a plan needs.
MACRO_PREFIX = "ducklake_macro_"
#: Prefix of sources in parentheses of a text: DuckDB names an expression with a query by its text.
NAMED_PREFIX = "ducklake_named_"
_NAMED = re.compile(rf'({NAMED_PREFIX}\w+)( AS (?:"(?:[^"]|"")*"|\w+))?')


@dataclass(frozen=True, slots=True)
class StoredView:
    """A stored view, in the form for queries.

    Attributes:
        columns: names for its first columns.
        lake, schema: the schema that contains it, in which its query's names are looked up first; or None.
        temporary: the view belongs to the session, and may read its objects.
        entry_id: its id in the lake's catalog; None for a temporary view.
    """

    name: str
    sql: str
    columns: tuple[str, ...]
    lake: str | None
    schema: str | None
    temporary: bool = False
    entry_id: int | None = None


@dataclass(frozen=True, slots=True)
class StoredMacro:
    """A stored macro, in the form for queries; `lake`, `schema` and `entry_id` as for views."""

    name: str
    implementations: tuple[MacroImplementation, ...]
    lake: str
    schema: str
    entry_id: int | None = None


class NamedRows(Protocol):
    """Rows with a name: a table of a lake, or other rows."""

    @property
    def columns(self) -> Sequence[tuple[str, DataType]]:
        """The names and types of the columns."""

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The schema and lake that may qualify a column's name; for other rows, the qualifiers as written."""


@dataclass(frozen=True, slots=True)
class InputRows:
    """Named rows without further facts."""

    columns: Sequence[tuple[str, DataType]]
    qualifiers: tuple[str, ...] = ()


class Resolver(Protocol):
    """Resolves names in the attached lakes for the planner.

    Attributes:
        most_expansions: most nested views and macros of one statement.
    """

    most_expansions: int = MOST_EXPANSIONS

    def table(self, name: TableName, at: At | None) -> NamedRows:
        """Returns the rows behind a name.

        Raises:
            EntryNotFoundError: the table, schema or lake does not exist.
        """

    def function(
        self, name: TableName, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[tuple[str, DataType]] | None:
        """Returns the columns of a lake's table function; None if it is none."""
        return None

    def value(self, argument: object) -> object:
        """Returns the value of an argument, which may be a constant expression."""
        return argument

    def table_parameters(self, name: TableName) -> Collection[str | int]:
        """Returns the names and places of a DuckDB function's parameters that name tables; empty for other functions."""
        return ()

    def owns(self, name: TableName) -> bool:
        """Returns whether a name belongs to the session's own database, not to a lake."""
        return False

    def temporary_view(self, name: TableName) -> StoredView | None:
        """Returns the session's own view with that name, which hides tables of lakes."""
        return None

    def handed_in(self, name: TableName) -> TableName | None:
        """Returns the plan's name for rows passed with the text; they hide tables of lakes."""
        return None

    def replacement(self, name: TableName) -> TableName | None:
        """Returns the plan's name for rows of the program; used if no table has their name."""
        return None

    def hint(self, name: TableName) -> str:
        """Returns a hint for the message of a missing table."""
        return ""

    def describe(self, query: str) -> Sequence[tuple[str, DataType | None]] | None:
        """Returns the columns of a query over the session's database and files; None if it cannot be bound.

        The type is None if lakes have no such type.
        """
        return None

    def listing(self, listing: Listing) -> str:
        """Returns the query of SHOW TABLES or its like."""
        raise UnsupportedFeatureError("SHOW is not supported here.")

    def described(self, plan: QueryPlan) -> Sequence[Described]:
        """Returns the columns of a query.

        Raises:
            BindError: a name does not exist.
        """
        raise UnsupportedFeatureError("DESCRIBE is not supported here.")

    def texts(self, query: Query) -> Sequence[str]:
        """Runs a query with one text column and returns its rows."""
        raise UnsupportedFeatureError("PIVOT without IN (…), or LIMIT over a query, is not supported in such a query.")

    def view(self, name: TableName, at: At | None) -> StoredView | None:
        """Returns the view with that name; None if there is none."""
        return None

    def macro(self, name: TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        """Returns the macro with that qualified name; None if there is none."""
        return None

    def settings(self) -> Settings:
        """Returns the settings that change the meaning of a query, if not default; always the time zone."""
        return (("TimeZone", "UTC"),)

    def macros(self, lake_schema: tuple[str, str] | None) -> Mapping[tuple[str, str], StoredMacro]:
        """Returns the macros that need no qualifier, by kind and folded name.

        Args:
            lake_schema: a lake and one of its schemas; None for the current ones.
        """
        return {}


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A join key: each relevant row's value in a column also occurs in a column of another source.

    Attributes:
        view: the view of the other source.
        other: the column of the other source.
    """

    column: ColumnPath
    view: str
    other: ColumnPath


@dataclass(eq=False, slots=True)
class Source:
    """Rows that the plan's SQL reads under the name `view`; the binder fills it in.

    Attributes:
        rows: the resolver's rows for a table name.
        args: constant arguments of a function, Python values or SqlConstant.
        predicate: a condition implied by the query; rows that do not fulfil it may be skipped.
        virtual: the view must end with the four virtual columns.
        located: the view then ends with the two columns for a row's file.
        query: the DuckDB SQL of a local source; only Spark needs it as a view.
        stored: the text of a view or macro names the source.
        keys: join keys implied by the query; rows without a match in one of them may be skipped.
        is_shared: several parts of the query read it; it has neither predicate nor keys.
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
    is_shared: bool = False

    def share(self) -> None:
        """Drops its predicate and keys: several parts of the query read it, each with conditions of its own."""
        self.is_shared, self.predicate, self.keys = True, None, ()


@dataclass(frozen=True, slots=True)
class Digest:
    """A query over a digest of its only table, with the same result.

    Attributes:
        view: the view of the table's source; the digest replaces it.
        sql: the query, in DuckDB SQL.
        columns: columns whose minimum and maximum are needed.
        counted: columns whose values are counted.
    """

    view: str
    sql: str
    columns: tuple[str, ...]
    counted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A query for Spark.

    Attributes:
        evaluations: functions of the query that DuckDB evaluates.
        duckdb_sql: a DuckDB query with the same columns for empty sources, if the plan's query has none.
    """

    sql: str
    evaluations: tuple[Evaluation, ...] = ()
    duckdb_sql: str | None = None


@dataclass(frozen=True)
class QueryPlan:
    """The plan of a query.

    Attributes:
        sources: the sources in reading order of the text.
        duckdb_sql: the query for DuckDB.
        translate: returns the query for Spark, or raises the reason why it cannot run there.
        columns: DuckDB's output names; None if unknown before the query runs.
        bound: names and columns have been checked. If not, DuckDB checks them, and `refusal` has the error.
        digest: a query that the catalog alone can answer; None if rows are needed.
        types: DuckDB's type names of the columns, if every column is exactly of its type.
        macros: the macros that `duckdb_sql` calls: parameters and bodies, by name.
        written: the text of a source, by its view, and whether an alias was added to it; that of a macro, by its own name.
        definitions: the stored views and macros that the query expands, each with the AT clause that it is read with.
        is_as_written: `duckdb_sql` is the text of the query, with its stars; else it may be printed from a bound tree.
    """

    sources: tuple[Source, ...]
    duckdb_sql: str
    translate: Callable[[], SparkQuery]
    columns: tuple[str, ...] | None = None
    bound: bool = True
    digest: Digest | None = None
    types: tuple[str, ...] | None = None
    written: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    macros: Mapping[str, str] = field(default_factory=dict)
    definitions: Sequence[tuple[StoredView | StoredMacro, At | None]] = ()
    is_as_written: bool = False

    def named(self, column: str) -> str:
        """Returns a column's name with the texts of its sources, as DuckDB prints it."""

        def shown(source: re.Match[str]) -> str:
            text, is_added = self.written.get(source[1], (source[1], False))
            name = (printed(f"(SELECT * FROM {text})") or text).removeprefix("(SELECT * FROM ").removesuffix(")")
            return name if is_added else name + (source[2] or "")

        for own, (name, _) in self.written.items():
            if MACRO_PREFIX in own:
                column = column.replace(own, name)
        return _NAMED.sub(shown, column) if self.written else column

    @property
    def own_sql(self) -> str:
        """The query for DuckDB with the macros that it calls."""
        return ";\n".join((*self.macros.values(), self.duckdb_sql))

    @cached_property
    def _translated(self) -> SparkQuery | DuckLakeError:
        try:
            return self.translate()
        except DuckLakeError as error:
            return error

    @property
    def spark_sql(self) -> str:
        """The query for Spark; "" if it cannot run there."""
        return "" if self.refusal is not None else self.for_spark().sql

    @property
    def refusal(self) -> DuckLakeError | None:
        """The reason why the query cannot run on Spark; None if it can."""
        return self._translated if isinstance(self._translated, DuckLakeError) else None

    def for_spark(self) -> SparkQuery:
        """Returns the query for Spark.

        Raises:
            UnsupportedFeatureError: it cannot run on Spark.
            BindError: a name does not exist.
        """
        if isinstance(self._translated, DuckLakeError):
            raise self._translated
        return self._translated
