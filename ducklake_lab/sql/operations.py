"""What a statement asks for, one frozen dataclass per kind, names as they were written.

Parts that are SQL themselves (a query, a condition, an assigned value) are kept as syntax trees in fields
named `tree`, `condition`, …; only the planner of this package looks into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from ducklake_lab.model.types import DataType


@dataclass(frozen=True, slots=True)
class TableName:
    """A name as written: `name`, `schema.name` or `catalog.schema.name`.

    With two parts the first one may also be a catalog; who resolves the name decides.

    Attributes:
        line: 1-based line of its first character in the text that was run, or None.
        column: 1-based column there, or None.
    """

    catalog: str | None
    schema: str | None
    name: str
    line: int | None = field(default=None, compare=False)
    column: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.schema, self.name) if part is not None)


@dataclass(frozen=True, slots=True)
class At:
    """A time-travel clause; exactly one is set, the DuckDB SQL of a constant expression."""

    version_sql: str | None = None
    timestamp_sql: str | None = None


@dataclass(frozen=True, slots=True)
class SqlConstant:
    """An argument that is more than a literal, e.g. `now() - INTERVAL '1' DAY`: its DuckDB SQL."""

    sql: str


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column of CREATE TABLE or ADD COLUMN.

    Attributes:
        default: the text of the default value, unquoted if `default_type` is `literal`; None is NULL.
    """

    name: str
    type: DataType
    nulls_allowed: bool = True
    default: str | None = None
    default_type: Literal["literal", "expression"] = "literal"


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, WITH, VALUES, FROM, TABLE.

    Attributes:
        distinct_names: repeated output names get `_1`, `_2`, … as in a table made from the query.
    """

    tree: exp.Query
    distinct_names: bool = False


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA; `name.name` is the schema, `name.schema` its catalog where given."""

    name: TableName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP SCHEMA; the parts of `name` as in CreateSchema."""

    name: TableName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """A partition key as written; `transform` is `identity`, `year`, `month`, `day`, `hour` or `bucket(N)`."""

    column: str
    transform: str = "identity"


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE.

    Attributes:
        columns: empty where the table is made from a query.
        query: CREATE TABLE … AS.
        with_data: False for WITH NO DATA: the query gives columns, no rows.
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
class Insert:
    """INSERT INTO.

    Attributes:
        columns: the column list as written, None where there is none.
        query: the rows; None for DEFAULT VALUES. In VALUES, `DEFAULT` may stand for a value.
        by_name: match the query's columns by name.
        column_positions: line and column of each of `columns`.
    """

    table: TableName
    columns: tuple[str, ...] | None
    query: exp.Query | None
    by_name: bool = False
    column_positions: tuple[tuple[int | None, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE … SET … [FROM …] [WHERE …]."""

    table: TableName
    tree: exp.Update


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM … [USING …] [WHERE …]."""

    table: TableName
    tree: exp.Delete


@dataclass(frozen=True, slots=True)
class Truncate:
    table: TableName


@dataclass(frozen=True, slots=True)
class AddColumn:
    table: TableName
    column: ColumnDef
    if_exists: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    table: TableName
    column: str
    if_exists: bool = False
    if_column_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    table: TableName
    column: str
    new_name: str
    if_exists: bool = False


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
class Begin:
    """BEGIN or START TRANSACTION."""


@dataclass(frozen=True, slots=True)
class Commit:
    """COMMIT or END."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """ROLLBACK or ABORT."""


@dataclass(frozen=True, slots=True)
class Attach:
    """ATTACH.

    Attributes:
        uri: the quoted path, e.g. `ducklake:metadata.ducklake`.
        alias: the name after AS, or None.
        options: option names in lower case; an option without a value is True.
    """

    uri: str
    alias: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Detach:
    alias: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """USE catalog, USE schema or USE catalog.schema; `parts` has one or two names."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """CALL lake.function(…); argument values are Python values or SqlConstant."""

    function: TableName
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES; `all_schemas` for SHOW ALL TABLES; `source` is the name after FROM, or None."""

    all_schemas: bool = False
    source: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE of a table or of a query; exactly one is set."""

    table: TableName | None = None
    query: Query | None = None


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a statement that is not itself a DuckLake form."""

    operation: Operation
    analyze: bool = False


Operation = (
    Query
    | CreateSchema
    | DropSchema
    | CreateTable
    | DropTable
    | Insert
    | Update
    | Delete
    | Truncate
    | AddColumn
    | DropColumn
    | RenameColumn
    | RenameTable
    | SetPartitionedBy
    | ResetPartitionedBy
    | Begin
    | Commit
    | Rollback
    | Attach
    | Detach
    | Use
    | Call
    | ShowTables
    | Describe
    | Explain
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text.

    Attributes:
        text: the statement without its semicolon.
        line: 1-based line of its first token.
    """

    operation: Operation
    text: str
    line: int
