"""Rows in process: queries that run when they are asked for."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import BindError, ConstraintError
from ducklake_lab.model.entries import Column

_TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


def test_a_query_names_its_inputs() -> None:
    others = InMemory(pa.table({"a": [2, 3]}))
    found = InMemory(_TABLE).query("SELECT r.a + 1 AS n, b FROM rows AS r JOIN o ON r.a = o.a ORDER BY n", o=others)
    assert found.arrow().to_pylist() == [{"n": 3, "b": "y"}, {"n": 4, "b": None}]
    assert [(name, kind.sql()) for name, kind in found.columns] == [("n", "BIGINT"), ("b", "VARCHAR")]
    assert found.query("SELECT count(*) AS n FROM rows").arrow().to_pylist() == [{"n": 2}]
    assert found.arrow().num_rows == 2


def test_first_columns_under_other_names() -> None:
    rows = InMemory(_TABLE.append_column("A", pa.array([7, 8, 9])))
    assert InMemory(_TABLE).first(1).arrow().to_pylist() == [{"a": 1}, {"a": 2}, {"a": 3}]
    renamed = InMemory(_TABLE).first(2, ["x", "X"])
    assert renamed.arrow().column_names == ["x", "X"]
    assert rows.arrow().column_names == ["a", "b", "A"]


def test_a_name_that_is_no_input_is_an_error() -> None:
    with pytest.raises(BindError):
        InMemory(_TABLE).query("SELECT * FROM others").arrow()


_COLUMNS = (
    Column(1, 0, "A", "int64", default_value="7"),
    Column(2, 1, "at", "timestamptz"),
    Column(3, 2, "n", "int32", default_value="5"),
)


def test_rows_fit_a_table_by_names_in_the_time_zone() -> None:
    given = pa.table({"AT": [datetime(2024, 1, 1, 12)], "a": ["12"]})
    found = InMemory(given).fit(_COLUMNS, (("TimeZone", "America/New_York"),))
    assert [(name, kind.sql()) for name, kind in found.columns] == [
        ("A", "BIGINT"),
        ("at", "TIMESTAMP WITH TIME ZONE"),
        ("n", "INTEGER"),
    ]
    assert found.arrow().to_pylist() == [{"A": 12, "at": datetime(2024, 1, 1, 17, tzinfo=UTC), "n": 5}]


def test_a_value_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ConstraintError, match="'x' is no BIGINT"):
        InMemory(pa.table({"a": ["x"]})).fit(_COLUMNS, (("TimeZone", "UTC"),))


def test_rows_are_counted_by_a_text_and_cut() -> None:
    rows = InMemory(pa.table({"k": ["x", "y", "x"], "v": [1, 2, 3]}))
    assert rows.counts("k") == {"x": 2, "y": 1}
    assert rows.rest(1).arrow().to_pylist() == [{"v": 1}, {"v": 2}, {"v": 3}]
    assert rows.near(0) is rows.here() is rows
