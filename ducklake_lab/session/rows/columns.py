"""Columns of displayed or drawn rows."""

from __future__ import annotations

from dataclasses import dataclass

from ducklake_lab.model.types import DataType


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of displayed rows.

    Attributes:
        type: DuckDB's name for its type.
        kind: the parsed type; None for types that no table can have, whose values compare as text only.
    """

    name: str
    type: str
    kind: DataType | None
