"""The same statements through the reference and through us leave the same metadata, row for row."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, metadata

SCRIPTS = {
    "create": [
        "CREATE TABLE t (i INTEGER, s VARCHAR DEFAULT 'x', d DECIMAL(10,2), n INTEGER NOT NULL)",
        "CREATE TABLE nested (st STRUCT(a INTEGER, b VARCHAR[]), m MAP(VARCHAR, INTEGER), l INTEGER[][])",
        "CREATE SCHEMA other",
        "CREATE TABLE other.t (x BIGINT)",
    ],
    "drop": [
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (i INTEGER)",
        "DROP TABLE s.t",
        "CREATE TABLE s.u (i INTEGER)",
        "DROP SCHEMA s CASCADE",
    ],
    "inlined insert": [
        "CREATE TABLE t (i INTEGER, s VARCHAR, d DOUBLE, b BOOLEAN, day DATE, ts TIMESTAMP)",
        "INSERT INTO t VALUES (1, 'a', 1.5, true, DATE '2020-01-02', TIMESTAMP '2020-01-02 03:04:05.5')",
        "INSERT INTO t VALUES (2, NULL, NULL, false, NULL, NULL), (3, '', -1e300, NULL, NULL, NULL)",
        "INSERT INTO t (i) VALUES (-7)",
    ],
    "inlined nested": [
        "CREATE TABLE t (st STRUCT(a INTEGER, b VARCHAR[]), m MAP(VARCHAR, INTEGER))",
        "INSERT INTO t VALUES ({'a': 1, 'b': ['x', 'y']}, MAP {'k': 1})",
        "INSERT INTO t VALUES (NULL, NULL)",
    ],
    "inlined delete and update": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "DELETE FROM t WHERE i = 2",
        "UPDATE t SET s = 'z' WHERE i = 3",
        "INSERT INTO t VALUES (4, 'd')",
        "UPDATE t SET i = i + 10",
    ],
    "alter": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t VALUES (1, 'a')",
        "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7",
        "ALTER TABLE t RENAME COLUMN s TO s2",
        "INSERT INTO t VALUES (2, 'b', 8)",
        "ALTER TABLE t DROP COLUMN i",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE u ADD COLUMN i INTEGER",
        "INSERT INTO u VALUES ('c', 9, 10)",
    ],
    "partition": [
        "CREATE TABLE t (i INTEGER, d DATE)",
        "ALTER TABLE t SET PARTITIONED BY (i)",
        "ALTER TABLE t SET PARTITIONED BY (year(d), month(d))",
        "ALTER TABLE t RESET PARTITIONED BY",
    ],
    "create table as": [
        "CREATE TABLE t AS SELECT 42 AS x, DATE '2020-01-01' AS d",
        "CREATE OR REPLACE TABLE t AS SELECT 'a' AS s",
        "CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS y",
    ],
    "transaction": [
        "BEGIN",
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (i INTEGER)",
        "INSERT INTO s.t VALUES (1), (2)",
        "COMMIT",
        "BEGIN",
        "INSERT INTO s.t VALUES (3)",
        "DELETE FROM s.t WHERE i = 1",
        "COMMIT",
        "BEGIN",
        "DROP TABLE s.t",
        "ROLLBACK",
    ],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_metadata_equals_the_references(script: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    attach(reference, f"ducklake:{tmp_path}/theirs.ducklake", data_path=tmp_path / "theirs")
    for statement in SCRIPTS[script]:
        reference.execute(statement)
    detach(reference)
    with dl.connect(f"ducklake:{tmp_path}/ours.ducklake", alias="lake", data_path=f"{tmp_path}/ours") as session:
        for statement in SCRIPTS[script]:
            session.sql(statement)
        assert not session.spark_started
    theirs, ours = metadata(f"{tmp_path}/theirs.ducklake"), metadata(f"{tmp_path}/ours.ducklake")
    assert ours.keys() == theirs.keys()
    for table, rows in theirs.items():
        assert ours[table] == rows, table
