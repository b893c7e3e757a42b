"""A hundred reverts among random commits: the table is what a replay without the reverted commits gives."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.interop.comparing import attach, detach
from tests.memory import FOLDER
from tests.property.test_numbers import MAINTENANCE
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: A sample takes a quarter.
REVERTS = examples(100)
#: Rows at the beginning, whose keys are their row ids.
FIRST = 60
#: A cell by key and column, a whole row by key, or a column; the parts that commits depend on.
Part = tuple[Any, ...]


@dataclass
class Table:
    """A table by a few lines of Python: values by column, by key. Columns have numbers and names."""

    names: dict[int, str] = field(default_factory=lambda: {1: "a", 2: "b"})
    rows: dict[int, dict[int, int | None]] = field(default_factory=lambda: {k: {1: 0, 2: 0} for k in range(FIRST)})

    def touched(self, change: Change) -> set[Part]:
        """The parts of the table that a statement would change."""
        inside = [key for key in self.rows if change.low <= key <= change.high]
        match change.kind:
            case "update":
                return {("cell", key, change.column) for key in inside}
            case "delete":
                return {("row", key) for key in inside}
            case "insert":
                keys = range(change.low, change.high + 1)
                return {part for key in keys for part in (("row", key), ("cell", key, change.column))}
            case "rename":
                return {("name", change.column)}
        return {("column", change.column)}

    def apply(self, change: Change) -> None:
        """Changes the parts that a commit changed; rows that were not there then stay as they are."""
        column, value = change.column, change.value
        match change.kind:
            case "update":
                for _, key, _ in change.parts:
                    self.rows[key][column] = value
            case "delete":
                for _, key in change.parts:
                    del self.rows[key]
            case "insert":
                for key in range(change.low, change.high + 1):
                    self.rows[key] = {c: value if c == column else None for c in self.names}
            case "add":
                self.names[column] = f"c{column}"
                for row in self.rows.values():
                    row[column] = None
            case "drop":
                del self.names[column]
                for row in self.rows.values():
                    del row[column]
            case "rename":
                self.names[column] = f"r{value}"


@dataclass
class Change:
    """One commit.

    Attributes:
        low, high: the first and the last key.
        column: by number.
        value: one that no other commit writes.
        at: its snapshot.
        parts: what it changed.
    """

    kind: str
    low: int
    high: int
    column: int
    value: int
    at: int = 0
    parts: set[Part] = field(default_factory=set)

    def sql(self, names: dict[int, str]) -> str:
        name, where = names.get(self.column, f"c{self.column}"), f"WHERE k BETWEEN {self.low} AND {self.high}"
        match self.kind:
            case "update":
                return f"UPDATE t SET {name} = {self.value} {where}"
            case "delete":
                return f"DELETE FROM t {where}"
            case "insert":
                return f"INSERT INTO t (k, {name}) SELECT i, {self.value} FROM range({self.low}, {self.high + 1}) r(i)"
            case "add":
                return f"ALTER TABLE t ADD COLUMN {name} INTEGER"
            case "drop":
                return f"ALTER TABLE t DROP COLUMN {name}"
        return f"ALTER TABLE t RENAME COLUMN {name} TO r{self.value}"


def depends(later: Change, earlier: Change) -> bool:
    """Whether a commit changed again what an earlier one changed, or what came with that."""
    return any(_overlap(one, other) for one in later.parts for other in earlier.parts)


def _overlap(one: Part, other: Part) -> bool:
    kinds = {one[0], other[0]}
    if one[0] == other[0]:
        return one == other
    if kinds == {"row", "cell"}:
        return bool(one[1] == other[1])
    column_of = {"cell": 2, "column": 1, "name": 1}
    if kinds == {"cell", "name"} or "row" in kinds:
        return False
    return bool(one[column_of[one[0]]] == other[column_of[other[0]]])


class Script:
    """A lake and what its table should be."""

    def __init__(self, rng: random.Random, session: dl.Session, run: Callable[[str, bool], None]) -> None:
        self.rng, self.session, self.run = rng, session, run
        self.made: list[Change] = []
        self.reverted: list[Change] = []
        self.conflicts = 0

    def table(self) -> Table:
        """A replay of the commits that are not reverted."""
        table = Table()
        for change in self.made:
            if change not in self.reverted:
                table.apply(change)
        return table

    def commit(self, number: int) -> None:
        rng, table = self.rng, self.table()
        kind = rng.choice(["update"] * 9 + ["delete", "delete", "insert", "insert", "add", "drop", "rename"])
        low = rng.randrange(FIRST)
        change = Change(kind, low, low + rng.choice([0, 0, 1, 4, 12]), rng.choice(sorted(table.names)), number)
        if kind == "insert":
            change.low = 1000 * number
            change.high = change.low + rng.choice([0, 3, 15])
        if kind == "add":
            change.column = number + 10
        if kind == "drop" and len(table.names) < 2:
            return
        statement = change.sql(table.names)
        change.parts = table.touched(change)
        if not change.parts:
            return
        self.run(statement, rng.random() < 0.7)
        change.at = self.session.current_snapshot().snapshot_id
        self.made.append(change)

    def revert(self) -> bool:
        """Takes back a commit that none that stays depends on; sometimes tries one that conflicts."""
        left = [change for change in self.made if change not in self.reverted]
        free, bound = [], []
        for place, change in enumerate(left):
            later = [other for other in left[place + 1 :] if depends(other, change)]
            (bound if later else free).append(change)
        same = [
            change
            for change in bound
            if change.kind == "update"
            and any(o.kind == "update" and depends(o, change) for o in left[left.index(change) + 1 :])
            and not any(o.kind != "update" and depends(o, change) for o in left[left.index(change) + 1 :])
        ]
        if same and self.rng.random() < 0.2:
            with pytest.raises(dl.RevertConflictError):
                self.session.revert(self.rng.choice(same).at)
            self.conflicts += 1
        if not free:
            return False
        chosen = self.rng.choice(free)
        if chosen.kind == "add" and len(self.table().names) < 2:
            return False
        assert self.session.revert(chosen.at) is not None, chosen
        self.reverted.append(chosen)
        return True


@pytest.mark.timeout(1800)
@settings(
    max_examples=1,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32), vectors=st.booleans())
def test_a_hundred_reverts_are_a_replay_without_those_commits(
    seed: int, vectors: bool, catalog: str, new_catalog: Callable[..., str], reference: duckdb.DuckDBPyConnection
) -> None:
    rng, folder = random.Random(seed), Path(tempfile.mkdtemp(dir=FOLDER))
    prefix = "sqlite:" * (catalog == "sqlite")
    uri = new_catalog(catalog) if catalog == "postgres" else f"ducklake:{prefix}{folder}/lake.db"
    try:
        with dl.connect(uri, alias="lake", data_path=f"{folder}/data", engine="duckdb") as session:

            def run(sql: str, ours: bool) -> None:
                # the reference forgets which snapshot deleted what where it replaces a vector
                if ours or vectors:
                    session.sql(sql)
                    return
                attach(reference, uri)
                try:
                    reference.execute(sql)
                finally:
                    detach(reference)

            session.sql(f"CREATE TABLE t AS SELECT i::INTEGER AS k, 0 AS a, 0 AS b FROM range({FIRST}) r(i)")
            if vectors:
                session.sql("CALL lake.set_option('write_deletion_vectors', true)")
            script, number = Script(rng, session, run), 0
            while len(script.reverted) < REVERTS:
                number += 1
                script.commit(number)
                if rng.random() < 0.06:
                    sql = rng.choice(MAINTENANCE)
                    # the reference fails to rewrite files where an inlined table lacks a column
                    run(sql, "rewrite" in sql or rng.random() < 0.5)
                if number > 5 and rng.random() < 0.7:
                    script.revert()
                if number % 10 == 0:
                    check(script, session)
            check(script, session)
            assert script.conflicts or REVERTS < 50
        attach(reference, uri)
        try:
            compare(script, reference)
        finally:
            detach(reference)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(script: Script, reference: duckdb.DuckDBPyConnection) -> None:
    """Compares the rows that the reference reads, and their row ids."""
    table = script.table()
    listed = ", ".join(f'"{name}"' for name in table.names.values())
    found = reference.execute(f"SELECT rowid, k, {listed} FROM t").fetchall()
    assert {key: values for _, key, *values in found} == {
        k: [row[c] for c in table.names] for k, row in table.rows.items()
    }
    assert len({row_id for row_id, *_ in found}) == len(found) == len(table.rows)
    assert all(row_id == key for row_id, key, *_ in found if key < FIRST)


def check(script: Script, session: dl.Session) -> None:
    table = script.table()
    assert [c.name for c in session.table("t").schema] == ["k", *table.names.values()]
    listed = ", ".join(f'"{name}"' for name in table.names.values())
    rows = {key: values for key, *values in session.sql(f"SELECT k, {listed} FROM t").fetchall()}
    assert rows == {key: [row[c] for c in table.names] for key, row in table.rows.items()}
