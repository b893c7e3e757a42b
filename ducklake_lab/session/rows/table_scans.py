"""Plans the reads of tables, and keeps them from statement to statement."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.scans import Scan
from ducklake_lab.model.entries import Table
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.sql.plan import Source

#: Most scans kept for later statements, and most files of a kept scan.
_KEPT_SCANS, _KEPT_FILES = 256, 1000


class TableScans:
    """Reads of tables: which files and rows they read, with the open transaction's changes.

    Args:
        time_zone: returns the session's time zone, which casts in predicates depend on.
    """

    def __init__(self, lakes: Lakes, time_zone: Callable[[], str]) -> None:
        self._lakes = lakes
        self._time_zone = time_zone
        self._kept: dict[Hashable, Scan] = {}

    def plan(self, lake: Lake, state: CatalogState, table: Table, predicate: Predicate | None = None) -> ScanPlan:
        """Plans the read of a table, with the open transaction's changes unless it reads a snapshot."""
        transaction = self._lakes.transaction
        own = transaction if transaction is not None and state is transaction.state else None
        with lake.connect() as connection:
            return plan_scan(
                lake,
                connection,
                state,
                table,
                predicate=predicate,
                staged=own.peek(table) if own is not None else None,
                committed=own is None or own.is_committed(table),
            )

    def of_source(self, lake: Lake, state: CatalogState, table_id: int, source: Source) -> Scan:
        """Returns the planned read of a query's source; keeps reads of the newest snapshot until the lake changes."""
        table = state.tables[table_id]
        at = (lake, lake.cache.generation, state.snapshot.snapshot_id, self._time_zone())
        key = (*at, table, source.predicate, source.virtual, source.located)
        keeps = self._lakes.reads.is_newest(lake, state)
        scan = self._kept.pop(key, None) if keeps else None
        if scan is None:
            scan = Scan(self.plan(lake, state, table, source.predicate), source.virtual, source.located)
        if keeps and len(scan.plan.files) <= _KEPT_FILES:
            self._kept[key] = scan
            while len(self._kept) > _KEPT_SCANS:
                del self._kept[next(iter(self._kept))]
        return scan
