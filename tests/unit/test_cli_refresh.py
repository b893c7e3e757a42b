"""`ducklake-lab refresh`: live tables from a terminal, once and as the lake moves on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main


@pytest.fixture
def lake(tmp_path: Path) -> str:
    path = f"{tmp_path}/lake.ducklake"
    with dl.connect(f"ducklake:{path}", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i AS k, i % 2 AS g FROM range(6) r(i)")
        session.sql("CREATE LIVE TABLE x AS SELECT g, max(k) AS k FROM t GROUP BY g; INSERT INTO t VALUES (90, 0)")
    return path


def test_explained_and_refreshed(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["refresh", lake, "x", "--explain", "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert [(row["table"], row["mode"], row["source"]) for row in explained] == [("main.x", "incremental", "main.t")]
    assert main(["refresh", lake, "--json"]) == 0
    (done,) = json.loads(capsys.readouterr().out)
    assert (done["mode"], done["rows_read"], done["rows_changed"]) == ("incremental", 1, 2)
    assert main(["refresh", lake, '"x"', "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["mode"] == "nothing"


def test_what_is_no_live_table_is_an_error(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["refresh", lake, "t"]) == 2
    assert capsys.readouterr().err == "ducklake-lab: main.t is no live table; CREATE LIVE TABLE makes one.\n"
    assert main(["refresh", lake, "x..y"]) == 2
    assert "is no table name" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["refresh", lake, "--watch", "--every", "nan"])


def test_watching_prints_tables_that_are_refreshed_beside_a_failed_one(
    lake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
        session.sql("CREATE TABLE u AS SELECT 1 AS k; CREATE LIVE TABLE y AS SELECT k FROM u; DROP TABLE u")
    monkeypatch.setattr("ducklake_lab.cli.live.watch", lambda look, every: look())
    assert main(["refresh", lake, "--watch", "--json"]) == 2
    printed = capsys.readouterr()
    assert [row["table"] for row in json.loads(printed.out)] == ["main.x"]
    assert "main.y" in printed.err


@pytest.mark.slow
def test_watching_follows_the_lake_until_it_is_stopped(lake: str) -> None:
    command = [
        sys.executable,
        "-m",
        "ducklake_lab.cli",
        "refresh",
        lake,
        "--watch",
        "--every",
        "0.2",
        "--engine",
        "duckdb",
    ]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for value, expected in ((91, [(0, 91), (1, 5)]), (99, [(0, 91), (1, 99)])):
            _insert(lake, value)
            deadline = time.monotonic() + 120
            while _rows(lake) != expected:
                assert time.monotonic() < deadline, watcher.poll()
                time.sleep(0.2)
    finally:
        os.kill(watcher.pid, signal.SIGINT)
        shown, _ = watcher.communicate(timeout=120)
    assert watcher.returncode == 130
    assert "incremental" in shown


def _insert(lake: str, value: int) -> None:
    _patiently(lake, f"INSERT INTO t VALUES ({value}, {value % 2 if value == 99 else 0})")


def _rows(lake: str) -> list[tuple[object, ...]]:
    return _patiently(lake, "FROM x ORDER BY g")


def _patiently(lake: str, sql: str) -> list[tuple[object, ...]]:
    """Runs a statement; another process may have the catalog file open for a moment."""
    deadline = time.monotonic() + 120
    while True:
        try:
            with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
                return session.sql(sql).fetchall()
        except dl.CatalogLockedError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
