"""Branches merged by Spark's jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from tests.unit.branches.test_merging import on_branch, one, rows

pytestmark = pytest.mark.sampled(2)


@pytest.mark.parametrize("tidied", [False, True], ids=["as it is", "files merged"])
def test_a_merge_on_spark_is_the_one_in_process(spark: Any, tmp_path: Path, tidied: bool) -> None:
    answers = []
    for engine in ("spark", "duckdb"):
        place = tmp_path / engine
        place.mkdir()
        with dl.connect(f"ducklake:{place}/l.ducklake", alias="lake", engine="duckdb", spark=spark) as session:
            session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS v, i * 1.5 AS n FROM range(3000) r(i)")
            session.sql(
                "INSERT INTO t SELECT 5000 + i, 'x', NULL FROM range(1000) r(i); INSERT INTO t VALUES (-1, 'few', 0)"
            )
            session.branch("fix")
            session.sql("UPDATE t SET v = 'lake' WHERE i % 7 = 0; DELETE FROM t WHERE i % 100 = 3")
            session.sql("ALTER TABLE t ADD COLUMN mine INTEGER DEFAULT 4")
            if tidied:
                session.sql("CALL ducklake_merge_adjacent_files('lake')")
            on_branch(
                session,
                "UPDATE t SET n = n + 1 WHERE i % 5 = 0; UPDATE t SET v = 'b' WHERE i % 35 = 0; DELETE FROM t WHERE i BETWEEN 200 AND 299",
                "INSERT INTO t SELECT 9000 + i, 'new', 1 FROM range(2000) r(i); DELETE FROM t WHERE i = 9001",
                "CREATE TABLE u AS SELECT i FROM range(5000) r(i); DELETE FROM u WHERE i < 10",
            )
        with dl.connect(f"ducklake:{place}/l.ducklake", alias="lake", engine=engine, spark=spark) as session:
            with pytest.raises(dl.MergeConflictError) as caught:
                session.merge("fix")
            conflicts = caught.value
            session.merge("fix", on_conflict="theirs")
            found = rows(session, "SELECT i, v, n, mine FROM t ORDER BY ALL")
            answers.append(
                (conflicts.total, sorted(map(str, conflicts.conflicts)), found, one(session, "SELECT count(*) FROM u"))
            )
    assert answers[0] == answers[1]
    assert answers[0][3] == 4990
