"""Changed rows by kind, by the column that changed, in an order and by page; in process, in views and in commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.diff.diff import Diff
from ducklake_lab.diff.model import RowChoice
from ducklake_lab.widgets.diff_browser import DiffBrowser, live
from ducklake_lab.widgets.diff_text import text

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(tmp_path: Path, lake_uri: Callable[..., str]) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


@pytest.fixture
def diff(session: dl.Session) -> Diff:
    """20 rows with another v, 21 with another Name, 10 of them with both; 9 deleted and 2 inserted."""
    session.sql(
        "CREATE TABLE t AS SELECT i::INTEGER AS k, (i * 7 % 11)::INTEGER AS v, 'n' || i AS \"Name\" FROM range(100) r(i)"
    )
    start = session.current_snapshot().snapshot_id
    session.sql("ALTER TABLE t ADD COLUMN more DOUBLE; UPDATE t SET v = v + 1 WHERE k < 20")
    session.sql('UPDATE t SET "Name" = upper("Name") WHERE k BETWEEN 10 AND 30; DELETE FROM t WHERE k > 90')
    session.sql("INSERT INTO t VALUES (200, NULL, 'x', 0.5), (201, -1, 'y', 'nan')")
    return session.table("t").diff(start)


def keys(diff: Diff, **choice: object) -> list[object]:
    return [(row.after or row.before or {})["k"] for row in diff.rows(1000, **choice)]  # type: ignore[arg-type]


@pytest.mark.slow
def test_rows_are_chosen_by_kind_and_by_the_column_that_changed(diff: Diff) -> None:
    assert keys(diff, changed="v") == list(range(20))
    assert keys(diff, changed="name") == list(range(10, 31))
    assert keys(diff, kind="updated") == list(range(31))
    assert keys(diff, kind="deleted") == list(range(91, 100))
    assert keys(diff, kind="inserted") == [200, 201]
    assert keys(diff, changed="more") == []
    for choice in (RowChoice("deleted"), RowChoice(changed="v"), RowChoice("updated", "Name"), RowChoice()):
        assert diff.count(choice) == diff.passing(choice) == len(diff.page(1000, 0, choice))


@pytest.mark.slow
def test_rows_are_sorted_by_the_value_they_have_last(diff: Diff) -> None:
    rows = diff.rows(1000, sort=[("v", True), ("k", False)])
    last = [((row.after or row.before or {})["v"], (row.after or row.before or {})["k"]) for row in rows]
    assert last[-1] == (None, 200)
    assert last[:-1] == sorted(last[:-1], key=lambda pair: (-int(str(pair[0])), pair[1]))
    assert keys(diff, sort="k")[-1] == 201


@pytest.mark.slow
def test_pages_are_parts_of_the_whole(diff: Diff) -> None:
    whole = keys(diff, sort=[("Name", False)])
    paged = [key for start in range(0, 50, 7) for key in keys_of(diff.rows(7, offset=start, sort=[("Name", False)]))]
    assert paged == whole and len(whole) == 42
    assert diff.rows(5, offset=42) == []


def keys_of(rows: list[object]) -> list[object]:
    return [(row.after or row.before)["k"] for row in rows]  # type: ignore[attr-defined]


@pytest.mark.slow
def test_what_cannot_be_chosen(diff: Diff) -> None:
    with pytest.raises(dl.EntryNotFoundError, match=r'no column "nam".* Did you mean Name'):
        diff.rows(changed="nam")
    with pytest.raises(dl.EntryNotFoundError, match='no column "w"'):
        diff.rows(sort="w")
    with pytest.raises(dl.UsageError, match='not "gone"'):
        diff.rows(kind="gone")  # type: ignore[arg-type]
    with pytest.raises(dl.UsageError, match="No cell changes in a row that is deleted"):
        diff.rows(kind="deleted", changed="v")
    for wrong in ({"limit": -1}, {"offset": -1}):
        with pytest.raises(dl.UsageError, match="0 or more"):
            diff.rows(**wrong)
    with pytest.raises(dl.UsageError, match="0 or more"):
        diff.showing(limit=-1)


@pytest.mark.slow
def test_static_views_and_texts_show_the_choice(diff: Diff) -> None:
    shown = diff.showing(changed="NAME", sort=[("k", True)], limit=3)
    page = shown._repr_html_()
    assert "first 3 of 21 updated rows in which Name changed · by k descending" in page
    assert re.findall(r"<ins>(N\d+)</ins>", page) == ["N30", "N29", "N28"]
    lines = text(shown).splitlines()
    assert lines[-1] == "… 18 more changed rows" and lines[-2] == "→ 28  Name=n28→N28"
    assert "0 updated rows in which more changed" in diff.showing(changed="more")._repr_html_()
    assert "first 40 of 42" in diff.showing(limit=40)._repr_html_()
    assert diff.choice == RowChoice()


@pytest.mark.slow
def test_a_browser_pages_through_what_is_chosen(diff: Diff) -> None:
    browser = DiffBrowser(diff.showing(changed="name", limit=3))
    assert (browser.kind, browser.changed, browser.passing) == ("", "Name", 21)
    assert browser.kinds == [["deleted", 9], ["inserted", 2], ["updated", 31]]
    assert browser.cells == [["Name", 21], ["v", 20]]
    browser.sort = [["k", True]]
    _, (stream,) = browser.answer_page({"start": 1, "count": 2})
    rows = pa.ipc.open_stream(stream).read_all().to_pylist()
    place = [name for name, *_ in browser.columns].index("Name")
    assert [(row["id"], row[f"b{place}"], row[f"a{place}"], row[f"d{place}"]) for row in rows] == [
        ("29", "n29", "N29", True),
        ("28", "n28", "N28", True),
    ]
    with browser.hold_trait_notifications():
        browser.kind, browser.changed = "deleted", ""
    assert browser.passing == 9 and browser.problem == ""
    browser.changed = "v"  # of no row that is deleted
    assert "No cell changes" in browser.problem and browser.passing == 9
    assert browser.still().count("<ins>") == 6  # Name and v, in three rows


@pytest.mark.slow
def test_what_a_notebook_gets(diff: Diff, session: dl.Session) -> None:
    found, _ = live(diff)
    assert found["text/plain"] == repr(diff)
    mounted = r'<div id="ducklake-[0-9a-f]{12}"><style>'
    assert re.match(mounted, found["text/html"])
    empty = session.table("t").diff(session.current_snapshot().snapshot_id)
    found, _ = live(empty)
    assert found["text/plain"] == repr(empty)
    assert not re.match(mounted, found["text/html"])
