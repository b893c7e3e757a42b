"""Digests of tables, from the statistics in their catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.metadata_aggregates import digest
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.sql.planning.metadata_aggregates import ROWS


def digest_of(
    lake: Lake, state: CatalogState, plan: ScanPlan, extremes: Sequence[str], counted: Sequence[str]
) -> pa.Table | None:
    """Returns the digest of a table, see `scan/metadata_aggregates.py`; None if its files must be read.

    Args:
        extremes: the columns whose minimum or maximum is needed.
        counted: the columns whose values are counted.
    """
    columns, values = (
        [column for name in names if (column := plan.table.column(name)) is not None] for names in (extremes, counted)
    )
    stats: Mapping[int, Mapping[int, ColumnStats]] = {}
    if columns or values:
        with lake.connect() as connection:
            ids = {column.column_id for column in (*columns, *values)}
            stats = read_column_stats(connection, plan.table.table_id, ids, state.snapshot.snapshot_id)
    return digest(plan, stats, columns, values, ROWS)
