"""Brings the changes of one snapshot of a branch, or of some of its rows, into the lake; the rest stays on the branch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace

from ducklake_lab.branches.merge import branch_words, conflict_error, last_column_id, state_of
from ducklake_lab.catalog.branches import registry
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import (
    EntryNotFoundError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
    UsageError,
    did_you_mean,
)
from ducklake_lab.merging.column_ids import ColumnIds
from ducklake_lab.merging.conflicts import OnConflict, Rules, Unsettled
from ducklake_lab.merging.entries import changed_entries, titles_of_schemas
from ducklake_lab.merging.merge import Line, Merge
from ducklake_lab.merging.sides import RowIds
from ducklake_lab.model.entries import Table
from ducklake_lab.scan.changed_tables import touched_tables
from ducklake_lab.scan.history import snapshot_before
from ducklake_lab.transaction.transaction import Transaction


class Pick:
    """Changes of rows that both sides know, picked from a branch.

    Rows, columns and entries that came on the branch are refused: a later merge would bring them again.

    Args:
        lake: the branch, opened.
        snapshot_id: whose changes; None for all since the branch began.

    Raises:
        SnapshotNotFoundError: the branch has no such snapshot, or the one before it has expired.
        UnsupportedFeatureError: the snapshot changed more than rows.
    """

    def __init__(
        self, transaction: Transaction, lake: Lake, branch: Branch, engines: Engines, snapshot_id: int | None
    ) -> None:
        self._transaction = transaction
        self._lake = lake
        self._branch = branch
        self._engines = engines
        title = f'the branch "{branch.name}"'
        self._words = branch_words(branch.name)
        if snapshot_id is not None:
            title = f"snapshot {snapshot_id} of {title}"
            self._words = replace(self._words, title=title, earlier="came on the branch")
        with lake.connect() as connection:
            since = branch.snapshot_id if snapshot_id is None else snapshot_before(connection, snapshot_id)
            if since is None or (snapshot_id is not None and since != snapshot_id - 1) or since < branch.snapshot_id:
                raise SnapshotNotFoundError(
                    f"{self._words.start} cannot be picked: it is not one of those since the branch began, or the one before "
                    "it has expired."
                )
            self._base = state_of(lake, connection, since, "on the branch")
            tip = lake.snapshot(connection, snapshot_id)
            self._tip = lake.state(connection, tip)
            self._first_rows = registry.first_row_ids(connection)
            self._touched = touched_tables(lake, connection, since, tip.snapshot_id)
        ours = transaction.lake
        with ours.connect() as connection:
            self._began = state_of(ours, connection, branch.snapshot_id, f"in the lake {ours.alias}")

    def run(self, rows: Mapping[str, Collection[int]] | None, on_conflict: OnConflict) -> None:
        """Stages the changes.

        Args:
            rows: row ids by the names of tables; None for all changed rows.

        Raises:
            MergeConflictError: the lake changed the same, and no rule settles it; nothing is staged.
            EntryNotFoundError: the branch changed no table of a name.
            UsageError: it changed several tables of a name.
            UnsupportedFeatureError: a row came on the branch.
        """
        chosen = self._chosen(rows)
        if rows is None:
            self._check_definitions()
        unsettled = Unsettled()
        rules = Rules(on_conflict, self._words, titles_of_schemas(self._tip, self._transaction.state))
        rules.check(list(chosen))
        line = Line(self._lake, self._base, self._tip)
        with ExitStack() as stack:
            merge = Merge(
                self._transaction,
                line,
                self._began,
                self._engines,
                self._words,
                rules,
                unsettled,
                stack,
                ids=self._ids,
            )
            for title, (table_id, row_ids) in chosen.items():
                merge.plan_table(table_id, title, row_ids)
            if unsettled.total:
                raise conflict_error(f"{self._words.start} is not picked", unsettled)
            for both in merge.plan.both:
                if both.operations is not None and (both.operations.files or both.operations.count("new")):
                    raise UnsupportedFeatureError(
                        f"{self._words.start} inserts rows into {both.title}, and a later merge would insert them again; "
                        "merge the branch, or pick rows that the lake has with rows=…."
                    )
            merge.stage(self._refuse)

    def _chosen(self, rows: Mapping[str, Collection[int]] | None) -> dict[str, tuple[int, Collection[int] | None]]:
        """The id of each changed table, and the rows that are wanted, by the table's name."""
        names = self._tip.table_names() | self._transaction.state.table_names()
        found = {names[i]: i for i in sorted(self._touched) if i in self._base.tables and i in self._tip.tables}
        if rows is None:
            return {title: (table_id, None) for title, table_id in found.items()}
        chosen: dict[str, tuple[int, Collection[int] | None]] = {}
        for name, row_ids in rows.items():
            folded = name.casefold()
            titles = [t for t in found if folded in (t.casefold(), t.rpartition(".")[2].casefold())]
            if not titles:
                raise EntryNotFoundError(f"{self._words.start} did not change {name}.{did_you_mean(name, list(found))}")
            if len(titles) > 1:
                raise UsageError(f"Several tables are named {name}: {', '.join(titles[:5])}; give the schema too.")
            _, others = chosen.get(titles[0], (0, ()))
            chosen[titles[0]] = found[titles[0]], {*row_ids, *(others or ())}
        return chosen

    def _check_definitions(self) -> None:
        before, after = self._base, self._tip
        changed = changed_entries(after, before)
        names = before.table_names() | after.table_names()
        changed += [names[i] for i in sorted(before.tables.keys() ^ after.tables.keys())]
        common = before.tables.keys() & after.tables.keys()
        changed += [names[i] for i in sorted(common & self._touched) if before.tables[i] != after.tables[i]]
        if changed:
            raise UnsupportedFeatureError(
                f"{self._words.start} changed the definition of {changed[0]}, and only changes of rows are picked; merge the "
                "branch."
            )

    def _ids(self, theirs: Table, ours: Table) -> RowIds:
        with self._lake.connect() as connection:
            shared = last_column_id(connection, theirs.table_id, self._branch.snapshot_id)
        if any(column.column_id > shared for column in theirs.all_columns()):
            raise UnsupportedFeatureError(
                f"{self._tip.qualified_name(theirs)} has columns that came on the branch, and only rows of the lake's columns "
                "are picked; merge the branch."
            )
        first_new = self._first_rows.get(theirs.table_id, 0)
        return RowIds(ColumnIds.give(theirs, shared, self._transaction.next_column_id(ours)), first_new, placed=False)

    def _refuse(self, table: Table) -> None:
        raise AssertionError(f"{table.name} has changed definitions, which were checked")
