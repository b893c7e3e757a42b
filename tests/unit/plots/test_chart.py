"""Figures of rows, and the code that makes them, have the points of the chart."""

from __future__ import annotations

from collections.abc import Iterator

import plotly.graph_objects as go
import pytest

import ducklake_lab as dl
from ducklake_lab.plots.chart import code
from ducklake_lab.session.rows.chart import Chart
from ducklake_lab.session.rows.view import RowsView

QUERY = """SELECT DATE '2025-01-01' + i::INTEGER AS day, ['a', NULL, '<b>b</b>'][i % 3 + 1] AS region, i / 4 AS n, i * 7 % 31 AS m
FROM range(3000) AS r(i)"""


@pytest.fixture(scope="module")
def session() -> Iterator[dl.Session]:
    with dl.Session(engine="duckdb") as session:
        yield session


def _coded(result: dl.Result, view: RowsView, chart: Chart) -> go.Figure:
    """The figure of the code that is handed out."""
    scope: dict[str, object] = {"result": result}
    *lines, last = code(view, chart).splitlines()
    assert last == "figure"
    exec("\n".join(lines), scope)
    figure = scope["figure"]
    assert isinstance(figure, go.Figure)
    return figure


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
    assert len(code(view, chart).splitlines()) == (9 if filters else 8)
    (coded,) = _coded(result, view, chart).data
    assert (coded.type, list(coded.y)) == (drawn.type, list(drawn.y))
    plain = [str(label).replace("&lt;", "<") for label in drawn.x]
    assert [str(label)[:10] for label in coded.x] == [label[:10] for label in plain]
    if given[0] == "histogram":
        assert list(coded.width) == pytest.approx(list(drawn.width))


@pytest.mark.parametrize(
    "given",
    [("bar", "region", "n", "sum"), ("line", "day", "n", "avg"), ("histogram", "day"), ("scatter", "n", "m")],
)
def test_each_colour_is_a_trace(session: dl.Session, given: tuple[str, ...]) -> None:
    result = session.sql(f"SELECT *, m % 3 AS kind FROM ({QUERY}) WHERE n < 300")
    view = result.view()
    chart = view.chart(*given, color="kind", bins="month" if given[1] == "day" else None)
    drawn = view.plot(*given, color="kind", bins="month" if given[1] == "day" else None)
    coded = _coded(result, view, chart)
    assert drawn.layout.barmode == coded.layout.barmode == ("stack" if given[0] == "histogram" else None)
    assert [trace.name for trace in drawn.data] == [trace.name for trace in coded.data] == ["0", "1", "2"]
    for trace, other, (_, points) in zip(drawn.data, coded.data, chart.series, strict=True):
        assert list(trace.y) == list(other.y) == points.column("y").to_pylist()
        assert len(trace.x) == len(other.x) == points.num_rows
    assert drawn.layout.showlegend


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


def test_labels_that_look_alike_are_bars_of_their_own(session: dl.Session) -> None:
    long = "https://example.org/" + "a" * 200
    texts = [None, "NULL", "", "'NULL'", f"{long}1", f"{long}2", "a\x01", "a\x02"]
    values = ", ".join("(NULL)" if text is None else f"('{text.replace(chr(39), chr(39) * 2)}')" for text in texts)
    result = session.sql(f"SELECT * FROM (VALUES {values}) AS t(name)")
    view = result.view()
    chart = view.chart("bar", "name", aggregate="count")
    assert {"NULL", "'NULL'", "''", "''NULL''"} < set(chart.labels)
    for figure in (view.plot("bar", "name", aggregate="count"), _coded(result, view, chart)):
        (bars,) = figure.data
        assert len(set(bars.x)) == len(texts)
        assert list(bars.y) == [1] * len(texts)
