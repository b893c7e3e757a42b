"""Replaces names of lake tables in a text by names of views; keeps the rest as written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from ducklake_lab.duckdb.canonical import is_one
from ducklake_lab.duckdb.evaluation import printed
from ducklake_lab.errors import (
    BindError,
    DuckLakeError,
    ExpansionError,
    SqlSyntaxError,
    UnknownColumnError,
    UnsupportedFeatureError,
)
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.bind.expansion import declared
from ducklake_lab.sql.operations import At, TableName
from ducklake_lab.sql.parse.describe import described_parts, described_query, read_listing
from ducklake_lab.sql.parse.references import PIVOTS, Reference, cte_names, find_calls, find_references, splice, word
from ducklake_lab.sql.parse.statements import read_arguments
from ducklake_lab.sql.parse.tokens import Cursor, split
from ducklake_lab.sql.plan import (
    DESCRIPTION,
    MACRO_PREFIX,
    NAMED_PREFIX,
    SOURCE_PREFIX,
    Described,
    QueryPlan,
    Source,
    SparkQuery,
    StoredMacro,
    StoredView,
)
from ducklake_lab.sql.planning.table_arguments import asked, described_by, named, table_arguments

#: SQL that turns the rows of DESCRIBE into the rows of pragma_table_info.
_TABLE_INFO = """SELECT CAST(row_number() OVER () - 1 AS INTEGER) AS cid, column_name AS name, column_type AS type,
    "null" = 'NO' AS "notnull", "default" AS dflt_value, false AS pk FROM ({})"""


def with_views(
    text: str,
    tokens: Sequence[Token],
    binder: QueryBinder,
    *,
    quote: str,
    write: Callable[[exp.Expr], str] | None = None,
    written: dict[str, tuple[str, bool]] | None = None,
) -> str:
    """Returns the text with views in place of lakes' tables, views and functions; the binder collects the sources.

    Args:
        quote: the quote character for names.
        write: returns the SQL of a stored view's query; None for DuckDB's, as it is written.
        written: takes the text of each source in parentheses, by its view, and whether an alias is added.

    Raises:
        BindError: a table is read at a snapshot, but does not exist.
        UnsupportedFeatureError: a stored view or macro cannot be a part of the text.
    """
    return _Rewriting(binder, quote, write, {} if written is None else written).text(text, tokens)


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Puts views in place of names; attributes as the arguments of `with_views`."""

    binder: QueryBinder
    quote: str
    write: Callable[[exp.Expr], str] | None
    written: dict[str, tuple[str, bool]]
    own_macros: dict[object, str] = field(default_factory=dict)

    @property
    def _is_for_duckdb(self) -> bool:
        return self.write is None

    def text(self, text: str, tokens: Sequence[Token], *, nested: bool = False) -> str:
        """Returns a text with views in place of names.

        Args:
            nested: parentheses are around the text.
        """
        replacements: list[tuple[int, int, str]] = []
        for first, last in described_parts(tokens) if self._is_for_duckdb else ():
            if (rows := self._described(text, tokens[first : last + 1])) is not None:
                replacements.append((first, last, rows))
        references = find_references(text, tokens)
        for reference in references:
            if any(first <= reference.first <= last for first, last, _ in replacements):
                continue
            is_call = reference.arguments is not None
            if is_call and self.binder.is_in_macro and self.binder.resolver.table_parameters(reference.name):
                raise UnsupportedFeatureError(
                    f"{reference.name.name} is not supported in macros of lakes; name the table in FROM."
                )
            is_nested = nested or _is_nested(tokens[: reference.first])
            if (query := asked(reference, text, self.binder.resolver)) is not None:
                before = len(self.binder.sources)
                inner = self.text(query, split(query)[0], nested=is_nested)
                if len(self.binder.sources) > before:
                    replacements.append((reference.first, reference.last, f"({inner})"))
                continue
            replacements += self._put(reference, text, tokens, nested=is_nested)
        if self._is_for_duckdb:
            in_from = {one.first for one in references if one.arguments is not None}
            replacements += self._calls(text, tokens, in_from)
        return splice(text, tokens, replacements)

    def _put(
        self, reference: Reference, text: str, tokens: Sequence[Token], *, nested: bool
    ) -> Iterator[tuple[int, int, str]]:
        """Yields what stands in place of a reference or of its arguments; nothing for names that the engine resolves."""
        source = self._source(reference, text)
        if source is None:
            rows = self._pragma(reference, text)
            if rows is None:
                if self._is_for_duckdb:
                    yield from self._in_arguments(reference, text, tokens)
                return
            sql = rows
        elif isinstance(source, StoredView):
            sql = self._view(source, reference.at)
        else:
            if self._is_for_duckdb and nested:
                source.view = _named(source.view)
                shown_text = text[tokens[reference.first].start : tokens[reference.last].end + 1]
                self.written[source.view] = shown_text, bool(reference.implied_alias)
            sql = self._quoted(source.view)
        if reference.moment is not None:
            yield *reference.moment, ""
        alias = reference.implied_alias
        yield reference.first, reference.last, f"{sql} AS {self._quoted(alias)}" if alias else sql

    def _quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def _source(self, reference: Reference, text: str) -> Source | StoredView | None:
        """Returns the lake's table, view or function; None for names that the engine resolves."""
        name, binder = reference.name, self.binder
        if reference.arguments is not None:
            try:
                args, kwargs = read_arguments(reference.arguments, text)
            except (BindError, SqlSyntaxError):
                return None
            if binder.resolver.function(name, args, kwargs) is None:
                return None
            stored = bool(binder.expanding)
            source = Source(binder.view_name(), "function", name, args=tuple(args), kwargs=kwargs, stored=stored)
            binder.sources.append(source)
            return source
        if reference.at is None and self._is_elsewhere(name):
            return None
        try:
            table_or_view = binder.table(name, reference.at)
        except BindError:
            if reference.at is not None:
                raise
            return None
        return table_or_view if isinstance(table_or_view, StoredView) else table_or_view[0]

    def _is_elsewhere(self, name: TableName) -> bool:
        """Returns whether a name belongs to a table of the engine itself, which has priority."""
        return self._is_for_duckdb and self.binder.owns(name)

    # Stored views and macros

    def _view(self, view: StoredView, at: At | None) -> str:
        """Returns the query of a view in parentheses."""
        binder = self.binder
        sources, macros = len(binder.sources), dict(binder.macros)
        try:
            tree, outputs, query = binder.view(view, at)
        except ExpansionError:
            raise
        except (UnknownColumnError, UnsupportedFeatureError) as error:
            if not self._is_for_duckdb:
                raise
            self._forget(sources, macros)
            written = self._view_as_written(view, at)
            if isinstance(error, UnknownColumnError):
                try:
                    self._columns(written, sources)
                except DuckLakeError:
                    raise error from None  # it names the view
            return f"({written})"
        if self._is_for_duckdb:
            return f"({query})"
        assert self.write is not None
        columns = ", ".join(self._quoted(output.name) for output in outputs or ())
        return f"(WITH v({columns}) AS ({self.write(tree)}) SELECT * FROM v)" if columns else f"({self.write(tree)})"

    def _view_as_written(self, view: StoredView, at: At | None) -> str:
        """Returns the query of a view that the binder refuses, for DuckDB to bind."""
        first = len(self.binder.sources)
        with self.binder.inside(view, at):
            query = self._stored(view.sql, f"view {view.name}")
        if not is_one("SELECT", f"({query})"):
            raise UnsupportedFeatureError(f"The text of the view {view.name} is no query; create the view anew.")
        names: Sequence[str] = view.columns
        if NAMED_PREFIX in query or MACRO_PREFIX in query:
            shown = [name for name, *_ in self._columns(query, first)]
            names = [*names, *shown[len(names) :]]
        return f"SELECT * FROM ({query}) AS v({', '.join(map(quote_identifier, names))})" if names else query

    def _stored(self, text: str, entry: str) -> str:
        """Returns the text of a view or macro with views in place of names."""
        statements = split(text)
        if len(statements) != 1:
            raise UnsupportedFeatureError(f"The text of the {entry} is not one query or expression; create it anew.")
        return self.text(text, statements[0], nested=True)

    def _calls(self, text: str, tokens: Sequence[Token], in_from: Collection[int]) -> Iterator[tuple[int, int, str]]:
        """Yields the names of called macros of lakes, with the names of macros of the session's database.

        Args:
            in_from: the first tokens of calls in FROM.
        """
        for first, last in find_calls(text, tokens):
            kind: Literal["scalar", "table"] = "table" if first in in_from else "scalar"
            name = TableName.of([tokens[place].text for place in range(first, last + 1, 2)])
            macro = self.binder.find_macro(name, kind)
            if macro is None and kind == "scalar" and first < last:
                first = last  # x.f() calls f with x
                macro = self.binder.find_macro(TableName(None, None, name.name), kind)
            if macro is not None:
                called = text[tokens[first].start : tokens[last].end + 1]
                yield first, last, self._macro(macro, kind, called)

    def _macro(self, macro: StoredMacro, kind: Literal["scalar", "table"], called: str) -> str:
        """Returns the name of a macro of the session's database with all overloads of a stored one.

        Args:
            called: its name as written, which DuckDB shows in names of columns.
        """
        key = macro, kind, called
        if key not in self.own_macros:
            overloads = []
            with self.binder.inside(macro):
                for one in macro.implementations:
                    body = self._stored(one.sql, f"macro {macro.name}")
                    parameters = ", ".join(map(declared, one.parameters))
                    overloads.append(f"({parameters}) AS {'TABLE ' if kind == 'table' else ''}{body}")
            own = self.binder.own_macro(macro, ", ".join(overloads))
            if own is None:
                raise UnsupportedFeatureError(f"The text of the macro {macro.name} is no {kind} macro; create it anew.")
            self.own_macros[key] = own
            self.written[_called(own)] = _called(called), True
        return self.own_macros[key]

    # DESCRIBE and SHOW

    def _described(self, text: str, tokens: Sequence[Token]) -> str | None:
        """Returns the query that stands for a DESCRIBE or SHOW; None for a listing of the session's own, and for PIVOT."""
        if PIVOTS & {word(token) for token in tokens}:
            return None  # rows decide about its columns
        cursor = Cursor(text, tokens, 1)
        try:
            listing = read_listing(cursor)
        except UnsupportedFeatureError:
            return None
        if listing is not None:
            query = self.binder.resolver.listing(listing)
            return self.text(query, split(query)[0], nested=True)
        return description_query(self._description(described_query(text, cursor.rest())))

    def _pragma(self, reference: Reference, text: str) -> str | None:
        """Returns the rows of a pragma function that describes a table or view of a lake; None for other references.

        Raises:
            UnsupportedFeatureError: it shows how DuckDB stores a table.
        """
        table = described_by(reference, text, self.binder.resolver) if self._is_for_duckdb else None
        name = named(table) if table is not None else None
        if name is None or self._is_elsewhere(name):
            return None
        before = len(self.binder.sources)
        try:
            found = self.binder.table(name, None)
        except BindError:
            return None
        del self.binder.sources[before:]
        function = reference.name.name.casefold()
        if function == "pragma_storage_info":
            raise UnsupportedFeatureError(f"{function} of a table of a lake is not supported; use its file statistics.")
        columns = self._description(f"FROM {table}")
        if isinstance(found, StoredView):
            columns = [(column, kind, True, None) for column, kind, *_ in columns]
        rows = description_query(columns)
        return f"({rows})" if function == "pragma_show" else f"({_TABLE_INFO.format(rows)})"

    def _description(self, query: str) -> Sequence[Described]:
        """Returns the columns of a query."""
        sources, macros = len(self.binder.sources), dict(self.binder.macros)
        self.binder.macros.clear()
        part = replace(self, written={}, own_macros={})
        columns = part._columns(part.text(query, split(query)[0]), sources)
        self._forget(sources, macros)
        return columns

    def _columns(self, query: str, first: int) -> Sequence[Described]:
        """Returns the columns of a query with views in place of names.

        Args:
            first: its first source, among those of the binder.
        """
        sources, macros = tuple(self.binder.sources[first:]), dict(self.binder.macros)
        plan = QueryPlan(sources, query, _only_in_process, bound=False, written=self.written, macros=macros)
        return self.binder.resolver.described(plan)

    def _forget(self, sources: int, macros: Mapping[str, str]) -> None:
        """Makes the binder forget sources and macros of a text that the statement does not have."""
        del self.binder.sources[sources:]
        self.binder.macros.clear()
        self.binder.macros.update(macros)

    # Arguments

    def _in_arguments(self, reference: Reference, text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
        """Yields the arguments of a call that name tables of lakes, with the names of sources in place of them.

        Raises:
            UnsupportedFeatureError: an argument names a view of a lake.
        """
        queries = cte_names(tokens)

        def view_of(written: str) -> str | None:
            name = named(written)
            if name is None or (name.schema is None and name.name.casefold() in queries) or self._is_elsewhere(name):
                return None
            try:
                found = self.binder.table(name, None)
            except BindError:
                return None
            if isinstance(found, StoredView):
                raise UnsupportedFeatureError(
                    f"{reference.name.name} of the view {name} is not supported; write WITH v AS (FROM {name}), and use v."
                )
            source = found[0]
            source.view = _named(source.view)
            self.written[source.view] = written, False
            return source.view

        places = {token.start: index for index, token in enumerate(tokens)}
        for argument in table_arguments(reference, text, self.binder.resolver):
            spelled = argument.spelled(view_of)
            if spelled is not None:
                yield places[argument.first.start], places[argument.last.start], spelled


def _called(name: str) -> str:
    """Returns the name of a function as DuckDB writes it in names of columns."""
    return (printed(f"{name}()") or name).removesuffix("()")


def _only_in_process() -> SparkQuery:
    raise UnsupportedFeatureError("DESCRIBE in FROM is not supported on Spark.")


def description_query(columns: Sequence[Described]) -> str:
    """Returns a query with the rows of DESCRIBE."""
    rows = (
        ", ".join(
            "CAST(NULL AS VARCHAR)" if value is None else quote_text(value)
            for value in (name, kind, "YES" if nulls_allowed else "NO", None, default, None)
        )
        for name, kind, nulls_allowed, default in columns
    )
    names = ", ".join(map(quote_identifier, DESCRIPTION))
    return f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS described({names})"


def _named(view: str) -> str:
    """Returns the name of a source whose text DuckDB shows in the name of an expression."""
    return NAMED_PREFIX + view.removeprefix(SOURCE_PREFIX)


def _is_nested(before: Sequence[Token]) -> bool:
    """Returns whether parentheses are open after some tokens."""
    kinds = [token.token_type for token in before]
    return kinds.count(TokenType.L_PAREN) > kinds.count(TokenType.R_PAREN)
