"""Merges a branch: three versions of everything that changed on it since it began, or was merged last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import sqlalchemy as sa

from ducklake_lab.branches.arrivals import Arrivals, bring_table, names_of_arrivals, plan_arrivals, stage_arrivals
from ducklake_lab.branches.earlier import changes_of_earlier
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.branches import registry
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import MergeConflictError, SnapshotNotFoundError, UnsupportedFeatureError, UsageError
from ducklake_lab.merging.column_ids import ColumnIds
from ducklake_lab.merging.conflicts import OnConflict, Reason, Rules, Unsettled, Words
from ducklake_lab.merging.entries import changed_entries, titles_of_schemas
from ducklake_lab.merging.merge import Line, Merge
from ducklake_lab.merging.sides import RowIds
from ducklake_lab.model.commit_notes import Merged
from ducklake_lab.model.entries import SnapshotInfo, Table
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changed_tables import touched_tables
from ducklake_lab.transaction.transaction import Transaction

#: Conflicts that the text of an error names.
_NAMED = 5
_REASONS = {
    Reason.CELL: "changed on both sides",
    Reason.ROW_UPDATED: "updated on the branch, deleted in the lake",
    Reason.ROW_DELETED: "deleted on the branch, changed in the lake",
    Reason.COLUMN_DROPPED: "column dropped on the branch, changed in the lake",
    Reason.COLUMN_FILLED: "column changed on the branch, dropped in the lake",
    Reason.DEFINITION: "{0} changed on both sides",
    Reason.TABLE_DROPPED: "table dropped on the branch, changed in the lake",
    Reason.TABLE_CHANGED: "table changed on the branch, dropped in the lake",
    Reason.SCHEMA_DROPPED: "schema dropped on the branch, filled in the lake",
    Reason.SCHEMA_FILLED: "schema filled on the branch, dropped in the lake",
    Reason.VIEW_CHANGED: "view changed on both sides",
    Reason.VIEW_DROPPED: "view changed on the branch, dropped in the lake",
    Reason.NAME_TAKEN: "name given on both sides",
    Reason.VALUE_EXPIRED: "comes from the branch, and its value has expired",
}


@dataclass(frozen=True, slots=True)
class _Base:
    """Where a branch and its lake parted.

    Attributes:
        theirs: the branch's entries when it was merged last, or began.
        ours: the lake's entries when the branch began.
        first_id: the first id of entries that the branch gave out.
        first_rows: the first row ids that it gave out, by table id.
    """

    theirs: CatalogState
    ours: CatalogState
    first_id: int
    first_rows: Mapping[int, int]


def branch_words(name: str) -> Words:
    """Return the words of the merge of a branch."""
    return Words(f'the branch "{name}"', "ours", "theirs", f'come from the branch "{name}"', _REASONS)


class BranchMerge:
    """The merge of a branch into a transaction on the lake that it began on.

    Args:
        lake: the branch, opened.
        branch: the branch as its lake lists it.
        parent: the lake that it began on, which knows what was merged; by default that of the transaction.

    Attributes:
        since: the snapshot of the branch after which its changes are merged: it began there, or was merged up to it.
        tip: the branch's newest snapshot, which is merged.
        commits: the branch's snapshots in between, oldest first.
        conflicts: those that no rule settles, after `plan`.

    Raises:
        SnapshotNotFoundError: the snapshot at which the branch began has expired, in the lake or on the branch.
    """

    def __init__(
        self, transaction: Transaction, lake: Lake, branch: Branch, engines: Engines, parent: Lake | None = None
    ) -> None:
        self._transaction = transaction
        self._lake = lake
        self._branch = branch
        self._engines = engines
        self._words = branch_words(branch.name)
        self.conflicts = Unsettled()
        with (parent or transaction.lake).connect() as connection:
            self._merged = registry.read_merged(connection, branch, transaction.new_options)
        self.since = branch.snapshot_id if self._merged.snapshot_id is None else self._merged.snapshot_id
        with lake.connect() as connection:
            self._tip = lake.state(connection, lake.snapshot(connection))
            self.tip = self._tip.snapshot.snapshot_id
            self.commits: Sequence[SnapshotInfo] = read_history(connection, between=(self.since + 1, self.tip))
        self._base = self._parted()

    def _parted(self) -> _Base:
        branch, lake = self._branch, self._lake
        with lake.connect() as connection:
            began = state_of(lake, connection, branch.snapshot_id, f'on the branch "{branch.name}"')
            theirs = began
            if self.since != branch.snapshot_id:
                theirs = state_of(lake, connection, self.since, f'on the branch "{branch.name}"')
            rows = registry.first_row_ids(connection)
        ours = self._transaction.lake
        with ours.connect() as connection:
            base = state_of(ours, connection, branch.snapshot_id, f"in the lake {ours.alias}")
        if began.snapshot.snapshot_time != base.snapshot.snapshot_time:
            raise UsageError(
                f'The branch "{branch.name}" did not begin on {ours.title}; switch to the lake that it began on.'
            )
        return _Base(theirs, base, base.snapshot.next_catalog_id, rows)

    def run(self, on_conflict: OnConflict, done: str = "merged") -> None:
        """Stages what the branch changed.

        Args:
            done: what does not become of the branch, in the error of its conflicts.

        Raises:
            MergeConflictError: both sides changed the same, and no rule settles it; nothing is staged.
            UnsupportedFeatureError: something cannot be merged; it is named.
        """
        with ExitStack() as stack:
            merge, arrivals = self._plan(on_conflict, stack)
            if self.conflicts.total:
                raise conflict_error(f"{self._words.start} is not {done}", self.conflicts)
            transaction = self._transaction

            def bring(table: Table) -> None:
                bring_table(transaction, self._lake, self._tip, merge.with_targets(table), self._engines)

            merge.stage(bring)
            arrivals.tables = [*map(merge.with_targets, arrivals.tables)]
            stage_arrivals(transaction, arrivals, self._engines)

    @property
    def first_id(self) -> int:
        """The first id of entries that the branch gave out; those below mean the same in its lake."""
        return self._base.first_id

    def note(self) -> None:
        """Stages that the branch is merged up to its tip; another merge of it at the same time does not commit, then."""
        if self.tip == self.since:
            return
        transaction = self._transaction
        authors = dict.fromkeys(commit.author for commit in self.commits if commit.author)
        transaction.merged = Merged(self._branch.name, self.tip, tuple(authors))
        transaction.needed_options[self._merged.key] = self._merged.text
        transaction.set_option((None, None), self._merged.key, registry.MergedUpTo.value(self._branch, self.tip))

    def find_conflicts(self, on_conflict: OnConflict = None) -> Unsettled:
        """Return the conflicts that no rule settles; stages nothing."""
        with ExitStack() as stack:
            self._plan(on_conflict, stack)
        return self.conflicts

    def _plan(self, on_conflict: OnConflict, stack: ExitStack) -> tuple[Merge, Arrivals]:
        base, transaction = self._base, self._transaction
        self.conflicts = unsettled = Unsettled()
        states = (base.theirs, self._tip, transaction.state)
        rules = Rules(on_conflict, self._words, titles_of_schemas(*states))
        shared = _shared(self._tip, base.first_id)
        line = Line(self._lake, _shared(base.theirs, base.first_id), shared)
        titles = self._touched(shared)
        came = names_of_arrivals(self._tip, base.theirs, base.first_id)
        rules.check([*titles.values(), *changed_entries(line.tip, line.base), *came])
        merge = Merge(transaction, line, base.ours, self._engines, self._words, rules, unsettled, stack, ids=self._ids)
        merge.plan_entries()
        for table_id, title in titles.items():
            merge.plan_table(table_id, title)
        plan = merge.plan
        leaving = {table.table_id for table in plan.dropped} | set(plan.entries.gone_views + plan.entries.gone_macros)
        leaving |= {both.definition.table.table_id for both in plan.both if self._is_renamed(both.definition.table)}
        arrivals = plan_arrivals(
            self._lake, self._tip, base.theirs, base.first_id, transaction.state, leaving, self._words, rules, unsettled
        )
        return merge, arrivals

    def _touched(self, shared: CatalogState) -> dict[int, str]:
        """The names of the tables that the branch changed, by id; the lake's where it has them."""
        base, ours = self._base.theirs, self._transaction.state
        with self._lake.connect() as connection:
            touched = touched_tables(self._lake, connection, self.since, self.tip)
        self._check_later(touched)
        common = base.tables.keys() & shared.tables.keys()
        found = {i for i in common if i in touched or base.tables.names[i] != shared.tables.names[i]}
        found |= {i for i in base.tables.keys() ^ shared.tables.keys() if i < self._base.first_id}
        names = base.table_names() | shared.table_names() | ours.table_names()
        return {i: names[i] for i in sorted(found)}

    def _check_later(self, touched: set[int]) -> None:
        """Raises UnsupportedFeatureError where an entry that came with an earlier merge has changed on the branch since."""
        if self._is_first:
            return
        base = self._base
        shared = {*base.ours.schemas, *base.ours.tables, *base.ours.views, *base.ours.macros}

        def is_ours(key: int) -> bool:
            return key < base.first_id and key in shared

        for title, done in changes_of_earlier(base.theirs, self._tip, self._transaction.state, touched, is_ours):
            raise UnsupportedFeatureError(
                f'{title} came with an earlier merge of the branch "{self._branch.name}" and {done} on it since, '
                "which is not merged again; do it in the lake too, or make a new branch."
            )

    def _ids(self, theirs: Table, ours: Table) -> RowIds:
        """The ids of a table's columns and rows on both sides."""
        table_id = theirs.table_id
        with self._lake.connect() as connection:
            shared = last_column_id(connection, table_id, self._branch.snapshot_id)
        columns = [*theirs.all_columns(), *self._base.theirs.tables[table_id].all_columns()]
        if not self._is_first and any(column.column_id > shared for column in columns):
            raise UnsupportedFeatureError(
                f'{self._tip.qualified_name(theirs)} has columns that came on the branch "{self._branch.name}", which was '
                "merged before; such a table is not merged again. Make a new branch."
            )
        given = ColumnIds.give(theirs, shared, self._transaction.next_column_id(ours))
        return RowIds(given, self._base.first_rows.get(table_id, 0), placed=self._is_first)

    @property
    def _is_first(self) -> bool:
        """Whether the branch was not merged before."""
        return self._merged.snapshot_id is None

    def _is_renamed(self, table: Table) -> bool:
        ours = self._transaction.state.tables[table.table_id]
        return ours.name.casefold() != table.name.casefold()


def _shared(state: CatalogState, first_id: int) -> CatalogState:
    """The entries whose ids mean the same in the branch and its lake."""
    tables = state.tables
    for table_id in [i for i in tables.names if i >= first_id]:
        tables = tables.without(table_id)
    return replace(
        state,
        schemas={key: value for key, value in state.schemas.items() if key < first_id},
        tables=tables,
        views={key: value for key, value in state.views.items() if key < first_id},
        macros={key: value for key, value in state.macros.items() if key < first_id},
    )


def last_column_id(connection: sa.Connection, table_id: int, snapshot_id: int) -> int:
    """The highest column id that a table had up to a snapshot."""
    c = t.column
    query = sa.select(sa.func.max(c.c.column_id)).where(c.c.table_id == table_id, c.c.begin_snapshot <= snapshot_id)
    return connection.scalar(query) or 0


def state_of(lake: Lake, connection: sa.Connection, snapshot_id: int, where: str) -> CatalogState:
    """Return the entries of a snapshot with which a branch is compared.

    Raises:
        SnapshotNotFoundError: it has expired.
    """
    try:
        return lake.state(connection, lake.snapshot(connection, snapshot_id))
    except SnapshotNotFoundError:
        raise SnapshotNotFoundError(
            f"Snapshot {snapshot_id}, since which the branch is compared, has expired {where}; it cannot be merged. "
            "A patch of its diff brings changes over: session.diff(…).patch()."
        ) from None


def conflict_error(what: str, unsettled: Unsettled) -> MergeConflictError:
    """Return the error that lists conflicts with a branch."""
    noun = "conflict" if unsettled.total == 1 else "conflicts"
    return MergeConflictError(
        f"{what}: {unsettled.total:,} {noun}: {unsettled.named(_NAMED)}. Say "
        'on_conflict="ours" for what the lake has, or "theirs" for what the branch has.',
        tuple(unsettled),
        unsettled.total,
    )
