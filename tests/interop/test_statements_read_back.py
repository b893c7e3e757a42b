"""What statements leave in a lake is what the reference reads, and what its own statements would have left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl

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
