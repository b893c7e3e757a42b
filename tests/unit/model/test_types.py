from __future__ import annotations

import pyarrow as pa
import pytest

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import DataType, from_arrow

NESTED = DataType("struct", (("a", DataType("int32")), ("b c", DataType("list", (("element", DataType("varchar")),)))))


def test_sql_of_nested_types_quotes_field_names() -> None:
    assert NESTED.sql() == 'STRUCT(a INTEGER, "b c" VARCHAR[])'
    assert DataType("map", (("key", DataType("varchar")), ("value", NESTED))).sql().startswith("MAP(VARCHAR, STRUCT(")


@pytest.mark.parametrize(
    "name",
    ["boolean", "int8", "int64", "uint64", "float32", "decimal(18,3)", "date", "time", "timestamp", "timestamptz",
     "timestamp_s", "timestamp_ns", "varchar", "blob"],
)  # fmt: skip
def test_arrow_types_come_back(name: str) -> None:
    assert from_arrow(DataType(name).arrow()) == DataType(name)


def test_arrow_of_nested_types_comes_back() -> None:
    assert from_arrow(NESTED.arrow()) == NESTED


def test_large_and_dictionary_arrow_types_are_their_plain_ones() -> None:
    assert from_arrow(pa.large_string()) == DataType("varchar")
    assert from_arrow(pa.dictionary(pa.int8(), pa.string())) == DataType("varchar")


def test_types_without_an_arrow_form_are_named() -> None:
    with pytest.raises(UnsupportedFeatureError, match="BIGNUM"):
        DataType("bignum").arrow()


def test_ids_of_nested_columns_count_parents_first() -> None:
    column = Column.build("st", NESTED, 5)
    assert [(part.column_id, part.name) for part in column.walk()] == [(5, "st"), (6, "a"), (7, "b c"), (8, "element")]
    assert column.data_type == NESTED
