"""A change that is not committed: what its view says before and after its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.preview import PreviewView

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as opened:
        opened.sql("CREATE TABLE t AS SELECT 1 AS n")
        yield opened


def previewed(session: dl.Session) -> PreviewView:
    return PreviewView(session.preview("UPDATE t SET n = 2", message="two"))


def ended(view: PreviewView) -> str:
    """The states that the diff names, without markup."""
    found = re.search(r"snapshot \d+ → <span[^>]*>[^<]+</span>", view.still())
    return re.sub(r"<[^>]+>", "", found[0]) if found else ""


def test_the_box_begins_with_the_message_of_the_cell(session: dl.Session) -> None:
    view = previewed(session)
    assert view.message == "two" and "not committed yet" in view.still()
    view.answer_commit({"message": view.message})
    assert session.snapshots()[-1].info.commit_message == "two"


@pytest.mark.parametrize(("typed", "kept"), [("three", "three"), ("", None), (" ", None)])
def test_what_is_typed_into_the_box_is_the_message(session: dl.Session, typed: str, kept: str | None) -> None:
    previewed(session).answer_commit({"message": typed})
    assert session.snapshots()[-1].info.commit_message == kept


def test_the_diffs_say_what_became_of_the_change(session: dl.Session) -> None:
    view = previewed(session)
    view.commit()
    assert view.snapshot == 2 and ended(view) == "snapshot 1 → 2" and "not committed" not in view.still().casefold()
    assert "<b>Committed</b> as snapshot 2<" in view.still()
    view = previewed(session)
    view.rollback()
    assert ended(view) == "snapshot 2 → rolled back" and "not committed" not in view.still().casefold()
    assert "<b>Rolled back</b>: the lake is as it was<" in view.still()


def test_a_commit_in_another_cell_ends_it(session: dl.Session) -> None:
    view = previewed(session)
    session.sql("COMMIT")
    assert ended(view) == "snapshot 1 → 2" and "<b>Committed</b> as snapshot 2<" in view.still()
    view.follow()
    assert (view.state, view.snapshot) == ("committed", 2)


@pytest.mark.parametrize("end", ["commit", "rollback", "COMMIT", "ROLLBACK"])
def test_the_output_in_the_notebook_follows(session: dl.Session, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    published: list[tuple[str, dict[str, Any]]] = []

    def display(data: dict[str, str], **options: Any) -> None:
        published.append((data["text/html"], options))

    monkeypatch.setattr("IPython.display.display", display)
    view = previewed(session)
    view._ipython_display_()
    view.follow()
    if end.islower():
        getattr(view, end)()
    else:
        session.sql(end)
        view.follow()
    view.follow()
    (first, shown), (last, rewritten) = published
    assert shown["raw"] and shown["display_id"] == view.mount and rewritten == {**shown, "update": True}
    assert [state["snapshot"] for state in shown["metadata"]["ducklake"]["reads"]]
    assert "Not committed" in first and "Not committed" not in last
    assert ("Committed" if end.casefold() == "commit" else "Rolled back") in last


def test_rows_that_a_rollback_removed_are_still_in_the_view(session: dl.Session) -> None:
    view = PreviewView(
        session.preview("UPDATE t SET n = i FROM range(3) AS r(i) WHERE i = 2; INSERT INTO t FROM range(500)")
    )
    view.rollback()
    assert "<b>500</b> inserted" in view.still() and view.still().count('<tr class="dlk-inserted">') > 40
