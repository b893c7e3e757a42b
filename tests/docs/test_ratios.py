"""Pictures of ratios: each shows the published results, and the page has all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import ratios

ROOT = Path(__file__).parents[2]
PUBLISHED = ratios.load(ROOT / "benchmarks" / "published.json")
PAGE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ratios.GROUPS)
@pytest.mark.parametrize(("theme", "page"), [("", "light"), ("-dark", "dark")])
def test_picture_shows_published_ratios(kind: str, theme: str, page: str) -> None:
    members = [one for one in PUBLISHED if ratios.group(one) == kind]
    drawn = (ROOT / "docs" / "images" / f"ratios-{kind}{theme}.svg").read_text(encoding="utf-8")
    texts = re.findall(r">([^<]+)</t(?:ext|span)>", drawn)
    assert len(members) > 3
    assert [text for text in texts if re.fullmatch(r"\d+\.\d\d", text)] == [f"{one.ratio:.2f}" for one in members]
    (said,) = re.findall(rf"!\[([^\]]+)\]\(images/ratios-{kind}{theme}\.svg#only-{page}\)", PAGE)
    extremes = [f"{pick(one.ratio for one in members):.2f}" for pick in (min, max)]
    assert re.findall(r"\d+\.\d\d", said) == extremes


def test_a_name_of_no_kind_of_work_is_refused() -> None:
    unknown = ratios.Comparison("dance of two rows", "DuckDB", [1.0], [1.0])
    with pytest.raises(ValueError, match="belongs to 0 kinds of work"):
        ratios.group(unknown)
