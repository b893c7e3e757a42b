from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.magics import DuckLakeMagics
from ducklake_lab.session.result import Result, RunInfo, count_result
from tests.browser import samples


class Session:
    """Stands for a session: records what it is asked."""

    def __init__(self) -> None:
        self.on_progress: Any = None
        self.current_schema = "main"
        self.spark_starting = False
        self.current_lake = SimpleNamespace(alias="flights")
        self.asked: list[tuple[str, dict[str, object]]] = []
        self.used: list[str] = []
        self.params: Mapping[str, object] = {}

    def sql(self, text: str, params: Mapping[str, object] | None = None, *, dialect: str = "duckdb") -> Result:
        assert params is not None
        assert self.on_progress is not None
        self.params = params
        self.asked.append((text, {"dialect": dialect}))
        if "dealy" in text:
            raise BindError('flights has no column "dep_dealy" (line 2, column 3).', line=2, column=3)
        if "interrupt" in text:
            raise KeyboardInterrupt
        if "DELETE" in text:
            return count_result(3, RunInfo(snapshot_id=4))
        return Result(arrow=pa.table({"n": list(range(100))}))

    def use(self, name: str) -> None:
        self.used.append(name)

    def attach(self, uri: str, **options: object) -> SimpleNamespace:
        return SimpleNamespace(alias="second")

    def history(self, table: str | None = None) -> object:
        return samples.history()

    def tables(self, at: object = None) -> object:
        return samples.tables()

    def current_snapshot(self) -> object:
        return SimpleNamespace(snapshot_id=17)

    def table(self, name: str, at: object = None) -> SimpleNamespace:
        return SimpleNamespace(files=lambda: (name, at), diff=lambda start, end=None: (name, start, end))


class Notebook:
    def __init__(self, shell: InteractiveShell, session: Session) -> None:
        self.shell = shell
        self.session = session
        self.opened: list[tuple[str, dict[str, object]]] = []
        self.magics = DuckLakeMagics(shell, connect=self._connect)  # type: ignore[arg-type]
        shell.register_magics(self.magics)

    def _connect(self, uri: str, **options: object) -> Session:
        self.opened.append((uri, options))
        return self.session

    def __call__(self, cell: str) -> Any:
        """Runs a cell and returns its value; raises what it raised."""
        outcome = self.shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.colors = "nocolor"
    yield shell
    shell.reset(new_session=False)
    InteractiveShell.clear_instance()


@pytest.fixture
def notebook(shell: InteractiveShell) -> Notebook:
    notebook = Notebook(shell, Session())
    notebook("%ducklake connect ducklake:data/flights.ducklake")
    return notebook


def test_sql_of_a_cell_reaches_the_session_unchanged(notebook: Notebook):
    body = "SELECT a -> 'b', x[1:2], $$ {m} $m $$, -1 FROM t WHERE month = :m;\n"
    result = notebook("m = 3") or notebook("%%ducklake\n" + body)
    assert notebook.session.asked == [(body, {"dialect": "duckdb"})]
    assert notebook.session.params["m"] == 3
    assert isinstance(result, Result)


def test_the_line_form_expands_nothing(notebook: Notebook):
    notebook("m = 3")
    notebook("x = %ducklake SELECT {m} -> $m")
    assert notebook.session.asked[0][0].strip() == "SELECT {m} -> $m"
    assert isinstance(notebook.shell.user_ns["x"], Result)


def test_parameters_are_looked_up_never_copied(notebook: Notebook):
    notebook("%%ducklake\nSELECT 1")
    assert "later" not in notebook.session.params
    notebook("later = 1")
    assert "later" in notebook.session.params
    assert not any(name.startswith("_") for name in notebook.session.params)


def test_a_name_gets_the_rows_and_shows_nothing(notebook: Notebook, capsys: pytest.CaptureFixture[str]):
    notebook.session.sql = lambda *args, **options: SimpleNamespace(  # type: ignore[method-assign]
        is_query=True, spark=lambda: "frame"
    )
    assert notebook("%%ducklake jan <<\nSELECT 1") is None
    assert notebook.shell.user_ns["jan"] == "frame"
    assert capsys.readouterr().out == ""


def test_limit_and_no_display(notebook: Notebook):
    assert notebook("%%ducklake --limit 7\nSELECT 1").limit == 7
    assert notebook("%%ducklake --no-display\nSELECT 1") is None
    assert len(notebook.session.asked) == 2


def test_another_lake_for_one_cell(notebook: Notebook):
    notebook("%%ducklake --lake other\nSELECT 1")
    assert notebook.session.used == ["other", "flights.main"]
    with pytest.raises(BindError):
        notebook("%%ducklake --lake other\nSELECT dep_dealy")
    assert notebook.session.used[-1] == "flights.main"


def test_errors_are_one_line_with_their_place(notebook: Notebook, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(BindError):
        notebook("%%ducklake\nSELECT 1,\n  dep_dealy FROM flights")
    shown = capsys.readouterr().out
    assert "Traceback" not in shown
    assert 'no column "dep_dealy"' in shown
    assert shown.count("\n") == 3
    assert notebook.session.on_progress is None


def test_traceback_shows_all(notebook: Notebook, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(BindError):
        notebook("%%ducklake --traceback\nSELECT dep_dealy")
    assert "Traceback" in capsys.readouterr().out


def test_interrupt_is_one_line_and_the_cell_fails(notebook: Notebook, capsys: pytest.CaptureFixture[str]):
    outcome = notebook.shell.run_cell("%%ducklake\ninterrupt")
    assert not outcome.success
    shown = re.sub(r"\x1b\[[\d;]+m", "", capsys.readouterr().out)
    assert "Interrupted: the running statement was cancelled." in shown
    assert "Traceback" not in shown


def test_at_says_what_to_write_instead(notebook: Notebook):
    with pytest.raises(UnsupportedFeatureError, match="AT \\(VERSION => 7\\)"):
        notebook("%%ducklake --at 7\nSELECT 1")
    assert notebook.session.asked == []


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%ducklake snapshts", 'no subcommand "snapshts". Did you mean snapshots?'),
        ("%ducklake diff flights", "A"),
        ("%ducklake diff flights x", "neither a snapshot id nor a time"),
        ("%ducklake files 'flights", "No closing quotation"),
        ("%%ducklake\n  \n", "There is no SQL"),
    ],
)
def test_misuse(notebook: Notebook, capsys: pytest.CaptureFixture[str], cell: str, message: str):
    assert not notebook.shell.run_cell(cell).success
    shown = capsys.readouterr().out
    assert message in shown
    assert shown.count("\n") == 1


def test_nothing_is_connected(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]):
    Notebook(shell, Session()).shell.run_cell("%ducklake tables")
    assert "Connect one: %ducklake connect ducklake:" in capsys.readouterr().out


def test_subcommands_return_values(notebook: Notebook):
    line = "flights.ducklake · snapshot 17 · 1 schema · 3 tables · 329,995 rows · 31 MB"
    assert repr(notebook("%ducklake connect ducklake:flights.ducklake --data-path 'my data' --read-only")) == line
    assert notebook.session.used == ["second"]
    assert notebook("%ducklake diff main.flights 13 14") == ("main.flights", 13, 14)
    assert notebook("%ducklake diff flights 13") == ("flights", 13, None)
    assert notebook("%ducklake files flights --at 3") == ("flights", 3)
    assert len(notebook("%ducklake snapshots").rows) == 18
    assert "Snapshots of flights" in notebook("%ducklake history flights").title
    assert "airports" in repr(notebook("%ducklake schema"))
    assert "flights.main.airlines" in repr(notebook("%ducklake tables"))


def test_help(notebook: Notebook):
    text = repr(notebook("%ducklake help"))
    for name in (*notebook.magics._commands.names, "--limit ROWS", "name <<"):
        assert name in text
    assert repr(notebook("%ducklake diff --help")).startswith("usage: %ducklake diff TABLE A [B]")
    assert "%%ducklake [options]" in repr(notebook("%%ducklake --help\nx"))


def test_a_variable_that_holds_a_session_can_be_connected(notebook: Notebook):
    other = Session()
    notebook.shell.user_ns["mine"] = other
    notebook("%ducklake connect mine")
    assert notebook.magics.session is other


def test_changed_rows_are_told(notebook: Notebook):
    assert "3 rows changed · snapshot 4" in notebook("%%ducklake\nDELETE FROM t")._repr_html_()


def test_loading_claims_nothing_else_and_can_be_repeated(shell: InteractiveShell):
    before = set(shell.magics_manager.magics["line"])
    ducklake_lab.load_ipython_extension(shell)
    first = shell.magics_manager.registry["DuckLakeMagics"]
    ducklake_lab.load_ipython_extension(shell)
    assert shell.magics_manager.registry["DuckLakeMagics"] is first
    assert set(shell.magics_manager.magics["line"]) - before == {"ducklake"}


def test_a_real_lake_without_spark(shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ducklake_lab.load_ipython_extension(shell)

    def run(cell: str) -> Any:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    line = run(f"%ducklake connect ducklake:{tmp_path}/small.ducklake")
    assert repr(line).startswith("small.ducklake · snapshot 0 · 1 schema · 0 tables · 0 rows")
    run('%%ducklake\nCREATE TABLE "<b>" (a INTEGER, s STRUCT(x DOUBLE))')
    assert "&lt;b&gt;" in run("%ducklake schema")._repr_html_()
    browser = run("%ducklake snapshots")
    assert [entry.kind for entry in browser.history][-1] == "schema"
    assert not shell.run_cell("%%ducklake\nSELECT * FROM nothing_here").success
    assert "Traceback" not in capsys.readouterr().out
