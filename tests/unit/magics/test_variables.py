"""The notebook's variables as parameters of SQL, in a real session."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
