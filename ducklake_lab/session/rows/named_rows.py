"""Rows behind a name in SQL, as the sources of a plan carry them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.rows import Rows
from ducklake_lab.model.entries import Table
from ducklake_lab.model.types import DataType
from ducklake_lab.session.names.read_states import At
from ducklake_lab.sql.plan import QueryPlan


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A table of a lake; its name is resolved once.

    Attributes:
        at: the snapshot in its AT clause; None for the statement's snapshot.
    """

    lake: Lake
    at: At
    table: Table
    columns: Sequence[tuple[str, DataType]]
    qualifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HandedInRows:
    """Rows passed under a name.

    Attributes:
        shown: their name in messages.
    """

    rows: Rows
    shown: str
    qualifiers: tuple[str, ...] = ()

    @property
    def columns(self) -> Sequence[tuple[str, DataType]]:
        return self.rows.columns


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A table of a lake's catalog database."""

    lake: Lake
    name: str
    columns: Sequence[tuple[str, DataType]]
    qualifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SystemListing:
    """A system view whose listing includes entries of lakes.

    Attributes:
        plan: the plan of its query.
    """

    plan: QueryPlan
    columns: Sequence[tuple[str, DataType]]
    qualifiers: tuple[str, ...]
