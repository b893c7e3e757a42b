"""Reverts of deletions whose rows lack a value that has expired: those rows alone are conflicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    """A lake with `t (i, v, w)`: 40 rows in a file, and two inlined ones."""
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as opened:
        opened.sql("CREATE TABLE t (i INTEGER, v INTEGER, w INTEGER)")
        opened.sql("INSERT INTO t SELECT i, i, i FROM range(40) r(i)")
        opened.sql("INSERT INTO t VALUES (100, 100, 100), (101, 101, 101)")
        yield opened


def newest(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


def done(session: dl.Session, statement: str) -> int:
    session.sql(statement)
    return newest(session)


def deleted_without(session: dl.Session, written: str, gone: str) -> int:
    """Delete rows, some of which were written while the table had no column `w`; forget its values."""
    dropped = done(session, "ALTER TABLE t DROP COLUMN w")
    session.sql(f"UPDATE t SET v = -1 WHERE {written}")
    deleted = done(session, f"DELETE FROM t WHERE {gone}")
    session.revert(dropped)
    versions = ", ".join(map(str, range(1, dropped + 1)))
    session.sql(f"CALL lake.expire_snapshots(versions => [{versions}])")
    return deleted


WRITTEN = {"in a file": ("i < 20", "i < 30"), "inlined": ("i IN (3, 100)", "i IN (3, 4, 100, 101)")}


@pytest.mark.parametrize(("written", "gone"), WRITTEN.values(), ids=WRITTEN)
def test_only_rows_without_their_value_are_conflicts(session: dl.Session, written: str, gone: str) -> None:
    lost = [rid for (rid,) in session.sql(f"SELECT rowid FROM t WHERE {written} ORDER BY ALL").fetchall()]
    whole = f"SELECT i, i, i FROM (VALUES {', '.join(f'({i})' for i in (*range(40), 100, 101))}) r(i)"
    deleted = deleted_without(session, written, gone)
    before = newest(session)
    with pytest.raises(
        dl.RevertConflictError, match=r"main\.t row \d+ w \(deleted, and its value has expired\)"
    ) as error:
        session.revert(deleted)
    assert [(c.row_id, c.column) for c in error.value.conflicts] == [(rid, "w") for rid in lost]
    with pytest.raises(dl.UnsupportedFeatureError, match=f"Row {lost[0]} of main.t cannot come back"):
        session.revert(deleted, on_conflict="revert")
    assert newest(session) == before
    session.revert(deleted, on_conflict={"main.t": dict.fromkeys(lost, "keep")})
    expected = session.sql(f"FROM ({whole}) AS s(i, v, w) WHERE NOT ({written}) ORDER BY ALL").fetchall()
    assert session.sql("FROM t ORDER BY ALL").fetchall() == expected


def test_rows_with_their_value_come_back_without_a_question(session: dl.Session) -> None:
    deleted = deleted_without(session, "i = 39", "i < 30 OR i = 100")
    before = session.sql("SELECT count(*), sum(w) FROM t").fetchall()
    assert before == [(11, sum(range(30, 39)) + 39 + 101)]
    session.revert(deleted)
    assert session.sql("SELECT count(*), count(w), sum(w) FROM t").fetchall() == [(42, 42, sum(range(40)) + 201)]


def test_the_rest_comes_back_by_row_id(session: dl.Session) -> None:
    deleted = deleted_without(session, "i < 5", "i < 10")
    session.revert(deleted, rows=[7, 8])
    assert session.sql("FROM t WHERE i < 10 ORDER BY i").fetchall() == [(7, 7, 7), (8, 8, 8)]
