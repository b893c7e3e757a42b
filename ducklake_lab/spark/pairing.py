"""The rows two states do not share, paired on Spark: counted all, and a sample of them collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ducklake_lab.catalog.casting import cast_columns
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.scan.plan import ChangePlan
from ducklake_lab.spark.frames import to_arrow_table
from ducklake_lab.spark.reader import read, read_deleted


@dataclass(frozen=True, slots=True)
class Pairs:
    """Changed rows by kind, and a sample of their two versions.

    Attributes:
        cells: per later column, updated rows whose cell differs.
        removed: earlier versions in the sample, as `read(…, virtual=True)` gives them.
        added: later versions, likewise.
        sampled: the sample is not all of them.
    """

    inserted: int
    deleted: int
    updated: int
    cells: tuple[int, ...]
    removed: pa.Table
    added: pa.Table
    sampled: bool


def pair(
    spark: SparkSession,
    change: ChangePlan,
    columns: Sequence[Column],
    *,
    later: int,
    key: Sequence[str] = (),
    sample: int,
) -> Pairs:
    """Pairs removed and added rows by row id, or by key; those with equal values have not changed.

    Args:
        columns: those of both sides.
        later: the first so many of them are compared.
        sample: rows collected, about; drawn by their ids or keys.

    Raises:
        UsageError: the key is not unique in one of the states.
    """
    removed = read(spark, change.removed, virtual=True)
    if change.deleted:
        removed = removed.unionByName(read_deleted(spark, change.removed, change.deleted))
    added = read(spark, change.inserted, virtual=True)
    _check_unique(removed, added, key)
    joined = _numbered(removed, columns, "b").join(
        _numbered(added, columns, "a"), _condition(columns, key), "full_outer"
    )
    kind = F.when(F.col("b_there").isNull(), "inserted").when(F.col("a_there").isNull(), "deleted").otherwise("updated")
    differs = [
        ~_comparable(f"b{i}", column).eqNullSafe(_comparable(f"a{i}", column))
        for i, column in enumerate(columns[:later])
    ]
    any_cell = reduce(lambda one, other: one | other, differs) if differs else F.lit(False)
    changed = joined.withColumn("kind", kind).where((F.col("kind") != "updated") | any_cell)
    inserted, deleted, updated, *cells = _count(changed, differs)
    total = inserted + deleted + updated
    share = min(1.0, sample / max(total, 1))
    if share < 1:
        seeds = [F.coalesce(F.col(f"b{i}"), F.col(f"a{i}")) for i in _indexes(columns, key)]
        drawn = F.pmod(F.xxhash64(*(seeds or [F.coalesce("b_rid", "a_rid")])), F.lit(1_000_000))
        changed = changed.where(drawn < int(share * 1_000_000))
    rows = to_arrow_table(changed.drop("kind"))
    return Pairs(
        inserted, deleted, updated, tuple(cells), _side(rows, "b", columns), _side(rows, "a", columns), share < 1
    )


def _numbered(frame: DataFrame, columns: Sequence[Column], prefix: str) -> DataFrame:
    """Columns by number: any name may be taken by the table's own."""
    quoted = ["`" + column.name.replace("`", "``") + "`" for column in columns]
    return frame.select(
        F.col(ROW_ID).alias(f"{prefix}_rid"),
        F.lit(True).alias(f"{prefix}_there"),
        *(F.col(name).alias(f"{prefix}{i}") for i, name in enumerate(quoted)),
    )


def _indexes(columns: Sequence[Column], key: Sequence[str]) -> list[int]:
    folded = [column.name.casefold() for column in columns]
    return [folded.index(name.casefold()) for name in key]


def _condition(columns: Sequence[Column], key: Sequence[str]) -> SparkColumn:
    if not key:
        return F.col("b_rid") == F.col("a_rid")
    parts = [F.col(f"b{i}").eqNullSafe(F.col(f"a{i}")) for i in _indexes(columns, key)]
    return reduce(lambda one, other: one & other, parts)


def _comparable(name: str, column: Column) -> SparkColumn:
    """Maps do not compare in Spark; their text does."""
    has_map = any(part.type in ("map", "variant") for part in column.walk())
    return F.to_json(F.struct(F.col(name))) if has_map else F.col(name)


def _count(changed: DataFrame, differs: Sequence[SparkColumn]) -> list[int]:
    sums = [F.count_if(F.col("kind") == kind) for kind in ("inserted", "deleted", "updated")]
    sums += [F.count_if((F.col("kind") == "updated") & differ) for differ in differs]
    (row,) = changed.agg(*(one.alias(f"n{i}") for i, one in enumerate(sums))).collect()
    return list(row)


def _check_unique(removed: DataFrame, added: DataFrame, key: Sequence[str]) -> None:
    if not key:
        return
    quoted = ["`" + name.replace("`", "``") + "`" for name in key]
    for state, frame in (("earlier", removed), ("later", added)):
        shared = frame.groupBy(*quoted).count().where("count > 1").agg(F.sum(F.col("count") - 1)).head()
        if shared is not None and shared[0]:
            raise UsageError(
                f"{', '.join(key)} is no key: in the {state} state {shared[0]:,} rows share its values with another "
                "row; name more columns."
            )


def _side(sample: pa.Table, prefix: str, columns: Sequence[Column]) -> pa.Table:
    """One side of the sampled pairs, as a reader would give it."""
    rows = sample.filter(sample.column(f"{prefix}_there").is_valid())
    own = rows.select([f"{prefix}{i}" for i in range(len(columns))]).rename_columns([column.name for column in columns])
    own = cast_columns(own, {column.name: column.data_type for column in columns})
    nulls = pa.nulls(rows.num_rows, pa.int64())
    for name in VIRTUAL_COLUMNS:
        own = own.append_column(name, rows.column(f"{prefix}_rid") if name == ROW_ID else nulls)
    return own
