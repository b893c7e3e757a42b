"""Cells and lines of the magics, beside a session that records what it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import BindError, UsageError
from ducklake_lab.magics import DuckLakeMagics
from ducklake_lab.magics.compose import SavedQuery, compose
from ducklake_lab.magics.progress import beginning
from ducklake_lab.magics.session import Variables
from ducklake_lab.model.entries import Schema, Snapshot
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.rows.result import Result, RunInfo, count_result
from tests.browser import samples

pytestmark = pytest.mark.sampled(3)


class Session:
    """Stands for a session: records what it is asked."""

    def __init__(self) -> None:
        self.on_progress: Any = None
        self.current_schema = "main"
        self.spark_starting = False
        location = SimpleNamespace(display="flights.ducklake", path=Path("data/flights.ducklake"))
        place = SimpleNamespace(location=location)
        self.current_lake = SimpleNamespace(
            branch=None, alias="flights", database=place, location=location, created=False, read_only=False, pinned=None
        )
        self.lakes = [self.current_lake]
        self.asked: list[tuple[str, dict[str, object]]] = []
        self.used: list[str] = []
        self.params: Mapping[str, object] = {}

    def sql(
        self, text: str, params: Mapping[str, object] | None = None, *, variables: object = None, **choices: object
    ) -> Result:
        assert params is not None
        assert isinstance(variables, Variables)
        assert self.on_progress is not None
        self.params = params
        self.asked.append((text, {name: value for name, value in choices.items() if value is not None}))
        if "dealy" in text:
            raise BindError('flights has no column "dep_dealy" (line 2, column 3).', line=2, column=3)
        if "interrupt" in text:
            raise KeyboardInterrupt
        if "DELETE" in text:
            return count_result(3, RunInfo([("flights", 4)]))
        return Result(InMemory(pa.table({"n": list(range(100))})))

    def expect(self, size: int) -> None:
        self.expected = size

    def use(self, name: str) -> None:
        self.used.append(name)

    def attach(self, uri: str, **options: object) -> SimpleNamespace:
        return SimpleNamespace(alias="second")

    def history(self, table: str | None = None) -> object:
        return samples.history()

    def tables(self, at: object = None) -> object:
        return samples.tables()

    def catalog(self, at: object = None) -> object:
        state = CatalogState(Snapshot(17, samples.START, 1, 1, 1), {0: Schema(0, "u", "main", "main/")})
        for info in samples.tables():
            state = state.with_table(info.table)
        return state, {}, {}

    def reading(self) -> object:
        return nullcontext()

    def health(self, table: object = None, files: object = None) -> object:
        return None

    def current_snapshot(self) -> object:
        return SimpleNamespace(snapshot_id=17)

    def table(self, name: str, at: object = None) -> SimpleNamespace:
        return SimpleNamespace(files=samples.files, diff=lambda start, end=None: (name, start, end))


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
        is_query=True, spark=lambda: "frame", info=SimpleNamespace(wrote=False)
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


def test_another_lake_for_one_subcommand(notebook: Notebook):
    notebook("%ducklake --lake other tables")
    assert notebook.session.used == ["other", "flights.main"]


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("\n-- all\n  SELECT 1,\n 2", "SELECT 1,"),
        ("CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b')", ""),
        ("ATTACH 'ducklake:postgres:host=h password=x' AS l", ""),
        ("SELECT " + "1, " * 90, "SELECT " + "1, " * 37 + "1…"),
        ("-- nothing", ""),
    ],
)
def test_a_running_statement_is_shown_without_secrets(sql: str, shown: str):
    assert beginning(sql) == shown


def test_errors_are_one_line_with_their_place(notebook: Notebook, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(BindError):
        notebook("%%ducklake\nSELECT 1,\n  dep_dealy FROM flights")
    shown = capsys.readouterr().out
    assert "Traceback" not in shown
    assert 'no column "dep_dealy"' in shown
    assert "(line 2, column 3)" in shown
    assert shown.count("\n") == 2
    assert "▸dep_dealy◂" in shown
    assert notebook.session.on_progress is None


@pytest.mark.slow
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


def test_choices_reach_the_session(notebook: Notebook):
    notebook("%%ducklake --at 7 --engine duckdb --dialect spark\nSELECT 1")
    assert notebook.session.asked == [("SELECT 1\n", {"at": 7, "engine": "duckdb", "dialect": "spark"})]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%ducklake snapshts", 'no subcommand "snapshts". Did you mean snapshots'),
        ("%ducklake load x.csv", 'no subcommand "load". Did you mean upload?'),
        ("%ducklake diff flights --revert", "--revert is of a patch"),
        ("%ducklake connect ducklake:x.ducklake --at soon", "neither a snapshot id nor a time"),
        ("%ducklake tag q3 soon", "invalid int value"),
        ("%ducklake files 'flights", "No closing quotation"),
        ("%%ducklake\n  \n", "There is no SQL"),
        ("%%ducklake --grid --no-grid\nSELECT 1", "--grid does not go together with --no-grid"),
        ("%%ducklake --grid --at 2\nSELECT 1", "--grid does not go together with --at"),
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
    assert notebook.session.used == ['"second"']
    assert notebook("%ducklake diff main.flights 13 14") == ("main.flights", 13, 14)
    assert notebook("%ducklake diff flights 13") == ("flights", 13, None)
    assert len(notebook("%ducklake files flights --at 3")) == 12
    assert len(notebook("%ducklake snapshots")) == 18
    assert "Snapshots of flights" in notebook("%ducklake history flights").title
    assert "airports" in repr(notebook("%ducklake schema"))
    assert "flights.main.airlines" in repr(notebook("%ducklake tables"))


def test_help(notebook: Notebook):
    text = repr(notebook("%ducklake help"))
    for name in (*notebook.magics.commands.names, "--limit ROWS", "name <<"):
        assert name in text
    assert repr(notebook("%ducklake diff --help")).startswith("usage: %ducklake diff [--with")
    assert "%%ducklake [options]" in repr(notebook("%%ducklake --help\nx"))


def test_connecting_says_how_large_the_lake_is(notebook: Notebook) -> None:
    notebook("%ducklake connect ducklake:flights.ducklake")
    assert notebook.session.expected == sum(info.file_size_bytes for info in notebook.session.tables())


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


def test_the_default_lake_is_connected_when_it_is_needed(shell: InteractiveShell):
    notebook = Notebook(shell, Session())
    notebook.magics.lake = "ducklake:default.ducklake"
    notebook("%%ducklake\nSELECT 1")
    assert notebook.opened == [("ducklake:default.ducklake", {})]


def test_saved_queries_are_put_before_others(notebook: Notebook):
    notebook("%%ducklake --save base --no-display\nSELECT 1 AS a;")
    notebook("%%ducklake --with base --save more --no-display\nSELECT a + 1 AS b FROM base")
    notebook("%%ducklake --with more\nWITH own AS (SELECT 2)\nSELECT * FROM more, own")
    text = notebook.session.asked[-1][0]
    assert text.index('"base" AS') < text.index('"more" AS') < text.index("own AS (SELECT 2)")
    assert text.upper().count("WITH ") == 1
    with pytest.raises(UsageError, match='No query was saved as "mor"'):
        notebook("%%ducklake --with mor\nSELECT 1")


def test_places_are_those_of_the_cell_when_queries_are_composed(notebook: Notebook, capsys: pytest.CaptureFixture[str]):
    notebook.magics.saved["base"] = SavedQuery("SELECT 1\nFROM t")
    text = compose("SELECT 1,\n  dep_dealy FROM base", ["base"], notebook.magics.saved)

    def sql(composed: str, *args: object, **options: object) -> Result:
        line = composed[: composed.index("dep_dealy")].count("\n") + 1
        raise BindError(f"No such column (line {line}, column 3).", line=line, column=3)

    notebook.session.sql = sql  # type: ignore[method-assign]
    assert text.lines == 4
    with pytest.raises(BindError, match=r"\(line 2, column 3\)"):
        notebook("%%ducklake --with base\nSELECT 1,\n  dep_dealy FROM base")
    shown = re.sub(r"\x1b\[[\d;]+m", "", capsys.readouterr().out)
    assert "2 │   ▸dep_dealy◂ FROM base" in shown
    notebook.magics.saved["base"] = SavedQuery("SELECT dep_dealy")
    with pytest.raises(BindError, match="in base, kept with --save"):
        notebook("%%ducklake --with base\nSELECT 1 FROM base")


def test_templates_only_when_asked_and_strict(notebook: Notebook):
    notebook("name = 'flights'")
    notebook("%%ducklake\nSELECT '{{ name }}'")
    notebook("%%ducklake --jinja\nSELECT * FROM {{ name }}")
    assert [text.strip() for text, _ in notebook.session.asked] == ["SELECT '{{ name }}'", "SELECT * FROM flights"]
    with pytest.raises(UsageError, match=r"'nam' is undefined\. Did you mean name"):
        notebook("%%ducklake --jinja\nSELECT * FROM {{ nam }}")
    assert len(notebook.session.asked) == 2


def test_output_kinds(notebook: Notebook):
    notebook("%%ducklake -o pandas df <<\nSELECT 1")
    assert type(notebook.shell.user_ns["df"]).__name__ == "DataFrame"
    notebook("t = %ducklake -o arrow SELECT 1")
    assert isinstance(notebook.shell.user_ns["t"], pa.Table)
    notebook("%config DuckLakeMagics.output = 'arrow'")
    notebook("%%ducklake u <<\nSELECT 1")
    assert isinstance(notebook.shell.user_ns["u"], pa.Table)


def test_every_subcommand_has_help(notebook: Notebook):
    for name in notebook.magics.commands.names:
        assert repr(notebook(f"%ducklake {name} --help")).startswith(f"usage: %ducklake {name}")


def test_a_connection_by_name_expands_the_environment(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "connections.toml"
    file.write_text(
        '[prod]\nuri = "ducklake:postgres:host=${LAKE_HOST} password=${LAKE_SECRET}"\n'
        'data_path = "${LAKE_DATA:-data/}"\nread_only = true\n'
    )
    notebook.magics.connections = str(file)
    notebook.magics.session = None
    monkeypatch.setenv("LAKE_HOST", "db")
    with pytest.raises(UsageError, match="environment variable LAKE_SECRET, which is not set"):
        notebook("%ducklake connect prod")
    monkeypatch.setenv("LAKE_SECRET", "s3cret")
    notebook("%ducklake connect prod --alias p")
    uri, options = notebook.opened[-1]
    assert uri == "ducklake:postgres:host=db password=s3cret"
    assert options == {"alias": "p", "data_path": "data/", "read_only": True}
    shown = notebook("%ducklake lakes")
    assert "s3cret" not in shown._repr_html_()
    assert [row["name"] for row in shown] == ["flights", "prod"]
    with pytest.raises(UsageError, match="Did you mean prod"):
        notebook("%ducklake connect prd")
