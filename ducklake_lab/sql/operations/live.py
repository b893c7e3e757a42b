"""Statements on live tables."""

from __future__ import annotations

from dataclasses import dataclass

from ducklake_lab.sql.operations.clauses import Query, TableName


@dataclass(frozen=True, slots=True)
class CreateLiveTable:
    """CREATE [OR REPLACE] LIVE TABLE … AS.

    Attributes:
        sql: the text of the query, with parameters as literals.
    """

    name: TableName
    sql: str
    query: Query
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class Refresh:
    """REFRESH name, or REFRESH ALL without a name."""

    name: TableName | None


@dataclass(frozen=True, slots=True)
class ExplainRefresh:
    """EXPLAIN REFRESH name, or ALL without a name."""

    name: TableName | None


@dataclass(frozen=True, slots=True)
class DropLiveTable:
    name: TableName
    if_exists: bool = False


#: Statements on live tables.
LiveStatement = CreateLiveTable | Refresh | ExplainRefresh | DropLiveTable
