"""Names of output columns that have none, compared with DuckDB's."""

from __future__ import annotations

import duckdb
import pytest

import ducklake_lab as dl

TYPES = (
    "TEXT", "text", "VARCHAR", "VARCHAR(3)", "CHAR", "CHAR(3)", "CHARACTER(3)", "CHARACTER VARYING", "CHARACTER VARYING(3)", "NCHAR",
    "NVARCHAR(3)", "BPCHAR", "BPCHAR(3)", "STRING(3)", "INT", "int8", "INT2", "LONG", "HUGEINT", "UINT8", "UBIGINT", "OID", "SIGNED",
    "BOOL", "LOGICAL", "FLOAT", "FLOAT(24)", "FLOAT(25)", "FLOAT4", "REAL", "double", "DOUBLE PRECISION", "DECIMAL", "DECIMAL(10)",
    "DECIMAL(10, 0)", "NUMERIC(5)", "DEC(5, 2)", "BLOB", "bytea", "VARBINARY", "BIT", "BIT(3)", "BITSTRING", "Uuid", "GUID", "JSON",
    "json", "DATE", "TIME", "TIMETZ", "TIME WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP_NS", "DATETIME",
    "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "ENUM('a', 'b')",
)  # fmt: skip
NESTED = ("{}[]", "{} ARRAY", "{}[2]", "{} ARRAY[2]", 'STRUCT(a {0}, "b c" {0}[])', "MAP({0}, {0}[][])")


def test_types_are_spelled_as_duckdb_spells_them() -> None:
    with dl.Session(engine="duckdb") as session:
        for kind in TYPES:
            for text in (kind, *(form.format(kind) for form in NESTED)):
                query = f"SELECT CAST(NULL AS {text})"
                try:
                    expected = duckdb.sql(query).columns
                except duckdb.ParserException:  # ARRAY stands after the names of some types alone
                    assert "ARRAY" in text
                    continue
                assert session.sql(query).columns == expected, text


@pytest.mark.parametrize(
    "items",
    [
        "count(), count(*), count() FILTER (WHERE x > 1)",
        "count() OVER (), count(*) OVER ()",
        "list(x ORDER BY y ASC), list(x ORDER BY y DESC NULLS FIRST, x), first(x ORDER BY y NULLS FIRST)",
        "sum(x) OVER w, lag(x) OVER (w), sum(x) OVER (w ROWS 1 PRECEDING), sum(x) OVER (ORDER BY y)",
        "sum(x) OVER (ORDER BY y RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "sum(x) OVER (ORDER BY y GROUPS BETWEEN 1 PRECEDING AND x + 1 FOLLOWING EXCLUDE TIES)",
        "rank(ORDER BY y) OVER w, ntile(4 ORDER BY y) OVER (), first_value(x ORDER BY y DESC) OVER (PARTITION BY x)",
        "x IS TRUE, (x > 1) IS NOT TRUE, x IS NOT FALSE, x IS NULL, (x > 1) IS UNKNOWN",
        "t SIMILAR TO 'a', t NOT SIMILAR TO 'a', t ~ 'a'",
        "(SELECT max(x) FROM (SELECT 1 AS x) q), EXISTS (SELECT upper(t)), x IN (SELECT y FROM r WHERE t <> 'b')",
        "extract(milliseconds FROM d), extract(year FROM d), extract('decades' FROM d)",
        '* REPLACE (x + 1 AS "X")',
        "x AS '', x + 1 AS '', 1 AS '', upper(t) AS '', y AS 'a b', count(*) OVER () AS ''",
    ],
)
def test_expressions_are_spelled_as_duckdb_spells_them(items: str) -> None:
    source = "SELECT 1 AS x, 2 AS y, 'a' AS t, TIMESTAMP '2020-01-01' AS d"
    query = f"WITH r AS ({source}) SELECT {items} FROM r WINDOW w AS (PARTITION BY t ORDER BY x)"
    with dl.Session(engine="duckdb") as session:
        assert session.sql(query).columns == duckdb.sql(query).columns


@pytest.mark.parametrize(
    "kind", ["TIME(3)", "TIMETZ(3)", "TIMESTAMPTZ(3)", "REAL(24)", "FLOAT4(24)", "FLOAT(54)", "BLOB(3)"]
)
def test_sizes_that_duckdb_refuses_are_refused(kind: str) -> None:
    query = f"SELECT CAST(NULL AS {kind})"
    with pytest.raises(duckdb.Error):
        duckdb.execute(query)
    with dl.Session(engine="duckdb") as session, pytest.raises(dl.DuckLakeError):
        session.sql(query)
