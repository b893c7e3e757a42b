"""The changes of an answer as a chart, and the diff of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

import ducklake_lab as dl
from ducklake_lab.session.when import AnswerChanges
from ducklake_lab.widgets.when import WhenView, svg

pytestmark = pytest.mark.sampled(2)

EVIL = "<script>alert(1)</script>\u202e"


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.author = "Ada"
        session.sql("CREATE TABLE t AS SELECT i, 'a' AS s FROM range(10) r(i)", message="load")
        session.sql("CREATE TABLE other (i INTEGER)")
        session.sql(f"UPDATE t SET s = '{EVIL}' WHERE i = 3", message=EVIL)
        session.sql("DELETE FROM t WHERE i < 4")
        session.sql("INSERT INTO t SELECT 1, 'b' FROM range(30)")
        session.sql("INSERT INTO other VALUES (1)")
        yield session


def changes(session: dl.Session, query: str, *bounds: int) -> AnswerChanges:
    found = session.when(query, *bounds)
    assert isinstance(found, AnswerChanges)
    return found


def points(found: AnswerChanges) -> list[tuple[float, float, bool]]:
    """Place in percent, height in pixels, and whether the point is filled."""
    root = ElementTree.fromstring(svg(found))
    circles = [circle.attrib for group in root.iter("g") for circle in group.iter("circle")]
    return [(float(one["cx"].rstrip("%")), float(one["cy"]), one["fill"] != "none") for one in circles]


def test_numbers_stand_at_their_heights(session: dl.Session) -> None:
    found = changes(session, "SELECT count(*) FROM t")
    assert [line[0] for line in found.lines] == [1, 4, 5] and found.numbers == [10.0, 6.0, 36.0]
    (x1, y1, _), (x2, y2, _), (x3, y3, filled) = points(found)
    # by snapshot, up to the last that was looked at
    assert (x1, x3) == (12.0, pytest.approx(12 + 84 * 4 / 5)) and x2 == pytest.approx(12 + 84 * 3 / 5, abs=0.01)
    assert (y2, y3) == (100.0, 16.0) and y1 == pytest.approx(100 - 84 * 4 / 30, abs=0.1) and filled
    assert ">36<" in svg(found) and ">6<" in svg(found)


@pytest.mark.parametrize(
    ("query", "heights"),
    [
        ("SELECT max(s) FROM t WHERE i IN (3, 5)", 1),
        ("SELECT s, count(*) FROM t GROUP BY ALL", 1),
        ("SELECT CASE count(*) WHEN 10 THEN 'nan'::DOUBLE WHEN 6 THEN 1 ELSE 2 END FROM t", 2),
        ("SELECT sum(i) FILTER (s = 'b') FROM t", 1),
        ("SELECT count(*) * 4e306 FROM t", 3),
    ],
)
def test_other_answers_are_drawn_too(session: dl.Session, query: str, heights: int) -> None:
    found = changes(session, query)
    drawn = points(found)
    assert len(drawn) == len(found.lines) and len({height for _, height, _ in drawn}) == heights
    assert "nan" not in re.sub(r"<title>.*?</title>", "", svg(found))


def test_an_answer_that_is_not_there_is_hollow(session: dl.Session) -> None:
    found = changes(session, "SELECT count(*) FROM other", 0)
    assert [filled for _, _, filled in points(found)] == [False, True, True]
    assert "no answer" in repr(WhenView(found))
    # no line is drawn for what is not there
    assert svg(found).count('stroke-opacity=".6"') == 3


def test_a_point_leads_to_its_diff(session: dl.Session) -> None:
    view = WhenView(changes(session, "SELECT s, count(*) AS n FROM t GROUP BY ALL"))
    first = view.answer_diff({"line": 0})
    assert first == {"html": "", "sentence": "The answer at snapshot 1, where this history begins."}
    found = view.answer_diff({"line": 1})
    assert found["sentence"] == "Changed in snapshot 3 · Ada · <script>alert(1)</script>⟨U+202E⟩"
    assert "snapshot 1 → 3" in found["html"] and "paired by s" in found["html"]
    for line in (-1, 4):
        with pytest.raises(dl.UsageError, match="no such change"):
            view.answer_diff({"line": line})


def test_texts_are_escaped(session: dl.Session) -> None:
    found = changes(session, f"SELECT max(s), '{EVIL}' FROM t")
    html = found._repr_html_()
    assert "<script" not in html and "\u202e" not in html and "&lt;script&gt;" in html
    view = WhenView(found)
    assert set(view._repr_mimebundle_()[0]) == {"text/plain", "text/html"}
    assert "\u202e" not in repr(view)


def test_another_lake_in_use_is_not_compared(session: dl.Session, tmp_path: Path) -> None:
    view = WhenView(changes(session, "SELECT count(*) FROM t"))
    session.attach(f"ducklake:{tmp_path}/other.ducklake", alias="beside")
    session.use("beside.main")
    with pytest.raises(dl.UsageError, match="USE lake first"):
        view.answer_diff({"line": 1})


def test_one_answer_is_one_point(session: dl.Session) -> None:
    assert points(changes(session, "SELECT count(*) FROM other WHERE i > 1")) == [(12.0, 58.0, True)]
