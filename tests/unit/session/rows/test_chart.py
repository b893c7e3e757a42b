"""Charts: every number is what plain SQL gives, and what is left out is said."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.model.types import from_field
from ducklake_lab.session.rows import chart as chart_module
from ducklake_lab.session.rows import view as view_module
from ducklake_lab.session.rows.chart import Chart
from ducklake_lab.session.rows.chart_choice import KINDS
from ducklake_lab.session.rows.columns import ViewColumn
from ducklake_lab.session.rows.view import RowsView
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3)

SALES = """SELECT DATE '2025-01-01' + (i // 10)::INTEGER AS day, ['north', 'south', 'east', NULL][i % 4 + 1] AS region, i AS order_id,
    CASE WHEN i % 9 > 0 THEN ((i * 7919 % 1000) / 10)::DECIMAL(9,1) END AS price, (i % 50)::DOUBLE AS amount FROM range(1000) AS r(i)"""


@pytest.fixture(scope="module")
def session() -> Iterator[dl.Session]:
    with dl.Session(engine="duckdb") as session:
        session.sql("SET TimeZone = 'Europe/Berlin'")
        yield session


def plain(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Europe/Berlin'")
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("day, region, price", ("line", "day", "price", "sum")),
        ("region, amount", ("bar", "region", "amount", "sum")),
        ("region, order_id", ("bar", "region", None, "count")),
        ("order_id, price, amount", ("scatter", "price", "amount", None)),
        ("order_id, price", ("histogram", "price", None, None)),
        ("order_id", ("histogram", "order_id", None, None)),
        ("day", ("histogram", "day", None, None)),
        ("region", ("bar", "region", None, "count")),
        ("day, order_id", ("histogram", "day", None, None)),
        ("[amount] AS list", ("bar", "list", None, "count")),
    ],
)
def test_axes_suit_the_types_of_the_columns(session: dl.Session, columns: str, expected: tuple[str, ...]) -> None:
    choice = session.sql(f"SELECT {columns} FROM ({SALES})").view().chart().choice
    assert (choice.kind, choice.x, choice.y, choice.aggregate) == expected


@pytest.mark.parametrize(
    ("given", "sql", "title"),
    [
        ({}, "SELECT day, sum(price), count(*) FROM t GROUP BY ALL ORDER BY ALL", "sum of price by day"),
        ({"kind": "bar"}, "SELECT region, sum(price), count(*) FROM t GROUP BY ALL ORDER BY 2 DESC, 1", "sum of price by region"),
        ({"kind": "bar", "x": "region", "aggregate": "count"},
         "SELECT region, count(*), count(*) FROM t GROUP BY ALL ORDER BY 2 DESC, 1", "rows by region"),
        ({"kind": "bar", "x": "amount", "y": "price", "aggregate": "max"},
         "SELECT amount, max(price), count(*) FROM t GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT 40", "max of price by amount"),
        ({"kind": "line", "y": "amount", "aggregate": "avg"},
         "SELECT day, avg(amount), count(*) FROM t GROUP BY ALL ORDER BY ALL", "avg of amount by day"),
        ({"kind": "line", "x": "order_id", "y": "amount"},
         "SELECT order_id, amount, 1 FROM t ORDER BY ALL", "amount by order_id"),
        ({"kind": "scatter"}, "SELECT price, amount, count(*) FROM t WHERE price IS NOT NULL GROUP BY ALL ORDER BY ALL", "amount by price"),
        ({"kind": "histogram", "x": "order_id"},
         "SELECT order_id // 50 * 50, (order_id // 50 + 1) * 50, count(*), count(*) FROM t GROUP BY ALL ORDER BY ALL",
         "rows by order_id, in intervals of 50"),
        ({"kind": "histogram", "x": "price"},
         "SELECT floor(price / 5) * 5, floor(price / 5) * 5 + 5, count(*), count(*) FROM t WHERE price IS NOT NULL GROUP BY ALL ORDER BY ALL",
         "rows by price, in intervals of 5"),
        ({"kind": "histogram", "x": "day"},
         "SELECT d, d + 7, count(*), count(*) FROM (SELECT date_trunc('week', day)::DATE AS d FROM t) GROUP BY ALL ORDER BY ALL",
         "rows by day, in intervals of 1 week"),
        ({"kind": "bar", "x": "day", "y": "price"},
         "SELECT d, d + 7, sum(price), count(*) FROM (SELECT date_trunc('week', day)::DATE AS d, price FROM t) GROUP BY ALL ORDER BY ALL",
         "sum of price by day, in intervals of 1 week"),
        ({"kind": "line", "x": "day", "aggregate": "count", "bins": "month"},
         "SELECT d, (d + INTERVAL '1 month')::DATE, count(*), count(*) FROM (SELECT date_trunc('month', day)::DATE AS d FROM t) "
         "GROUP BY ALL ORDER BY ALL", "rows by day, in intervals of 1 month"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("filters", [{}, {"amount": "> 7", "region": "not null"}])
def test_points_are_those_of_plain_sql(
    session: dl.Session, given: dict[str, str], sql: str, title: str, filters: dict[str, str]
) -> None:
    view = session.sql(SALES).view()
    view.look([("amount", True)], filters)
    drawn = view.chart(**given)
    where = "WHERE amount > 7 AND region IS NOT NULL" if filters else ""
    expected = plain(f"WITH t AS (FROM ({SALES}) {where}) {sql}")
    assert plain(drawn.sql) == session.sql(drawn.sql).fetchall() == expected
    assert drawn.title == title
    points = drawn.points.to_pylist()
    ends = ["until"] if len(expected[0]) == 4 else []
    texts = [tuple(None if one is None else str(one) for one in row[:-1]) for row in expected]
    assert [tuple(point[name] for name in ("label", *ends, "value")) for point in points] == texts
    assert [point["rows"] for point in points] == [row[-1] for row in expected]
    assert [point["y"] for point in points] == [None if row[-2] is None else float(row[-2]) for row in expected]


@pytest.mark.parametrize(
    ("given", "sql"),
    [
        ({"kind": "line"}, "SELECT day, region, sum(price) FROM t GROUP BY ALL ORDER BY ALL"),
        ({"kind": "histogram", "x": "day", "bins": "quarter"},
         "SELECT date_trunc('quarter', day)::DATE, region, count(*) FROM t GROUP BY ALL ORDER BY ALL"),
        ({"kind": "bar", "x": "day", "y": "amount", "aggregate": "avg", "bins": "month"},
         "SELECT date_trunc('month', day)::DATE, region, avg(amount) FROM t GROUP BY ALL ORDER BY ALL"),
        ({"kind": "bar", "x": "amount", "y": "price", "aggregate": "max"},
         "SELECT amount, region, p FROM (SELECT amount, region, max(price) AS p, any_value(best) AS best FROM t JOIN (SELECT amount, "
         "max(price) AS best FROM t GROUP BY amount ORDER BY 2 DESC, 1 LIMIT 40) USING (amount) GROUP BY amount, region) "
         "ORDER BY best DESC, amount, region"),
        ({"kind": "scatter", "x": "price", "y": "amount"},
         "SELECT DISTINCT price, region, amount FROM t WHERE price IS NOT NULL ORDER BY price, amount, region"),
    ],
)  # fmt: skip
def test_each_colour_has_the_values_of_its_rows(session: dl.Session, given: dict[str, str], sql: str) -> None:
    drawn = session.sql(SALES).view().chart(**given, color="region")
    expected = plain(f"WITH t AS (FROM ({SALES})) {sql}")
    points = drawn.points.to_pylist()
    texts = [tuple(None if one is None else str(one) for one in row) for row in expected]
    found = [(point["label"], point["series"], point["value"]) for point in points]
    assert found == texts
    names = ["east", "north", "south", None]
    assert all(names[point["color"]] == point["series"] for point in points)
    assert [name for name, _ in drawn.series] == ["east", "north", "south", "NULL"]
    assert sum(part.num_rows for _, part in drawn.series) == len(points)
    assert len(session.sql(drawn.sql).fetchall()) == len(points)


def test_colours_are_of_the_most_frequent_values(session: dl.Session) -> None:
    rows = "SELECT i AS n, CASE WHEN i < 60 THEN 'c' || i // 6 ELSE 'c' || i % 4 END AS c FROM range(100) AS r(i)"
    view = session.sql(rows).view()
    drawn = view.chart("histogram", "n", color="c")
    assert [name for name, _ in drawn.series] == [f"c{at}" for at in range(8)]
    assert drawn.notes == ("the 8 most frequent of 10 values of c; 2 others, of 12 rows, are not drawn",)
    counted = f"SELECT count(*) FROM ({rows}) WHERE c NOT IN ('c8', 'c9')"
    assert [(sum(point["rows"] for point in drawn.points.to_pylist()),)] == plain(counted)
    assert plain(f'SELECT sum("rows")::BIGINT FROM ({drawn.sql})') == plain(counted)
    assert view.chart("bar", "n", color="c", aggregate="count").points.num_rows == 40


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (1, ["2025-03-29 22:00:00.000000", "22:00:00.200000", "22:00:00.400000", "22:00:00.600000", "22:00:00.800000", "22:00:01.000000"]),
        (40, ["2025-03-29 22:00:00", *(f"22:00:{second:02d}" for second in range(5, 41, 5))]),
        (3 * 3600, ["2025-03-29 22:00", "22:30", "23:00", "23:30", "2025-03-30", "00:30", "01:00"]),
        (4 * 86400, ["2025-03-30", "12:00", "2025-03-31", "12:00", "2025-04-01", "12:00", "2025-04-02", "12:00"]),
        (8 * 86400, [f"2025-{day}" for day in ("03-30", "03-31", "04-01", "04-02", "04-03", "04-04", "04-05", "04-06")]),
        (100 * 86400, [f"2025-{day}" for day in ("04-07", "04-21", "05-05", "05-19", "06-02", "06-16", "06-30")]),
        (200 * 86400, [f"2025-{month:02d}" for month in range(4, 11)]),
        (5 * 365 * 86400, [str(year) for year in range(2026, 2031)]),
        (300 * 365 * 86400, [str(year) for year in range(2050, 2350, 50)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS"])
def test_ticks_fit_the_span(session: dl.Session, seconds: int, labels: list[str], kind: str) -> None:
    if kind == "TIMESTAMP_NS" and seconds > 10**9:
        pytest.skip("has no such years")
    moments = f"SELECT (TIMESTAMP '2025-03-29 22:00:00' + to_seconds({seconds} * i / 10))::{kind} AS t, i AS n FROM range(11) AS r(i)"
    drawn = session.sql(moments).view().chart("scatter", "t", "n")
    assert [text for _, text in drawn.ticks] == labels
    for place, text in drawn.ticks:
        if len(text) == 10:
            assert plain(f"SELECT epoch('{text}'::{kind})") == [(place,)]


def test_dates_have_ticks_at_whole_days(session: dl.Session) -> None:
    days = "SELECT DATE '2025-01-01' + i::INTEGER AS d FROM range(3) AS r(i)"
    drawn = session.sql(days).view().chart("histogram", "d")
    assert [text for _, text in drawn.ticks] == ["2025-01-01", "2025-01-02", "2025-01-03", "2025-01-04"]
    assert drawn.title == "rows by d, in intervals of 1 day"


def test_days_are_those_of_the_time_zone(session: dl.Session) -> None:
    hours = "SELECT '2025-03-29 00:00:00+01'::TIMESTAMPTZ + to_hours(i) AS t FROM range(95) AS r(i)"
    drawn = session.sql(hours).view().chart("histogram", "t", bins="day")
    assert [(point["label"], point["rows"]) for point in drawn.points.to_pylist()] == [
        ("2025-03-29 00:00:00+01", 24),
        ("2025-03-30 00:00:00+01", 23),
        ("2025-03-31 00:00:00+02", 24),
        ("2025-04-01 00:00:00+02", 24),
    ]


def test_times_beyond_the_calendar_are_drawn(session: dl.Session) -> None:
    far = "SELECT unnest(['0044-03-15 (BC)', '2025-01-01', '12000-01-01', 'infinity', NULL]::DATE[]) AS d"
    view = session.sql(far).view()
    drawn = view.chart("histogram", "d")
    assert sum(point["rows"] for point in drawn.points.to_pylist()) == 3 and drawn.ticks == ()
    with pytest.raises(dl.UsageError, match="years 1 to 9999; filter d first"):
        view.chart("histogram", "d", bins="year")


def test_what_is_left_out_is_said(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    view = session.sql(SALES).view()
    assert view.chart("line").notes == ("sum of price leaves out 112 rows where it is NULL",)
    assert view.chart("scatter").notes == ("112 rows without a finite price not drawn",)
    assert view.chart("bar", "amount", aggregate="count").notes == (
        "the 40 largest of 50 values of amount; 10 others, of 200 rows, are not drawn",
    )
    odd = session.sql(
        "SELECT unnest(['nan', 'inf', '1', NULL]::DOUBLE[]) AS x, unnest(['1', 'nan', '2', '3']::DOUBLE[]) AS y"
    ).view()
    assert odd.chart("histogram", "x").notes == ("3 rows without a finite x not drawn",)
    assert odd.chart("bar", "x", "y", "max").notes == ("1 point without a finite y not drawn",)
    monkeypatch.setattr(view_module, "MAX_ROWS", 60)
    monkeypatch.setattr("ducklake_lab.session.rows.result.MAX_ROWS", 60)
    assert session.sql(SALES).view().chart("histogram", "amount").notes == ("of the first 60 rows only",)
    assert session.sql("SELECT NULL::INTEGER AS n FROM range(3)").view().chart().points.num_rows == 0


def test_what_cannot_be_drawn_says_why(session: dl.Session) -> None:
    view = session.sql(SALES).view()
    for wrong, reason in (
        ({"kind": "pie"}, 'no kind of chart "pie"; there are bar, line, scatter, histogram'),
        ({"aggregate": "median"}, 'no aggregate "median"'),
        ({"kind": "line", "x": "region"}, "A line needs a column of numbers or times, which region is not"),
        ({"y": "region"}, "region is not a column of numbers"),
        ({"bins": "decade"}, 'no intervals of "decade"; there are minute, hour, day, week'),
        (
            {"kind": "bar", "x": "region", "bins": "day"},
            "Intervals of days need a column of times, which region is not",
        ),
        (
            {"kind": "bar", "x": "day", "bins": "day"},
            "day has 100 intervals of 1 day, and a bar shows 40; choose longer ones",
        ),
    ):
        with pytest.raises(dl.UsageError, match=re.escape(reason)):
            view.chart(**wrong)
    with pytest.raises(dl.EntryNotFoundError, match="no column"):
        view.chart(x="nothing")
    with pytest.raises(dl.UsageError, match="A scatter needs two columns of numbers"):
        session.sql("SELECT 1 AS n").view().chart("scatter")


@pytest.mark.slow
@pytest.mark.parametrize("most", [2000, 5])
@pytest.mark.parametrize("names", ["x y", "y x", "bin held", "v w", "w v", "rows until", "up y_until", "label value"])
def test_columns_may_be_called_as_the_sql_calls_its_own(
    session: dl.Session, names: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_module, "MOST_POINTS", most)
    x, y = names.split()
    query = 'SELECT i * 7 % 23 AS "{}", i * i % 101 AS "{}" FROM range(60) AS r(i)'
    for kind in KINDS:
        named = session.sql(query.format(x, y)).view().chart(kind, x, y)
        plainly = session.sql(query.format("p", "q")).view().chart(kind, "p", "q")
        assert named.points == plainly.points and plain(named.sql) == plain(plainly.sql), kind


NUMBERS = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1) | st.integers(-30, 30),
    "DOUBLE": st.floats() | st.integers(-100, 100).map(lambda n: n / 10),
    "DECIMAL(9,2)": st.decimals(-1000, 1000, places=2),
    "DATE": st.dates(date(1900, 1, 1), date(2200, 1, 1)),
    "TIMESTAMP": st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
    | st.datetimes(datetime(2025, 1, 1), datetime(2025, 1, 1, 0, 0, 30)),
}
MOST = {"MOST_POINTS": 5, "LINE_BINS": 7, "BINS": 6, "ACROSS": 4, "UP": 3, "MOST_BARS": 3}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, str]:
    kind = draw(st.sampled_from(list(NUMBERS)))
    rows = draw(st.lists(st.tuples(st.none() | NUMBERS[kind], st.none() | st.integers(-1000, 1000)), max_size=30))
    with duckdb.connect() as connection:
        empty = connection.execute(f"SELECT NULL::{kind} AS x, NULL::BIGINT AS y LIMIT 0").to_arrow_table()
    return pa.table([pa.array(values, field.type) for values, field in zip(list(zip(*rows, strict=True)) or [(), ()], empty.schema, strict=True)], names=["x", "y"]), kind  # fmt: skip


def position(value: Any) -> float | None:
    """Return the position of a value on an axis; None where it cannot be drawn."""
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1)) / timedelta(seconds=1)
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days * 86400)
    return None if value is None or not math.isfinite(value) else float(value)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(tables(), st.sampled_from(KINDS))
def test_no_row_is_lost_or_counted_twice(made: tuple[pa.Table, str], kind: str) -> None:
    table, _ = made
    columns = [ViewColumn(field.name, from_field(field).sql(), from_field(field)) for field in table.schema]
    view = RowsView("Rows", "FROM seen", "seen", columns, lambda: (table, False), "UTC")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in MOST.items():
            patch.setattr(chart_module, name, value)
        drawn: Chart = view.chart(kind, "x", None if kind == "histogram" else "y")
    rows = [(position(x), x, y) for x, y in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    points = drawn.points.to_pylist()
    assert len(points) <= {"bar": 3, "line": 8, "histogram": 7, "scatter": 20}[kind]
    if kind == "bar" and any(point["until"] is not None for point in points):
        inside = [
            [y for _, x, y in rows if x is not None and point["label"] <= str(x) < point["until"]] for point in points
        ]
        assert [len(ys) for ys in inside] == [point["rows"] for point in points]
        assert sum(map(len, inside)) == sum(x is not None for _, x, _ in rows)
        return
    if kind == "bar":
        check_bars(table, drawn)
        return
    shown = [(x, y) for x, _, y in rows if x is not None and (kind != "scatter" or y is not None)]
    assert sum(point["rows"] for point in points) == len(shown)
    for point in points:
        high = point["x_end"]
        inside = [(x, y) for x, y in shown if (x == point["x"] if high is None else point["x"] <= x < high)]
        if kind == "scatter":
            top = point["y_end"]
            inside = [(x, y) for x, y in inside if (y == point["y"] if top is None else point["y"] <= y < top)]
        assert len(inside) == point["rows"] > 0
        values = [y for _, y in inside if y is not None]
        if kind == "line":
            assert point["value"] == (str(sum(values)) if values else None)
        if kind == "histogram":
            assert point["value"] == str(len(inside))
    lost = len(rows) - len(shown)
    assert sum(int(note.split()[0].replace(",", "")) for note in drawn.notes if "without a finite x" in note) <= lost
    assert any("without a finite x" in note for note in drawn.notes) == any(x is None for x, _, _ in rows)


def check_bars(table: pa.Table, drawn: Chart) -> None:
    with duckdb.connect() as connection:
        connection.register("seen", table)
        sums = connection.execute("SELECT x::VARCHAR, sum(y)::VARCHAR, count(*) FROM seen GROUP BY x").fetchall()
    shown = [(point["label"], point["value"], point["rows"]) for point in drawn.points.to_pylist()]
    assert not Counter(shown) - Counter(sums)
    assert len(shown) == min(3, len(sums))
    missing = table.num_rows - sum(rows for _, _, rows in shown)
    if len(sums) > 3:
        assert f"{len(sums) - 3} others, of {missing} row" in drawn.notes[-1] or f"of {missing} row" in " ".join(
            drawn.notes
        )
        left = [int(value) for _, value, _ in (Counter(sums) - Counter(shown)).elements() if value is not None]
        assert (
            all(value is not None and int(value) >= max(left, default=-math.inf) for _, value, _ in shown) or not left
        )
    else:
        assert missing == 0
