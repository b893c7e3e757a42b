"""A restored table holds what it held then, for the reference too, and other snapshots read as before."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from tests.interop.comparing import our_history, reference_history

pytestmark = pytest.mark.sampled(5)

HISTORY = [
    "CREATE TABLE t (i INTEGER, s VARCHAR)",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO t SELECT i, 'x' FROM range(10, 40) AS r(i)",
    "DELETE FROM t WHERE i BETWEEN 10 AND 25",
    "UPDATE t SET s = 'z' WHERE i IN (1, 30)",
    "CALL lake.flush_inlined_data()",
    "INSERT INTO t SELECT i, 'y' FROM range(40, 60) AS r(i)",
    "INSERT INTO t SELECT i, 'y' FROM range(60, 80) AS r(i)",
    "CALL lake.merge_adjacent_files()",
    "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7",
    "DELETE FROM t WHERE i > 35",
    "INSERT INTO t VALUES (100, 'late', 1)",
    "ALTER TABLE t DROP COLUMN s",
]


History = dict[tuple[int, str], list[list[Any]]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, History]:
    """A folder with a lake of the history, and what it holds at each snapshot."""
    folder = tmp_path_factory.mktemp("made")
    uri = f"ducklake:{folder}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{folder}/data", engine="duckdb") as session:
        for statement in HISTORY:
            session.sql(statement)
        history = our_history(session, "duckdb")
    return folder, history


@pytest.fixture
def session(made: tuple[Path, History], tmp_path: Path) -> Iterator[dl.Session]:
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    catalog = f"{tmp_path}/lake.ducklake"
    with duckdb.connect(catalog) as connection:
        connection.execute(f"UPDATE ducklake_metadata SET value = '{tmp_path}/data/' WHERE key = 'data_path'")
    with dl.connect(f"ducklake:{catalog}", alias="lake", engine="duckdb") as session:
        yield session
        assert not session.spark_started


def rows(session: dl.Session, at: int | None = None) -> list[Any]:
    when = "" if at is None else f" AT (VERSION => {at})"
    return sorted(session.sql(f"SELECT rowid, * FROM t{when}").fetchall())


@pytest.mark.parametrize("to", range(1, len(HISTORY) + 1))
def test_columns_rows_and_row_ids_are_those_of_then(
    to: int, made: tuple[Path, History], session: dl.Session, reference: duckdb.DuckDBPyConnection
) -> None:
    before = made[1]
    expected = rows(session, to)
    snapshot = session.restore("t", to=to)
    if to < len(HISTORY):
        assert snapshot is not None and snapshot.snapshot_id == len(HISTORY) + 1
    assert rows(session) == expected
    assert session.sql("SELECT * FROM t").columns == session.sql(f"FROM t AT (VERSION => {to})").columns
    history = our_history(session, "duckdb")
    assert {key: history[key] for key in before} == before
    uri = f"ducklake:{session.current_lake.location.path}"
    session.close()
    for key, theirs in reference_history(reference, uri).items():
        assert [row[:1] + row[2:] for row in theirs] == [row[:1] + row[2:] for row in history[key]], key


def test_it_outlives_the_snapshots_it_came_from(session: dl.Session) -> None:
    expected = rows(session, 5)
    assert session.sql("CALL lake.restore('t', to => 5)").fetchall() == [("main", "t", 5)]
    session.sql("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
    session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)")
    assert rows(session) == expected
    session.sql("INSERT INTO t VALUES (500, 'new')")
    session.sql("DELETE FROM t WHERE i = 1")
    ids = [row[0] for row in rows(session)]
    assert len(ids) == len(set(ids)) == len(expected)


def test_a_name_beside_its_schema_is_taken_whole(session: dl.Session) -> None:
    session.sql("""CREATE SCHEMA "s.1"; CREATE TABLE "s.1"."x.y""z" AS SELECT 1 AS i""")
    made = session.current_snapshot().snapshot_id
    session.sql("""DELETE FROM "s.1"."x.y""z\"""")
    restored = session.sql(f"""CALL lake.restore('x.y"z', {made}, schema => '"s.1"')""")
    assert restored.fetchall() == [("s.1", 'x.y"z', made)]
    assert session.sql("""FROM "s.1"."x.y""z\"""").fetchall() == [(1,)]


def test_a_dropped_table_comes_back(session: dl.Session, reference: duckdb.DuckDBPyConnection) -> None:
    expected = rows(session)
    last = session.current_snapshot().snapshot_id
    session.sql("DROP TABLE t")
    session.restore("t", to=last)
    assert rows(session) == expected
    session.sql("INSERT INTO t VALUES (1000, 3)")
    uri = f"ducklake:{session.current_lake.location.path}"
    history = our_history(session, "duckdb")
    session.close()
    newest = last + 3
    theirs = reference_history(reference, uri)[newest, '"main"."t"']
    assert [row[:1] + row[2:] for row in theirs] == [row[:1] + row[2:] for row in history[newest, '"main"."t"']]


def test_in_a_transaction_and_undone(session: dl.Session) -> None:
    now = rows(session)
    session.sql("BEGIN; CALL lake.restore('t', 3)")
    assert len(rows(session)) == 32
    session.sql("ROLLBACK")
    assert rows(session) == now


def test_what_cannot_be_restored_says_why(session: dl.Session, tmp_path: Path) -> None:
    with pytest.raises(dl.DuckLakeError, match="no snapshot 99"):
        session.restore("t", to=99)
    with pytest.raises(dl.DuckLakeError, match="not there at snapshot 0"):
        session.restore("t", to=0)
    last = session.current_snapshot().snapshot_id
    session.sql("DELETE FROM t")
    for path in (tmp_path / "data").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(dl.DuckLakeError, match="is gone"):
        session.restore("t", to=last)
    assert session.current_snapshot().snapshot_id == last + 1
    assert list((tmp_path / "data").rglob("*.parquet")) == []


@pytest.mark.every_catalog
def test_on_every_catalog(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        for statement in HISTORY:
            session.sql(statement)
        expected = rows(session, 9)
        session.restore("main.t", to=9)
        assert rows(session) == expected


def changes(rng: random.Random) -> list[str]:
    """Statements, some without a change."""
    low = rng.randrange(0, 900)
    return [
        f"INSERT INTO t SELECT i, 'n', i / 4 FROM range({1000 + low}, {1000 + low + rng.choice((3, 40))}) AS r(i)",
        f"DELETE FROM t WHERE i BETWEEN {low} AND {low + rng.choice((2, 60))}",
        f"UPDATE t SET s = 'u{rng.randrange(3)}' WHERE i BETWEEN {low} AND {low + rng.choice((2, 60))}",
        "UPDATE t SET x = -x WHERE i % 100 = 0",
        "CALL lake.flush_inlined_data()",
        "CALL lake.merge_adjacent_files()",
        "CALL lake.rewrite_data_files(delete_threshold => 0)",
    ]


CASES = pytest.mark.parametrize(
    ("seed", "before", "limits"),
    [
        (0, "", Limits()),
        (1, "", Limits()),
        (2, "CALL lake.set_option('write_deletion_vectors', true)", Limits()),
        (3, "ALTER TABLE t SET PARTITIONED BY (bucket(3, i))", Limits()),
        (4, "CALL lake.set_option('data_inlining_row_limit', 0)", Limits()),
        (5, "", Limits(change=0)),
        (6, "CALL lake.set_option('data_inlining_row_limit', 0)", Limits(change=0)),
    ],
)


def numbers_are_those_of_rows(seed: int, before: str, limits: Limits, uri: str, folder: Path) -> History:
    """Restores at random among changes at random, and compares the numbers of each; returns what the snapshots hold."""
    rng = random.Random(seed)

    def rows(at: int | None = None) -> set[Any]:
        when = "" if at is None else f" AT (VERSION => {at})"
        return set(session.sql(f"SELECT rowid, i, s, x::VARCHAR FROM t{when}", engine="duckdb").fetchall())

    with dl.connect(uri, alias="lake", data_path=f"{folder}/data", limits=limits) as session:
        session.sql("CREATE TABLE t (i BIGINT, s VARCHAR, x DOUBLE)")
        session.sql(before)
        session.sql("INSERT INTO t SELECT i, 'a', i / 4 FROM range(1000) AS r(i)")
        for _ in range(12):
            for _ in range(rng.randrange(3)):
                session.sql(rng.choice(changes(rng)), engine="duckdb")
            newest = session.current_snapshot().snapshot_id
            to = rng.randrange(1, newest + 1)
            had, expected = rows(), rows(to)
            snapshot = session.restore("t", to=to)
            assert rows() == expected
            if snapshot is not None and (entry := list(session.snapshots())[-1]).at_most:
                assert limits.change == 0
                assert entry.rows_added >= len(expected - had) and entry.rows_removed >= len(had - expected)
                assert entry.rows_added - entry.rows_removed == len(expected) - len(had)
                continue
            if had == expected:
                assert snapshot is None and session.current_snapshot().snapshot_id == newest
                continue
            entry = list(session.snapshots())[-1]
            assert (entry.rows_added, entry.rows_removed) == (len(expected - had), len(had - expected))
            assert entry.kind == "restore"
            assert entry.changes == (f"restored main.t to snapshot {to}",)
        return our_history(session, "duckdb")


@pytest.mark.slow
@CASES
def test_rows_that_differ_are_those_that_a_restore_moves(
    seed: int,
    before: str,
    limits: Limits,
    lake_uri: Callable[..., str],
    tmp_path: Path,
    reference: duckdb.DuckDBPyConnection,
) -> None:
    uri = lake_uri()
    history = numbers_are_those_of_rows(seed, before, limits, uri, tmp_path)
    assert {key: [row[:1] + row[2:] for row in rows] for key, rows in reference_history(reference, uri).items()} == {
        key: [row[:1] + row[2:] for row in rows] for key, rows in history.items()
    }


@pytest.mark.slow
@CASES
def test_numbers_of_restores_on_mysql(
    seed: int, before: str, limits: Limits, new_catalog: Callable[..., str], tmp_path: Path
) -> None:
    assert numbers_are_those_of_rows(seed, before, limits, new_catalog("mysql"), tmp_path)


def test_a_tag_and_a_time_are_targets_as_an_id_is(session: dl.Session) -> None:
    session.tag("before-delete", 3)
    expected = rows(session, 3)
    assert session.sql("CALL lake.restore('t', 'before-delete')").fetchall() == [("main", "t", 3)]
    assert rows(session) == expected
    made = session.sql("SELECT snapshot_time FROM lake.snapshots() WHERE snapshot_id = 5").fetchone()
    assert session.sql("CALL lake.restore('t', :at)", params={"at": str(made[0])}).fetchall() == [("main", "t", 5)]
    assert session.sql("FROM lake.restore('t', '3')").fetchall() == [("main", "t", 3)]
    assert rows(session) == expected
    with pytest.raises(dl.SnapshotNotFoundError, match="before-delete"):
        session.sql("CALL lake.restore('t', 'before-delte')")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("mine", 'mine\n{"restored": [{"table_id": 1, "snapshot_id": 3}]}'),
        ('{"job": 7}', '{"job": 7, "restored": [{"table_id": 1, "snapshot_id": 3}]}'),
        ("[1]", '[1]\n{"restored": [{"table_id": 1, "snapshot_id": 3}]}'),
    ],
)
def test_what_a_user_notes_of_a_commit_stays(session: dl.Session, given: str, kept: str) -> None:
    with session.transaction(extra_info=given):
        session.sql("CALL lake.restore('t', 3)")
    entry = list(session.snapshots())[-1]
    assert (entry.info.commit_extra_info, entry.kind) == (kept, "restore")
    assert "restored main.t to snapshot 3" in entry.changes
    with session.transaction(extra_info=given):
        session.sql("DELETE FROM t")
    entry = list(session.snapshots())[-1]
    assert (entry.info.commit_extra_info, entry.kind) == (given, "delete")


@pytest.mark.parametrize("kind", ["VARCHAR", "VARIANT", "GEOMETRY"])
@pytest.mark.parametrize("limits", [Limits(), Limits(change=0)], ids=["here", "large"])
def test_rewritten_files_do_not_count(kind: str, limits: Limits, lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        value = {"VARCHAR": "'v'", "VARIANT": "i::VARIANT", "GEOMETRY": "'POINT (1 2)'::GEOMETRY"}[kind]
        session.sql(f"CREATE TABLE t AS SELECT i, {value} AS v FROM range(400) AS r(i)")
        session.sql("DELETE FROM t WHERE i % 4 = 0; CALL lake.rewrite_data_files(delete_threshold => 0)")
        session.sql("DELETE FROM t WHERE i % 4 = 1; CALL lake.rewrite_data_files(delete_threshold => 0)")
    with dl.connect(uri, alias="lake", limits=limits) as session:
        made = session.sql("SELECT min(snapshot_id) FROM lake.snapshots() WHERE changes::VARCHAR LIKE '%inserted%'")
        to = made.fetchone()[0]
        had, then = (
            set(session.sql(f"SELECT rowid, i FROM t {at}").fetchall()) for at in ("", f"AT (VERSION => {to})")
        )
        session.restore("t", to=to)
        entry = list(session.snapshots())[-1]
        assert (entry.rows_added, entry.rows_removed, entry.at_most) == (len(then - had), len(had - then), False)
        assert set(session.sql("SELECT rowid, i FROM t").fetchall()) == then
        assert not session.spark_started


@pytest.mark.parametrize(
    ("value", "kind", "limits", "at_most"),
    [
        ("v", "VARCHAR", Limits(), False),
        ("v", "VARCHAR", Limits(change=0), True),
        ("v", "VARIANT", Limits(), True),
        ("v", "GEOMETRY", Limits(), True),
    ],
)
def test_values_that_are_not_compared_make_numbers_upper_bounds(
    value: str, kind: str, limits: Limits, at_most: bool, lake_uri: Callable[..., str], tmp_path: Path
) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", limits=limits) as session:
        made = {"VARCHAR": "'v'", "VARIANT": "i::VARIANT", "GEOMETRY": "'POINT (1 2)'::GEOMETRY"}[kind]
        session.sql(f"CREATE TABLE t AS SELECT i, {made} AS v FROM range(400) AS r(i)", engine="duckdb")
        to = session.current_snapshot().snapshot_id
        session.sql("DELETE FROM t WHERE i < 50", engine="duckdb")
        session.sql(f"UPDATE t SET v = {value} WHERE i >= 380", engine="duckdb")
        session.restore("t", to=to)
        entry = list(session.snapshots())[-1]
        # 20 rows have the values that they had
        expected = (70, 20) if at_most else (50, 0)
        assert (entry.rows_added, entry.rows_removed, entry.at_most) == (*expected, at_most)
        assert ("at most +70 \u221220" in session.snapshots()._repr_html_()) == at_most
        assert session.snapshots().arrow().column("at_most").to_pylist()[-1] is at_most
        assert session.sql("SELECT count(*) FROM t").fetchone() == (400,)
        assert not session.spark_started
