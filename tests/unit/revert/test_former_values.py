"""Rows that come back without a column that the table has again: they get the values that they had last."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    """A lake with `t (i, v, w, s)` of 30 rows in a file and one inlined; w and the field `s.a` are as i."""
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, v INTEGER, w INTEGER, s STRUCT(a INTEGER, b INTEGER))")
        session.sql("INSERT INTO t SELECT i, i, i, {'a': i, 'b': i} FROM range(30) r(i)")
        session.sql("INSERT INTO t VALUES (100, 100, 100, {'a': 100, 'b': 100})")
        yield session


def done(session: dl.Session, statement: str) -> int:
    """Run a statement, and return its snapshot."""
    session.sql(statement)
    return session.current_snapshot().snapshot_id


def others(session: dl.Session) -> list[tuple[int, int | None]]:
    """Rows whose `w` is not as `i`."""
    return session.sql("SELECT i, w FROM t WHERE w IS DISTINCT FROM i ORDER BY i").fetchall()


@pytest.mark.parametrize("rewrites", [False, True])
def test_rows_deleted_while_a_column_was_dropped(session: dl.Session, rewrites: bool) -> None:
    dropped = done(session, "ALTER TABLE t DROP COLUMN w")
    session.sql("UPDATE t SET v = -1 WHERE i >= 20")
    session.sql("INSERT INTO t (i, v) VALUES (200, 200)")
    deleted = done(session, "DELETE FROM t WHERE i >= 25")
    if rewrites:
        session.sql("CALL lake.flush_inlined_data()")
        session.sql("CALL lake.rewrite_data_files(delete_threshold => 0)")
    session.revert(dropped)
    session.revert(deleted)
    assert others(session) == [(200, None)], "it was never there with the column"
    assert session.sql("SELECT count(*), min(v) FROM t").fetchall() == [(32, -1)]


def test_rows_that_came_back_in_between(session: dl.Session) -> None:
    """The row is not in the last state with the column, which was dropped twice."""
    first = done(session, "DELETE FROM t WHERE i IN (3, 100)")
    dropped = done(session, "ALTER TABLE t DROP COLUMN w")
    session.revert(first)
    second = done(session, "DELETE FROM t WHERE i IN (3, 100)")
    session.revert(dropped)
    again = done(session, "ALTER TABLE t DROP COLUMN w")
    session.revert(second)
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(31,)]
    third = done(session, "DELETE FROM t WHERE i < 4 OR i = 100")
    session.revert(again)
    session.revert(third)
    assert others(session) == []


def test_rows_without_a_field_are_refused(session: dl.Session) -> None:
    dropped = done(session, "ALTER TABLE t DROP COLUMN s.a")
    session.sql("UPDATE t SET v = -1 WHERE i < 3")
    deleted = done(session, "DELETE FROM t WHERE i < 3")
    session.revert(dropped)
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.UnsupportedFeatureError, match=r"main\.t .*field s\.a was dropped"):
        session.revert(deleted)
    assert session.current_snapshot().snapshot_id == before


def test_rows_that_were_not_written_without_a_field_come_back(session: dl.Session) -> None:
    dropped = done(session, "ALTER TABLE t DROP COLUMN s.a")
    deleted = done(session, "DELETE FROM t WHERE i < 3")
    session.revert(dropped)
    session.revert(deleted)
    assert session.sql("SELECT count(*) FROM t WHERE s.a = i").fetchall() == [(31,)]


def test_a_column_that_expiry_forgot_is_known_by_older_files(tmp_path: Path) -> None:
    """Other clients remove the rows of a column that no snapshot has."""
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, w INTEGER)")
        session.sql("INSERT INTO t SELECT i, i FROM range(300) r(i)")
        dropped = done(session, "ALTER TABLE t DROP COLUMN w")
        session.sql("UPDATE t SET i = -1 WHERE i < 3")
        deleted = done(session, "DELETE FROM t WHERE i < 3")
        session.revert(dropped)
        versions = ", ".join(map(str, range(1, dropped + 1)))
        session.sql(f"CALL lake.expire_snapshots(versions => [{versions}])")
    with sqlite3.connect(tmp_path / "m.sqlite") as catalog:
        assert catalog.execute(f"DELETE FROM ducklake_column WHERE end_snapshot = {dropped}").rowcount == 1
    with (
        dl.connect(uri, alias="lake", engine="duckdb") as session,
        pytest.raises(
            dl.RevertConflictError, match=r"3 conflicts .*main\.t row 0 w \(deleted, and its value has expired\)"
        ),
    ):
        session.revert(deleted)


def test_a_column_that_is_younger_is_none_of_them(session: dl.Session) -> None:
    deleted = done(session, "DELETE FROM t WHERE i < 3")
    session.sql("ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 7")
    session.revert(deleted)
    assert session.sql("SELECT count(*) FROM t WHERE x = 7").fetchall() == [(31,)]
