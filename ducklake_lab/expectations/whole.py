"""Checks a whole table, or the rows since a snapshot, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from datetime import UTC, datetime

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.engine.in_process import engine
from ducklake_lab.engine.placement import Engines
from ducklake_lab.expectations.asking import Asking
from ducklake_lab.expectations.finding import Finder, RowsOf, find_target
from ducklake_lab.expectations.outcomes import Outcome
from ducklake_lab.expectations.settling import Answer
from ducklake_lab.expectations.states import SinceRows, TableRows
from ducklake_lab.model.changes import OF_ROWS, parse_changes
from ducklake_lab.model.entries import SnapshotInfo, Table
from ducklake_lab.model.expectations import Expectation, expectations_of
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.state import CatalogState

#: Runs the query of an expectation of a table.
AskHere = Callable[[Table, Expectation], Answer]


class WholeCheck:
    """Checks the expectations of a table on rows that it has.

    Args:
        rows: the table, with the rows to check.
        rows_of: returns the rows of another table in the same state.
        ask: runs the query of an expectation.
    """

    def __init__(
        self,
        rows: TableRows,
        engines: Engines | None,
        rows_of: RowsOf,
        ask: AskHere,
    ) -> None:
        self._rows = rows
        self._engines = engines
        self._rows_of = rows_of
        self._ask = ask

    def run(self) -> list[Outcome]:
        """Returns an outcome for each expectation, also where no row violates it.

        Raises:
            CatalogError: an expectation names what was dropped, or is not readable.
        """
        with ExitStack() as stack:
            finder = Finder(Asking(self._engines, stack), self._rows.state, self._rows_of)
            return [self._outcome(finder, expectation) for expectation in expectations_of(self._rows.table)]

    def _outcome(self, finder: Finder, expectation: Expectation) -> Outcome:
        rows = self._rows
        target = find_target(rows.state, expectation) if expectation.kind == "references" else None
        shown = expectation.shown(rows.table, rows.state.qualified_name(target) if target is not None else None)
        if expectation.kind == "fresh":
            age = too_old(rows.lake, rows.table, rows.state.snapshot.snapshot_id, expectation.sql)
            return Outcome(rows.title, expectation, shown, 1 if age else 0, why=age)
        if expectation.kind == "query":
            answer = self._ask(rows.table, expectation)
            return Outcome(rows.title, expectation, shown, answer.count, answer.rows if answer.count else None)
        violating = finder.find(rows, expectation)
        first = finder.first(rows, violating.places) if violating.places is not None else None
        return Outcome(rows.title, expectation, shown, violating.count, first)


def check_since(
    lake: Lake,
    before: CatalogState,
    after: CatalogState,
    changed: Collection[str],
    engines: Engines | None,
    ask: AskHere,
) -> list[Outcome]:
    """Returns the outcomes of the expectations of changed tables on the rows that came between two states.

    Rows of other tables whose referenced rows went are an outcome of their own. Queries answer for the later state as a whole.

    Args:
        changed: names of tables in the later state, with their schemas.
        ask: runs the query of an expectation in the later state.

    Raises:
        CatalogError: an expectation names what was dropped, or is not readable.
    """

    def rows_of(table: Table) -> TableRows:
        return TableRows(lake, after, table)

    def since(table: Table) -> TableRows:
        is_new = table.table_id not in before.tables
        return rows_of(table) if is_new else SinceRows(lake, after, table, before=before)

    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        finder = Finder(Asking(engines, stack), after, rows_of)
        for table in after.tables.expecting():
            if after.qualified_name(table) in changed:
                outcomes += WholeCheck(since(table), engines, rows_of, ask).run()
            for expectation in expectations_of(table):
                target = find_target(after, expectation) if expectation.kind == "references" else None
                if target is not None and after.qualified_name(target) in changed:
                    orphaned = finder.orphaned(rows_of(table), expectation, since(target))
                    outcomes += [orphaned] if orphaned is not None else []
    return outcomes


def too_old(lake: Lake, table: Table, snapshot_id: int, interval: str) -> str:
    """Returns how old the rows of a table are, if that is more than an interval; "" for a fresh table."""
    last = _last_change(lake, table, snapshot_id)
    if last is None:
        return "no snapshot that changed its rows is known"
    times = pa.table(
        {"t": pa.array([last.snapshot_time], pa.timestamp("us", "UTC")), "n": pa.array([datetime.now(UTC)])}
    )
    answer = engine.evaluate(
        f"SELECT t + CAST({quote_text(interval)} AS INTERVAL) < n AS old, CAST(n - t AS VARCHAR) AS age FROM times",
        {"times": times},
    ).to_pylist()[0]
    if not answer["old"]:
        return ""
    return f"its rows changed last in snapshot {last.snapshot_id}, {answer['age'].split('.')[0]} ago"


def _last_change(lake: Lake, table: Table, snapshot_id: int) -> SnapshotInfo | None:
    with lake.connect() as connection:
        for info in reversed(read_history(connection, between=(0, snapshot_id))):
            changes = parse_changes(info.changes_made)
            if any(change.value == table.table_id and change.kind in OF_ROWS for change in changes):
                return info
    return None
