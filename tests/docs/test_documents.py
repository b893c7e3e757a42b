"""The documentation: its code runs, its reference is whole, and the site builds without a warning."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import duckdb
import nbformat
import pytest

import ducklake_lab as dl
from tests.notebooks.running import execute, text_of
from tests.reference import extension

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: decisions show code of the past; the architecture follows statements on the demo lake, which its own tests run
EXCLUDED = (DOCS / "adr", DOCS / "architecture.md")
RUN = ("python", "sql")
#: What is shown, not run: other commands of a shell, a settings file, what a program prints.
SHOWN = ("sh", "toml", "text", "json", "yaml")


@dataclass
class Block:
    language: str
    text: str
    output: str | None = None


def pages() -> list[Path]:
    found = sorted(DOCS.rglob("*.md"))
    return [page for page in found if not any(page == out or out in page.parents for out in EXCLUDED)]


def blocks(page: Path) -> list[Block]:
    """The code of a page in order; a block of text right after code is what it prints."""
    found: list[Block] = []
    text = page.read_text(encoding="utf-8")
    end = -1
    for match in re.finditer(r"^```(\w*)\n(.*?)^```\n?", text, re.DOTALL | re.MULTILINE):
        language, body = match[1], match[2]
        if language == "text" and found and not text[end : match.start()].strip():
            found[-1].output = body
        else:
            found.append(Block(language, body))
        end = match.end()
    return found


def code(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language in RUN or is_ours(block)]


def is_ours(block: Block) -> bool:
    """Whether a block is for a shell and calls the command of this package, or that of Spark's pipelines."""
    lines = block.text.splitlines()
    return block.language == "sh" and all(
        re.match(r"(echo .* \| )?ducklake-lab |spark-pipelines ", line) for line in lines
    )


def as_cell(block: Block) -> str:
    if block.language != "sh":
        return block.text.rstrip()
    pipelines = Path(sys.executable).parent / "spark-pipelines"
    script = (
        f'set -e\nducklake-lab() {{ "{sys.executable}" -m ducklake_lab.cli "$@"; }}\n'
        f'spark-pipelines() {{ "{pipelines}" "$@"; }}\n{block.text}'
    )
    return f"import subprocess\nsubprocess.run(['bash', '-c', {script!r}], check=True)"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(DOCS)))
def test_every_block_is_of_a_kind_that_is_run_or_shown(page: Path):
    assert {block.language for block in blocks(page)} <= {*RUN, *SHOWN}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("page", [page for page in pages() if code(page)], ids=lambda page: str(page.relative_to(DOCS)))
def test_code_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path, request: pytest.FixtureRequest):
    """A page is a notebook in an empty folder; SQL without a magic is DuckDB's own."""
    if page.name == "from-spark.md":
        request.getfixturevalue("spark_jar")
    if page.name == "other-formats.md":
        for package in ("deltalake", "pyiceberg"):
            pytest.importorskip(package, reason="needs the extras [delta] and [iceberg]")
    if page.name == "orchestrate.md":
        pytest.importorskip("dagster", reason="needs dagster")
    if page.name == "serve.md":
        extension("quack")
    cells, plain = [], []
    for block in code(page):
        if block.language == "sql" and not block.text.startswith("%"):
            plain.append(block)
        else:
            cells.append(block)
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(as_cell(block)) for block in cells])
    executed = execute(document, tmp_path)
    for block, cell in zip(cells, executed.cells, strict=True):
        if block.output is not None:
            printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
            assert printed == block.output
        elif block.text.startswith("%") and "<<" not in block.text and "load_ext" not in block.text:
            assert text_of(cell)
    for block in plain:
        run_on_the_reference(block.text, tmp_path)


def run_on_the_reference(sql: str, folder: Path) -> None:
    from tests.reference import connect

    connection: duckdb.DuckDBPyConnection = connect()
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert connection.execute(sql).fetchall()
    finally:
        os.chdir(before)
        connection.close()


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    specification = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    assert specification is not None and specification.loader is not None
    module: ModuleType = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    made: dict[str, str] = module.pages()
    return made


def test_reference_names_everything(reference: dict[str, str]):
    from ducklake_lab.magics import DuckLakeMagics, arguments, options

    magics = reference["reference/magics.md"]
    assert all(f"### {name}\n" in magics for name in arguments.parsers())
    assert all(f"`--{name}" in magics for name in (*options.VALUED, *options.FLAGS))
    assert all(f"`{name}`" in magics for name in DuckLakeMagics.class_trait_names(config=True))
    errors = reference["reference/errors.md"]
    assert all(f"`{name}`" in errors for name in dl.errors.__all__ if name.endswith("Error"))
    python = reference["reference/python.md"]
    for name in ("Session.sql", "Session.transaction", "TableHandle.diff", "Result.arrow", "Diff.rows"):
        assert f"### {name}\n" in python
    assert "`snapshots`" in reference["reference/functions.md"]


def test_reference_explains_every_option(reference: dict[str, str]):
    rows = re.findall(r"^\| (`[^|]*`) \|(.*)\|$", reference["reference/magics.md"], re.MULTILINE)
    assert [name for name, meaning in rows if not meaning.strip(" |")] == []


def test_site_builds_without_a_warning(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    for page in ("index", "tutorial/index", "reference/magics/index", "adr/index"):
        path = tmp_path / "site" / f"{page}.html"
        assert path.is_file()
        # nothing is loaded from other machines
        assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//(?!ducklake)', path.read_text()) == []


def test_architecture_names_modules_that_exist() -> None:
    """Each path in the architecture page is a module, a room or a file of the repository."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:\w+/)+(?:\w+\.py)?|\w+(?:/\w+)+(?:\.py)?)`", text)
    assert len(paths) > 15
    missing = [path for path in paths if not any((root / path).exists() for root in (ROOT, ROOT / "ducklake_lab"))]
    assert not missing
