"""The strip over a long history, as it first paints: all snapshots, and a frame around those that the timeline shows."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.first_paint import first_paint
from tests.browser.lab import Lab, Screenshot, close, run_all, serious

pytestmark = pytest.mark.sampled(5, "browser")

CELLS = (
    "%load_ext ducklake_lab\nimport ducklake_lab as dl\n"
    "session = dl.connect('ducklake:long{width}.ducklake', alias='lake', engine='duckdb', exclusive=True)\n"
    "%ducklake connect session\nsession.sql('CREATE TABLE t (i BIGINT)')\n"
    "for n in range(360):\n    session.sql(f'INSERT INTO t SELECT i FROM range({1 + n % 9}) r(i)')\n"
    "session.sql('INSERT INTO t SELECT i FROM range(4000) r(i); DELETE FROM t WHERE i >= 3000')",
    "%ducklake snapshots",
)


@pytest.mark.parametrize("width", [900, 1320])
def test_the_strip_of_a_long_history(lab: Lab, screenshot: Screenshot, width: int) -> None:
    lab.write("long.ipynb", [cell.replace("{width}", str(width)) for cell in CELLS])
    page = lab.open("long.ipynb")
    page.set_viewport_size({"width": width, "height": 1000})
    run_all(page)
    strip = page.locator(".dlk-sb-map")
    expect(strip.locator("path")).to_have_count(1)
    first_paint(
        page,
        {
            ".dlk-sb": [
                "364 snapshots",
                "overview height: square root of rows added, rows removed and snapshots, summed",
            ]
        },
    )
    box, label = strip.bounding_box(), page.locator(".dlk-sb-mapped").bounding_box()
    frame, grid = strip.locator(".dlk-sb-window").bounding_box(), page.locator(".dlk-sb .dlk-g").bounding_box()
    assert box and label and frame and grid
    # the frame is at the end, as wide as its share of the snapshots; the words stand between the strip and the list
    first, last = (int(strip.get_attribute("aria-valuetext").split()[at]) for at in (1, 3))
    assert last == 363
    assert abs(frame["width"] - box["width"] * (last - first + 1) / 364) < 3
    assert abs(frame["x"] + frame["width"] - box["x"] - box["width"]) < 3
    assert box["y"] + box["height"] <= label["y"] + 1 and label["y"] + label["height"] <= grid["y"] + 1
    screenshot(page, f"overview-{width}")
    assert serious(page, ".dlk-sb") == []
    strip.press("Home")
    expect(strip).to_have_attribute("aria-valuetext", f"snapshots 0 to {last - first}")
    close(page)
