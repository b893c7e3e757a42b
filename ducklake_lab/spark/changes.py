"""A ChangePlan as DataFrames: what was inserted, what was deleted, and both paired into updates."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID
from ducklake_lab.scan.plan import ChangePlan
from ducklake_lab.spark.reader import read, read_deleted

_ADDED = "_ducklake_added"


def insertions(spark: SparkSession, plan: ChangePlan, virtual: bool = False) -> DataFrame:
    """Every row that was added, new versions of updated rows included; with the virtual columns if wanted."""
    return read(spark, plan.inserted, virtual=virtual)


def deletions(spark: SparkSession, plan: ChangePlan, virtual: bool = False) -> DataFrame:
    """Likewise every row that was removed, old versions of updated rows included."""
    frame = read(spark, plan.removed, virtual=True)
    if plan.deleted:
        frame = frame.unionByName(read_deleted(spark, plan.inserted, plan.deleted))
    return frame if virtual else frame.select(*_columns(plan))


def feed(spark: SparkSession, plan: ChangePlan) -> DataFrame:
    """Both, with `change_type`: a row removed and added by one snapshot is an update's preimage and postimage."""
    added = insertions(spark, plan, virtual=True).withColumn(_ADDED, F.lit(1))
    removed = deletions(spark, plan, virtual=True).withColumn(_ADDED, F.lit(0))
    both = added.unionByName(removed)
    versions = Window.partitionBy(SNAPSHOT_ID, ROW_ID)
    updated = (F.min(_ADDED).over(versions) == 0) & (F.max(_ADDED).over(versions) == 1)
    kind = (
        F.when(updated & (F.col(_ADDED) == 0), "update_preimage")
        .when(updated, "update_postimage")
        .when(F.col(_ADDED) == 1, "insert")
        .otherwise("delete")
    )
    typed = both.withColumn("_ducklake_change", kind)
    return typed.select(
        typed[SNAPSHOT_ID].alias("snapshot_id"),
        typed[ROW_ID].alias("rowid"),
        typed["_ducklake_change"].alias("change_type"),
        *_columns(plan),
    )


def _columns(plan: ChangePlan) -> list[str]:
    return ["`" + column.name.replace("`", "``") + "`" for column in plan.inserted.columns]
