"""Changes of a table's rows for which a predicate may be true, from metadata alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.entries import Table
from ducklake_lab.model.predicates import COMPARED_ALIKE, Predicate
from ducklake_lab.model.staged import SNAPSHOT_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changed_snapshots import next_known, snapshots_by_file
from ducklake_lab.scan.changes import plan_feed, read_changed
from ducklake_lab.scan.column_history import history_of
from ducklake_lab.scan.partitioned import UNPARTITIONED
from ducklake_lab.scan.plan import ChangePlan, InlinedRows, ScanPlan
from ducklake_lab.scan.planner import partitioning_of
from ducklake_lab.scan.pruning import column_at, columns_of, may_match
from ducklake_lab.session.rows.join_keys import condition_sql, paths_of


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


class SharedChanges:
    """The changes of a table's rows after a snapshot, read once for many predicates; metadata alone.

    Args:
        known: the ids of the lake's snapshots after that one, ascending.
    """

    def __init__(
        self,
        lake: Lake,
        connection: sa.Connection,
        state: CatalogState,
        table: Table,
        since: int,
        known: Sequence[int],
    ) -> None:
        self._connection, self._table, self._known = connection, table, known
        found = read_changed(lake, connection, state, table, since + 1, state.snapshot.snapshot_id)
        self._snapshots = snapshots_by_file(found.inserted, found.removed, found.deleted, known)
        files = [*found.inserted, *found.removed, *(rows.after for rows in found.deleted)]
        self._files = {file.data_file.data_file_id: file.data_file for file in files}
        self._inlined = [rows for rows in (found.inserted_rows, found.removed_rows) if rows is not None]
        self._history = history_of(table.columns, lake.column_versions(connection, table.table_id))

    def snapshots(self, predicates: Sequence[Predicate]) -> list[set[int]]:
        """Returns for each predicate the snapshots that may have changed rows for which it is true."""
        of_files, of_rows = self._of_files(predicates), self._of_rows(predicates)
        return [next_known(one | other, self._known) for one, other in zip(of_files, of_rows, strict=True)]

    def _of_files(self, predicates: Sequence[Predicate]) -> list[set[int]]:
        found: list[set[int]] = [set() for _ in predicates]
        if not self._files:
            return found
        connection, table = self._connection, self._table
        columns = set().union(*(columns_of(table, predicate) for predicate in predicates))
        stats = read_column_stats(connection, table.table_id, columns, None, self._files) if columns else {}
        partitioning = UNPARTITIONED
        if any(file.partition_id is not None for file in self._files.values()):
            partitioning = partitioning_of(connection, table, self._history)
        for file_id, file in self._files.items():
            own, keys = stats.get(file_id, {}), partitioning.keys_of(file)
            for predicate, snapshots in zip(predicates, found, strict=True):
                if not snapshots >= self._snapshots[file_id] and may_match(
                    table, predicate, own, file.record_count, keys
                ):
                    snapshots |= self._snapshots[file_id]
        return found

    def _of_rows(self, predicates: Sequence[Predicate]) -> list[set[int]]:
        found: list[set[int]] = [set() for _ in predicates]
        sought = [predicate if is_compared_alike(self._table, predicate) else None for predicate in predicates]
        for rows in self._inlined:
            read, names = read_by(rows, self._table, [one for one in sought if one is not None])
            read = read.append_column("snapshot", rows.column(SNAPSHOT_ID))
            conditions = [condition_sql(one, names) if one is not None else "true" for one in sought]
            listed = "".join(f", bool_or({condition})" for condition in conditions)
            matches = engine.evaluate(f"SELECT snapshot{listed} FROM t GROUP BY snapshot", {"t": read})
            for snapshots, is_true in zip(found, matches.columns[1:], strict=True):
                snapshots.update(matches.column(0).filter(is_true).to_pylist())
        return found


def is_compared_alike(table: Table, predicate: Predicate) -> bool:
    """Returns whether DuckDB compares inlined values of a predicate's columns as the lake does."""
    columns = (column_at(table, path) for path in paths_of(predicate))
    return all(column is not None and column.type in COMPARED_ALIKE for column in columns)


def read_by(rows: pa.Table, table: Table, predicates: Sequence[Predicate]) -> tuple[pa.Table, dict[str, str]]:
    """Returns the columns of inlined rows that predicates read, and their names there by folded names."""
    wanted = sorted({path[0].casefold() for predicate in predicates for path in paths_of(predicate)})
    tops = {column.name.casefold(): column.name for column in table.columns}
    names = {name: f"c{i}" for i, name in enumerate(wanted)}
    return rows.select([tops[name] for name in wanted]).rename_columns([*names.values()]), names


def _matching(scan: ScanPlan, predicate: Predicate) -> ScanPlan:
    """Returns a plan with those inlined rows for which the predicate is true."""
    if scan.inlined is None or not is_compared_alike(scan.table, predicate):
        return scan
    rows = scan.inlined.rows
    read, names = read_by(rows, scan.table, [predicate])
    read = read.append_column("place", pa.array(range(rows.num_rows), pa.int64()))
    places = engine.evaluate(f"SELECT place FROM t WHERE {condition_sql(predicate, names)}", {"t": read}).column(0)
    kept = rows.take(places)
    return replace(scan, inlined=InlinedRows(kept) if kept.num_rows else None)
