"""`ducklake-lab open` in a real Chromium, its numbers beside those of plain SQL on the reference."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest
from playwright.sync_api import Browser, Page, expect

import ducklake_lab as dl
from ducklake_lab.widgets.html import size
from tests.browser.first_paint import first_paint, settle
from tests.browser.hostile import NAME, VALUES
from tests.browser.lab import ROOT, Screenshot, serious
from tests.reference import connect

pytestmark = pytest.mark.sampled(5, "browser")

QUOTED = '"' + NAME.replace('"', '""') + '"'
FLIGHTS = """SELECT i::INTEGER, CASE i * 7919 % 4 WHEN 0 THEN 'UA' WHEN 1 THEN 'AA' WHEN 2 THEN 'DL' END,
    (i * 7919 % 3000) / 10.0 - 5 FROM range(60000) r(i)"""
#: Statements, each with the author and message of its snapshot.
HISTORY = (
    ("setup", "make the tables", "CREATE TABLE flights (id INTEGER, carrier VARCHAR, delay DOUBLE); CREATE SCHEMA archive; CREATE TABLE archive.notes (note VARCHAR)"),
    ("loader", "load the first half", f"INSERT INTO flights {FLIGHTS} WHERE i < 30000"),
    ("loader", "load the other half", f"INSERT INTO flights {FLIGHTS} WHERE i >= 30000"),
    ("ana", "fix carriers", "UPDATE flights SET carrier = 'UA' WHERE id % 997 = 0"),
    ("ana", "drop what was late", "DELETE FROM flights WHERE delay > 290 OR id < 12000"),
    ("ben", "notes in the catalog", "INSERT INTO archive.notes VALUES ('one'), (NULL), ('three')"),
)  # fmt: skip
FIXED = 3  # the place in HISTORY


@dataclass
class Opened:
    """A page of `ducklake-lab open`, and the lake as the reference sees it.

    Attributes:
        snapshots: the snapshot of each part of HISTORY.
        complaints: what the page wrote to its console: errors, and what its policy forbade.
    """

    page: Page
    link: str
    uri: str
    snapshots: list[int]
    reference: duckdb.DuckDBPyConnection
    process: subprocess.Popen[str]
    complaints: list[str] = field(default_factory=list)

    def one(self, sql: str) -> Any:
        """The only value of a query; {meta} stands for the schema of the metadata tables."""
        ((value,),) = self.reference.execute(sql.replace("{meta}", "__ducklake_metadata_lake")).fetchall()
        return value

    def tab(self, name: str) -> None:
        self.page.get_by_role("tablist", name="Views of the lake").get_by_role("tab", name=name).click()
        expect(self.page.get_by_role("tabpanel", name=name).first).to_be_visible()

    def facts(self) -> str:
        """Return the facts beside the lake's name, from SQL."""
        tables = self.reference.execute(
            "SELECT schema_name, table_name FROM __ducklake_metadata_lake.ducklake_table t "
            "JOIN __ducklake_metadata_lake.ducklake_schema USING (schema_id) WHERE t.end_snapshot IS NULL"
        ).fetchall()
        rows = sum(
            self.one('SELECT count(*) FROM "{}"."{}"'.format(*(part.replace('"', '""') for part in one)))
            for one in tables
        )
        stored = self.one("SELECT sum(file_size_bytes) FROM {meta}.ducklake_data_file WHERE end_snapshot IS NULL")
        newest = self.one("SELECT max(snapshot_id) FROM {meta}.ducklake_snapshot")
        return f"snapshot {newest} · 2 schemas · {len(tables)} tables · {rows:,} rows · {size(int(stored))}"


@pytest.fixture(scope="module")
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder = tmp_path_factory.mktemp("opened")
    uri = f"ducklake:sqlite:{folder}/lake.sqlite"
    snapshots = []
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        for author, message, sql in HISTORY:
            with session.transaction(author=author, message=message):
                session.sql(sql)
            snapshots.append(session.current_snapshot().snapshot_id)
        with session.transaction(message=VALUES[1]):
            session.sql(f"CREATE TABLE archive.{QUOTED} ({QUOTED} VARCHAR)")
            for value in VALUES[:2]:
                session.sql(f"INSERT INTO archive.{QUOTED} VALUES (:value)", {"value": value})
    command = [sys.executable, "-m", "ducklake_lab.cli", "open", uri, "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, color_scheme="light")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with connect() as reference:
        reference.execute(f"ATTACH '{uri}' AS lake (READ_ONLY); USE lake")
        opened = Opened(context.new_page(), found[0], uri, snapshots, reference, process)
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.goto(opened.link)
        yield opened
    context.close()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


def cells(page: Page, view: str) -> list[list[str]]:
    rows = page.locator(f"{view} .dlk-g-rows .dlk-g-row")
    return [[" ".join(text.split()) for text in row.locator("[role=gridcell]").all_inner_texts()] for row in rows.all()]


def signed(added: int, removed: int) -> str:
    parts = (f"+{added:,}" if added else "", f"\u2212{removed:,}" if removed else "")
    return " ".join(part for part in parts if part) or "–"


def test_the_heading_and_the_snapshots(opened: Opened, screenshot: Screenshot) -> None:
    page = opened.page
    expect(page.get_by_role("heading", level=1)).to_have_text("lake.sqlite")
    expect(page.locator("#facts")).to_have_text(opened.facts())
    count = opened.one("SELECT count(*) FROM {meta}.ducklake_snapshot")
    expect(page.locator(".dlk-sb [role=status]").first).to_have_text(f"{count} snapshots")
    settle(page)
    listed = {int(row[0]): row for row in cells(page, ".dlk-sb")}
    assert sorted(listed) == list(range(count))
    for number, (author, message, _) in zip(opened.snapshots, HISTORY, strict=True):
        added, removed = (
            sum(
                opened.one(f"SELECT count(*) FROM ducklake_table_{kind}('lake', {table}, {number}, {number})")
                for table in ("'main', 'flights'", "'archive', 'notes'")
            )
            for kind in ("insertions", "deletions")
        )
        assert (*listed[number][3:5], listed[number][-2]) == (author, message, signed(added, removed))
    first_paint(page)
    screenshot(page, "open-snapshots")


def test_it_opens_in_dark(opened: Opened, browser: Browser) -> None:
    page = browser.new_context(viewport={"width": 1280, "height": 1000}, color_scheme="dark").new_page()
    page.goto(opened.link)
    expect(page.locator("#facts")).to_have_text(opened.facts())
    expect(page.locator(".dlk-sb [role=status]").first).to_contain_text("snapshots")
    first_paint(page)
    assert serious(page, "body") == []
    page.context.close()


def test_two_snapshots_are_clicked_to_a_diff(opened: Opened, screenshot: Screenshot) -> None:
    page = opened.page
    before, after = opened.snapshots[FIXED - 1], opened.snapshots[FIXED + 1]
    for number, modifiers in ((before, []), (after, ["Shift"])):
        row = page.locator(".dlk-sb .dlk-g-rows .dlk-g-row", has=page.get_by_text(str(number), exact=True)).first
        row.click(modifiers=modifiers)  # type: ignore[arg-type]
    detail = page.locator(".dlk-sb-detail")
    expect(detail).to_contain_text(f"Snapshot {before} → {after}")
    detail.get_by_role("button", name="Show diff").click()
    result = page.locator(".dlk-sb-result")
    both = f"(FROM flights AT (VERSION => {before})) b FULL JOIN (FROM flights AT (VERSION => {after})) a USING (id)"
    deleted = opened.one(
        f"SELECT count(*) FROM {both} WHERE a.rowid IS NULL".replace("FROM flights", "SELECT rowid, * FROM flights")
    )
    updated = opened.one(
        f"SELECT count(*) FROM {both} WHERE b.carrier IS DISTINCT FROM a.carrier AND b.delay = a.delay"
    )
    same = opened.one(
        f"SELECT count(*) FROM {both} WHERE b.carrier IS NOT DISTINCT FROM a.carrier AND b.delay = a.delay"
    )
    assert min(deleted, updated, same) > 0
    expect(result.locator(".dlk")).to_be_visible()
    text = " ".join(result.inner_text().split())
    assert (
        f"\u2212{deleted:,} deleted +0 inserted →{updated:,} updated {same:,} unchanged {updated:,} cells changed"
        in text
    )
    first_paint(page)
    screenshot(page, "open-diff")


def test_the_schema_leads_to_rows_and_files(opened: Opened, screenshot: Screenshot) -> None:
    page = opened.page
    opened.tab("Schema")
    expect(page.locator(".dlk-sc .dlk-bar")).to_contain_text(opened.facts())
    page.get_by_role("treeitem", name="flights").click()
    expect(page.get_by_role("treeitem", name="delay")).to_be_visible()
    first_paint(page)
    screenshot(page, "open-schema")
    page.get_by_role("button", name="Rows").click()
    rows = opened.one("SELECT count(*) FROM flights")
    expect(page.locator(".dlk-tb-foot [role=status]")).to_have_text(f"{rows:,} rows")
    expect(page.get_by_label("Table", exact=True)).to_have_value("2")
    page.get_by_label("Filter carrier").fill("= UA")
    passing = opened.one("SELECT count(*) FROM flights WHERE carrier = 'UA'")
    expect(page.locator(".dlk-tb-foot [role=status]")).to_have_text(f"{passing:,} of {rows:,} rows")
    settle(page)
    known = {row[0] for row in opened.reference.execute("SELECT id FROM flights WHERE carrier = 'UA'").fetchall()}
    shown = [int(row[0]) for row in cells(page, ".dlk-tb")]
    assert len(shown) >= 10 and set(shown) <= known
    first_paint(page)
    screenshot(page, "open-rows")
    opened.tab("Files")
    count, stored = opened.reference.execute(
        "SELECT count(*), sum(file_size_bytes) FROM __ducklake_metadata_lake.ducklake_data_file f "
        "JOIN __ducklake_metadata_lake.ducklake_table t USING (table_id) "
        "WHERE t.table_name = 'flights' AND t.end_snapshot IS NULL AND f.end_snapshot IS NULL"
    ).fetchall()[0]
    expect(page.locator(".dlk-fb .dlk-bar").first).to_contain_text(f"{count} files · {size(int(stored))}")
    settle(page)
    assert len(cells(page, ".dlk-fb")) == count
    expect(page.get_by_role("button", name="Run it")).to_have_count(0)
    first_paint(page)
    screenshot(page, "open-files")


def test_the_place_is_in_the_address(opened: Opened) -> None:
    page = opened.page
    assert page.url == f"{opened.link}#files/main/flights"
    page.reload()
    expect(page.locator(".dlk-fb .dlk-bar").first).to_contain_text("main.flights")
    page.get_by_label("Table", exact=True).select_option(label="archive.notes")
    expect(page.locator(".dlk-fb .dlk-bar").first).to_contain_text("3 more rows in the catalog")
    page.go_back()
    expect(page.locator(".dlk-fb .dlk-bar").first).to_contain_text("main.flights")
    page.get_by_role("tab", name="Files").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Snapshots")).to_be_focused()
    expect(page.locator(".dlk-sb")).to_be_visible()


def test_nothing_of_a_catalog_becomes_code_and_axe_has_no_serious_finding(opened: Opened) -> None:
    page = opened.page
    for view in ("Rows", "Files"):
        opened.tab(view)
        page.get_by_label("Table", exact=True).select_option(index=0)
        expect(page.get_by_role("tabpanel", name=view).first).to_contain_text("archive.<script>")
        settle(page)
        assert serious(page, "body") == []
    opened.tab("Snapshots")
    page.locator(".dlk-sb .dlk-g-rows .dlk-g-row").first.click()
    page.get_by_role("button", name="What it changed").click()
    expect(page.locator(".dlk-sb-result")).not_to_contain_text("Comparing")
    opened.tab("Schema")
    settle(page)
    assert serious(page, "body") == []
    assert page.evaluate("window.hacked") is None
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hacked = 4'}))"
    )
    assert page.evaluate("window.hacked") is None
    assert [text for text in opened.complaints if "Content Security Policy" not in text] == []
    assert len(opened.complaints) == 1  # the script that this test put there
    opened.complaints.clear()


def test_a_page_of_another_site_gets_nothing(opened: Opened, browser: Browser) -> None:
    other = browser.new_context().new_page()
    other.route("http://evil.example/", lambda route: route.fulfill(body="<p>evil</p>", content_type="text/html"))
    other.goto("http://evil.example/")
    ended = other.evaluate(
        """(address) => new Promise((resolve) => {
            const socket = new WebSocket(address);
            socket.onopen = () => resolve("open");
            socket.onerror = () => resolve("refused");
        })""",
        f"{opened.link.replace('http', 'ws')}socket",
    )
    assert ended == "refused"
    assert other.evaluate("(address) => fetch(address).then(() => 'read', () => 'refused')", opened.link) == "refused"
    other.evaluate(
        "(address) => { document.body.append(Object.assign(document.createElement('iframe'), {src: address})); }",
        opened.link,
    )
    other.wait_for_timeout(500)
    assert all("lake.sqlite" not in frame.content() for frame in other.frames)
    other.context.close()


def test_a_commit_elsewhere_is_announced_and_shown(opened: Opened, screenshot: Screenshot) -> None:
    page, before = opened.page, opened.facts()
    opened.tab("Rows")
    page.get_by_label("Table", exact=True).select_option(label="archive.notes")
    expect(page.locator(".dlk-tb-foot [role=status]")).to_have_text("3 rows")
    with dl.connect(opened.uri, alias="lake", engine="duckdb") as session:
        session.sql("INSERT INTO archive.notes VALUES ('four')")
    page.evaluate("dispatchEvent(new Event('focus'))")
    notice = page.locator("#notice")
    expect(notice).to_contain_text(f"this is {before.partition(' ·')[0]}.")
    expect(page.locator("#facts")).to_have_text(before)
    assert serious(page, "body") == []
    screenshot(page, "open-notice")
    notice.get_by_role("button").click()
    expect(page.locator(".dlk-tb-foot [role=status]")).to_have_text("4 rows")
    expect(page.locator("#facts")).to_have_text(opened.facts())
    expect(notice).to_be_hidden()
    opened.tab("Snapshots")
    expect(page.locator(".dlk-sb .dlk-g-row", has_text="archive.notes").first).to_be_visible()
    assert opened.complaints == []


def test_a_page_whose_server_has_ended_says_so(opened: Opened, screenshot: Screenshot) -> None:
    opened.process.send_signal(signal.SIGINT)
    assert opened.process.wait(timeout=60) == 0
    expect(opened.page.locator("#notice[role=alert]")).to_have_text(
        "The connection to ducklake-lab has ended. Load the page again, or run ducklake-lab open for a new one."
    )
    screenshot(opened.page, "open-ended")
