"""A ChangePlan as DataFrames: what was inserted, what was deleted, and both paired into updates."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ducklake_lab.scan.plan import ChangePlan
from ducklake_lab.spark.reader import read, read_deleted


def insertions(
    spark: SparkSession, plan: ChangePlan, columns: Sequence[str], *, row_id: str, snapshot_id: str
) -> DataFrame:
    """`snapshot_id`, `rowid`, then the columns of every row that was added, new versions of updated rows included."""
    return _named(read(spark, plan.inserted, virtual=True), columns, row_id, snapshot_id)


def deletions(
    spark: SparkSession, plan: ChangePlan, columns: Sequence[str], *, row_id: str, snapshot_id: str
) -> DataFrame:
    """Likewise of every row that was removed, old versions of updated rows included."""
    frame = read(spark, plan.removed, virtual=True)
    if plan.deleted:
        frame = frame.unionByName(read_deleted(spark, plan.inserted, plan.deleted))
    return _named(frame, columns, row_id, snapshot_id)


def feed(spark: SparkSession, plan: ChangePlan, columns: Sequence[str], *, row_id: str, snapshot_id: str) -> DataFrame:
    """Both, with `change_type`: a row removed and added by one snapshot is an update's preimage and postimage."""
    added = insertions(spark, plan, columns, row_id=row_id, snapshot_id=snapshot_id)
    removed = deletions(spark, plan, columns, row_id=row_id, snapshot_id=snapshot_id)
    both = added.withColumn("_ducklake_added", F.lit(1)).unionByName(removed.withColumn("_ducklake_added", F.lit(0)))
    versions = Window.partitionBy("snapshot_id", "rowid")
    updated = (F.min("_ducklake_added").over(versions) == 0) & (F.max("_ducklake_added").over(versions) == 1)
    kind = (
        F.when(updated & (F.col("_ducklake_added") == 0), "update_preimage")
        .when(updated, "update_postimage")
        .when(F.col("_ducklake_added") == 1, "insert")
        .otherwise("delete")
    )
    typed = both.withColumn("_ducklake_change", kind)
    return typed.select("snapshot_id", "rowid", typed["_ducklake_change"].alias("change_type"), *_quoted(columns))


def _named(frame: DataFrame, columns: Sequence[str], row_id: str, snapshot_id: str) -> DataFrame:
    return frame.select(F.col(snapshot_id).alias("snapshot_id"), F.col(row_id).alias("rowid"), *_quoted(columns))


def _quoted(columns: Sequence[str]) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in columns]
