"""Hostile names and values in every static view: escaped, readable, small."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.diff_text import text
from ducklake_lab.widgets.file_browser import FileBrowser
from ducklake_lab.widgets.schema import of_catalog
from ducklake_lab.widgets.schema_browser import SchemaBrowser
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from ducklake_lab.widgets.table_view import TableBrowser
from ducklake_lab.widgets.tables import TableListing
from tests.browser import hostile

pytestmark = pytest.mark.sampled(3)

QUOTED = '"' + hostile.NAME.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    session = hostile.build(tmp_path_factory.mktemp("hostile"))
    yield session
    session.close()


def views(session: dl.Session) -> dict[str, str]:
    start = 1
    wide, evil = session.table("wide"), session.table(QUOTED)
    preview = session.preview(f"INSERT INTO {QUOTED} (id, {QUOTED}) VALUES (99, '<script>9</script>')")
    found = {
        "preview": "".join(diff._repr_html_() for diff in preview.diffs),
    }
    preview.rollback()
    return found | {
        "result": session.sql(f"FROM {QUOTED}")._repr_html_(),
        "wide result": session.sql("FROM wide")._repr_html_(),
        "tables": TableListing(tuple(session.tables()))._repr_html_(),
        "schema": SchemaBrowser(of_catalog("lake", *session.catalog()))._repr_html_(),
        "snapshots": SnapshotBrowser(session.snapshots())._repr_html_(),
        "files": FileBrowser(evil.files(), session.health())._repr_html_(),
        "wide files": FileBrowser(wide.files())._repr_html_(),
        "table": TableBrowser(evil.view())._repr_html_(),
        "wide table": TableBrowser(wide.view())._repr_html_(),
        "describe": evil.describe()._repr_html_(),
        "stats": evil.column_stats()._repr_html_(),
        "wide stats": wide.column_stats()._repr_html_(),
        "partitions": evil.partitions()._repr_html_(),
        "diff": evil.diff(start)._repr_html_(),
        "page": evil.diff(start).to_html(),
        "answers": session.compare(
            f"SELECT {QUOTED}, count(*) AS {QUOTED} FROM {QUOTED} GROUP BY ALL", start
        ).to_html(),
        "health": session.health()._repr_html_(),
    }


@pytest.mark.slow
def test_every_view_is_escaped_readable_and_small(session: dl.Session) -> None:
    for name, html in views(session).items():
        assert "<script>" not in html, name
        assert "<img" not in html, name
        assert "\u202e" not in html, name
        assert 'onerror="' not in re.sub(r"&[a-z#0-9]+;", "", html), name
        assert len(html) < 400_000, (name, len(html))


def test_long_texts_are_folded_and_their_length_told(session: dl.Session) -> None:
    html = session.sql(f"FROM {QUOTED}")._repr_html_()
    assert "1,000,000 characters" in html
    assert "⟨U+202E⟩" in html


def test_text_for_terminals_and_machines(session: dl.Session) -> None:
    diff = session.table(QUOTED).diff(1)
    shown = text(diff)
    assert "\u202e" not in shown
    assert "\r" not in shown
    assert diff.summary.inserted == len(hostile.VALUES)
    assert len(diff.to_dict()["rows"]) == len(hostile.VALUES)


def test_plots_hold_no_markup(session: dl.Session) -> None:
    for figure in (
        session.table(QUOTED).diff(1).plot(),
        session.snapshots().plot(),
        session.table("wide").files().plot(),
    ):
        assert "<script>window" not in figure.to_json().replace("\\u003c", "<")


def test_no_text_for_a_grid_hides_or_turns_others(session: dl.Session) -> None:
    browser = TableBrowser(session.table(QUOTED).view())
    _, (points,) = browser.answer_chart({"kind": "bar", "x": hostile.NAME})
    content, _ = browser.answer_chart({"kind": "bar", "x": hostile.NAME})
    labels = pa.ipc.open_stream(points).read_all().column("label").to_pylist()
    shown = [
        content["title"],
        content["x_title"],
        *content["notes"],
        *(label for _, label in content["xs"]),
        *filter(None, labels),
    ]
    shown += [text for _, *texts, _ in browser.columns for text in texts] + [browser.title]
    shown += [
        browser.answer_cell({"row": row, "column": column}).get("shown", "") for row in range(5) for column in range(3)
    ]
    assert [text for text in shown if "\u202e" in text or "\u200b" in text or "\r" in text] == []
    assert any("⟨U+202E⟩evil" in text for text in shown) and len(labels) == len(hostile.VALUES)
