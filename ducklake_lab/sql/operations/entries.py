"""Statements that change entries: schemas, tables, views, macros and comments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ducklake_lab.model.types import DataType
from ducklake_lab.sql.operations.clauses import ColumnDef, MacroOverload, PartitionKey, Query, SortKey, TableName
from ducklake_lab.sql.operations.expectations import DropExpectation, Expect


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA; `name.name` is the schema, `name.schema` its catalog, if given."""

    name: TableName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP SCHEMA; the parts of `name` as in CreateSchema."""

    name: TableName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE.

    Attributes:
        columns: the columns; empty if a query defines the table.
        query: the query of CREATE TABLE … AS.
        with_data: False for WITH NO DATA: only the columns come from the query.
    """

    name: TableName
    columns: tuple[ColumnDef, ...] = ()
    query: Query | None = None
    replace: bool = False
    if_not_exists: bool = False
    with_data: bool = True
    partitioned_by: tuple[PartitionKey, ...] = ()


@dataclass(frozen=True, slots=True)
class DropTable:
    name: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ALTER TABLE … ADD COLUMN; `parents` is the path to the struct of a new field, outermost first."""

    table: TableName
    column: ColumnDef
    if_exists: bool = False
    if_not_exists: bool = False
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN; `cascade` drops the expectations that name the column too."""

    table: TableName
    column: str
    if_exists: bool = False
    if_column_exists: bool = False
    parents: tuple[str, ...] = ()
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    table: TableName
    column: str
    new_name: str
    if_exists: bool = False
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetColumnType:
    table: TableName
    column: str
    type: DataType
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """SET DEFAULT, or DROP DEFAULT if None; `default` as in ColumnDef."""

    table: TableName
    column: str
    default: str | None
    default_type: Literal["literal", "expression"] = "literal"
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetNotNull:
    """SET NOT NULL, or DROP NOT NULL if not `required`."""

    table: TableName
    column: str
    required: bool
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetSortedBy:
    """SET SORTED BY, or RESET SORTED BY without keys."""

    table: TableName
    keys: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class RenameTable:
    table: TableName
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetPartitionedBy:
    table: TableName
    keys: tuple[PartitionKey, ...]


@dataclass(frozen=True, slots=True)
class ResetPartitionedBy:
    table: TableName


@dataclass(frozen=True, slots=True)
class SetOptions:
    """ALTER TABLE … SET (name = value, …); values are Python values or SqlConstant."""

    table: TableName
    options: Mapping[str, object]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ResetOptions:
    """ALTER TABLE … RESET (name, …)."""

    table: TableName
    names: tuple[str, ...]
    if_exists: bool = False


#: The forms of ALTER TABLE.
Alteration = (
    AddColumn
    | DropColumn
    | RenameColumn
    | RenameTable
    | SetColumnType
    | SetDefault
    | SetNotNull
    | SetPartitionedBy
    | ResetPartitionedBy
    | SetSortedBy
    | SetOptions
    | ResetOptions
    | Expect
    | DropExpectation
)


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW.

    Attributes:
        columns: names for its first columns.
        sql: the text of the query as written.
        query: the query.
        temporary: the view belongs to the session, not to a lake.
    """

    name: TableName
    sql: str
    query: Query
    columns: tuple[str, ...] = ()
    replace: bool = False
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class DropView:
    name: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameView:
    """ALTER VIEW … RENAME TO."""

    view: TableName
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateMacro:
    """CREATE MACRO or CREATE FUNCTION; all overloads have one kind."""

    name: TableName
    kind: Literal["scalar", "table"]
    overloads: tuple[MacroOverload, ...]
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropMacro:
    name: TableName
    kind: Literal["scalar", "table"]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON TABLE, VIEW or COLUMN.

    Attributes:
        column: the column for COLUMN; then `name` is its table.
        text: the comment; None removes it.
    """

    kind: Literal["table", "view", "column"]
    name: TableName
    text: str | None
    column: str | None = None


#: Statements that change entries.
EntryStatement = (
    Alteration
    | CreateSchema
    | DropSchema
    | CreateTable
    | DropTable
    | CreateView
    | DropView
    | RenameView
    | CreateMacro
    | DropMacro
    | Comment
)
