"""A catalog that cannot grow: it is said at once, nothing is lost, and work goes on once there is room."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)

#: Writes until the catalog's files may not grow any more, as a quota or a full disk ends it; prints the error and what is there.
_FULL = """
import resource, sys
from pathlib import Path
import ducklake_lab as dl

with dl.connect(sys.argv[1], alias="lake", engine="duckdb") as session:
    session.sql("INSERT INTO t VALUES (0, 'x')")
    files = Path(sys.argv[2]).glob("lake*")
    most = min(file.stat().st_size for file in files if file.is_file()) + 500
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    said = 1
    try:
        for number in range(100):
            session.sql(f"INSERT INTO t VALUES ({number}, repeat('y', 5000))")
            said += 1
    except dl.TransactionError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(said,)]
    session.sql("INSERT INTO t VALUES (-1, 'z')")
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(said + 1,)]
    assert len(session.snapshots()) == 2 + said + 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of files")
@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_file_that_may_not_grow(kind: str, new_catalog: Callable[..., str], tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
        path = session.current_lake.location.path
        assert path is not None
    done = subprocess.run([sys.executable, "-c", _FULL, uri, str(path.parent)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"The disk of the catalog {path.name} is full")
    assert done.stdout.count("\n") == 1


def test_a_branch_without_room_is_not_made(tmp_path: Path) -> None:
    """Nor is the lake changed: the branch's catalog cannot be created at all."""
    made = """
import resource, sys
import ducklake_lab as dl

with dl.connect(sys.argv[1], alias="lake", engine="duckdb") as session:
    session.sql("CREATE TABLE t AS SELECT 1 AS i")
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    try:
        session.branch("b")
    except dl.CatalogError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert len(session.branches()) == 0
    session.branch("b")
"""
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    done = subprocess.run([sys.executable, "-c", made, uri], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "The disk of the catalog lake.ducklake#b is full, or its file may not grow; nothing was written. "
        "Make room and try again.\n"
    )


@pytest.mark.parametrize("when", ["BEFORE INSERT", "CONSTRAINT"])
def test_a_server_whose_disk_is_full(when: str, postgres: Callable[[], str], tmp_path: Path) -> None:
    place = postgres()
    with dl.connect(f"ducklake:postgres:{place}", alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        raises = "BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END"
        trigger = "TRIGGER full_ BEFORE INSERT" if when != "CONSTRAINT" else "CONSTRAINT TRIGGER full_ AFTER INSERT"
        at_commit = "DEFERRABLE INITIALLY DEFERRED" if when == "CONSTRAINT" else ""
        with psycopg.connect(place, autocommit=True) as other:
            other.execute(f"CREATE FUNCTION full_() RETURNS trigger LANGUAGE plpgsql AS $$ {raises} $$".encode())
            other.execute(
                f"CREATE {trigger} ON ducklake_snapshot {at_commit} FOR EACH ROW EXECUTE FUNCTION full_()".encode()
            )
        with pytest.raises(dl.TransactionError, match=r"The disk of the catalog .* is full"):
            session.sql("INSERT INTO t VALUES (1)")
        with psycopg.connect(place, autocommit=True) as other:
            other.execute("DROP TRIGGER full_ ON ducklake_snapshot")
        session.sql("INSERT INTO t VALUES (2)")
        assert session.sql("FROM t").fetchall() == [(2,)]
