"""`ducklake-lab serve`: a catalog in a DuckDB file, for other processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main
from ducklake_lab.duckdb.remote import RemoteConnection
from tests.quack import free_port
from tests.reference import extension

pytestmark = pytest.mark.sampled(2)


@pytest.fixture(autouse=True)
def _needs_the_extension() -> None:
    extension("quack")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "lake.ducklake"
    with dl.connect(f"ducklake:{place}", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i")
    return place


Serve = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts `ducklake-lab serve`; returns its process, and what it printed until it serves."""
    started = []

    def start(*words: object, token: str | None = None) -> tuple[subprocess.Popen[str], str]:
        environment = {key: value for key, value in os.environ.items() if key != "QUACK_TOKEN"}
        if token is not None:
            environment["QUACK_TOKEN"] = token
        command = [sys.executable, "-m", "ducklake_lab.cli", "serve", *map(str, words)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        started.append(process)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Connect"):
                break
        return process, "".join(lines)

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(
    ending: signal.Signals, path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    port = free_port()
    process, said = serve(path, "--port", port)
    (token,) = re.findall(r"^Token: (\S{40,})$", said, re.MULTILINE)
    assert said.count(token) == 1
    assert f'dl.connect("ducklake:quack:localhost:{port}", data_path="{path}.files/")' in said
    monkeypatch.setenv("QUACK_TOKEN", token)
    with dl.connect(f"ducklake:quack:localhost:{port}", data_path=f"{path}.files/", engine="duckdb") as session:
        session.sql("INSERT INTO t VALUES (2)")
        with pytest.raises(dl.CatalogLockedError, match=f"process {process.pid}"):
            dl.connect(f"ducklake:{path}")
        process.send_signal(ending)
        rest, _ = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "Stopped.\n")
    assert not path.with_name(f"{path.name}.wal").exists()
    with dl.connect(f"ducklake:{path}", engine="duckdb") as session:
        assert session.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,)]


def test_clients_reach_the_catalog_alone(path: Path, serve: Serve, tmp_path: Path):
    port = free_port()
    process, said = serve(path, "--port", port, token="chosen-by-hand")
    assert "chosen-by-hand" not in said
    (tmp_path / "other.csv").write_text("a\n1\n")
    client = RemoteConnection(f"quack:localhost:{port}", "chosen-by-hand")
    for statement in (
        f"FROM read_csv('{tmp_path}/other.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/made.csv'",
        f"ATTACH '{tmp_path}/made.db'",
        "SET enable_external_access = true",
        "SET threads = 1",
    ):
        with pytest.raises(duckdb.Error, match=r"disabled|locked|Cannot"):
            client.execute(statement)
        client.rollback()
    assert not list(tmp_path.glob("made*"))
    client.close()
    # and nobody else listens there
    address = f"0100007F:{port:04X}"
    listening = [
        line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"
    ]
    assert [place for place in listening if place.endswith(f":{port:04X}")] == [address]
    assert process.poll() is None


def test_what_cannot_be_served(
    path: Path, tmp_path: Path, serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def refused(*words: object) -> str:
        assert main(["serve", *map(str, words)]) == 2
        return capsys.readouterr().err

    assert "Only catalogs in DuckDB files are served" in refused("ducklake:sqlite:x.sqlite")
    assert "Only catalogs in DuckDB files are served" in refused("ducklake:quack:localhost:1")
    assert "There is no lake at" in refused(tmp_path / "absent.ducklake")
    assert not (tmp_path / "absent.ducklake").exists()
    port = free_port()
    serve(path, "--port", port)
    assert "is in use by" in refused(path, "--port", free_port())
    assert f"localhost:{port}: Address already in use" in refused(
        tmp_path / "other.ducklake", "--data-path", tmp_path / "d", "--port", port
    )
    monkeypatch.setenv("QUACK_TOKEN", "abc")
    assert "QUACK_TOKEN has fewer than 4 letters" in refused(path)


def test_a_new_lake(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch):
    process, said = serve(
        tmp_path / "new.ducklake", "--data-path", tmp_path / "data", "--port", 0, token="chosen-by-hand"
    )
    monkeypatch.setenv("QUACK_TOKEN", "chosen-by-hand")
    (uri,) = re.findall(r'dl\.connect\("(\S+)"', said)
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("CREATE TABLE t AS FROM range(1000)")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(1000,)]
    assert list((tmp_path / "data").rglob("*.parquet"))
    assert process.poll() is None
