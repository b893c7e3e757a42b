"""A typed literal means what it means to DuckDB, whatever follows it."""

from __future__ import annotations

import itertools

import duckdb
import pytest
import sqlglot

from ducklake_lab import Session
from ducklake_lab.sql.dialect import DuckLakeSql

LITERALS = (
    "DATE '2024-01-31'",
    "DATE E'2024-01-31'",
    "DATE $$2024-01-31$$",
    "\"date\" '2024-01-31'",
    "TIME '12:30:00.5'",
    "TIMETZ '12:30:00+02:30'",
    "TIME WITH TIME ZONE '12:30:00+02'",
    "TIMESTAMP '2024-01-31 01:02:03'",
    "TIMESTAMP WITH TIME ZONE '2024-01-31 01:02:03+02'",
    "TIMESTAMP_NS '2024-01-31 01:02:03.123456789'",
    "TIMESTAMP_US '2024-01-31'",
    "TIMESTAMPTZ '2024-01-31'",
    "INTERVAL '3 days'",
    "INTERVAL '3' DAY",
    "INTERVAL 3 DAY",
    "UUID 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
    "INTEGER '20240131'",
    "INT4 '7'",
    "HUGEINT '7'",
    "FLOAT8 '1.5'",
    "DOUBLE PRECISION '1.5'",
    "DECIMAL(4,2) '3.14'",
    "BOOLEAN 'true'",
    "VARCHAR 'abc'",
    "BLOB 'abc'",
    "JSON '{\"a\":  1}'",
)
AROUND = (
    "{}",
    "{}::VARCHAR",
    "{}::VARCHAR::BLOB",
    "{}::DATE",
    "{}::DATE::TIMESTAMP",
    "{}::TIMESTAMP::DATE::VARCHAR",
    "CAST({}::VARCHAR AS BLOB)",
    "TRY_CAST({} AS VARCHAR)::VARCHAR",
    "({})::VARCHAR",
    "-{}",
    "-{}::VARCHAR::INTEGER",
    "{} || 'x'",
    "{}::VARCHAR || 'x'",
    "'x' || {}::VARCHAR",
    "{} + 1::TINYINT",
    "1 + {} * 2::SMALLINT",
    "{} = {}::VARCHAR",
    "NOT {} IS NULL",
    "{} BETWEEN {} AND {}",
    "{} IN ({}, {})",
    "{} AT TIME ZONE 'UTC'",
    "({}::VARCHAR)[1]",
    "[{}, {}]::VARCHAR[]",
    "{{'a': {}}}",
    "CASE WHEN true THEN {}::VARCHAR ELSE 'x' END",
    "{}::VARCHAR COLLATE NOCASE",
    "{}::VARCHAR LIKE '2%' ESCAPE '!'",
)


def _meaning(expression: str) -> tuple[object, ...] | None:
    """(type, text) of a constant; None where DuckDB refuses it."""
    try:
        (row,) = duckdb.sql(f"SELECT typeof(v), v::VARCHAR FROM (SELECT {expression} AS v)").fetchall()
    except duckdb.Error:
        return None
    return tuple(row)


@pytest.mark.parametrize("around", AROUND)
def test_means_what_it_means_to_duckdb(around: str) -> None:
    meant = 0
    for literal in LITERALS:
        expression = around.format(*itertools.repeat(literal, around.count("{}")))
        expected = _meaning(expression)
        if expected is not None:
            meant += 1
            parsed = sqlglot.parse_one(expression, read=DuckLakeSql).sql(dialect=DuckLakeSql)
            assert _meaning(parsed) == expected, f"{expression} was read as {parsed}"
    assert meant > 0


def test_a_table_takes_the_type_of_the_cast() -> None:
    query = ", ".join(f"{literal}::VARCHAR AS c{i}" for i, literal in enumerate(LITERALS))
    with Session(engine="duckdb") as session:
        shown = session.sql(f"DESCRIBE SELECT {query}, TIMESTAMP '2024-01-31 01:02:03'::DATE AS d").fetchall()
        rows = session.sql(f"SELECT {query}, TIMESTAMP '2024-01-31 01:02:03'::DATE::VARCHAR AS d").fetchall()
    assert [row[1] for row in shown] == ["VARCHAR"] * len(LITERALS) + ["DATE"]
    assert rows == duckdb.sql(f"SELECT {query}, '2024-01-31'").fetchall()
