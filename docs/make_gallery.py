"""Takes the gallery's pictures: a notebook that runs on the demo lake in JupyterLab, light and dark.

Before a picture is taken, the numbers that it shows are looked for in its text, as SQL counts them. Run it with
`make screenshots`.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pictures import IMAGES, READY, check, jupyterlab, notebook, open_notebook
from playwright.sync_api import Page, sync_playwright

import ducklake_lab as dl
from ducklake_lab.demo.builder import build
from tests import chromium

SIZE = {"width": 1280, "height": 1400}
SETUP = "%load_ext ducklake_lab\n%ducklake connect ducklake:flights.ducklake"
UPDATE = "UPDATE flights SET tailnum = lower(tailnum) WHERE carrier = 'UA' AND month = 1"
GRID = ".dlk-tb:not(.dlk-tb-unseen)"
CHANGED = """FROM flights AT (VERSION => 12) AS a JOIN flights AT (VERSION => 13) AS b ON a.rowid = b.rowid
WHERE (a.tailnum, a.dep_time, a.arr_time) IS DISTINCT FROM (b.tailnum, b.dep_time, b.arr_time)"""
FILES = """FROM __ducklake_metadata_lake.ducklake_data_file JOIN __ducklake_metadata_lake.ducklake_table t USING (table_id)
WHERE t.table_name = 'flights' AND ducklake_data_file.end_snapshot IS NULL AND t.end_snapshot IS NULL"""


@dataclass(frozen=True)
class View:
    """One picture.

    Attributes:
        name: of the file, without its theme.
        cell: what the notebook runs.
        queries: what gives the numbers that must be in it.
        pressed: buttons to press first.
        live: what the page has once the view takes clicks.
    """

    name: str
    cell: str
    queries: Sequence[str]
    pressed: Sequence[str] = ()
    live: str = ".dlk-live"


VIEWS = (
    View("gallery-snapshots", "%ducklake snapshots", ["SELECT count(*) FROM ducklake_snapshots('lake')"]),
    View(
        "gallery-diff",
        "%ducklake diff flights 12 13",
        [
            f"SELECT count(*) {CHANGED}",
            f"SELECT (SELECT count(*) FROM flights AT (VERSION => 13)) - count(*) {CHANGED}",
        ],
    ),
    View("gallery-schema", "%ducklake schema", ["SELECT count(*) FROM flights", "SELECT count(*) FROM weather"]),
    View("gallery-files", "%ducklake files flights", [f"SELECT count(*) {FILES}", f"SELECT sum(record_count) {FILES}"]),
    View(
        "gallery-profile",
        "%%ducklake\nSELECT carrier, origin, dest, distance, air_time, dep_delay FROM flights",
        [
            "SELECT count(*) FROM flights",
            "SELECT count(DISTINCT dest) FROM flights",
            "SELECT count(DISTINCT distance) FROM flights",
        ],
        ["Profile"],
        GRID,
    ),
    View(
        "gallery-chart",
        "%%ducklake\nSELECT carrier, count(*) AS flights FROM flights GROUP BY ALL ORDER BY flights DESC",
        ["SELECT count(*) FROM flights WHERE carrier = 'UA'", "SELECT count(*) FROM flights WHERE carrier = 'B6'"],
        ["Chart"],
        GRID,
    ),
    View(
        "gallery-preview",
        f"%%ducklake --preview\n{UPDATE}",
        ["SELECT count(*) FROM flights WHERE carrier = 'UA' AND month = 1 AND tailnum <> lower(tailnum)"],
        live="button:has-text('Commit')",
    ),
)


def run(page: Page, address: str, name: str) -> None:
    """Opens the notebook and runs all its cells."""
    open_notebook(page, address, name)
    page.evaluate(f"async () => {{ {READY} await window.jupyterapp.commands.execute('notebook:run-all-cells'); }}")


def take(page: Page, session: dl.Session, at: int, view: View, target: Path) -> None:
    cell = page.locator(".jp-Notebook .jp-Cell").nth(at)
    cell.scroll_into_view_if_needed()
    cell.locator(view.live).first.wait_for(timeout=60_000)
    for name in view.pressed:
        cell.get_by_role("button", name=name, exact=True).click()
    page.wait_for_timeout(2_500)
    check(session, view.name, view.queries, cell.inner_text())
    cell.evaluate("node => node.scrollIntoView({block: 'start'})")
    page.mouse.move(1270, 1390)
    page.wait_for_timeout(500)
    cell.screenshot(path=target)
    print(target)


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes the gallery's pictures.")
    parser.add_argument("--output", type=Path, default=IMAGES)
    options = parser.parse_args()
    browser_path = chromium.required()
    with tempfile.TemporaryDirectory() as place:
        # one lake for the notebook, and an equal one to ask what it should show
        folder, asked = Path(place) / "demo", Path(place) / "asked"
        build(asked, report=lambda _: None)
        shutil.copytree(asked, folder)
        (folder / "gallery.ipynb").write_text(notebook([SETUP, *(view.cell for view in VIEWS)]))
        lake = f"ducklake:{asked}/flights.ducklake"
        for dark in (False, True):
            with (
                jupyterlab(folder, dark=dark) as address,
                sync_playwright() as playwright,
                dl.connect(lake, alias="lake", read_only=True) as session,
            ):
                browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
                page = browser.new_page(viewport=SIZE, device_scale_factor=1.25)  # type: ignore[arg-type]
                run(page, address, "gallery.ipynb")
                for at, view in enumerate(VIEWS, 1):
                    take(page, session, at, view, options.output / f"{view.name}{'-dark' if dark else ''}.png")
                browser.close()


if __name__ == "__main__":
    main()
