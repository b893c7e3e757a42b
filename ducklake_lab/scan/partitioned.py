"""Partition values of a data file, and the rows that they allow in it (spec: ducklake_file_partition_value)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ducklake_lab.model.entries import Column, PartitionSpec
from ducklake_lab.model.files import DataFile
from ducklake_lab.model.predicates import Comparison, InList, NullTest, Operator, StartsWith
from ducklake_lab.model.transforms import calendar, parse_transform
from ducklake_lab.model.values import comparable

#: Transforms by column id, each with the value that all rows of a file have.
Keys = Mapping[int, Mapping[str, str | None]]


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition keys of a table.

    Attributes:
        specs: all that it ever had, by partition id.
        retyped: ids of the columns that ever had another type, by which a value may be in another bucket.
    """

    specs: Mapping[int, PartitionSpec]
    retyped: frozenset[int] = frozenset()

    def keys_of(self, file: DataFile) -> Keys:
        """The partition values of a file; {} where it has none, or not as many as there were keys."""
        spec = self.specs.get(file.partition_id) if file.partition_id is not None else None
        if spec is None or len(spec.fields) != len(file.partition_values):
            return {}
        values: dict[int, dict[str, str | None]] = {}
        for field, value in zip(spec.fields, file.partition_values, strict=True):
            if field.column_id not in self.retyped or not parse_transform(field.transform).depends_on_type:
                values.setdefault(field.column_id, {})[field.transform] = value
        return values


#: Partition keys of tables that have none.
UNPARTITIONED = Partitioning({})


def may_hold(
    column: Column, transforms: Mapping[str, str | None], predicate: Comparison | InList | NullTest | StartsWith
) -> bool:
    """Returns whether a file may hold a row for which the predicate, on this column, is true."""
    keys = [(parse_transform(transform), key) for transform, key in transforms.items()]
    is_null = isinstance(predicate, NullTest) and predicate.is_null
    if not all(transform.may_be_null(key, is_null=is_null) for transform, key in keys):
        return False
    if isinstance(predicate, NullTest):
        return True
    if isinstance(predicate, StartsWith):
        prefix = predicate.prefix
        return all(key is None or transform.may_start_with(key, column.data_type, prefix) for transform, key in keys)
    op: Operator = predicate.op if isinstance(predicate, Comparison) else "="
    values = (predicate.value,) if isinstance(predicate, Comparison) else predicate.values
    return any(_may_compare(column, transforms, op, value) for value in values)


def _may_compare(column: Column, transforms: Mapping[str, str | None], op: Operator, value: object) -> bool:
    kind = column.data_type
    constant = comparable(value, kind)
    if constant is None:
        return True
    return all(
        key is None or parse_transform(transform).may_compare(key, kind, op, constant)
        for transform, key in transforms.items()
    ) and calendar.may_compare(transforms, kind, op, constant)
