"""What a statement asks for, one frozen dataclass per kind, names as they were written.

Parts that are SQL themselves (a query, a condition, an assigned value) are kept as syntax trees in fields
named `tree`, `condition`, …; only the planner of this package looks into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from ducklake_lab.errors import DuckLakeError
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
    """ALTER TABLE … ADD COLUMN; `parents` leads to the struct that gets a field, outermost first."""

    table: TableName
    column: ColumnDef
    if_exists: bool = False
    if_not_exists: bool = False
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DropColumn:
    table: TableName
    column: str
    if_exists: bool = False
    if_column_exists: bool = False
    parents: tuple[str, ...] = ()


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
    """SET DEFAULT, or with None DROP DEFAULT; `default` as in ColumnDef."""

    table: TableName
    column: str
    default: str | None
    default_type: Literal["literal", "expression"] = "literal"
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetNotNull:
    """SET NOT NULL, or DROP NOT NULL where it is not `required`."""

    table: TableName
    column: str
    required: bool
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SortKey:
    """A sort key as written.

    Attributes:
        columns: the columns it names.
    """

    sql: str
    columns: tuple[str, ...]
    direction: Literal["ASC", "DESC"] = "ASC"
    null_order: Literal["NULLS FIRST", "NULLS LAST"] = "NULLS LAST"


@dataclass(frozen=True, slots=True)
class SetSortedBy:
    """SET SORTED BY, or without keys RESET SORTED BY."""

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


#: ALTER TABLE.
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
)


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW.

    Attributes:
        columns: names for the first of its columns.
        sql: the text of the query as written.
        query: the query.
    """

    name: TableName
    sql: str
    query: Query
    columns: tuple[str, ...] = ()
    replace: bool = False
    if_not_exists: bool = False


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
class MacroParameter:
    """A macro's parameter; `default_sql` is a constant expression."""

    name: str
    type: DataType | None = None
    default_sql: str | None = None


@dataclass(frozen=True, slots=True)
class MacroOverload:
    """One parameter list of a macro, and the text of its expression or query."""

    parameters: tuple[MacroParameter, ...]
    sql: str


@dataclass(frozen=True, slots=True)
class CreateMacro:
    """CREATE MACRO or CREATE FUNCTION; all overloads are of one kind."""

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
        column: for COLUMN; `name` is its table then.
        text: None takes the comment away.
    """

    kind: Literal["table", "view", "column"]
    name: TableName
    text: str | None
    column: str | None = None


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
class CreateSecret:
    """CREATE SECRET of type `ducklake`, `postgres` or `mysql`.

    Attributes:
        name: None for the type's default secret.
        options: option names in lower case; what they hold must not be shown.
    """

    name: str | None
    kind: str
    options: Mapping[str, object] = field(repr=False)
    replace: bool = False
    if_not_exists: bool = False
    persistent: bool = False


@dataclass(frozen=True, slots=True)
class DropSecret:
    name: str
    if_exists: bool = False


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
class Checkpoint:
    """CHECKPOINT lake: all of its maintenance; the current lake's for None."""

    lake: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES; `all_schemas` for SHOW ALL TABLES; `source` is the name after FROM, or None; SHOW DATABASES."""

    all_schemas: bool = False
    source: tuple[str, ...] | None = None
    databases: bool = False


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


@dataclass(frozen=True, slots=True)
class Other:
    """A statement that has no operation of its own: the session's own database may know it.

    Attributes:
        words: its first words in upper case, as far as they tell what it is about.
        refusal: what is raised where a lake is meant.
    """

    words: tuple[str, ...]
    refusal: DuckLakeError


MergeWhen = Literal["matched", "not matched", "not matched by source"]


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN … THEN … of MERGE INTO.

    Attributes:
        assignments: of UPDATE SET; empty where `whole` is set.
        whole: UPDATE or INSERT of all columns of the source, by position or by name.
        columns: the column list of INSERT; None where there is none.
        message: the expression after ERROR.
    """

    when: MergeWhen
    condition: exp.Expr | None
    action: Literal["update", "delete", "insert", "nothing", "error"]
    assignments: tuple[exp.Expr, ...] = ()
    whole: Literal["position", "name"] | None = None
    columns: tuple[str, ...] | None = None
    values: tuple[exp.Expr, ...] = ()
    message: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO table USING source.

    Attributes:
        alias: of the table, or None.
        source: `SELECT * FROM source`.
        condition: of ON; None where `using` names columns.
    """

    table: TableName
    alias: str | None
    source: exp.Select
    condition: exp.Expr | None
    using: tuple[str, ...]
    clauses: tuple[MergeClause, ...]


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY … TO a file.

    Attributes:
        query: what is copied, in DuckDB SQL.
        path: the quoted path.
        options: the text of `(…)` after it, parentheses included; "" where there is none.
        words: the options as (name in lower case, text of the value).
    """

    query: str
    path: str
    options: str = ""
    words: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """COPY table FROM a file; `options` as in CopyTo."""

    table: TableName
    columns: tuple[str, ...] | None
    path: str
    options: str = ""


@dataclass(frozen=True, slots=True)
class CopyDatabase:
    """COPY FROM DATABASE source TO target.

    Attributes:
        entries: create schemas and tables.
        rows: copy their rows.
    """

    source: str
    target: str
    entries: bool = True
    rows: bool = True


@dataclass(frozen=True, slots=True)
class Prepare:
    """PREPARE name AS statement."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE name(…); argument values are Python values or SqlConstant."""

    name: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deallocate:
    name: str


Operation = (
    Query
    | Other
    | Merge
    | CopyTo
    | CopyFrom
    | CopyDatabase
    | Prepare
    | Execute
    | Deallocate
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
    | SetColumnType
    | SetDefault
    | SetNotNull
    | SetSortedBy
    | SetPartitionedBy
    | ResetPartitionedBy
    | CreateView
    | DropView
    | RenameView
    | CreateMacro
    | DropMacro
    | Comment
    | Checkpoint
    | Begin
    | Commit
    | Rollback
    | Attach
    | CreateSecret
    | DropSecret
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
        sql: the text with values in the place of parameters.
    """

    operation: Operation
    text: str
    line: int
    sql: str = ""
