"""The command `ducklake-lab`, as CI and a terminal call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main

pytestmark = pytest.mark.sampled(2)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    path = f"{tmp_path}/lake.ducklake"
    with dl.connect(f"ducklake:{path}", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        session.sql("UPDATE t SET s = 'x\x1b[31m' WHERE i = 2")
    return path


@pytest.mark.slow
def test_text(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", lake, "t", "2", "3"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "main.t  snapshot 2 → 3"
    assert shown[1] == "0 deleted · 0 inserted · 1 updated · 1 unchanged · 1 cells changed"
    assert shown[-1] == "→ 1  s=b→x⟨U+001B⟩[31m"  # no control of the terminal


@pytest.mark.slow
def test_exit_code(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", f"ducklake:{lake}", "t", "-1", "--exit-code"]) == 1
    assert main(["diff", lake, "t", "3", "--exit-code"]) == 0
    assert main(["diff", lake, "tt", "3", "--exit-code"]) == 2
    assert 'no table "tt"' in capsys.readouterr().err
    assert main(["diff", lake + "x", "t", "3"]) == 2
    assert not Path(lake + "x").exists()


@pytest.mark.parametrize("path", ["no/such/o.html", "."])
def test_a_page_that_cannot_be_written_is_an_error(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str
):
    assert main(["diff", lake, "t", "2", "--exit-code", "--html", str(tmp_path / path)]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 1
    assert f"cannot be written to {tmp_path / path}: " in shown[0]


def test_a_crash_does_not_say_that_the_states_differ(
    lake: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(dl.Diff, "to_json", lambda self, rows: 1 / 0)
    assert main(["diff", lake, "t", "2", "--exit-code", "--json"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["-1", "-999", "x", "1.5"])
def test_the_number_of_rows_is_checked(lake: str, capsys: pytest.CaptureFixture[str], number: str):
    with pytest.raises(SystemExit) as stopped:
        main(["diff", lake, "t", "2", "--rows", number])
    assert stopped.value.code == 2
    assert f'--rows: takes a number of rows, 0 or more, not "{number}"' in capsys.readouterr().err
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session, pytest.raises(dl.UsageError, match="not -1"):
        session.table("t").diff(2, 3).rows(-1)


def test_snapshots_counted_from_the_newest(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", lake, "t", "-1"]) == 0
    assert capsys.readouterr().out.startswith("main.t  snapshot 2 → 3")
    assert main(["diff", lake, "t", "-999"]) == 2
    assert "There is no snapshot -999: the newest is 3, and -3 counts back to the first." in capsys.readouterr().err


def test_html_and_json(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", lake, "t", "0002", "--html", str(tmp_path / "d.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["updated"] == 1
    assert "1</b> updated" in (tmp_path / "d.html").read_text()


def test_indexes(catalog: str, lake_uri: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    uri = lake_uri()
    with dl.connect(uri, data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
    if catalog == "duckdb":
        assert main(["indexes", uri]) == 0
        assert "none are offered" in capsys.readouterr().out
        assert main(["indexes", uri, "--create"]) == 2
        assert "quick without indexes" in capsys.readouterr().err
        return
    assert main(["indexes", uri]) == 0
    before = capsys.readouterr().out.splitlines()
    assert len(before) == 5
    assert "missing  CREATE INDEX ducklake_data_file_by_table_id ON ducklake_data_file (table_id)" in before
    assert main(["indexes", uri, "--create"]) == 0
    created = capsys.readouterr().out
    assert created.count("created ") == created.count("there ") == 5
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("INSERT INTO t FROM range(20)")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(20,)]
    assert main(["indexes", uri, "--create"]) == 0
    assert "created" not in capsys.readouterr().out
    assert main(["indexes", uri, "--drop"]) == 0
    assert capsys.readouterr().out.splitlines()[-5:] == before


def test_a_patch_is_printed(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["diff", lake, "t", "2", "3", "--patch", "-"]) == 0
    assert "UPDATE" in capsys.readouterr().out
    assert not (tmp_path / "-").exists()


def test_a_reader_that_stops_reading_is_no_error(lake: str):
    command = [sys.executable, "-m", "ducklake_lab.cli", "diff", lake, "t", "2", "3", "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
