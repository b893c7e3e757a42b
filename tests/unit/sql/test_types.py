"""DuckDB's type names to the model's types, and those to Spark's."""

from __future__ import annotations

import pytest
from sqlglot import exp

from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.types import from_sqlglot, spark_type, to_sqlglot


def read(text: str) -> DataType:
    return from_sqlglot(exp.DataType.build(text, dialect=DuckLakeSql, udt=True))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("INT", "int32"),
        ("LONG", "int64"),
        ("INT8", "int64"),
        ("INT1", "int8"),
        ("SHORT", "int16"),
        ("TEXT", "varchar"),
        ("STRING", "varchar"),
        ("VARCHAR(10)", "varchar"),
        ("REAL", "float32"),
        ("DOUBLE PRECISION", "float64"),
        ("DECIMAL", "decimal(18,3)"),
        ("NUMERIC(5)", "decimal(5,0)"),
        ("NUMERIC(10,2)", "decimal(10,2)"),
        ("UTINYINT", "uint8"),
        ("UBIGINT", "uint64"),
        ("HUGEINT", "int128"),
        ("TIMESTAMP", "timestamp"),
        ("DATETIME", "timestamp"),
        ("TIMESTAMPTZ", "timestamptz"),
        ("TIMESTAMP WITH TIME ZONE", "timestamptz"),
        ("TIMESTAMP_NS", "timestamp_ns"),
        ("TIMESTAMP(0)", "timestamp_s"),
        ("TIMESTAMP(2)", "timestamp_ms"),
        ("TIMESTAMP(6) WITHOUT TIME ZONE", "timestamp"),
        ("DATETIME(9)", "timestamp_ns"),
        ("FLOAT(24)", "float32"),
        ("FLOAT(25)", "float64"),
        ("GUID", "uuid"),
        ("BYTEA", "blob"),
        ("BOOL", "boolean"),
        ("UUID", "uuid"),
        ("JSON", "json"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert read(text) == DataType(name)


def test_nested() -> None:
    kind = read('STRUCT(a INT, "b c" MAP(VARCHAR, DECIMAL(9,1)[]))[]')
    assert kind.sql() == 'STRUCT(a INTEGER, "b c" MAP(VARCHAR, DECIMAL(9,1)[]))[]'
    assert from_sqlglot(to_sqlglot(kind)) == kind
    assert spark_type(kind) == "ARRAY<STRUCT<`a`: INT, `b c`: MAP<STRING, ARRAY<DECIMAL(9,1)>>>>"


@pytest.mark.parametrize(
    ("name", "spark"),
    [
        ("uint32", "BIGINT"),
        ("uint64", "DECIMAL(20,0)"),
        ("timestamp", "TIMESTAMP_NTZ"),
        ("timestamptz", "TIMESTAMP"),
        ("uuid", "STRING"),
        ("blob", "BINARY"),
        ("decimal(10,2)", "DECIMAL(10,2)"),
    ],
)
def test_spark_names(name: str, spark: str) -> None:
    assert spark_type(DataType(name)) == spark


def test_a_backtick_in_a_field_name_stays_inside_the_name() -> None:
    kind = DataType("struct", (("a` INT, b", DataType("int32")),))
    assert spark_type(kind) == "STRUCT<`a`` INT, b`: INT>"


@pytest.mark.parametrize("text", ["INT[3]", "ENUM('a')", "UNION(a INT)", "NOPE"])
def test_unsupported(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        read(text)


@pytest.mark.parametrize("text", ["TIMESTAMP(10)", "TIMESTAMPTZ(3)", "FLOAT(54)", "FLOAT(5,2)", "DATE(3)", "INT64(3)"])
def test_a_size_that_a_type_does_not_take(text: str) -> None:
    with pytest.raises(BindError, match=r"takes (no size|one size, up to (9|53)): "):
        read(text)


def test_an_impossible_decimal() -> None:
    with pytest.raises(SqlSyntaxError, match="precision 1 to 38"):
        read("DECIMAL(50,2)")
    with pytest.raises(SqlSyntaxError, match="whole numbers"):
        read("DECIMAL('x')")


@pytest.mark.parametrize(
    ("text", "said"),
    [("STRUCT", "a name and a type for each field"), ("MAP", "a type for its keys and one for its values")],
)
def test_a_nested_type_without_parts(text: str, said: str) -> None:
    with pytest.raises(SqlSyntaxError, match=said):
        read(text)


def test_a_type_spark_lacks() -> None:
    with pytest.raises(UnsupportedFeatureError, match="BIT"):
        spark_type(DataType("bit"))
