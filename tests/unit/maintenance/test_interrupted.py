"""Maintenance that is stopped half-way: the lake is as before, and the same statement does the rest later."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)

FILES, ROWS = 60, 20
MERGE = "CALL lake.merge_adjacent_files('t', max_compacted_files => {})"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    """A lake whose table t has sixty files, each of a snapshot of its own, of twenty rows."""
    with dl.connect(f"ducklake:sqlite:{tmp_path}/lake.sqlite", alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE t (i INTEGER, s VARCHAR)")
        for start in range(0, FILES * ROWS, ROWS):
            session.sql(f"INSERT INTO t SELECT i, repeat('x', 100) || i FROM range({start}, {start + ROWS}) r(i)")
        yield session


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.parquet"))


def newest(session: dl.Session) -> int:
    return int(session.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()[0][0])


def rows(session: dl.Session, last: int) -> list[object]:
    """The rows at a few snapshots, up to and with the last."""
    query = "SELECT rowid, snapshot_id, * FROM t AT (VERSION => {}) ORDER BY ALL"
    return [session.sql(query.format(at)).fetchall() for at in (2, 3, FILES // 2, last)]


def stop(session: dl.Session, statement: str, folder: Path, count: int) -> None:
    """Runs a statement and presses Ctrl-C as soon as so many more files are in the folder."""
    before, done = len(files(folder)), threading.Event()

    def watch() -> None:
        while len(files(folder)) < before + count:
            if done.wait(0.001):
                return
        signal.raise_signal(signal.SIGINT)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            session.sql(statement)
    finally:
        done.set()
        watcher.join()


@pytest.mark.slow
def test_a_merge_that_is_stopped_leaves_the_lake_as_it_was(session: dl.Session, tmp_path: Path) -> None:
    # files of two or three: there are many groups to be stopped between
    session.sql("CALL lake.set_option('target_file_size', '1KB')")
    last = newest(session)
    before = rows(session, last), files(tmp_path)
    stop(session, "CALL lake.merge_adjacent_files('t')", tmp_path, 3)
    assert (rows(session, last), files(tmp_path)) == before and newest(session) == last


@pytest.mark.slow
def test_pieces_that_are_merged_stay_and_the_rest_follows(session: dl.Session, tmp_path: Path) -> None:
    last = newest(session)
    before = rows(session, last)
    size = session.sql("SELECT max(data_file_size_bytes) FROM ducklake_list_files('lake', 't')").fetchall()[0][0]
    session.sql(f"CALL lake.set_option('target_file_size', '{size * 9}B')")
    merged = [session.sql(MERGE.format(2)).fetchall()]
    stop(session, MERGE.format(100), tmp_path, 1)
    while merged[-1]:
        merged.append(session.sql(MERGE.format(2)).fetchall())
    counts = [(read, written) for piece in merged for *_, read, written in piece]
    assert len(counts) > 4 and sum(read for read, _ in counts) >= FILES and all(written == 1 for _, written in counts)
    assert rows(session, last) == before
    assert session.sql("FROM lake.delete_orphaned_files(dry_run => true, cleanup_all => true)").fetchall() == []


@pytest.mark.slow
def test_a_rewrite_that_is_stopped_leaves_the_lake_as_it_was(session: dl.Session, tmp_path: Path) -> None:
    # a file for each partition
    session.sql("DROP TABLE t; CREATE TABLE t (i INTEGER, k INTEGER); ALTER TABLE t SET PARTITIONED BY (k)")
    session.sql("INSERT INTO t SELECT i, i % 12 FROM range(1200) r(i); DELETE FROM t WHERE i % 2 = 0 OR i < 200")
    before = session.sql("FROM ducklake_list_files('lake', 't')").fetchall(), files(tmp_path)
    stop(session, "CALL lake.rewrite_data_files('t', delete_threshold => 0.1)", tmp_path, 2)
    assert (session.sql("FROM ducklake_list_files('lake', 't')").fetchall(), files(tmp_path)) == before
    session.sql("CALL lake.rewrite_data_files('t', delete_threshold => 0.1)")
    assert session.sql("SELECT count(*), sum(i) FROM t").fetchall() == [(500, 350_000)]
