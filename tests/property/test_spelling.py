"""Texts that are made without a query are those that DuckDB makes."""

from __future__ import annotations

import os
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ducklake_lab.duckdb.bounds import _by_query, extremes
from ducklake_lab.duckdb.spelling import spelled
from ducklake_lab.model.types import DataType
from tests.sampling import examples

_INSTANTS = st.one_of(
    st.integers(-(2**62), 2**62),
    st.integers(-(10**9), 10**9),
    st.sampled_from([0, 500_000, 253_402_300_799_999_999, 253_402_300_800_000_000, -62_135_596_800_000_000]),
    st.sampled_from([2**63 - 1, -(2**63) + 1, -62_135_596_800_000_001, -1, 1, 86_400_000_000]),
)
#: Values in the numbers, or the Python values, that Arrow takes for each type.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int8": st.integers(-128, 127),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "varchar": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    "float64": st.floats()
    | st.sampled_from([float("nan"), -float("nan"), 0.0, -0.0, 1e15, 1e16, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308]),
    "float32": st.floats(width=32),
    "decimal(9,2)": st.decimals(-9_999_999, 9_999_999, places=2),
    "decimal(38,10)": st.decimals(-(10**27), 10**27, places=10),
    "decimal(18,0)": st.decimals(-(10**17), 10**17, places=0),
    "date": st.integers(-(2**31) + 1, 2**31 - 1) | st.sampled_from([-719162, -719163, 2932896, 2932897, 0]),
    "time": st.integers(0, 86_400_000_000),
    "timestamp": _INSTANTS,
    "timestamptz": _INSTANTS,
    "int128": st.decimals(-(10**37), 10**37, places=0),
    "interval": st.none(),
    "blob": st.binary(),
    "uuid": st.uuids().map(str),
}
_COUNT = {"max_examples": int(os.environ.get("DUCKLAKE_LAB_EXAMPLES", examples(40))), "deadline": None}


def column(values: list[Any], data_type: DataType) -> pa.ChunkedArray:
    kind = data_type.arrow()
    if pa.types.is_temporal(kind) and data_type.name != "interval":  # also what Python has no value for
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.chunked_array([pa.array(values, whole).cast(kind)])
    return pa.chunked_array([pa.array(values, kind)])


def texts(values: pa.ChunkedArray, data_type: DataType, database: duckdb.DuckDBPyConnection) -> list[str | None]:
    relation = database.from_arrow(pa.table({"v": values}))
    sql = f"SELECT CAST(CAST(v AS {data_type.sql()}) AS VARCHAR) FROM shown"
    return [row[0] for row in relation.query("shown", sql).fetchall()]


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.mark.parametrize("name", VALUES)
def test_texts_are_those_of_duckdb(name: str, database: duckdb.DuckDBPyConnection) -> None:
    data_type = DataType(name)
    taken = 0

    @settings(**_COUNT, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.none() | VALUES[name], min_size=1, max_size=8))
    def check(values: list[Any]) -> None:
        nonlocal taken
        held = column(values, data_type)
        found = spelled(held, data_type)
        if found is not None:
            taken += 1
            assert found == texts(held, data_type, database)

    check()
    assert (taken > 0) == (name not in ("float32", "int128", "interval", "blob", "uuid"))


@pytest.mark.parametrize("name", VALUES)
def test_extremes_are_those_of_duckdb(name: str) -> None:
    data_type = DataType(name)

    @settings(**_COUNT, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.none() | VALUES[name], min_size=1, max_size=8))
    def check(values: list[Any]) -> None:
        held = column(values, data_type)
        assert extremes([(held, data_type)]) == _by_query([(held, data_type)])

    check()
