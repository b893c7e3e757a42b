"""What was read from a catalog file last, and holds as long as nobody has written to the file (ADR 0061)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.files import TableStats, read_table_stats
from ducklake_lab.catalog.options import OptionRow
from ducklake_lab.model.entries import ColumnVersion, Snapshot

_c = t.table_column_stats.c


@dataclass(frozen=True, slots=True)
class TableColumnStats:
    """One row of `ducklake_table_column_stats`."""

    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None
    extra_stats: str | None = None
    min_is_exact: bool | None = None
    max_is_exact: bool | None = None

    def row(self) -> dict[str, object]:
        """Its values by column name, without the ids of its table and column."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a commit has to know of a table that it adds rows to.

    Attributes:
        stats: None where nothing was inserted yet.
        columns: by column id.
        rows_table: the inlined data table that takes new rows; None where that has not been asked.
    """

    stats: TableStats | None
    columns: Mapping[int, TableColumnStats]
    rows_table: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What was read from a catalog.

    Attributes:
        content: the number that the file's content had; see `DuckDBFiles`.
        snapshot: the newest.
        options: the rows of `ducklake_metadata`; None where nobody has read them.
        tables: by table id.
        columns: what the columns of a table ever were, by table id.
    """

    content: int
    snapshot: Snapshot
    options: Sequence[OptionRow] | None = None
    tables: Mapping[int, TableFacts] = field(default_factory=dict)
    columns: Mapping[int, Sequence[ColumnVersion]] = field(default_factory=dict)

    def after(self, content: int, snapshot: Snapshot, tables: Mapping[int, TableFacts]) -> Kept:
        """What holds after a commit that changed no more than some tables' rows."""
        return replace(self, content=content, snapshot=snapshot, tables={**self.tables, **tables})


def read_table_facts(connection: sa.Connection, table_id: int) -> TableFacts:
    stats = read_table_stats(connection, [table_id]).get(table_id)
    query = _column_stats(exact=versions.column(connection, _c.min_is_exact) is _c.min_is_exact)
    columns = {
        column_id: TableColumnStats(*values) for column_id, *values in connection.execute(query, {"of": table_id})
    }
    return TableFacts(stats, columns)


@cache
def _column_stats(*, exact: bool) -> sa.Select[Any]:
    """Of one table. `exact`: the catalog's version says whether bounds are exact."""
    ends = (_c.min_is_exact, _c.max_is_exact) if exact else (sa.null(), sa.null())
    values = (_c.contains_null, _c.contains_nan, _c.min_value, _c.max_value, _c.extra_stats)
    return sa.select(_c.column_id, *values, *ends).where(_c.table_id == sa.bindparam("of"))
