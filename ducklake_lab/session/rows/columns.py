"""Columns of rows that are looked through or drawn."""

from __future__ import annotations

from dataclasses import dataclass

from ducklake_lab.model.types import DataType


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column that is looked at.

    Attributes:
        type: DuckDB's name of its type.
        kind: the same, taken apart; None of types that no table has, of whose values only texts are compared.
    """

    name: str
    type: str
    kind: DataType | None
