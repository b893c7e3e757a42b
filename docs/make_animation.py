"""Makes the README's animation: the story of `notebooks/undo.ipynb`, step by step in JupyterLab.

The notebook's cells run one after the other. A picture is taken of a step once SQL has given the values in it.
Run it with `make screenshots`.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pictures import IMAGES, READY, ROOT, cell, check, jupyterlab, notebook, open_notebook
from PIL import Image
from playwright.sync_api import Locator, Page, sync_playwright

import ducklake_lab as dl
from tests import chromium

NOTEBOOK = ROOT / "notebooks" / "undo.ipynb"
SIZE = {"width": 1100, "height": 900}
#: The pictures' height and how far they go beyond the cells, in pixels of the page.
HEIGHT, MARGIN = 514, 8
SCALE = 1.25
#: How long a cell is shown before it runs, and its output after that, in milliseconds.
BEFORE, AFTER = 400, 1_900
BETWEEN = """SELECT count(*) FROM orders AT (VERSION => {}) AS a JOIN orders AT (VERSION => {}) AS b USING (order_id)
WHERE a.total <> b.total"""


@dataclass(frozen=True)
class Step:
    """A cell of the notebook that is shown.

    Attributes:
        cell: its id.
        caption: what stands above it.
        queries: what gives the values that must be in its output.
        shown: what the page has once the output is there.
        pressed: what is clicked then, which makes another picture.
        queries_after: what gives the values of that picture.
        first: the cell that the caption stands above, where one before this one is shown, too.
        filtered: what is typed into its filter before the click.
    """

    cell: str
    caption: str
    queries: Sequence[str]
    shown: str = ".jp-OutputArea-output"
    pressed: str | None = None
    queries_after: Sequence[str] = ()
    first: str | None = None
    filtered: str | None = None


STEPS = (
    Step("upload", "Load a CSV", ["SELECT count(*) FROM orders AT (VERSION => 1)"], first="guess"),
    Step(
        "broken",
        "Break it: a discount for one customer reaches everybody in March",
        [BETWEEN.format(2, 3)],
        first="ben",
    ),
    Step(
        "symptom",
        "Notice: revenue is missing",
        [
            """SELECT month(now.ordered_on), sum(was.total), sum(now.total), sum(was.total - now.total)
            FROM orders AT (VERSION => 4) AS now JOIN orders AT (VERSION => 1) AS was USING (order_id) GROUP BY ALL"""
        ],
    ),
    Step(
        "who",
        "Find who, when and how",
        [
            "SELECT snapshot_id, author, commit_message FROM ducklake_snapshots('shop') WHERE snapshot_id > 0",
            BETWEEN.format(2, 3),
        ],
        ".dlk-live",
        ".dlk-g-rows .dlk-g-row:has-text('discount for Grace')",
        ["SELECT commit_extra_info->>'statement' FROM ducklake_snapshots('shop') WHERE snapshot_id = 3"],
        filtered="author:ben",
    ),
    Step("what", "See what changed, cell by cell", [BETWEEN.format(2, 3)], ".dlk-live"),
    Step(
        "undo",
        "Undo that one thing, after a look at it",
        [
            "SELECT count(*) FROM orders AT (VERSION => 3) WHERE customer <> 'Grace Hopper' AND ordered_on >= '2026-03-01'"
        ],
        "button:visible:has-text('Commit')",
        "button:visible:has-text('Commit')",
        [BETWEEN.format(4, 5), "SELECT max(snapshot_id) FROM ducklake_snapshots('shop')"],
    ),
    Step(
        "proof",
        "Proof: nobody else's total differs",
        [
            f"{BETWEEN.format(2, 5)} AND a.customer <> 'Grace Hopper'",
            BETWEEN.format(2, 5),
            "SELECT count(*) FROM orders WHERE state = 'shipped'",
        ],
    ),
)
#: The button of the preview does what this cell does.
LEFT_OUT = ("commit",)


def story() -> list[dict[str, object]]:
    """The notebook's code cells; a caption stands above those that are shown."""
    captions = {step.first or step.cell: (step, f"### {at} · {step.caption}") for at, step in enumerate(STEPS, 1)}
    found: list[dict[str, object]] = []
    for one in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        name = one["id"]
        if name in captions:
            step, text = captions[name]
            found.append(cell(text, f"{step.cell}-caption", "markdown"))
        if one["cell_type"] == "code" and name not in LEFT_OUT:
            found.append(one)
    return found


def at(page: Page, index: int) -> Locator:
    return page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{index}"]')


def run(page: Page, index: int) -> None:
    """Runs a cell and waits until it is done."""
    page.evaluate(
        f"""async index => {{
            {READY}
            panel.content.activeCellIndex = index;
            await window.jupyterapp.commands.execute('notebook:run-cell');
        }}""",
        index,
    )


def show(page: Page, top: int, index: int) -> None:
    """Shows the cells from a caption to the one of a step, and no other."""
    seen = ", ".join(f'.jp-Cell[data-windowed-list-index="{one}"]' for one in range(top, index + 1))
    page.evaluate(
        """seen => {
            const style = document.getElementById('story') ?? document.head.appendChild(document.createElement('style'));
            style.id = 'story';
            style.textContent = `.jp-Notebook .jp-Cell:not(${seen}) { visibility: hidden }
                .jp-cell-toolbar, .jp-Notebook-footer { display: none !important }`;
        }""",
        seen,
    )
    page.evaluate(f"async index => {{ {READY} panel.content.activeCellIndex = index; }}", index)
    at(page, top).evaluate("node => node.scrollIntoView({block: 'start'})")
    page.mouse.move(SIZE["width"] - 5, SIZE["height"] - 5)
    page.wait_for_timeout(500)


def picture(page: Page, top: int) -> Image.Image:
    """The caption and what is below it up to the height."""
    box = at(page, top).bounding_box()
    assert box is not None
    clip = {"x": box["x"] - MARGIN, "y": box["y"], "width": box["width"] + 2 * MARGIN, "height": HEIGHT}
    return Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")  # type: ignore[arg-type]


def take(page: Page, session: dl.Session, top: int, index: int, step: Step) -> list[tuple[Image.Image, int]]:
    """Runs the cell of a step; its pictures with their milliseconds."""
    show(page, top, index)
    taken = [(picture(page, top), BEFORE)]
    run(page, index)
    shown = at(page, index)
    shown.locator(step.shown).first.wait_for(timeout=60_000)
    page.wait_for_timeout(1_000)
    for pressed, queries in ((None, step.queries), (step.pressed, step.queries_after)):
        if pressed is not None:
            if step.filtered is not None:
                shown.get_by_placeholder("Filter").fill(step.filtered)
                page.wait_for_timeout(1_000)
            shown.locator(pressed).first.click()
            page.wait_for_timeout(1_500)
        if queries:
            check(session, step.cell, queries, shown.inner_text())
            show(page, top, index)
            taken.append((picture(page, top), AFTER))
    return taken


def record(page: Page, address: str, folder: Path) -> list[tuple[Image.Image, int]]:
    """Runs the story; all pictures with their milliseconds."""
    open_notebook(page, address, "story.ipynb")
    steps = {step.cell: step for step in STEPS}
    taken: list[tuple[Image.Image, int]] = []
    with dl.Session() as session:
        top = 0
        for index, one in enumerate(story()):
            if one["id"] == STEPS[0].cell:
                session.attach(f"ducklake:{folder}/shop.ducklake", alias="shop", read_only=True)
                session.sql("USE shop")
            step = steps.get(str(one["id"]))
            if step is not None:
                taken += take(page, session, top, index, step)
            elif one["cell_type"] == "code":
                run(page, index)
            else:
                top = index
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the README's animation.")
    parser.add_argument("--output", type=Path, default=IMAGES / "undo.webp")
    parser.add_argument("--frames", type=Path, help="a folder for each picture as PNG")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, jupyterlab(Path(place), dark=False) as address:
        (Path(place) / "story.ipynb").write_text(notebook(story()), encoding="utf-8")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium.required(), args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE, device_scale_factor=SCALE)  # type: ignore[arg-type]
            taken = record(page, address, Path(place))
            browser.close()
    if options.frames is not None:
        options.frames.mkdir(parents=True, exist_ok=True)
        for number, (one, _) in enumerate(taken):
            one.save(options.frames / f"{number:02}.png")
    (first, _), *rest = taken
    first.save(
        options.output,
        save_all=True,
        append_images=[one for one, _ in rest],
        duration=[milliseconds for _, milliseconds in taken],
        loop=0,
        lossless=True,
        method=6,
    )
    seconds = sum(milliseconds for _, milliseconds in taken) / 1_000
    print(f"{options.output}: {len(taken)} pictures, {seconds:.1f} s, {options.output.stat().st_size / 1_000:,.0f} kB")


if __name__ == "__main__":
    main()
