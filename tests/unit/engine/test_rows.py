"""Rows in process: queries that run when they are asked for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import BindError

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
