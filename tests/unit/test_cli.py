"""`ducklake-lab diff`, as CI calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main


@pytest.fixture
def lake(tmp_path: Path) -> str:
    path = f"{tmp_path}/lake.ducklake"
    with dl.connect(f"ducklake:{path}", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        session.sql("UPDATE t SET s = 'x\x1b[31m' WHERE i = 2")
    return path


def test_text(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", lake, "t", "2", "3"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "main.t  snapshot 2 → 3"
    assert shown[1] == "0 deleted · 0 inserted · 1 updated · 1 unchanged · 1 cells changed"
    assert shown[-1] == "→ 1  s=b→x⟨U+001B⟩[31m"  # no control of the terminal


def test_exit_code(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", f"ducklake:{lake}", "t", "-1", "--exit-code"]) == 1
    assert main(["diff", lake, "t", "3", "--exit-code"]) == 0
    assert main(["diff", lake, "tt", "3", "--exit-code"]) == 2
    assert 'no table "tt"' in capsys.readouterr().err
    assert main(["diff", lake + "x", "t", "3"]) == 2
    assert not Path(lake + "x").exists()


def test_html_and_json(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", lake, "t", "0002", "--html", str(tmp_path / "d.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["updated"] == 1
    assert "1</b> updated" in (tmp_path / "d.html").read_text()
