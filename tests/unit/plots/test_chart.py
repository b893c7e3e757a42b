"""Figures of rows, and the code that makes them, have the points of the chart."""

from __future__ import annotations

from collections.abc import Iterator

import plotly.graph_objects as go
import pytest

import ducklake_lab as dl
from ducklake_lab.plots.chart import code

QUERY = """SELECT DATE '2025-01-01' + i::INTEGER AS day, ['a', NULL, '<b>b</b>'][i % 3 + 1] AS region, i / 4 AS n, i * 7 % 31 AS m
FROM range(3000) AS r(i)"""


@pytest.fixture(scope="module")
def session() -> Iterator[dl.Session]:
    with dl.Session(engine="duckdb") as session:
        yield session


@pytest.mark.parametrize(
    ("given", "trace"),
    [
        (("bar", "region", "n", "sum"), "bar"),
        (("line", "day", "n", "avg"), "scatter"),
        (("line", "n", "m", "max"), "scatter"),
        (("histogram", "n"), "bar"),
        (("histogram", "day"), "bar"),
        (("scatter", "n", "m"), "scatter"),
        (("scatter", "day", "m"), "scatter"),
    ],
)
@pytest.mark.parametrize("filters", [{}, {"m": "> 3"}])
def test_the_figure_and_its_code_draw_the_points(
    session: dl.Session, given: tuple[str, ...], trace: str, filters: dict[str, str]
) -> None:
    result = session.sql(QUERY)
    view = result.view()
    view.look([("n", True)] if filters else [], filters, "2" if filters else "")
    chart = view.chart(*given)
    (drawn,) = view.plot(*given).data
    assert drawn.type == trace
    assert list(drawn.y) == chart.points.column("y").to_pylist()
    scope: dict[str, object] = {"result": result}
    *lines, last = code(view, chart).splitlines()
    assert (last, len(lines)) == ("figure", 8 if filters else 7)
    exec("\n".join(lines), scope)
    figure = scope["figure"]
    assert isinstance(figure, go.Figure)
    (coded,) = figure.data
    assert (coded.type, list(coded.y)) == (drawn.type, list(drawn.y))
    plain = [str(label).replace("&lt;", "<") for label in drawn.x]
    assert [str(label)[:10] for label in coded.x] == [label[:10] for label in plain]
    if given[0] == "histogram":
        assert list(coded.width) == pytest.approx(list(drawn.width))


def test_what_is_left_out_stands_on_the_figure_and_below_the_still_one(session: dl.Session) -> None:
    view = session.sql(QUERY).view()
    picture = view.plot("bar", "n", aggregate="count")
    assert (
        "the 40 largest of 3,000 values of n; 2,960 others, of 2,960 rows, are not drawn" in picture.layout.title.text
    )
    still = picture._repr_mimebundle_()["text/html"]
    assert "2,960 others" in still and "first 20 of 40 points" in still
    hostile = view.chart("bar", "region")._repr_html_()
    assert "&lt;b&gt;b&lt;/b&gt;" in hostile and "<b>b" not in hostile
    assert "&lt;b>b" in str(view.plot("bar", "region").data[0].x)
