"""What was read from a catalog last, and holds as long as nobody has written to it (ADR 0061)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.files import TableStats
from ducklake_lab.catalog.inlined import NewestTable, newest_table
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
        newest_table: its newest inlined data table, if it has any.
        rows_table: the inlined data table that takes new rows; None where that has not been asked.
    """

    stats: TableStats | None
    columns: Mapping[int, TableColumnStats]
    newest_table: NewestTable | None = None
    rows_table: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What was read from a catalog.

    Attributes:
        content: the number that the file's content had, see `DuckDBFiles`; None of other catalogs.
        snapshot: the newest.
        options: the rows of `ducklake_metadata`; None where nobody has read them.
        tables: by table id.
        columns: what the columns of a table ever were, by table id.
    """

    content: int | None
    snapshot: Snapshot
    options: Sequence[OptionRow] | None = None
    tables: Mapping[int, TableFacts] = field(default_factory=dict)
    columns: Mapping[int, Sequence[ColumnVersion]] = field(default_factory=dict)

    def after(self, content: int | None, snapshot: Snapshot, tables: Mapping[int, TableFacts]) -> Kept:
        """What holds after a commit that changed no more than some tables' rows."""
        return replace(self, content=content, snapshot=snapshot, tables={**self.tables, **tables})


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
    """What is known of one table beside the statistics of each of its columns; either may be missing.

    Args:
        exact: the catalog's version says whether bounds are exact.
    """
    ends = (_c.min_is_exact, _c.max_is_exact) if exact else (sa.null(), sa.null())
    values = (_c.contains_null, _c.contains_nan, _c.min_value, _c.max_value, _c.extra_stats)
    of: sa.BindParameter[int] = sa.bindparam("of")
    s = t.table_stats
    wanted = sa.select(sa.cast(of, sa.BigInteger).label("table_id")).subquery()
    found = wanted.outerjoin(s, s.c.table_id == wanted.c.table_id)
    found = found.outerjoin(t.table_column_stats, _c.table_id == wanted.c.table_id)
    own = (s.c.table_id, s.c.record_count, s.c.next_row_id, s.c.file_size_bytes, *newest_table(of))
    return sa.select(*own, _c.column_id, *values, *ends).select_from(found)
