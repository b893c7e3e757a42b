"""A DuckDB catalog file is held only while it is used, and shared by all that use it in this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.duckdb_files import DuckDBFiles

pytestmark = pytest.mark.sampled(3)


def held(path: Path) -> bool:
    """Whether another process cannot open the file for writing."""
    code = f"import duckdb; duckdb.connect({str(path)!r})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0 or "Could not set lock" in result.stderr, result.stderr
    return result.returncode != 0


def log_of(path: Path) -> Path:
    return path.with_name(path.name + ".wal")


def test_a_file_is_held_as_long_as_a_connection_uses_it(tmp_path: Path) -> None:
    path = tmp_path / "it's.db"
    files = DuckDBFiles()
    one, two = files.open(path), files.open(path)
    one.execute("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    assert two.execute("FROM t").fetchall() == [(1,)]
    one.close()
    assert held(path)
    two.close()
    two.close()
    log = log_of(path)
    assert log.exists()
    assert not held(path)
    three = files.open(path)
    assert three.execute("FROM t").fetchall() == [(1,)]
    three.execute("INSERT INTO t FROM range(10_000)")
    three.close()
    assert not log.exists()  # it had grown
    four = files.open(path)
    four.execute("INSERT INTO t VALUES (2)")
    four.close()
    assert log.exists()
    files.write_back(path)
    assert not log.exists()
    with duckdb.connect(str(path), read_only=True) as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (10_002,)


@pytest.mark.slow
def test_a_session_holds_its_file_during_statements_only(tmp_path: Path) -> None:
    path = tmp_path / "lake.ducklake"
    with dl.connect(f"ducklake:{path}", alias="lake", data_path=f"{tmp_path}/d") as session:
        assert not held(path)
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
        assert not held(path)
        with duckdb.connect(str(path)), pytest.raises(dl.CatalogLockedError, match="open in this process"):
            session.sql("FROM t")
        assert session.sql("FROM t").fetchall() == [(1,)]
        session.sql("INSERT INTO t VALUES (2)")
        assert log_of(path).exists()
        with duckdb.connect(str(path), read_only=True) as other:
            assert other.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchone() == (3,)
    assert not log_of(path).exists()


@pytest.mark.slow
@pytest.mark.parametrize("sql", [True, False])
def test_an_exclusive_session_holds_its_file_until_it_detaches(tmp_path: Path, *, sql: bool) -> None:
    path = tmp_path / "lake.ducklake"
    with dl.Session() as session:
        if sql:
            session.sql(f"ATTACH 'ducklake:{path}' AS lake (DATA_PATH '{tmp_path}/d', EXCLUSIVE)")
            session.use("lake")
        else:
            session.attach(f"ducklake:{path}", "lake", f"{tmp_path}/d", exclusive=True)
        assert held(path)
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
        with pytest.raises(dl.ConstraintError), session.transaction():
            session.sql("INSERT INTO t VALUES ('no number')")
        assert held(path)
        with dl.connect(f"ducklake:{path}", alias="again") as second:  # this process shares it
            second.sql("INSERT INTO t VALUES (2)")
        assert session.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,)]
        assert held(path)
        session.detach("lake")
        assert not held(path)
        assert not log_of(path).exists()
    with duckdb.connect(str(path), read_only=True) as other:
        assert other.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchone() == (3,)


def test_a_lake_that_takes_the_place_of_an_exclusive_one_lets_go_of_it(tmp_path: Path) -> None:
    path = tmp_path / "lake.ducklake"
    with dl.connect(f"ducklake:{path}", alias="lake", data_path=f"{tmp_path}/d", exclusive=True) as session:
        session.sql(f"ATTACH OR REPLACE 'ducklake:{path}' AS lake")
        assert not held(path)


def test_only_catalogs_in_duckdb_files_are_held(tmp_path: Path) -> None:
    with pytest.raises(dl.UnsupportedFeatureError, match="EXCLUSIVE is for catalogs in DuckDB files; those in sqlite"):
        dl.connect(f"ducklake:sqlite:{tmp_path}/lake.sqlite", exclusive=True)
    assert not (tmp_path / "lake.sqlite").exists()


@pytest.mark.slow
def test_who_holds_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lake.ducklake"
    with dl.connect(f"ducklake:{path}", alias="lake", data_path=f"{tmp_path}/d") as session:
        code = f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None and other.stdin is not None
            assert other.stdout.readline() == "open\n"
            with pytest.raises(dl.CatalogLockedError, match=rf"process {other.pid}\)"):
                session.tables()
            other.stdin.close()
        assert session.tables() == []


#: Holds a file nearly all the time, as a process does that commits without a pause.
_BUSY = """
import duckdb, sys, threading, time
threading.Thread(target=lambda: (sys.stdin.read(), done.append(1)), daemon=True).start()
done = []
while not done:
    with duckdb.connect(sys.argv[1]):
        print("open", flush=True)
        time.sleep(0.15)
    time.sleep(0.006)
"""


@pytest.mark.slow
def test_a_file_is_had_between_two_statements_of_a_busy_process(tmp_path: Path) -> None:
    path = tmp_path / "lake.ducklake"
    dl.connect(f"ducklake:{path}", data_path=f"{tmp_path}/d").close()
    command = [sys.executable, "-c", _BUSY, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as busy:
        assert busy.stdout is not None and busy.stdin is not None
        try:
            busy.stdout.readline()
            for _ in range(3):
                with dl.connect(f"ducklake:{path}") as session:
                    assert session.tables() == []
        finally:
            busy.stdin.close()
            busy.stdout.read()
