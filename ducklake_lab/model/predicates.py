"""Predicates that prune files: a conservative extract of a WHERE clause.

The query's condition implies each predicate; conditions without such a form are left out. Rows for which
it is not true can be skipped, and nothing else may be concluded from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: A column by its path: (name,) or (struct column, field, ...).
ColumnPath = tuple[str, ...]
Operator = Literal["=", "<", "<=", ">", ">=", "!="]
#: The operators with their sides exchanged.
MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: Types whose values Spark compares as DuckDB does, beside decimals; others are texts there, or rounded.
COMPARED_ALIKE = frozenset(
    "boolean int8 int16 int32 int64 uint8 uint16 uint32 uint64 float64 "
    "varchar date timestamp timestamptz timestamp_s timestamp_ms".split()
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column op value`; value is a bool, int, float, Decimal, str, bytes or Moment."""

    column: ColumnPath
    op: Operator
    value: object


@dataclass(frozen=True, slots=True)
class InList:
    column: ColumnPath
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class NullTest:
    """`column IS NULL`, or `IS NOT NULL` where not `is_null`."""

    column: ColumnPath
    is_null: bool


@dataclass(frozen=True, slots=True)
class StartsWith:
    """`column LIKE 'prefix%'`."""

    column: ColumnPath
    prefix: str


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Predicate, ...]


Predicate = Comparison | InList | NullTest | StartsWith | And | Or
