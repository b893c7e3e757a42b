"""A diff of one table between two states: data only, no drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from ducklake_lab.errors import UsageError

RowKind = Literal["inserted", "deleted", "updated"]
KINDS: tuple[RowKind, ...] = get_args(RowKind)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One difference between two schemas, by column id.

    Attributes:
        before: (name, SQL type) in the earlier state; None for an added column.
        after: (name, SQL type) in the later state; None for a dropped one.
    """

    kind: Literal["added", "dropped", "renamed", "retyped"]
    column_id: int
    before: tuple[str, str] | None
    after: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class DiffSummary:
    """Row counts. `unchanged` rows are in both states with equal values.

    Attributes:
        cells: cells that differ in updated rows, in columns of the later schema.
    """

    inserted: int
    deleted: int
    updated: int
    unchanged: int
    cells: int = 0

    @property
    def changed(self) -> int:
        return self.inserted + self.deleted + self.updated


@dataclass(frozen=True, slots=True)
class Histogram:
    """Values of one column in the changed rows, before and after.

    Attributes:
        labels: one per bin: a category, or the bin's lower edge as text, an ISO date or time for times.
        before: how many changed rows had a value in the bin in the earlier state (deleted and updated rows).
        after: how many have one in the later state (inserted and updated rows).
        numeric: the bins are equal-width intervals `[edge, next edge)`, the last one closed.
        smallest: the least of the values in the bins, as DuckDB's text; "" for categories.
        largest: the greatest of those values, as DuckDB's text; "" for categories.
        more: categories that are not listed, which are rarer.
    """

    labels: tuple[str, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    numeric: bool
    smallest: str = ""
    largest: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class ColumnDiff:
    """Changes of one column of the later schema.

    Attributes:
        updated: updated rows whose cell differs.
        share: `updated` / updated rows, 0.0 to 1.0; 0.0 where there are none.
        renamed_from: its name in the earlier schema, where that was another.
    """

    name: str
    type: str
    updated: int
    share: float
    histogram: Histogram | None = None
    renamed_from: str | None = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that only one of the two states has.

    Attributes:
        path: absolute path or URL.
        rows: rows in it at the state that has it; of a delete file, rows it deletes then.
        kind: data or deletes.
    """

    path: str
    rows: int
    bytes: int
    kind: Literal["data", "deletes"]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """Files of the two states; sizes in bytes.

    Attributes:
        only_after: data and delete files of the later state alone.
        only_before: those of the earlier state alone.
    """

    unchanged: int
    added: int
    removed: int
    bytes_added: int
    bytes_removed: int
    delete_files_added: int
    delete_bytes_added: int
    only_after: tuple[FileChange, ...] = ()
    only_before: tuple[FileChange, ...] = ()


@dataclass(frozen=True, slots=True)
class RowChange:
    """One changed row, its cells by column name (of the later schema; dropped columns under their old name).

    Attributes:
        before: None for an inserted row.
        after: None for a deleted row.
        changed: names of the columns whose cells differ; () unless updated.
        steps: later value minus earlier one, of changed numbers, by column name; only in a diff of answers.
    """

    row_id: int
    kind: RowKind
    before: dict[str, object] | None
    after: dict[str, object] | None
    changed: tuple[str, ...] = ()
    steps: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupStep:
    """Change of one number of a group between two answers; values as rows show them.

    Attributes:
        row_id: that of the group's changed row.
        key: values of the columns by which rows were paired.
        before: None for NULL, and for a group that came.
        after: None for NULL, and for a group that went.
        step: later value minus earlier one, with all digits of an integer or decimal; a group that came counts from 0,
            and one that went to 0. None where no number says it.
        share: the step divided by the largest finite one of its column, -1.0 to 1.0; infinite for an infinite step, None
            where it has no length.
    """

    row_id: int
    kind: RowKind
    key: tuple[object, ...]
    before: object
    after: object
    step: object
    share: float | None


@dataclass(frozen=True, slots=True)
class ColumnSteps:
    """Changes of a numeric column by group, the largest steps first.

    Attributes:
        more: changed groups that are not listed.
    """

    column: str
    groups: tuple[GroupStep, ...]
    more: int


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Choice of changed rows, and their order.

    Attributes:
        kind: those that changed so; None for all.
        changed: updated rows in which the cell of this column differs.
        sort: (column, descending), most significant first, by the value a row has last; then by row id or key.

    Raises:
        UsageError: there is no such kind, or it has no rows with changed cells.
    """

    kind: RowKind | None = None
    changed: str | None = None
    sort: tuple[tuple[str, bool], ...] = ()

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise UsageError(f'Rows are inserted, deleted or updated, not "{self.kind}".')
        if self.changed is not None and self.kind not in (None, "updated"):
            raise UsageError(f"No cell changes in a row that is {self.kind}; leave the kind out, or the column.")

    @property
    def is_all(self) -> bool:
        return self.kind is None and self.changed is None


@dataclass(frozen=True, slots=True)
class Pattern:
    """Something most of the changed rows have in common, e.g. 98% of deleted rows have `dep_time IS NULL`.

    Attributes:
        kind: the rows that it describes.
        condition: SQL condition over the table's columns.
        share: share of those rows for which it holds, 0.0 to 1.0.
        rows: how many rows that is, of those looked at.
        unchanged_share: share of the unchanged rows for which it holds; None where they are not compared.
    """

    kind: RowKind
    condition: str
    share: float
    rows: int = 0
    unchanged_share: float | None = None
