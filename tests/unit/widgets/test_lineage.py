"""Picture of lineage in the schema browser: its edges are those of `session.lineage`, and names stay text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bs4 import BeautifulSoup

import ducklake_lab as dl
from ducklake_lab.widgets import browsers, lineage
from ducklake_lab.widgets.schema_browser import SchemaBrowser

HOSTILE = '"</svg><img src=x onerror=alert(1)>"'


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    folder = tmp_path_factory.mktemp("lineage")
    with dl.connect(f"ducklake:{folder}/lake.ducklake", data_path=f"{folder}/data", engine="duckdb") as made:
        made._transactions.notes.context = dict  # commits note their statements, as in a notebook
        made.sql("CREATE TABLE orders (id INTEGER, customer INTEGER, amount DECIMAL(10, 2))")
        made.sql("CREATE VIEW big AS SELECT customer, amount * 2 AS twice FROM orders WHERE id > 0")
        made.sql("CREATE TABLE daily AS SELECT customer, sum(twice) AS total, count(*) AS n FROM big GROUP BY ALL")
        made.sql("UPDATE daily SET total = total + n; INSERT INTO orders SELECT n, customer, total FROM daily")
        made.sql("CREATE VIEW counted AS SELECT count(*) AS n FROM orders; CREATE MACRO twice(x) AS x * 2")
        made.sql(f"CREATE SCHEMA s; CREATE VIEW s.{HOSTILE} AS SELECT amount AS {HOSTILE} FROM main.orders")
        yield made


def _browser(session: dl.Session) -> tuple[SchemaBrowser, dict[str, int]]:
    browser = browsers.schema(session)
    nodes: Any = browser.nodes
    return browser, {name: index for _, entries, _, _ in nodes for index, name, *_ in entries}


def _picture(html: str) -> tuple[set[tuple[object, ...]], set[str]]:
    """Returns the edges of a picture by the names of their columns, None for a whole entry, and the names of its columns."""
    soup = BeautifulSoup(html, "html.parser")
    names = {group["data-column"]: group["data-name"] for group in soup.select("g[data-column]")}
    edges = {
        (names.get(path["data-from"]), names.get(path["data-to"]), path["data-kind"])
        for path in soup.select("path[data-from]")
    }
    return edges, {str(name) for name in names.values()}


def _named(row: dict[str, Any]) -> tuple[object, ...]:
    ends = [f"{row[end]}.{row[f'{end}_column']}" if row[f"{end}_column"] else None for end in ("source", "target")]
    return *ends, row["kind"]


@pytest.mark.parametrize("name", ["orders", "daily", "big", "counted"])
def test_the_edges_are_those_of_the_session(session: dl.Session, name: str):
    browser, places = _browser(session)
    browser.answer_lineage({"index": places[name]})
    edges, columns = _picture(browser.picture)
    rows = session.lineage(name).arrow().to_pylist()
    assert rows and edges == {_named(row) for row in rows}
    if name == "orders":
        assert {"main.orders.id", "main.orders.customer", "main.orders.amount"} <= columns
    assert browser.selected == ["main", name]
    assert browser.picture in browser.still()
    assert f"{len(rows)} dependenc" in browser.picture


def test_names_stay_text_and_macros_have_none(session: dl.Session):
    browser, places = _browser(session)
    browser.answer_lineage({"index": places["orders"]})
    soup = BeautifulSoup(browser.picture, "html.parser")
    assert soup.find("img") is None and "onerror" in soup.get_text()
    with pytest.raises(dl.UsageError, match="twice has no lineage"):
        browser.answer_lineage({"index": places["twice"]})


def test_a_table_that_nothing_depends_on(session: dl.Session):
    session.sql("CREATE TABLE alone (i INTEGER)")
    browser, places = _browser(session)
    browser.answer_lineage({"index": places["alone"]})
    assert "No view, live table or noted statement" in browser.picture


def test_what_is_too_much_to_draw_is_counted():
    def row(number: int) -> dict[str, object]:
        ends = {"source": "main.t", "source_column": f"c{number}", "target": f"main.v{number}", "target_column": "c"}
        return {"direction": "downstream", "depth": 1, **ends, "kind": "value", "via": "CREATE VIEW", "snapshot": None}

    html = lineage.drawn("main.t", [f"c{number}" for number in range(100)], [row(number) for number in range(100)])
    edges, columns = _picture(html)
    assert len(edges) == 59 and "41 more dependencies: too many to draw." in html
    assert "60 more columns" in html and "100 dependencies as a table" in html
    assert len([name for name in columns if name.startswith("main.t.")]) == 40
