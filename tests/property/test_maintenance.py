"""Random histories of one table, changes and maintenance mixed, against a model and the reference after every step."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import ducklake_lab as dl
from tests.memory import FOLDER
from tests.reference import connect

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: row id -> (i, s)
State = dict[int, tuple[int, str]]

values = st.integers(0, 30)
letters = st.sampled_from("abc")


class Maintenance(RuleBasedStateMachine):
    """The lake, and what it should hold at each of its snapshots."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=FOLDER))
        self.uri = f"ducklake:{self.folder}/lake.ducklake"
        self.session = dl.connect(self.uri, alias="lake", data_path=f"{self.folder}/data", engine="duckdb")
        self.reference: duckdb.DuckDBPyConnection = connect()
        self.rows: State = {}
        self.next_row_id = 0
        self.history: dict[int, State] = {}
        # snapshots that make the reference tell rows as changed that are as they were
        self.rewrites: set[int] = set()
        self.whole_feed = True

    @initialize()
    def create(self) -> None:
        self.session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
        self.note()

    def teardown(self) -> None:
        assert not self.session.spark_started
        self.session.close()
        self.reference.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def snapshot(self) -> int:
        return self.session.current_snapshot().snapshot_id

    def note(self) -> None:
        """Whatever snapshot there is now holds the rows of now."""
        self.history.setdefault(self.snapshot(), dict(self.rows))

    def change(self, sql: str, rows: State) -> None:
        self.session.sql(sql)
        self.rows = rows
        self.note()

    # Changes

    @rule(count=st.sampled_from([1, 3, 12, 25]), first=values, letter=letters)
    def insert(self, count: int, first: int, letter: str) -> None:
        new = {self.next_row_id + n: (first + n, letter) for n in range(count)}
        self.next_row_id += count
        query = f"SELECT i::INTEGER, '{letter}' FROM range({first}, {first + count}) AS r(i)"
        self.change(f"INSERT INTO t {query}", {**self.rows, **new})

    @rule(low=values, width=st.sampled_from([0, 2, 15, 60]))
    def delete(self, low: int, width: int) -> None:
        kept = {row_id: row for row_id, row in self.rows.items() if not low <= row[0] <= low + width}
        self.change(f"DELETE FROM t WHERE i BETWEEN {low} AND {low + width}", kept)

    @rule(low=values, width=st.sampled_from([0, 2, 15]), letter=letters)
    def update(self, low: int, width: int, letter: str) -> None:
        new = {r: (i, letter) if low <= i <= low + width else (i, s) for r, (i, s) in self.rows.items()}
        self.change(f"UPDATE t SET s = '{letter}' WHERE i BETWEEN {low} AND {low + width}", new)

    @rule(steps=st.lists(st.tuples(values, st.booleans()), min_size=2, max_size=3))
    def several_in_one_transaction(self, steps: list[tuple[int, bool]]) -> None:
        rows = dict(self.rows)
        with self.session.transaction():
            for low, wide in steps:
                high = low + (15 if wide else 0)
                self.session.sql(f"DELETE FROM t WHERE i BETWEEN {low} AND {high}")
                rows = {row_id: row for row_id, row in rows.items() if not low <= row[0] <= high}
        self.rows = rows
        self.note()

    # Maintenance

    @rule()
    def flush(self) -> None:
        self.change("CALL lake.flush_inlined_data()", self.rows)

    @rule()
    def merge(self) -> None:
        self.change("CALL lake.merge_adjacent_files()", self.rows)

    @rule(threshold=st.sampled_from([0.0, 0.5]))
    def rewrite(self, threshold: float) -> None:
        before = self.snapshot()
        self.change(f"CALL lake.rewrite_data_files(delete_threshold => {threshold})", self.rows)
        if self.snapshot() != before:
            self.rewrites.add(self.snapshot())

    @precondition(lambda self: len(self.history) > 2)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        known = sorted(self.history)[:-1]
        chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
        self.session.sql(f"CALL lake.expire_snapshots(versions => {chosen})")
        for snapshot_id in chosen:
            del self.history[snapshot_id]
        # rows that only expired snapshots saw are gone
        self.whole_feed = False

    @rule()
    def clean_up(self) -> None:
        self.session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
        self.session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)")

    @precondition(lambda self: len(self.history) > 1)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        to = data.draw(st.sampled_from(sorted(self.history)))
        self.session.restore("t", to=to)
        self.rows = dict(self.history[to])
        self.note()

    # Checks

    @invariant()
    def every_snapshot_reads_as_it_was(self) -> None:
        if not self.history:
            return
        self.compare(lambda at: self.session.sql(_rows_at(at)).fetchall())
        self.session.sql("SELECT 1")
        self.reference.execute(f"ATTACH '{self.uri}' AS lake; USE lake")
        try:
            self.compare(lambda at: self.reference.execute(_rows_at(at)).fetchall())
        finally:
            self.reference.execute("USE memory; DETACH lake")

    def compare(self, read: Callable[[int], list[tuple[Any, ...]]]) -> None:
        for at, expected in self.history.items():
            found = read(at)
            assert len(found) == len(expected), at
            assert {row_id: (i, s) for row_id, i, s in found} == expected, at

    @invariant()
    def the_change_feed_leads_from_one_snapshot_to_the_next(self) -> None:
        known = sorted(self.history)
        for before, after in itertools.pairwise(known):
            if not self.whole_feed and after - before > 1:
                continue
            rows = dict(self.history[before])
            feed = self.session.sql(f"FROM lake.table_changes('t', {before + 1}, {after})").fetchall()
            for at in sorted({row[0] for row in feed}):
                changes = [row for row in feed if row[0] == at]
                for _, row_id, kind, i, s in changes:
                    if kind in ("delete", "update_preimage"):
                        assert rows.pop(row_id) == (i, s), (at, row_id)
                for _, row_id, kind, i, s in changes:
                    if kind in ("insert", "update_postimage"):
                        assert row_id not in rows, (at, row_id)
                        rows[row_id] = (i, s)
            if self.whole_feed or after not in self.rewrites:
                assert rows == self.history[after], (before, after)


def _rows_at(at: int) -> str:
    return f"SELECT rowid, i, s FROM t AT (VERSION => {at})"


Maintenance.TestCase.settings = settings(
    max_examples=6,
    stateful_step_count=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
TestMaintenance = Maintenance.TestCase
