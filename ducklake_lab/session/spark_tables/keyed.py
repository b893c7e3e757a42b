"""Splits a scan by the values of one partition key, so that joins by it move no rows.

Spark joins the partitions of two tables by the texts of their keys. So a key takes part only where equal values have one text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.files import partitions
from ducklake_lab.model.entries import PartitionField
from ducklake_lab.model.transforms import Bucket, Identity, Transform, parse_transform
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.scan.plan import InlinedRows, ScanFile, ScanPlan

#: Types whose equal values are hashed alike.
_HASHED = (*INTEGERS, "varchar", "uuid", "date", "timestamp", "timestamptz")
#: Integers that Spark has as integers, too.
_COUNTED = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def by_key(plan: ScanPlan, column: str, transform: str) -> Mapping[str | None, ScanPlan] | None:
    """Returns the parts of a scan by the value of a partition key; None where some rows have an unknown one.

    Args:
        transform: its text, as the catalog has it.
    """
    table = plan.table
    place = _place(plan, column, transform)
    if table.partition is None or place is None:
        return None
    spec, kind = table.partition, table.column_by_id(table.partition.fields[place].column_id)
    files: dict[str | None, list[ScanFile]] = defaultdict(list)
    for file in plan.files:
        data = file.data_file
        if data.partition_id != spec.partition_id or len(data.partition_values) != len(spec.fields):
            return None
        files[data.partition_values[place]].append(file)
    rows: dict[str | None, list[int]] = defaultdict(list)
    if plan.inlined is not None:
        keys = evaluate(
            f"SELECT {', '.join(partitions.key_sql(table, plan.time_zone))} FROM rows", {"rows": plan.inlined.rows}
        )
        for values, numbers in partitions.groups(keys, table):
            rows[values[place]] += numbers.to_pylist()
    values_of_key = sorted({*files, *rows}, key=lambda value: (value is None, value or ""))
    if kind is None or not all(
        _is_one_text(value, kind.data_type, parse_transform(transform)) for value in values_of_key
    ):
        return None
    return {value: _part(plan, files.get(value, ()), rows.get(value, ())) for value in values_of_key}


def _place(plan: ScanPlan, column: str, transform: str) -> int | None:
    """Returns the number of a partition key; None where rows may have other values than their files say."""
    key_column = plan.table.column(column)
    if (
        key_column is None
        or plan.retyped is None
        or key_column.column_id in plan.retyped
        or plan.table.partition is None
    ):
        return None
    field = PartitionField(key_column.column_id, transform)
    return plan.table.partition.fields.index(field) if field in plan.table.partition.fields else None


def _is_one_text(value: str | None, kind: DataType, transform: Transform) -> bool:
    """Returns whether no other key than this one has rows of equal values."""
    if isinstance(transform, Bucket):
        return kind.name in _HASHED and (value is None or _NUMBER.fullmatch(value) is not None)
    if not isinstance(transform, Identity) or value is None:
        return isinstance(transform, Identity)
    if kind.name in _COUNTED:
        return _NUMBER.fullmatch(value) is not None
    return kind.name == "varchar" or (kind.name == "date" and _DATE.fullmatch(value) is not None)


def _part(plan: ScanPlan, files: Sequence[ScanFile], rows: Sequence[int]) -> ScanPlan:
    inlined = InlinedRows(plan.inlined.rows.take(rows)) if plan.inlined is not None and rows else None
    return replace(plan, files=tuple(files), inlined=inlined)
