"""Looking through a table: what is seen is what its SQL gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.session.rows import table_view as view_module
from ducklake_lab.widgets.table_view import TableBrowser


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    tmp_path = tmp_path_factory.mktemp("lake")
    with dl.connect(f"ducklake:sqlite:{tmp_path}/lake.sqlite", alias="my lake", engine="duckdb") as session:
        session.sql('CREATE TABLE t (i INTEGER, "od""d" VARCHAR, x DOUBLE, d DATE, l INTEGER[])')
        numbers = range(100)
        session.write(
            pa.table(
                {
                    "i": pa.array(numbers, pa.int32()),
                    'od"d': [None if n % 3 == 0 else f"it's {n % 5}" for n in numbers],
                    "x": [n / 10 for n in numbers],
                    "d": [date(2026, 1, 1) + timedelta(n % 40) for n in numbers],
                    "l": pa.array([[n] for n in numbers], pa.list_(pa.int32())),
                }
            ),
            "t",
        )
        session.sql("INSERT INTO t VALUES (NULL, '', 'nan', NULL, NULL); DELETE FROM t WHERE i = 7")
        yield session


@pytest.mark.parametrize(
    ("sort", "filters"),
    [
        ((), {}),
        ((("x", True),), {}),
        ((('od"d', False), ("i", True)), {}),
        ((), {"i": "> 90"}),
        ((("d", True), ("i", False)), {'od"d': "IT'S 2", "x": "<= 5.05"}),
        ((), {'od"d': "null", "d": ">= 2026-02-01"}),
        ((), {'od"d': "= "}),
        ((), {"i": "5"}),
        ((), {"l": "= [5]"}),
    ],
)
def test_the_rows_seen_are_those_of_the_sql(
    session: dl.Session, sort: tuple[tuple[str, bool], ...], filters: dict[str, str]
) -> None:
    view = session.table("t").view()
    count = view.look(sort, filters)
    expected = session.sql(view.sql).arrow().to_pylist()
    seen = view.page(0, 1000).to_pylist()
    assert count == len(expected) == len(seen)
    assert repr(seen) == repr(expected) if sort else sorted(map(repr, seen)) == sorted(map(repr, expected))
    assert repr(view.page(2, 3).to_pylist()) == repr(seen[2:5])


def test_what_does_not_fit_is_told_and_changes_nothing(session: dl.Session) -> None:
    view = session.table("t").view()
    view.look((), {"i": "> 90"})
    with pytest.raises(dl.UsageError, match='"soon" is no DATE'):
        view.look((), {"d": "> soon"})
    with pytest.raises(dl.EntryNotFoundError, match="no column"):
        view.look((("nothing", False),))
    assert view.filters == {"i": "> 90"}
    # a filter is a value, whatever it holds
    assert view.look((), {'od"d': "' OR 1 = 1 --"}) == 0


def test_profiles_follow_the_filters(session: dl.Session) -> None:
    view = session.table("t").view()
    profile = view.profile('od"d')
    assert (profile.rows, profile.nulls) == (100, 34)
    assert profile.top[0] == (None, 34)
    numbers = view.profile("i")
    assert (sum(numbers.bins), numbers.low, numbers.high) == (99, "0", "99")
    view.look((), {"i": "< 10"})
    assert view.profile("i").rows == 9
    assert view.profile("l").low is None


@pytest.mark.parametrize("kind", ["INTEGER", "DATE"])
def test_bins_of_values_alike_are_alike(session: dl.Session, kind: str) -> None:
    value = "DATE '2024-01-01' + i::INTEGER" if kind == "DATE" else "i::INTEGER"
    session.sql(f"CREATE OR REPLACE TABLE even AS SELECT {value} AS v FROM range(48) AS r(i), range(10)")
    assert set(session.table("even").view().profile("v").bins) == {30}


def test_a_large_table_is_looked_through_in_part(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.write(session.table("t").arrow(), "more", mode="create")
    session.write(session.table("t").arrow(), "more")
    monkeypatch.setattr(view_module, "MAX_ROWS", 60)
    view = session.table("more").view()
    assert view.partial
    assert "looks through the first" in view._repr_html_()


def test_the_browser_follows_python_and_tells_what_is_wrong(session: dl.Session) -> None:
    browser = TableBrowser(session.table("t").view())
    browser.sort = [["i", True]]
    browser.filters = {"i": "< 50"}
    assert browser.passing == 49
    assert browser.sql.endswith('WHERE "i" < 50\nORDER BY "i" DESC NULLS LAST')
    browser.place = 0
    assert browser.selected is not None
    assert browser.selected["i"] == 49
    _, (page,) = browser.answer_page({"start": 1, "count": 2, "first": 0, "wide": 5})
    assert pa.ipc.open_stream(page).read_all().column("c0").to_pylist() == ["48", "47"]
    browser.filters = {"i": "soon"}
    assert '"soon" is no INTEGER' in browser.problem
    assert browser.passing == 49
    assert set(browser._repr_mimebundle_()[0]) == {"text/plain", "text/html"}


def test_different_values_are_counted_and_not_estimated(session: dl.Session) -> None:
    session.write(pa.table({"id": pa.array(range(300_000), pa.int32())}), "ids", mode="create")
    assert session.table("ids").view().profile("id").distinct == 300_000


def test_long_texts_that_begin_alike_are_different_values(session: dl.Session) -> None:
    session.write(pa.table({"s": ["x" * 150 + "1", "x" * 150 + "2", "y", "y", "y"]}), "texts", mode="create")
    profile = session.table("texts").view().profile("s")
    assert profile.top == (("y", 3), ("x" * 100, 1), ("x" * 100, 1))


def test_every_column_of_a_wide_table_is_reached(session: dl.Session) -> None:
    session.write(pa.table({f"n{at}": pa.array([at], pa.int32()) for at in range(500)}), "wide", mode="create")
    browser = TableBrowser(session.table("wide").view())
    assert len(browser.columns) == 500
    _, (page,) = browser.answer_page({"start": 0, "count": 1, "first": 450, "wide": 100})
    found = pa.ipc.open_stream(page).read_all()
    assert found.column_names == [f"c{at}" for at in range(450, 500)]
    assert found.column("c499").to_pylist() == ["499"]
