"""Queries over Arrow tables in process mean what they mean in DuckDB."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from ducklake_lab.local.engine import evaluate
from ducklake_lab.model.types import DataType


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(("condition", "count"), [("> 1", 3), (">= 1", 4), ("< 'NaN'", 4), ("= 'NaN'", 2), ("<> 2", 5)])
def test_nan_is_the_greatest_number(kind: pa.DataType, condition: str, count: int) -> None:
    rows = pa.table({"f": pa.array([1, 2, math.nan, -math.inf, math.nan, 0.5], kind)})
    assert evaluate(f"SELECT count(*) AS n FROM t WHERE f {condition}", {"t": rows}).to_pylist() == [{"n": count}]


def test_columns_are_seen_in_their_own_types() -> None:
    uuid = "00000000-0000-0000-0000-000000000001"
    rows = pa.table([pa.array([uuid])], schema=pa.schema([DataType("uuid").field("u")]))
    found = evaluate("SELECT typeof(u) AS kind, u FROM t", {"t": rows})
    assert found.to_pylist() == [{"kind": "UUID", "u": uuid}]
    assert found.schema.field("u").metadata == rows.schema.field("u").metadata
