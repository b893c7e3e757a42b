"""Queries in Spark's own SQL: tables of lakes are replaced by views, all the rest is Spark's."""

from __future__ import annotations

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.sql.binder import QueryBinder
from ducklake_lab.sql.plan import QueryPlan, Resolver, SourceDraft, StoredView
from ducklake_lab.sql.references import Reference, find_references, splice, word
from ducklake_lab.sql.statements import read_arguments
from ducklake_lab.sql.translate import spark_sql

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


def plan_spark_text(text: str, resolver: Resolver) -> QueryPlan:
    """The plan of one query; `VERSION AS OF` and `TIMESTAMP AS OF` say at which snapshot a table is read.

    Raises:
        SqlSyntaxError: a quote or comment does not end.
        UnsupportedFeatureError: it is no query.
    """
    tokens = _tokens(text)
    if not tokens or (word(tokens[0]) or tokens[0].text) not in _QUERIES:
        raise UnsupportedFeatureError(
            'dialect="spark" runs one query; write to lakes with DuckDB SQL, session.write(…) or a DataFrame.'
        )
    binder = QueryBinder(resolver)
    replacements: list[tuple[int, int, str]] = []
    for reference in find_references(text, tokens):
        found = _replacement(reference, text, binder)
        if found is not None:
            alias = reference.implied_alias.replace("`", "``")
            replacements.append((reference.first, reference.last, f"{found} AS `{alias}`" if alias else found))
    sources = tuple(draft.finish() for draft in binder.drafts)
    return QueryPlan(sources, splice(text, tokens, replacements), "")


def _tokens(text: str) -> list[Token]:
    try:
        tokens = Spark().tokenize(text)
    except TokenError as error:
        raise SqlSyntaxError("A quoted text, name or comment does not end.") from error
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    return list(tokens)


def _replacement(reference: Reference, text: str, binder: QueryBinder) -> str | None:
    """What stands for the lake's table, view or function that is meant; None for what Spark has to find."""
    name = reference.name
    if reference.arguments is not None:
        try:
            args, kwargs = read_arguments(reference.arguments, text)
        except (BindError, SqlSyntaxError):
            return None
        if binder.resolver.function(name, args, kwargs) is None:
            return None
        draft = SourceDraft(binder.view_name(), "function", name, None, tuple(args), kwargs)
        binder.drafts.append(draft)
        return f"`{draft.view}`"
    try:
        found = binder.table(name, reference.at)
    except BindError:
        if reference.at is not None:
            raise
        return None
    if not isinstance(found, StoredView):
        return f"`{found[0].view}`"
    tree, outputs = binder.view(found, reference.at)
    columns = ", ".join("`" + output.name.replace("`", "``") + "`" for output in outputs or ())
    query = spark_sql(tree.copy())
    return f"(WITH v({columns}) AS ({query}) SELECT * FROM v)" if columns else f"({query})"
