"""Diffs of more rows than fit in process: counted on Spark, and a sample of them looked at here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ducklake_lab.diff.baseline_stats import Known
from ducklake_lab.diff.diff_states import Aligned
from ducklake_lab.diff.rows import ChangedRows, RowCounts
from ducklake_lab.scan.plan import ChangePlan
from ducklake_lab.spark.pairing import pair

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rows looked at for distributions, segments and the rows shown.
SAMPLE = 100_000


def changed_rows(
    spark: SparkSession, change: ChangePlan, aligned: Aligned, key: Sequence[str], baseline: Known, time_zone: str
) -> tuple[ChangedRows, RowCounts]:
    """A sample of the changed rows, and exact counts of all of them."""
    later = len(aligned.columns) - aligned.only_before
    pairs = pair(spark, change, aligned.columns, later=later, key=key, sample=SAMPLE)
    counts = RowCounts(pairs.inserted, pairs.deleted, pairs.updated, pairs.cells)
    changed = ChangedRows(
        pairs.removed,
        pairs.added,
        aligned.columns,
        only_before=aligned.only_before,
        key=key,
        known=baseline,
        time_zone=time_zone,
        total=counts.changed if pairs.sampled else None,
    )
    return changed, counts
