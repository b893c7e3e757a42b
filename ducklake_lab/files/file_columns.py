"""Columns of Parquet files as DuckDB lists them from footers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import from_duckdb
from ducklake_lab.model.types import DataType

#: Fields of `parquet_schema` that describe a column, parents before their parts.
FIELDS = ("name", "num_children", "converted_type", "logical_type", "duckdb_type", "field_id", "type")
#: Digits of the longest decimals that DuckDB and Spark have.
_DECIMAL_DIGITS = 38


@dataclass(slots=True)
class Node:
    """A column of a file, or a part of one.

    Attributes:
        shape: `list`, `map`, `struct` or `value`.
        leaf: its number among those that hold values.
        unread: why not every engine can read its values; None where all can.
        physical: the type in which Parquet stores its values; None of columns with parts.
    """

    name: str
    kind: DataType | None
    shape: str
    children: list[Node]
    leaf: int | None
    unread: str | None = None
    field_id: int | None = None
    physical: str | None = None

    @property
    def has_ids(self) -> bool:
        """Return whether it or a part has a field id."""
        return self.field_id is not None or any(child.has_ids for child in self.children)


def nodes_of(schema: Sequence[tuple[Any, ...]]) -> list[Node]:
    """Return the columns of a file; the first entry of a schema is the whole row."""
    entries = iter(schema)
    _, count, *_ = next(entries)
    numbers = iter(range(len(schema)))
    return [_node(entries, numbers) for _ in range(count or 0)]


def _node(schema: Iterator[tuple[Any, ...]], numbers: Iterator[int]) -> Node:
    """The next column of a schema that lists parents before their parts."""
    name, count, converted, logical, duckdb_type, field_id, physical = next(schema)
    leaf = None if count else next(numbers)
    children = [_node(schema, numbers) for _ in range(count or 0)]
    shape = {"LIST": "list", "MAP": "map"}.get(converted or "", "struct") if count else "value"
    text = "GEOMETRY" if (logical or "").startswith("GeometryType") else duckdb_type
    kind = None if count else from_duckdb(duckdb.sqltype(text))
    return Node(name, kind, shape, children, leaf, _unread(logical or ""), field_id, physical)


def _unread(logical: str) -> str | None:
    """Return why not every engine can read values of a logical type of Parquet; None where all can."""
    if logical.startswith("Float16Type"):
        return "half-floats are not supported"
    decimal = re.search(r"^DecimalType\(.*precision=(\d+)", logical)
    if decimal is not None and int(decimal[1]) > _DECIMAL_DIGITS:
        return f"decimals of more than {_DECIMAL_DIGITS} digits are not supported"
    if logical.startswith("TimeType") and "MICROS=<null>" in logical:
        return "times in other units than microseconds are not supported"
    return None
