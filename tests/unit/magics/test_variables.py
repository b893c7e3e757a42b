"""The notebook's variables as parameters of SQL, in a real session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab as dl
from ducklake_lab.magics import load

Run = Callable[[str], None]


@pytest.fixture
def run() -> Iterator[Run]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    magics = load(shell)
    with dl.Session(engine="duckdb") as session:
        magics.session = session  # type: ignore[assignment]
        shell.user_ns["carrier"] = "UA"

        def cell(text: str) -> None:
            shell.run_cell(text).raise_error()

        yield cell
    InteractiveShell.clear_instance()


def test_a_variable_is_bound(run: Run) -> None:
    run("%%ducklake -o arrow found <<\nSELECT :carrier AS c")
    run("assert found.to_pylist() == [{'c': 'UA'}]")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT :carier", 'The notebook has no variable "carier". Did you mean carrier?'),
        ("SELECT $nowhere", 'The notebook has no variable "nowhere".'),
        ("SELECT 1 WHERE 1 IN :zzz", 'The notebook has no variable "zzz".'),
        ("SELECT ?", "A cell has no values for ?; write :name for the notebook's variable of that name."),
    ],
)
@pytest.mark.parametrize("options", ["", " --explain"])
def test_a_variable_that_is_not_there(run: Run, sql: str, message: str, options: str) -> None:
    with pytest.raises(dl.UsageError) as raised:
        run(f"%%ducklake{options}\n{sql}")
    assert str(raised.value) == message


def test_outside_of_notebooks_parameters_are_passed() -> None:
    with dl.Session(engine="duckdb") as session, pytest.raises(dl.UsageError, match=r"pass it with params=\{"):
        session.sql("SELECT :carier", {})


def test_a_dataframe_is_read_by_name(run: Run) -> None:
    run("import pandas as pd\ndf = pd.DataFrame({'i': [1, 2]})")
    run("%%ducklake -o arrow found <<\nSELECT sum(i) AS s FROM df")
    run("assert found['s'].to_pylist() == [3]")
    run("df = pd.DataFrame({'i': [5]})\nresult = dl_result = None")
    run("%%ducklake -o arrow found <<\nSELECT sum(i) AS s FROM df UNION ALL SELECT sum(s) FROM found")
    run("assert found['s'].to_pylist() == [5, 3]")
    with pytest.raises(dl.DuckLakeError, match='The variable "carrier" is of type str, which is no table'):
        run("%%ducklake\nFROM carrier")


@pytest.fixture
def lake(run: Run, tmp_path: Path) -> Run:
    run(f"%ducklake connect ducklake:{tmp_path}/lake.ducklake")
    run("%%ducklake\nCREATE TABLE t AS SELECT i FROM range(6) r(i)")
    return run


def test_a_cell_is_kept_as_a_view(lake: Run) -> None:
    lake("low = 3")
    lake("%%ducklake --view late\nSELECT i FROM t WHERE i > :low -- those\n;")
    lake("low = 0")
    lake("%%ducklake -o arrow found <<\nSELECT count(*) AS n FROM late")
    lake("assert found['n'].to_pylist() == [2]")
    lake("%%ducklake --save few\nSELECT i FROM t WHERE i < 2")
    lake("%%ducklake --with few --view composed\nSELECT i + 1 AS j FROM few")
    lake("%%ducklake -o arrow found <<\nFROM composed ORDER BY j")
    lake("assert found['j'].to_pylist() == [1, 2]")


def test_a_cell_says_what_it_is_for(lake: Run) -> None:
    lake("%%ducklake -m 'more of them'\nINSERT INTO t VALUES (6)")
    lake("%%ducklake -o arrow found <<\nSELECT commit_message FROM snapshots() ORDER BY snapshot_id DESC LIMIT 1")
    lake("assert found.column(0).to_pylist() == ['more of them']")


@pytest.mark.parametrize(
    ("options", "sql", "message"),
    [
        ("", "SELECT 1; SELECT 2", r"Syntax error .*line 1, column \d"),
        ("", "DELETE FROM t", r"Syntax error .*\(line 1, column \d\)"),
        ("", "SELECT nothing FROM t", r'no column "nothing" \(line 1, column 8\)'),
        ("--dialect spark", "SELECT 1", "leave --dialect out"),
    ],
)
def test_what_cannot_be_kept_changes_nothing(lake: Run, options: str, sql: str, message: str) -> None:
    lake("%%ducklake --view late\nFROM t")
    with pytest.raises(dl.DuckLakeError, match=message):
        lake(f"%%ducklake --view late {options}\n{sql}")
    lake("%%ducklake -o arrow found <<\nSELECT count(*) AS n FROM late")
    lake("assert found['n'].to_pylist() == [6]")
