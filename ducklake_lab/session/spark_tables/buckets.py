"""Reads of a table by the buckets of a column, so that Spark joins two of them without a shuffle (ADR 107)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.model.entries import Column
from ducklake_lab.model.transforms import Bucket, parse_transform
from ducklake_lab.model.transforms.bucket import hashed_form
from ducklake_lab.scan.plan import InlinedRows, ScanFile, ScanPlan

#: Types whose equal values are equal in Spark, too, and have one hash.
_TYPES = ("int8", "int16", "int32", "int64", "date", "varchar")


def form_of(column: Column) -> str | None:
    """Returns the form in which values of a column are hashed; None for types that are not joined by their buckets."""
    return hashed_form(column.data_type) if column.type in _TYPES else None


def is_whole(plan: ScanPlan, name: str) -> bool:
    """Returns whether each file has rows of one bucket of a column alone.

    Files from before the table had its partition keys do not, nor do those from before the column had its type.
    """
    found = _key(plan, name)
    if found is None:
        return False
    place, column, _ = found
    partition = plan.table.partition
    assert partition is not None
    if plan.retyped is None or column.column_id in plan.retyped:
        return False
    return all(
        file.data_file.partition_id == partition.partition_id
        and len(file.data_file.partition_values) == len(partition.fields)
        and _is_number(file.data_file.partition_values[place])
        for file in plan.files
    )


def part(plan: ScanPlan, name: str, bucket: int) -> ScanPlan:
    """Returns the part of a plan with the rows of one bucket. Rows without a value belong to bucket 0."""
    found = _key(plan, name)
    assert found is not None
    place, column, transform = found

    def is_of(file: ScanFile) -> bool:
        value = file.data_file.partition_values[place]
        return int(value or 0) == bucket

    return replace(
        plan,
        files=tuple(file for file in plan.files if is_of(file)),
        inlined=_inlined(plan.inlined, column, transform, bucket),
    )


def _inlined(inlined: InlinedRows | None, column: Column, transform: Bucket, bucket: int) -> InlinedRows | None:
    if inlined is None:
        return None
    values = inlined.rows.column(column.name)
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    keys = pa.array([int(key or 0) for key in transform.keys(values)], pa.int64())
    rows = inlined.rows.filter(pc.equal(keys, bucket))
    return InlinedRows(rows) if rows.num_rows else None


def _key(plan: ScanPlan, name: str) -> tuple[int, Column, Bucket] | None:
    """Returns the place of a column's bucket among the partition keys, the column and the transform."""
    column = plan.table.column(name)
    for place, key in enumerate(plan.table.partition.fields if plan.table.partition is not None else ()):
        transform = parse_transform(key.transform)
        if column is not None and key.column_id == column.column_id and isinstance(transform, Bucket):
            return place, column, transform
    return None


def _is_number(value: str | None) -> bool:
    return value is None or value.isdecimal()
