"""Statistics of a table and its columns that a commit reads before it adds rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.files import TableStats
from ducklake_lab.catalog.inlined import NewestTable, newest_table

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
    """Statistics and inlined data tables of a table, read by a commit that adds rows to it.

    Attributes:
        stats: None where nothing was inserted yet.
        columns: by column id.
        newest_table: its newest inlined data table, if it has any.
        rows_table: the inlined data table that takes new rows; None where that has not been asked.
    """

    stats: TableStats | None
    columns: Mapping[int, TableColumnStats]
    newest_table: NewestTable | None = None
    rows_table: str | None = None


def read_table_facts(connection: sa.Connection, table_id: int) -> TableFacts:
    exact = versions.column(connection, _c.min_is_exact) is _c.min_is_exact
    stats: TableStats | None = None
    newest: NewestTable | None = None
    columns = {}
    for row in connection.execute(_facts(exact=exact), {"of": table_id}):
        known, records, next_row_id, size, name, version, altered, column_id, *values = row
        stats = TableStats(records or 0, next_row_id or 0, size or 0) if known is not None else None
        newest = NewestTable(name, version, altered) if name is not None else None
        if column_id is not None:
            columns[column_id] = TableColumnStats(*values)
    return TableFacts(stats, columns, newest)


@cache
def _facts(*, exact: bool) -> sa.Select[Any]:
    """Select facts of one table beside the statistics of each of its columns; either may be missing.

    Args:
        exact: the catalog's version says whether bounds are exact.
    """
    ends = (_c.min_is_exact, _c.max_is_exact) if exact else (sa.null(), sa.null())
    values = (_c.contains_null, _c.contains_nan, _c.min_value, _c.max_value, _c.extra_stats)
    of: sa.BindParameter[int] = sa.bindparam("of")
    s = t.table_stats
    wanted = sa.select(sa.cast(of, sa.BigInteger).label("table_id")).subquery()
    joined = wanted.outerjoin(s, s.c.table_id == wanted.c.table_id)
    joined = joined.outerjoin(t.table_column_stats, _c.table_id == wanted.c.table_id)
    own = (s.c.table_id, s.c.record_count, s.c.next_row_id, s.c.file_size_bytes, *newest_table(of))
    return sa.select(*own, _c.column_id, *values, *ends).select_from(joined)
