"""Looking through the rows of a result: what is seen is what its SQL gives, whatever their types."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.rows import OnDemand
from ducklake_lab.session.rows import result as result_module
from ducklake_lab.session.rows.result import Result
from ducklake_lab.widgets import grids
from ducklake_lab.widgets.table_view import ResultBrowser

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """A kernel's loop: what it will do when it has answered the cell."""
    later: list[Callable[[], None]] = []
    loop = SimpleNamespace(call_later=lambda _, act: later.append(act))
    monkeypatch.setattr(grids, "_loop", lambda: loop)
    monkeypatch.setattr(grids, "_live", deque())
    return later


QUERY = """
WITH n AS (SELECT i, i % 7 AS k FROM range(200) AS r(i)) -- a comment
SELECT i, k, 'it''s ' || k AS "od""d", CASE WHEN i % 3 > 0 THEN i / 10 END AS x,
    (CASE k WHEN 1 THEN 'low' ELSE 'high' END)::ENUM('low', 'high') AS e, to_days(k::INTEGER) AS v,
    TIMESTAMPTZ '2024-03-31 00:00:00+00' + to_hours(i) AS z, {'a': k, 'b': [i]} AS s, i::HUGEINT * 10**30 AS h
FROM n ORDER BY k DESC, i -- the end
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path_factory.mktemp('lake')}/lake.ducklake", engine="duckdb") as session:
        session.sql("SET TimeZone = 'Europe/Berlin'; CREATE TABLE t AS SELECT i, i % 3 AS k FROM range(50) AS r(i)")
        yield session


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sort", "filters"),
    [
        ((), {}),
        ((("x", True), ("i", False)), {}),
        ((("e", False), ("i", True)), {"e": "= low"}),
        ((("z", True),), {"z": ">= 2024-03-31 04:00:00"}),
        ((("i", False),), {"v": "3 days"}),
        ((("i", False),), {"s": "= {'a': 3, 'b': [3]}"}),
        ((("h", True), ("i", True)), {'od"d': "IT'S 2", "h": "> 100000000000000000000000000000000"}),
        ((("i", False),), {"x": "null"}),
    ],
)
def test_the_rows_seen_are_those_of_the_sql(
    session: dl.Session, sort: tuple[tuple[str, bool], ...], filters: dict[str, str]
) -> None:
    view = session.sql(QUERY).view()
    count = view.look(sort, filters)
    expected = session.sql(view.sql).arrow().to_pylist()
    assert (count == len(expected)) and (0 < count < 200 if filters else count == 200)
    assert repr(view.page(0, 1000).to_pylist()) == repr(expected)
    for column in view.columns:
        profile = view.profile(column.name)
        asked = session.sql(
            f'SELECT count(*), count(*) - count(c), count(DISTINCT c::VARCHAR) FROM (SELECT "{column.name.replace(chr(34), chr(34) * 2)}" '
            f"AS c FROM (\n{view.sql}\n))"
        )
        assert asked.fetchall() == [(profile.rows, profile.nulls, profile.distinct)], column.name


@pytest.mark.parametrize(
    ("search", "count"),
    [
        ("IT'S 2", 29),
        ("low", 29),
        ("'b': [19", 11),
        ("3 days", 29),
        ("+02", 199),
        ("%", 0),
        ("' OR 1 = 1 --", 0),
        ("1999", 0),
        ("  ", 200),
        ("0.7", 2),
    ],
)
def test_search_finds_texts_of_any_column(session: dl.Session, search: str, count: int) -> None:
    view = session.sql(QUERY).view()
    names = ['"' + column.name.replace('"', '""') + '"' for column in view.columns]
    text = "lower(concat_ws(chr(1), " + ", ".join(f"{name}::VARCHAR" for name in names) + "))"
    with duckdb.connect() as plain:
        plain.execute("SET TimeZone = 'Europe/Berlin'")
        rows = plain.execute(
            f"SELECT i FROM ({QUERY}) AS q WHERE contains({text}, lower(?)) ORDER BY i", [search.strip()]
        )
        expected = [i for (i,) in rows.fetchall()]
    assert view.look([("i", False)], search=search) == len(expected) == count
    assert view.page(0, 1000).column("i").to_pylist() == expected
    assert [row[0] for row in session.sql(view.sql).fetchall()] == expected
    assert view.look([("i", True)], {"k": "> 2"}, search) == len([i for i in expected if i % 7 > 2])


@pytest.mark.parametrize("search", ["İstanbul", "istanbul", "STRASSE", "straẞe", "ΣΊΣΥΦΟΣ"])
def test_search_folds_case_as_duckdb_does(session: dl.Session, search: str) -> None:
    words = "SELECT unnest(['İstanbul', 'istanbul', 'Straße', 'STRASSE', 'strasse', 'straße', 'σίσυφος']) AS w"
    view = session.sql(words).view()
    (expected,) = duckdb.execute(
        f"SELECT count(*) FROM ({words}) WHERE contains(lower(w), lower(?))", [search]
    ).fetchone()
    assert view.look(search=search) == expected == len(session.sql(view.sql))


def test_parameters_and_snapshots_are_those_of_the_query(session: dl.Session) -> None:
    view = session.sql("SELECT i, k FROM t AT (VERSION => 1) WHERE k = :k", {"k": 2}).view()
    assert view.look([("i", True)], {"i": "> 40"}) == 3
    assert session.sql(view.sql, {"k": 2}).fetchall() == [(47, 2), (44, 2), (41, 2)]


def test_a_large_result_is_looked_through_in_part(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_module, "MAX_ROWS", 60)
    view = session.sql("SELECT i FROM range(1000) AS r(i) ORDER BY i DESC").view()
    assert (view.total, view.partial, view.whole_rows) == (60, True, None)
    assert "first 20 rows · looks through the first 60 rows only" in view._repr_html_()
    assert "first 60 rows only" in ResultBrowser(session.sql("SELECT i FROM range(1000) AS r(i)")).note


def test_what_is_no_query_or_repeats_names_has_no_grid(session: dl.Session) -> None:
    for text, reason in (
        ("SHOW TABLES", "Only the rows of a query"),
        ("SELECT 1 AS a, 2 AS a", 'has 2 columns "a"; name them apart with AS'),
        ("SELECT 1 AS b, 2 AS a, 3 AS A", 'has 2 columns "a"; name them apart with AS'),
    ):
        assert session.sql(text).text == ("" if text == "SHOW TABLES" else text)
        result = session.sql(text)
        with pytest.raises(dl.UsageError, match=reason):
            result.view()
        result.grid = "open"
        assert session.sql("SELECT i FROM t", at=1).text == ""
        assert result._repr_mimebundle_() is None and "<table" in result._repr_html_()


def test_a_grid_stands_in_the_place_of_the_static_rows(session: dl.Session, kernel: list[Callable[[], None]]) -> None:
    result = session.sql("SELECT '<b>' || i AS s FROM t ORDER BY i")
    bundle, _ = result._repr_mimebundle_()
    made = len(grids._live)
    kernel.pop()()
    browser = grids._live[made]
    assert bundle["text/html"] == f'<div id="{browser.mount}">{result._repr_html_()}</div>'
    browser.filters = {"s": "b>4"}
    assert (browser.passing, browser.problem) == (11, "")
    assert "&lt;b&gt;" in bundle["text/html"] and "<b>4" not in bundle["text/html"]


def test_who_wants_no_grid_has_none(
    session: dl.Session, kernel: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = session.sql("SELECT i FROM t")
    shown.grid = "none"
    data, _ = shown._repr_mimebundle_()
    assert data["text/html"] == shown._repr_html_()
    monkeypatch.setattr(grids, "by_default", False)
    session.sql("SELECT i FROM t")._repr_mimebundle_()
    assert kernel == []
    shown.grid = "open"
    assert shown._repr_mimebundle_() is not None
    assert len(kernel) == 1
    # there is nothing to look through in no rows
    empty, _ = session.sql("SELECT i FROM t WHERE i < 0")._repr_mimebundle_() or ({}, {})
    assert "ducklake-" not in empty.get("text/html", "")
    kernel.pop()()
    assert grids._live[-1].shows == ["filter", "profile", "sql", "download"]


def test_rows_that_cannot_be_computed_have_no_grid(kernel: list[Callable[[], None]]) -> None:
    def fail(_: int | None) -> pa.Table:
        raise dl.SqlError("no such number")

    result = Result(OnDemand(["i"], fail), types=["INTEGER"])
    result.text = "SELECT i FROM t"
    assert result._repr_mimebundle_() is None and kernel == []
    with pytest.raises(dl.SqlError):
        result._repr_html_()


def test_the_oldest_grid_ends_where_there_are_too_many(
    session: dl.Session, kernel: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grids, "MOST", 2)
    for _ in range(3):
        session.sql("SELECT i FROM t")._repr_mimebundle_()
    oldest = None
    while kernel:
        kernel.pop()()
        oldest = oldest or grids._live[0]
    assert len(grids._live) == 2
    assert oldest is not None and oldest not in grids._live and oldest.comm is None
