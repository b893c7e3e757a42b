"""UPDATE and DELETE find their rows in process, in Spark's workers or by Spark's own reader: all find the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.errors import ConstraintError, DataFileError, SqlError
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.spark import duckdb_reads

pytestmark = pytest.mark.sampled(5)

ROWS = "SELECT rowid, * FROM t ORDER BY ALL"
CHANGES = (
    "UPDATE t SET s = upper(s) || '!', d = CASE WHEN i % 3 = 0 THEN NULL ELSE d / 2 END WHERE i % 7 = 3",
    "DELETE FROM t WHERE rowid % 11 = 5 OR s LIKE 'row 4%'",
    "UPDATE t SET n = {'a': n.a + 1, 'b': list_transform(n.b, lambda x: x * 2)}, added = added - 1 WHERE n.a > 3",
    "DELETE FROM t WHERE d = 'nan' OR u % 10 = 5 OR i IS NULL",
    "UPDATE t SET h = -h",
)


@pytest.fixture
def session(tmp_path: Path, spark: Any) -> Iterator[dl.Session]:
    """A table with files of every kind, deletions in files and in the catalog, and inlined rows."""
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", spark=spark) as session:
        session.sql(
            "CREATE TABLE t (i INTEGER, s VARCHAR, d DOUBLE, n STRUCT(a INTEGER, b INTEGER[]), u UBIGINT, h HUGEINT)"
        )
        values = (
            "SELECT i, 'row ' || i AS s, CASE WHEN i % 5 = 0 THEN 'nan' ELSE i / 4 END::DOUBLE AS d, "
            "{'a': i % 9, 'b': [i, NULL]} AS n, 18446744073709551615 - i AS u, i::HUGEINT * 10**20 AS h"
        )
        session.sql(f"INSERT INTO t {values} FROM range(200) AS r(i)")
        session.sql("ALTER TABLE t ADD COLUMN added INTEGER DEFAULT 5; ALTER TABLE t ADD COLUMN z TIMESTAMPTZ")
        session.sql("DELETE FROM t WHERE i % 13 = 0; DELETE FROM t WHERE i = 8")
        rows = pa.table({"i": pa.array(range(500, 540), pa.int32()), "s": [f"added {i}" for i in range(40)]})
        pq.write_table(rows, tmp_path / "added.parquet")
        session.sql(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/added.parquet', allow_missing => true)")
        session.sql(
            f"INSERT INTO t {values}, 7 AS added, now() - now() + TIMESTAMPTZ '2020-01-01' FROM range(300, 304) AS r(i)"
        )
        yield session


def test_all_ways_find_the_same_rows(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for change in CHANGES:
        found = {way: _changed(session, change, way, monkeypatch) for way in ("in process", "in workers", "Spark")}
        assert set(found.values()) == {found["in process"]}, change
        session.sql(change)


def test_workers_know_the_time_zone(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {zone: [] for zone in ("UTC", "America/New_York")}
    for zone, rows in found.items():
        session.sql(f"SET TimeZone = '{zone}'")
        change = "UPDATE t SET z = '2024-01-01 12:00:00' WHERE z::VARCHAR LIKE '2020-01-01 00%' OR z IS NULL"
        rows += [_changed(session, change, way, monkeypatch) for way in ("in process", "in workers")]
        assert rows[0] == rows[1]
    assert found["UTC"] != found["America/New_York"]


def _changed(session: dl.Session, change: str, way: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The count and all rows after a change, which is undone."""
    with monkeypatch.context() as patched:
        if way != "in process":
            patched.setattr(session, "engine", "spark")
        if way == "Spark":
            patched.setattr(Sources, "row_query", lambda self, plan, loaded: None)
        tasks = _count_tasks(patched)
        session.sql("BEGIN")
        count = session.sql(change).fetchall()
        assert len(tasks) == (way == "in workers")
        found = str((count, session.sql(ROWS, engine="duckdb").fetchall()))
        session.sql("ROLLBACK")
        return found


@pytest.mark.anywhere
def test_large_files_are_read_in_parts(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "engine", "spark")
    monkeypatch.setattr(duckdb_reads, "_TASK_BYTES", 1500)
    tasks = _count_tasks(monkeypatch)
    before = session.sql("SELECT count(*), count(DISTINCT rowid) FROM t WHERE i < 200").fetchall()
    assert session.sql("UPDATE t SET added = -7 WHERE i < 200").fetchall() == [(before[0][0],)]
    assert session.sql("SELECT count(*), count(DISTINCT rowid) FROM t WHERE added = -7").fetchall() == before
    assert tasks[0] > 3


def test_small_files_share_a_task(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "engine", "spark")
    tasks = _count_tasks(monkeypatch)
    session.sql("DELETE FROM t WHERE rowid % 50 = 1")
    monkeypatch.setattr(duckdb_reads, "_SMALL_BYTES", 1)
    session.sql("DELETE FROM t WHERE rowid % 50 = 2")
    assert session.sql("SELECT count(*) FROM t WHERE rowid % 50 IN (1, 2)", engine="duckdb").fetchall() == [(0,)]
    assert tasks == [1, 2]


def test_explain_says_who_finds_the_rows(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def explained(statement: str) -> str:
        return str(session.sql(f"EXPLAIN {statement}").fetchall()[0][1])

    assert "runs in process · 1 of 2 files, 6.2 kB:" in explained("DELETE FROM t WHERE i = 1")
    monkeypatch.setattr(session, "engine", "spark")
    assert "runs in Spark's workers, by DuckDB · asked for:" in explained("UPDATE t SET i = 2 WHERE i = 1")
    assert "runs on Spark · asked for:" in explained("DELETE FROM t WHERE i IN (SELECT max(i) FROM t)")
    assert "runs on Spark · asked for:" in explained("SELECT i FROM t WHERE i = 1")


@pytest.mark.anywhere
def test_errors_of_workers_are_one_line_and_leave_nothing(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "engine", "spark")
    before = session.sql("FROM lake.snapshots()").fetchall()
    with pytest.raises(ConstraintError, match=r"'row .*' is no INTEGER") as caught:
        session.sql("UPDATE t SET added = s::INTEGER WHERE i < 200")
    assert "\n" not in str(caught.value)
    with pytest.raises(SqlError, match=r"^Could not parse string") as caught:
        session.sql("DELETE FROM t WHERE strptime(s, '%Y') > '2020-01-01' AND i < 200")
    assert "\n" not in str(caught.value)
    path = next(file.path for file in session.table("t").files() if file.path.endswith("added.parquet"))
    Path(path).unlink()
    with pytest.raises(DataFileError, match=r"added\.parquet is missing; restore it"):
        session.sql("DELETE FROM t WHERE i > 0")
    assert session.sql("FROM lake.snapshots()").fetchall() == before


def _count_tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tasks of each job that reads in workers."""
    counts: list[int] = []
    original = duckdb_reads.in_tasks

    def counted(spark: Any, pieces: Any, *others: Any) -> Any:
        counts.append(len(pieces))
        return original(spark, pieces, *others)

    monkeypatch.setattr(duckdb_reads, "in_tasks", counted)
    return counts


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT v.a, upper(v.b) FROM v WHERE v.a % 2 = 0 AND v.b LIKE 'x%' AND v.c IS NULL", True),
        ("SELECT CASE WHEN t.a BETWEEN 1 AND 2 THEN CAST(t.a AS VARCHAR) END FROM v AS t", True),
        ("SELECT list_transform(v.l, lambda x, i: x + i + v.a) FROM v", True),
        ("SELECT v.a FROM v WHERE v.a IN (1, 2) OR NOT v.b", True),
        ("SELECT v.a FROM v", True),
        ("SELECT sum(v.a) FROM v", False),
        ("SELECT v.a FROM v ORDER BY v.a", False),
        ("SELECT v.a FROM v LIMIT 1", False),
        ("SELECT DISTINCT v.a FROM v", False),
        ("SELECT v.a FROM v GROUP BY v.a", False),
        ("SELECT v.a FROM v HAVING v.a > 1", False),
        ("SELECT v.a FROM v QUALIFY row_number() OVER () = 1", False),
        ("SELECT row_number() OVER () FROM v", False),
        ("SELECT v.a FROM v WHERE v.a IN (SELECT 1)", False),
        ("SELECT v.a, random() FROM v", False),
        ("SELECT v.a FROM v WHERE v.b > now()", False),
        ("SELECT v.a FROM v WHERE v.b = current_date", False),
        ("SELECT v.a FROM v WHERE v.b = getvariable('x')", False),
        ("SELECT v.a, nextval('s') FROM v", False),
        ("SELECT unnest(v.l) FROM v", False),
        ("SELECT v.* FROM v", False),
        ("SELECT v.a FROM v TABLESAMPLE 10 ROWS", False),
        ("SELECT v.a FROM v, v AS w", False),
        ("SELECT w.a FROM w", False),
        ("WITH v AS (SELECT 1 AS a) SELECT v.a FROM v", False),
        ("SELECT v.a FROM v UNION ALL SELECT v.a FROM v", False),
        ("SELECT mine(v.a) FROM v", False),
        ("SELECT unknown_function(v.a) FROM v", False),
        ("DELETE FROM v", False),
    ],
)
def test_what_is_row_by_row(query: str, expected: bool) -> None:
    database = SessionDatabase()
    database.run("CREATE MACRO mine(x) AS x + random()")
    assert database.is_row_by_row(query, "v") is expected
    database.close()
