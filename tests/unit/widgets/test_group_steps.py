"""The charts of the change by group as static HTML."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal
from xml.etree import ElementTree

import pytest

from ducklake_lab.diff.model import ColumnSteps, GroupStep
from ducklake_lab.widgets import diff, group_steps
from tests.browser import samples

N = ColumnSteps(
    "n",
    (
        GroupStep(0, "inserted", ("UA", 1), None, 30, "30", 1.0),
        GroupStep(3, "updated", (None, 2), 20, 5, "-15", -0.5),
        GroupStep(1, "deleted", ("NULL", 3), 6, None, "-6", -0.2),
        GroupStep(2, "updated", ("<b>", 4), None, 7, None, None),
    ),
    12,
)
LATE = ColumnSteps(
    "late <i>",
    (
        GroupStep(2, "updated", ("<b>", 4), math.inf, 1.0, -math.inf, -math.inf),
        GroupStep(3, "updated", (None, 2), Decimal("0.10"), Decimal("0.35"), "0.25", 1.0),
        GroupStep(0, "inserted", ("UA", 1), None, math.nan, math.nan, None),
    ),
    0,
)


def drawn(*columns: ColumnSteps) -> str:
    return group_steps.section(replace(samples.updated(), key=("carrier", "month"), group_steps=columns))


def rows(html: str) -> list[list[str]]:
    """The texts of the cells of each row, tags left out."""
    return [
        [re.sub("<[^>]+>", "", cell) for cell in re.findall("<td[^>]*>(.*?)</td>", row)]
        for row in re.findall("<tr title.*?</tr>", html)
    ]


def bars(html: str) -> list[tuple[float, float, float] | None]:
    """The place of zero, and the left and the right end of each bar, in percent."""
    found: list[tuple[float, float, float] | None] = []
    for picture in re.findall("<svg.*?</svg>", html):
        zero = float(re.findall('<line x1="([^"]+)%"', picture)[0])
        ends = [
            (float(x), float(x) + float(w)) for x, w in re.findall('<rect x="([^"]+)%".*? width="([^"]+)%"', picture)
        ]
        found.append((zero, *ends[0]) if ends else None)
    return found


def test_groups_differ_by_kind_beside_their_bars() -> None:
    html = drawn(N)
    assert "<h4>Change of n by carrier · month <small>later minus earlier</small></h4>" in html
    assert rows(html) == [
        ["+ UA · 1", "+30", "", "came with 30"],
        ["→ NULL · 2", "−15", "", "20 → 5"],
        ["− &#x27;NULL&#x27; · 3", "−6", "", "went with 6"],
        ["→ &lt;b&gt; · 4", "–", "", "NULL → 7"],
    ]
    assert re.findall('tr title="([^"]+)"', html)[:2] == ["UA · 1: came with 30 (+30)", "NULL · 2: 20 → 5 (−15)"]
    assert re.findall('rect.*?fill="([^"]+)"', html) == ["#159a72", "#c07c00", "#d9482f"]
    assert bars(html) == [
        (33.33, 33.33, pytest.approx(100, abs=0.01)),
        (33.33, 0, pytest.approx(33.33)),
        (33.33, pytest.approx(20), pytest.approx(33.33)),
        None,
    ]
    assert "12 more groups changed" in html and "<details" not in html


def test_several_numbers_are_folded_but_for_the_first() -> None:
    html = drawn(N, LATE)
    assert "<h4>Change by carrier · month " in html
    assert re.findall("<details( open)?><summary>(.*?)</summary>", html) == [
        (" open", "n <small>in 16 groups</small>"),
        ("", "late &lt;i&gt; <small>in 3 groups</small>"),
    ]
    # an infinite step looks other than the longest finite one
    _, late = html.split("<details>")
    assert bars(late) == [(50, 0, 50), (50, 50, 100), None]
    assert [cells[1] for cells in rows(late)] == ["−inf", "+0.25", "NaN"]
    assert [cells[3] for cells in rows(late)] == ["inf → 1.0", "0.10 → 0.35", "came with NaN"]
    assert late.count("stroke-dasharray") == 1


def test_a_short_bar_is_seen_and_a_step_of_zero_has_none() -> None:
    short = GroupStep(1, "updated", (1,), 1, 2, "1", 1e-9)
    zero = GroupStep(2, "inserted", (2,), None, 0, "0", 0.0)
    html = drawn(replace(N, groups=(N.groups[0], short, replace(short, share=-1e-9), zero), more=1))
    assert bars(html)[1:] == [(0, 0, 0.6), (0, -0.6, 0), None]
    assert "1 more group changed" in html


def test_the_note_says_from_where_groups_that_came_or_went_count() -> None:
    assert "it is not there" not in drawn(N)
    came = replace(samples.updated(), key=("k",), group_steps=(N,))
    assert "a group counts 0 where it is not there" in group_steps.section(
        replace(came, summary=replace(came.summary, inserted=1))
    )


def test_it_stands_above_the_rows_well_formed() -> None:
    html = diff.render(replace(samples.updated(), key=("carrier", "month"), group_steps=(N, LATE)))
    assert html.index('<div class="dlk-gs">') < html.index('<div class="dlk-changes">')
    body = html[html.index("</style>") + 8 :].replace("&ensp;", " ").replace("<br>", "<br/>")
    ElementTree.fromstring(body.replace("<details open>", '<details open="">'))
    assert 'dlk-gs"' not in diff.render(samples.updated())
