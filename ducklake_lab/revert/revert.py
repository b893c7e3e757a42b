"""Plans and stages the revert of one snapshot: its changes are taken back, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_history_of
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import (
    EntryNotFoundError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
    UsageError,
    did_you_mean,
)
from ducklake_lab.maintenance.restore import restore
from ducklake_lab.merging.conflicts import OnConflict, Rules, Unsettled
from ducklake_lab.merging.entries import changed_entries, titles_of_schemas
from ducklake_lab.merging.merge import Line, Merge
from ducklake_lab.model.changes import MAINTENANCE, OF_ROWS, parse_changes
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.revert.conflicts import conflict_error, words_of
from ducklake_lab.scan.history import snapshot_before
from ducklake_lab.transaction.transaction import Transaction

#: Row ids of one table, or of several by name.
RowChoice = Collection[int] | Mapping[str, Collection[int]] | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Choice of changes to revert.

    Attributes:
        tables: names of tables; None for everything that it changed.
        rows: row ids, of which only rows are taken back; None for all rows, and definitions.
        on_conflict: rules for what a later snapshot changed again.
    """

    tables: Sequence[str] | None = None
    rows: RowChoice = None
    on_conflict: OnConflict = None


class Revert:
    """The revert of one snapshot in a transaction, whose own changes count as younger ones.

    Raises:
        SnapshotNotFoundError: the snapshot before has expired, or the snapshot is younger than the transaction.
        UnsupportedFeatureError: it is the first snapshot.
        UsageError: it changed nothing that can be taken back.
    """

    def __init__(self, transaction: Transaction, snapshot: Snapshot, engines: Engines) -> None:
        self._transaction = transaction
        self._lake: Lake = transaction.lake
        self._engines = engines
        self.snapshot_id = snapshot.snapshot_id
        if self.snapshot_id > transaction.base.snapshot.snapshot_id:
            raise SnapshotNotFoundError(
                f"Snapshot {self.snapshot_id} is younger than the open transaction; COMMIT or ROLLBACK first."
            )
        with self._lake.connect() as connection:
            known = snapshot_before(connection, self.snapshot_id)
            if self.snapshot_id == 0:
                raise UnsupportedFeatureError("Snapshot 0 made the lake, and is not reverted.")
            if known != self.snapshot_id - 1:
                raise SnapshotNotFoundError(
                    f"Snapshot {self.snapshot_id} is not reverted: snapshot {self.snapshot_id - 1} has expired, and with it "
                    "what was there before."
                )
            self._changes = parse_changes(read_history_of(connection, self.snapshot_id).changes_made)
            self._before = self._lake.state(connection, self._lake.snapshot(connection, known))
            self._then = self._lake.state(connection, snapshot)
        self._check_changes()
        self._touched = self._touched_tables()

    def _check_changes(self) -> None:
        kinds = {change.kind for change in self._changes}
        if not kinds:
            raise UsageError(f"Snapshot {self.snapshot_id} changed nothing, so that there is nothing to revert.")
        if kinds <= MAINTENANCE:
            names = self._then.table_names()
            tables = sorted({names.get(c.value, f"#{c.value}") for c in self._changes if isinstance(c.value, int)})
            raise UnsupportedFeatureError(
                f"Snapshot {self.snapshot_id} only wrote files of {', '.join(tables)} anew ({', '.join(sorted(kinds))}) and "
                "changed no row, so that there is nothing to revert."
            )

    def _touched_tables(self) -> dict[int, str]:
        """The names of the tables that the snapshot changed, by id; today's where they are there."""
        before, then, now = self._before.tables, self._then.tables, self._transaction.state
        table_ids = {
            change.value
            for change in self._changes
            if isinstance(change.value, int) and change.kind in {*OF_ROWS, "altered_table"}
        }
        common = before.keys() & then.keys()
        table_ids = {i for i in table_ids if i in common}
        table_ids |= {i for i in common if before.names[i] != then.names[i]}
        table_ids |= before.keys() ^ then.keys()
        names = self._before.table_names() | self._then.table_names() | now.table_names()
        return {i: names[i] for i in sorted(table_ids)}

    def tables(self, wanted: Wanted) -> list[int]:
        """The ids of the tables that it would change."""
        return list(self._chosen(wanted))

    def run(self, wanted: Wanted) -> None:
        """Stages the changes.

        Raises:
            RevertConflictError: a later snapshot changed something again, and no rule settles it; nothing is staged.
            UnsupportedFeatureError: something cannot be taken back; it is named.
            EntryNotFoundError, EntryExistsError: a name that is needed is not there, or is taken.
        """
        words, unsettled = words_of(self.snapshot_id), Unsettled()
        states = (self._before, self._then, self._transaction.state)
        rules = Rules(wanted.on_conflict, words, titles_of_schemas(*states))
        tables = self._chosen(wanted)
        rules.check([*tables.values(), *changed_entries(self._before, self._then)])
        line = Line(self._lake, self._then, self._before)
        with ExitStack() as stack:
            merge = Merge(self._transaction, line, self._then, self._engines, words, rules, unsettled, stack)
            if wanted.tables is None and wanted.rows is None:
                merge.plan_entries()
            for table_id, title in tables.items():
                row_ids = self._row_ids(wanted.rows, tables, title)
                if wanted.rows is None or row_ids is not None:
                    merge.plan_table(table_id, title, row_ids)
            if unsettled.total:
                raise conflict_error(self.snapshot_id, unsettled)
            merge.stage(self._bring_back)

    def _bring_back(self, table: Table) -> None:
        """Stages a table that was dropped, as it was."""
        transaction = self._transaction
        before = replace(self._before, schemas={**transaction.state.schemas, **self._before.schemas})
        restored = restore(transaction, before, table, self._engines)
        if restored is not None:
            transaction.restored[table.table_id] = restored

    def _chosen(self, wanted: Wanted) -> dict[int, str]:
        """The tables to revert."""
        if wanted.tables is None:
            return self._touched
        chosen: dict[int, str] = {}
        for name in wanted.tables:
            folded = name.casefold()
            matches = {i: title for i, title in self._touched.items() if folded == title.casefold()} or {
                i: title for i, title in self._touched.items() if folded == title.rpartition(".")[2].casefold()
            }
            if not matches:
                raise EntryNotFoundError(
                    f"Snapshot {self.snapshot_id} did not change {name}.{did_you_mean(name, self._touched.values())}"
                )
            chosen |= matches
        return chosen

    def _row_ids(self, rows: RowChoice, tables: Mapping[int, str], title: str) -> Collection[int] | None:
        if rows is None:
            return None
        if not isinstance(rows, Mapping):
            if len(tables) != 1:
                raise UsageError(
                    f"Snapshot {self.snapshot_id} changed {len(tables)} tables; say whose rows with tables=[…], or rows={{table: ids}}."
                )
            return rows
        named = {str(name).casefold(): ids for name, ids in rows.items()}
        for name in named:
            if not any(name in (known.casefold(), known.casefold().rpartition(".")[2]) for known in tables.values()):
                raise EntryNotFoundError(
                    f"Snapshot {self.snapshot_id} did not change {name}.{did_you_mean(name, tables.values())}"
                )
        return named.get(title.casefold(), named.get(title.casefold().rpartition(".")[2]))
