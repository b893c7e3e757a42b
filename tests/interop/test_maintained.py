"""Lakes whose files the reference has flushed, merged and rewritten: we read them as it does, change feed included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, by_row_id, detach, normal, our_history, reference_history

pytestmark = pytest.mark.sampled(5)

SCRIPT = [
    "CREATE TABLE t (i INTEGER, s VARCHAR)",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO t VALUES (4, 'd')",
    "DELETE FROM t WHERE i = 2",
    "UPDATE t SET s = 'z' WHERE i = 3",
    # rows of several snapshots in one file, their deletions in another
    "CALL ducklake_flush_inlined_data('lake')",
    "INSERT INTO t SELECT i, 'x' FROM range(10, 50) AS r(i)",
    "DELETE FROM t WHERE i BETWEEN 10 AND 25",
    "DELETE FROM t WHERE i = 26",
    "DELETE FROM t WHERE i BETWEEN 30 AND 45",
    "DELETE FROM t WHERE i = 1",
    "UPDATE t SET s = 'few' WHERE i = 27",
    # inlined deletions join a delete file
    "CALL ducklake_flush_inlined_data('lake')",
    "INSERT INTO t SELECT i, 'y' FROM range(100, 120) AS r(i)",
    "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7",
    "INSERT INTO t SELECT i, 'y', 8 FROM range(120, 140) AS r(i)",
    "INSERT INTO t SELECT i, 'y', 9 FROM range(140, 160) AS r(i)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "DELETE FROM t WHERE i BETWEEN 130 AND 145",
    "UPDATE t SET s = 'many' WHERE i BETWEEN 115 AND 150",
    "DELETE FROM t WHERE i = 152",
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
    "INSERT INTO t VALUES (200, 'late', 1)",
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "DELETE FROM t WHERE s = 'y'",
]


@pytest.fixture
def lake(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> str:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    attach(reference, uri, data_path=tmp_path / "data")
    for statement in SCRIPT:
        reference.execute(statement)
    detach(reference)
    return uri


def test_every_snapshot_reads_the_same(lake: str, reference: duckdb.DuckDBPyConnection) -> None:
    with dl.connect(lake, alias="lake") as session:
        assert our_history(session, "duckdb") == reference_history(reference, lake)


def test_spark_reads_the_same(lake: str, reference: duckdb.DuckDBPyConnection, spark: Any) -> None:
    with dl.connect(lake, alias="lake", spark=spark, engine="spark") as session:
        for snapshot_id in (4, 16, 20):
            sql = f"SELECT rowid, snapshot_id, * FROM t AT (VERSION => {snapshot_id})"
            rows = [by_row_id(session.sql(sql, engine=engine).fetchall()) for engine in ("spark", "duckdb")]
            assert rows[0] == rows[1]
        assert feeds(session, "spark", [(4, 17)]) == feeds(session, "duckdb", [(4, 17)])


def test_the_change_feed_reads_the_same(lake: str, reference: duckdb.DuckDBPyConnection) -> None:
    last = len(SCRIPT)
    ranges = [(0, last), (2, 5), (3, 4), (5, 12), (8, 8), (9, 11), (13, 18), (15, 15), (19, 21), (20, last - 1)]
    attach(reference, lake)
    expected = feeds(reference, None, ranges)
    rewritten = [
        snapshot_id
        for (snapshot_id,) in reference.execute(
            "SELECT snapshot_id FROM lake.snapshots() WHERE changes['rewrite_delete'] IS NOT NULL"
        ).fetchall()
    ]
    # the reference's feed has no deletion from a merged file (27): its own states say what was deleted
    lost = reference.execute(
        f"SELECT {last}, rowid, * FROM lake.t AT (VERSION => {last - 1}) WHERE rowid NOT IN (SELECT rowid FROM lake.t)"
    ).fetchall()
    detach(reference)
    assert len(rewritten) == 1
    assert len(lost) == 23
    with dl.connect(lake, alias="lake") as session:
        # the reference reports every row of a rewritten file as updated, though none is
        found = [[row for row in rows if row[0] != last] for rows in feeds(session, "duckdb", ranges)]
        assert found == [[row for row in rows if row[0] not in rewritten] for rows in expected]
        changes, inserted, deleted = feeds(session, "duckdb", [(last, last)])
        assert deleted == sorted((normal(row) for row in lost), key=repr)
        assert [[*row[:2], *row[3:]] for row in changes] == deleted
        assert not inserted


def feeds(client: Any, engine: str | None, ranges: list[tuple[int, int]]) -> list[list[Any]]:
    """The three functions' rows for each range, with snapshot and row ids."""

    def run(sql: str) -> list[Any]:
        result = client.execute(sql) if engine is None else client.sql(sql, engine=engine)
        return sorted((normal(row) for row in result.fetchall()), key=repr)

    found = []
    for start, end in ranges:
        found.append(run(f"FROM lake.table_changes('t', {start}, {end})"))
        for name in ("table_insertions", "table_deletions"):
            sql = f"SELECT snapshot_id, rowid, * FROM ducklake_{name}('lake', 'main', 't', {start}, {end})"
            found.append(run(sql))
    return found


def test_diffs_see_through_rewritten_files(lake: str) -> None:
    with dl.connect(lake, alias="lake", engine="duckdb") as session:
        table = session.table("t")
        merged = table.diff(17, 18).summary
        assert (merged.inserted, merged.deleted, merged.updated) == (0, 0, 0)
        inside = table.diff(15, 16).summary
        assert (inside.inserted, inside.deleted, inside.updated) == (20, 0, 0)
        assert table.diff(3, 4).summary.deleted == 1
        again = table.diff(19, 23).summary
        assert (again.inserted, again.deleted) == (0, 1)
        deleted = table.diff(18, 19).summary
        assert (deleted.inserted, deleted.deleted, deleted.unchanged) == (0, 16, deleted.unchanged)


def test_several_delete_files_of_one_data_file_add_up(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    attach(reference, uri, data_path=tmp_path / "data")
    for statement in (
        "CREATE TABLE t AS SELECT i FROM range(100) AS r(i)",
        "DELETE FROM t WHERE i < 50",
        "DELETE FROM t WHERE i = 99",
        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
        # gives the file that has just ended a second delete file
        "CALL ducklake_flush_inlined_data('lake')",
    ):
        reference.execute(statement)
    detach(reference)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        counts = [
            session.sql(f"SELECT count(*), min(i), max(i) FROM t AT (VERSION => {at})").fetchone()
            for at in (2, 3, 4, 5)
        ]
        assert counts == [(50, 50, 99), (49, 50, 98), (49, 50, 98), (49, 50, 98)]


@pytest.mark.every_catalog
def test_on_every_catalog(lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = lake_uri()
    attach(reference, uri, data_path=tmp_path / "data")
    for statement in SCRIPT:
        reference.execute(statement)
    detach(reference)
    with dl.connect(uri, alias="lake") as session:
        assert our_history(session, "duckdb") == reference_history(reference, uri)
