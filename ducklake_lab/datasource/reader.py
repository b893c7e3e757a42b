"""Reads a table's files in Python workers, a task for each group of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import datasource as ds

from ducklake_lab.datasource.options import Target
from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.model.predicates import And, Predicate
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.spark.begin_task import begin_task
from ducklake_lab.spark.frames import arrow_for_spark

#: Bytes of Parquet that one task reads, unless a single file is larger.
_TASK_BYTES = 128 << 20


class PlanPartition(ds.InputPartition):
    """A part of a plan: some of its files, or its inlined rows."""

    def __init__(self, plan: ScanPlan) -> None:
        self.plan = plan

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows of the part, in types that Spark takes."""
        begin_task()
        yield from arrow_for_spark(local_reader.read(self.plan)).to_batches()


class TableReader(ds.DataSourceReader):
    """A batch read of one table at one snapshot.

    Attributes:
        predicates: conditions of all wanted rows; files without such rows are skipped.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self.predicates: list[Predicate] = []

    def partitions(self) -> Sequence[PlanPartition]:
        """Return a partition for each group of files; the first one has the inlined rows."""
        target = self._target
        with target.open() as lake, lake.connect() as connection:
            state = lake.state(connection, lake.snapshot(connection, target.at))
            table = state.table(target.schema, target.table)
            predicate = And(tuple(self.predicates)) if self.predicates else None
            return split(plan_scan(lake, connection, state, table, predicate=predicate))

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a Python worker."""
        assert isinstance(partition, PlanPartition)  # partitions() made it
        return partition.read()


def split(plan: ScanPlan) -> list[PlanPartition]:
    """The plan in parts of about equal size; at least one."""
    parts = [PlanPartition(replace(plan, files=tuple(group), inlined=None)) for group in _groups(plan.files)]
    if plan.inlined is not None or not parts:
        parts.insert(0, PlanPartition(replace(plan, files=())))
    return parts


def _groups(files: Sequence[ScanFile]) -> Iterator[list[ScanFile]]:
    group: list[ScanFile] = []
    size = 0
    for file in files:
        if group and size + file.data_file.file_size_bytes > _TASK_BYTES:
            yield group
            group, size = [], 0
        group.append(file)
        size += file.data_file.file_size_bytes
    if group:
        yield group
