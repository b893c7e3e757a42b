"""Whole lakes with odd histories, made by either client: the doctor finds nothing in them."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.reference import connect

pytestmark = pytest.mark.sampled(5, "clean lakes")

_FLUSH = "CALL ducklake_flush_inlined_data('lake')"
_MERGE = "CALL ducklake_merge_adjacent_files('lake')"
LAKES = {
    "columns come and go": (
        "CREATE TABLE t (i INTEGER, s VARCHAR, d DATE)",
        "INSERT INTO t SELECT i, 's' || i, DATE '2020-01-01' + i::INTEGER FROM range(50) r(i)",
        "ALTER TABLE t DROP COLUMN s",
        "INSERT INTO t SELECT i, NULL FROM range(50, 90) r(i)",
        "ALTER TABLE t ADD COLUMN s INTEGER DEFAULT 7",
        "INSERT INTO t VALUES (1000, NULL, 3), (-5, '-infinity', NULL)",
        "DELETE FROM t WHERE i % 10 = 3",
        "ALTER TABLE t RENAME COLUMN s TO s2",
        "UPDATE t SET s2 = 9 WHERE i < 5",
        "ALTER TABLE t ADD COLUMN s VARCHAR",
        "INSERT INTO t VALUES (7, NULL, 1, 'zz')",
    ),
    "types widen": (
        "CREATE TABLE t (a TINYINT, f FLOAT, b SMALLINT, u UTINYINT)",
        "INSERT INTO t SELECT i, i / 3, i, i FROM range(100) r(i)",
        "INSERT INTO t VALUES (-128, 'nan', -1, 255), (127, '-inf', NULL, 0)",
        "ALTER TABLE t ALTER a TYPE INTEGER",
        "ALTER TABLE t ALTER f TYPE DOUBLE",
        "ALTER TABLE t ALTER b TYPE BIGINT",
        "ALTER TABLE t ALTER u TYPE UINTEGER",
        "INSERT INTO t SELECT 1000000 + i, 1e300, 99999999999, 4000000000 FROM range(30) r(i)",
        "DELETE FROM t WHERE a < 0",
        "UPDATE t SET f = 'nan' WHERE a = 5",
    ),
    "names": (
        'CREATE SCHEMA "odd ""s"',
        'CREATE TABLE "odd ""s"."t.1" ("a b" INTEGER, "SELECT" VARCHAR)',
        """INSERT INTO "odd ""s"."t.1" SELECT i, 'é' || i FROM range(30) r(i)""",
        'ALTER TABLE "odd ""s"."t.1" RENAME TO "T\'2"',
        """INSERT INTO "odd ""s"."T'2" VALUES (99, '')""",
        'CREATE TABLE "odd ""s"."t.1" (x INTEGER)',
        'DROP TABLE "odd ""s"."t.1"',
        'CREATE TABLE "odd ""s"."t.1" (x INTEGER)',
        'INSERT INTO "odd ""s"."t.1" VALUES (1)',
        'DELETE FROM "odd ""s"."T\'2" WHERE "a b" > 20',
        'DROP TABLE "odd ""s"."T\'2"',
    ),
    "partitions change": (
        "CREATE TABLE t (i INTEGER, p VARCHAR, ts TIMESTAMP)",
        "INSERT INTO t SELECT i, 'p' || i % 3, TIMESTAMP '2020-01-31 23:00:00' + INTERVAL (i) DAY FROM range(60) r(i)",
        "ALTER TABLE t SET PARTITIONED BY (p)",
        "INSERT INTO t SELECT i, nullif('p' || i % 3, 'p1'), NULL FROM range(60, 120) r(i)",
        "ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts))",
        "INSERT INTO t SELECT i, 'a/b=c %', TIMESTAMP '1969-12-31' + INTERVAL (i * 9) DAY FROM range(120, 200) r(i)",
        "INSERT INTO t VALUES (500, '', 'infinity')",
        "ALTER TABLE t RESET PARTITIONED BY",
        "INSERT INTO t SELECT i, 'q', NULL FROM range(10) r(i)",
        "ALTER TABLE t SET PARTITIONED BY (bucket(4, i))",
        "INSERT INTO t SELECT i, 'q', NULL FROM range(50) r(i)",
        "DELETE FROM t WHERE i < 30",
        "UPDATE t SET p = 'u' WHERE i = 100",
        "ALTER TABLE t RENAME COLUMN p TO pp",
        "INSERT INTO t SELECT i, 'q', NULL FROM range(50) r(i)",
    ),
    "partition keys widen": (
        "CREATE TABLE t (i SMALLINT, f FLOAT, d DECIMAL(5, 1), ts TIMESTAMP)",
        "ALTER TABLE t SET PARTITIONED BY (i, f, d, year(ts))",
        "INSERT INTO t SELECT i % 2, i % 2 / 2, i % 2 + 0.5, TIMESTAMP '2020-01-01' + INTERVAL (i % 2) YEAR FROM range(40) r(i)",
        "ALTER TABLE t ALTER i TYPE BIGINT",
        "ALTER TABLE t ALTER f TYPE DOUBLE",
        "INSERT INTO t VALUES (NULL, 'nan', NULL, '-infinity'), (1, -0.0, 2, '2020-05-05')",
        "ALTER TABLE t ALTER d TYPE DECIMAL(12, 4)",
    ),
    "inlined and flushed": (
        "CREATE TABLE t (i INTEGER, s STRUCT(a INTEGER, b VARCHAR), l INTEGER[])",
        "INSERT INTO t VALUES (1, {{'a': 1, 'b': 'x'}}, [1, 2]), (2, NULL, NULL)",
        "ALTER TABLE t ADD COLUMN j BIGINT",
        "INSERT INTO t VALUES (3, {{'a': 3, 'b': NULL}}, [], 5)",
        "UPDATE t SET i = 9 WHERE i = 1",
        "DELETE FROM t WHERE i = 2",
        _FLUSH,
        "INSERT INTO t VALUES (4, NULL, NULL, 6)",
        "DELETE FROM t WHERE i = 3",
        _FLUSH,
        "INSERT INTO t SELECT i, NULL, NULL, i FROM range(40) r(i)",
        "DELETE FROM t WHERE i IN (10, 11)",
        "UPDATE t SET j = -1 WHERE i = 12",
        "ALTER TABLE t DROP COLUMN l",
        "DELETE FROM t WHERE i = 13",
        _FLUSH,
    ),
    "deletion vectors": (
        "CALL lake.set_option('write_deletion_vectors', true)",
        "CREATE TABLE t AS SELECT i, 'x' || i AS s FROM range(200) r(i)",
        "DELETE FROM t WHERE i < 9",
        "DELETE FROM t WHERE i BETWEEN 100 AND 140",
        "UPDATE t SET s = 'q' WHERE i = 50",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.1)",
        "INSERT INTO t SELECT i, 'n' FROM range(100) r(i)",
        "DELETE FROM t WHERE s = 'n' AND i % 2 = 0",
        _MERGE,
    ),
    "files added": (
        "CREATE TABLE t (i BIGINT, s VARCHAR)",
        "CALL ducklake_add_data_files('lake', 't', '{files}/plain.parquet')",
        "CREATE TABLE u (old_i BIGINT, s VARCHAR)",
        "CALL ducklake_add_data_files('lake', 'u', '{files}/extra.parquet', ignore_extra_columns => true)",
        "ALTER TABLE u RENAME COLUMN old_i TO i",
        "ALTER TABLE u ADD COLUMN z INTEGER DEFAULT 4",
        "CREATE TABLE h (i BIGINT, s VARCHAR, k BIGINT)",
        "CALL ducklake_add_data_files('lake', 'h', '{files}/hive/k=7/f.parquet', hive_partitioning => true)",
        "DELETE FROM u WHERE i < 4",
        "DELETE FROM t WHERE i = 21",
        "DELETE FROM h WHERE i < 45",
        "UPDATE u SET z = 5 WHERE i = 10",
    ),
    "entries": (
        "CREATE SCHEMA a",
        "CREATE TABLE a.t (i INTEGER)",
        "CREATE VIEW a.v AS SELECT * FROM a.t",
        "CREATE OR REPLACE VIEW a.v AS SELECT i + 1 AS j FROM a.t",
        "CREATE MACRO a.m(x) AS x + 1",
        "CREATE OR REPLACE MACRO a.m(x) AS x + 2",
        "COMMENT ON TABLE a.t IS 'c'",
        "COMMENT ON COLUMN a.t.i IS 'd'",
        "COMMENT ON COLUMN a.t.i IS 'e'",
        "COMMENT ON VIEW a.v IS 'vv'",
        "DROP VIEW a.v",
        "DROP MACRO a.m",
        "CREATE MACRO a.m(x) AS x",
        "INSERT INTO a.t VALUES (1)",
        "DROP SCHEMA a CASCADE",
        "CREATE SCHEMA a",
        "CREATE TABLE a.t (i VARCHAR)",
        "INSERT INTO a.t VALUES ('q')",
    ),
    "maintained": (
        "CREATE TABLE t AS SELECT i, 'x' || i AS s FROM range(100) r(i)",
        "DELETE FROM t WHERE i < 9",
        "INSERT INTO t SELECT i, 'b' FROM range(100, 150) r(i)",
        "ALTER TABLE t ADD COLUMN n INTEGER",
        "INSERT INTO t SELECT i, 'b', i FROM range(150, 200) r(i)",
        "DELETE FROM t WHERE i > 190",
        "CREATE TABLE gone AS SELECT 1 AS x",
        "DROP TABLE gone",
        _MERGE,
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
        "CALL ducklake_expire_snapshots('lake', older_than => now())",
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
        "INSERT INTO t SELECT i, 'c', 1 FROM range(10) r(i)",
        "DELETE FROM t WHERE i = 3",
    ),
    "nested": (
        "CREATE TABLE t (s STRUCT(a INTEGER, b STRUCT(c VARCHAR, d DECIMAL(30, 4))), m MAP(VARCHAR, INTEGER), l STRUCT(x FLOAT)[])",
        "INSERT INTO t SELECT {{'a': i, 'b': {{'c': 'x' || i, 'd': i}}}}, MAP {{'k': i}}, [{{'x': i}}] FROM range(50) r(i)",
        "ALTER TABLE t ADD COLUMN s.e INTEGER",
        "INSERT INTO t SELECT {{'a': i, 'b': {{'c': 'x' || i, 'd': i}}, 'e': 4}}, NULL, NULL FROM range(50) r(i)",
        "ALTER TABLE t DROP COLUMN s.a",
        "ALTER TABLE t RENAME COLUMN s.e TO f",
        "INSERT INTO t SELECT {{'b': {{'c': 'x' || i, 'd': i}}, 'f': 4}}, NULL, [] FROM range(50) r(i)",
        "DELETE FROM t WHERE s.f = 4 AND s.b.d < 10",
    ),
    "types": (
        "CREATE TABLE t (u UUID, b BLOB, tz TIMESTAMPTZ, tm TIME, iv INTERVAL, h HUGEINT, dc DECIMAL(38, 10), bo BOOLEAN, "
        "ns TIMESTAMP_NS, js JSON, bg BIGINT, ub UBIGINT, tt TIMETZ, v VARCHAR)",
        "INSERT INTO t SELECT uuid(), ('\\x00\\xFF' || i)::BLOB, now(), TIME '23:59:59.999999', INTERVAL (i) MONTH, 7::HUGEINT, "
        "-9999999999999999999999999999.9999999999, i % 2 = 0, '2262-04-11 23:47:16.854775806', '1', -9223372036854775808, "
        "18446744073709551615, '12:00:00+15:59:59', chr(1) || repeat('z', 300) FROM range(60) r(i)",
        "INSERT INTO t (v, dc, tz) VALUES ('', 1e-10, 'infinity'), (repeat(chr(128512), 200), 0, '-infinity')",
        "DELETE FROM t WHERE bo",
    ),
    "transactions": (
        "CREATE TABLE t (i INTEGER)",
        "BEGIN",
        "INSERT INTO t SELECT i FROM range(50) r(i)",
        "DELETE FROM t WHERE i < 10",
        "ALTER TABLE t ADD COLUMN j INTEGER",
        "INSERT INTO t SELECT i, i FROM range(20) r(i)",
        "UPDATE t SET j = 5 WHERE i = 15",
        "CREATE TABLE w AS SELECT * FROM t",
        "DELETE FROM w WHERE i > 15",
        "COMMIT",
        "BEGIN",
        "DELETE FROM t",
        "INSERT INTO t SELECT 1, 2 FROM range(30)",
        "COMMIT",
        "DELETE FROM t",
        "INSERT INTO t VALUES (1, 1)",
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parquet files of other writers."""
    folder = tmp_path_factory.mktemp("files")
    os.makedirs(folder / "hive" / "k=7")
    for name, columns, start in (
        ("extra", "i AS old_i, 's' || i AS s, i AS extra", 0),
        ("plain", "i, 's' || i AS s", 20),
        ("hive/k=7/f", "i, 's' || i AS s", 40),
    ):
        duckdb.execute(f"COPY (SELECT {columns} FROM range({start}, {start + 20}) r(i)) TO '{folder}/{name}.parquet'")
    return folder


@pytest.mark.parametrize("name", LAKES)
@pytest.mark.parametrize("inlined", [0, 20])
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_nothing_is_found(name: str, inlined: int, maker: str, files: Path, tmp_path: Path) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    attach = f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/d', DATA_INLINING_ROW_LIMIT {inlined}); USE lake"
    if maker == "theirs":
        reference = connect()
        for statement in (attach, *LAKES[name]):
            reference.execute(statement.format(files=files))
        reference.close()
    with dl.Session(engine="duckdb") as session:
        session.sql(attach)
        for statement in LAKES[name] if maker == "ours" else ():
            session.sql(statement.format(files=files))
        found = session.doctor(deep=True)
        assert not found.is_ill, [(one.check, one.object, one.finding) for one in found.findings]


def test_an_encrypted_lake(tmp_path: Path) -> None:
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/d", encrypted=True, engine="duckdb"
    ) as session:
        session.sql("CREATE TABLE t AS SELECT i, 'x' || i AS s FROM range(100) r(i); DELETE FROM t WHERE i < 9")
        session.sql("DELETE FROM t WHERE i = 50; UPDATE t SET s = 'u' WHERE i = 60; INSERT INTO t VALUES (1, 'a')")
        session.sql("CALL merge_adjacent_files()")
        assert not session.doctor(deep=True).is_ill
