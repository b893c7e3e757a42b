"""Entries of the catalog: schemas, tables, columns, snapshots (spec: tables/overview).

All of it is immutable; a changed entry is a new object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Literal

from ducklake_lab.model.quoting import path_parts, quote_identifier
from ducklake_lab.model.types import DataType, flat

#: Ids handed out before commit are at or above this; commit replaces them by real ones.
LOCAL_ID_START = 1 << 62

#: Parquet field ids the reference gives its own columns.
ROW_ID_FIELD = 2147483540
SNAPSHOT_ID_FIELD = 2147483539
DELETE_PATH_FIELD = 2147483646
DELETE_POSITION_FIELD = 2147483645
ROW_ID_COLUMN = "_ducklake_internal_row_id"
SNAPSHOT_ID_COLUMN = "_ducklake_internal_snapshot_id"

#: Names of columns that data files have of their own.
FILE_COLUMNS = frozenset((ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN))


@dataclass(frozen=True, slots=True)
class Column:
    """One row of `ducklake_column`, its nested columns below it.

    Attributes:
        column_id: unique in the table, never used again; the Parquet field id of its data.
        order: its place among its siblings, increasing, gaps allowed.
        type: the spec's name, `struct`, `list` and `map` for nested ones.
        initial_default: value of rows in files older than the column, as text; None is NULL.
        default_value: value of rows inserted without one, as text; None or "NULL" is NULL.
        default_value_type: `literal` or `expression`.
        comment: the column's comment, or None; a tag, not part of the column's own row.
        begin_snapshot: the snapshot since which its row is valid, so since when it has its name; None until it is committed.
        altered: it ever had another name or type, or is younger than the table; known where a scan is planned.
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
    comment: str | None = None
    begin_snapshot: int | None = field(default=None, compare=False)
    altered: bool = field(default=False, compare=False)

    @property
    def data_type(self) -> DataType:
        if not self.children:
            return flat(self.type)
        return DataType(self.type, tuple((child.name, child.data_type) for child in self.children))

    def walk(self) -> Iterator[Column]:
        """Yield the column and all below it, parents first."""
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
class ColumnVersion:
    """Row of `ducklake_column`: name and type of a column from a snapshot on, up to another, exclusive; None for no end."""

    column_id: int
    parent_id: int | None
    name: str
    type: str
    begin_snapshot: int
    end_snapshot: int | None


@dataclass(frozen=True, slots=True)
class ColumnLife:
    """Snapshots from which a table had a column without a break, both inclusive."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One key of a partition spec; `transform` is the text that `transforms.parse_transform` reads."""

    column_id: int
    transform: str


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition keys of a table, in key order."""

    partition_id: int
    fields: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of a sort spec.

    Attributes:
        expression: SQL over the table's columns, as the dialect's own printer writes it.
        direction: `ASC` or `DESC`.
        null_order: `NULLS FIRST` or `NULLS LAST`.
    """

    expression: str
    direction: str = "ASC"
    null_order: str = "NULLS LAST"
    dialect: str = "duckdb"


@dataclass(frozen=True, slots=True)
class SortSpec:
    """The sort keys of a table, in key order."""

    sort_id: int
    keys: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as of one snapshot.

    Attributes:
        name: the name it goes by: its own, or the path of a nested one, see `schema_path`.
        path: relative to the lake's data path, of nested ones too.
        parent_id: the schema that it is in, or None.
    """

    schema_id: int
    uuid: str
    name: str
    path: str
    path_is_relative: bool = True
    parent_id: int | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The names from the outermost schema to it."""
        return path_parts(self.name)


@dataclass(frozen=True)
class Table:
    """A table as of one snapshot.

    Attributes:
        columns: top-level columns in their order.
        partition: the keys new files are written by, or None.
        sort: the keys rows are sorted by in new files, or None.
        comment: the table's comment, or None.
        is_live: its rows are those of a query, which REFRESH keeps current.
        tags: the tags that hold its expectations, by key; see `model/expectations.py`.
    """

    table_id: int
    uuid: str
    schema_id: int
    name: str
    path: str
    columns: tuple[Column, ...]
    path_is_relative: bool = True
    partition: PartitionSpec | None = None
    sort: SortSpec | None = None
    comment: str | None = None
    is_live: bool = field(default=False, compare=False)
    tags: tuple[tuple[str, str], ...] = ()

    def column(self, name: str) -> Column | None:
        """The top-level column of that name, without regard to case; None if there is none."""
        return self._by_name.get(name.casefold())

    def column_by_id(self, column_id: int) -> Column | None:
        """The column of that id, at any depth."""
        return self._by_id.get(column_id)

    # A table may have ten thousand columns, and plans look up each.

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name.casefold(): column for column in reversed(self.columns)}

    @cached_property
    def _by_id(self) -> dict[int, Column]:
        return {column.column_id: column for column in self.all_columns()}

    def all_columns(self) -> Iterator[Column]:
        """All columns at any depth, parents first."""
        for column in self.columns:
            yield from column.walk()


@dataclass(frozen=True, slots=True)
class View:
    """A view as of one snapshot.

    Attributes:
        sql: the query; `{DUCKLAKE_CATALOG}.` stands for the name the lake is attached under.
        column_aliases: names for the first of its columns, quoted and separated by commas; "" for none.
        comment: the view's comment, or None.
        column_comments: those of its columns, by their names in the query, before `column_aliases`.
    """

    view_id: int
    uuid: str
    schema_id: int
    name: str
    dialect: str
    sql: str
    column_aliases: str = ""
    comment: str | None = None
    column_comments: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names given to its first columns."""
        return tuple(split_names(self.column_aliases))


def join_names(names: Iterable[str]) -> str:
    """Names in double quotes, separated by commas: the form of `column_aliases`."""
    return ",".join(map(quote_identifier, names))


def split_names(text: str) -> list[str]:
    """The inverse of `join_names`."""
    return [quoted.replace('""', '"') for quoted in re.findall(r'"((?:[^"]|"")*)"', text)]


@dataclass(frozen=True, slots=True)
class MacroParameter:
    """A parameter; `default_value` is the text of a constant of type `default_value_type`, None for none.

    Attributes:
        type: the spec's name of a type, or `unknown` for any.
    """

    name: str
    type: str = "unknown"
    default_value: str | None = None
    default_value_type: str = "unknown"

    @property
    def is_optional(self) -> bool:
        return self.default_value_type != "unknown"


@dataclass(frozen=True, slots=True)
class MacroImplementation:
    """One of a macro's overloads; `sql` is an expression, or a query for a table macro."""

    sql: str
    parameters: tuple[MacroParameter, ...] = ()
    dialect: str = "duckdb"


@dataclass(frozen=True, slots=True)
class Macro:
    """A scalar or table macro as of one snapshot; the two kinds have names of their own."""

    macro_id: int
    schema_id: int
    name: str
    kind: Literal["scalar", "table"]
    implementations: tuple[MacroImplementation, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One row of `ducklake_snapshot`; `snapshot_time` is aware."""

    snapshot_id: int
    snapshot_time: datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """Snapshot with its changes, as a history shows it.

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
