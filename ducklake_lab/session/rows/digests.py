"""Digests of tables, from the statistics in their catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.rows import Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.metadata_aggregates import digest
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.presence import check_present
from ducklake_lab.session.rows.named_rows import LakeTable
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.planning.metadata_aggregates import ROWS


def digest_rows(
    plan: QueryPlan, loaded: Mapping[str, Rows], state: Callable[[LakeTable], CatalogState]
) -> pa.Table | None:
    """Returns the digest that stands for the table of a plan; None if its files must be read.

    Args:
        loaded: the plan's sources by view.
        state: returns the entries that the plan reads.
    """
    if plan.digest is None:
        return None
    wanted, (source, *_) = plan.digest, plan.sources
    scan = loaded[source.view]
    if not isinstance(scan, Scan) or not scan.plan.files:
        return None
    assert isinstance(source.rows, LakeTable)  # only scans have digests
    return digest_of(source.rows.lake, state(source.rows), scan.plan, wanted.columns, wanted.counted)


def digest_of(
    lake: Lake, state: CatalogState, plan: ScanPlan, extremes: Sequence[str], counted: Sequence[str]
) -> pa.Table | None:
    """Returns the digest of a table, see `scan/metadata_aggregates.py`; None if its files must be read.

    Args:
        extremes: the columns whose minimum or maximum is needed.
        counted: the columns whose values are counted.

    Raises:
        DataFileError: a file that another catalog names too is missing.
    """
    columns, values = (
        [column for name in names if (column := plan.table.column(name)) is not None] for names in (extremes, counted)
    )
    stats: Mapping[int, Mapping[int, ColumnStats]] = {}
    if columns or values:
        with lake.connect() as connection:
            ids = {column.column_id for column in (*columns, *values)}
            stats = read_column_stats(connection, plan.table.table_id, ids, state.snapshot.snapshot_id)
    table_digest = digest(plan, stats, columns, values, ROWS)
    if table_digest is not None:
        check_present(lake, state.qualified_name(plan.table), plan.files)
    return table_digest
