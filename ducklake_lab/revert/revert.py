"""Plans and stages the revert of one snapshot: its changes are taken back, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_history_of
from ducklake_lab.diff.compute import diff_sides
from ducklake_lab.diff.diff_states import Side
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import (
    EntryNotFoundError,
    RevertConflictError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
    UsageError,
    did_you_mean,
)
from ducklake_lab.maintenance.restore import restore
from ducklake_lab.model.changes import parse_changes
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.revert.conflicts import Conflict, Found, OnConflict, Rules, TableRules
from ducklake_lab.revert.definitions import Definition, Merging, with_new_keys
from ducklake_lab.revert.entries import EntryPlan, changed_entries, plan_entries
from ducklake_lab.revert.rows import Operations, RowChanges, Version
from ducklake_lab.scan.history import snapshot_before
from ducklake_lab.transaction.transaction import Transaction

_MAINTENANCE = frozenset(("inline_flush", "flushed_inlined", "compacted_table", "merge_adjacent", "rewrite_delete"))
#: Conflicts that the text of an error names.
_NAMED = 5

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


@dataclass(frozen=True, slots=True)
class _Both:
    """A table that is there before the snapshot, after it, and today."""

    changes: RowChanges
    before: Version
    now: Version
    definition: Definition
    operations: Operations | None


@dataclass(slots=True)
class _Plan:
    """Everything that becomes of a lake.

    Attributes:
        dropped: tables that go.
        both: tables that stay.
        back: tables that come back, as they were.
    """

    entries: EntryPlan = field(default_factory=EntryPlan)
    dropped: list[Table] = field(default_factory=list)
    both: list[_Both] = field(default_factory=list)
    back: list[Table] = field(default_factory=list)


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
        if kinds <= _MAINTENANCE:
            names = self._then.table_names()
            tables = sorted({names.get(c.value, f"#{c.value}") for c in self._changes if isinstance(c.value, int)})
            raise UnsupportedFeatureError(
                f"Snapshot {self.snapshot_id} only wrote files of {', '.join(tables)} anew ({', '.join(sorted(kinds))}) and "
                "changed no row, so that there is nothing to revert."
            )

    def _touched_tables(self) -> dict[int, str]:
        """The names of the tables that the snapshot changed, by id; today's where they are there."""
        before, then, now = self._before.tables, self._then.tables, self._transaction.state
        found = {
            change.value
            for change in self._changes
            if isinstance(change.value, int) and change.kind not in _MAINTENANCE and change.kind in _OF_TABLES
        }
        common = before.keys() & then.keys()
        found = {i for i in found if i in common}
        found |= {i for i in common if before.names[i] != then.names[i]}
        found |= before.keys() ^ then.keys()
        names = self._before.table_names() | self._then.table_names() | now.table_names()
        return {i: names[i] for i in sorted(found)}

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
        found = Found()
        with ExitStack() as stack:
            plan = self._plan(wanted, found, stack)
            if found.total:
                raise _conflict_error(self.snapshot_id, found)
            self._stage(plan)

    # Plan

    def _plan(self, wanted: Wanted, found: Found, stack: ExitStack) -> _Plan:
        rules = Rules(wanted.on_conflict)
        tables = self._chosen(wanted)
        entries = changed_entries(self._before, self._then)
        rules.check([*tables.values(), *entries])
        plan = _Plan()
        if wanted.tables is None and wanted.rows is None:
            plan.entries = plan_entries(
                self._before, self._then, self._transaction.state, self.snapshot_id, rules, found
            )
        for table_id, title in tables.items():
            row_ids = self._row_ids(wanted.rows, tables, title)
            if wanted.rows is not None and row_ids is None:
                continue
            self._plan_table(plan, table_id, title, rules.of(title), found, stack, row_ids)
        return plan

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

    def _plan_table(
        self,
        plan: _Plan,
        table_id: int,
        title: str,
        rules: TableRules,
        found: Found,
        stack: ExitStack,
        row_ids: Collection[int] | None,
    ) -> None:
        before, then, state = self._before, self._then, self._transaction.state
        old, made, today = (one.tables.get(table_id) for one in (before, then, state))
        if row_ids is not None and (old is None or made is None):
            raise UsageError(f"Snapshot {self.snapshot_id} created or dropped {title} as a whole; leave rows out.")
        if made is None:
            if old is not None and today is None:
                plan.back.append(old)
            return
        if old is None:
            if today is not None and self._goes(title, made, today, rules, found):
                plan.dropped.append(today)
            return
        if today is None:
            if rules.whole is None:
                found.add(Conflict(title, None, None, "", "", None, "table dropped since"))
            elif rules.whole == "revert":
                raise UnsupportedFeatureError(
                    f"{title} has been dropped since snapshot {self.snapshot_id}; restore it before reverting."
                )
            return
        rules.check(title, [*today.columns, *made.columns, *old.columns])
        changes = RowChanges(self._transaction, self._engines, stack, title, rules, found)
        versions = (
            Version(before, old),
            Version(then, made),
            Version(state, today, self._transaction.peek(today)),
        )
        definition = Definition(today)
        if row_ids is None:
            ids = {column.column_id for column in old.columns}
            known = {column.column_id for column in made.columns} - ids
            added = [column for column in today.columns if column.column_id in known]
            filled = changes.filled(versions[1], versions[2], added) if added else None
            definition = Merging(title, self.snapshot_id, rules, found, filled).merge(old, made, today)
            if definition.reshaped:
                changes.check_unwritten(versions[0], versions[2], definition.reshaped)
        operations = changes.find(*versions, definition, row_ids)
        plan.both.append(_Both(changes, versions[0], versions[2], definition, operations))

    def _goes(self, title: str, made: Table, today: Table, rules: TableRules, found: Found) -> bool:
        """Whether a table that the snapshot created is dropped."""
        if made == today and self._has_same_rows(title, made, today):
            return True
        if rules.whole is None:
            found.add(Conflict(title, None, None, None, made.name, today.name, "table created, and changed since"))
        return rules.whole == "revert"

    def _has_same_rows(self, title: str, made: Table, today: Table) -> bool:
        transaction, then = self._transaction, self._then
        after = Side(self._lake, transaction.state, today, transaction.peek(today))
        if transaction.state.snapshot.snapshot_id == self.snapshot_id and after.staged is None:
            return True
        return diff_sides(Side(self._lake, then, made), after, title, engines=self._engines).is_empty

    # Staging

    def _stage(self, plan: _Plan) -> None:
        transaction = self._transaction
        plan.entries.begin(transaction)
        for table in plan.dropped:
            transaction.drop_table(table)
        for both in plan.both:
            self._stage_table(both)
        then = replace(self._before, schemas={**transaction.state.schemas, **self._before.schemas})
        for table in map(plan.entries.in_schema, plan.back):
            restored = restore(transaction, then, table, self._engines)
            if restored is not None:
                transaction.restored[table.table_id] = restored
        plan.entries.end(transaction)

    def _stage_table(self, both: _Both) -> None:
        transaction, definition = self._transaction, both.definition
        table, today = definition.table, both.now.table
        if table != today:
            if table.name.casefold() != today.name.casefold():
                transaction.check_name_is_free(transaction.state.schemas[table.schema_id], table.name)
            table = with_new_keys(transaction, table)
            transaction.replace_table(table)
        if both.operations is not None:
            both.changes.stage(table, both.operations)
        if definition.returned:
            now = Version(transaction.state, table, transaction.peek(table))
            carried = both.changes.carry(both.before, now, definition)
            if carried is not None:
                both.changes.stage(table, carried)
        if definition.strict:
            now = Version(transaction.state, table, transaction.peek(table))
            both.changes.check_not_null(now, definition.strict)


_OF_TABLES = frozenset(
    ("inserted_into_table", "deleted_from_table", "altered_table", "inlined_insert", "inlined_delete")
)


def _conflict_error(snapshot_id: int, found: Found) -> RevertConflictError:
    listed = tuple(found)
    named = "; ".join(map(str, listed[:_NAMED]))
    more = f"; and {found.total - _NAMED:,} more" if found.total > _NAMED else ""
    noun = "conflict" if found.total == 1 else "conflicts"
    return RevertConflictError(
        f"Snapshot {snapshot_id} is not reverted: {found.total:,} {noun} with later snapshots: {named}{more}. Say "
        'on_conflict="keep" for today\'s values, or "revert" for the old ones.',
        listed,
        found.total,
    )
