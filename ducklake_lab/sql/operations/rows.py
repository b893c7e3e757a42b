"""Statements that change rows or copy them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from ducklake_lab.sql.operations.clauses import TableName


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO.

    Attributes:
        columns: the column list as written; None without one.
        query: the rows; None for DEFAULT VALUES. VALUES may contain `DEFAULT`.
        by_name: match the query's columns by name.
        column_positions: line and column of each of `columns`.
    """

    table: TableName
    columns: tuple[str, ...] | None
    query: exp.Query | None
    by_name: bool = False
    column_positions: tuple[tuple[int | None, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class InsertLiterals:
    """INSERT INTO … VALUES with literals only, which DuckDB reads unchanged.

    Attributes:
        head: the statement with one row of NULL.
        rows: VALUES and its rows, as written.
        text: the whole statement; blanks replace the text before it.
    """

    head: Insert
    rows: str
    text: str

    @property
    def table(self) -> TableName:
        return self.head.table


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


MergeWhen = Literal["matched", "not matched", "not matched by source"]


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A WHEN … THEN … clause of MERGE INTO.

    Attributes:
        assignments: the list of UPDATE SET; empty if `whole` is set.
        whole: UPDATE or INSERT with all source columns, by position or by name.
        columns: the column list of INSERT; None without one.
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
        alias: the alias of the table, or None.
        source: `SELECT * FROM source`.
        condition: the condition of ON; None if `using` names columns.
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
        query: the copied query, in DuckDB SQL.
        path: the quoted path.
        options: the text of the following `(…)` with parentheses; "" without options.
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


#: Statements that change or copy rows.
RowStatement = Insert | InsertLiterals | Update | Delete | Truncate | Merge | CopyTo | CopyFrom | CopyDatabase
