"""Merges of nested columns that both sides changed: fields that commute go through, the same field is a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.merging.nested import merged_fields
from ducklake_lab.model.entries import Column
from tests.unit.branches.test_merging import on_branch


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(
            "CREATE TABLE t AS SELECT i, {'a': i, 'b': 'b' || i, 'gone': 0} AS s, [{'x': i}] AS l FROM range(40) r(i)"
        )
        session.sql("INSERT INTO t VALUES (100, {'a': 1, 'b': 'few', 'gone': 0}, [])")
        session.branch("fix")
        yield session


def fetched(session: dl.Session, query: str) -> list[tuple[Any, ...]]:
    return session.sql(query).fetchall()


def test_fields_of_both_sides_come(session: dl.Session) -> None:
    session.sql("ALTER TABLE t ADD COLUMN s.ours INTEGER; ALTER TABLE t ADD COLUMN l.element.y INTEGER")
    session.sql("UPDATE t SET s = {'a': i, 'b': 'o', 'gone': 0, 'ours': 7} WHERE i = 1")
    on_branch(
        session,
        "ALTER TABLE t ADD COLUMN s.theirs VARCHAR",
        "ALTER TABLE t DROP COLUMN s.gone",
        "ALTER TABLE t RENAME COLUMN s.b TO bb",
        "ALTER TABLE t ADD COLUMN l.element.z VARCHAR",
        "UPDATE t SET s = {'a': 50, 'bb': 'b', 'theirs': 'new'} WHERE i = 2",
        "INSERT INTO t SELECT 1000 + i, {'a': i, 'bb': 'n', 'theirs': 't'}, [{'x': i, 'z': 'z'}] FROM range(30) r(i)",
    )
    assert session.review("fix").is_mergeable
    session.merge("fix")
    kind = dict(fetched(session, "SELECT column_name, column_type FROM (DESCRIBE t)"))
    assert kind["s"] == "STRUCT(a BIGINT, bb VARCHAR, ours INTEGER, theirs VARCHAR)"
    assert kind["l"] == "STRUCT(x BIGINT, y INTEGER, z VARCHAR)[]"
    assert fetched(session, "SELECT s FROM t WHERE i IN (0, 1, 2, 100, 1003) ORDER BY i") == [
        ({"a": 0, "bb": "b0", "ours": None, "theirs": None},),
        ({"a": 1, "bb": "o", "ours": 7, "theirs": None},),
        ({"a": 50, "bb": "b", "ours": None, "theirs": "new"},),
        ({"a": 1, "bb": "few", "ours": None, "theirs": None},),
        ({"a": 3, "bb": "n", "ours": None, "theirs": "t"},),
    ]
    assert fetched(session, "SELECT l FROM t WHERE i IN (1, 1003) ORDER BY i") == [
        ([{"x": 1, "y": None, "z": None}],), ([{"x": 3, "y": None, "z": "z"}],),
    ]  # fmt: skip
    # both sides' fields can be written after it
    session.sql("UPDATE t SET s = {'a': 0, 'bb': 'x', 'ours': 1, 'theirs': 'y'} WHERE i = 0")
    assert fetched(session, "SELECT s.ours, s.theirs FROM t WHERE i = 0") == [(1, "y")]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("ADD COLUMN s.c INTEGER", "ADD COLUMN s.C VARCHAR"),
        ("RENAME COLUMN s.a TO one", "RENAME COLUMN s.a TO two"),
        ("RENAME COLUMN s.a TO one", "DROP COLUMN s.a"),
    ],
)
def test_changes_of_one_field_are_a_conflict(session: dl.Session, ours: str, theirs: str) -> None:
    session.sql(f"ALTER TABLE t {ours}")
    on_branch(session, f"ALTER TABLE t {theirs}")
    newest = session.current_snapshot()
    with pytest.raises(dl.MergeConflictError) as error:
        session.merge("fix")
    assert [(one.column, one.reason) for one in error.value.conflicts] == [("s", "type changed on both sides")]
    assert session.current_snapshot() == newest
    session.merge("fix", on_conflict="ours")


def field(number: int, name: str, *children: Column, order: int = 0, kind: str = "integer") -> Column:
    return Column(number, order or number, name, "struct" if children else kind, children=children)


def test_facts_of_one_field_commute_where_they_are_others() -> None:
    base = field(1, "s", field(2, "a"), field(3, "b", field(4, "x")))
    ours = field(1, "s", field(2, "aa"), field(3, "b", field(4, "x"), field(5, "y")))
    theirs = field(1, "s", field(2, "a", kind="bigint"), field(3, "c", field(4, "x"), field(6, "z")))
    found = merged_fields(theirs, base, ours)
    assert found is not None
    assert [(c.column_id, c.name, c.type) for c in found] == [(2, "aa", "bigint"), (3, "c", "struct")]
    assert [(c.column_id, c.name) for c in found[1].children] == [(4, "x"), (5, "y"), (6, "z")]
    orders = [c.order for c in found[1].children]
    assert orders == sorted(set(orders))
    # another kind of the whole, the last field on each side, one name
    assert merged_fields(field(1, "s", kind="integer"), base, ours) is None
    both = field(1, "s", field(2, "a"), field(3, "b"))
    assert merged_fields(field(1, "s", field(2, "a")), both, field(1, "s", field(3, "b"))) is None
    assert merged_fields(field(1, "s", field(2, "a"), field(7, "N")), field(1, "s", field(2, "a")),
                         field(1, "s", field(2, "a"), field(8, "n"))) is None  # fmt: skip
