"""One lake, two clients, on every kind of catalog: each reads what the other wrote, at every snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, our_history, reference_history

OURS = [
    "CREATE TABLE t (i INTEGER, s VARCHAR DEFAULT 'x', d DOUBLE, day DATE, ts TIMESTAMP, n DECIMAL(10,2), "
    "st STRUCT(a INTEGER, b VARCHAR[]))",
    "INSERT INTO t VALUES (-1, 'it''s', 'nan', DATE '1999-12-31', TIMESTAMP '2020-01-02 03:04:05.6', 1.25, "
    "{'a': 1, 'b': ['x, y', NULL]}), (-2, NULL, NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO t BY NAME SELECT i::INTEGER AS i, 'n' || i AS s, i / 7 AS d, DATE '2020-01-01' + i::INTEGER AS day "
    "FROM range(200) AS r(i)",
    "DELETE FROM t WHERE i IN (-2, 3, 4)",
    "DELETE FROM t WHERE i BETWEEN 20 AND 50",
    "DELETE FROM t WHERE i BETWEEN 51 AND 80",
    "UPDATE t SET s = 'few' WHERE i IN (-1, 100)",
    "UPDATE t SET s = 'many', d = d + 1 WHERE i > 120",
    "ALTER TABLE t ADD COLUMN k INTEGER DEFAULT 7",
    "ALTER TABLE t RENAME COLUMN s TO text",
    "ALTER TABLE t SET PARTITIONED BY (k)",
    "INSERT INTO t BY NAME SELECT 1000 + i::INTEGER AS i, (i % 3)::INTEGER AS k FROM range(60) AS r(i)",
    "ALTER TABLE t DROP COLUMN d",
    "CREATE SCHEMA other",
    "CREATE TABLE other.u AS SELECT 1 AS a, 'b' AS b",
]
THEIRS = [
    "INSERT INTO t (i, text) VALUES (-3, 'theirs')",
    "DELETE FROM t WHERE i BETWEEN 81 AND 99",
    "UPDATE t SET text = 'theirs' WHERE i < 0 OR k = 2",
    "UPDATE other.u SET b = 'c'",
    "ALTER TABLE t RENAME COLUMN text TO words",
    "INSERT INTO t BY NAME SELECT 2000 + i AS i, 5 AS k FROM range(50) AS r(i)",
    "DELETE FROM t WHERE k = 5 AND i % 2 = 0",
    "CREATE TABLE z AS SELECT i FROM range(30) AS r(i)",
]
OURS_AGAIN = [
    "DELETE FROM t WHERE k = 5 AND i > 2030",
    "UPDATE t SET words = 'ours' WHERE k = 5 OR i = -3",
    "INSERT INTO other.u VALUES (2, 'd')",
    "DROP TABLE z",
]


def test_each_reads_what_the_other_wrote(
    lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection, spark: Any
) -> None:
    uri = lake_uri()
    session = dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", spark=spark, engine="spark")

    def both_read_the_same() -> None:
        expected = reference_history(reference, uri)
        assert our_history(session, "duckdb") == expected

    for statement in OURS:
        session.sql(statement)
    both_read_the_same()
    attach(reference, uri)
    for statement in THEIRS:
        reference.execute(statement)
    detach(reference)
    both_read_the_same()
    for statement in OURS_AGAIN:
        session.sql(statement)
    both_read_the_same()
    newest = session.current_snapshot().snapshot_id
    assert newest == len(OURS) + len(THEIRS) + len(OURS_AGAIN)
    for table in ("t", "other.u"):
        sql = f"SELECT rowid, * FROM {table}"
        rows = [sorted(map(repr, session.sql(sql, engine=engine).fetchall())) for engine in ("spark", "duckdb")]
        assert rows[0] == rows[1]
