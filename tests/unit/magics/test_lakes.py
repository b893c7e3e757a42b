"""The magics on lakes: settings, connections, subcommands that read and write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import traitlets
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab
from ducklake_lab.catalog import versions
from ducklake_lab.errors import DuckLakeError, UsageError
from ducklake_lab.magics import load
from ducklake_lab.magics.questions import Questions
from ducklake_lab.magics.settings import project_settings
from ducklake_lab.widgets import grids

pytestmark = pytest.mark.sampled(3)

#: Runs a cell; gives its value, and raises what it raised.
Run = Callable[[str], Any]


@pytest.fixture
def run(shell: InteractiveShell) -> Run:
    def run(cell: str) -> Any:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    return run


@pytest.mark.slow
def test_a_real_lake_without_spark(
    shell: InteractiveShell, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    ducklake_lab.load_ipython_extension(shell)

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


@pytest.mark.slow
def test_options_against_a_real_lake(shell: InteractiveShell, run: Run, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)

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


@pytest.mark.slow
def test_options_restore_maintain_and_explain_on_a_real_lake(shell: InteractiveShell, run: Run, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)

    run(f"%ducklake connect ducklake:sqlite:{tmp_path}/real.sqlite --alias real")
    run("%config DuckLakeMagics.engine = 'duckdb'")
    run("%%ducklake\nCREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2)")
    run("%%ducklake\nDELETE FROM t WHERE i = 1")
    assert run("%ducklake options target_file_size 64MB")[0]["option"] == "target_file_size"
    assert run("%ducklake restore t 2")[0]["is as of"] == "2"
    assert run("%ducklake -o arrow SELECT count(*) AS n FROM t").to_pydict() == {"n": [2]}
    assert len(run("%ducklake maintain t")) == 0
    assert len(run("%ducklake autopilot")) == 0 and len(run("%ducklake autopilot --run")) == 0
    assert run("%ducklake autopilot --set small=0.5 --table t").small == 0.5
    assert run("%ducklake autopilot --table t").small == 0.5 and not run("%ducklake autopilot --schema main").enabled
    assert "SELECT" in str(run("%%ducklake --explain\nSELECT i FROM t").fetchall())
    assert run("%ducklake diff t 2 3").summary.deleted == 1
    shown = run("%ducklake diff t 2 3 --kind deleted --sort i --descending --rows 7")
    assert (shown.choice.kind, shown.choice.sort, shown.limit) == ("deleted", (("i", True),), 7)
    assert run(f"%ducklake diff t 2 3 --patch '{tmp_path}/back.sql' --revert").summary.deleted == 1
    assert "INSERT INTO" in (tmp_path / "back.sql").read_text()
    with pytest.raises(Exception, match="--patch FILE"):
        run("%ducklake diff t 2 3 --revert")
    assert run("%ducklake revert 3 --preview").is_empty
    assert run("%ducklake revert 3")[0]["snapshot"] == 4
    assert run("%ducklake revert 2 --tables t --rows 1 --message gone")[0]["snapshot"] == 5
    run("%%ducklake\nUPDATE t SET i = 7")
    with pytest.raises(Exception, match="on_conflict"):
        run("%ducklake revert 2")
    assert run("%ducklake revert 2 --on-conflict keep")[0]["snapshot"] == 6
    with pytest.raises(Exception, match="row ids"):
        run("%ducklake revert 2 --rows a")


def test_blame_and_life_name_the_cell_that_ran(shell: InteractiveShell, run: Run, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)

    run(f"%ducklake connect ducklake:{tmp_path}/lake.ducklake")
    run("%%ducklake\nCREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    run("%%ducklake --message fix\nUPDATE t SET s = 'c' WHERE i = 2")
    blamed = run('%ducklake blame t --where "i = 2" --columns i,s')
    assert [row[1:5] for row in blamed.fetchall()] == [("i", "2", None, 2), ("s", "c", "b", 3)]
    assert [row[7:9] for row in blamed.fetchall()][1] == ("fix", "UPDATE t SET s = 'c' WHERE i = 2")
    assert [row[1:5] for row in run("%ducklake blame t --at 2 --columns s").fetchall()][1] == ("s", "b", None, 2)
    assert [row[:2] for row in run("%ducklake life t 1").fetchall()] == [(2, "insert"), (3, "update")]
    assert [row[:2] for row in run("%ducklake life t 1 --at 2").fetchall()] == [(2, "insert")]


def test_a_cell_may_show_a_grid(shell: InteractiveShell, run: Run, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_disconnect_and_a_connect_that_fails(
    shell: InteractiveShell, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    ducklake_lab.load_ipython_extension(shell)
    magics = shell.magics_manager.registry["DuckLakeMagics"]

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


@pytest.mark.slow
def test_pins(shell: InteractiveShell, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ducklake_lab.load_ipython_extension(shell)
    run(f"%ducklake connect ducklake:{tmp_path}/small.ducklake")
    run("%%ducklake\nCREATE TABLE t AS SELECT 1 AS i; INSERT INTO t VALUES (2)")
    run("%ducklake tag first 1")
    assert "pinned at first (snapshot 1) · 1 schema · 1 table · 1 row" in repr(run("%ducklake pin first"))
    assert run("%%ducklake\nSELECT count(*) FROM t").fetchall() == [(1,)]
    assert "in use, pinned at first (snapshot 1)" in repr(run("%ducklake lakes"))
    assert "pinned at first" in repr(run("%ducklake pin"))
    assert not shell.run_cell("%%ducklake\nDELETE FROM t").success
    assert not shell.run_cell("%ducklake pin 1 --off").success
    assert "%ducklake pin --off unpins it" in capsys.readouterr().out
    assert "snapshot 2" in repr(run("%ducklake pin --off"))
    assert run("%%ducklake\nSELECT count(*) FROM t").fetchall() == [(2,)]


@pytest.mark.slow
def test_compares_answers(shell: InteractiveShell, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ducklake_lab.load_ipython_extension(shell)
    run(f"%ducklake connect ducklake:{tmp_path}/small.ducklake")
    run("%%ducklake\nCREATE TABLE t AS SELECT 1 AS i; INSERT INTO t VALUES (2), (3)")
    found = run("least = 1\n") or run("%%ducklake --compare 1 2\nSELECT count(*) AS n FROM t WHERE i >= :least")
    assert found.summary.updated == 1
    assert run("%%ducklake --compare 1 2 kept <<\nFROM t") is None
    assert shell.user_ns["kept"].summary.inserted == 2
    assert run("%ducklake compare 'FROM t' 1 --key i --rows 1").limit == 1
    run(f"%ducklake compare 'FROM t' 1 2 --html {tmp_path}/page.html")
    assert "inserted" in (tmp_path / "page.html").read_text()
    capsys.readouterr()
    assert not shell.run_cell("%%ducklake --compare 1\nFROM t").success
    assert not shell.run_cell("%%ducklake --compare 1 2 --at 1\nFROM t").success
    shown = capsys.readouterr().out
    assert "--compare needs two values: --compare A B" in shown and "does not go together with --at" in shown


@pytest.mark.slow
def test_says_when_an_answer_changed(shell: InteractiveShell, run: Run, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)
    run(f"%ducklake connect ducklake:{tmp_path}/small.ducklake")
    run("%%ducklake\nCREATE TABLE t AS SELECT 1 AS i; INSERT INTO t VALUES (2), (3)")
    found = run("%ducklake when 'SELECT max(i) FROM t'")
    assert [(row[0], row[-1]) for row in found.fetchall()] == [(1, 1), (2, 3)]
    assert "answer" in found._repr_html_()
    found = run("%ducklake when 'SELECT max(i) FROM t' --start 2 --monotonic")
    assert [(row[0], row[-1]) for row in found.fetchall()] == [(2, 3)]


def test_checks_and_lineage(shell: InteractiveShell, run: Run, tmp_path: Path):
    ducklake_lab.load_ipython_extension(shell)

    run(f"%ducklake connect ducklake:{tmp_path}/lake.ducklake")
    run("%%ducklake\nCREATE TABLE t (v INTEGER); INSERT INTO t VALUES (-1)")
    run("%%ducklake\nALTER TABLE t EXPECT positive CHECK (v > 0)")
    run("%%ducklake\nCREATE TABLE u AS SELECT v * 2 AS w FROM t")
    assert [row[1:6] for row in run("%ducklake check t").fetchall()] == [
        ("positive", "CHECK (v > 0)", "fail", "failed", 1)
    ]
    assert [row[5] for row in run("%ducklake check --since 2").fetchall()] == [0]
    with pytest.raises(Exception, match="violates positive"):
        run("%%ducklake\nINSERT INTO t VALUES (-2)")
    assert [row[2:8] for row in run("%ducklake lineage t.v").fetchall()] == [
        ("main.t", "v", "main.u", "w", "value", "CREATE TABLE AS")
    ]
