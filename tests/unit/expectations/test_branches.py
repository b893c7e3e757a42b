"""Expectations and other tags through branches, merges, reverts and reviews."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.attachments import table_tags


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
