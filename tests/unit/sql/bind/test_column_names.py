"""Names of output columns that have none, compared with DuckDB's."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

import ducklake_lab as dl
from ducklake_lab.sql.bind.column_names import output_name
from ducklake_lab.sql.dialect import DuckLakeSql

TYPES = (
    "TEXT", "text", "VARCHAR", "VARCHAR(3)", "CHAR", "CHAR(3)", "CHARACTER(3)", "CHARACTER VARYING", "CHARACTER VARYING(3)", "NCHAR",
    "NVARCHAR(3)", "BPCHAR", "BPCHAR(3)", "STRING(3)", "INT", "int8", "INT2", "LONG", "HUGEINT", "UINT8", "UBIGINT", "OID", "SIGNED",
    "BOOL", "LOGICAL", "FLOAT", "FLOAT(24)", "FLOAT(25)", "FLOAT4", "REAL", "double", "DOUBLE PRECISION", "DECIMAL", "DECIMAL(10)",
    "DECIMAL(10, 0)", "NUMERIC(5)", "DEC(5, 2)", "BLOB", "bytea", "VARBINARY", "BIT", "BIT(3)", "BITSTRING", "Uuid", "GUID", "JSON",
    "json", "DATE", "TIME", "TIMETZ", "TIME WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP_NS", "DATETIME",
    "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "ENUM('a', 'b')",
)  # fmt: skip
NESTED = ("{}[]", "{} ARRAY", "{}[2]", "{} ARRAY[2]", 'STRUCT(a {0}, "b c" {0}[])', "MAP({0}, {0}[][])")


@pytest.mark.parametrize("kind", TYPES)
def test_types_are_spelled_as_duckdb_spells_them(kind: str) -> None:
    for text in (kind, *(form.format(kind) for form in NESTED)):
        query = f"SELECT CAST(NULL AS {text})"
        try:
            expected = duckdb.sql(query).columns[0]
        except duckdb.ParserException:  # ARRAY stands after the names of some types alone
            assert "ARRAY" in text
            continue
        assert output_name(sqlglot.parse_one(query, dialect=DuckLakeSql).selects[0]) == expected, text


@pytest.mark.parametrize(
    "kind", ["TIME(3)", "TIMETZ(3)", "TIMESTAMPTZ(3)", "REAL(24)", "FLOAT4(24)", "FLOAT(54)", "BLOB(3)"]
)
def test_sizes_that_duckdb_refuses_are_refused(kind: str) -> None:
    query = f"SELECT CAST(NULL AS {kind})"
    with pytest.raises(duckdb.Error):
        duckdb.execute(query)
    with dl.Session(engine="duckdb") as session, pytest.raises(dl.DuckLakeError):
        session.sql(query)
