"""Reviews of branches: numbers, conflicts and texts that those who merge look at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from tests.unit.branches.test_merging import on_branch


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS v FROM range(100) r(i); CREATE TABLE o AS SELECT 1 AS a")
        session.branch("fix")
        session.sql("UPDATE t SET v = '<b>lake' WHERE i < 3; INSERT INTO o VALUES (2)")
        on_branch(
            session,
            "UPDATE t SET v = '<i>|branch' WHERE i IN (2, 50); INSERT INTO t SELECT 1000 + i, 'n' FROM range(30) r(i)",
            "ALTER TABLE t ADD COLUMN c INTEGER; CREATE TABLE u AS SELECT 1 AS a",
        )
        yield session


def test_both_sides_and_their_conflicts(session: dl.Session) -> None:
    newest = session.current_snapshot().snapshot_id
    review = session.review("fix")
    assert session.current_snapshot().snapshot_id == newest
    assert [repr(one) for one in review.tables] == [
        "created main.u: 0 deleted, 1 inserted, 0 updated",
        "altered main.t: 0 deleted, 30 inserted, 2 updated",
    ]
    assert [repr(one) for one in review.base_changes] == [
        "changed main.o: 0 deleted, 1 inserted, 0 updated",
        "changed main.t: 0 deleted, 0 inserted, 3 updated",
    ]
    assert {name: [change.kind for change in changes] for name, changes in review.schema.items()} == {
        "main.t": ["added"]
    }
    assert not review.is_mergeable and review.total == 1
    (conflict,) = review.conflicts
    assert (conflict.column, conflict.base, conflict.ours, conflict.theirs) == ("v", "v2", "<b>lake", "<i>|branch")
    assert len(review.rows("t")) == 32
    assert [one.commit_message for one in review.commits] == [None] * 4
    found = json.loads(review.to_json())
    assert (found["branch"], found["began_at"], found["conflicts_total"]) == ("fix", 2, 1)


def test_a_page_and_a_text(session: dl.Session, tmp_path: Path) -> None:
    review = session.review("fix")
    html = review.to_html(tmp_path / "review.html")
    assert (tmp_path / "review.html").read_text() == html
    assert "&lt;i&gt;|branch" in html and "<i>|branch" not in html
    assert "What the branch changed" in html and "changed on both sides" in html
    text = review.to_markdown()
    assert "| main\\.t".replace("\\", "") in text and "\\<i\\>\\|branch" in text
    review.save(tmp_path / "review.md")
    assert (tmp_path / "review.md").read_text() == text
    with pytest.raises(dl.UsageError, match=r"saved as \.html, \.json or \.md"):
        review.save(tmp_path / "review.txt")
    assert repr(review).splitlines()[0] == "<Review of lake#fix: 4 snapshots, 1 conflict>"


def test_the_review_of_a_merged_branch_is_empty(session: dl.Session) -> None:
    session.merge("fix", on_conflict="theirs")
    review = session.review("fix")
    assert review.tables.is_empty and review.is_mergeable and not review.commits
