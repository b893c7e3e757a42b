"""The command `ducklake-lab`, as CI and a terminal call it."""

from __future__ import annotations

import json
from collections.abc import Callable
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
