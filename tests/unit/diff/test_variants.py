"""Variants in the change feed and in diffs: values of any type beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.version import READS_VARIANT_BYTES, SINCE_DUCKDB_2

pytestmark = [
    pytest.mark.skipif(not READS_VARIANT_BYTES, reason="DuckDB before 1.5.4 makes no variants of bytes"),
    pytest.mark.sampled(3),
]

_ROWS = "(1, 42, 1), (2, 'x', 1), (3, [1, 2], 1), (4, 4, 1)"


@pytest.mark.slow
def test_a_value_may_change_its_type(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t (i INTEGER, v VARIANT, w INTEGER); INSERT INTO t VALUES {_ROWS}")
        session.sql(
            "UPDATE t SET v = 'text' WHERE i = 1; UPDATE t SET v = {'a': 1} WHERE i = 2; "
            "UPDATE t SET v = NULL WHERE i = 3; UPDATE t SET w = 2 WHERE i = 4"
        )
        feed = "SELECT i, v FROM table_changes('t', 0, 6) WHERE change_type = '{}' ORDER BY i"
        assert session.sql(feed.format("update_preimage")).fetchall() == [(1, 42), (2, "x"), (3, [1, 2]), (4, 4)]
        assert session.sql(feed.format("update_postimage")).fetchall() == [
            (1, "text"),
            (2, {"a": 1}),
            (3, None),
            (4, 4),
        ]
        assert [row[4] for row in session.sql("CALL table_changes('t', 2, 2)").fetchall()] == [42, "x", [1, 2], 4]
        rows = session.table("t").diff(2, 6).rows()
        assert [(row.before["v"], row.after["v"], row.changed) for row in rows] == [
            (42, "text", ("v",)),
            ("x", {"a": 1}, ("v",)),
            ([1, 2], None, ("v",)),
            (4, 4, ("w",)),
        ]


_VALUES = (
    "NULL",
    "42",
    "NULL",
    "'x'",
    "1.5",
    "INTERVAL 1 DAY",
    "{'z': [INTERVAL 1 DAY], 'a': NULL}",
    "[1, NULL]",
    "NULL",
)
_SHAPES = {
    "VARIANT": "CAST({} AS VARIANT)",
    "VARIANT[]": "[CAST({} AS VARIANT), NULL]",
    "STRUCT(a VARIANT, b INTEGER)": "{{'a': CAST({} AS VARIANT), 'b': 1}}",
    "MAP(VARCHAR, STRUCT(v VARIANT))": "MAP {{'k': {{'v': CAST({} AS VARIANT)}}, 'n': NULL}}",
}


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "limit"), [("VARIANT", 0), *((shape, 100) for shape in _SHAPES)])
def test_cells_are_compared_beside_null(shape: str, limit: int, tmp_path: Path) -> None:
    # files hold no INTERVAL, and no variants below the top
    lost = "{" if SINCE_DUCKDB_2 else "nothing"  # DuckDB 2 takes no objects with such values apart
    found = [value for value in _VALUES if "INTERVAL" not in value or (limit and lost not in value)]
    values = [_SHAPES[shape].format(value) for value in found]
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake",
        data_path=f"{tmp_path}/data",
        engine="duckdb",
        data_inlining_row_limit=limit,
    ) as session:
        session.sql(f"CREATE TABLE t (i INTEGER, w INTEGER, v {shape})")
        rows = ", ".join(f"({i}, 1, {value})" for i, value in enumerate(values))
        session.sql(f"INSERT INTO t VALUES {rows}")
        before = session.current_snapshot().snapshot_id
        session.sql("UPDATE t SET w = 2")
        later = session.current_snapshot().snapshot_id
        for _ in range(5):
            changed = session.table("t").diff(before, later).rows()
            assert [row.changed for row in changed] == [("w",)] * len(values)
        # every row takes the value of the next
        turned = [*values[1:], values[0]]
        cases = " ".join(f"WHEN {i} THEN {value}" for i, value in enumerate(turned))
        session.sql(f"UPDATE t SET v = CASE i {cases} END")
        found = session.table("t").diff(later, session.current_snapshot().snapshot_id).rows()
        expected = [i for i, pair in enumerate(zip(values, turned, strict=True)) if pair[0] != pair[1]]
        assert [(row.after["i"], row.changed) for row in found] == [(i, ("v",)) for i in expected]
