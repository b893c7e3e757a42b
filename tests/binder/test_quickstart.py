"""The quickstart notebook, as Binder's `postBuild` executes it on the demo lake, shows what its text says it shows."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from tests.notebooks.running import text_of

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "quickstart.ipynb"


@pytest.fixture(scope="module")
def executed(post_build: Path) -> NotebookNode:
    return nbformat.read(post_build / "demo" / "quickstart.ipynb", as_version=4)


@pytest.fixture(scope="module")
def cells(executed: NotebookNode) -> dict[str, NotebookNode]:
    return {cell.id: cell for cell in executed.cells}


@pytest.fixture(scope="module")
def page(executed: NotebookNode) -> BeautifulSoup:
    """The notebook exported to HTML, scripts removed: what is seen without a kernel and without JavaScript."""
    html, _ = HTMLExporter().from_notebook_node(executed)
    soup = BeautifulSoup(html, "html.parser")
    for script in soup.find_all("script"):
        script.decompose()
    return soup


def words(html: str) -> str:
    return " ".join(BeautifulSoup(html, "html.parser").get_text(" ").split())


def test_is_kept_without_outputs() -> None:
    document = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.outputs and cell.execution_count is None for cell in document.cells if cell.cell_type == "code")


def test_every_cell_but_the_last_succeeds(executed: NotebookNode) -> None:
    failed = [
        cell.id
        for cell in executed.cells
        if cell.cell_type == "code" and any(output.output_type == "error" for output in cell.outputs)
    ]
    assert set(failed) <= {"error"}


def test_connecting_tells_of_the_lake_without_starting_spark(cells: dict[str, NotebookNode]) -> None:
    shown = words(text_of(cells["connect"]))
    assert "snapshot 17" in shown
    assert "5 tables" in shown
    assert "Spark starting" not in shown


def test_query_shows_rows_and_what_was_read(cells: dict[str, NotebookNode]) -> None:
    shown = words(text_of(cells["late-carriers"]))
    assert "ExpressJet Airlines Inc." in shown
    assert "16 rows" in shown


def test_named_result_is_a_spark_frame_of_the_parameter(cells: dict[str, NotebookNode]) -> None:
    assert "29425" not in text_of(cells["july"])
    # July's flights that were not cancelled, by airport
    assert {"10196", "9812", "8477"} <= set(re.findall(r"\d+", text_of(cells["july-frame"])))


def test_timeline_names_every_load_and_change(cells: dict[str, NotebookNode]) -> None:
    shown = words(text_of(cells["snapshots"]))
    for message in (
        "load December flights",
        "fix tail numbers and midnights",
        "drop cancelled flights",
        "add column speed",
    ):
        assert message in shown


def test_time_travel_reads_three_states(cells: dict[str, NotebookNode]) -> None:
    shown = words(text_of(cells["travel"]))
    assert re.search(r"loaded 336,?776 328,?521 2,?400", shown)
    assert re.search(r"corrected 336,?776 328,?521 2,?359", shown)
    assert re.search(r"now 328,?521 328,?521 2,?359", shown)


def test_diff_of_an_update_pairs_old_and_new_cells(cells: dict[str, NotebookNode]) -> None:
    shown = words(text_of(cells["diff-update"]))
    assert "183 updated" in shown
    assert re.search(r"2400 → 0", shown)


def test_diff_is_data_too(cells: dict[str, NotebookNode]) -> None:
    shown = text_of(cells["session"])
    assert "DiffSummary(inserted=0, deleted=0, updated=183, unchanged=336593, cells=" in shown
    assert shown.count("('D942DN', 'N942DN')") == 4


def test_diff_of_a_delete_counts_rows(cells: dict[str, NotebookNode]) -> None:
    shown = words(text_of(cells["diff-delete"]))
    assert "8,255 deleted" in shown
    assert "328,521 unchanged" in shown


def test_rollback_leaves_the_lake_alone(cells: dict[str, NotebookNode]) -> None:
    shown = words(text_of(cells["rolled-back"]))
    assert "9E" in shown
    assert "updated" in words(text_of(cells["preview"]))


def test_error_is_one_line_that_helps(cells: dict[str, NotebookNode]) -> None:
    shown = text_of(cells["error"])
    assert "Did you mean dep_delay?" in shown
    assert "Traceback" not in shown
    # below it at most the line of SQL and a mark under the place
    assert len(shown.strip().splitlines()) <= 3


def test_exported_html_shows_result_timeline_and_diff_without_a_kernel(page: BeautifulSoup) -> None:
    text = " ".join(page.get_text(" ").split())
    assert "ExpressJet Airlines Inc." in text
    assert "drop cancelled flights" in text
    assert "8,255 deleted" in text
    assert "2400 → 0" in text
    assert len(page.find_all("svg")) >= 1
    assert "model not found" not in text.lower()
