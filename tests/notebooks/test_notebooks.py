"""Notebooks, executed: each shows what its text says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from tests.notebooks.running import execute, execute_file, text_of

pytestmark = pytest.mark.sampled(4, "executed notebooks")

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = ("time_travel", "undo", "who_broke_the_report", "fix_it_on_a_branch", "live_dashboard", "spark_pipelines", "lake_health", "beside_duckdb")

Shown = Callable[[str], str]


def shown_by(document: NotebookNode) -> Shown:
    cells = {cell.id: cell for cell in document.cells}

    def shown(cell: str) -> str:
        return " ".join(BeautifulSoup(text_of(cells[cell]), "html.parser").get_text(" ").split())

    return shown


def run(name: str, folder: Path) -> Shown:
    return shown_by(execute(nbformat.read(FOLDER / f"{name}.ipynb", as_version=4), folder))


@pytest.mark.parametrize("name", NAMES)
def test_is_kept_without_outputs(name: str) -> None:
    document = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(document)
    assert all(not cell.outputs and cell.execution_count is None for cell in document.cells if cell.cell_type == "code")


def test_live_dashboard_is_refreshed_by_days_and_regions(tmp_path: Path) -> None:
    shown = run("live_dashboard", tmp_path)
    assert "1 row violates amount_positive of main.events, CHECK (amount > 0): (event_id = 6101" in shown("refused")
    assert "Nothing was written." in shown("refused")
    assert "1 row changed" in shown("aside") and "1 in main.events_quarantine by amount_positive" in shown("aside")
    assert "6101 -25.00 amount_positive: CHECK (amount > 0)" in shown("quarantine")
    assert shown("check").count("passed 0") == 2
    assert "incremental rows are replaced by day, region main.events" in shown("explain")
    # of the two rows of the night, the good one counts
    assert "main.daily incremental rows are replaced by day, region 64 " in shown("refresh")
    assert "main.best incremental rows are replaced by region 64 " in shown("refresh")
    assert "unchanged" in shown("diff")
    assert shown("first") != shown("second")
    assert shown("again").count("nothing") == 2
    assert "main.best" in shown("listed")


def test_beside_duckdb_both_clients_see_the_same(tmp_path: Path) -> None:
    shown = run("beside_duckdb", tmp_path)
    assert "La Guardia" in shown("there")
    assert "1 deleted + 0 inserted → 1 updated" in shown("diff")
    assert re.search(r"JFK John F\. Kennedy 40\.64 1928", shown("here"))
    assert shown("same").count("the same in both") == 4
    assert "DIFFERENT" not in shown("same")


def test_lake_health_is_found_mended_and_history_kept(tmp_path: Path) -> None:
    shown = run("lake_health", tmp_path)
    assert "300 deleted (2%)" in shown("files")
    assert "29 of 30 files can be merged" in shown("health")
    assert "merge_adjacent_files" in shown("apply")
    assert shown("after") == "30 files before, 2 now; 0 deleted rows left in them"
    assert "after the tenth load 4000 now 11700" in shown("same")
    assert "3 rows" in shown("expire")
    assert shown("snapshots") == "35 snapshots are there still"
    assert "data_path" in shown("options")


def test_spark_pipelines_merge_and_stream(tmp_path: Path) -> None:
    shown = run("spark_pipelines", tmp_path)
    assert "warmest" in shown("warmest")
    assert "inserted=1, deleted=0, updated=100" in shown("receipt")
    assert shown("stream").split()[-2:] == ["20001", "20501"]
    assert 'no_such_column' in shown("transaction")
    before, after = re.findall(r"snapshot (\d+) then and (\d+) now", shown("transaction"))[0]
    assert before == after


def test_time_travel_tells_what_was_and_what_would_be(demo_lake: Path, tmp_path: Path) -> None:
    document = execute_file(FOLDER / "time_travel.ipynb", demo_lake, tmp_path)
    shown = shown_by(document)
    assert "drop cancelled flights" in shown("history")
    assert re.search(r"336,?776 328,?521", shown("at"))
    assert "8,255 deleted" in shown("diff")
    assert "100% of deleted rows have dep_time IS NULL" in shown("diff")
    assert "100% of deleted rows have dep_time IS NULL" in shown("data")
    assert "exit code 1" in shown("ci")
    assert "183 updated" in shown("ci")
    assert (tmp_path / "notebooks" / "diff.html").read_text().startswith("<!doctype html>")
    # the saved output follows the ROLLBACK of the next cell
    assert re.search(r"Rolled back ?: the lake is as it was", shown("preview"))
    assert "updated" in shown("preview")
    assert re.search(r"\b18\b", shown("unchanged"))


def test_undo_finds_who_and_takes_back_that_alone(tmp_path: Path) -> None:
    shown = run("undo", tmp_path)
    assert "post_code VARCHAR" in shown("guess") and "dates as %d/%m/%Y" in shown("guess")
    assert "nothing is written yet" in shown("guess")
    assert "orders 20,000" in shown("upload")
    assert "snapshots 1, 4" in shown("symptom")
    assert "discount for Grace · Ben" in shown("what")
    assert "3 Ben discount for Grace UPDATE orders SET total" in shown("statement")
    wrong = int(re.findall(r"([\d,]+) updated", shown("what"))[0].replace(",", ""))
    undone = int(re.findall(r"([\d,]+) updated", shown("undo"))[0].replace(",", ""))
    assert shown("commit").startswith("done") and "snapshot 5" in shown("commit")
    assert re.search(rf"bigint 0 {wrong - undone} 7499 1 row", shown("proof"))


def test_who_broke_the_report_is_answered_and_taken_back(tmp_path: Path) -> None:
    shown = run("who_broke_the_report", tmp_path)
    assert re.search(r" 1 .* Ada orders of the quarter 106500\.00 3 .* Ben amounts of the south in euro 99600\.00 2 rows", shown("when"))
    assert "2 updated 1 unchanged 3 cells changed" in shown("compare")
    assert "south 103500.00 → 100050.00 (−3450.00) 3000" in shown("compare")
    assert re.search(r"2 region coast west 4 \S+ \S+ Cleo the west is called coast", shown("blame"))
    assert re.search(r"2 amount 10\.80 12\.00 3 \S+ \S+ Ben", shown("blame"))
    assert "2,000 updated 7,100 unchanged 2,000 cells changed" in shown("preview")
    assert "1 snapshot · reverted" in shown("revert")
    assert "wrong bigint converted bigint renamed bigint 0 1000 3000" in shown("proof")


def test_a_branch_is_reviewed_and_merged(tmp_path: Path) -> None:
    shown = run("fix_it_on_a_branch", tmp_path)
    assert "12 rows changed" in shown("fix") and "snapshot orders#fix-amounts 2" in shown("fix")
    assert "main.orders 500 amount -1.00 17.00 0.00 changed on both sides" in shown("review")
    assert "30 inserted, 11 updated" in shown("preview")
    assert "1 branch · merged" in shown("merge")
    assert re.search(r"wrong bigint orders bigint bens decimal\(10,2\) 0 3130 17\.00 1 row", shown("proof"))
    assert "merge of branch fix-amounts: amounts below zero were never paid; orders that were left out" in shown("history")
