"""Reads a change feed with one scan per file: positions say which rows are versions of updated rows.

A join of both sides would read each file twice, and shuffle all columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ducklake_lab.model.positions import Positions, ascending
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID
from ducklake_lab.scan.plan import ChangePlan, InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.positions import (
    check_files,
    deleted_positions,
    distinct_files,
    distinct_paths,
    newly_deleted_positions,
)
from ducklake_lab.spark import reader
from ducklake_lab.storage import Storage

_storage = Storage()
_NONE: Positions = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Paired:
    """The rows of one side of a feed whose other version is on the other side.

    Attributes:
        positions: their positions in each file, ascending, by the file's id; files without any are left out.
        row_ids: the snapshot and the row id of inlined ones.
    """

    positions: Mapping[int, Positions]
    row_ids: frozenset[tuple[int, int]] = frozenset()


def read_feed(spark: SparkSession, plan: ChangePlan, added: Paired, removed: Paired) -> DataFrame:
    """Returns `snapshot_id`, `rowid`, `change_type`, then the table's columns.

    Args:
        added, removed: the versions of updated rows on each side.
    """
    check_files(plan.files)
    rows = [
        *_side(spark, plan.inserted, added, "insert", "update_postimage"),
        *_side(spark, plan.removed, removed, "delete", "update_preimage"),
        *_deleted(spark, plan, removed),
    ]
    if not rows:
        rows = [_typed(reader.union(spark, replace(plan.inserted, files=(), inlined=None), [], True), "insert")]
    return reduce(DataFrame.union, rows)


def _typed(frame: DataFrame, change_type: str) -> DataFrame:
    width = len(frame.columns)
    numbered = frame.toDF(*(f"c{i}" for i in range(width)))
    values = [numbered[f"c{i}"].alias(name) for i, name in enumerate(frame.columns[: width - 4])]
    snapshot, row_id = numbered[f"c{width - 1}"], numbered[f"c{width - 2}"]
    kind = F.lit(change_type).alias("change_type")
    return numbered.select(snapshot.alias("snapshot_id"), row_id.alias("rowid"), kind, *values)


def _side(spark: SparkSession, plan: ScanPlan, paired: Paired, alone: str, updated: str) -> Iterator[DataFrame]:
    """Yields the rows of files and inlined rows that only one state has."""
    for files in distinct_paths(plan.files):
        deleted = deleted_positions(files, _storage)
        whole: dict[str, list[ScanFile]] = defaultdict(list)
        parts: list[ScanFile] = []
        for file in files:
            pairs, gone = len(_of(paired, file)), len(deleted.get(file.path, _NONE))
            if not pairs:
                whole[alone].append(file)
            elif pairs + gone == file.data_file.record_count and not file.is_bounded:
                whole[updated].append(file)
            else:
                parts.append(file)
        for kind, group in whole.items():
            kept = {file.path: deleted[file.path] for file in group if file.path in deleted}
            yield from _scans(spark, plan, group, kept, kind, keep_deleted=False)
        both = {file.path: _of(paired, file) for file in parts}
        yield from _scans(spark, plan, parts, both, updated, keep_deleted=True)
        for file in parts:
            both[file.path] = ascending(np.concatenate([both[file.path], deleted.get(file.path, _NONE)]))
        yield from _scans(spark, plan, parts, both, alone, keep_deleted=False)
    if plan.inlined is not None:
        yield from _inlined(spark, plan, plan.inlined.rows, paired, alone, updated)


def _deleted(spark: SparkSession, plan: ChangePlan, paired: Paired) -> Iterator[DataFrame]:
    """Yields the rows that were deleted from files of both states."""
    for group in distinct_files(plan.deleted):
        positions = newly_deleted_positions(group, _storage)
        snapshots = {rows.after.path: rows.snapshot_id for rows in group}
        files = [rows.after for rows in group]
        for kind, choose in (("delete", np.setdiff1d), ("update_preimage", np.intersect1d)):
            chosen = {file.path: choose(positions[file.path], _of(paired, file), True) for file in files}
            some = [file for file in files if len(chosen[file.path])]
            yield from _scans(spark, plan.removed, some, chosen, kind, keep_deleted=True, snapshots=snapshots)


def _scans(
    spark: SparkSession,
    plan: ScanPlan,
    files: Sequence[ScanFile],
    positions: Mapping[str, Positions],
    change_type: str,
    *,
    keep_deleted: bool,
    snapshots: Mapping[str, int] | None = None,
) -> Iterator[DataFrame]:
    if files:
        scans = reader.scans(spark, plan, files, True, positions, keep_deleted=keep_deleted, snapshots=snapshots)
        for frame in scans:
            yield _typed(frame, change_type)


def _inlined(
    spark: SparkSession, plan: ScanPlan, rows: pa.Table, paired: Paired, alone: str, updated: str
) -> Iterator[DataFrame]:
    keys = zip(rows.column(SNAPSHOT_ID).to_pylist(), rows.column(ROW_ID).to_pylist(), strict=True)
    is_paired = pa.array([key in paired.row_ids for key in keys], pa.bool_())
    for kind, mask in ((updated, is_paired), (alone, pc.invert(is_paired))):
        some = rows.filter(mask)
        if some.num_rows:
            part = replace(plan, files=(), inlined=InlinedRows(some))
            yield _typed(reader.read(spark, part, virtual=True), kind)


def _of(paired: Paired, file: ScanFile) -> Positions:
    return paired.positions.get(file.data_file.data_file_id, _NONE)
