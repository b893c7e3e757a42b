"""A version of a table of another format, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ducklake_lab.model.positions import Positions
from ducklake_lab.model.types import DataType


@dataclass(frozen=True, slots=True)
class ForeignColumn:
    """A column, or a part of one.

    Attributes:
        keys: the field ids and the names that files have it under.
        children: parts of a nested type, in the order of `type`; those of lists and maps have no keys that count.
    """

    name: str
    type: DataType
    keys: tuple[int | str, ...] = ()
    nulls_allowed: bool = True
    children: tuple[ForeignColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A data file in Parquet.

    Attributes:
        path: where it is on this machine.
        size: bytes; None where the table does not say.
        records: its rows, deleted ones included; None where the table does not say.
        constants: by the number of a column, texts of values that are not read from the file.
        deleted: positions of deleted rows, ascending.
    """

    path: str
    size: int | None
    records: int | None
    constants: Mapping[int, str | None] = field(default_factory=dict)
    deleted: Positions | None = None


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table at one version.

    Attributes:
        title: what errors call it, such as `the Delta table /data/t`.
    """

    title: str
    columns: tuple[ForeignColumn, ...]
    files: tuple[ForeignFile, ...]
