"""Digests of whole tables, from the statistics in the catalog, in place of their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.engine.rows import Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.metadata_aggregates import digest
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
    columns = [scan.plan.table.column(name) for name in wanted.columns]
    counted = [scan.plan.table.column(name) for name in wanted.counted]
    with_stats = [column for column in (*columns, *counted) if column is not None]
    assert isinstance(source.rows, LakeTable)  # only scans have digests
    stats: Mapping[int, Mapping[int, ColumnStats]] = {}
    if with_stats:
        with source.rows.lake.connect() as connection:
            ids = {column.column_id for column in with_stats}
            at = state(source.rows).snapshot.snapshot_id
            stats = read_column_stats(connection, scan.plan.table.table_id, ids, at)
    return digest(scan.plan, stats, with_stats[: len(columns)], with_stats[len(columns) :], ROWS)
