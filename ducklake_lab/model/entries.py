"""What the catalog knows: schemas, tables, columns, snapshots (spec: tables/overview).

All of it is immutable; a changed entry is a new object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from ducklake_lab.model.types import DataType

#: Ids handed out before commit are at or above this; commit replaces them by real ones.
LOCAL_ID_START = 1 << 62

#: Parquet field ids the reference gives its own columns.
ROW_ID_FIELD = 2147483540
SNAPSHOT_ID_FIELD = 2147483539
DELETE_PATH_FIELD = 2147483646
DELETE_POSITION_FIELD = 2147483645
ROW_ID_COLUMN = "_ducklake_internal_row_id"


@dataclass(frozen=True, slots=True)
class Column:
    """One row of `ducklake_column`, its nested columns below it.

    Attributes:
        column_id: unique in the table for ever; the Parquet field id of its data.
        order: its place among its siblings, increasing, gaps allowed.
        type: the spec's name, `struct`, `list` and `map` for nested ones.
        initial_default: value of rows in files older than the column, as text; None is NULL.
        default_value: value of rows inserted without one, as text; None or "NULL" is NULL.
        default_value_type: `literal` or `expression`.
    """

    column_id: int
    order: int
    name: str
    type: str
    nulls_allowed: bool = True
    initial_default: str | None = None
    default_value: str | None = "NULL"
    default_value_type: str = "literal"
    default_value_dialect: str = "duckdb"
    children: tuple[Column, ...] = ()

    @property
    def data_type(self) -> DataType:
        return DataType(self.type, tuple((child.name, child.data_type) for child in self.children))

    def walk(self) -> Iterator[Column]:
        """This column and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @classmethod
    def build(cls, name: str, data_type: DataType, first_id: int, **attributes: object) -> Column:
        """A new column whose ids, and those of its children, count up from `first_id`, parents first."""
        children: list[Column] = []
        next_id = first_id + 1
        for child_name, child_type in data_type.children:
            child = cls.build(child_name, child_type, next_id)
            children.append(child)
            next_id += sum(1 for _ in child.walk())
        column = cls(
            column_id=first_id,
            order=first_id,
            name=name,
            type=data_type.name,
            default_value_type="" if data_type.is_nested else "literal",
            children=tuple(children),
        )
        return replace(column, **attributes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One key of a partition spec; `transform` is `identity`, `year`, …, `bucket(N)`."""

    column_id: int
    transform: str


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition keys of a table, in key order."""

    partition_id: int
    fields: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    schema_id: int
    uuid: str
    name: str
    path: str
    path_is_relative: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table as of one snapshot.

    Attributes:
        columns: top-level columns in their order.
        partition: the keys new files are written by, or None.
        comment: the table's comment, or None.
    """

    table_id: int
    uuid: str
    schema_id: int
    name: str
    path: str
    columns: tuple[Column, ...]
    path_is_relative: bool = True
    partition: PartitionSpec | None = None
    comment: str | None = None

    def column(self, name: str) -> Column | None:
        """The top-level column of that name, without regard to case; None if there is none."""
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)

    def column_by_id(self, column_id: int) -> Column | None:
        """The column of that id, at any depth."""
        return next((column for column in self.all_columns() if column.column_id == column_id), None)

    def all_columns(self) -> Iterator[Column]:
        """All columns at any depth, parents first."""
        for column in self.columns:
            yield from column.walk()


@dataclass(frozen=True, slots=True)
class View:
    view_id: int
    uuid: str
    schema_id: int
    name: str
    dialect: str
    sql: str
    column_aliases: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One row of `ducklake_snapshot`; `snapshot_time` is aware, in UTC."""

    snapshot_id: int
    snapshot_time: datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A snapshot with what it changed, as a history shows it.

    Attributes:
        changes_made: the text of `ducklake_snapshot_changes.changes_made`.
    """

    snapshot_id: int
    snapshot_time: datetime
    schema_version: int
    changes_made: str
    author: str | None = None
    commit_message: str | None = None
    commit_extra_info: str | None = None
