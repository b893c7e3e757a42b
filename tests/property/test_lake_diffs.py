"""Random histories of a few tables by both clients: the diff of the lake says what plain SQL on the reference finds."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.interop.comparing import detach
from tests.interop.patching import apply, attach_copy, opened
from tests.memory import FOLDER
from tests.property.test_numbers import MAINTENANCE
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: What a statement raises where its table is not there, or one of the name is.
NO_SUCH_TABLE = (
    dl.EntryNotFoundError,
    dl.EntryExistsError,
    dl.SqlError,
    duckdb.CatalogException,
    duckdb.BinderException,
)
NAMES = ("a", "b", "c", "d")


class Step(NamedTuple):
    """A statement, and which client runs it."""

    ours: bool
    sql: str


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Changes of tables that may not be there, in which case nothing happens."""
    steps = [
        Step(draw(st.booleans()), f"CREATE TABLE {name} AS SELECT i AS k, 0 AS v FROM range(30) r(i)")
        for name in NAMES[:3]
    ]
    for number in range(draw(st.integers(4, 12))):
        name = draw(st.sampled_from(NAMES))
        low = draw(st.integers(0, 40))
        where = f"WHERE k BETWEEN {low} AND {low + draw(st.sampled_from([0, 2, 15]))}"
        sql = draw(
            st.sampled_from(
                [
                    f"INSERT INTO {name} (k, v) SELECT i, {number} FROM range({low}, {low + draw(st.sampled_from([2, 25]))}) r(i)",
                    f"DELETE FROM {name} {where}",
                    f"UPDATE {name} SET v = v + 1 {where}",
                    f"UPDATE {name} SET v = v {where}",
                    f"CREATE TABLE {name} AS SELECT i AS k, 1 AS v FROM range({low}) r(i)",
                    f"DROP TABLE {name}",
                    f"ALTER TABLE {name} RENAME TO {draw(st.sampled_from(NAMES))}",
                    f"ALTER TABLE {name} ADD COLUMN extra{number} INTEGER",
                    draw(st.sampled_from(MAINTENANCE)),
                    "CALL ducklake_expire_snapshots('lake', versions => [{}])",
                ]
            )
        )
        steps.append(Step(draw(st.booleans()), sql))
    return steps


def run(steps: list[Step], folder: Path, reference: duckdb.DuckDBPyConnection) -> None:
    for step in steps:
        with opened(folder) as session:
            ids = [entry.info.snapshot_id for entry in session.snapshots()]
        if "{}" in step.sql and len(ids) < 4:
            continue
        sql = step.sql.format(ids[len(ids) // 2]) if "{}" in step.sql else step.sql
        with contextlib.suppress(*NO_SUCH_TABLE):
            apply("ours" if step.ours else "reference", reference, folder, sql)


def tables_at(reference: duckdb.DuckDBPyConnection, at: int) -> dict[int, tuple[str, list[str], dict[int, Any]]]:
    """Return name, columns, and (k, v) by row id of the tables at a snapshot, by table id."""
    meta = "__ducklake_metadata_lake.ducklake_table"
    names = reference.execute(
        f"SELECT table_id, table_name FROM {meta} WHERE begin_snapshot <= {at} AND (end_snapshot IS NULL OR end_snapshot > {at})"
    ).fetchall()
    found = {}
    for table_id, name in names:
        rows = reference.execute(f"SELECT rowid, k, v FROM {name} AT (VERSION => {at})").fetchall()
        columns = [column for column, *_ in reference.execute(f"FROM {name} AT (VERSION => {at}) LIMIT 0").description]
        found[table_id] = (name, columns, {row_id: rest for row_id, *rest in rows})
    return found


def expected(before: dict[int, Any], after: dict[int, Any]) -> tuple[set[tuple[Any, ...]], int]:
    """(kind, table, deleted, inserted, updated) of each table that differs, and how many do not."""
    found, same = set(), 0
    for table_id in before.keys() | after.keys():
        if table_id not in after:
            name, _, rows = before[table_id]
            found.add(("dropped", f"main.{name}", len(rows), 0, 0))
        elif table_id not in before:
            name, _, rows = after[table_id]
            found.add(("created", f"main.{name}", 0, len(rows), 0))
        else:
            (was, had, old), (name, has, new) = before[table_id], after[table_id]
            numbers = (
                len(old.keys() - new.keys()),
                len(new.keys() - old.keys()),
                sum(old[row_id] != new[row_id] for row_id in old.keys() & new.keys()),
            )
            if (was, had) != (name, has):
                found.add(("altered", f"main.{name}", *numbers))
            elif any(numbers):
                found.add(("changed", f"main.{name}", *numbers))
            else:
                same += 1
    return found, same


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(histories(), st.data())
def test_a_lakes_diff_says_what_sql_finds(
    reference: duckdb.DuckDBPyConnection, history: list[Step], data: st.DataObject
) -> None:
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    try:
        run(history, folder, reference)
        with opened(folder) as session:
            ids = [entry.info.snapshot_id for entry in session.snapshots()][1:]
            pairs = [(data.draw(st.sampled_from(ids)), data.draw(st.sampled_from(ids))) for _ in range(3)]
            pairs.append((ids[0], ids[-1]))
            diffs = {pair: session.diff(*pair) for pair in pairs}
        attach_copy(reference, folder)
        try:
            states = {number: tables_at(reference, number) for number in {number for pair in pairs for number in pair}}
        finally:
            detach(reference)
        for (start, end), diff in diffs.items():
            counts = {
                (one.kind, one.name, one.summary.deleted, one.summary.inserted, one.summary.updated) for one in diff
            }
            assert (counts, diff.unchanged) == expected(states[start], states[end]), (start, end)
            assert len(diff) == len(counts)
    finally:
        shutil.rmtree(folder)
