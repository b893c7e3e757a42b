from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import traitlets
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab
from ducklake_lab.catalog import versions
from ducklake_lab.errors import BindError, DuckLakeError, UsageError
from ducklake_lab.magics import DuckLakeMagics, load
from ducklake_lab.magics.compose import SavedQuery, compose
from ducklake_lab.magics.progress import beginning
from ducklake_lab.magics.questions import Questions
from ducklake_lab.magics.session import Variables
from ducklake_lab.magics.settings import project_settings
from ducklake_lab.model.entries import Schema, Snapshot
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.rows.result import Result, RunInfo, count_result
from ducklake_lab.widgets import grids
from tests.browser import samples


class Session:
    """Stands for a session: records what it is asked."""

    def __init__(self) -> None:
        self.on_progress: Any = None
        self.current_schema = "main"
        self.spark_starting = False
        location = SimpleNamespace(display="flights.ducklake", path=Path("data/flights.ducklake"))
        place = SimpleNamespace(location=location)
        self.current_lake = SimpleNamespace(
            alias="flights", database=place, location=location, created=False, read_only=False
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
        return Result(arrow=pa.table({"n": list(range(100))}))

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
        ("%ducklake diff flights", "A"),
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


def test_a_real_lake_without_spark(shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ducklake_lab.load_ipython_extension(shell)

    def run(cell: str) -> Any:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    line = run(f"%ducklake connect ducklake:{tmp_path}/small.ducklake")
    assert repr(line).startswith("small.ducklake · created · snapshot 0 · 1 schema · 0 tables · 0 rows")
    run('%%ducklake\nCREATE TABLE "<b>" (a INTEGER, s STRUCT(x DOUBLE))')
    assert "&lt;b&gt;" in run("%ducklake schema")._repr_html_()
    browser = run("%ducklake snapshots")
    assert [entry.kind for entry in browser.history][-1] == "schema"
    assert not shell.run_cell("%%ducklake\nSELECT * FROM nothing_here").success
    assert "Traceback" not in capsys.readouterr().out


def test_settings_come_from_config_and_from_the_project(
    shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ducklake_lab]\nlimit = 7\nengine = "duckdb"\nconnections = "c.toml"\n'
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    shell.config.DuckLakeMagics.engine = "spark"
    magics = load(shell)
    assert (magics.limit, magics.engine, magics.connections) == (7, "spark", str(tmp_path / "c.toml"))
    shell.run_cell("%config DuckLakeMagics.limit = 9")
    assert magics.limit == 9
    with pytest.raises(traitlets.TraitError):
        magics.limit = 0
    del shell.config["DuckLakeMagics"]


def test_a_wrong_setting_of_the_project_is_told(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[tool.ducklake_lab]\nlimmit = 7\n")
    with pytest.raises(UsageError, match=r"no setting limmit\. Did you mean limit\?"):
        project_settings(tmp_path, ["limit"])


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


def test_options_against_a_real_lake(shell: InteractiveShell, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)

    def run(cell: str) -> Any:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    run(f"%ducklake connect ducklake:{tmp_path}/small.ducklake --alias 'my lake'")
    run("%%ducklake\nCREATE TABLE t (a INTEGER, s STRUCT(x DOUBLE))")
    run("%%ducklake\nINSERT INTO t VALUES (1, {'x': 0.5}), (2, NULL)")
    run("%%ducklake\nINSERT INTO t VALUES (3, NULL)")
    assert run("%ducklake -o arrow --at 2 SELECT count(*) AS n FROM t").to_pydict() == {"n": [2]}
    with pytest.raises(UsageError, match="written at 2"):
        run("%%ducklake --at 2\nINSERT INTO t VALUES (4, NULL)")
    described = run("%ducklake describe t")
    assert [row["column"] for row in described] == ["a", "s", "s.x"]
    assert "3 rows" in described.note
    assert [row["column"] for row in run("%ducklake stats t")] == ["a", "s.x"]
    assert run("%ducklake lakes")[0]["state"] == "in use"
    version = {"option": "version", "value": versions.DEFAULT.name, "of": "lake"}
    assert run("%ducklake options version")[0] == version
    assert len(run("%ducklake options")) > 1
    other = run(f"%ducklake connect ducklake:{tmp_path}/other.ducklake")
    run("""%%ducklake --lake '"my lake"' --no-display\nSELECT * FROM t""")
    assert "other" in repr(other)


def test_options_restore_maintain_and_explain_on_a_real_lake(shell: InteractiveShell, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)

    def run(cell: str) -> Any:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    run(f"%ducklake connect ducklake:sqlite:{tmp_path}/real.sqlite --alias real")
    run("%config DuckLakeMagics.engine = 'duckdb'")
    run("%%ducklake\nCREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2)")
    run("%%ducklake\nDELETE FROM t WHERE i = 1")
    assert run("%ducklake options target_file_size 64MB")[0]["option"] == "target_file_size"
    assert run("%ducklake restore t 2")[0]["is as of"] == "2"
    assert run("%ducklake -o arrow SELECT count(*) AS n FROM t").to_pydict() == {"n": [2]}
    assert len(run("%ducklake maintain t")) == 0
    assert "SELECT" in str(run("%%ducklake --explain\nSELECT i FROM t").fetchall())
    assert run("%ducklake diff t 2 3").summary.deleted == 1
    shown = run("%ducklake diff t 2 3 --kind deleted --sort i --descending --rows 7")
    assert (shown.choice.kind, shown.choice.sort, shown.limit) == ("deleted", (("i", True),), 7)
    assert run(f"%ducklake diff t 2 3 --patch '{tmp_path}/back.sql' --revert").summary.deleted == 1
    assert "INSERT INTO" in (tmp_path / "back.sql").read_text()
    with pytest.raises(Exception, match="--patch FILE"):
        run("%ducklake diff t 2 3 --revert")


def test_a_cell_may_show_a_grid(shell: InteractiveShell, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)

    def run(cell: str) -> Any:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    run(f"%ducklake connect ducklake:{tmp_path}/lake.ducklake")
    cells = ("%%ducklake --grid\nSELECT 1 AS i", "%%ducklake\nSELECT 1 AS i", "%%ducklake --no-grid\nSELECT 1 AS i")
    assert [run(cell).grid for cell in cells] == ["open", None, "none"]
    # a terminal has no use for them
    assert [run(cell)._repr_mimebundle_() for cell in cells] == [None, None, None]
    assert grids.by_default
    run("%config DuckLakeMagics.grid = False")
    assert not grids.by_default
    run("%config DuckLakeMagics.grid = True")
    assert run("%ducklake -o arrow SELECT 1 AS i").to_pydict() == {"i": [1]}


def test_an_upload_is_shown_before_it_is_written(
    shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "new orders.csv").write_text("Order ID,x=y\n1,01/02/2024\n")
    ducklake_lab.load_ipython_extension(shell)

    def run(line: str) -> Any:
        return shell.run_cell(f"%ducklake {line}").result

    run(f"connect ducklake:{tmp_path}/lake.ducklake")
    line = f"upload '{tmp_path}/new orders.csv' --clean-names --type x=y=VARCHAR"
    assert [row["type"] for row in run(line)] == ["BIGINT", "VARCHAR"]
    assert str(run("tables")) == "No tables."
    assert run(f"{line} --message monday --apply")[0]["rows"] == 1
    query = "SELECT commit_message FROM ducklake_snapshots('lake') ORDER BY snapshot_id DESC LIMIT 1"
    assert run(query).fetchall() == [("monday",)]
    capsys.readouterr()
    run(f"{line} --apply")
    run("upload x.csv --type broken")
    printed = capsys.readouterr()
    assert "new_orders exists; append to it (--append)" in printed.out + printed.err
    assert "write NAME=TYPE" in printed.out + printed.err
    run(f"upload '{tmp_path}/new orders.csv' --replace --dates %m/%d/%Y --clean-names --apply")
    assert run("SELECT x_y::VARCHAR FROM new_orders").fetchall() == [("2024-01-02",)]


def test_disconnect_and_a_connect_that_fails(
    shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    ducklake_lab.load_ipython_extension(shell)
    magics = shell.magics_manager.registry["DuckLakeMagics"]

    def run(cell: str) -> Any:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    broken = tmp_path / "broken.sqlite"
    ducklake_lab.connect(f"ducklake:sqlite:{broken}").close()
    with sqlite3.connect(broken) as connection:
        connection.execute("DROP TABLE ducklake_table")
    (tmp_path / "orders.csv").write_text("a,b\n1,2\n")

    def fails(uri: str, message: str) -> None:
        capsys.readouterr()
        with pytest.raises(DuckLakeError, match=message):
            run(f"%ducklake connect {uri}")
        assert len(capsys.readouterr().out.strip().splitlines()) <= 1

    def asked() -> list[tuple[str, bool]]:
        held = {"": magics.session} if magics.session is not None else {}
        return [(lake["alias"], lake["current"]) for lake in Questions(lambda: held).ask("lakes", {})["lakes"]]

    for uri, message in (
        (f"ducklake:{tmp_path}/orders.csv", "orders.csv is not a duckdb database file"),
        (f"ducklake:sqlite:{broken}", "broken.sqlite is damaged: its table ducklake_table is missing"),
        (f"ducklake:{tmp_path}/no/such.ducklake", "attach with create_folders"),
    ):
        fails(uri, message)
        assert asked() == []
    with pytest.raises(UsageError, match="No lake is connected"):
        run("%ducklake tables")
    assert "good.ducklake · created · snapshot 0" in repr(run(f"%ducklake connect ducklake:{tmp_path}/good.ducklake"))
    fails(f"ducklake:sqlite:{broken}", "ducklake_table is missing")
    assert asked() == [("good", True)]
    assert "created" not in repr(run("%ducklake use good"))
    run(f"%ducklake connect ducklake:{tmp_path}/new/b.ducklake --create-folders")
    assert asked() == [("good", False), ("b", True)]
    assert magics.completer.complete("%ducklake disconnect b", 22) == ([("b", "lake")], "b")
    assert [row["name"] for row in run("%ducklake disconnect good")] == ["b"]
    assert list(run("%ducklake disconnect")) == []
    assert asked() == []
    with pytest.raises(UsageError, match="No lake is attached"):
        run("%ducklake disconnect")


def test_passwords_are_not_shown(shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "connections.toml"
    file.write_text(
        '[a]\nuri = "ducklake:postgres:dbname=x password=hunter2"\n[b]\nuri = "postgresql://u:hunter2@h/${DB}"\n'
    )
    ducklake_lab.load_ipython_extension(shell)
    shell.run_cell(f"%config DuckLakeMagics.connections = {str(file)!r}")
    for cell in (
        "%ducklake lakes",
        "%ducklake connect ducklake:postgres:dbname=x password=hunter2",
        "%ducklake connect a",
        "%%ducklake\nCREATE SECRET (TYPE s3, SECRET hunter2')",
        "%%ducklake --traceback\nCREATE SECRET (TYPE s3, SECRET 'hunter2' x)",
    ):
        capsys.readouterr()
        shell.run_cell(cell)
        printed = capsys.readouterr()
        assert "hunter2" not in printed.out + printed.err, cell
        assert printed.out.strip(), cell
