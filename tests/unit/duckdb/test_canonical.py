"""Names of computed columns are DuckDB's own, although nothing is bound."""

from __future__ import annotations

import duckdb
import pytest

from ducklake_lab.duckdb.canonical import item_name, query_text
from ducklake_lab.errors import UnsupportedFeatureError

ITEMS = [
    "CAST(d AS DECIMAL)",
    "d::DECIMAL(5)::DECIMAL(6,2)",
    "d::NUMERIC(4) + d::DEC",
    "d::VARCHAR(10) || 'a DECIMAL(3,1)'",
    "d::CHAR(3)",
    "d::TEXT",
    "[d]::DECIMAL[]",
    "d::DOUBLE",
    "{'a': d}::STRUCT(a DECIMAL)",
    "DATE '2020-01-01' + INTERVAL 1 MONTH",
    "DATE '2020-01-01' + INTERVAL (d::DOUBLE::INT) MONTH - INTERVAL '2' DAY",
    "to_months(CAST(trunc(CAST(d AS DOUBLE)) AS INTEGER))",
    "list_transform([d], lambda x: x + 1)",
    "list_transform([d], lambda x, i: x + i || '(y')",
    "list_transform([d], x -> x + 1)",
    "[x + 1 for x in [d] if x > 1]",
]


@pytest.mark.skipif(int(duckdb.__version__.partition(".")[0]) > 1, reason="2.0 names types as they are written")
@pytest.mark.parametrize("sql", ITEMS)
def test_a_name_is_the_one_that_duckdb_gives(sql: str) -> None:
    with duckdb.connect() as connection:
        description = connection.execute(f"SELECT {sql} FROM (SELECT 1 AS d)").description
    assert item_name(sql) == description[0][0]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("FROM a CROSS JOIN b FULL JOIN c ON a.k = c.k", "a CROSS JOIN b FULL JOIN c ON ((a.k = c.k))"),
        ("FROM a LEFT JOIN (b CROSS JOIN c) ON a.k = b.k", "a LEFT JOIN b CROSS JOIN c ON ((a.k = b.k))"),
        ("FROM (a CROSS JOIN b) NATURAL JOIN c", "a CROSS JOIN b NATURAL INNER JOIN c"),
        ("FROM a JOIN (b JOIN c USING (k)) USING (k)", "a INNER JOIN b INNER JOIN c USING (k) USING (k)"),
        ("FROM a, (b CROSS JOIN c)", "a , b , c"),
        ("FROM a, b JOIN c USING (k)", "a , b INNER JOIN c USING (k)"),
        ('FROM "DEPENDENT JOIN" CROSS JOIN b JOIN c USING (k)', '"DEPENDENT JOIN" CROSS JOIN b INNER JOIN c USING (k)'),
    ],
)
def test_joins_are_printed_where_they_are(query: str, text: str) -> None:
    assert query_text(query) == f"SELECT * FROM {text}"
    assert query_text(f"SELECT (SELECT 'DEPENDENT JOIN' {query}) AS x") == (
        f"SELECT (SELECT 'DEPENDENT JOIN' FROM {text}) AS x"
    )


@pytest.mark.parametrize(
    "query",
    [
        "FROM a NATURAL JOIN (b NATURAL JOIN c)",
        "FROM a POSITIONAL JOIN (b CROSS JOIN c)",
        "FROM a CROSS JOIN (b FULL JOIN c USING (k)) LEFT JOIN d USING (k)",
        "FROM (a CROSS JOIN b) PIVOT (sum(x) FOR y IN (1, 2))",
        "WITH w AS (FROM a NATURAL JOIN (b NATURAL JOIN c)) FROM w",
    ],
)
def test_joins_whose_parentheses_would_be_lost_are_refused(query: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="no join in parentheses"):
        query_text(query)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT TRY_CAST(c AS ENUM('DATE', 'b'))", """SELECT TRY_CAST(c AS "ENUM"('DATE', 'b'))"""),
        ('SELECT NULL::STRUCT("a DATE x" DATE)', 'SELECT CAST(NULL AS STRUCT("a DATE x" "DATE"))'),
        (
            'SELECT NULL::STRUCT("DECIMAL(4,2)" DECIMAL(4,2))',
            'SELECT CAST(NULL AS STRUCT("DECIMAL(4,2)" DECIMAL(4, 2)))',
        ),
        ("SELECT f(l, lambda x: x || '(y -> z')", "SELECT f(l, (x -> (x || '(y -> z')))"),
        ("SELECT f(l, lambda x: x || '(y - > z')", "SELECT f(l, (lambda x: (x || '(y - > z')))"),
        ('SELECT f(l, lambda "a b", i: i)', 'SELECT f(l, (lambda "a b", i: i))'),
        ("SELECT f(l, x -> x)", "SELECT f(l, (x -> x))"),
        ("UNPIVOT t ON x + 1 AS p, y", 'SELECT * FROM t UNPIVOT ("value" FOR "name" IN ((x + 1) AS p, y))'),
        (
            "UNPIVOT t ON ('a' || x) AS p INTO NAME n VALUE z",
            "SELECT * FROM t UNPIVOT (z FOR n IN (('a' || x) AS p))",
        ),
        (
            "UNPIVOT t ON (x, y) AS p INTO NAME n VALUE z, w",
            'SELECT * FROM t UNPIVOT ((z, w) FOR n IN (main."row"(x, y) AS p))',
        ),
    ],
)
def test_texts_and_names_stay(query: str, text: str) -> None:
    assert query_text(query) == text


def test_numbers_beyond_double_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="no number beyond the range of DOUBLE"):
        query_text("SELECT 1e400 AS x")
    assert "1e+300" in query_text("SELECT 'inf'::DOUBLE AS x, 1e300 AS y")


@pytest.mark.parametrize("expression", ["(-1)[x]", "(1)[1]", "(2.5)[1:x]"])
def test_texts_that_duckdb_does_not_read_are_refused(expression: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="cannot be kept, as DuckDB prints it"):
        query_text(f"SELECT {expression} FROM t")
