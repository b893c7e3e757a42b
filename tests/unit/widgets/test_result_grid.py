"""A result's grid knows the rows that its table shows; the others are computed when they are needed, and not before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from ducklake_lab.engine.rows import OnDemand
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.session.rows import result as result_module
from ducklake_lab.session.rows.result import Result
from ducklake_lab.widgets.table_view import ResultBrowser

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    """A session whose queries over tables wait until their rows are asked for."""
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", limits=Limits(eager=0)) as session:
        session.sql("CREATE TABLE t AS SELECT i, i % 7 AS k FROM range(1000) AS r(i)")
        yield session
        assert not session.spark_started


def shown(result: Result) -> ResultBrowser:
    """The grid of a result whose table is in the notebook."""
    result._repr_html_()
    return ResultBrowser(result, shows=())


def rows_of(browser: ResultBrowser, start: int, count: int) -> list[tuple[str | None, ...]]:
    _, (page,) = browser.answer_page({"start": start, "count": count, "first": 0, "wide": len(browser.columns)})
    columns = pa.ipc.open_stream(page).read_all().columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


NEEDS: dict[str, Callable[[ResultBrowser], object]] = {
    "all": lambda browser: browser.answer_all({}),
    "sort": lambda browser: setattr(browser, "sort", [["i", True]]),
    "filter": lambda browser: setattr(browser, "filters", {"k": "3"}),
    "search": lambda browser: setattr(browser, "search", "99"),
    "profile": lambda browser: browser.answer_profile({"column": "k"}),
    "chart": lambda browser: browser.answer_chart({"kind": "bar", "x": "k"}),
    "download": lambda browser: browser.answer_download({"kind": "csv"}),
    "scroll": lambda browser: rows_of(browser, 0, 200),
}


@pytest.mark.parametrize("need", NEEDS)
def test_the_rest_is_computed_once_when_it_is_needed(session: dl.Session, runs: list[str], need: str) -> None:
    browser = shown(session.sql("SELECT i, k FROM t ORDER BY i"))
    assert len(runs) == 1 and runs[0].endswith("LIMIT 51")
    assert (browser.whole, browser.passing, browser.total, browser.note) == (False, 50, 50, "")
    assert rows_of(browser, 0, 50) == [(str(i), str(i % 7)) for i in range(50)]
    assert browser.answer_cell({"row": 49, "column": 0})["text"] == "49"
    assert browser.answer_row({"row": 1})["text"].endswith("1\t1")
    assert len(runs) == 1
    NEEDS[need](browser)
    assert len(runs) == 2
    browser.answer_all({})
    browser.sort = [["i", False]]
    assert (browser.whole, browser.total, len(runs)) == (True, 1000, 2)
    assert browser.passing == (143 if need == "filter" else 19 if need == "search" else 1000)


def test_what_is_here_is_not_computed_again(session: dl.Session, runs: list[str]) -> None:
    browser = shown(session.sql("SELECT i, k FROM t WHERE i >= 950 ORDER BY i"))
    assert (browser.whole, browser.passing) == (True, 50)
    for need in NEEDS.values():
        need(browser)
    assert len(runs) == 1


def test_no_figure_is_that_of_the_first_rows(session: dl.Session) -> None:
    browser = shown(session.sql("SELECT i, k FROM t ORDER BY i"))
    profile = browser.answer_profile({"column": "i"})["profile"]
    assert (profile["rows"], profile["distinct"], profile["low"], profile["high"]) == (1000, 1000, "0", "999")
    _, (points,) = shown(session.sql("SELECT i, k FROM t")).answer_chart(
        {"kind": "bar", "x": "k", "aggregate": "count"}
    )
    assert sum(pa.ipc.open_stream(points).read_all().column("y").to_pylist()) == 1000
    name, (content,) = shown(session.sql("SELECT i FROM t ORDER BY i")).answer_download({"kind": "csv"})
    assert name["name"] == "Result.csv" and content.decode().split() == ["i", *map(str, range(1000))]


def test_where_not_all_are_held_it_is_said(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_module, "MAX_ROWS", 300)
    browser = shown(session.sql("SELECT i FROM t ORDER BY i"))
    assert (browser.whole, browser.note) == (False, "")
    browser.sort = [["i", True]]
    assert (browser.passing, browser.total) == (300, 300)
    assert browser.note == "looks through the first 300 rows only"
    assert rows_of(browser, 0, 1) == [("299",)]


def test_the_rest_is_that_of_the_snapshot_of_the_first_rows(session: dl.Session) -> None:
    browser = shown(session.sql("SELECT i, k FROM t ORDER BY i DESC"))
    session.sql("DELETE FROM t WHERE i < 990; INSERT INTO t SELECT -i, 0 FROM range(5) AS r(i); ALTER TABLE t DROP k")
    session.sql("SET TimeZone = 'Asia/Kathmandu'")
    browser.answer_all({})
    assert rows_of(browser, 0, 2000) == [(str(i), str(i % 7)) for i in reversed(range(1000))]
    assert "snapshot 1" in browser.facts


def test_the_rest_is_that_of_the_open_transaction(session: dl.Session) -> None:
    session.sql("BEGIN; DELETE FROM t WHERE i >= 500; INSERT INTO t SELECT 5000 + i, 0 FROM range(500) AS r(i)")
    kept, dropped = (shown(session.sql("SELECT i FROM t ORDER BY i")) for _ in range(2))
    session.sql("INSERT INTO t SELECT 6000 + i, 0 FROM range(500) AS r(i)")
    kept.answer_all({})
    assert rows_of(kept, 0, 2000) == [(str(i),) for i in (*range(500), *range(5000, 5500))]
    session.sql("ROLLBACK")
    with pytest.raises(DuckLakeError, match="was rolled back; run the query again"):
        dropped.answer_all({})
    assert (dropped.whole, dropped.passing) == (False, 50)


def test_a_rest_that_cannot_be_computed_leaves_the_first_rows(session: dl.Session, tmp_path: Path) -> None:
    browser = shown(session.sql("SELECT i FROM t ORDER BY i"))
    for file in (tmp_path / "data").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(DuckLakeError):
        browser.answer_all({})
    browser.sort = [["i", True]]
    assert browser.problem and (browser.whole, browser.passing) == (False, 50)
    assert rows_of(browser, 0, 50) == [(str(i),) for i in range(50)]


@pytest.mark.slow
@given(
    rows=st.lists(st.tuples(st.one_of(st.none(), st.integers(-3, 3)), st.text("ab%'", max_size=2)), max_size=40),
    limit=st.integers(1, 10),
    most=st.integers(1, 30),
    steps=st.lists(st.sampled_from(["profile", "filter", "search", "sort", "all", "page"]), max_size=4),
)
def test_each_number_is_that_of_plain_sql(
    rows: list[tuple[int | None, str]], limit: int, most: int, steps: list[str]
) -> None:
    table = pa.table(
        {"x": pa.array([x for x, _ in rows], pa.int32()), "s": pa.array([s for _, s in rows], pa.string())}
    )
    result = Result(OnDemand(["x", "s"], lambda first: table.slice(0, first)), types=["INTEGER", "VARCHAR"])
    result.text, result.limit = "FROM t", limit
    before, result_module.MAX_ROWS = result_module.MAX_ROWS, most
    try:
        browser = shown(result)
        held = table.slice(0, most)  # noqa: F841 - DuckDB finds it by its name
        is_first = len(rows) > limit
        assert browser.whole == (not is_first or not rows)
        for step in steps:
            if step == "profile":
                found = browser.answer_profile({"column": "x"})["profile"]
                where = browser.data.sql.partition("\nWHERE ")[2].partition("\nORDER")[0] or "true"
                (expected,) = duckdb.sql(
                    f"SELECT count(*), count(*) - count(x), count(DISTINCT x) FROM held WHERE {where}"
                ).fetchall()
                assert (found["rows"], found["nulls"], found["distinct"]) == expected
            elif step == "page":
                rows_of(browser, 0, min(browser.passing, limit))
            elif step == "all":
                browser.answer_all({})
            else:
                value: Any = {"filter": {"x": "> 0"}, "search": "a", "sort": [["x", True]]}[step]
                setattr(browser, "filters" if step == "filter" else step, value)
            if browser.whole:
                where = browser.data.sql.partition("\nWHERE ")[2].partition("\nORDER")[0] or "true"
                ((passing,),) = duckdb.sql(f"SELECT count(*) FROM held WHERE {where}").fetchall()
                assert (browser.passing, browser.total) == (passing, min(len(rows), most))
                assert bool(browser.note) == (len(rows) > most)
            else:
                assert is_first and browser.passing == min(limit, most)
    finally:
        result_module.MAX_ROWS = before
        browser.close()
