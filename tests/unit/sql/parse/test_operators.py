"""Operators group as DuckDB groups them."""

from itertools import product

import pytest
import sqlglot

from ducklake_lab.duckdb.canonical import expression_text
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.sql.dialect import DuckLakeSql

pytestmark = pytest.mark.sampled(3)

OPERATORS = (
    "OR", "AND", "=", "<", "<>", "==", "IS DISTINCT FROM", "LIKE", "SIMILAR TO", "~~", "~", "||", "->", "->>",
    "&", "|", "<<", ">>", "@>", "<@", "&&", "<->", "<=>", "+", "-", "*", "//", "%", "^", "**",
)  # fmt: skip
AFTER = ("IS NULL", "IN (1, 2)", "NOT IN (1, 2)", "BETWEEN c AND d", "NOT BETWEEN c AND d", "NOT LIKE c")


def _written(text: str) -> str | None:
    """An expression as it is handed to DuckDB, printed by DuckDB; None where it is a syntax error."""
    try:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect=DuckLakeSql)
    except sqlglot.ParseError:
        return None
    return expression_text(tree.sql(dialect=DuckLakeSql, normalize_functions=False).removeprefix("SELECT "))


def _of_duckdb(text: str) -> str | None:
    try:
        return expression_text(text)
    except DuckLakeError:
        return None


@pytest.mark.parametrize("first", OPERATORS)
def test_two_operators(first: str) -> None:
    for text in [f"a {first} b {second} c" for second in (*OPERATORS, "COLLATE")] + [
        f"{before}a {first} b {after}" for before, after in product(("", "NOT ", "~", "-"), ("", *AFTER))
    ]:
        if (expected := _of_duckdb(text)) is not None:
            assert _written(text) == expected, text


@pytest.mark.parametrize(
    "text",
    [
        "x = j->>'a' AND y",
        "a::INTEGER ARRAY",
        "a::DECIMAL(4, 2) ARRAY",
        "a::INTEGER ARRAY[2]",
        "(a::BIGINT ARRAY)[1] + b::BIGINT",
        "j->>'a' = 'b' AND j->>'c' = 'd'",
        "j->'a' || j->'b' ->> c || d",
        "trim(j->>'a' || 'b')",
        "substring(j->>'a', 1, 2)",
        "[j->>'a' = 'b', a -> b]",
        "CASE WHEN j->>'a' = 'b' THEN j->'c' || d END",
        "@ a || b",
        "@ a + b",
        "~ a ^@ b",
        "a COLLATE nocase.noaccent = b",
        "a IS NOT TRUE = b",
        "a BETWEEN b AND c ~ d",
        "1e3+1e3 - 1e-3-1e-3",
        "1.5e3*2.e2-.5E+1",
    ],
)
def test_an_expression(text: str) -> None:
    assert _written(text) == expression_text(text)
