"""Reads a table's files in Python workers, a task for each group of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from ducklake_lab.datasource.options import Target, chosen_columns
from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.predicates import COMPARED_ALIKE, And, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.spark.frames import arrow_for_spark
from ducklake_lab.spark.types import table_schema
from ducklake_lab.spark.workers.start import begin_task

#: Bytes of Parquet that one task reads, unless a single file is larger.
_TASK_BYTES = 128 << 20


class PlanPartition(ds.InputPartition):
    """A part of a plan: some of its files, or its inlined rows; the columns have the given names."""

    def __init__(self, plan: ScanPlan, names: Sequence[str]) -> None:
        self.plan = plan
        self.names = list(names)

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows of the part, in types that Spark takes."""
        begin_task()
        yield from arrow_for_spark(local_reader.read(self.plan)).rename_columns(self.names).to_batches()


class EntryReader(ds.DataSourceReader):
    """A batch read of one table at one snapshot.

    Attributes:
        predicates: conditions of all wanted rows; files without such rows are skipped.
    """

    def __init__(self, target: Target, schema: StructType) -> None:
        self._target = target
        self._schema = schema
        self.predicates: list[Predicate] = []

    def partitions(self) -> Sequence[PlanPartition]:
        """Return a partition for each group of files; the first one has the inlined rows."""
        target = self._target
        with target.open() as lake, lake.connect() as connection:
            state = lake.state(connection, lake.snapshot(connection, target.at))
            table = state.table(target.schema, target.table)
            predicates = tuple(predicate for predicate in self.predicates if _is_compared_alike(predicate, table))
            predicate = And(predicates) if predicates else None
            return split(plan_scan(lake, connection, state, table, predicate=predicate), self._schema)

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a Python worker."""
        assert isinstance(partition, PlanPartition)  # partitions() made it
        return partition.read()


def _is_compared_alike(predicate: Predicate, table: Table) -> bool:
    """Whether Spark and DuckDB agree for which values of a column a predicate is true."""
    assert not isinstance(predicate, And | Or)  # each filter names one column
    column = table.column(predicate.column[0]) if len(predicate.column) == 1 else None
    if column is None or not (column.type in COMPARED_ALIKE or column.data_type.decimal is not None):
        return False
    if isinstance(predicate, NullTest):
        return True
    if isinstance(predicate, StartsWith):
        return column.type == "varchar"
    values = predicate.values if isinstance(predicate, InList) else (predicate.value,)
    return all(isinstance(value, str) == (column.type == "varchar") for value in values)


def selected(plan: ScanPlan, schema: StructType) -> ScanPlan:
    """Return the plan of reading the columns that a schema names.

    Raises:
        BindError: the table has no such column.
        UsageError: the schema gives a column another type.
    """
    table = plan.table
    columns = chosen_columns(table.columns, tuple(schema.names), table.name)
    for column, wanted, own in zip(columns, schema.fields, table_schema(columns).fields, strict=True):
        if wanted.dataType != own.dataType:
            raise UsageError(
                f'Column "{column.name}" is {own.dataType.simpleString()}, not {wanted.dataType.simpleString()}; '
                "read it as it is, and cast it."
            )
    return plan if columns == table.columns else replace(plan, table=replace(table, columns=columns))


def split(whole: ScanPlan, schema: StructType) -> list[PlanPartition]:
    """The plan of reading some columns, in parts of about equal size; at least one.

    Raises:
        BindError, UsageError: as `selected`.
    """
    plan = selected(whole, schema)
    parts = [
        PlanPartition(replace(plan, files=tuple(group), inlined=None), schema.names) for group in _groups(plan.files)
    ]
    if plan.inlined is not None or not parts:
        parts.insert(0, PlanPartition(replace(plan, files=()), schema.names))
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
