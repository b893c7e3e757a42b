"""Replaces names of lake tables in a text by names of views; keeps the rest as written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import BindError, SqlSyntaxError
from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.operations import TableName
from ducklake_lab.sql.parse.references import Reference, find_references, splice
from ducklake_lab.sql.parse.statements import read_arguments
from ducklake_lab.sql.plan import NAMED_PREFIX, SOURCE_PREFIX, Source, StoredView


def with_views(
    text: str,
    tokens: Sequence[Token],
    binder: QueryBinder,
    *,
    quote: str,
    write: Callable[[exp.Expr], str] | None = None,
    elsewhere: Callable[[TableName], bool] = lambda name: False,
    written: dict[str, tuple[str, bool]] | None = None,
) -> str:
    """Returns the text with views in place of lakes' tables, views and functions; the binder collects the sources.

    Args:
        quote: the quote character for names.
        write: returns the SQL of a stored view's query; None for DuckDB's, as it is written.
        elsewhere: whether a name belongs to a table of the engine itself, which has priority.
        written: takes the text of each source in parentheses, by its view, and whether an alias is added.

    Raises:
        BindError: a table is read at a snapshot, but does not exist.
    """

    def quoted(name: str) -> str:
        return quote + name.replace(quote, quote * 2) + quote

    replacements: list[tuple[int, int, str]] = []
    for reference in find_references(text, tokens):
        found = _source(reference, text, binder, elsewhere)
        if found is None:
            continue
        if isinstance(found, StoredView):
            tree, outputs, query = binder.view(found, reference.at)
            if write is None:
                sql = f"({query})"
            else:
                columns = ", ".join(quoted(output.name) for output in outputs or ())
                sql = f"(WITH v({columns}) AS ({write(tree)}) SELECT * FROM v)" if columns else f"({write(tree)})"
        else:
            if written is not None and _is_nested(tokens[: reference.first]):
                found.view = NAMED_PREFIX + found.view.removeprefix(SOURCE_PREFIX)
                shown = text[tokens[reference.first].start : tokens[reference.last].end + 1]
                written[found.view] = shown, bool(reference.implied_alias)
            sql = quoted(found.view)
        alias = reference.implied_alias
        replacements.append((reference.first, reference.last, f"{sql} AS {quoted(alias)}" if alias else sql))
    return splice(text, tokens, replacements)


def _is_nested(before: Sequence[Token]) -> bool:
    """Whether parentheses are open after some tokens."""
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
        found = binder.table(name, reference.at)
    except BindError:
        if reference.at is not None:
            raise
        return None
    return found if isinstance(found, StoredView) else found[0]
