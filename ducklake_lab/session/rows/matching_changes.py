"""Changes of a table's rows for which a predicate may be true, from metadata alone."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.entries import Table
from ducklake_lab.model.predicates import COMPARED_ALIKE, Predicate
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.scan.plan import ChangePlan, InlinedRows, ScanPlan
from ducklake_lab.scan.pruning import column_at
from ducklake_lab.session.rows.join_pruning import condition_sql, paths_of


def changes_of(
    lake: Lake,
    connection: sa.Connection,
    state: CatalogState,
    table: Table,
    since: int,
    predicate: Predicate | None = None,
) -> ChangePlan:
    """Plans the change feed of a table after a snapshot, up to the snapshot of `state`.

    Args:
        predicate: files and inlined rows for which it cannot be true may be left out.
    """
    plan = plan_feed(lake, connection, state, table, since + 1, state.snapshot.snapshot_id, predicate)
    if predicate is None:
        return plan
    return replace(plan, inserted=_matching(plan.inserted, predicate), removed=_matching(plan.removed, predicate))


def _matching(scan: ScanPlan, predicate: Predicate) -> ScanPlan:
    """Returns a plan with those inlined rows for which the predicate is true."""
    if scan.inlined is None:
        return scan
    for path in paths_of(predicate):
        column = column_at(scan.table, path)
        if column is None or column.type not in COMPARED_ALIKE:
            return scan
    rows = scan.inlined.rows
    wanted = sorted({path[0].casefold() for path in paths_of(predicate)})
    tops = {column.name.casefold(): column.name for column in scan.columns}
    names = {name: f"c{i}" for i, name in enumerate(wanted)}
    read = pa.table([rows.column(tops[name]) for name in wanted], names=list(names.values()))
    read = read.append_column("place", pa.array(range(rows.num_rows), pa.int64()))
    places = engine.evaluate(f"SELECT place FROM t WHERE {condition_sql(predicate, names)}", {"t": read}).column(0)
    kept = rows.take(places)
    return replace(scan, inlined=InlinedRows(kept) if kept.num_rows else None)
