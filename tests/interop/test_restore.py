"""A restored table holds what it held then, for the reference too, and other snapshots read as before."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import our_history, reference_history

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
