"""Maintenance by the reference and by us leaves the same metadata, row for row, and the same rows at every snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, metadata, our_history, reference_history

pytestmark = pytest.mark.sampled(5)

SCRIPTS = {
    "flush": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "INSERT INTO t VALUES (4, 'd')",
        "DELETE FROM t WHERE i = 2",
        "UPDATE t SET s = 'z' WHERE i = 3",
        "FROM ducklake_flush_inlined_data('lake')",
        "FROM ducklake_flush_inlined_data('lake')",
        "INSERT INTO t VALUES (5, NULL)",
    ],
    "flush of deletions": [
        "CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(40) AS r(i)",
        "DELETE FROM t WHERE i = 3",
        "DELETE FROM t WHERE i = 5",
        "FROM ducklake_flush_inlined_data('lake')",
        "DELETE FROM t WHERE i = 6",
        "DELETE FROM t WHERE i BETWEEN 10 AND 25",
        "DELETE FROM t WHERE i = 7",
        "FROM ducklake_flush_inlined_data('lake', table_name => 't', schema_name => 'main')",
    ],
    "flush of all versions": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t VALUES (1, 'a')",
        "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7",
        "INSERT INTO t VALUES (2, 'b', 8)",
        "ALTER TABLE t RENAME COLUMN s TO s2",
        "ALTER TABLE t DROP COLUMN i",
        "INSERT INTO t VALUES ('c', 9)",
        "DELETE FROM t WHERE s2 = 'a'",
        "FROM ducklake_flush_inlined_data('lake')",
        "INSERT INTO t VALUES ('d', 10)",
    ],
    "flush of a partitioned table": [
        "CREATE TABLE t (i INTEGER, d DATE)",
        "ALTER TABLE t SET PARTITIONED BY (i, year(d))",
        "INSERT INTO t VALUES (1, DATE '2020-01-02'), (2, NULL), (1, DATE '2021-01-02'), (1, DATE '2020-05-02')",
        "DELETE FROM t WHERE d = DATE '2020-05-02'",
        "FROM ducklake_flush_inlined_data('lake')",
    ],
    "flush of a sorted table": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "ALTER TABLE t SET SORTED BY (i DESC, s ASC NULLS FIRST)",
        "INSERT INTO t VALUES (1, 'x'), (3, 'a'), (2, NULL), (2, 'b')",
        "DELETE FROM t WHERE i = 3",
        "FROM ducklake_flush_inlined_data('lake')",
    ],
    "flush of several tables": [
        "CREATE TABLE a (i INTEGER)",
        "CREATE TABLE b (i INTEGER)",
        "CREATE TABLE c (i INTEGER)",
        "INSERT INTO b VALUES (1)",
        "INSERT INTO a VALUES (2)",
        "DELETE FROM b",
        "FROM ducklake_flush_inlined_data('lake') ORDER BY ALL",
    ],
    "merge of a sorted table": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t SELECT 20 - i, 'a' FROM range(20) AS r(i)",
        # without a gap in the row ids, the reference mixes them up when it sorts
        "INSERT INTO t SELECT i, 'gone' FROM range(20) AS r(i)",
        "DELETE FROM t WHERE s = 'gone'",
        "INSERT INTO t SELECT 100 - i, 'b' FROM range(20) AS r(i)",
        "ALTER TABLE t SET SORTED BY (s DESC, i ASC)",
        "ALTER TABLE t RENAME COLUMN s TO name",
        "FROM ducklake_merge_adjacent_files('lake')",
        "FROM t LIMIT 5",
        "DELETE FROM t WHERE i < 15",
        "FROM ducklake_rewrite_data_files('lake', delete_threshold => 0)",
    ],
    "second deletion": [
        "CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(100) AS r(i)",
        "DELETE FROM t WHERE i < 20",
        "DELETE FROM t WHERE i < 40",
        "DELETE FROM t WHERE i = 41",
        "DELETE FROM t WHERE i < 60",
        "UPDATE t SET i = i + 1000 WHERE i > 80",
        "BEGIN",
        "DELETE FROM t WHERE i < 62",
        "DELETE FROM t WHERE i < 75",
        "COMMIT",
        "DELETE FROM t",
    ],
    "merge": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t SELECT i, 'a' FROM range(20) AS r(i)",
        "INSERT INTO t SELECT i, 'b' FROM range(20, 40) AS r(i)",
        "UPDATE t SET s = 'c' WHERE i >= 25",
        "INSERT INTO t SELECT i, 'd' FROM range(40, 60) AS r(i)",
        "INSERT INTO t SELECT i, 'd' FROM range(60, 80) AS r(i)",
        "FROM ducklake_merge_adjacent_files('lake')",
        "FROM ducklake_merge_adjacent_files('lake', 't')",
        "INSERT INTO t SELECT i, 'e' FROM range(80, 100) AS r(i)",
        "FROM ducklake_merge_adjacent_files('lake', 't', schema => 'main')",
    ],
    "merge of adjacent rows": [
        "CREATE TABLE t (i INTEGER)",
        "INSERT INTO t SELECT i FROM range(20) AS r(i)",
        "INSERT INTO t SELECT i FROM range(20, 40) AS r(i)",
        "FROM ducklake_merge_adjacent_files('lake')",
    ],
    "merge within versions and partitions": [
        "CREATE TABLE t (i INTEGER, p INTEGER)",
        "ALTER TABLE t SET PARTITIONED BY (p)",
        "INSERT INTO t SELECT i, i % 2 FROM range(40) AS r(i)",
        "INSERT INTO t SELECT i, 1 FROM range(40) AS r(i)",
        "ALTER TABLE t ADD COLUMN n INTEGER",
        "INSERT INTO t SELECT i, i % 2, i FROM range(40) AS r(i)",
        "SELECT sum(files_processed), sum(files_created) FROM ducklake_merge_adjacent_files('lake', 't')",
    ],
    "merge with limits": [
        "CREATE TABLE t (i INTEGER)",
        *(f"INSERT INTO t SELECT i FROM range({n}, {n + 20}) AS r(i)" for n in range(0, 120, 20)),
        "FROM ducklake_merge_adjacent_files('lake', 't', max_compacted_files => 1)",
        "FROM ducklake_merge_adjacent_files('lake', 't', max_file_size => 10)",
        "FROM ducklake_merge_adjacent_files('lake', 't', min_file_size => 100000)",
        "FROM ducklake_merge_adjacent_files('lake', 't')",
    ],
    "rewrite": [
        "CREATE TABLE t AS SELECT i::INTEGER AS i, 'x' AS s FROM range(100) AS r(i)",
        "INSERT INTO t SELECT i, 'y' FROM range(100, 200) AS r(i)",
        "DELETE FROM t WHERE i BETWEEN 20 AND 80",
        "DELETE FROM t WHERE i BETWEEN 100 AND 140",
        "DELETE FROM t WHERE i = 99",
        "FROM ducklake_rewrite_data_files('lake')",
        "FROM ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.5)",
        "FROM ducklake_rewrite_data_files('lake', delete_threshold => 0)",
        "INSERT INTO t VALUES (1000, 'z')",
        "DELETE FROM t WHERE i = 0",
    ],
    "merge of flushed rows": [
        "CREATE TABLE t (i INTEGER)",
        "INSERT INTO t VALUES (1), (2)",
        "INSERT INTO t VALUES (3)",
        "FROM ducklake_flush_inlined_data('lake')",
        "INSERT INTO t VALUES (4), (5)",
        "FROM ducklake_flush_inlined_data('lake')",
        "INSERT INTO t SELECT i FROM range(20, 40) AS r(i)",
        "FROM ducklake_merge_adjacent_files('lake')",
    ],
    "maintenance within a transaction": [
        "CREATE TABLE t (i INTEGER)",
        "INSERT INTO t VALUES (2), (1), (3)",
        "DELETE FROM t WHERE i = 3",
        "BEGIN",
        "ALTER TABLE t SET SORTED BY (i DESC)",
        "FROM ducklake_flush_inlined_data('lake')",
        "SELECT rowid, snapshot_id, * FROM t ORDER BY i",
        "COMMIT",
        "INSERT INTO t SELECT i FROM range(10, 30) AS r(i)",
        "INSERT INTO t SELECT i FROM range(30, 50) AS r(i)",
        "BEGIN",
        "FROM ducklake_merge_adjacent_files('lake')",
        "SELECT rowid, snapshot_id, * FROM t ORDER BY i",
        "ROLLBACK",
    ],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_metadata_and_rows_equal_the_references(
    script: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    results: list[Any] = []
    attach(reference, f"ducklake:{tmp_path}/theirs.ducklake", data_path=tmp_path / "theirs")
    for statement in SCRIPTS[script]:
        rows = reference.execute(statement).fetchall()
        results.append(rows if statement.startswith(("FROM", "SELECT")) else None)
    detach(reference)
    uri = f"ducklake:{tmp_path}/ours.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/ours", engine="duckdb") as session:
        for statement, expected in zip(SCRIPTS[script], results, strict=True):
            result = session.sql(statement)
            if expected is not None:
                assert result.fetchall() == expected, statement
        assert not session.spark_started
        history = our_history(session, "duckdb")
    theirs, ours = metadata(reference, f"ducklake:{tmp_path}/theirs.ducklake"), metadata(reference, uri)
    assert ours.keys() == theirs.keys()
    for table, rows in theirs.items():
        assert ours[table] == rows, table
    assert reference_history(reference, f"ducklake:{tmp_path}/theirs.ducklake") == history
    assert reference_history(reference, uri) == history
