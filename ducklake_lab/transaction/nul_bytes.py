"""NUL bytes, which PostgreSQL allows in no text: rows with them go to files, and bounds are left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ducklake_lab.catalog.backends import takes_text
from ducklake_lab.catalog.inlined import inlined_tables
from ducklake_lab.catalog.uri import Backend
from ducklake_lab.model.entries import Column
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.transaction.statistics import leaf_values
from ducklake_lab.transaction.transaction import Transaction

_NUL = "\0"


def can_inline_rows(columns: Sequence[Column], rows: pa.Table, backend: Backend) -> bool:
    """Returns whether rows fit an inlined data table: nested values are texts there, other texts are bytes."""
    if backend != "postgresql":
        return True
    return not any(
        pa.types.is_string(values.type) and pc.any(pc.match_substring(values, _NUL)).as_py()
        for column in columns
        if column.children and takes_text(backend, column.data_type)
        for _, values in leaf_values(column, rows.column(column.name))
    )


def without_nul(stats: ColumnStats, backend: Backend) -> ColumnStats:
    """The statistics as the catalog keeps them: a bound with a NUL byte is unknown, as in the reference."""
    if backend != "postgresql":
        return stats
    variants = tuple(replace(part, stats=without_nul(part.stats, backend)) for part in stats.variant_stats)
    low, high = (None if text is not None and _NUL in text else text for text in (stats.min_value, stats.max_value))
    if (low, high, variants) == (stats.min_value, stats.max_value, stats.variant_stats):
        return stats
    return replace(stats, min_value=low, max_value=high, variant_stats=variants)


def refused_text(transaction: Transaction) -> str:
    """Find the text of a commit whose NUL byte the catalog has refused."""
    for table_id, staged in transaction.data.items():
        table = transaction.state.tables[table_id]
        fields = table.partition.fields if table.partition is not None else ()
        for file in staged.files.values():
            for field, value in zip(fields, file.file.partition_values, strict=False):
                column = table.column_by_id(field.column_id)
                if value is not None and _NUL in value and column is not None:
                    name = f"{transaction.state.qualified_name(table)}.{column.name}"
                    return f"A value of {name}, by which the table is partitioned, has a NUL byte, chr(0)"
    return "A text outside of rows, such as a name, default, comment or message, has a NUL byte, chr(0)"


def unbounded_inlined(
    connection: sa.Connection, table_id: int, columns: Iterable[Column], snapshot_id: int
) -> set[int]:
    """The ids of leaf columns, in columns that have no bounds, with values in earlier inlined rows.

    Args:
        columns: top-level ones.
        snapshot_id: the snapshot that is being made; statistics of its own rows are known.
    """
    column_ids: set[int] = set()
    for name, _ in inlined_tables(connection, table_id):
        names = connection.exec_driver_sql(f"SELECT * FROM {quote_identifier(name)} LIMIT 0").keys()
        for column in columns:
            if column.name not in names:
                continue
            query = (
                f"SELECT 1 FROM {quote_identifier(name)} "
                f"WHERE {quote_identifier(column.name)} IS NOT NULL AND begin_snapshot < {int(snapshot_id)} LIMIT 1"
            )
            if connection.exec_driver_sql(query).first() is not None:
                column_ids |= {part.column_id for part in column.walk()}
    return column_ids
