"""Queries over Arrow tables in process mean what they mean in DuckDB."""

from __future__ import annotations

import _thread
import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType

pytestmark = pytest.mark.sampled(3)


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


@pytest.mark.parametrize(
    "value", ["to_hours(2147483647)", "[to_hours(1), to_hours(-2147483647)]", "{'a': to_hours(2562047)}"]
)
def test_an_interval_that_arrow_cannot_hold_is_refused(value: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="2562047 hours"):
        evaluate(f"SELECT {value} AS v", {})
    longest = "INTERVAL '7 months -3 days 2562046:59:59.999999'"
    assert str(evaluate(f"SELECT [{longest}, NULL] AS v", {})["v"][0]).count("9223369199999999000")  # nanoseconds


#: Nine billion pairs.
ENDLESS = "SELECT count(*) AS n FROM t, range(3000000) AS x(i), range(3000) AS y(j) WHERE hash(i * j) % 7 = 3"


@contextmanager
def stopped() -> Iterator[None]:
    """Around what the user stops after half a second."""
    # a process in the background starts with its interrupts ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_statement_that_is_stopped_leaves_the_database_as_it_was() -> None:
    database = SessionDatabase()
    rows = {"t": pa.table({"a": [1, 2]})}
    with stopped():
        database.run(ENDLESS, rows)
    assert database.run("SELECT count(*) AS n FROM t", rows).table.to_pylist() == [{"n": 2}]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["INSERT INTO t", "CREATE TABLE u AS", "CREATE TEMP TABLE v AS"])
def test_a_change_that_is_stopped_is_none(change: str, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS n")
        with stopped():
            session.sql(f"{change} {ENDLESS}")
        assert session.sql("FROM t").fetchall() == [(1,)] and session.current_snapshot().snapshot_id == 1
        assert session.sql("SHOW TABLES").fetchall() == [("t",)]
