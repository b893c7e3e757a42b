"""Every view of a real lake as it is when it opens, at several widths, its numbers beside those of plain SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from playwright.sync_api import Page, expect

import ducklake_lab as dl
from ducklake_lab.widgets.html import size
from tests.browser.first_paint import first_paint
from tests.browser.lab import Lab, Screenshot, Theme, close, run_all, serious
from tests.reference import connect

pytestmark = pytest.mark.sampled(5, "browser")

#: Statements with the author and the message of their snapshots.
HISTORY = (
    (
        "setup",
        "make the tables",
        """CREATE TABLE flights (id INTEGER NOT NULL, month INTEGER, carrier VARCHAR, delay DOUBLE, place STRUCT(lat DOUBLE, tags VARCHAR[]));
        ALTER TABLE flights SET PARTITIONED BY (month);
        CREATE TABLE notes (id INTEGER, "a note" VARCHAR DEFAULT 'none');
        INSERT INTO notes VALUES (1, 'kept in the catalog'), (2, NULL), (3, 'as well');
        CREATE SCHEMA archive; CREATE TABLE archive.empty (x DATE);
        CREATE VIEW late AS SELECT * FROM lake.main.flights WHERE delay > 100;
        CREATE MACRO twice(n) AS 2 * n""",
    ),
    ("loader", "load January", "INSERT INTO flights {flights} WHERE i < 40000"),
    ("loader", "load February and March, from the second source, which is late", "INSERT INTO flights {flights} WHERE i >= 40000"),
    ("ana", "fix carriers", "UPDATE flights SET carrier = 'UA' WHERE id % 997 = 0"),
    ("ana", None, "DELETE FROM flights WHERE delay > 290 OR (month = 3 AND id % 2 = 0)"),
    ("ben", "forget nearly all of January", "DELETE FROM flights WHERE month = 1 AND id > 40"),
    ("ben", "one more", "INSERT INTO flights VALUES (100001, 4, 'B6', NULL, NULL)"),
)  # fmt: skip
FLIGHTS = """SELECT i::INTEGER, (i // 40000 + 1)::INTEGER, CASE i * 7919 % 4 WHEN 0 THEN 'UA' WHEN 1 THEN 'AA' WHEN 2 THEN 'DL' END,
    (i * 7919 % 3000) / 10.0 - 5, {'lat': i / 1000.0, 'tags': ['a', NULL]} FROM range(100000) r(i)"""
FIXED, DROPPED = 3, 4  # places in HISTORY
CHANGE = "UPDATE flights SET delay = 0 WHERE delay < 0 AND month = 2"
QUERY = "SELECT carrier, count(*) AS flights, avg(delay) AS late FROM flights GROUP BY ALL ORDER BY ALL"
CELLS = (
    "%load_ext ducklake_lab\n%config DuckLakeMagics.engine = 'duckdb'\n%ducklake connect ducklake:sqlite:first/lake.sqlite",
    "%ducklake schema",
    "%ducklake snapshots",
    "%ducklake files flights",
    "%ducklake files notes",
    "%ducklake preview flights",
    "%ducklake diff flights {before} {after}",
    f"%%ducklake\n{QUERY}",
    "%ducklake maintain",
    "%ducklake describe flights",
    "%ducklake tables",
    "import ducklake_lab as dl\nsession = dl.connect('ducklake:sqlite:first/lake.sqlite', engine='duckdb')\n"
    "session.table('flights').diff({before}, {after}).plot()",
    f"%%ducklake --preview\n{CHANGE}",
)


@dataclass(frozen=True)
class Lake:
    """A lake in a folder of notebooks, as the reference sees it.

    Attributes:
        newest: its newest snapshot.
        snapshots: the last snapshot of each part of HISTORY.
    """

    newest: int
    snapshots: Sequence[int]
    reference: duckdb.DuckDBPyConnection

    def one(self, sql: str) -> Any:
        """The only value of a query."""
        ((value,),) = self.reference.execute(sql).fetchall()
        return value

    def all(self, sql: str) -> list[tuple[Any, ...]]:
        return self.reference.execute(sql).fetchall()


@pytest.fixture(scope="module")
def lake(_lab: Lab) -> Iterator[Lake]:
    folder = _lab.files / "first"
    folder.mkdir()
    uri = f"ducklake:sqlite:{folder}/lake.sqlite"
    last = []
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        for author, message, sql in HISTORY:
            with session.transaction(author=author, message=message):
                session.sql(sql.format(flights=FLIGHTS) if "{flights}" in sql else sql)
            last.append(session.current_snapshot().snapshot_id)
    with connect() as reference:
        reference.execute(f"ATTACH '{uri}' AS lake (READ_ONLY); USE lake")
        yield Lake(last[-1], last, reference)


@pytest.fixture(scope="module")
def notebook(lake: Lake, _lab: Lab) -> Iterator[Page]:
    page = run(_lab, lake, "light")
    yield page
    close(page)


def run(lab: Lab, lake: Lake, theme: Theme) -> Page:
    """The notebook, run, in a window that has had its theme since it was opened."""
    before, after = lake.snapshots[FIXED - 1], lake.snapshots[FIXED]
    lab.write("first.ipynb", [cell.format(before=before, after=after) if "{" in cell else cell for cell in CELLS])
    page = lab.open("first.ipynb", theme=theme, fresh=True)
    page.set_viewport_size({"width": 1320, "height": 4000})
    run_all(page)
    expect(page.locator(".dlk-live:not(.dlk-tb-unseen, .dlk-lf)")).to_have_count(7)
    expect(page.locator(".dlk-pv")).to_have_count(1)
    return page


def shown(page: Page, cell: int) -> str:
    """The text of a cell's output, that of what is hidden left out, in one line."""
    return " ".join(page.locator(".jp-CodeCell").nth(cell).locator(".jp-OutputArea-output").inner_text().split())


def listed(page: Page, cell: int) -> list[list[str]]:
    """The rows of a cell's grid."""
    rows = page.locator(".jp-CodeCell").nth(cell).locator(".dlk-g-rows .dlk-g-row")
    return [[" ".join(text.split()) for text in row.locator("[role=gridcell]").all_inner_texts()] for row in rows.all()]


def signed(added: int, removed: int) -> str:
    return (
        " ".join(text for text in (f"+{added:,}" if added else "", f"\u2212{removed:,}" if removed else "") if text)
        or "–"
    )


def assert_all_of_it_is_drawn(page: Page) -> None:
    expect(page.locator(".js-plotly-plot .legend")).to_have_count(1)
    first_paint(page)
    assert serious(page, ".dlk-live", ".dlk-pv", ".dlk") == []


def test_all_of_it_is_drawn_in_dark(lab: Lab, lake: Lake):
    page = run(lab, lake, "dark")
    assert_all_of_it_is_drawn(page)
    close(page)


def test_all_of_it_is_drawn(lab: Lab, notebook: Page, screenshot: Screenshot):
    assert_all_of_it_is_drawn(notebook)
    screenshot(notebook, "first")


def test_schema(lab: Lab, notebook: Page, lake: Lake):
    tables = {"main.flights": 5, "main.notes": 2, "archive.empty": 1}
    rows = {name: lake.one(f"SELECT count(*) FROM {name}") for name in tables}
    sizes = {
        f"{schema}.{name}": total or 0
        for schema, name, total in lake.all(
            "SELECT s.schema_name, t.table_name, sum(f.file_size_bytes) FROM __ducklake_metadata_lake.ducklake_table t "
            "JOIN __ducklake_metadata_lake.ducklake_schema s USING (schema_id) "
            "LEFT JOIN __ducklake_metadata_lake.ducklake_data_file f ON f.table_id = t.table_id AND f.end_snapshot IS NULL "
            "WHERE t.end_snapshot IS NULL GROUP BY ALL"
        )
    }
    text = shown(notebook, 1)
    assert (
        f"snapshot {lake.newest} · 2 schemas · 3 tables · {sum(rows.values()):,} rows · {size(sum(sizes.values()))}"
        in text
    )
    assert "archive ▸empty" in text.replace("1 entry ", "") or "archive 1 entry" in text
    for name, columns in tables.items():
        facts = f"{rows[name]:,} rows · {size(int(sizes[name]))} · {columns} column{'s' * (columns > 1)}"
        assert f"{name.partition('.')[2]} {facts}" in text
    listing = shown(notebook, 10)
    for name, columns in tables.items():
        assert f"{name.replace('.', ' ')} {rows[name]:,} {columns} {size(int(sizes[name]))}" in listing


def test_snapshots(lab: Lab, notebook: Page, lake: Lake):
    assert f"{lake.newest + 1} snapshots" in shown(notebook, 2)
    rows = {int(row[0]): row for row in listed(notebook, 2)}
    assert sorted(rows) == list(range(lake.newest + 1))
    for place, (author, message, _) in enumerate(HISTORY):
        number = lake.snapshots[place]
        row = rows[number]
        assert row[3] == author
        assert message is None or row[4] == message
        added, removed = (
            lake.one(f"SELECT count(*) FROM lake.table_{kind}('flights', {number}, {number})")
            + lake.one(f"SELECT count(*) FROM lake.table_{kind}('notes', {number}, {number})")
            for kind in ("insertions", "deletions")
        )
        assert row[-2] == signed(added, removed)


def deletions(lake: Lake) -> list[tuple[int, int]]:
    """Rows of each file of the flights, and how many of them are deleted."""
    return lake.all(
        "SELECT record_count, record_count - coalesce(live, 0) FROM __ducklake_metadata_lake.ducklake_data_file f "
        "JOIN __ducklake_metadata_lake.ducklake_table t ON t.table_id = f.table_id AND t.table_name = 'flights' "
        "LEFT JOIN (SELECT filename, count(*) AS live FROM flights GROUP BY 1) l ON ends_with(l.filename, f.path) "
        "WHERE f.end_snapshot IS NULL"
    )


def test_files(lab: Lab, notebook: Page, lake: Lake):
    files, rows, total = lake.all(
        "SELECT count(*), sum(record_count), sum(file_size_bytes) FROM __ducklake_metadata_lake.ducklake_data_file f "
        "JOIN __ducklake_metadata_lake.ducklake_table t USING (table_id) WHERE t.table_name = 'flights' AND f.end_snapshot IS NULL"
    )[0]
    inlined = 1  # the last row of the history
    deleted = rows + inlined - lake.one("SELECT count(*) FROM flights")
    text = shown(notebook, 3)
    assert f"snapshot {lake.newest} · {files:,} files · {size(int(total))} · {rows:,} rows" in text
    assert f"{inlined} more row in the catalog · {deleted:,} deleted" in text
    expected = []
    for rows, gone in deletions(lake):
        share = gone / rows
        percent = "<1%" if 0 < share < 0.01 else ">99%" if 0.99 < share < 1 else f"{share:.0%}"
        expected.append((f"{rows:,}", f"{gone:,} ({percent})" if gone else "–"))
    assert sorted(expected) == sorted((row[-3], row[-2]) for row in listed(notebook, 3))
    assert any(">99%" in deleted for _, deleted in expected)
    none = shown(notebook, 4)
    assert "0 files · 0 B · 0 rows · 3 more rows in the catalog" in none
    assert "TB" not in none


def test_rows_and_profiles(lab: Lab, notebook: Page, lake: Lake):
    rows, *facts = lake.all(
        "SELECT count(*), count(DISTINCT id), count(*) - count(id), count(DISTINCT carrier), count(*) - count(carrier), "
        "count(DISTINCT delay), count(*) - count(delay) FROM flights"
    )[0]
    view = notebook.locator(".dlk-tb").first
    expect(view.get_by_role("status")).to_have_text(f"{rows:,} rows")
    heads = view.get_by_role("columnheader")
    for at, (distinct, nulls) in zip((0, 2, 3), zip(facts[::2], facts[1::2], strict=True), strict=True):
        share = (
            "no nulls"
            if not nulls
            else "<1% null"
            if nulls / rows < 0.01
            else f"{'≈' * bool(100 * nulls % rows)}{100 * nulls / rows:.0f}% null"
        )
        expect(heads.nth(at)).to_contain_text(f"{distinct:,} distinct{share}")
    first = [row[0] for row in listed(notebook, 5)[:10]]
    assert len(set(first)) == 10
    assert lake.one(f"SELECT count(*) FROM flights WHERE id IN ({', '.join(first)})") == 10


def test_diff_and_preview(lab: Lab, notebook: Page, lake: Lake):
    before, after = lake.snapshots[FIXED - 1], lake.snapshots[FIXED]
    updated, same, was_null = lake.all(
        "SELECT count(*) FILTER (b.carrier IS DISTINCT FROM a.carrier), count(*) FILTER (b.carrier IS NOT DISTINCT FROM a.carrier), "
        "count(*) FILTER (b.carrier IS NULL AND a.carrier IS NOT NULL) "
        f"FROM (FROM flights AT (VERSION => {before})) b JOIN (FROM flights AT (VERSION => {after})) a USING (id)"
    )[0]
    text = shown(notebook, 6)
    assert f"snapshot {before} → {after}" in text
    assert f"\u22120 deleted +0 inserted →{updated:,} updated {same:,} unchanged {updated:,} cells changed" in text
    others = lake.one(f"SELECT count(*) FROM flights AT (VERSION => {before}) WHERE carrier IS NULL") - was_null
    if was_null / updated > 0.5 and others / same < 0.8 * was_null / updated:
        assert (
            f"{was_null / updated:.0%} of updated rows have carrier IS NULL, {others / same:.0%} of unchanged rows"
            in text
        )
    changed = lake.one("SELECT count(*) FROM flights WHERE delay < 0 AND month = 2")
    rest = lake.one("SELECT count(*) FROM flights") - changed
    preview = shown(notebook, 12)
    assert "Not committed: nothing is in the lake yet." in preview
    assert f"→{changed:,} updated {rest:,} unchanged" in preview
    assert '100% of updated rows have "month" = 2' in preview


def test_result_and_describe(lab: Lab, notebook: Page, lake: Lake):
    text = shown(notebook, 7)
    rows = lake.all(QUERY)
    for carrier, flights, late in rows:
        found = re.search(rf"\b{carrier or 'NULL'} {flights} (NULL|[\d.]+)", text)
        assert found is not None, text
        # the last digit of an average depends on the order of its rows
        assert found[1] == "NULL" if late is None else float(found[1]) == pytest.approx(late, rel=1e-14)
    assert f"{len(rows)} rows" in text
    described = shown(notebook, 9)
    assert f"5 columns · {lake.one('SELECT count(*) FROM flights'):,} rows" in described


def test_health(lab: Lab, notebook: Page, lake: Lake):
    files = deletions(lake)
    worn = sum(gone >= 0.2 * rows for rows, gone in files)
    assert f"{worn} of {len(files)} files have at least 20% of their rows deleted" in shown(notebook, 8)
