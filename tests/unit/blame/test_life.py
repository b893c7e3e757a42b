"""The life of a row on real lakes, from insert to delete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import ducklake_lab as dl


@pytest.fixture
def session(tmp_path: Path, lake_uri: Callable[..., str]) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


#: (snapshot id, kind, changes as (column, before, after)).
Lines = list[tuple[int, str, list[tuple[str, str | None, str | None]]]]


def lines(session: dl.Session, row_id: int, **more: object) -> Lines:
    found = session.table("t").life(row_id, **more).fetchall()  # type: ignore[arg-type]
    return [(row[0], row[1], [tuple(change.values()) for change in row[-1]]) for row in found]


MAINTENANCE = ("flush_inlined_data()", "rewrite_data_files(delete_threshold => 0.01)", "merge_adjacent_files()")


@pytest.mark.parametrize("rows", [3, 40], ids=["inlined", "files"])
def test_a_row_from_insert_to_delete(session: dl.Session, rows: int) -> None:
    session.sql(f"CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range({rows}) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i = 1")
    session.sql("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7")
    session.sql("UPDATE t SET i = 10, s = NULL WHERE i = 1")
    session.sql("UPDATE t SET s = s")  # nothing changes
    expected: Lines = [
        (2, "insert", [("i", None, "1"), ("s", None, "a")]),
        (3, "update", [("s", "a", "b")]),
        (4, "alter", [("n", None, "7")]),
        (5, "update", [("i", "1", "10"), ("s", "b", None)]),
    ]
    assert lines(session, 1) == expected
    session.sql("DELETE FROM t WHERE i = 10")
    expected.append((7, "delete", [("i", "10", None), ("s", None, None), ("n", "7", None)]))
    for call in ("", *MAINTENANCE):
        if call:
            session.sql(f"CALL lake.{call}")
        assert lines(session, 1) == expected, call
        assert lines(session, 1, at=6) == expected[:-1], call
        assert lines(session, 1, at=3) == expected[:2], call
    assert lines(session, 0)[0] == (2, "insert", [("i", None, "0"), ("s", None, "a")])


def test_each_line_has_its_commit(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    session.author = "bob"
    session.record_statements = lambda: {"notebook": "fix.ipynb", "cell": 4}
    session.sql("UPDATE t SET i = 2", message="fix")
    found = session.table("t").life(0)
    assert found.columns == [
        *["snapshot_id", "kind", "time", "author", "message", "statement", "notebook", "cell", "changes"]
    ]
    assert found.fetchall()[1][3:8] == ("bob", "fix", "UPDATE t SET i = 2", "fix.ipynb", 4)


@pytest.mark.parametrize("rows", [3, 40], ids=["inlined", "files"])
def test_a_row_that_comes_back(session: dl.Session, rows: int) -> None:
    session.sql(f"CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range({rows}) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i < 2")
    session.sql("DELETE FROM t WHERE i = 1")
    session.restore("t", to=3)
    session.sql("UPDATE t SET s = 'c' WHERE i = 1")
    session.sql("DELETE FROM t WHERE i = 1")
    kinds = [(2, "insert"), (3, "update"), (4, "delete"), (5, "insert"), (6, "update"), (7, "delete")]
    assert [line[:2] for line in lines(session, 1)] == kinds
    for call in MAINTENANCE:
        session.sql(f"CALL lake.{call}")
        assert [line[:2] for line in lines(session, 1)] == kinds, call


def test_a_row_that_never_was(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    for row_id in (1, -1, 2**62):
        with pytest.raises(dl.EntryNotFoundError, match=f"row {row_id}"):
            session.table("t").life(row_id)
    with pytest.raises(dl.EntryNotFoundError, match="row 0"):
        session.table("t").life(0, at=1)


@pytest.mark.parametrize("row_id", ["x", 1.5, None, True, 2**63])
def test_a_row_id_is_a_whole_number(session: dl.Session, row_id: object) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    with pytest.raises(dl.UsageError, match="whole number"):
        session.table("t").life(row_id)  # type: ignore[arg-type]
    assert len(session.table("t").life(np.int64(0)).fetchall()) == 1


def test_what_expired_is_left_out(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(30) r(i)")
    for letter in "bcd":
        session.sql(f"UPDATE t SET s = '{letter}'")
    session.sql("CALL lake.expire_snapshots(versions => [0, 1, 2, 3])")
    session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
    found = session.table("t").life(1)
    assert [row[:2] for row in found.fetchall()] == [(5, "update")]
    assert found.info.remarks == ["earlier snapshots have expired: history known from snapshot 4"]
    session.sql("DELETE FROM t WHERE i = 1")
    assert [row[:2] for row in session.table("t").life(1).fetchall()] == [(5, "update"), (6, "delete")]
    session.sql("DELETE FROM t")
    session.sql("CALL lake.expire_snapshots(versions => [4, 5, 6])")
    assert [row[:2] for row in session.table("t").life(2).fetchall()] == [(7, "delete")]


def test_only_the_files_of_the_row_are_read(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
    for number in range(5):
        session.sql(f"INSERT INTO t SELECT i, 'a' FROM range({100 * number}, {100 * number + 50}) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i >= 200 AND i < 250")
    for number in (0, 1, 3, 4):
        session.sql(f"UPDATE t SET s = 'z' WHERE i >= {100 * number} AND i < {100 * number + 50}")
    expected = [line[:2] for line in lines(session, 110)]
    assert expected == [(4, "insert"), (7, "update")]
    held = {
        path
        for at in (4, 7)
        for (path,) in session.sql(f"SELECT DISTINCT filename FROM t AT (VERSION => {at}) WHERE i = 210").fetchall()
    }
    for path in (tmp_path / "data").rglob("*.parquet"):
        if str(path) not in held and "delete" not in path.name:
            path.unlink()
    assert [line[:2] for line in lines(session, 110)] == expected
