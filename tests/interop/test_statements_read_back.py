"""Rows that the reference reads after our statements, compared with those after its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(4)

SCRIPTS = {
    "merge": [
        "MERGE INTO t USING (VALUES (1, 'x'), (9, 'z')) u(i, s) ON t.i = u.i WHEN MATCHED THEN UPDATE SET s = u.s "
        "WHEN NOT MATCHED THEN INSERT (i, s) VALUES (u.i, u.s)",
        "MERGE INTO t USING (SELECT 2 AS i) u USING (i) WHEN MATCHED THEN DELETE",
    ],
    "update from": [
        "UPDATE t SET s = u.s || t.s FROM (VALUES (1, 'p'), (3, 'q')) u(i, s) WHERE t.i = u.i",
        "DELETE FROM t USING (VALUES (2)) u(i) WHERE t.i = u.i",
        "INSERT INTO t BY NAME SELECT 'n' AS s, 4 AS i",
        "INSERT INTO t (s) VALUES (DEFAULT), ('k')",
    ],
    "merge with names of one side": [
        "MERGE INTO t USING (VALUES (1, 'x'), (9, 'z')) u(i, s) ON t.i = u.i "
        "WHEN NOT MATCHED AND i > 8 THEN INSERT (s, i) VALUES (s, i) "
        "WHEN NOT MATCHED BY SOURCE AND i = 2 THEN UPDATE SET s = s || (SELECT count(*) FROM t x WHERE x.i <= i)",
        "MERGE INTO t USING (VALUES (3, 'y'), (7, 'w')) u(i, s) USING (i) "
        "WHEN NOT MATCHED THEN INSERT VALUES (i + 1, s) WHEN NOT MATCHED BY SOURCE AND s = 'z' THEN DELETE",
    ],
    "using with joins": [
        "CREATE TABLE p AS FROM (VALUES (1, 'p'), (3, 'q'), (3, 'r')) p(i, s)",
        "CREATE TABLE o AS FROM (VALUES (3, true), (4, false)) o(i, b)",
        "UPDATE t SET s = coalesce(b::VARCHAR, p.s) FROM p LEFT JOIN o USING (i) WHERE t.i = p.i AND p.s <> 'r'",
        "DELETE FROM t USING o, p JOIN o x USING (i) WHERE t.i = p.i AND x.b AND o.i = 4",
        "DELETE FROM t USING o RIGHT JOIN p ON o.i = p.i AND p.s = 'r' WHERE t.i = p.i - 1 AND o.b",
    ],
    "tables of one name in two schemas": [
        "CREATE SCHEMA x; CREATE TABLE x.t AS FROM (VALUES (2, 'two'), (3, 'three'), (9, 'nine')) t(i, s)",
        "MERGE INTO t USING x.t ON main.t.i = x.t.i AND x.t.i <> 3 WHEN MATCHED THEN UPDATE SET s = x.t.s || main.t.s "
        "WHEN NOT MATCHED AND i = 9 THEN INSERT VALUES (x.t.i, s)",
        "UPDATE t SET s = x.t.s || '!' FROM x.t WHERE main.t.i = x.t.i AND x.t.i = 3",
        "UPDATE x.t SET i = i + (SELECT count(*) FROM main.t WHERE main.t.i < x.t.i)",
        "DELETE FROM t USING x.t WHERE main.t.i = x.t.i - 1",
        "CREATE VIEW x.v AS FROM x.t",
        "CREATE TABLE v AS SELECT 1 AS i, 'v' AS s",
        "MERGE INTO v USING x.v ON x.v.i <> main.v.i WHEN MATCHED AND x.v.s = 'two' THEN DELETE",
        "MERGE INTO t USING x.v ON t.i = x.v.i WHEN NOT MATCHED THEN INSERT VALUES (x.v.i, v.s)",
    ],
    "rows assigned to columns": [
        "UPDATE t SET (i, s) = (i + 1, s || 'x')",
        "UPDATE t SET (i, s) = 7 WHERE i = 2",
        "UPDATE t SET (s, i) = ROW(i, 8) WHERE i = 9",
        "UPDATE t SET (s) = (i) WHERE i = 3",
        "INSERT INTO t BY POSITION (s, i) SELECT 'n', 4",
    ],
    "transaction": [
        "BEGIN; INSERT INTO t VALUES (5, 'e'); UPDATE t SET s = 'five' WHERE i = 5; DELETE FROM t WHERE i = 1; COMMIT",
        "BEGIN; DELETE FROM t; ROLLBACK",
        "PREPARE p AS INSERT INTO t VALUES ($1, $2); EXECUTE p(6, 'f'); EXECUTE p(7, 'g')",
    ],
    "truncate": ["TRUNCATE t", "INSERT INTO t SELECT i, 'r' FROM range(3) r(i)"],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_reference_reads_what_it_would_have_written(
    script: str, new_catalog: Callable[..., str], tmp_path: Path, reference: Any
) -> None:
    uri = new_catalog("duckdb")
    start = ["CREATE TABLE t (i INTEGER, s VARCHAR DEFAULT 'd')", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')"]
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/ours", engine="duckdb") as session:
        for statement in [*start, *SCRIPTS[script]]:
            session.sql(statement)
        ours = session.sql("SELECT rowid, i, s FROM t ORDER BY ALL").fetchall()
    reference.execute(f"ATTACH '{uri}' AS lake; ATTACH 'ducklake:{tmp_path}/other.ducklake' AS other")
    read = reference.execute("SELECT rowid, i, s FROM lake.t ORDER BY ALL").fetchall()
    reference.execute("USE other")
    for statement in [*start, *SCRIPTS[script]]:
        reference.execute(statement)
    wanted = reference.execute("SELECT rowid, i, s FROM t ORDER BY ALL").fetchall()
    assert ours == read == wanted


@pytest.mark.parametrize("alteration", ["ADD COLUMN k INTEGER DEFAULT 50", "RENAME COLUMN j TO k", "DROP COLUMN i"])
def test_rows_inlined_after_inlining_was_off_are_read_once_the_table_is_altered(
    alteration: str, lake_uri: Callable[..., str], tmp_path: Path, reference: Any
) -> None:
    uri = lake_uri()
    limit = "CALL lake.set_option('data_inlining_row_limit', {})"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql(f"{limit.format(0)}; CREATE TABLE t (i INTEGER)")
        session.sql(f"ALTER TABLE t ADD COLUMN j INTEGER DEFAULT 6; {limit.format(10)}")
        session.sql("INSERT INTO t VALUES (53, 79)")
        session.sql(f"ALTER TABLE t {alteration}")
        ours = session.sql("FROM t").fetchall()
    reference.execute(f"ATTACH '{uri}' AS lake")
    assert reference.execute("FROM lake.t").fetchall() == ours
    assert 79 in ours[0]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t USING u WHERE i = 1",
        "DELETE FROM t USING u WHERE rowid = 0",
        "UPDATE t SET s = 'x' FROM u WHERE i = 1",
        "UPDATE t SET (i, s) = (1, 'x', 2)",
        "UPDATE t SET (i, s) = (1,)",
        "UPDATE t SET (i, s) = (SELECT 1, 'x')",
        "MERGE INTO t USING u ON t.i = u.i WHEN NOT MATCHED THEN INSERT VALUES (u.i, t.s)",
        "MERGE INTO t USING u ON t.i = u.i WHEN NOT MATCHED AND t.s IS NULL THEN INSERT",
        "MERGE INTO t USING u ON t.i = u.i WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = u.s",
        "MERGE INTO t USING u ON t.i = u.i WHEN NOT MATCHED THEN INSERT VALUES (i, q)",
        "MERGE INTO t USING u ON t.i = u.i WHEN MATCHED THEN UPDATE SET s = i",
        "INSERT OVERWRITE t SELECT 1, 'x'",
        "INSERT INTO t PARTITION (i = 1) SELECT 1, 'x'",
        "INSERT INTO t REPLACE WHERE i = 1 SELECT 1, 'x'",
    ],
)
def test_what_the_reference_refuses_changes_nothing(
    statement: str, new_catalog: Callable[..., str], tmp_path: Path, reference: Any
) -> None:
    start = [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE u AS FROM (VALUES (1, 'p'), (3, 'q')) u(i, s)",
    ]
    with dl.connect(new_catalog("duckdb"), alias="lake", data_path=f"{tmp_path}/ours", engine="duckdb") as session:
        for text in start:
            session.sql(text)
        before = session.current_snapshot()
        with pytest.raises(dl.DuckLakeError):
            session.sql(statement)
        assert session.current_snapshot() == before
    reference.execute(f"ATTACH 'ducklake:{tmp_path}/other.ducklake' AS other; USE other")
    for text in start:
        reference.execute(text)
    with pytest.raises(duckdb.Error):
        reference.execute(statement)


@pytest.mark.parametrize("change", ["INSERT INTO t SELECT i, i FROM q", "UPDATE t SET s = i FROM q", "DELETE FROM t"])
def test_returning_after_with_is_refused_by_name(change: str, new_catalog: Callable[..., str]) -> None:
    with dl.connect(new_catalog("duckdb"), alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
        with pytest.raises(dl.UnsupportedFeatureError, match="RETURNING"):
            session.sql(f"WITH q AS (SELECT 1 AS i) {change} RETURNING *")


def test_a_whole_database_is_copied(new_catalog: Callable[..., str], tmp_path: Path, reference: Any) -> None:
    uri = new_catalog("duckdb", "copy")
    with dl.Session() as session:
        session.sql(f"ATTACH '{new_catalog('duckdb')}' AS a (DATA_PATH '{tmp_path}/a')")
        session.sql(f"ATTACH '{uri}' AS b (DATA_PATH '{tmp_path}/b')")
        session.sql("CREATE SCHEMA a.s; CREATE TABLE a.s.t (i INTEGER NOT NULL, d DOUBLE DEFAULT 1.5)")
        session.sql("INSERT INTO a.s.t (i) VALUES (1), (2); COPY FROM DATABASE a TO b")
        assert session.sql("SELECT max(id) FROM b.current_snapshot()").fetchone() == (1,)
        session.sql(f"COPY a.s.t TO '{tmp_path}/t.csv' (HEADER); COPY b.s.t FROM '{tmp_path}/t.csv' (HEADER)")
    reference.execute(f"ATTACH '{uri}' AS b")
    assert reference.execute("FROM b.s.t ORDER BY i").fetchall() == [(1, 1.5), (1, 1.5), (2, 1.5), (2, 1.5)]
    assert reference.execute("INSERT INTO b.s.t (i) VALUES (3)").fetchone() == (1,)
