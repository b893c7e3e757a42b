"""Random histories on both sides of a branch: a merge does what a few lines over row ids say, and what the reference reads."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.interop.patching import opened
from tests.memory import FOLDER
from tests.property.test_numbers import MAINTENANCE
from tests.property.test_reverts import compare_all
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: Values by the name of the column, by row id.
Rows = dict[int, dict[str, Any]]
#: First defaults of columns that came.
DEFAULTS = {"early": 6, "ours": 7, "theirs": 8}


@st.composite
def changes(draw: st.DrawFn, side: str, first: int) -> list[str]:
    """Statements of one side; keys of its inserted rows count from `first`, and each column that it adds has its name."""
    found = []
    for number in range(1, 1 + draw(st.integers(1, 5))):
        low = draw(st.integers(0, 45))
        where = f"WHERE k BETWEEN {low} AND {low + draw(st.sampled_from([0, 3, 30]))}"
        new = f"WHERE k >= {first}"
        start = first + 100 * number
        kind = draw(st.sampled_from(["insert", "delete", "update", "update", "new", "alter", "maintain"]))
        column = draw(st.sampled_from("abc"))
        match kind:
            case "insert":
                count = draw(st.sampled_from([1, 5, 40]))
                found.append(f"INSERT INTO t (k, a) SELECT i, {number} FROM range({start}, {start + count}) r(i)")
            case "delete":
                found.append(f"DELETE FROM t {where}")
            case "update":
                found.append(f"UPDATE t SET {column} = {draw(st.integers(0, 2))} {where}")
            case "new":
                found.append(
                    draw(st.sampled_from([f"UPDATE t SET {column} = -1 {new}", f"DELETE FROM t {new} AND k % 2 = 0"]))
                )
            case "alter":
                found.append(f"ALTER TABLE t ADD COLUMN {side} INTEGER DEFAULT {DEFAULTS[side]}")
                found.append(f"UPDATE t SET {side} = {low} {where}")
            case _:
                found.append(draw(st.sampled_from(MAINTENANCE)))
    return found


def run(session: dl.Session, statements: list[str]) -> None:
    """Runs the statements; a column that is there already is not added again."""
    for statement in statements:
        try:
            session.sql(statement)
        except dl.EntryExistsError:
            assert statement.startswith("ALTER")


def rows_of(session: dl.Session) -> Rows:
    result = session.sql("SELECT rowid, * FROM t")
    return {row_id: dict(zip(result.columns[1:], values, strict=True)) for row_id, *values in result.fetchall()}


class Expected(NamedTuple):
    """Result of a merge.

    Attributes:
        conflicts: (row id, column) pairs; None for a whole row.
        rows: those that ours had or has by their ids.
        new: rows of theirs that get new ids, as sorted items.
        refused: theirs changed rows that an earlier merge brought.
    """

    conflicts: set[tuple[int, str | None]]
    rows: Rows
    new: Counter[tuple[tuple[str, Any], ...]]
    refused: bool


def expected(base: Rows, theirs: Rows, ours: Rows, first_new: int, columns: list[str], rule: str | None) -> Expected:
    """Ours with what theirs changed since `base`."""
    conflicts = set[tuple[int, str | None]]()
    takes = rule == "theirs"

    def whole(row: Mapping[str, Any]) -> dict[str, Any]:
        return {column: row[column] if column in row else DEFAULTS[column] for column in columns}

    merged = {row_id: whole(row) for row_id, row in ours.items()}
    refused = any(row_id >= first_new and base[row_id] != theirs.get(row_id) for row_id in base)
    for row_id in base.keys() | {i for i in theirs if i < first_new}:
        if row_id >= first_new:
            continue
        old, their, own = base.get(row_id), theirs.get(row_id), ours.get(row_id)
        if old is None or old == their:
            continue
        if their is None:
            if own is None:
                continue
            if any(own[c] != (old[c] if c in old else DEFAULTS[c]) for c in own):
                conflicts.add((row_id, None))
                if not takes:
                    continue
            del merged[row_id]
            continue
        changed = [c for c in their if c in old and their[c] != old[c]]
        came = {c: their[c] for c in their if c not in old and (own is None or c not in own)}
        if own is None:
            if changed or any(their[c] != DEFAULTS[c] for c in their if c not in old):
                conflicts.add((row_id, None))
                if takes:
                    merged[row_id] = whole(their)
            continue
        for column in changed:
            if own[column] not in (old[column], their[column]):
                conflicts.add((row_id, column))
                if not takes:
                    continue
            merged[row_id][column] = their[column]
        merged[row_id] |= came
    new = Counter(tuple(sorted(whole(row).items())) for i, row in theirs.items() if i >= first_new and i not in base)
    return Expected(conflicts, merged, new, refused)


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_a_merge_takes_over_what_the_branch_changed(reference: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    try:
        with opened(folder) as session:
            session.sql("CREATE TABLE t AS SELECT i::INTEGER AS k, 0 AS a, 1 AS b, i % 2 AS c FROM range(45) r(i)")
            run(
                session,
                data.draw(
                    changes("early", 500).map(lambda found: [s for s in found if "early" not in s]), label="before"
                ),
            )
            base, began = rows_of(session), session.current_snapshot().snapshot_id
            first_new = next_row_id(session)
            is_late = data.draw(st.booleans(), label="branched after the lake went on")
            if not is_late:
                session.branch("side")
            for again in range(2):
                theirs_before = base
                ours_statements = data.draw(changes("ours", 10_000 + 5000 * again), label="ours")
                theirs_statements = data.draw(changes("theirs", 20_000 + 5000 * again), label="theirs")
                if again:  # columns of a branch that was merged are refused
                    theirs_statements = [s for s in theirs_statements if "theirs" not in s]
                run(session, ours_statements)
                if is_late and not again:
                    try:
                        session.branch("side", at=began)
                    except dl.UnsupportedFeatureError:  # a file holds rows of this and of later snapshots
                        return
                session.switch("side")
                run(session, theirs_statements)
                base = rows_of(session)
                session.switch(None)
                if not merged_as_expected(session, theirs_before, base, first_new, data):
                    break
                if any("theirs" in row for row in base.values()):
                    break
        compare_all(folder, reference)
        shutil.copytree(folder / "data.branches" / "side", folder / "branch" / "data")
        shutil.copy(folder / "lake.ducklake.branches" / "side.ducklake", folder / "branch" / "lake.ducklake")
        compare_all(folder / "branch", reference)
    finally:
        shutil.rmtree(folder)


def next_row_id(session: dl.Session) -> int:
    """Return the first row id that either side gives out."""
    found = session.sql("SELECT next_row_id FROM __ducklake_metadata_lake.ducklake_table_stats").fetchall()
    return int(found[0][0])


def merged_as_expected(session: dl.Session, base: Rows, theirs: Rows, first_new: int, data: st.DataObject) -> bool:
    """Merge, and compare; return whether there is a merge to go on from."""
    ours = rows_of(session)
    rule = data.draw(st.sampled_from([None, "ours", "theirs"]), label="rule")
    columns = list(session.sql("FROM t").columns)
    columns += [column for row in theirs.values() for column in row if column not in columns][:1]
    found = expected(base, theirs, ours, first_new, columns, rule)
    if found.refused:
        with pytest.raises(dl.UnsupportedFeatureError, match="came with an earlier merge"):
            session.merge("side", on_conflict=rule or "ours")
        return False
    newest = session.current_snapshot().snapshot_id
    if rule is None and found.conflicts:
        with pytest.raises(dl.MergeConflictError) as caught:
            session.merge("side")
        assert {(one.row_id, one.column) for one in caught.value.conflicts} == found.conflicts
        assert caught.value.total == len(found.conflicts)
        assert session.current_snapshot().snapshot_id == newest
        return False
    session.merge("side", on_conflict=rule)
    after = rows_of(session)
    known = {row_id: row for row_id, row in after.items() if row_id in found.rows or row_id in ours}
    assert known == found.rows
    assert Counter(tuple(sorted(row.items())) for i, row in after.items() if i not in known) == found.new
    assert session.merge("side") is None
    return True


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_merges_of_different_cells_commute(data: st.DataObject) -> None:
    """Two branches that change different rows, or columns, give the same lake in either order."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    statements: dict[str, list[str]] = {}
    for side, column, low, first in (("one", "a", 0, 1000), ("two", "b", 20, 2000)):
        found = statements[side] = []
        for number in range(data.draw(st.integers(1, 4), label=side)):
            start = low + data.draw(st.integers(0, 15), label="row")
            kind = data.draw(st.sampled_from(["rows", "cells", "delete", "insert", "maintain"]), label="kind")
            found.append(
                {
                    "rows": f"UPDATE t SET a = {number}, b = {number} WHERE k BETWEEN {start} AND {start + 4}",
                    "cells": f"UPDATE t SET {column} = {number + 5} WHERE k BETWEEN 40 AND 59",
                    "delete": f"DELETE FROM t WHERE k = {start}",
                    "insert": f"INSERT INTO t SELECT i, 1, 2, 3 FROM range({first + 50 * number}, {first + 50 * number + 30}) r(i)",
                    "maintain": MAINTENANCE[number % len(MAINTENANCE)],
                }[kind]
            )
    try:
        answers = []
        for order in (("one", "two"), ("two", "one")):
            place = folder / "-".join(order)
            place.mkdir()
            with opened(place) as session:
                session.sql("CREATE TABLE t AS SELECT i::INTEGER AS k, 0 AS a, 1 AS b, i % 2 AS c FROM range(60) r(i)")
                for side, found in statements.items():
                    session.branch(side)
                    session.switch(side)
                    run(session, found)
                    session.switch(None)
                for side in order:
                    session.merge(side)
                answers.append(session.sql("FROM t ORDER BY ALL").fetchall())
        assert answers[0] == answers[1]
    finally:
        shutil.rmtree(folder)
