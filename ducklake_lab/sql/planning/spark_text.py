"""Plans queries in Spark SQL: replaces tables of lakes by views, and leaves the rest to Spark."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from ducklake_lab.duckdb.evaluation import Evaluation
from ducklake_lab.errors import SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.references import word
from ducklake_lab.sql.plan import QueryPlan, Resolver, SparkQuery
from ducklake_lab.sql.planning.name_rewriting import with_views

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
#: Tokens before a `:` that begins a variant's field.
_BEFORE_A_FIELD = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET)


def plan_spark_text(text: str, resolver: Resolver) -> QueryPlan:
    """Plans one query; `VERSION AS OF` and `TIMESTAMP AS OF` choose the snapshot of a table.

    Raises:
        SqlSyntaxError: a quote or comment does not end.
        UnsupportedFeatureError: the text is not a query.
    """
    tokens = _tokens(text)
    if not tokens or (word(tokens[0]) or tokens[0].text) not in _QUERIES:
        raise UnsupportedFeatureError(
            'dialect="spark" runs one query; write to lakes with DuckDB SQL, session.write(…) or a DataFrame.'
        )
    binder = QueryBinder(resolver)
    evaluations: list[Evaluation] = []

    def write(tree: exp.Expr) -> str:
        from ducklake_lab.sql.spark.translate import spark_sql

        query = spark_sql(tree.copy(), resolver.settings())
        evaluations.extend(query.evaluations)
        return query.sql

    written = with_views(text, tokens, binder, quote="`", write=write)
    sources = tuple(binder.sources)
    return QueryPlan(sources, "", lambda: SparkQuery(written, tuple(evaluations)), definitions=binder.definitions)


def parameters(text: str, params: Mapping[str, object]) -> dict[str, object]:
    """Returns the values of `:name` parameters in Spark SQL, by name; `v:field` is a field of a variant.

    Raises:
        UsageError: a parameter has no value.
    """
    tokens = _tokens(text)
    binder = Binder(params)
    values = {}
    for before, colon, name in zip([None, *tokens], tokens, tokens[1:], strict=False):
        field = before is not None and before.end + 1 == colon.start and before.token_type in _BEFORE_A_FIELD
        if colon.token_type is TokenType.COLON and name.start == colon.end + 1 and not field:
            values[name.text] = binder.value(name.text)
    return values


def _tokens(text: str) -> list[Token]:
    try:
        tokens = Spark().tokenize(text)
    except TokenError as error:
        raise SqlSyntaxError("A quoted text, name or comment does not end.") from error
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    return list(tokens)
