"""Cache of a catalog file between statements: it reads nothing again, and sees every change by others."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.catalog.duckdb_files import FILES

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake.ducklake"


@pytest.fixture
def session(path: Path, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{path}", alias="lake", data_path=f"{tmp_path}/d") as opened:
        opened.sql("CREATE TABLE t (i INTEGER)")
        opened.sql("INSERT INTO t VALUES (1)")
        yield opened


def stats(path: Path) -> tuple[object, ...]:
    with duckdb.connect(str(path), read_only=True) as other:
        found = other.execute(
            "SELECT record_count, next_row_id, min_value, max_value "
            "FROM ducklake_table_stats JOIN ducklake_table_column_stats USING (table_id)"
        ).fetchone()
    assert found is not None
    return found


def test_one_insert_after_another_reads_nothing(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ducklake_lab.catalog.duckdb_files._LOG_BYTES", 1_000_000)
    session.sql("INSERT INTO t VALUES (2)")
    ran: list[str] = []

    def before(_conn: object, _cursor: object, text: str, *_: object) -> None:
        ran.append(text.split()[0])

    sa.event.listen(sa.Engine, "before_cursor_execute", before)
    try:
        session.sql("INSERT INTO t VALUES (3)")
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", before)
    assert "INSERT" in ran
    assert "SELECT" not in ran
    assert session.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,), (3,)]


def test_a_settled_file_without_a_log_is_known_again(
    session: dl.Session, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FILES.write_back(path)
    lake = session.lakes[0]

    def number() -> int | None:
        with lake.connect(fresh=True) as connection:
            return lake.database.content(connection)

    number()
    unsettled = number()
    assert number() != unsettled
    # every change is older than a step of the clock
    monkeypatch.setattr("ducklake_lab.catalog.file_marks._STEP", 0)
    number()
    settled = number()
    assert number() == settled
    counted = itertools.count(1)

    def ask() -> int:
        with lake.connect() as connection:
            lake.newest_in(connection)
            return lake.answer(connection, ("a question", 1), lambda: next(counted))

    assert [ask(), ask()] == [1, 1]
    code = 'import duckdb, sys; duckdb.connect(sys.argv[1]).execute("UPDATE ducklake_snapshot SET next_file_id = 77")'
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert number() != settled
    assert ask() == 2
    session.sql("INSERT INTO t VALUES (2)")
    assert ask() == 3


@pytest.mark.parametrize("written_back", [False, True])
def test_what_is_kept_is_what_would_be_read(session: dl.Session, path: Path, written_back: bool) -> None:
    for i in (5, 0, 7):
        session.sql(f"INSERT INTO t VALUES ({i})")
        if written_back:
            FILES.write_back(path)
    assert stats(path) == (4, 4, "0", "7")
    assert session.sql("SELECT rowid, i FROM t ORDER BY ALL").fetchall() == [(0, 1), (1, 5), (2, 0), (3, 7)]


def test_what_another_duckdb_writes_is_seen(session: dl.Session, path: Path) -> None:
    session.sql("INSERT INTO t VALUES (2)")
    with duckdb.connect(str(path)) as other:
        other.execute("UPDATE ducklake_table_stats SET record_count = 100, next_row_id = 200")
        other.execute("UPDATE ducklake_table_column_stats SET max_value = '1000'")
        other.execute("INSERT INTO ducklake_metadata (key, value) VALUES ('data_inlining_row_limit', '0')")
    session.sql("INSERT INTO t VALUES (3)")
    assert stats(path) == (101, 201, "1", "1000")
    with duckdb.connect(str(path), read_only=True) as other:
        assert other.execute("SELECT count(*) FROM ducklake_data_file").fetchone() == (1,)


@pytest.mark.slow
def test_what_another_process_commits_is_seen(session: dl.Session, path: Path) -> None:
    code = (
        f"import ducklake_lab as dl, os\nsession = dl.connect('ducklake:{path}')\n"
        "session.sql('INSERT INTO t VALUES (2)')\nos._exit(0)  # and its log stays"
    )
    for number in (2, 4):
        subprocess.run([sys.executable, "-c", code], check=True)
        session.sql("INSERT INTO t VALUES (3)")
        assert stats(path)[:2] == (number + 1, number + 1)
    assert session.current_snapshot().snapshot_id == 6


@pytest.mark.slow
def test_sessions_of_one_process_see_each_other(session: dl.Session, path: Path) -> None:
    with dl.connect(f"ducklake:{path}", alias="lake") as other:
        for i in range(3):
            session.sql(f"INSERT INTO t VALUES ({i})")
            other.sql(f"INSERT INTO t VALUES ({i + 10})")
        other.sql("ALTER TABLE t ADD COLUMN j INTEGER")
        session.sql("INSERT INTO t VALUES (4, 5)")
        other.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        session.sql("INSERT INTO t VALUES (6, 7)")
    assert stats(path)[:2] == (9, 9)
    assert session.sql("SELECT count(*), count(j), count(DISTINCT rowid) FROM t").fetchall() == [(9, 2, 9)]
    with duckdb.connect(str(path), read_only=True) as reader:
        assert reader.execute("SELECT count(*) FROM ducklake_data_file").fetchone() == (1,)


@pytest.mark.slow
def test_threads_that_commit_at_once_lose_nothing(session: dl.Session, path: Path) -> None:
    def write(number: int) -> None:
        with dl.connect(f"ducklake:{path}", alias="lake") as own:
            for i in range(10):
                own.sql(f"INSERT INTO t VALUES ({number * 100 + i})")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.sql("INSERT INTO t VALUES (999)")
    assert stats(path) == (32, 32, "1", "999")
    assert session.sql("SELECT count(*), count(DISTINCT rowid), max(rowid) FROM t").fetchall() == [(32, 32, 31)]


def test_a_commit_that_alters_a_table_reads_it_anew(session: dl.Session, path: Path) -> None:
    session.sql("INSERT INTO t VALUES (2)")
    session.sql("BEGIN; ALTER TABLE t ALTER i TYPE BIGINT; ALTER TABLE t ADD COLUMN s VARCHAR")
    session.sql("INSERT INTO t VALUES (3000000000, 'a'); COMMIT")
    session.sql("INSERT INTO t VALUES (4, 'b')")
    assert session.sql("FROM t ORDER BY i").fetchall() == [(1, None), (2, None), (4, "b"), (3_000_000_000, "a")]
    assert stats(path)[:2] == (4, 4)
