"""Bad input: one clear line, no snapshot, nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    # names are reserved in lakes of 1.0 that lakes of 1.1 can have
    options = {"ducklake_version": "1.0", "data_path": f"{tmp_path}/data"}
    with dl.connect(lake_uri(), alias="lake", engine="duckdb", **options) as session:
        session.sql("CREATE TABLE flights (dep_delay INTEGER, carrier VARCHAR); INSERT INTO flights VALUES (1, 'UA')")
        yield session


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("SELECT *\nFROM flihgts", dl.BindError, 'no table "flihgts".*line 2, column 6.*Did you mean flights'),
        (
            "SELECT carrier,\n       dep_dealy FROM flights",
            dl.BindError,
            r'flights has no column "dep_dealy" \(line 2, column 8\)\. Did you mean dep_delay\?',
        ),
        ("FROM flights AT (VERSION => 99)", dl.SnapshotNotFoundError, "no snapshot 99; the lake has snapshots 0 to 2"),
        ("SELECT * FORM flights", dl.SqlSyntaxError, r"line 1, column"),
        (
            "UPDATE flights SET dep_delay = row_number() OVER ()",
            dl.BindError,
            "UPDATE takes no window functions; compute",
        ),
        ("SELEC 1", dl.SqlSyntaxError, "SELEC"),
        (
            "SELECT carrier,\n  count(select) FROM flights",
            dl.SqlSyntaxError,
            r'Syntax error at "select" \(line 2, column 9\): select is a reserved word; as a name it takes quotes',
        ),
        ("SELECT 1; SELECT count(select)", dl.SqlSyntaxError, r"\(line 1, column 24\)"),
        ("SELECT list_sum(carrier) FROM flights", dl.BindError, r"^list_sum takes a list, not VARCHAR; cast"),
        ("SELECT MAP([10], [11], [12])", dl.BindError, "^map takes .*too few or too many"),
        ("SET enable_profiling = 'query_tree'", dl.UnsupportedFeatureError, "EXPLAIN ANALYZE"),
        ("PRAGMA enable_profiling", dl.UnsupportedFeatureError, "EXPLAIN ANALYZE"),
        ("SET profiling_mode = 'detailed'", dl.UnsupportedFeatureError, "EXPLAIN ANALYZE"),
        ("INSERT INTO flights VALUES (1)", dl.DuckLakeError, "2"),
        ("INSERT INTO flights (dep_delay, nope) VALUES (1, 2)", dl.BindError, "nope"),
        ("UPDATE flights SET carier = 'x'", dl.BindError, "carrier"),
        ("INSERT INTO flights VALUES ('many', 'x')", dl.ConstraintError, "many"),
        (
            "MERGE INTO flights USING flights AS f ON true WHEN MATCHED THEN DELETE RETURNING 1",
            dl.UnsupportedFeatureError,
            "RETURNING",
        ),
        ("ALTER TABLE flights DROP COLUMN nope", dl.BindError, "nope"),
        ("CREATE TABLE t (a INTEGER, Row_ID INTEGER)", dl.BindError, '"Row_ID" is reserved.*data_inlining_row_limit'),
        ("ALTER TABLE flights ADD COLUMN end_snapshot INTEGER", dl.BindError, '"end_snapshot" is reserved'),
        ("ALTER TABLE flights RENAME carrier TO _ducklake_internal_row_id", dl.BindError, "is reserved"),
        ("USE nowhere", dl.EntryNotFoundError, "nowhere"),
        ("FROM lake.table_changes('flights', 5, 1)", dl.DuckLakeError, "5"),
    ],
)
def test_one_line_and_no_snapshot(session: dl.Session, sql: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        session.sql(sql)
    assert "\n" not in str(caught.value)
    assert session.current_snapshot().snapshot_id == 2


def test_names_of_a_lake_send_nothing_to_the_terminal(session: dl.Session) -> None:
    session.sql('CREATE TABLE "flight\x1b[31m\x07\u202e" ("car\x1b[2Jier\u200b" INTEGER, "x\ny" INTEGER)')
    for sql in (
        "FROM flight",
        'SELECT carier FROM "flight\x1b[31m\x07\u202e"',
        'SELECT "x y" FROM "flight\x1b[31m\x07\u202e"',
    ):
        with pytest.raises(dl.DuckLakeError, match=r"Did you mean .*⟨U\+001B⟩\[|x⏎y") as caught:
            session.sql(sql)
        assert str(caught.value).isprintable()


@pytest.mark.slow
def test_long_and_deep_input_is_taken(session: dl.Session) -> None:
    """Take what DuckDB takes: 900 terms, 100 parentheses, names longer than a file system's."""
    assert session.sql(f"SELECT {'+'.join(['dep_delay'] * 900)} FROM flights").fetchall() == [(900,)]
    assert session.sql(f"SELECT {'(' * 100}dep_delay{')' * 100} FROM flights").fetchall() == [(1,)]
    for name in ("x" * 200, "é" * 300):
        session.sql(f'CREATE TABLE "{name}" AS SELECT i FROM range(30) AS r(i)')
        session.sql(f'UPDATE "{name}" SET i = -1 WHERE i = 7')
        assert session.sql(f'SELECT sum(i) FROM "{name}"').fetchall() == [(427,)]


def test_an_unknown_version_is_named(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "new.ducklake"
    dl.connect(f"ducklake:{path}", data_path=f"{tmp_path}/d").close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE ducklake_metadata SET value = '7.3' WHERE key = 'version'")
    before = path.read_bytes()
    with pytest.raises(dl.CatalogVersionError, match=r"new\.ducklake is a DuckLake catalog of version 7\.3"):
        dl.connect(f"ducklake:{path}")
    assert path.read_bytes() == before


def test_a_missing_lake_is_said(tmp_path: Path) -> None:
    with pytest.raises(dl.CatalogNotFoundError, match=r"no lake at /.+/none\.ducklake"):
        dl.connect(f"ducklake:{tmp_path}/none.ducklake", create_if_not_exists=False)
    assert not (tmp_path / "none.ducklake").exists()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "text.ducklake"
    path.write_text("not a database " * 500)
    with pytest.raises(dl.CatalogError, match=r"text\.ducklake is not a duckdb database"):
        dl.connect(f"ducklake:{path}")
    assert path.read_text().startswith("not a database")


@pytest.mark.slow
def test_a_catalog_held_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "held.ducklake"
    session = dl.connect(f"ducklake:{path}", data_path=f"{tmp_path}/d")
    monkeypatch.setattr("ducklake_lab.catalog.database.LOCK_WAIT_SECONDS", 0.2)
    program = f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        holder.stdout.readline()
        with pytest.raises(dl.CatalogLockedError, match=rf"held\.ducklake is in use by .*{holder.pid}"):
            session.sql("CREATE TABLE t (i INTEGER)")
        holder.stdin.close()
    session.sql("CREATE TABLE t (i INTEGER)")
    assert session.current_snapshot().snapshot_id == 1


def test_a_catalog_open_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "open.ducklake"
    session = dl.connect(f"ducklake:{path}", data_path=f"{tmp_path}/d")
    monkeypatch.setattr("ducklake_lab.catalog.database.LOCK_WAIT_SECONDS", 0.2)
    with duckdb.connect() as other:
        other.execute(f"ATTACH '{path}' AS held")
        with pytest.raises(dl.CatalogLockedError, match="open in this process"):
            session.current_snapshot()
    assert session.current_snapshot().snapshot_id == 0


def test_another_data_path_is_refused(tmp_path: Path) -> None:
    dl.connect(f"ducklake:{tmp_path}/x.ducklake", data_path=f"{tmp_path}/d").close()
    with pytest.raises(dl.UsageError, match="leave data_path out"):
        dl.connect(f"ducklake:{tmp_path}/x.ducklake", data_path=f"{tmp_path}/elsewhere")


def test_importing_is_cheap_and_loads_no_engine() -> None:
    heavy = ("pyspark", "pandas", "duckdb", "sqlalchemy", "sqlglot", "plotly", "IPython", "anywidget", "pyarrow")
    program = f"""
import ducklake_lab, sys
print([m for m in {heavy!r} if m in sys.modules])
from IPython.core.interactiveshell import InteractiveShell
ducklake_lab.load_ipython_extension(InteractiveShell())
from ducklake_lab.magics.questions import Questions
print(Questions(dict).lakes()["lakes"], sorted(m for m in {heavy!r} if m in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[] ['IPython']"]


@pytest.mark.slow
def test_a_first_answer_loads_no_widgets_and_no_spark(tmp_path: Path) -> None:
    heavy = ("pyspark", "plotly", "ipywidgets", "anywidget", "tornado.websocket")
    program = f"""
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "ducklake_lab")
shell.run_line_magic("ducklake", "connect ducklake:{tmp_path}/x.ducklake")
shell.run_cell_magic("ducklake", "", "SELECT 1 AS i")._repr_html_()
print([m for m in {heavy!r} if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
