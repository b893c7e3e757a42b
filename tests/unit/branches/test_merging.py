"""Merging branches: what one side changed goes through, what both changed is a conflict, nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i, 'v' || i AS v, i * 10 AS n FROM range(100) r(i)")
        session.sql("INSERT INTO t VALUES (200, 'few', 0)")
        session.branch("fix")
        yield session


def on_branch(session: dl.Session, *statements: str, name: str = "fix") -> None:
    session.switch(name)
    for statement in statements:
        session.sql(statement)
    session.switch(None)


def rows(session: dl.Session, query: str = "SELECT i, v, n FROM t ORDER BY ALL") -> list[tuple[Any, ...]]:
    return session.sql(query).fetchall()


def one(session: dl.Session, query: str) -> Any:
    return session.sql(query).fetchall()[0][0]


def test_both_sides_go_through(session: dl.Session) -> None:
    ids = dict(rows(session, "SELECT i, rowid FROM t"))
    session.sql("UPDATE t SET v = 'ours' WHERE i < 10; DELETE FROM t WHERE i = 20; INSERT INTO t VALUES (300, 'o', 1)")
    on_branch(
        session,
        "UPDATE t SET n = -1 WHERE i BETWEEN 5 AND 14",
        "DELETE FROM t WHERE i IN (20, 21, 200)",
        "INSERT INTO t VALUES (400, 'b', 2)",
        "INSERT INTO t SELECT 1000 + i, 'many', i FROM range(50) r(i)",
    )
    before = session.snapshots()[-1].info.snapshot_id
    made = session.merge("fix")
    assert made is not None and made.snapshot_id == before + 1
    expected = {i: [f"v{i}", i * 10] for i in range(100)} | {200: ["few", 0]}
    for i in range(10):
        expected[i][0] = "ours"
    for i in range(5, 15):
        expected[i][1] = -1
    for i in (20, 21, 200):
        del expected[i]
    expected |= {300: ["o", 1], 400: ["b", 2], **{1000 + i: ["many", i] for i in range(50)}}
    assert rows(session) == sorted((i, v, n) for i, (v, n) in expected.items())
    after = dict(rows(session, "SELECT i, rowid FROM t"))
    assert all(after[i] == ids[i] for i in after.keys() & ids.keys())
    assert len(set(after.values())) == len(after)


def test_a_merge_is_one_snapshot_that_says_so(session: dl.Session) -> None:
    session.switch("fix")
    session.sql("INSERT INTO t VALUES (1000, 'a', 1)", message="first")
    session.sql("INSERT INTO t VALUES (1001, 'b', 1)", message="second")
    session.switch(None)
    session.merge("fix")
    last = session.snapshots()[-1]
    assert last.info.commit_message == "merge of branch fix: first; second"
    assert "merged branch fix" in last.changes


def test_merging_again_brings_only_what_came_since(session: dl.Session) -> None:
    on_branch(session, "INSERT INTO t VALUES (1000, 'a', 1)", "UPDATE t SET v = 'x' WHERE i = 1")
    assert session.merge("fix") is not None
    assert session.merge("fix") is None
    session.sql("UPDATE t SET v = 'lake' WHERE i = 1")
    on_branch(
        session, "INSERT INTO t VALUES (1001, 'b', 1)", "UPDATE t SET v = 'y' WHERE i = 2; DELETE FROM t WHERE i = 3"
    )
    assert session.merge("fix") is not None
    assert rows(session, "SELECT i, v FROM t WHERE i < 4 OR i >= 1000 ORDER BY ALL") == [
        (0, "v0"), (1, "lake"), (2, "y"), (1000, "a"), (1001, "b"),
    ]  # fmt: skip
    on_branch(session, "UPDATE t SET v = 'later' WHERE i = 1000")
    with pytest.raises(dl.UnsupportedFeatureError, match=r"1 rows of main.t came with an earlier merge"):
        session.merge("fix")
    assert one(session, "SELECT v FROM t WHERE i = 1000") == "a"


def test_conflicts_are_listed_and_settled(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = 'ours' WHERE i IN (1, 2); DELETE FROM t WHERE i = 3; UPDATE t SET n = 5 WHERE i = 4")
    on_branch(
        session,
        "UPDATE t SET v = 'theirs' WHERE i IN (1, 2); UPDATE t SET n = 7 WHERE i = 3; DELETE FROM t WHERE i = 4",
        "UPDATE t SET n = 99 WHERE i = 1",
    )
    with pytest.raises(dl.MergeConflictError, match='branch "fix" is not merged: 4 conflicts') as caught:
        session.merge("fix")
    ids = dict(rows(session, "SELECT rowid, i FROM t")) | {3: 3}
    found = {(c.table, ids[c.row_id], c.column, c.reason): (c.base, c.ours, c.theirs) for c in caught.value.conflicts}
    assert found == {
        ("main.t", 1, "v", "changed on both sides"): ("v1", "ours", "theirs"),
        ("main.t", 2, "v", "changed on both sides"): ("v2", "ours", "theirs"),
        ("main.t", 3, None, "updated on the branch, deleted in the lake"): ({"n": 30}, None, {"n": 7}),
        ("main.t", 4, None, "deleted on the branch, changed in the lake"): (
            {"i": 4, "v": "v4", "n": 40},
            {"i": 4, "v": "v4", "n": 5},
            None,
        ),
    }
    preview = session.merge_preview("fix", on_conflict="theirs")
    assert [repr(one) for one in preview] == ["changed main.t: 1 deleted, 1 inserted, 2 updated"]
    numbers = {i: row_id for row_id, i in ids.items()}
    session.merge("fix", on_conflict={"t": {numbers[1]: {"v": "theirs"}, numbers[2]: "ours", 3: "theirs", 4: "ours"}})
    assert rows(session, "SELECT i, v, n FROM t WHERE i BETWEEN 1 AND 4 ORDER BY i") == [
        (1, "theirs", 99),
        (2, "ours", 20),
        (3, "v3", 7),
        (4, "v4", 5),
    ]


def test_the_same_change_on_both_sides_is_no_conflict(session: dl.Session) -> None:
    for run in (session.sql, lambda text: on_branch(session, text)):
        run("UPDATE t SET v = 'same' WHERE i = 1; DELETE FROM t WHERE i = 2")
    session.merge("fix")
    assert rows(session, "SELECT i, v FROM t WHERE i < 3 ORDER BY i") == [(0, "v0"), (1, "same")]


def test_columns_of_both_sides(session: dl.Session) -> None:
    session.sql("ALTER TABLE t ADD COLUMN mine INTEGER DEFAULT 7; UPDATE t SET mine = 8 WHERE i = 1")
    on_branch(
        session,
        "ALTER TABLE t ADD COLUMN theirs VARCHAR DEFAULT 'x'",
        "UPDATE t SET theirs = 'y' WHERE i = 1; INSERT INTO t VALUES (1000, 'a', 1, 'z')",
        "ALTER TABLE t RENAME COLUMN n TO number; ALTER TABLE t ALTER COLUMN i TYPE BIGINT",
        "INSERT INTO t VALUES (5000000000, 'big', 1, 'z')",
    )
    session.merge("fix")
    assert session.sql("FROM t").columns == ["i", "v", "number", "mine", "theirs"]
    assert rows(session, "SELECT i, mine, theirs FROM t WHERE i IN (0, 1, 1000, 5000000000) ORDER BY i") == [
        (0, 7, "x"),
        (1, 8, "y"),
        (1000, 7, "z"),
        (5000000000, 7, "z"),
    ]


def test_a_dropped_column_with_new_values_is_a_conflict(session: dl.Session) -> None:
    session.sql("ALTER TABLE t DROP COLUMN n; UPDATE t SET v = 'lake' WHERE i = 9")
    on_branch(session, "UPDATE t SET n = -5 WHERE i = 1; ALTER TABLE t DROP COLUMN v")
    with pytest.raises(dl.MergeConflictError) as caught:
        session.merge("fix")
    assert {(c.column, c.reason) for c in caught.value.conflicts} == {
        ("n", "column changed on the branch, dropped in the lake"),
        ("v", "column dropped on the branch, changed in the lake"),
    }
    with pytest.raises(dl.UnsupportedFeatureError, match=r"Column n of main.t was dropped"):
        session.merge("fix", on_conflict="theirs")
    session.merge("fix", on_conflict="ours")
    assert session.sql("FROM t").columns == ["i", "v"]


def test_both_sides_added_a_column_of_one_name(session: dl.Session) -> None:
    session.sql("ALTER TABLE t ADD COLUMN note VARCHAR")
    on_branch(session, "ALTER TABLE t ADD COLUMN note VARCHAR")
    with pytest.raises(dl.EntryExistsError, match=r'Column note of main.t cannot come from the branch "fix"'):
        session.merge("fix")


def test_tables_views_macros_and_schemas(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE gone AS SELECT 1 AS a; CREATE TABLE kept AS SELECT 1 AS a; CREATE VIEW w AS SELECT 1 AS a"
    )
    session.branch("more")
    session.sql("CREATE SCHEMA s; CREATE TABLE s.lake AS SELECT 1 AS a")
    on_branch(
        session,
        "DROP TABLE gone; CREATE OR REPLACE VIEW w AS SELECT 2 AS a; CREATE MACRO f(x) AS x + 1",
        "CREATE SCHEMA s; CREATE TABLE s.n AS SELECT i AS a, i % 3 AS day FROM range(500) r(i)",
        "ALTER TABLE s.n SET PARTITIONED BY (day); INSERT INTO s.n SELECT i, 1 FROM range(500, 900) r(i)",
        "DELETE FROM s.n WHERE a < 3; COMMENT ON TABLE s.n IS 'made aside'; ALTER TABLE kept RENAME TO named",
        "INSERT INTO s.n VALUES (7000, 2)",
        name="more",
    )
    session.merge("more")
    assert rows(session, "SELECT count(*), sum(a), max(a) FROM s.n") == [(898, sum(range(3, 900)) + 7000, 7000)]
    assert [row[0] for row in rows(session, "FROM w")] == [2]
    assert one(session, "SELECT f(1)") == 2
    assert one(session, "SELECT comment FROM duckdb_tables() WHERE table_name = 'n'") == "made aside"
    names = rows(session, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'lake'")
    assert sorted(names) == [("main", "named"), ("main", "t"), ("main", "w"), ("s", "lake"), ("s", "n")]


def test_a_name_given_on_both_sides_is_settled_by_a_rule(session: dl.Session) -> None:
    session.sql("CREATE TABLE u AS SELECT 'lake' AS a")
    on_branch(session, "CREATE TABLE u AS SELECT 'branch' AS a")
    with pytest.raises(dl.MergeConflictError, match=r"main\.u \(name given on both sides\)"):
        session.merge("fix")
    preview = session.merge_preview("fix", on_conflict={"u": "theirs"})
    assert {(one.name, one.kind) for one in preview} == {("main.u", "created")}
    session.merge("fix", on_conflict={"u": "theirs"})
    assert one(session, "FROM u") == "branch"


def test_dropped_tables(session: dl.Session) -> None:
    session.sql("CREATE TABLE a AS SELECT 1 AS a; CREATE TABLE b AS SELECT 1 AS a; CREATE TABLE c AS SELECT 1 AS a")
    session.branch("more")
    session.sql("INSERT INTO a VALUES (2); DROP TABLE b; DROP TABLE c")
    on_branch(session, "DROP TABLE a; INSERT INTO b VALUES (2); DROP TABLE c", name="more")
    with pytest.raises(dl.MergeConflictError) as caught:
        session.merge("more")
    assert {(c.table, c.reason) for c in caught.value.conflicts} == {
        ("main.a", "table dropped on the branch, changed in the lake"),
        ("main.b", "table changed on the branch, dropped in the lake"),
    }
    session.merge("more", on_conflict={"a": "theirs", "b": "ours"})
    assert [row[0] for row in rows(session, "SHOW TABLES")] == ["t"]


def test_files_of_new_rows_are_taken_over(session: dl.Session, tmp_path: Path) -> None:
    on_branch(session, "INSERT INTO t SELECT 1000 + i, 'many', i FROM range(5000) r(i)")
    session.merge("fix")
    inodes = {path.stat().st_ino for path in Path(f"{tmp_path}/data.branches").rglob("*.parquet")}
    own = [path for path in Path(f"{tmp_path}/data").rglob("*.parquet") if path.stat().st_ino in inodes]
    assert len(own) == 2  # that of the table, and that of the branch
    session.drop_branch("fix")
    assert one(session, "SELECT count(*) FROM t") == 5101


@pytest.mark.parametrize("side", ["lake", "branch", "both"])
def test_maintenance_makes_no_difference(session: dl.Session, side: str) -> None:
    session.sql("INSERT INTO t SELECT 500 + i, 'x', i FROM range(50) r(i); DELETE FROM t WHERE i = 501")
    session.branch("more")
    keep = (
        "CALL ducklake_flush_inlined_data('lake')",
        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
        "CALL ducklake_merge_adjacent_files('lake')",
    )
    session.sql("UPDATE t SET v = 'ours' WHERE i IN (1, 200, 502)")
    on_branch(session, "UPDATE t SET n = -1 WHERE i IN (1, 200, 503); INSERT INTO t VALUES (900, 'b', 1)", name="more")
    if side != "branch":
        for statement in keep:
            session.sql(statement)
    if side != "lake":
        on_branch(session, *keep, name="more")
    session.merge("more")
    assert rows(session, "SELECT i, v, n FROM t WHERE i IN (1, 200, 502, 503, 900) ORDER BY i") == [
        (1, "ours", -1),
        (200, "ours", -1),
        (502, "ours", 2),
        (503, "x", -1),
        (900, "b", 1),
    ]
    assert one(session, "SELECT count(*) FROM t") == 151


def test_a_branch_of_a_branch_is_merged_into_that(session: dl.Session) -> None:
    session.switch("fix")
    session.branch("inner")
    on = "UPDATE t SET v = 'inner' WHERE i = 1"
    session.switch("inner")
    session.sql(on)
    session.switch("fix")
    session.merge("inner")
    assert one(session, "SELECT v FROM t WHERE i = 1") == "inner"
    session.switch(None)
    assert one(session, "SELECT v FROM t WHERE i = 1") == "v1"
    with pytest.raises(dl.UnsupportedFeatureError, match='"inner" began on the branch "fix"'):
        session.merge("inner")
    session.merge("fix")
    assert one(session, "SELECT v FROM t WHERE i = 1") == "inner"


def test_a_merge_is_reverted(session: dl.Session) -> None:
    on_branch(
        session, "UPDATE t SET v = 'x' WHERE i < 5; INSERT INTO t VALUES (900, 'b', 1); CREATE TABLE u AS SELECT 1 AS a"
    )
    before = rows(session)
    made = session.merge("fix")
    assert made is not None and rows(session) != before
    session.revert(made.snapshot_id)
    assert rows(session) == before
    assert [row[0] for row in rows(session, "SHOW TABLES")] == ["t"]


def test_a_merge_in_a_transaction_is_rolled_back(session: dl.Session) -> None:
    on_branch(session, "UPDATE t SET v = 'x' WHERE i < 5")
    before = rows(session)
    session.sql("BEGIN; UPDATE t SET n = 0 WHERE i = 50")
    assert session.merge("fix") is None
    assert one(session, "SELECT count(*) FROM t WHERE v = 'x' OR n = 0 AND i = 50") == 6
    session.sql("ROLLBACK")
    assert rows(session) == before
    assert session.merge("fix") is not None


def test_a_transaction_merges_once(session: dl.Session) -> None:
    on_branch(
        session, "INSERT INTO t SELECT i, 'new', 0 FROM range(300, 330) r(i); INSERT INTO t VALUES (400, 'few', 1)"
    )
    with session.transaction():
        session.merge("fix")
        session.merge("fix")
    assert one(session, "SELECT count(*) FROM t WHERE i >= 300") == 31
    assert session.merge("fix") is None


def test_what_cannot_be_merged_is_refused(session: dl.Session) -> None:
    with pytest.raises(dl.EntryNotFoundError, match=r'no branch "fixx". Did you mean'):
        session.merge("fixx")
    with pytest.raises(dl.UnsupportedFeatureError, match="leave squash out"):
        session.merge("fix", squash=False)
    with pytest.raises(dl.UsageError, match='takes "ours", "theirs"'):
        session.merge("fix", on_conflict="mine")
    on_branch(session, "UPDATE t SET v = 'x' WHERE i = 1")
    with pytest.raises(dl.UsageError, match='on_conflict names u, which the branch "fix" did not change'):
        session.merge("fix", on_conflict={"u": "ours"})
    session.switch("fix")
    with pytest.raises(dl.UnsupportedFeatureError, match="is not merged into itself"):
        session.merge("fix")
    session.switch(None)


def test_the_snapshot_at_which_a_branch_began_does_not_expire(session: dl.Session) -> None:
    began = session.current_snapshot().snapshot_id
    on_branch(session, "UPDATE t SET v = 'x' WHERE i = 1")
    expire = "CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)"
    session.sql("UPDATE t SET v = 'y' WHERE i = 2")
    session.sql(expire)
    on_branch(session, expire)
    with pytest.raises(dl.CatalogError, match=f'The branch "fix" began at snapshot {began}, which cannot expire'):
        session.sql(f"CALL ducklake_expire_snapshots('lake', versions => [{began}])")
    session.merge("fix")
    assert rows(session, "SELECT v FROM t WHERE i IN (1, 2) ORDER BY i") == [("x",), ("y",)]
    session.drop_branch("fix")
    session.sql(expire)
    with pytest.raises(dl.SnapshotNotFoundError):
        session.sql(f"FROM t AT (VERSION => {began})")
