"""A client that stops in the middle of a commit: others wait for some time, learn its name, and lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog import database, servers
from ducklake_lab.transaction import commit

pytestmark = pytest.mark.sampled(4)

#: Commits a row, and stops on the way: with the lock of commits only, or with all of its rows written.
_CLIENT = """
import os, signal, sys
import ducklake_lab as dl
from ducklake_lab.transaction.writer import CommitWriter

write = CommitWriter.write

def stopping(writer):
    if not os.environ.pop("STOPS", None):
        return write(writer)
    if sys.argv[2] == "written":
        found = write(writer)
        writer.metadata.flush()
        writer.metadata.connection.exec_driver_sql("SELECT 1").all()  # sends what is held back
    os.kill(os.getpid(), signal.SIGSTOP)
    return write(writer) if sys.argv[2] != "written" else found

CommitWriter.write = stopping
with dl.connect(sys.argv[1], alias="lake") as session:
    session.sql("INSERT INTO t VALUES (1)", engine="duckdb")
"""


@contextmanager
def _stopped(uri: str, where: str) -> Iterator[int]:
    """A client that has stopped; it goes on and must succeed at the end. Gives its process id."""
    client = subprocess.Popen(
        [sys.executable, "-c", _CLIENT, uri, where], env={**os.environ, "STOPS": "1"}, stderr=subprocess.PIPE, text=True
    )
    try:
        _, status = os.waitpid(client.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), client.stderr and client.stderr.read()
        yield client.pid
        os.kill(client.pid, signal.SIGCONT)
        _, errors = client.communicate(timeout=120)
        assert client.returncode == 0, errors
    finally:
        client.kill()
        client.wait()


@pytest.fixture
def session(kind: str, new_catalog: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(new_catalog(kind), alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as found:
        found.sql("CREATE TABLE t (i INTEGER)")
        yield found


def _uri(session: dl.Session) -> str:
    uri = session.current_lake.location.uri
    assert uri is not None
    return uri


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_a_server_s_queue_is_left_after_a_while(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "LOCK_SECONDS", 1)
    with _stopped(_uri(session), "locked"):
        with pytest.warns(RuntimeWarning, match=r"is being written by connection \d+ \(user .*since 20.*end it with"):
            session.sql("INSERT INTO t VALUES (2)")
        assert session.sql("FROM t").fetchall() == [(2,)]
    assert session.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_what_a_client_holds_on_a_server_is_named(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "LOCK_SECONDS", 1)
    with _stopped(_uri(session), "written"):
        named = r"written by connection \d+ \(user .*Nothing was written"
        with pytest.warns(RuntimeWarning), pytest.raises(dl.CatalogLockedError, match=named):
            session.sql("INSERT INTO t VALUES (2)")
        assert session.sql("FROM t").fetchall() == []
        if session.current_lake.location.backend == "postgresql":
            with pytest.raises(dl.CatalogLockedError, match=r"written by connection \d+"):
                session.tag("mine")
    session.sql("INSERT INTO t VALUES (2)")
    assert session.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,)]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_file_s_holder_is_named(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_WAIT_SECONDS", 0.2)
    monkeypatch.setattr(commit, "_HELD_SECONDS", 0.2)
    with _stopped(_uri(session), "written") as pid, pytest.raises(dl.CatalogLockedError) as raised:
        session.sql("INSERT INTO t VALUES (2)")
    assert f"(process {pid}, which is stopped)" in str(raised.value)
    session.sql("INSERT INTO t VALUES (2)")
    assert session.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,)]
