"""Random histories of a table by both clients: a revert does what three readings of the reference and a few lines say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.interop.comparing import detach
from tests.interop.patching import apply, attach_copy, lake_folder, opened
from tests.property.test_numbers import MAINTENANCE
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: An absent row, or a conflict.
ABSENT = None


class Step(NamedTuple):
    """Statements of one transaction, and which client runs them."""

    ours: bool
    sql: str


class State(NamedTuple):
    """A table as the reference reads it at one snapshot.

    Attributes:
        names: of the columns, by id.
        rows: values by column id, by row id.
    """

    names: dict[int, str]
    rows: dict[int, dict[int, Any]]


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """A table `t` with a key `k` and columns `a`, `b`, `c`; changes of rows and columns, and maintenance."""
    number = 0

    def change() -> str:
        low = draw(st.integers(0, 45))
        where = f"WHERE k BETWEEN {low} AND {low + draw(st.sampled_from([0, 3, 30]))}"
        column = draw(st.sampled_from("abc"))
        return draw(
            st.sampled_from(
                [
                    f"INSERT INTO t (k, a) SELECT i, {number} FROM range({60 * number}, {60 * number + draw(st.sampled_from([1, 30]))}) r(i)",
                    f"DELETE FROM t {where}",
                    f"UPDATE t SET a = {draw(st.integers(0, 2))} {where}",
                    f"UPDATE t SET a = a + 1, k = k {where}",
                    f"UPDATE t SET {column} = {draw(st.integers(0, 2))} {where}",
                    f"UPDATE t SET {column} = NULL {where}",
                ]
            )
        )

    def alter() -> str:
        column = draw(st.sampled_from("abc"))
        return draw(
            st.sampled_from(
                [
                    f"ALTER TABLE t ADD COLUMN {column} INTEGER DEFAULT {number}",
                    f"ALTER TABLE t ADD COLUMN {column} INTEGER",
                    f"ALTER TABLE t DROP COLUMN {column}",
                    f"ALTER TABLE t RENAME COLUMN {column} TO {draw(st.sampled_from('abcd'))}",
                ]
            )
        )

    made = "CREATE TABLE t AS SELECT i::INTEGER AS k, 0 AS a, 1 AS b, i % 2 AS c FROM range(45) r(i)"
    # a deletion vector of the reference forgets which snapshot deleted what
    vectors = draw(st.booleans())
    steps = [Step(vectors or draw(st.booleans()), made)]
    if vectors:
        steps.append(Step(True, "CALL lake.set_option('write_deletion_vectors', true)"))
    for _ in range(draw(st.integers(2, 8))):
        number += 1
        match draw(st.sampled_from(["row"] * 5 + ["rows", "alter", "maintain"])):
            case "row":
                sql = change()
            case "rows":
                parts = [change(), *([alter()] if draw(st.booleans()) else []), change()]
                sql = "BEGIN; " + "; ".join(parts) + "; COMMIT"
            case "alter":
                sql = alter()
            case _:
                sql = draw(st.sampled_from(MAINTENANCE))
        # a failed transaction of the reference stays open
        steps.append(Step(vectors or sql.startswith("BEGIN") or draw(st.booleans()), sql))
    return steps


def run(steps: list[Step], folder: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """Runs the statements; those that name a column which is not there, or is there already, change nothing."""
    for step in steps:
        try:
            apply("ours" if step.ours else "reference", reference, folder, step.sql)
        except (dl.SqlError, dl.EntryExistsError, dl.TransactionError, duckdb.Error) as error:
            if isinstance(error, dl.TransactionError | duckdb.TransactionException):
                raise


def state_at(reference: duckdb.DuckDBPyConnection, at: int) -> State:
    names = dict(
        reference.execute(
            "SELECT column_id, column_name FROM __ducklake_metadata_lake.ducklake_column WHERE parent_column IS NULL "
            f"AND begin_snapshot <= {at} AND (end_snapshot IS NULL OR end_snapshot > {at})"
        ).fetchall()
    )
    listed = ", ".join(f'"{name}"' for name in names.values())
    rows = reference.execute(f"SELECT rowid, {listed} FROM t AT (VERSION => {at})").fetchall()
    return State(names, {row_id: dict(zip(names, values, strict=True)) for row_id, *values in rows})


def _states(reference: duckdb.DuckDBPyConnection, newest: int) -> list[State]:
    """The states of the table up to a snapshot, newest first."""
    return [state_at(reference, at) for at in range(newest, 0, -1)]


def defaults(reference: duckdb.DuckDBPyConnection) -> dict[int, Any]:
    """The first default of each column, by id."""
    found = reference.execute(
        "SELECT column_id, any_value(initial_default) FROM __ducklake_metadata_lake.ducklake_column GROUP BY ALL"
    ).fetchall()
    return {column: None if text is None else int(text) for column, text in found}


class Expected(NamedTuple):
    """Result of a revert.

    Attributes:
        conflicts: (row id, column id) pairs; None for a whole row, or a definition.
    """

    conflicts: set[tuple[int | None, int | None]]
    state: State


def expected(
    before: State,
    then: State,
    now: State,
    first: dict[int, Any],
    rule: str | None,
    until_before: Callable[[], Sequence[State]] = tuple,
    until_now: Callable[[], Sequence[State]] = tuple,
) -> Expected:
    """Today's state without what changed from `before` to `then`.

    Args:
        until_before, until_now: give the states up to `before` and up to `now`, newest first: a row has in a column that was
            dropped and is back the value that it had last.
    """
    conflicts = set[tuple[int | None, int | None]]()
    names = dict(now.names)
    reverts = rule == "revert"

    def value(row: dict[int, Any], column: int) -> Any:
        return row[column] if column in row else first[column]

    def last(row_id: int, column: int, states: Callable[[], Sequence[State]]) -> Any:
        found = (one.rows[row_id][column] for one in states() if column in one.names and row_id in one.rows)
        return next(found, first[column])

    def back(row_id: int, row: dict[int, Any]) -> dict[int, Any]:
        return {column: row[column] if column in row else last(row_id, column, until_before) for column in names}

    for column in then.names.keys() & now.names.keys() - before.names.keys():
        filled = any(
            row[column] is not None
            and row[column] != (then.rows[row_id][column] if row_id in then.rows else first[column])
            for row_id, row in now.rows.items()
        )
        if filled or then.names[column] != now.names[column]:
            conflicts.add((None, column))
            if not reverts:
                continue
        del names[column]
    for column in before.names.keys() & then.names.keys() & now.names.keys():
        if before.names[column] == then.names[column] or now.names[column] == before.names[column]:
            continue
        if now.names[column] != then.names[column]:
            conflicts.add((None, column))
            if not reverts:
                continue
        names[column] = before.names[column]
    returned = before.names.keys() - then.names.keys() - now.names.keys()
    names |= {column: before.names[column] for column in returned}

    rows = {}
    cells = before.names.keys() & then.names.keys() & now.names.keys()
    kept = now.names.keys() - (then.names.keys() - before.names.keys())
    for row_id in before.rows.keys() | then.rows.keys() | now.rows.keys():
        old, made, today = (state.rows.get(row_id) for state in (before, then, now))
        result = dict(today) if today is not None else None
        if old is None and made is not None and today is not None:
            changed = any(today[column] != value(made, column) for column in kept)
            if changed:
                conflicts.add((row_id, None))
            if not changed or reverts:
                result = None
        elif old is not None and made is None and today is None:
            result = back(row_id, old)
        elif old is not None and made is not None:
            touched = [column for column in cells if old[column] != made[column]]
            if today is None and touched:
                conflicts.add((row_id, None))
                if reverts:
                    result = back(row_id, old)
            elif today is not None and result is not None:
                for column in touched:
                    if today[column] not in (made[column], old[column]):
                        conflicts.add((row_id, column))
                        if not reverts:
                            continue
                    result[column] = old[column]
        if result is not None:
            for column in returned:
                result[column] = last(row_id, column, until_now)
            rows[row_id] = {column: value(result, column) for column in names}
    return Expected(conflicts, State(names, rows))


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories(), data=st.data())
def test_a_revert_takes_one_snapshot_back(
    catalog: str,
    new_catalog: Callable[..., str],
    reference: duckdb.DuckDBPyConnection,
    history: list[Step],
    data: st.DataObject,
) -> None:
    with lake_folder(catalog, new_catalog) as folder:
        run(history, folder, reference)
        for _ in range(data.draw(st.integers(1, 2), label="reverts")):
            check(folder, reference, data)
        compare_all(folder, reference)


def check(folder: Path, reference: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    """Reverts a snapshot, and compares."""
    with opened(folder) as session:
        snapshots = session.table("t").history()
    newest = snapshots[-1].info.snapshot_id
    entries = [one for one in snapshots if one.kind != "maintenance" and one.info.snapshot_id > 1]
    if not entries:
        return
    chosen = data.draw(st.sampled_from([one.info.snapshot_id for one in entries]), label="snapshot")
    rule = data.draw(st.sampled_from([None, "keep", "revert"]), label="rule")
    attach_copy(reference, folder)
    try:
        newest = reference.execute("SELECT id FROM lake.current_snapshot()").fetchone()[0]  # type: ignore[index]
        before, then, now = (state_at(reference, at) for at in (chosen - 1, chosen, newest))
        until_before, until_now = (cache(partial(_states, reference, at)) for at in (chosen - 1, newest))
        found = expected(before, then, now, defaults(reference), rule, until_before, until_now)
    finally:
        detach(reference)
    folded = [name.casefold() for name in found.state.names.values()]
    with opened(folder) as session:
        if rule is None and found.conflicts:
            with pytest.raises(dl.RevertConflictError) as caught:
                session.revert(chosen)
            ids = {name: column for state in (before, then, now) for column, name in state.names.items()}
            ours = {(one.row_id, None if one.column is None else ids[one.column]) for one in caught.value.conflicts}
            assert {row for row, _ in ours} == {row for row, _ in found.conflicts}
            assert len(ours) == caught.value.total == len(found.conflicts)
            assert session.current_snapshot().snapshot_id == newest
            return
        if len(set(folded)) < len(folded):
            with pytest.raises(dl.EntryExistsError):
                session.revert(chosen, on_conflict=rule)
            return
        made = session.revert(chosen, on_conflict=rule)
        assert (made is None) == (found.state == now), "a snapshot exactly where something changes"
        diff = session.table("t").diff(chosen - 1, chosen)
        back = session.table("t").diff(newest, made.snapshot_id) if made is not None else None
    attach_copy(reference, folder)
    try:
        after = state_at(reference, made.snapshot_id if made is not None else newest)
        assert after == found.state
    finally:
        detach(reference)
    if back is not None and not found.conflicts and now == then:
        assert inverse(diff) == listed(back)


def listed(diff: Any) -> list[Any]:
    return sorted((row.row_id, row.kind, repr(row.before), repr(row.after)) for row in diff.rows(10_000))


def inverse(diff: Any) -> list[Any]:
    kinds = {"inserted": "deleted", "deleted": "inserted", "updated": "updated"}
    return sorted((row.row_id, kinds[row.kind], repr(row.after), repr(row.before)) for row in diff.rows(10_000))


def compare_all(folder: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """Compares what both clients read at every snapshot."""
    with opened(folder) as session:
        ids = [entry.info.snapshot_id for entry in session.snapshots()][1:]
        ours = {at: sorted(session.sql(f"SELECT rowid, * FROM t AT (VERSION => {at})").fetchall()) for at in ids}
    attach_copy(reference, folder)
    try:
        for at in ids:
            rows = reference.execute(f"SELECT rowid, * FROM t AT (VERSION => {at})").fetchall()
            assert sorted(rows) == ours[at], at
    finally:
        detach(reference)
