"""Comparisons reach into files that hold a column's type, and stay above those that may hold another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.files.duckdb_query import query_of

ROWS = "INSERT INTO t SELECT i, i % 3 FROM range(1, 41) r(i)"
WIDENED = "ALTER TABLE t ALTER v SET TYPE DOUBLE"
CREATED = "CREATE TABLE t (v INTEGER, w TINYINT)"
#: Statements, then the rows of each of the queries below.
HISTORIES = {
    "in one snapshot, rows before the type": (f"BEGIN; {CREATED}; {ROWS}; {WIDENED}; COMMIT", 40),
    "in one snapshot, rows before and after": (f"BEGIN; {CREATED}; {ROWS}; {WIDENED}; {ROWS}; COMMIT", 80),
    "in one snapshot, rows after the type": (f"BEGIN; {CREATED}; {WIDENED}; {ROWS}; COMMIT", 40),
    "rows of an earlier snapshot": (f"{CREATED}; {ROWS}; {WIDENED}; {ROWS}", 80),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("engine", ["duckdb", "auto"])
def test_a_fraction_is_not_rounded_to_an_older_type(
    lake_uri: Callable[..., str], tmp_path: Path, history: str, engine: str
) -> None:
    statements, total = HISTORIES[history]
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine=engine) as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        session.sql(statements)
        copies = total // 40
        for condition, count in [("v > 1.5", 39), ("v < 2.5", 2), ("v = 1.5", 0), ("v BETWEEN 1.5 AND 2.5", 1)]:
            query = f"SELECT count(*) FROM t WHERE {condition} AND w >= 0"
            assert session.sql(query).fetchall() == [(count * copies,)], condition


@pytest.mark.parametrize(
    ("statements", "stays_above"),
    [
        ("CREATE TABLE t AS SELECT i::INTEGER AS v, i::VARCHAR AS w FROM range(40) r(i)", False),
        (f"{CREATED}; {ROWS}", False),
        (f"BEGIN; {CREATED}; {ROWS}; COMMIT", False),
        (f"BEGIN; {CREATED}; {ROWS}; {WIDENED}; COMMIT", True),
        (f"{CREATED}; {ROWS}; {WIDENED}", True),
    ],
)
def test_where_comparisons_run(
    lake_uri: Callable[..., str], tmp_path: Path, statements: str, stays_above: bool
) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        session.sql(statements)
        place = session._lakes.parse("t")
        relation = query_of(session._sources.scans.plan(place.lake, place.state, place.table()), "scan")
        assert ("CASE WHEN" in relation.sql) == stays_above
