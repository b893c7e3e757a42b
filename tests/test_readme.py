"""The README's commands exist, its links lead somewhere, and its cells and snippets do what they say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests import reference
from tests.notebooks.running import execute, text_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")])


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_make_targets_exist() -> None:
    named = set(re.findall(r"\bmake ([a-z]+)", README))
    listed = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
    assert {"demo", "lab", "test"} <= named <= set(re.findall(r"make ([a-z]+)", listed))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", document.read_text(encoding="utf-8"))
    # the reference is made when the site is built, which checks the links to it
    targets = [target for target in targets if "reference/" not in target]
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_cells_run_in_a_notebook(demo_lake: Path, tmp_path: Path) -> None:
    (tmp_path / "demo").symlink_to(demo_lake)
    load, *_ = blocks("python")
    cells = [*load.strip().splitlines(), *blocks("sql"), *re.findall(r"`(%ducklake [^`]+)`", README)]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source.strip()) for source in cells])
    executed = execute(document, tmp_path)
    shown = {cell.source.splitlines()[0]: text_of(cell) for cell in executed.cells}
    assert "ExpressJet Airlines Inc." in shown["%%ducklake"]
    assert all(shown[source] for source in cells if source.startswith("%ducklake"))


def test_python_snippet_runs(demo_lake: Path, tmp_path: Path) -> None:
    (tmp_path / "demo").symlink_to(demo_lake)
    _, snippet = blocks("python")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert re.search(r"^336776 flights, \d+ updated in snapshot 13$", done.stdout, re.MULTILINE)


def test_commands_run_in_a_terminal(demo_lake: Path, tmp_path: Path) -> None:
    (tmp_path / "demo").symlink_to(demo_lake)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # `open` serves until it is stopped, and has tests of its own
    commands = [c for c in re.findall(r"`ducklake-lab ([^`]+)`", README) if not c.startswith("open ")]
    assert {command.split()[0] for command in commands} == {"sql", "snapshots", "diff"}
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "ducklake_lab.cli", *shlex.split(command)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(done.stdout.splitlines()) > 3


def test_what_the_comparison_says_of_the_reference(tmp_path: Path) -> None:
    """Its extension restores nothing, and one process holds a catalog in a DuckDB file."""
    with reference.connect() as connection:
        functions = "SELECT function_name FROM duckdb_functions() WHERE function_name LIKE 'ducklake_%'"
        names = {name for (name,) in connection.execute(functions).fetchall()}
        assert "ducklake_table_changes" in names
        assert not [name for name in names if "restore" in name or "diff" in name]
        connection.execute(f"ATTACH 'ducklake:{tmp_path}/lake.ducklake' AS lake")
        other = (
            f"from tests import reference; reference.connect().execute(\"ATTACH 'ducklake:{tmp_path}/lake.ducklake'\")"
        )
        held = subprocess.run([sys.executable, "-c", other], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Could not set lock" in held.stderr
    assert subprocess.run([sys.executable, "-c", other], cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_figures_of_the_comparison_are_those_of_the_performance_page() -> None:
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| DuckDB \| 1 \| (\d+) \| (\d+) \|", page, re.MULTILINE)
    ours, theirs = map(int, row)
    assert "[twice as often](docs/performance.md#commits-a-second)" in README
    assert 1.75 < theirs / ours < 2.25
