"""Expectations and other tags through branches, merges, reverts and reviews."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.attachments import table_tags
from ducklake_lab.widgets.review_view import ReviewView


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as made:
        made.sql("CREATE TABLE p (k INTEGER); CREATE TABLE t (id INTEGER, v INTEGER)")
        made.sql("INSERT INTO p VALUES (1), (2); INSERT INTO t VALUES (1, 1)")
        made.sql("ALTER TABLE t EXPECT positive CHECK (v > 0); ALTER TABLE t EXPECT known (id) REFERENCES p(k)")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dl.ExpectationWarning)
            yield made


def _names(session: dl.Session) -> list[tuple[object, ...]]:
    return [row[1:4] for row in session.check("t").fetchall()]


def test_a_branch_has_them_and_a_merge_brings_changes(session: dl.Session):
    session.branch("fix")
    session.switch("fix")
    with pytest.raises(dl.ExpectationError):
        session.sql("INSERT INTO t VALUES (2, -1)")
    session.sql("ALTER TABLE t DROP EXPECTATION positive; ALTER TABLE t EXPECT odd CHECK (v % 2 = 1) ON VIOLATION warn")
    session.sql("CREATE TABLE child (x INTEGER); ALTER TABLE child EXPECT up (x) REFERENCES p(k)")
    session.sql("CREATE TABLE own (y INTEGER); ALTER TABLE own EXPECT up (y) REFERENCES child(x)")
    session.sql("INSERT INTO t VALUES (2, -4); INSERT INTO child VALUES (1); INSERT INTO own VALUES (1)")
    session.switch(None)
    session.sql("ALTER TABLE t EXPECT small CHECK (v < 100)")
    review = session.review("fix")
    assert {(one.table, one.expectation.name, one.count) for one in review.checks} == {
        ("main.t", "known", 0),
        ("main.t", "odd", 1),
        ("main.child", "up", 0),
        ("main.own", "up", 0),
    }
    for text in (repr(review), review.to_html(), review.to_markdown(), review.to_json()):
        assert "odd" in text
    session.merge("fix")
    assert _names(session) == [
        ("known", 'FOREIGN KEY ("id") REFERENCES main.p ("k")', "fail"),
        ("odd", "CHECK (v % 2 = 1)", "warn"),
        ("small", "CHECK (v < 100)", "fail"),
    ]
    for bad in ("INSERT INTO own VALUES (9)", "INSERT INTO child VALUES (9)", "DELETE FROM child"):
        with pytest.raises(dl.ExpectationError, match="up"):
            session.sql(bad)


@pytest.fixture
def violated(session: dl.Session) -> dl.Session:
    """A branch whose rows violate each kind of expectation, beside rows of the lake that violated them before."""
    session.sql("CREATE TABLE c (id INTEGER, k INTEGER, v INTEGER, s VARCHAR)")
    session.sql("INSERT INTO c VALUES (0, 1, -7, 'old <b>'), (0, 1, -8, NULL), (1, 2, 5, 'fine')")
    session.sql("""
        ALTER TABLE c EXPECT up (k) REFERENCES p(k) ON VIOLATION warn; ALTER TABLE c EXPECT positive CHECK (v > 0) ON VIOLATION warn;
        ALTER TABLE c EXPECT named NOT NULL (s) ON VIOLATION warn; ALTER TABLE c EXPECT once UNIQUE (id) ON VIOLATION warn;
        ALTER TABLE c EXPECT small CHECK (v < 100) ON VIOLATION warn
    """)
    session.branch("fix")
    session.switch("fix")
    session.sql("INSERT INTO c SELECT i, i, -i, '<i>' || i FROM range(1, 9) r(i)")
    session.sql("UPDATE c SET s = NULL WHERE id = 8; DELETE FROM p WHERE k = 2")
    session.switch(None)
    return session


#: Violations by rows that came: k of 3 to 8 is no row of p, nor is the 2 that was deleted; id 1 was there.
_VIOLATIONS = {"named": 1, "once": 1, "positive": 8, "small": 0, "up": 7}


def test_a_review_lists_what_rows_of_the_branch_violate(violated: dl.Session):
    review = violated.review("fix")
    came = {one.expectation.name: one for one in review.checks if not one.why}
    assert {name: one.count for name, one in came.items()} == _VIOLATIONS
    rows = {name: one.rows.to_pylist() for name, one in came.items() if one.rows is not None}
    assert rows["named"] == [{"id": 8, "k": 8, "v": -8, "s": None}]
    assert [row["id"] for row in rows["positive"]] == [1, 2, 3, 4, 5] and [row["id"] for row in rows["once"]] == [1]
    # rows that were there before lose the row that they reference
    (orphaned,) = (one for one in review.checks if one.why)
    assert (orphaned.expectation.name, orphaned.count) == ("up", 2)
    assert orphaned.why == "rows of main.p go that they reference"
    assert orphaned.rows is not None and [row["id"] for row in orphaned.rows.to_pylist()] == [1, 2]
    listed = {(one["expectation"], one["violations"]) for one in review.to_dict()["checks"]}
    assert listed == {*_VIOLATIONS.items(), ("up", 2)}
    assert "4 of 5 expectations failed" in review.to_html()


def test_a_review_shows_what_rows_of_the_branch_violate(violated: dl.Session):
    review = violated.review("fix")
    html, text = review.to_html(), review.to_markdown()
    for shown in ("8 violations", "1 violation<", "2 violations: rows of main.p go that they reference", "passed"):
        assert shown in html
    assert "(id = 8, k = 8, v = -8, s = NULL)" in html and "s = &lt;i&gt;1" in html and "<i>" not in html
    for count in ("| 8 violations |", "| 1 violation |", "| passed |"):
        assert count in text
    assert text.count("id = 8, k = 8") == 1
    view = ReviewView(review)
    assert [line.partition(" of main.c")[0] for line in view.checks] == [
        "1 row violates named", "1 row violates once", "8 rows violate positive", "7 rows violate up",
    ]  # fmt: skip


def test_maintenance_of_a_branch_brings_no_rows(violated: dl.Session):
    expected = [(one.expectation.name, one.count) for one in violated.review("fix").checks]
    violated.switch("fix")
    violated.sql("CALL lake.flush_inlined_data(); CALL lake.merge_adjacent_files()")
    violated.switch(None)
    assert [(one.expectation.name, one.count) for one in violated.review("fix").checks] == expected


def test_merged_rows_are_checked_no_more(violated: dl.Session):
    violated.sql("ALTER TABLE c DROP EXPECTATION up")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dl.ExpectationWarning)
        violated.merge("fix", on_conflict="ours")
    violated.switch("fix")
    violated.sql("CREATE TABLE other AS SELECT 1 AS i")
    violated.switch(None)
    assert violated.review("fix").checks == ()


def test_a_merge_is_checked_by_the_expectations_of_the_lake(session: dl.Session):
    session.branch("fix")
    session.switch("fix")
    session.sql("INSERT INTO t VALUES (2, 500)")
    session.switch(None)
    session.sql("ALTER TABLE t EXPECT small CHECK (v < 100)")
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.ExpectationError, match="small"):
        session.merge("fix")
    assert session.current_snapshot().snapshot_id == before
    session.sql("ALTER TABLE t DROP EXPECTATION small")
    session.merge("fix")
    assert session.sql("SELECT v FROM t ORDER BY v").fetchall() == [(1,), (500,)]


def test_both_sides_that_change_one_conflict(session: dl.Session):
    session.branch("fix")
    session.switch("fix")
    session.sql("ALTER TABLE t DROP EXPECTATION positive; ALTER TABLE t EXPECT positive CHECK (v > 1)")
    session.switch(None)
    session.sql("ALTER TABLE t DROP EXPECTATION positive; ALTER TABLE t EXPECT positive CHECK (v > -1)")
    with pytest.raises(dl.MergeConflictError) as caught:
        session.merge("fix")
    assert any("expectation positive" in conflict.reason for conflict in caught.value.conflicts)
    session.merge("fix", on_conflict="theirs")
    assert ("positive", "CHECK (v > 1)", "fail") in _names(session)


def test_a_revert_takes_a_definition_back(session: dl.Session):
    session.sql("ALTER TABLE t EXPECT small CHECK (v < 100)")
    added = session.current_snapshot().snapshot_id
    session.sql("INSERT INTO t VALUES (2, 2)")
    session.revert(added)
    session.sql("INSERT INTO t VALUES (2, 500)")
    assert [name for name, *_ in _names(session)] == ["known", "positive"]


def test_other_tags_merge_by_key(session: dl.Session):
    def put(key: str, value: str | None) -> None:
        with session._transactions.writing(session._lakes.get()) as transaction:
            transaction.set_tag(transaction.state.table("main", "t"), key, value)

    def tags() -> dict[str, str]:
        lake = session._lakes.get()
        with lake.connect() as connection:
            found = table_tags(connection, lake.snapshot(connection).snapshot_id, "ducklake_lab.test")
        return {key: value for (_, key), value in found.items()}

    for key in ("kept", "gone", "changed", "both"):
        put(f"ducklake_lab.test.{key}", "old")
    session.branch("fix")
    session.switch("fix")
    put("ducklake_lab.test.gone", None)
    put("ducklake_lab.test.changed", "theirs")
    put("ducklake_lab.test.both", "theirs")
    put("ducklake_lab.test.new", "theirs")
    session.switch(None)
    put("ducklake_lab.test.own", "ours")
    session.merge("fix")
    expected = {"kept": "old", "changed": "theirs", "both": "theirs", "new": "theirs", "own": "ours"}
    assert tags() == {f"ducklake_lab.test.{key}": value for key, value in expected.items()}
    session.branch("again")
    session.switch("again")
    put("ducklake_lab.test.both", "a")
    session.switch(None)
    put("ducklake_lab.test.both", "b")
    with pytest.raises(dl.MergeConflictError, match="both"):
        session.merge("again")
    session.merge("again", on_conflict="ours")
    assert tags()["ducklake_lab.test.both"] == "b"


@pytest.fixture
def asked(session: dl.Session) -> dl.Session:
    """A branch that breaks the query of an expectation over two tables, which its lake fulfils."""
    session.sql("CREATE TABLE sums (total INTEGER); INSERT INTO sums VALUES (1)")
    session.sql("""
        ALTER TABLE t EXPECT summed QUERY (SELECT s.v, total FROM (SELECT sum(v) AS v FROM t) s, sums WHERE s.v <> total)
            ON VIOLATION warn;
        ALTER TABLE t EXPECT distant QUERY (SELECT * FROM lake.main.p WHERE k > 100)
    """)
    session.branch("fix")
    session.switch("fix")
    session.sql("INSERT INTO t VALUES (2, 10)")
    session.switch(None)
    return session


def test_a_review_runs_queries_on_the_branch(asked: dl.Session):
    (distant, summed) = sorted(
        (one for one in asked.review("fix").checks if one.expectation.kind == "query"),
        key=lambda one: one.expectation.name,
    )
    assert (distant.expectation.name, distant.count) == ("distant", 0)
    assert (summed.expectation.name, summed.count) == ("summed", 1)
    assert summed.rows is not None and summed.rows.to_pylist() == [{"v": 11, "total": 1}]
    assert "v = 11, total = 1" in asked.review("fix").to_html()
    # names mean the lake again, also in an open transaction
    assert asked.sql("SELECT sum(v) FROM t").fetchall() == [(1,)]
    asked.sql("BEGIN; SELECT 1 FROM t")
    assert [one.count for one in asked.review("fix").checks if one.expectation.name == "summed"] == [1]
    assert asked.sql("SELECT sum(v) FROM t").fetchall() == [(1,)]
    asked.sql("ROLLBACK")


def test_a_rebase_runs_queries_on_what_it_makes(asked: dl.Session):
    asked.sql("UPDATE sums SET total = 11")
    asked.rebase("fix")
    assert [one.count for one in asked.review("fix").checks if one.expectation.name == "summed"] == [0]
    asked.sql("INSERT INTO p VALUES (999)")
    with pytest.raises(dl.ExpectationError, match="distant"):
        asked.rebase("fix")
    assert asked.sql("SELECT sum(v) FROM t").fetchall() == [(1,)]
    asked.switch("fix")
    assert asked.sql("SELECT sum(v) FROM t").fetchall() == [(11,)]
