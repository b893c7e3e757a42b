"""Rows as JSON: one array that every reader understands, and no digit lost."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.session.rows.printing import json_lines

VALUES = {
    "true": True,
    "9007199254740993": 9007199254740993,
    "123456789012345678901234567890::HUGEINT": 123456789012345678901234567890,
    "10::UHUGEINT": 10,
    "12345678901234567890.123456789::DECIMAL(38,9)": Decimal("12345678901234567890.123456789"),
    "-0.50::DECIMAL(2,2)": Decimal("-0.50"),
    "0.5::DECIMAL(2,2)": Decimal("0.50"),
    "0.1::FLOAT": Decimal("0.1"),
    "1e300": Decimal("1e300"),
    "'nan'::DOUBLE": "nan",
    "'-inf'::FLOAT": "-inf",
    "NULL": None,
    "'a\"b' || chr(10) || chr(155) || 'é'": 'a"b\n\x9bé',
    "DATE '2020-01-01'": "2020-01-01",
    "TIMESTAMPTZ '2020-01-01 00:00:00+00'": "2020-01-01 00:00:00+00",
    "INTERVAL 1 DAY": "1 day",
    "'\\x00ab'::BLOB": "\\x00ab",
    "UUID '00000000-0000-0000-0000-000000000001'": "00000000-0000-0000-0000-000000000001",
    "[1, NULL]": [1, None],
    "[]::INTEGER[]": [],
    "{'a': 1, 'b': [1.5::DOUBLE, 'nan'::DOUBLE]}": {"a": 1, "b": [Decimal("1.5"), "nan"]},
    "map {1: 'x'}": {"1": "x"},
    "map {{'a': 1}: [map {'k': 2}]}": {'{"a": 1}': [{"k": 2}]},
    "'{\"z\": [1, null]}'::JSON": {"z": [1, None]},
    "[1.0, 2.0]::DOUBLE[2]": [Decimal("1.0"), Decimal("2.0")],
}


@pytest.mark.parametrize("sql", VALUES)
def test_values(sql: str):
    with dl.Session(engine="duckdb") as session:
        result = session.sql(f"SELECT {sql} AS v")
        text = "".join(json_lines(result.carried(), "UTC"))
    assert json.loads(text, parse_float=Decimal) == [{"v": VALUES[sql]}]
    assert not any("\x7f" <= letter <= "\x9f" for letter in text)


def test_a_text_that_is_no_json_is_a_text():
    with dl.Session(engine="duckdb") as session:
        field = session.sql("SELECT '1'::JSON AS v").carried().schema.field("v")
    rows = pa.table([pa.array(["{", "NaN", "[1]"])], schema=pa.schema([field]))
    assert json.loads("".join(json_lines(rows, "UTC"))) == [{"v": "{"}, {"v": "NaN"}, {"v": [1]}]


def test_many_rows_and_none():
    with dl.Session(engine="duckdb") as session:
        many = session.sql("FROM range(25_000)").carried()
        none = session.sql("SELECT 1 AS a WHERE false").carried()
    assert json.loads("".join(json_lines(many, "UTC"))) == [{"range": number} for number in range(25_000)]
    assert "".join(json_lines(none, "UTC")) == "[]\n"


def test_columns_of_one_name_are_refused():
    with dl.Session(engine="duckdb") as session:
        rows = session.sql("SELECT 1 AS a, 2 AS a").carried()
    with pytest.raises(dl.UsageError, match='named "a"'):
        "".join(json_lines(rows, "UTC"))
