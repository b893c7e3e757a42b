"""The rows of a table that a check looks at: those that came, those beside them, and what they were before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID, StagedData, StagedRows
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changes import compare
from ducklake_lab.scan.column_history import history_of
from ducklake_lab.scan.plan import ChangePlan, InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.transaction.transaction import Transaction

#: Row ids of rows that the transaction inlines, during a check; others of theirs are provisional, and not unique.
_FIRST = -(1 << 40)


@dataclass(frozen=True)
class TableRows:
    """The rows of a table in a state, all of which came.

    Attributes:
        staged: the changes of the transaction whose state it is.
        committed: the table is in the catalog.
    """

    lake: Lake
    state: CatalogState
    table: Table
    staged: StagedData | None = None
    committed: bool = True

    @property
    def title(self) -> str:
        return self.state.qualified_name(self.table)

    def all(self, columns: Sequence[Column], predicate: Predicate | None = None) -> ScanPlan:
        """Returns the read of all rows."""
        return self._plan(columns, predicate, self.staged)

    def came(self, columns: Sequence[Column]) -> ScanPlan:
        """Returns the read of the rows to check."""
        return self.all(columns)

    def beside(self, columns: Sequence[Column], predicate: Predicate | None = None) -> ScanPlan | None:
        """Returns the read of the other rows; None where there are none."""
        return None

    def changes(self, columns: Sequence[Column]) -> ChangePlan | None:
        """Returns the rows that came and those that went; None where the whole table came."""
        return None

    def _plan(self, columns: Sequence[Column], predicate: Predicate | None, staged: StagedData | None) -> ScanPlan:
        table = replace(self.table, columns=tuple(columns))
        with self.lake.connect() as connection:
            return plan_scan(
                self.lake,
                connection,
                self.state,
                table,
                predicate=predicate,
                staged=staged,
                committed=self.committed,
            )


@dataclass(frozen=True)
class SinceRows(TableRows):
    """Rows of a table; those came whose snapshots an earlier state lacks. Rows of a rewritten file came with it.

    Attributes:
        before: the earlier state, which has the table.
    """

    before: CatalogState | None = None

    def _earlier(self, columns: Sequence[Column]) -> ScanPlan:
        assert self.before is not None  # a check since a snapshot knows it
        return TableRows(self.lake, self.before, self.table).all(columns)

    @property
    def _since(self) -> int:
        assert self.before is not None  # a check since a snapshot knows it
        return self.before.snapshot.snapshot_id

    def came(self, columns: Sequence[Column]) -> ScanPlan:
        inserted = self.changes(columns).inserted
        files = []
        for file in inserted.files:
            if not self._is_older(file):
                files.append(file)
            elif file.rows_from is not None or self._is_mixed(file):
                files.append(replace(file, rows_from=self._since + 1))
        return replace(inserted, files=tuple(files))

    def _is_older(self, file: ScanFile) -> bool:
        """Returns whether a file has rows of the earlier state; merges and flushes write such files anew."""
        return file.data_file.begin_snapshot <= self._since

    def _is_mixed(self, file: ScanFile) -> bool:
        """Returns whether an older file also has rows that came; it has the snapshot of each row then."""
        last = file.data_file.partial_max
        return last is not None and last > self._since

    def changes(self, columns: Sequence[Column]) -> ChangePlan:
        """Returns the files and rows that only one of the states has."""
        return compare(self._earlier(columns), self.all(columns))

    def beside(self, columns: Sequence[Column], predicate: Predicate | None = None) -> ScanPlan | None:
        old = {file.data_file.data_file_id: file for file in self._earlier(columns).files}
        after, kept = self.all(columns, predicate), []
        for file in after.files:
            earlier = old.get(file.data_file.data_file_id)
            if earlier is not None:
                kept.append(replace(file, rows_up_to=earlier.rows_up_to))
            elif self._is_older(file):
                kept.append(replace(file, rows_up_to=self._since) if self._is_mixed(file) else file)
        inlined = after.inlined
        if inlined is not None:
            rows = inlined.rows.filter(pc.less_equal(inlined.rows.column(SNAPSHOT_ID), self._since))
            inlined = InlinedRows(rows) if rows.num_rows else None
        return replace(after, files=tuple(kept), inlined=inlined)


@dataclass(frozen=True)
class StagedTable(TableRows):
    """Rows of which those came that a transaction stages.

    Attributes:
        base: the state that the transaction began on.
    """

    base: CatalogState | None = None

    @classmethod
    def of(cls, transaction: Transaction, table: Table) -> StagedTable:
        """Returns the rows of a table as the transaction sees them now."""
        return cls(
            transaction.lake,
            transaction.state,
            table,
            transaction.data.get(table.table_id),
            transaction.is_committed(table),
            transaction.base,
        )

    def came(self, columns: Sequence[Column]) -> ScanPlan:
        own = StagedData() if self.staged is None else self.staged
        alone = replace(own, rows=self._numbered, flushed={}, flushed_tables={}, compactions={})
        table = replace(self.table, columns=tuple(columns))
        with self.lake.connect() as connection:
            plan = plan_scan(self.lake, connection, self.state, table, staged=alone, committed=False)
            versions = self.lake.column_versions(connection, table.table_id) if self.committed else ()
        history = history_of(table.columns, versions)
        known = replace(plan.table, columns=history.columns)
        return replace(plan, table=known, reused_names=history.reused, retyped=history.retyped)

    def beside(self, columns: Sequence[Column], predicate: Predicate | None = None) -> ScanPlan | None:
        if not self.committed:
            return None
        staged = self.staged
        return self._plan(columns, predicate, replace(staged, files={}, rows=[]) if staged is not None else None)

    # What rows were before

    @property
    def updates(self) -> bool:
        """Returns whether a row that came may be a new version of an earlier one."""
        return self.staged is not None and self.staged.keeps_row_ids and self._earlier_table is not None

    @property
    def _earlier_table(self) -> Table | None:
        return self.base.tables.get(self.table.table_id) if self.base is not None else None

    def earlier(self, columns: Sequence[Column]) -> ScanPlan:
        """Returns the read of the rows, as they were, of all files from which rows go, and the inlined rows that go."""
        assert self.base is not None and self.staged is not None  # only where there are updates or deletions
        plan = TableRows(self.lake, self.base, self.table).all(columns)
        touched = {*self.staged.deletes, *self.staged.dropped_files}
        files = tuple(file for file in plan.files if file.data_file.data_file_id in touched)
        inlined = plan.inlined
        if inlined is not None:
            gone = pa.array(sorted(self.staged.deleted_row_ids), pa.int64())
            rows = inlined.rows.filter(pc.is_in(inlined.rows.column(ROW_ID), gone))
            inlined = InlinedRows(rows) if rows.num_rows else None
        return replace(plan, files=files, inlined=inlined)

    def changes(self, columns: Sequence[Column]) -> ChangePlan | None:
        if self._earlier_table is None or self.base is None:
            return None
        return compare(TableRows(self.lake, self.base, self.table).all(columns), self.all(columns))

    # Inlined rows

    @cached_property
    def _numbered(self) -> list[StagedRows]:
        """The rows to inline, with row ids that no other row has."""
        numbered, start = [], _FIRST
        for batch in self.staged.rows if self.staged is not None else ():
            ids = pa.array(range(start, start + batch.rows.num_rows), pa.int64())
            at = batch.rows.schema.get_field_index(ROW_ID)
            numbered.append(replace(batch, rows=batch.rows.set_column(at, ROW_ID, ids)))
            start += batch.rows.num_rows
        return numbered

    def true_ids(self) -> Mapping[int, int]:
        """Returns the row ids of new versions of rows that are inlined, by their ids during the check."""
        true_ids: dict[int, int] = {}
        for numbered, batch in zip(self._numbered, self.staged.rows if self.staged is not None else (), strict=True):
            if batch.updated:
                ids = zip(numbered.rows.column(ROW_ID).to_pylist(), batch.rows.column(ROW_ID).to_pylist(), strict=True)
                true_ids.update(ids)
        return true_ids

    def keeping_files(self) -> list[int]:
        """Returns the ids of new files that keep the ids of their rows."""
        files = self.staged.files if self.staged is not None else {}
        return [local_id for local_id, staged in files.items() if staged.file.has_row_ids]

    def without(self, ids: Sequence[int]) -> list[StagedRows]:
        """Returns the rows to inline without those of some ids during the check."""
        gone = pa.array(ids, pa.int64())
        kept = []
        for numbered, batch in zip(self._numbered, self.staged.rows if self.staged is not None else (), strict=True):
            rest = batch.rows.filter(pc.invert(pc.is_in(numbered.rows.column(ROW_ID), gone)))
            if rest.num_rows:
                kept.append(replace(batch, rows=rest))
        return kept
