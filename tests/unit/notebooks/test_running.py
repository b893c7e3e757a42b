"""Notebooks that are executed as of a snapshot, by the command."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main
from tests.notebooks.running import text_of

pytestmark = pytest.mark.slow

REPORT = (
    "%load_ext ducklake_lab\n%ducklake connect ducklake:lake.ducklake",
    "%%ducklake\nSELECT count(*) AS n FROM t",
    "%%ducklake\nSELECT min(i) AS i FROM t",
    "import ducklake_lab as dl\nwith dl.connect('ducklake:lake.ducklake') as s:\n    print(s.sql('FROM t').arrow().num_rows)",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with dl.connect("ducklake:lake.ducklake", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS FROM range(20) r(i); INSERT INTO t FROM range(5, 35)")
        session.tag("q3", 1)
    return tmp_path


def write(*cells: str) -> None:
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), "report.ipynb")


def test_a_run_as_of_a_snapshot(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(*REPORT)
    before = Path("report.ipynb").read_bytes()
    assert main(["run", "report.ipynb", "--as-of", "q3", "--output", "out.ipynb"]) == 0
    assert capsys.readouterr().out == "report.ipynb: lake as of snapshot 1 · wrote out.ipynb\n"
    cells = nbformat.read("out.ipynb", as_version=4).cells
    assert "pinned at q3 (snapshot 1)" in text_of(cells[0]) and ">20<" in text_of(cells[1])
    assert text_of(cells[3]) == "20\n"
    assert Path("report.ipynb").read_bytes() == before


def test_two_runs_are_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(*REPORT[:3])
    assert main(["run", "report.ipynb", "--compare", "q3", "2"]) == 1
    # the line about the lake says how many rows it has
    assert capsys.readouterr().out == (
        "report.ipynb: the outputs of 2 of 3 cells differ: 1, 2 · wrote report.compare.html\n"
    )
    page = Path("report.compare.html").read_text()
    assert "SELECT count(*) AS n FROM t" in page and "q3 → 2" in page
    assert main(["run", "report.ipynb", "--compare", "2", "2", "--html", "same.html"]) == 0


@pytest.mark.parametrize(
    ("cells", "words", "message"),
    [
        ([*REPORT[:1], "%%ducklake\nDELETE FROM t"], [], "The lake lake is read as of q3 (snapshot 1) in this process"),
        (["1 + 1"], [], "attached no lake with this package, so nothing was read as of q3"),
        (REPORT[:1], ["--lake", "other"], 'attached no lake "other"'),
        (["%load_ext ducklake_lab\n%ducklake connect ducklake:new.ducklake"], [], "There is no lake at"),
    ],
    ids=["writes", "no lake", "another lake", "a new lake"],
)
def test_what_would_mislead_fails(
    folder: Path, capsys: pytest.CaptureFixture[str], cells: list[str], words: list[str], message: str
) -> None:
    write(*cells)
    assert main(["run", "report.ipynb", "--as-of", "q3", *words]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not Path("new.ducklake").exists()
    with dl.connect("ducklake:lake.ducklake") as session:
        assert session.current_snapshot().snapshot_id == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.ipynb", "--as-of", "1"], "The notebook none.ipynb cannot be read: No such file"),
        (["text.ipynb", "--as-of", "1"], "text.ipynb is no notebook"),
        (["report.ipynb", "--as-of", "1", "--html", "x.html"], "--html is of --compare"),
        (["report.ipynb", "--compare", "1", "2", "--output", "x.ipynb"], "--output is of --as-of"),
    ],
)
def test_misuse_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    write("1")
    Path("text.ipynb").write_text("no json")
    assert main(["run", *words]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
