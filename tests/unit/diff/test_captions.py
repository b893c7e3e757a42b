"""Captions of a diff hold for the rows that they count, whatever a DOUBLE can hold."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl


@pytest.mark.parametrize(
    ("kind", "start", "step"),
    [
        ("BIGINT", "9223372036854775000", "1"),
        ("DECIMAL(38,10)", "1234567890123456789012345678.1234567890", "0.0000000001"),
        ("UBIGINT", "18446744073709551000", "5"),
        ("DOUBLE", "1000.1", "0.1"),
        ("FLOAT", "1000.1", "0.1"),
    ],
)
@pytest.mark.parametrize("is_compared", [True, False])
def test_ranges_are_exact(
    tmp_path: Path, kind: str, start: str, step: str, is_compared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compared:
        monkeypatch.setattr("ducklake_lab.diff.baseline_stats.MAX_COMPARED_ROWS", 0)
    values = f"SELECT i, CASE WHEN i < 40 THEN {start}::{kind} + (i * {step})::{kind} ELSE 0 END AS x FROM range(400) AS r(i)"
    with dl.connect(f"ducklake:{tmp_path}/l.ducklake", alias="l", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t AS SELECT i, x::{kind} AS x, false AS seen FROM ({values})")
        session.sql("UPDATE t SET seen = true WHERE i < 40")
        now = session.current_snapshot().snapshot_id
        found = [one for one in session.table("t").diff(now - 1, now).patterns if one.condition.startswith("x BETWEEN")]
    (pattern,) = found
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT i, x::{kind} AS x FROM ({values})")
        held = connection.execute(f"SELECT count(*) FILTER ({pattern.condition}) FROM t WHERE i < 40").fetchone()
        ends = connection.execute("SELECT min(x)::VARCHAR, max(x)::VARCHAR FROM t WHERE i < 40").fetchone()
    assert held == (pattern.rows,) == (40,) and pattern.share == 1.0
    assert ends is not None and pattern.condition == f"x BETWEEN {ends[0]} AND {ends[1]}"
