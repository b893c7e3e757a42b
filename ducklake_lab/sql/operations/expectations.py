"""Statements about expectations of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ducklake_lab.sql.operations.clauses import TableName


@dataclass(frozen=True, slots=True)
class Expect:
    """ALTER TABLE … EXPECT.

    Attributes:
        kind: as in `model.expectations.Kind`.
        on: the treatment of rows that violate it.
        sql: the condition or the query as written, or the interval; "" for others.
        columns: the columns of a condition or of the list.
        target: the referenced table.
        target_columns: its columns; empty for the same names.
    """

    table: TableName
    name: str
    kind: Literal["check", "not_null", "unique", "references", "fresh", "query"]
    on: Literal["fail", "warn", "drop", "quarantine"] = "fail"
    sql: str = ""
    columns: tuple[str, ...] = ()
    target: TableName | None = None
    target_columns: tuple[str, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropExpectation:
    """ALTER TABLE … DROP EXPECTATION."""

    table: TableName
    name: str
    if_exists: bool = False
    if_expectation_exists: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """CHECK of the rows of a table; `since` is a snapshot whose rows count as checked."""

    table: TableName
    since: int | None = None
