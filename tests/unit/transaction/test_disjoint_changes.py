"""Two sessions change rows of one table: apart from each other both commit, else the second one is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.transaction.reads import Read, Reads

pytestmark = pytest.mark.sampled(2)

Pair = tuple[dl.Session, dl.Session]
_TABLES = (
    "CREATE TABLE t (day INTEGER, i INTEGER); ALTER TABLE t SET PARTITIONED BY (day);"
    "INSERT INTO t SELECT r % 4, r FROM range(80) s(r); INSERT INTO t VALUES (0, 100), (1, 101), (2, 102), (3, 103);"
    "CREATE TABLE u (i INTEGER); INSERT INTO u FROM range(40); INSERT INTO u FROM range(100, 140);"
    "INSERT INTO u VALUES (200), (201)"
)


@pytest.fixture
def pair(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[Pair]:
    uri = lake_uri()
    with (
        dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as one,
        dl.connect(uri, alias="lake", engine="duckdb") as two,
    ):
        one.sql(_TABLES)
        yield one, two


def commits(pair: Pair, first: str, second: str) -> bool:
    """Runs two transactions that begin at one snapshot; returns whether the second one commits after the first."""
    for session, text in zip(pair, (first, second), strict=True):
        session.sql(f"BEGIN; {text}")
    pair[0].sql("COMMIT")
    try:
        pair[1].sql("COMMIT")
    except dl.TransactionConflictError:
        return False
    return True


#: Pairs of changes of disjoint rows.
_APART = [
    ("DELETE FROM t WHERE day = 1", "INSERT INTO t VALUES (2, 0)"),
    ("INSERT INTO t VALUES (2, 0)", "DELETE FROM t WHERE day = 1"),
    ("INSERT INTO t SELECT 2, r FROM range(50) s(r)", "DELETE FROM t WHERE day = 1"),
    ("DELETE FROM t WHERE day = 1", "DELETE FROM t WHERE day = 2"),
    ("UPDATE t SET i = -i WHERE day = 1", "UPDATE t SET i = -i WHERE day = 2"),
    ("UPDATE t SET day = 1 WHERE day = 0", "UPDATE t SET day = 3 WHERE day = 2"),
    (
        "MERGE INTO t USING (VALUES (1), (101), (999)) s(i) ON t.i = s.i AND t.day = 1 WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT VALUES (1, s.i)",
        "MERGE INTO t USING (VALUES (2), (102), (998)) s(i) ON t.i = s.i AND t.day = 2 WHEN MATCHED THEN UPDATE "
        "SET i = -s.i WHEN NOT MATCHED THEN INSERT VALUES (2, s.i)",
    ),
    ("UPDATE u SET i = i + 300 WHERE i < 20", "DELETE FROM u WHERE i BETWEEN 100 AND 110"),
    ("UPDATE u SET i = 300 WHERE i = 200", "DELETE FROM u WHERE i = 201"),
    ("INSERT INTO t SELECT day, i + 1 FROM t WHERE day = 1", "INSERT INTO t SELECT day, i + 1 FROM t WHERE day = 2"),
    ("INSERT INTO t VALUES (1, 5)", "SELECT sum(i) FROM t; INSERT INTO t VALUES (1, 6)"),
    ("DELETE FROM t WHERE day = 1", "SELECT sum(i) FROM t WHERE day = 2; INSERT INTO t VALUES (1, 6)"),
    ("DELETE FROM t WHERE day = 1", "CALL lake.set_commit_message('me', 'mine'); DELETE FROM t WHERE day = 2"),
    ("DELETE FROM t WHERE day = 1", "INSERT INTO t VALUES (2, 1); UPDATE t SET i = 2 WHERE day = 2; FROM u LIMIT 1"),
]
#: Pairs whose second one would change other rows after the first.
_TOGETHER = [
    ("INSERT INTO t VALUES (1, 0)", "DELETE FROM t WHERE day = 1"),
    ("INSERT INTO t SELECT 1, r FROM range(50) s(r)", "DELETE FROM t WHERE day = 1"),
    ("UPDATE t SET day = 2 WHERE day = 1", "DELETE FROM t WHERE day = 2"),
    ("UPDATE t SET i = -i WHERE day = 1", "UPDATE t SET i = i + 1 WHERE day = 1 AND i < 30"),
    ("DELETE FROM t WHERE i = 101", "UPDATE t SET i = 5 WHERE i = 101"),
    ("DELETE FROM t WHERE i < 20", "UPDATE t SET i = 0 WHERE day = 1"),
    ("INSERT INTO t VALUES (3, 3)", "TRUNCATE t"),
    ("INSERT INTO t VALUES (3, 3)", "INSERT INTO t SELECT 2, count(*) FROM t"),
    ("INSERT INTO t VALUES (3, 3)", "UPDATE t SET i = (SELECT max(i) FROM t) WHERE day = 1"),
    ("DELETE FROM t WHERE day = 2", "DELETE FROM t WHERE day = 1 AND i < (SELECT max(i) FROM t)"),
    ("DELETE FROM t WHERE day = 2", "SELECT sum(i) FROM t; INSERT INTO t VALUES (1, 6)"),
    ("DELETE FROM t WHERE day = 2", "FROM lake.table_info(); INSERT INTO t VALUES (1, 6)"),
    ("DELETE FROM t WHERE day = 2", "FROM __ducklake_metadata_lake.ducklake_table_stats; INSERT INTO t VALUES (1, 6)"),
    (
        "DELETE FROM t WHERE day = 1; INSERT INTO t VALUES (2, 0)",
        "DELETE FROM t WHERE day = 2; INSERT INTO t VALUES (1, 0)",
    ),
    (
        "DELETE FROM t WHERE i = 101",
        "MERGE INTO t USING (VALUES (101)) s(i) ON t.i = s.i WHEN NOT MATCHED THEN INSERT VALUES (1, s.i); "
        "INSERT INTO t VALUES (0, 0)",
    ),
    ("DELETE FROM t WHERE day = 1", "ALTER TABLE t ADD COLUMN n INTEGER; UPDATE t SET n = 1 WHERE day = 2"),
]


@pytest.mark.every_catalog
def test_disjoint_partitions_commit_both_and_overlapping_ones_conflict(pair: Pair) -> None:
    assert commits(pair, "UPDATE t SET i = -i WHERE day = 1", "UPDATE t SET i = -i WHERE day = 2")
    assert commits(pair, "DELETE FROM t WHERE day = 1", "INSERT INTO t VALUES (2, 0)")
    assert commits(pair, "INSERT INTO t VALUES (2, 0)", "DELETE FROM t WHERE day = 1")
    assert not commits(pair, "INSERT INTO t VALUES (2, 0)", "DELETE FROM t WHERE day = 2")
    assert not commits(pair, "UPDATE t SET i = -i WHERE day = 2", "DELETE FROM t WHERE i = -102 AND day = 2")
    found = pair[0].sql("SELECT day, count(*), count(DISTINCT rowid), sum(i) FROM t GROUP BY day ORDER BY day")
    assert found.fetchall() == [(0, 21, 21, 860), (2, 24, 24, 902), (3, 21, 21, 923)]


@pytest.mark.parametrize(("first", "second"), _APART)
def test_these_go_together(pair: Pair, first: str, second: str) -> None:
    assert commits(pair, first, second)
    found = pair[0].sql("SELECT count(*), count(DISTINCT rowid) FROM t").fetchall()
    assert found[0][0] == found[0][1]


@pytest.mark.parametrize(("first", "second"), _TOGETHER)
def test_these_exclude_each_other(pair: Pair, first: str, second: str) -> None:
    before = pair[0].current_snapshot().snapshot_id
    assert not commits(pair, first, second)
    assert pair[0].current_snapshot().snapshot_id == before + 1


def test_new_versions_keep_their_row_ids_where_others_take_new_ones(pair: Pair) -> None:
    one, two = pair
    before = dict(one.sql("SELECT i, rowid FROM t WHERE day = 2").fetchall())
    two.sql(
        "BEGIN; UPDATE t SET i = -i WHERE day = 2; UPDATE t SET i = i - 1 WHERE day = 2; INSERT INTO t VALUES (2, 0)"
    )
    one.sql("INSERT INTO t SELECT 1, r FROM range(50) s(r); INSERT INTO t VALUES (1, 7)")
    two.sql("COMMIT")
    after = dict(one.sql("SELECT i, rowid FROM t WHERE day = 2").fetchall())
    new = after.pop(0)
    assert after == {-i - 1: row_id for i, row_id in before.items()}
    assert new == max(row_id for (row_id,) in one.sql("SELECT rowid FROM t").fetchall())


@pytest.mark.parametrize("count", [3, 50])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE t SET i = -i WHERE day = 2",
        "MERGE INTO t USING (SELECT i FROM t WHERE day = 2) s ON t.day = 2 AND t.i = s.i WHEN MATCHED THEN UPDATE SET i = -t.i",
        "UPDATE t SET i = i + 1 WHERE day = 2; UPDATE t SET i = 1 - i WHERE day = 2",
    ],
)
def test_new_versions_of_its_own_rows_take_other_row_ids_than_others_took(pair: Pair, change: str, count: int) -> None:
    one, two = pair
    committed = dict(one.sql("SELECT rowid, i FROM t WHERE day = 2").fetchall())
    two.sql(f"BEGIN; INSERT INTO t SELECT 2, 1000 + r FROM range({count}) s(r)")
    two.sql(change)
    one.sql("INSERT INTO t SELECT 1, 2000 + r FROM range(60) s(r)")
    two.sql("COMMIT")
    rows = one.sql("SELECT rowid, day, i FROM t").fetchall()
    assert len({row_id for row_id, _, _ in rows}) == len(rows) == 84 + count + 60
    changed = {row_id: i for row_id, day, i in rows if day == 2}
    assert {row_id: -i for row_id, i in changed.items() if row_id in committed} == committed
    assert sorted(i for row_id, i in changed.items() if row_id not in committed) == [
        -1000 - r for r in reversed(range(count))
    ]
    assert sorted(i for _, day, i in rows if day == 1)[-60:] == [*range(2000, 2060)]


def test_deletions_from_a_file_with_earlier_ones_conflict(pair: Pair) -> None:
    one, _ = pair
    one.sql("CREATE TABLE w AS SELECT r FROM range(1000) s(r); DELETE FROM w WHERE r < 100")
    assert not commits(pair, "DELETE FROM w WHERE r BETWEEN 100 AND 199", "DELETE FROM w WHERE r BETWEEN 200 AND 299")
    assert not commits(pair, "DELETE FROM w WHERE r = 200", "DELETE FROM w WHERE r BETWEEN 500 AND 599")
    assert one.sql("SELECT count(*) FROM w").fetchall() == [(799,)]


@pytest.mark.parametrize("changes", ["DELETE FROM f WHERE i >= 500", "UPDATE f SET i = -i WHERE i >= 500"])
def test_deletions_from_a_file_conflict_with_a_flush_of_earlier_ones(pair: Pair, changes: str) -> None:
    flush = "CALL lake.flush_inlined_data()"
    for first, second in ((flush, changes), (changes, flush)):
        pair[0].sql("CREATE OR REPLACE TABLE f AS SELECT i FROM range(1000) r(i); DELETE FROM f WHERE i < 3")
        # the file of these deletions begins before both transactions
        assert not commits(pair, first, second)
        assert not any(one.check == "overlapping_delete_files" for one in pair[0].doctor(deep=True).findings)


def test_inlined_rows_are_compared_by_row(pair: Pair) -> None:
    assert commits(pair, "UPDATE u SET i = 300 WHERE i = 200", "UPDATE u SET i = 301 WHERE i = 201")
    assert not commits(pair, "DELETE FROM u WHERE i = 300", "DELETE FROM u WHERE i = 300")
    assert pair[0].sql("SELECT count(*) FROM u WHERE i >= 200").fetchall() == [(1,)]


def test_a_flush_in_between_is_as_it_was(pair: Pair) -> None:
    one, two = pair
    two.sql("BEGIN; DELETE FROM t WHERE day = 2")
    one.sql("INSERT INTO t VALUES (1, 7); CALL lake.flush_inlined_data(table_name => 't')")
    with pytest.raises(dl.TransactionConflictError, match=r"inserted into it|flushed its inlined data"):
        two.sql("COMMIT")


def test_a_flush_hides_rows_that_a_statement_needs(pair: Pair) -> None:
    one, two = pair
    two.sql("BEGIN; INSERT INTO t SELECT 2, count(*) FROM t WHERE day = 2")
    one.sql("INSERT INTO t VALUES (1, 7); CALL lake.flush_inlined_data(table_name => 't')")
    with pytest.raises(dl.TransactionConflictError, match="by rows of it that another transaction has changed"):
        two.sql("COMMIT")
    two.sql("BEGIN; INSERT INTO t SELECT 2, count(*) FROM t WHERE day = 2")
    one.sql("CALL lake.merge_adjacent_files()")
    two.sql("COMMIT")


def test_expired_snapshots_in_between_are_as_they_were(pair: Pair) -> None:
    one, two = pair
    two.sql("BEGIN; DELETE FROM t WHERE day = 2")
    one.sql("INSERT INTO t VALUES (1, 7); INSERT INTO t VALUES (1, 8)")
    one.sql(f"CALL lake.expire_snapshots(versions => [{one.current_snapshot().snapshot_id - 1}])")
    with pytest.raises(dl.TransactionConflictError, match="inserted into it"):
        two.sql("COMMIT")


def test_a_statement_by_itself_commits_at_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.unit.session.test_concurrency import interrupted

    one, two = pair
    two.sql("SET ducklake_max_retry_count = 0")
    for change in (
        lambda: two.sql("UPDATE t SET i = -i WHERE day = 2"),
        lambda: two.write(pd.DataFrame({"day": [2], "i": [0]}), "t"),
    ):
        interrupted(monkeypatch, lambda: one.sql("DELETE FROM t WHERE day = 1; INSERT INTO t VALUES (1, 1)"))
        change()
    with two.appender("t") as rows:
        rows.append((2, 7))
        interrupted(monkeypatch, lambda: one.sql("DELETE FROM t WHERE day = 1"))
    assert one.sql("SELECT count(*) FROM t WHERE day = 2").fetchall() == [(23,)]


@pytest.mark.parametrize("text", ["lake.table_changes('t', 0, 3)", "lake.table_info()"])
def test_rows_of_a_function_count_as_unknown(pair: Pair, text: str) -> None:
    second = f"INSERT INTO t SELECT 2, count(*) FROM {text}"
    assert not commits(pair, "DELETE FROM t WHERE day = 1", second)


def test_reads_outside_of_statements_count_as_unknown(pair: Pair) -> None:
    one, two = pair
    two.sql("BEGIN")
    total = two.table("t").arrow().num_rows
    two.sql(f"INSERT INTO t VALUES (2, {total})")
    one.sql("DELETE FROM t WHERE day = 1")
    with pytest.raises(dl.TransactionConflictError, match="Nothing was written; run the transaction again"):
        two.sql("COMMIT")


def test_a_restore_in_between_counts_as_changes(pair: Pair) -> None:
    one, two = pair
    at = one.current_snapshot().snapshot_id
    one.sql("DELETE FROM t WHERE day = 2")
    two.sql("BEGIN; DELETE FROM t WHERE day = 3; INSERT INTO t SELECT 3, count(*) FROM t WHERE day = 2")
    one.restore("t", to=at)
    with pytest.raises(dl.TransactionConflictError):
        two.sql("COMMIT")


def test_many_reads_become_one_of_all_rows(pair: Pair) -> None:
    lake: Lake = next(iter(pair[0]._lakes))
    table = pair[0]._lakes.parse("t").table()
    reads = Reads()
    for number in range(60):
        reads.note(lake, Read(table, None if number == 5 else _of(number), needs_new=number == 7))
    (*some, last) = reads.of(lake, table.table_id)
    assert len(some) < 50
    assert any(read.predicate is None and read.needs_new for read in (*some, last))


def _of(number: int) -> object:
    from ducklake_lab.model.predicates import Comparison

    return Comparison(("i",), "=", number)
