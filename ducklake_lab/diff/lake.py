"""Differences of a whole lake between two snapshots: tables that were created, dropped and changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.diff.compute import diff_sides, snapshot_info
from ducklake_lab.diff.diff import Diff
from ducklake_lab.diff.diff_states import Side
from ducklake_lab.diff.model import ColumnChange, DiffSummary
from ducklake_lab.diff.row_diff import page, save
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import EntryNotFoundError, did_you_mean
from ducklake_lab.hooks import hook
from ducklake_lab.model.entries import SnapshotInfo, Table
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changed_tables import touched_tables
from ducklake_lab.scan.counts import TableCounts, table_counts
from ducklake_lab.scan.history import lake_history
from ducklake_lab.scan.presence import check_table

TableKind = Literal["created", "dropped", "altered", "changed"]
_KINDS: tuple[TableKind, ...] = ("dropped", "created", "altered", "changed")


class TableDiff:
    """One table that differs.

    Attributes:
        name: `schema.table` in the later state; in the earlier one where it was dropped.
        kind: `created`; `dropped`; `altered`, where its columns, name, keys or comment differ; else `changed`, in rows only.
        summary: counts of rows; exact.
        schema: changes of columns.
        renamed_from: its name in the earlier state, where that was another.
        reads: the table in each state that has it.
    """

    def __init__(
        self,
        name: str,
        kind: TableKind,
        summary: DiffSummary,
        schema: Sequence[ColumnChange],
        compute: Callable[[], Diff],
        reads: Sequence[EntryRead],
        renamed_from: str | None = None,
    ) -> None:
        self.name = name
        self.kind: TableKind = kind
        self.summary = summary
        self.schema = tuple(schema)
        self.renamed_from = renamed_from
        self.reads = tuple(reads)
        self._compute = compute

    @cached_property
    def diff(self) -> Diff:
        """The whole diff of the table; that of a table which was created or dropped reads its rows when it is asked for."""
        return self._compute()

    def __repr__(self) -> str:
        s = self.summary
        return f"{self.kind} {self.name}: {s.deleted:,} deleted, {s.inserted:,} inserted, {s.updated:,} updated"


class LakeDiff(Sequence[TableDiff]):
    """Difference of a lake between two states: one entry for each table that differs, by name.

    Attributes:
        lake: the lake's alias, with the branch that it is.
        start: the earlier snapshot.
        end: the later one; None for changes that are not committed.
        unchanged: how many tables have the same rows and columns in both.
        history: the snapshots after `start`, up to `end`, oldest first.
    """

    def __init__(
        self,
        lake: str,
        start: SnapshotInfo,
        end: SnapshotInfo | None,
        tables: Sequence[TableDiff],
        unchanged: int,
        history: Sequence[HistoryEntry],
    ) -> None:
        self.lake = lake
        self.start = start
        self.end = end
        self.unchanged = unchanged
        self.history = tuple(history)
        self._tables = tuple(tables)

    def table(self, name: str) -> TableDiff:
        """The table of that name, or `schema.table`.

        Raises:
            EntryNotFoundError: none of that name differs.
        """
        folded = name.casefold()
        by_name = {one.name.rpartition(".")[2].casefold(): one for one in reversed(self)}
        by_name |= {one.name.casefold(): one for one in reversed(self)}
        if folded in by_name:
            return by_name[folded]
        raise EntryNotFoundError(f"No table {name} differs.{did_you_mean(name, [one.name for one in self])}")

    def of_kind(self, kind: TableKind) -> list[TableDiff]:
        return [one for one in self if one.kind == kind]

    @property
    def is_empty(self) -> bool:
        """Returns whether all tables have the same rows and columns in both states."""
        return not self._tables

    @property
    def reads(self) -> Sequence[EntryRead]:
        """The tables that differ, in each state that has them."""
        return [read for one in self for read in one.reads]

    def to_dict(self) -> dict[str, Any]:
        """The counts as values that JSON has."""
        return {
            "lake": self.lake,
            "start": self.start.snapshot_id,
            "end": self.end.snapshot_id if self.end is not None else None,
            "unchanged": self.unchanged,
            "tables": [
                {
                    "table": one.name,
                    "kind": one.kind,
                    "renamed_from": one.renamed_from,
                    "summary": asdict(one.summary),
                    "schema": [asdict(change) for change in one.schema],
                }
                for one in self
            ],
        }

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def to_html(self, path: str | Path | None = None) -> str:
        """The diff as one self-contained page that needs no network; also written to a file if one is given.

        Raises:
            UsageError: the file cannot be written.
        """
        return page("lake_diff.page", self, path)

    def save(self, path: str | Path) -> None:
        """Writes the diff to a file: a page to `.html`, counts to `.json`.

        Raises:
            UsageError: the name ends otherwise, or the file cannot be written.
        """
        save(path, {".html": self.to_html, ".json": self.to_json}, "A diff of a lake")

    def __getitem__(self, index: Any) -> Any:
        return self._tables[index]

    def __len__(self) -> int:
        return len(self._tables)

    def __iter__(self) -> Iterator[TableDiff]:
        return iter(self._tables)

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return hook("output")(self)

    def _repr_html_(self) -> str:
        html: str = hook("lake_diff.html")(self)
        return html

    def __repr__(self) -> str:
        end = self.end.snapshot_id if self.end is not None else "uncommitted"
        lines = [f"<Diff of {self.lake}, {self.start.snapshot_id} to {end}: {self.unchanged:,} tables unchanged>"]
        return "\n".join([*lines, *map(repr, self)])


def diff_lake(
    lake: Lake, before: CatalogState, after: CatalogState, engines: Engines, *, is_fixed: bool = True
) -> LakeDiff:
    """The diff of a lake between two states that are committed.

    It reads the rows of tables that snapshots in between changed, and of no others.

    Args:
        is_fixed: whether the later state was named, so that a second diff has it again.
    """
    start, end = before.snapshot.snapshot_id, after.snapshot.snapshot_id
    first, last = sorted((start, end))
    with lake.connect() as connection:
        history = lake_history(lake, connection, between=(first + 1, last)) if last > first else []
        touched = touched_tables(lake, connection, first, last)
        only_one = before.tables.keys() ^ after.tables.keys()
        counts = [table_counts(lake, connection, number) for number in (start, end)] if only_one else []
    common = before.tables.keys() & after.tables.keys()
    renamed = {i for i in common if before.tables.names[i] != after.tables.names[i]}
    diffs = [_whole(lake, before, after, table_id, counts, engines, is_fixed=is_fixed) for table_id in only_one]
    diffs += [
        one
        for table_id in common & (touched | renamed)
        if (one := _changed(lake, before, after, table_id, engines, is_fixed=is_fixed)) is not None
    ]
    diffs.sort(key=lambda one: (_KINDS.index(one.kind), one.name))
    unchanged = len(common) - sum(one.kind in ("altered", "changed") for one in diffs)
    return LakeDiff(
        lake.title,
        snapshot_info(Side(lake, before, None)),
        snapshot_info(Side(lake, after, None)),
        diffs,
        unchanged,
        history,
    )


def diff_open(lake: Lake, base: CatalogState, sides: Mapping[str, tuple[Side, Side]], engines: Engines) -> LakeDiff:
    """The diff of a lake between a snapshot and changes on top of it that are not committed.

    Args:
        sides: both states of each changed table, by `schema.table`.
    """
    diffs = [_open(name, before, after, engines) for name, (before, after) in sides.items()]
    diffs.sort(key=lambda one: (_KINDS.index(one.kind), one.name))
    unchanged = len(base.tables) - sum(one.kind != "created" for one in diffs)
    return LakeDiff(lake.title, snapshot_info(Side(lake, base, None)), None, diffs, unchanged, ())


def _open(name: str, before: Side, after: Side, engines: Engines) -> TableDiff:
    diff = diff_sides(before, after, name, engines=engines)
    old, new = before.table, after.table
    if old is None or new is None:
        kind: TableKind = "created" if old is None else "dropped"
        return TableDiff(name, kind, diff.summary, diff.schema, lambda: diff, diff.reads)
    was = before.state.qualified_name(old)
    altered = _definition(old) != _definition(new) or was != name
    return TableDiff(
        name,
        "altered" if altered else "changed",
        diff.summary,
        diff.schema,
        lambda: diff,
        diff.reads,
        was if was != name else None,
    )


def _whole(
    lake: Lake,
    before: CatalogState,
    after: CatalogState,
    table_id: int,
    counts: Sequence[dict[int, TableCounts]],
    engines: Engines,
    *,
    is_fixed: bool,
) -> TableDiff:
    """A table that only one of the states has."""
    old, new = before.tables.get(table_id), after.tables.get(table_id)
    state, table = (before, old) if old is not None else (after, new)
    assert table is not None  # one of the states has it
    name = state.qualified_name(table)
    check_table(lake, state, table)
    # the catalog keeps inlined rows of a table that was dropped
    gone, come = (
        count.get(table_id, TableCounts()).rows if there is not None else 0
        for count, there in zip(counts, (old, new), strict=True)
    )
    earlier, later = Side(lake, before, old), Side(lake, after, new, is_fixed=is_fixed)
    return TableDiff(
        name,
        "dropped" if old is not None else "created",
        DiffSummary(inserted=come, deleted=gone, updated=0, unchanged=0),
        (),
        lambda: diff_sides(earlier, later, name, engines=engines),
        [*earlier.reads(), *later.reads()],
    )


def _changed(
    lake: Lake, before: CatalogState, after: CatalogState, table_id: int, engines: Engines, *, is_fixed: bool
) -> TableDiff | None:
    """A table that both states have; None where it is the same in both."""
    old, new = before.tables[table_id], after.tables[table_id]
    name, was = after.qualified_name(new), before.qualified_name(old)
    later = Side(lake, after, new, is_fixed=is_fixed)
    diff = diff_sides(Side(lake, before, old), later, name, engines=engines)
    altered = _definition(old) != _definition(new) or name != was
    if not altered and diff.is_empty:
        return None
    kind: TableKind = "altered" if altered else "changed"
    return TableDiff(name, kind, diff.summary, diff.schema, lambda: diff, diff.reads, was if was != name else None)


def _definition(table: Table) -> Table:
    """Return a table without the facts that a load sets: users do not define its folder."""
    return replace(table, path="", path_is_relative=True)
