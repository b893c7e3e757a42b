"""Random histories by both clients: blame and life say what a replay of all snapshots by the reference finds."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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

#: Column id -> text of the value.
Row = dict[int, str | None]


class State(NamedTuple):
    """The table at a snapshot: names by column id, and rows by row id."""

    columns: dict[int, str]
    rows: dict[int, Row]


class Step(NamedTuple):
    """A kind of change, numbers that it takes, and which client makes it."""

    kind: str
    low: int
    width: int
    ours: bool


KINDS = [
    *["insert", "insert", "update", "update", "update", "delete", "same", "maintenance", "maintenance"],
    *["add", "drop", "rename", "retype", "rename_table", "restore", "transaction"],
    *["files", "again", "revert", "again_at_once"],
]
NOTHING = State({}, {})


@st.composite
def histories(draw: st.DrawFn, *, expire: bool = True) -> list[Step]:
    kinds = [*KINDS, "expire"] if expire else KINDS
    return [
        Step(
            draw(st.sampled_from(kinds)),
            draw(st.integers(0, 30)),
            draw(st.sampled_from([0, 2, 15])),
            draw(st.booleans()),
        )
        for _ in range(draw(st.integers(3, 14)))
    ]


class History:
    """A lake that changes step by step, and all states that it had."""

    def __init__(self, uri: str, session: dl.Session, reference: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self.uri, self.session, self.reference, self.folder = uri, session, reference, folder
        self.states: dict[int, State] = {}
        self.kept: list[int] = []
        #: Name of the table, and types by column id, at each snapshot.
        self.names: dict[int, str] = {}
        self.types: dict[int, dict[int, str]] = {}
        session.sql("CREATE TABLE t (k INTEGER, v VARCHAR, f DOUBLE)")
        #: The snapshot that made the table, which is never reverted.
        self.first = session.current_snapshot().snapshot_id
        self.observe()

    def draw_vectors(self, data: st.DataObject) -> bool:
        """Draws whether the lake writes deletion vectors; the reference takes those that it replaces out of older snapshots."""
        vectors = data.draw(st.booleans())
        if vectors:
            self.session.sql("CALL lake.set_option('write_deletion_vectors', true)")
        return vectors

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        attach(self.reference, self.uri)
        try:
            yield
        finally:
            detach(self.reference)

    def observe(self) -> None:
        """Reads the snapshots that are new, by the reference."""
        with self.attached():
            self.kept = [
                number for (number,) in self.reference.execute("SELECT snapshot_id FROM lake.snapshots()").fetchall()
            ]
            for number in self.kept:
                if number not in self.states:
                    self.states[number] = self.read(number)

    def read(self, number: int) -> State:
        def entries(table: str, columns: str, more: str = "") -> list[tuple[Any, ...]]:
            return self.reference.execute(
                f"SELECT {columns} FROM __ducklake_metadata_lake.{table} WHERE table_id = 1 AND begin_snapshot <= {number} "
                f"AND (end_snapshot IS NULL OR end_snapshot > {number}) {more}"
            ).fetchall()

        named = entries("ducklake_table", "table_name")
        if not named:
            return NOTHING
        listed = entries("ducklake_column", "column_id, column_name, column_type", "ORDER BY column_order")
        columns = {column_id: name for column_id, name, _ in listed}
        self.names[number], self.types[number] = named[0][0], {column_id: kind for column_id, _, kind in listed}
        texts = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in columns.values())
        rows = self.reference.execute(f"SELECT rowid, {texts} FROM {named[0][0]} AT (VERSION => {number})").fetchall()
        return State(columns, {row_id: dict(zip(columns, values, strict=True)) for row_id, *values in rows})

    def name(self) -> str:
        return str(self.session.tables()[0].table.name)

    def apply(self, number: int, step: Step) -> None:
        if step.kind == "revert":
            self.revert(number, step)
            self.observe()
            return
        for sql in self.statements(number, step):
            # the reference fails to rewrite files where an inlined table lacks a column; it gives rows new ids where it
            # merges files of an INSERT and an UPDATE
            alone = ("restore", "transaction", "again_at_once", "rewrite_data_files", "merge_adjacent_files")
            if step.ours or any(name in f"{step.kind} {sql}" for name in alone):
                self.session.sql(sql)
            else:
                with self.attached():
                    self.reference.execute(sql)
        self.observe()

    def revert(self, number: int, step: Step) -> None:
        """Takes a snapshot back that changed the table; one that cannot be taken back changes nothing."""
        later = [at for at in self.kept if at > self.first]
        if not later:
            return
        refusals = (dl.UsageError, dl.UnsupportedFeatureError, dl.SnapshotNotFoundError, dl.EntryExistsError)
        with contextlib.suppress(*refusals):
            chosen = later[(step.low + number) % len(later)]
            self.session.revert(chosen, on_conflict="keep" if step.ours else "revert")

    def statements(self, number: int, step: Step) -> list[str]:
        table = self.name()
        names = [column.name for column in self.session.table(table).schema]
        others = [name for name in names if name != "k"]
        chosen = others[step.low % len(others)] if others else None
        where = f"WHERE k BETWEEN {step.low} AND {step.low + step.width}"
        update = f"UPDATE {table} SET {chosen} = '{number}' {where}" if chosen else f"UPDATE {table} SET k = k {where}"
        match step.kind:
            case "insert":
                return [f"INSERT INTO {table} (k) SELECT i FROM range({step.low}, {step.low + step.width + 1}) r(i)"]
            case "update":
                return [update]
            case "same":
                return [f"UPDATE {table} SET k = k {where}"]
            case "delete":
                return [f"DELETE FROM {table} {where}"]
            case "add":
                kind, default = [("INTEGER", "7"), ("VARCHAR", "NULL"), ("VARCHAR", "'x'")][step.low % 3]
                return [f"ALTER TABLE {table} ADD COLUMN c{number} {kind} DEFAULT {default}"]
            case "drop":
                return [f"ALTER TABLE {table} DROP COLUMN {chosen}"] if chosen and len(others) > 1 else []
            case "again" | "again_at_once":
                # another column of that name
                if not chosen or len(names) < 2:
                    return []
                both = [
                    f"ALTER TABLE {table} DROP COLUMN {chosen}",
                    f"ALTER TABLE {table} ADD COLUMN {chosen} VARCHAR DEFAULT '{number}'",
                ]
                return ["BEGIN", *both, "COMMIT"] if step.kind == "again_at_once" else both
            case "files":
                path = f"{self.folder}/added_{number}.parquet"
                listed = f"i::INTEGER AS k, 'f{number}' AS {chosen}" if chosen and step.low % 2 else "i::INTEGER AS k"
                if chosen and self.session.table(table).schema[names.index(chosen)].data_type.name != "varchar":
                    listed = "i::INTEGER AS k"
                self.reference.execute(
                    f"COPY (SELECT {listed} FROM range({step.low}, {step.low + step.width + 1}) r(i)) TO '{path}'"
                )
                return [f"CALL ducklake_add_data_files('lake', '{table}', '{path}', allow_missing => true)"]
            case "rename":
                return [f"ALTER TABLE {table} RENAME COLUMN {chosen} TO r{number}"] if chosen else []
            case "retype":
                return [f"ALTER TABLE {table} ALTER k SET DATA TYPE BIGINT"]
            case "rename_table":
                return [f"ALTER TABLE {table} RENAME TO t{number}"]
            case "transaction":
                kind = f"ALTER TABLE {table} ADD COLUMN c{number} INTEGER DEFAULT 3"
                insert = f"INSERT INTO {table} (k) SELECT i FROM range({step.low}) r(i)"
                return [
                    "BEGIN",
                    *([kind] if step.width else []),
                    insert,
                    update,
                    f"DELETE FROM {table} WHERE k = 1",
                    "COMMIT",
                ]
            case "restore":
                there = [n for n in self.kept if self.states[n].columns]
                return [f"CALL lake.restore('{table}', to => {there[step.low % len(there)]})"]
            case "expire":
                ids = self.kept[:-1] if step.width == 15 else self.kept[1 + len(self.kept) // 2 : -1]
                listed = [n for n in ids if n % 3 == step.low % 3 or step.width == 15][: step.low + 1]
                return [f"CALL ducklake_expire_snapshots('lake', versions => {listed})"] if listed else []
        return [MAINTENANCE[step.low % len(MAINTENANCE)]]


def column_begin(history: History, column_id: int, at: int) -> int:
    """The snapshot since which the table has had a column."""
    begin = at
    while begin - 1 in history.states and column_id in history.states[begin - 1].columns:
        begin -= 1
    return begin


def check_blame(history: History, at: int) -> None:
    state = history.states[at]
    found = history.session.table(table_name(history, at), at=at).blame().fetchall()
    assert [(row_id, name) for row_id, name, *_ in found] == [
        (row_id, name) for row_id in sorted(state.rows) for name in state.columns.values()
    ]
    ids = {name: column_id for column_id, name in state.columns.items()}
    authors = {info.info.snapshot_id: info.info.author for info in history.session.snapshots()}
    for row_id, name, value, previous, snapshot_id, time, author, *_ in found:
        column_id = ids[name]
        cell = state.rows[row_id][column_id]
        assert value == cell, (row_id, name)
        begin = column_begin(history, column_id, at)
        number = at
        while number > begin and history.states[number - 1].rows.get(row_id, {}).get(column_id, "no") == cell:
            number -= 1
        if snapshot_id is None:
            assert number - 1 not in history.kept, (row_id, name, number)
            assert (previous, time, author) == (None, None, None)
            continue
        assert snapshot_id == number, (row_id, name, number, snapshot_id)
        before = history.states[number - 1].rows.get(row_id, {}).get(column_id) if number > begin else None
        assert previous == before, (row_id, name)
        assert (time is None) == (number not in authors)


def table_name(history: History, at: int) -> str:
    (info,) = history.session.tables(at=at)
    return str(info.table.name)


#: The kind of a change, and each changed cell before and after, by column name.
Line = tuple[str, dict[str, tuple[str | None, str | None]]]


def lines(history: History, row_id: int, at: int) -> dict[int, Line]:
    """The kind and the changes of each snapshot that changed a row, under the columns of a snapshot."""
    columns = history.states[at].columns
    begins = {column_id: column_begin(history, column_id, at) for column_id in columns}
    found: dict[int, Line] = {}
    for number in range(1, at + 1):
        old, new = (history.states[n].rows.get(row_id) for n in (number - 1, number))
        here = {c: name for c, name in columns.items() if begins[c] <= number}
        if new is None and old is None:
            continue
        if old is None:
            assert new is not None
            found[number] = ("insert", {name: (None, new[c]) for c, name in here.items()})
        elif new is None:
            found[number] = ("delete", {name: (old[c], None) for c, name in here.items() if begins[c] < number})
        else:
            changed = {name: (old[c], new[c]) for c, name in here.items() if begins[c] < number and old[c] != new[c]}
            added = {name: (None, new[c]) for c, name in here.items() if begins[c] == number}
            if changed or added:
                found[number] = ("update" if changed else "alter", changed | added)
    return found


def check_life(history: History, row_id: int, at: int) -> None:
    expected = lines(history, row_id, at)
    known = {n for n in expected if {n - 1, n} <= set(history.kept)}
    table = history.session.table(table_name(history, at), at=at)
    try:
        rows = table.life(row_id).fetchall()
    except dl.EntryNotFoundError:
        assert not any(row_id in history.states[n].rows for n in history.kept if n <= at), row_id
        return
    found = {}
    for snapshot_id, kind, *_, changes in rows:
        found[snapshot_id] = (kind, {one["column"]: (one["before"], one["after"]) for one in changes})
    assert len(found) == len(rows)
    assert known <= found.keys(), (row_id, known - found.keys())
    for snapshot_id, (kind, changes) in found.items():
        truth, cells = expected[snapshot_id]
        # an update of equal values beside an added column leaves a version of the row
        assert kind == truth or {kind, truth} == {"update", "alter"}, (row_id, snapshot_id)
        assert changes == cells, (row_id, snapshot_id)


@contextlib.contextmanager
def new_history(
    catalog: str, new_catalog: Callable[..., str], reference: duckdb.DuckDBPyConnection
) -> Iterator[History]:
    """Makes a lake of its own for one example."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    prefix = "sqlite:" * (catalog == "sqlite")
    uri = new_catalog(catalog) if catalog == "postgres" else f"ducklake:{prefix}{folder}/lake.db"
    try:
        with dl.connect(uri, alias="lake", data_path=f"{folder}/data", engine="duckdb") as session:
            session.author = "us"
            yield History(uri, session, reference, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@settings(
    max_examples=examples(6),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=histories(), data=st.data())
def test_blame_and_life_are_a_replay(
    history: list[Step],
    data: st.DataObject,
    catalog: str,
    new_catalog: Callable[..., str],
    reference: duckdb.DuckDBPyConnection,
) -> None:
    with new_history(catalog, new_catalog, reference) as made:
        vectors = made.draw_vectors(data)
        for number, step in enumerate(history):
            if not vectors or step.kind != "restore":
                made.apply(number, step)
        there = [n for n in made.kept if made.states[n].columns]
        for at in {there[-1], there[-1] if vectors else data.draw(st.sampled_from(there))}:
            check_blame(made, at)
            ids = sorted({row_id for n in range(at + 1) for row_id in made.states[n].rows})
            for row_id in data.draw(st.lists(st.sampled_from(ids), max_size=5, unique=True)) if ids else ():
                check_life(made, row_id, at)
