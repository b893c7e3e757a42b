"""Change feeds on Spark, whose rows are paired by their positions, compared with the reference and with DuckDB in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits

pytestmark = pytest.mark.sampled(3)

#: Statements that change rows, each a snapshot unless BEGIN and COMMIT stand around them.
HISTORY = (
    "CREATE TABLE t (i INTEGER, s VARCHAR)",
    "INSERT INTO t SELECT i, 'v' || i FROM range(40) r(i)",
    "UPDATE t SET s = 'all' WHERE i < 20",
    # deletes and updates of one file in one snapshot
    "MERGE INTO t USING (SELECT i AS i FROM range(10, 50, 3) r(i)) AS u ON t.i = u.i "
    "WHEN MATCHED AND u.i % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged' "
    "WHEN NOT MATCHED THEN INSERT VALUES (u.i, 'new')",
    "BEGIN; UPDATE t SET s = 'once' WHERE i = 5; DELETE FROM t WHERE i = 6; INSERT INTO t VALUES (100, 'same'); COMMIT",
    "INSERT INTO t VALUES (101, 'one')",
    "UPDATE t SET s = 'one again' WHERE i = 101",
    "DELETE FROM t WHERE i % 7 = 0",
    "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 3",
    "UPDATE t SET n = i WHERE i > 20",
    "INSERT INTO t SELECT i, 'late', i FROM range(200, 230) r(i)",
    "DELETE FROM t WHERE i >= 200",
)
#: Rows that one snapshot changes several times, whose versions the reference pairs in another way.
TWICE = "BEGIN; UPDATE t SET s = 'a' WHERE i < 9; UPDATE t SET s = 'b' WHERE i < 7; DELETE FROM t WHERE i < 4; COMMIT"


@pytest.mark.parametrize("inlining", [0, 10])
@pytest.mark.parametrize("row_ids", [0, 1000], ids=["joined by Spark", "paired by position"])
def test_feed_is_that_of_the_reference(
    inlining: int, row_ids: int, spark: Any, new_catalog: Callable[..., str], tmp_path: Path, reference: Any
) -> None:
    uri = new_catalog()
    limits = Limits(row_ids=row_ids)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", spark=spark, engine="spark", limits=limits) as s:
        s.sql(f"CALL lake.set_option('data_inlining_row_limit', {inlining})")
        for statement in HISTORY:
            s.sql(statement)
        feeds = [(0, _last(s)), (3, 5), (4, _last(s))]
        found = [_feed(s, *feed) for feed in feeds]
        s.engine = "duckdb"
        assert found == [_feed(s, *feed) for feed in feeds]
        kinds = {row[2] for row in found[0]}
        assert kinds == {"insert", "delete", "update_preimage", "update_postimage"}
    reference.execute(f"ATTACH '{uri}' AS lake")
    for (first, last), rows in zip(feeds, found, strict=True):
        sql = f"FROM lake.table_changes('t', {first}, {last}) ORDER BY ALL"
        assert reference.execute(sql).fetchall() == rows


def test_feed_after_compaction(spark: Any, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", alias="lake", spark=spark, engine="spark") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        for statement in (*HISTORY[:-1], TWICE):
            session.sql(statement)
        before = _feed(session, 0, _last(session))
        session.sql("CALL ducklake_merge_adjacent_files('lake')")
        session.sql("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)")
        last = _last(session)
        found = _feed(session, 0, last)
        session.engine = "duckdb"
        assert found == _feed(session, 0, last)
        assert found == before


def _last(session: dl.Session) -> int:
    ((last,),) = session.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
    return int(last)


def _feed(session: dl.Session, first: int, last: int) -> list[tuple[Any, ...]]:
    return session.sql(f"FROM lake.table_changes('t', {first}, {last}) ORDER BY ALL").fetchall()
