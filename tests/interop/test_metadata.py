"""Metadata after some statements through the reference and through us: equal, row for row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, metadata

pytestmark = pytest.mark.sampled(4)

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
    "defaults": [
        "CREATE TABLE t (a DATE DEFAULT DATE '2020-01-01', b TIMESTAMPTZ DEFAULT now(), c INTEGER DEFAULT 1 + 1, "
        "d TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP, e INTEGER DEFAULT -3, f VARCHAR DEFAULT NULL, g DOUBLE DEFAULT 7, "
        "h BOOLEAN DEFAULT true, i INTEGER DEFAULT '42', j DECIMAL(5,2) DEFAULT 1.5, k VARCHAR DEFAULT 12, "
        "n UUID DEFAULT uuid(), o INTEGER DEFAULT 3::BIGINT, p VARCHAR DEFAULT 'it''s', r BOOLEAN DEFAULT 'f', "
        "s FLOAT DEFAULT 1e3, u TIMESTAMP DEFAULT '2020-01-01')",
        "ALTER TABLE t ADD COLUMN late DATE DEFAULT '2020-01-01'",
        "ALTER TABLE t ALTER a SET DEFAULT '2021-01-01'",
        "ALTER TABLE t ALTER COLUMN a DROP DEFAULT",
        "ALTER TABLE t ALTER c SET DEFAULT 5",
        "CREATE TABLE u (i INTEGER, j INTEGER DEFAULT 1 + 1, d DATE DEFAULT DATE '2020-01-01', s VARCHAR DEFAULT 'x')",
        "INSERT INTO u (i) VALUES (1), (2)",
        "INSERT INTO u VALUES (3, DEFAULT, DEFAULT, DEFAULT)",
        "INSERT INTO u DEFAULT VALUES",
    ],
    "not null": [
        "CREATE TABLE t (i INTEGER, j INTEGER NOT NULL)",
        "INSERT INTO t VALUES (1, 2)",
        "ALTER TABLE t ALTER i SET NOT NULL",
        "ALTER TABLE t ALTER COLUMN j DROP NOT NULL",
        "INSERT INTO t VALUES (1, NULL)",
        "ALTER TABLE t DROP COLUMN i",
    ],
    "widening": [
        "CREATE TABLE t (i TINYINT, f FLOAT, d DECIMAL(4,1), day DATE, u USMALLINT)",
        "INSERT INTO t VALUES (1, 1.5, 2.5, DATE '2020-01-02', 7)",
        "ALTER TABLE t ALTER i TYPE INTEGER",
        "ALTER TABLE t ALTER i SET DATA TYPE BIGINT",
        "ALTER TABLE t ALTER COLUMN f SET TYPE DOUBLE",
        "ALTER TABLE t ALTER d TYPE DECIMAL(10,2)",
        "ALTER TABLE t ALTER day TYPE TIMESTAMP",
        "ALTER TABLE t ALTER u TYPE INTEGER",
        "INSERT INTO t VALUES (10000000000, 1e300, 12345.67, TIMESTAMP '2020-01-02 03:04:05', 100000)",
    ],
    "nested columns": [
        "CREATE TABLE t (s STRUCT(a INTEGER, b STRUCT(c VARCHAR)), l STRUCT(x INTEGER)[], m MAP(VARCHAR, STRUCT(y INTEGER)))",
        "INSERT INTO t VALUES ({'a': 1, 'b': {'c': 'x'}}, [{'x': 1}, NULL], MAP {'k': {'y': 2}}), (NULL, NULL, NULL)",
        "ALTER TABLE t ADD COLUMN s.d INTEGER DEFAULT 7",
        "ALTER TABLE t ADD COLUMN s.b.e STRUCT(q INTEGER)",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS s.d INTEGER",
        "ALTER TABLE t ADD COLUMN l.element.z VARCHAR",
        "ALTER TABLE t ADD COLUMN m.value.w DOUBLE",
        "INSERT INTO t VALUES ({'a': 3, 'b': {'c': 'y', 'e': {'q': 4}}, 'd': 5}, [{'x': 2, 'z': 'zz'}], "
        "MAP {'l': {'y': 3, 'w': 0.5}})",
        "ALTER TABLE t RENAME s.a TO aa",
        "ALTER TABLE t DROP COLUMN s.b",
        "ALTER TABLE t DROP COLUMN IF EXISTS s.b",
        "ALTER TABLE t DROP l.element.x",
        "ALTER TABLE t ALTER COLUMN s SET DATA TYPE STRUCT(aa BIGINT, d INTEGER, n VARCHAR)",
        "ALTER TABLE t ALTER COLUMN s TYPE STRUCT(n VARCHAR, aa BIGINT)",
        "ALTER TABLE t RENAME s TO ss",
        "ALTER TABLE t RENAME ss.n TO kk",
        "INSERT INTO t (ss) VALUES ({'aa': 9, 'kk': 'w'})",
        "UPDATE t SET ss = {'aa': 10, 'kk': 'v'} WHERE ss IS NULL",
    ],
    "sort keys": [
        "CREATE TABLE t (i INTEGER, s VARCHAR, d TIMESTAMP)",
        "ALTER TABLE t SET SORTED BY (i)",
        "ALTER TABLE t SET SORTED BY (s DESC NULLS FIRST, i ASC NULLS LAST)",
        "ALTER TABLE t SET SORTED BY (lower(s), i + 1 DESC, date_trunc('day', d), d::DATE)",
        'ALTER TABLE t RENAME COLUMN s TO "a name"',
        "ALTER TABLE t RENAME COLUMN i TO j",
        "INSERT INTO t VALUES (2, 'b', NULL), (1, 'a', NULL)",
        "ALTER TABLE t RESET SORTED BY",
        "ALTER TABLE t SET SORTED BY (j)",
        "DROP TABLE t",
    ],
    "options": [
        "CREATE TABLE t (i INTEGER)",
        "CREATE SCHEMA s",
        "CALL lake.set_option('target_file_size', '1.5MB')",
        "CALL lake.set_option('target_file_size', '2GiB')",
        "CALL lake.set_option('Parquet_Compression', 'ZSTD', table_name => 't')",
        "CALL lake.set_option('hive_file_pattern', false, schema => 's')",
        "CALL ducklake_set_option('lake', 'rewrite_delete_threshold', 0.5)",
        "CALL lake.set_option('delete_older_than', '1 week')",
        "CALL lake.set_option('auto_compact', 0)",
        "CALL lake.set_option('parquet_version', '2')",
        "CALL lake.set_option('data_inlining_row_limit', 2)",
        "BEGIN",
        "CALL lake.set_option('data_inlining_row_limit', 7)",
        "ROLLBACK",
        "CALL lake.set_option('data_inlining_row_limit', 0, schema => 'main', table_name => 't')",
        "CREATE TABLE s.u (i INTEGER)",
        "ALTER TABLE t ADD COLUMN j INTEGER",
    ],
    "buckets": [
        "CREATE TABLE t (i INTEGER, s VARCHAR, d DATE, n DECIMAL(10,2), b BOOLEAN, ts TIMESTAMP)",
        "ALTER TABLE t SET PARTITIONED BY (bucket(4, i))",
        "INSERT INTO t SELECT i, 's' || i, DATE '2020-01-01' + i::INTEGER, i, i > 5, NULL FROM range(-6, 20) r(i)",
        *(
            statement
            for column in ("s", "d", "n", "b", "ts")
            for statement in (
                f"ALTER TABLE t SET PARTITIONED BY (bucket(3, {column}))",
                "INSERT INTO t SELECT i, CASE WHEN i > 3 THEN 'text ' || i END, DATE '1960-01-01' + i::INTEGER, i / 4, "
                "i % 2 = 0, TIMESTAMP '2021-02-03 04:05:06.789' FROM range(30) r(i)",
            )
        ),
    ],
    "buckets of nested columns": [
        "CREATE TABLE t (r STRUCT(i INTEGER, s VARCHAR), l DOUBLE[], m MAP(VARCHAR, DATE))",
        *(
            statement
            for column in ("r", "l", "m")
            for statement in (
                f"ALTER TABLE t SET PARTITIONED BY (bucket(3, {column}))",
                "INSERT INTO t SELECT {'i': i, 's': 'it''s ' || i}, CASE WHEN i > 3 THEN [i / 4, NULL] END, "
                "MAP {'a, b': DATE '1960-01-01' + i::INTEGER} FROM range(20) r(i)",
            )
        ),
    ],
    "no hive folders": [
        "CREATE TABLE t (i INTEGER)",
        "ALTER TABLE t SET PARTITIONED BY (i)",
        "CALL lake.set_option('hive_file_pattern', false)",
        "INSERT INTO t SELECT i % 2 FROM range(20) r(i)",
    ],
    "alterations in a transaction": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t VALUES (1, 'a')",
        "BEGIN",
        "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7",
        "ALTER TABLE t ALTER n TYPE BIGINT",
        "ALTER TABLE t RENAME COLUMN i TO j",
        "ALTER TABLE t ALTER s SET DEFAULT 'q'",
        "INSERT INTO t (j) VALUES (2)",
        "COMMIT",
        "BEGIN",
        "CREATE TABLE u (i INTEGER)",
        "ALTER TABLE u ADD COLUMN k VARCHAR",
        "INSERT INTO u VALUES (1, 'x')",
        "ALTER TABLE u RENAME TO v",
        "COMMIT",
    ],
    "create table as": [
        "CREATE TABLE t AS SELECT 42 AS x, DATE '2020-01-01' AS d",
        "CREATE OR REPLACE TABLE t AS SELECT 'a' AS s",
        "CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS y",
    ],
    "rows in files": [
        "CREATE TABLE t (i INTEGER, s VARCHAR, d DOUBLE, f FLOAT, b BOOLEAN, day DATE, n DECIMAL(10,2), x BLOB, u UUID)",
        "INSERT INTO t SELECT i, 'v' || i, i / 3, CASE WHEN i = 7 THEN 'NaN'::FLOAT ELSE i END, i % 2 = 0, "
        "DATE '2020-01-01' + CAST(i AS INTEGER), i * 1.25, ('b' || i)::BLOB, "
        "('00000000-0000-0000-0000-0000000000' || (i + 10))::UUID FROM range(20) r(i)",
        "INSERT INTO t (i, s) SELECT i, CASE WHEN i > 5 THEN repeat('x', 300) END FROM range(12) r(i)",
        "CREATE TABLE c AS SELECT i, i % 3 AS k FROM range(30) r(i)",
    ],
    "nested rows in files": [
        "CREATE TABLE t (st STRUCT(a INTEGER, b VARCHAR[]), m MAP(VARCHAR, DOUBLE), l INTEGER[][])",
        "INSERT INTO t SELECT {'a': i, 'b': ['x' || i, NULL]}, MAP {'k' || i: i / 2}, [[i, NULL], [], NULL] "
        "FROM range(15) r(i)",
        "INSERT INTO t SELECT NULL, NULL, NULL FROM range(11)",
    ],
    "partitioned rows in files": [
        "CREATE TABLE t (i INTEGER, d DATE, s VARCHAR)",
        "ALTER TABLE t SET PARTITIONED BY (s, year(d), month(d))",
        "INSERT INTO t SELECT i, DATE '2020-11-15' + CAST(i * 10 AS INTEGER), CASE WHEN i > 8 THEN 'a b' ELSE 'c/d' END "
        "FROM range(12) r(i)",
    ],
    "views": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "CREATE SCHEMA s",
        "CREATE VIEW v AS SELECT * FROM t WHERE i > 1 AND s ILIKE 'a%'",
        'CREATE VIEW v2(a, "b c") AS SELECT i, x.s FROM lake.t AS x',
        "CREATE VIEW s.w AS FROM lake.main.v2 ORDER BY ALL",
        "CREATE VIEW s.l AS SELECT list_transform([1, i], x -> x + 1) AS l, {'k': i} AS k, 'lake.t' AS text FROM lake.main.t",
        "CREATE OR REPLACE VIEW v AS SELECT 1 AS x",
        "CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS x",
        "ALTER VIEW v RENAME TO vv",
        "COMMENT ON VIEW vv IS 'first'",
        "COMMENT ON VIEW vv IS 'second'",
        "ALTER VIEW vv RENAME TO v",
        "DROP VIEW s.w",
        "DROP VIEW v",
        "DROP VIEW IF EXISTS v",
        "DROP SCHEMA s CASCADE",
    ],
    "views in a transaction": [
        "BEGIN",
        "CREATE TABLE t (i INTEGER)",
        "CREATE VIEW v AS SELECT i FROM t",
        "ALTER VIEW v RENAME TO w",
        "COMMENT ON VIEW w IS 'it'",
        "COMMIT",
        "BEGIN",
        "DROP VIEW w",
        "CREATE VIEW w AS SELECT 3 AS i",
        "COMMIT",
    ],
    "macros": [
        "CREATE MACRO plus(a, b := 5) AS a + b",
        "CREATE MACRO typed(x INTEGER, y VARCHAR := 'it''s', z := 1.50, d := DATE '2020-01-02') AS x + 1",
        "CREATE MACRO m() AS 0, (a) AS a, (a, b) AS a + b",
        'CREATE TABLE t (i INTEGER, "a name" VARCHAR)',
        'CREATE MACRO rows_of(lo, _name) AS TABLE SELECT * FROM t WHERE i >= lo OR "a name" = _name',
        "CREATE MACRO IF NOT EXISTS plus(a) AS a",
        "CREATE OR REPLACE MACRO plus(a, b) AS a || b",
        "CREATE SCHEMA s",
        "CREATE FUNCTION s.best(x) AS (SELECT max(i) + x FROM lake.main.t)",
        "DROP MACRO m",
        "DROP MACRO TABLE rows_of",
        "DROP SCHEMA s CASCADE",
    ],
    "comments": [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "COMMENT ON TABLE t IS 'first'",
        "COMMENT ON TABLE t IS 'it''s'",
        "COMMENT ON COLUMN t.i IS 'a number'",
        "COMMENT ON COLUMN lake.main.t.i IS 'another'",
        "COMMENT ON COLUMN t.s IS 'text'",
        "COMMENT ON TABLE t IS NULL",
        "COMMENT ON COLUMN t.i IS NULL",
        "ALTER TABLE t DROP COLUMN i",
        "DROP TABLE t",
        "BEGIN",
        "CREATE TABLE u (i INTEGER)",
        "COMMENT ON TABLE u IS 'new'",
        "COMMENT ON COLUMN u.i IS 'new too'",
        "COMMIT",
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
def test_metadata_equals_the_references(
    script: str, lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    uris = {side: lake_uri(side) for side in ("theirs", "ours")}
    attach(reference, uris["theirs"], data_path=tmp_path / "theirs_data")
    for statement in SCRIPTS[script]:
        reference.execute(statement)
    detach(reference)
    with dl.connect(uris["ours"], alias="lake", data_path=f"{tmp_path}/ours_data") as session:
        for statement in SCRIPTS[script]:
            session.sql(statement)
        assert not session.spark_started
    theirs, ours = metadata(reference, uris["theirs"]), metadata(reference, uris["ours"])
    assert ours.keys() == theirs.keys()
    for table, rows in theirs.items():
        assert ours[table] == rows, table
