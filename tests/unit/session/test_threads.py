"""Threads that use one session, or a session each: what is confirmed is in the lake, once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.engine import turn
from ducklake_lab.engine.placement import Limits

pytestmark = pytest.mark.sampled(3)

_THREADS, _ROUNDS = 5, 4


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as found:
        found.sql(
            "CREATE TABLE t (thread INTEGER, round INTEGER); CREATE TABLE c (n INTEGER); INSERT INTO c VALUES (0)"
        )
        yield found


@contextmanager
def _working(session: dl.Session) -> Iterator[None]:
    """While another thread is in a transaction block."""
    entered, left = threading.Event(), threading.Event()

    def work() -> None:
        with session.transaction():
            session.sql("INSERT INTO c VALUES (1)")
            entered.set()
            assert left.wait(60)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        assert entered.wait(60)
        try:
            yield
        finally:
            left.set()
            working.result()


def _work(session: dl.Session, thread: int) -> list[tuple[int, int]]:
    """Gives the rows that were confirmed."""
    said = []
    with session.appender("t", rows=2) as appender:
        appender.append((thread, -1))
        appender.append((thread, -2))
        said += [(thread, -1), (thread, -2)]
    for number in range(_ROUNDS):
        session.sql(f"INSERT INTO t VALUES ({thread}, {number})")
        said.append((thread, number))
        session.sql("UPDATE c SET n = n + 1")
        seen = session.sql(f"SELECT count(*) FROM t WHERE thread = {thread}").fetchone()
        assert seen == (len(said),)
        with session.transaction():
            session.sql(f"INSERT INTO t VALUES ({thread}, {100 + number})")
            session.sql(
                f"INSERT INTO t SELECT thread, round + 100 FROM t WHERE (thread, round) = ({thread}, {100 + number})"
            )
        said += [(thread, 100 + number), (thread, 200 + number)]
        handle = session.table("t")
        assert len(list(handle.history())) <= len(list(session.snapshots()))
        assert handle.diff().summary.inserted
    return said


def _check(session: dl.Session, said: list[list[tuple[int, int]]]) -> None:
    rows = session.sql("SELECT thread, round FROM t").fetchall()
    assert sorted(rows) == sorted(row for found in said for row in found)
    ids = session.sql("SELECT rowid FROM t").fetchall()
    assert len(set(ids)) == len(rows)
    assert session.sql("SELECT n FROM c").fetchall() == [(_THREADS * _ROUNDS,)]
    snapshots = [entry.info.snapshot_id for entry in session.snapshots()]
    assert snapshots == list(range(4 + _THREADS * (1 + 3 * _ROUNDS)))


def test_threads_of_one_session_lose_nothing(session: dl.Session) -> None:
    with ThreadPoolExecutor(_THREADS) as pool:
        said = list(pool.map(lambda thread: _work(session, thread), range(_THREADS)))
    _check(session, said)


def test_threads_with_a_session_each_lose_nothing(session: dl.Session) -> None:
    uri = session.current_lake.location.uri

    def work(thread: int) -> list[tuple[int, int]]:
        with dl.Session(engine="duckdb") as own:
            own.attach(uri or "", "lake")
            return _work(own, thread)

    session.sql("SET ducklake_max_retry_count = 100")
    with ThreadPoolExecutor(_THREADS) as pool:
        said = list(pool.map(work, range(_THREADS)))
    _check(session, said)


def test_a_block_is_one_snapshot_of_its_own_thread(session: dl.Session) -> None:
    with ThreadPoolExecutor(1) as pool:
        with _working(session):
            other = pool.submit(session.sql, "INSERT INTO t VALUES (7, 7)")
            time.sleep(0.05)
            assert not other.done()
        other.result()
    assert session.sql("FROM c ORDER BY n").fetchall() == [(0,), (1,)]
    assert session.sql("FROM t").fetchall() == [(7, 7)]


def test_a_block_that_is_rolled_back_takes_no_row_of_another_thread_along(session: dl.Session) -> None:
    with ThreadPoolExecutor(1) as pool:
        with session.transaction() as transaction:
            session.sql("INSERT INTO t VALUES (1, 1)")
            other = pool.submit(session.sql, "INSERT INTO t VALUES (7, 7)")
            transaction.rollback()
            assert not other.done()
        other.result()
    assert session.sql("FROM t").fetchall() == [(7, 7)]


def test_who_waits_for_a_block_too_long_learns_why(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "BLOCK_SECONDS", 0.1)
    with (
        _working(session),
        pytest.raises(dl.SessionBusyError, match=r"a transaction of this session open .* session of its own"),
    ):
        session.sql("SELECT 1")
    assert session.sql("SELECT 1").fetchall() == [(1,)]


def test_a_view_that_asks_meanwhile_gives_up_soon(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "LOOK_SECONDS", 0.1)
    result = session.sql("SELECT n FROM c")
    assert result.head(1).num_rows == 1
    with _working(session), turn.looking():
        with pytest.raises(dl.SessionBusyError, match="ask again"):
            session.current_snapshot()
        assert session.engine == "duckdb"
        assert not session.spark_started
        assert result.fetchall() == [(0,)]  # is here already
    with turn.looking():
        assert session.current_snapshot().snapshot_id == 4


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_ends_the_wait_and_keeps_nothing(session: dl.Session) -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread is interrupted")
    with _working(session):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            session.sql("SELECT 1")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(session.sql, "SELECT 1").result().fetchall() == [(1,)]


def test_rows_that_wait_are_computed_once_in_any_thread(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    limits = Limits(eager=0)
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/d", engine="duckdb", limits=limits) as session:
        session.sql("CREATE TABLE t AS SELECT range AS i FROM range(1000)")
        results = [session.sql(f"SELECT i FROM t WHERE i >= {start}") for start in range(8)]
        assert all(result.in_process for result in results)
        with ThreadPoolExecutor(4) as pool:
            counted = [pool.submit(lambda result=result: result.fetchall()) for result in results * 2]
            session.sql("INSERT INTO t VALUES (5000)")
            found = [len(rows.result()) for rows in counted]
        assert found == [1000 - start for start in range(8)] * 2


def test_a_preview_is_committed_in_another_thread(session: dl.Session) -> None:
    preview = session.preview("INSERT INTO t VALUES (1, 1)")
    with ThreadPoolExecutor(1) as pool:
        snapshot = pool.submit(preview.commit).result()
    assert snapshot is not None
    assert session.sql("FROM t").fetchall() == [(1, 1)]
