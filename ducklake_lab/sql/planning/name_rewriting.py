"""Replaces names of lake tables in a text by names of views; keeps the rest as written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.operations import TableName
from ducklake_lab.sql.parse.references import Reference, cte_names, find_references, splice
from ducklake_lab.sql.parse.statements import read_arguments
from ducklake_lab.sql.parse.tokens import split
from ducklake_lab.sql.plan import NAMED_PREFIX, SOURCE_PREFIX, Source, StoredView
from ducklake_lab.sql.planning.table_arguments import asked, described_by, named, table_arguments


def with_views(
    text: str,
    tokens: Sequence[Token],
    binder: QueryBinder,
    *,
    quote: str,
    write: Callable[[exp.Expr], str] | None = None,
    elsewhere: Callable[[TableName], bool] = lambda name: False,
    written: dict[str, tuple[str, bool]] | None = None,
    nested: bool = False,
) -> str:
    """Returns the text with views in place of lakes' tables, views and functions; the binder collects the sources.

    Args:
        quote: the quote character for names.
        write: returns the SQL of a stored view's query; None for DuckDB's, as it is written.
        elsewhere: whether a name belongs to a table of the engine itself, which has priority.
        written: takes the text of each source in parentheses, by its view, and whether an alias is added.
        nested: parentheses are around the text.

    Raises:
        BindError: a table is read at a snapshot, but does not exist.
    """

    def quoted(name: str) -> str:
        return quote + name.replace(quote, quote * 2) + quote

    replacements: list[tuple[int, int, str]] = []
    for reference in find_references(text, tokens):
        if (text_of_query := asked(reference, text, binder.resolver)) is not None:
            sources_before = len(binder.sources)
            query = with_views(
                text_of_query,
                split(text_of_query)[0],
                binder,
                quote=quote,
                write=write,
                elsewhere=elsewhere,
                written=written,
                nested=nested or _is_nested(tokens[: reference.first]),
            )
            if len(binder.sources) > sources_before:
                replacements.append((reference.first, reference.last, f"({query})"))
            continue
        source = _source(reference, text, binder, elsewhere)
        if source is None:
            if write is None:
                replacements += _in_arguments(reference, text, tokens, binder, elsewhere, written)
            continue
        if isinstance(source, StoredView):
            tree, outputs, query = binder.view(source, reference.at)
            if write is None:
                sql = f"({query})"
            else:
                columns = ", ".join(quoted(output.name) for output in outputs or ())
                sql = f"(WITH v({columns}) AS ({write(tree)}) SELECT * FROM v)" if columns else f"({write(tree)})"
        else:
            if written is not None and (nested or _is_nested(tokens[: reference.first])):
                source.view = _named(source.view)
                shown_text = text[tokens[reference.first].start : tokens[reference.last].end + 1]
                written[source.view] = shown_text, bool(reference.implied_alias)
            sql = quoted(source.view)
        alias = reference.implied_alias
        replacements.append((reference.first, reference.last, f"{sql} AS {quoted(alias)}" if alias else sql))
    return splice(text, tokens, replacements)


def _in_arguments(
    reference: Reference,
    text: str,
    tokens: Sequence[Token],
    binder: QueryBinder,
    elsewhere: Callable[[TableName], bool],
    shown: dict[str, tuple[str, bool]] | None,
) -> Iterator[tuple[int, int, str]]:
    """Yields the arguments of a call that name tables of lakes, with the names of sources in place of them.

    Args:
        shown: takes the text of each source, as the names of expressions show it.

    Raises:
        UnsupportedFeatureError: an argument names a view of a lake.
    """
    queries = cte_names(tokens)

    def view_of(written: str) -> str | None:
        name = named(written)
        if name is None or (name.schema is None and name.name.casefold() in queries) or elsewhere(name):
            return None
        try:
            found = binder.table(name, None)
        except BindError:
            return None
        if isinstance(found, StoredView):
            raise UnsupportedFeatureError(
                f"{reference.name.name} of the view {name} is not supported; write WITH v AS (FROM {name}), and use v."
            )
        source = found[0]
        source.view = _named(source.view)
        if shown is not None:
            shown[source.view] = written, False
        return source.view

    if (described := described_by(reference, text, binder.resolver)) is not None and view_of(described) is not None:
        raise UnsupportedFeatureError(
            f"{reference.name.name} of a table of a lake is not supported; use DESCRIBE, or duckdb_columns()."
        )
    places = {token.start: index for index, token in enumerate(tokens)}
    for argument in table_arguments(reference, text, binder.resolver):
        spelled = argument.spelled(view_of)
        if spelled is not None:
            yield places[argument.first.start], places[argument.last.start], spelled


def _named(view: str) -> str:
    """Returns the name of a source whose text DuckDB shows in the name of an expression."""
    return NAMED_PREFIX + view.removeprefix(SOURCE_PREFIX)


def _is_nested(before: Sequence[Token]) -> bool:
    """Returns whether parentheses are open after some tokens."""
    kinds = [token.token_type for token in before]
    return kinds.count(TokenType.L_PAREN) > kinds.count(TokenType.R_PAREN)


def _source(
    reference: Reference, text: str, binder: QueryBinder, elsewhere: Callable[[TableName], bool]
) -> Source | StoredView | None:
    """Returns the lake's table, view or function; None for names that the engine resolves."""
    name = reference.name
    if reference.arguments is not None:
        try:
            args, kwargs = read_arguments(reference.arguments, text)
        except (BindError, SqlSyntaxError):
            return None
        if binder.resolver.function(name, args, kwargs) is None:
            return None
        source = Source(binder.view_name(), "function", name, args=tuple(args), kwargs=kwargs)
        binder.sources.append(source)
        return source
    if reference.at is None and elsewhere(name):
        return None
    try:
        table_or_view = binder.table(name, reference.at)
    except BindError:
        if reference.at is not None:
            raise
        return None
    return table_or_view if isinstance(table_or_view, StoredView) else table_or_view[0]
