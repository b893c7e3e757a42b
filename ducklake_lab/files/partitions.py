"""Partition keys of data files: their values as the catalog stores them, and the folders they lie in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ducklake_lab.catalog import versions
from ducklake_lab.catalog.paths import hive_segment
from ducklake_lab.catalog.versions.version import Version
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.model.altering import existing
from ducklake_lab.model.entries import Column, PartitionField, Table
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.transforms import Transform, Unknown, parse_transform

#: The values of one file, one per partition key, as the catalog stores them.
Values = tuple[str | None, ...]


def partition_fields(table: Table, keys: Sequence[tuple[str, str]], version: Version) -> tuple[PartitionField, ...]:
    """The partition keys of names of columns, each with the text of its transform.

    Raises:
        BindError: the table has no such column, or the transform takes none of its type.
        UnsupportedFeatureError: the lake's version lacks the transform.
    """
    fields = []
    for name, text in keys:
        column = existing(table, name)
        transform, kind = parse_transform(text), column.data_type
        if transform.since is not None and not versions.is_since(version, transform.since):
            raise UnsupportedFeatureError(
                f"Partition transform {transform} is not supported: DuckLake {transform.since} brought it, "
                f"and the lake is of version {version.name}."
            )
        if not transform.can_apply(kind):
            raise BindError(f"{transform}({column.name}) is not possible for a column of type {kind.sql()}.")
        fields.append(PartitionField(column.column_id, text))
    return tuple(fields)


def partition_keys(table: Table) -> list[tuple[Column, Transform]]:
    """The column and the transform of each partition key; [] for a table without keys.

    Raises:
        UnsupportedFeatureError: the table has no such column, or nobody knows the transform.
    """
    keys = []
    for field in table.partition.fields if table.partition else ():
        column = table.column_by_id(field.column_id)
        if column is None:
            raise UnsupportedFeatureError(f"Table {table.name} is partitioned by a column it does not have.")
        transform = parse_transform(field.transform)
        if isinstance(transform, Unknown):
            raise UnsupportedFeatureError(f"The partition transform {transform} of {column.name} is not supported.")
        keys.append((column, transform))
    return keys


def folder_names(table: Table) -> list[str]:
    """The name of each partition key in the path of a file."""
    names: list[str] = []
    for column, transform in partition_keys(table):
        name = transform.folder(column.name)
        is_used = name.casefold() in (other.casefold() for other in names)
        names.append(f"{name}_{column.name}" if is_used else name)
    return names


def hive_folder(table: Table, values: Values) -> str:
    """The folder, ending in `/`, of files with these values; "" for a table without keys."""
    named = zip(folder_names(table), values, strict=True) if table.partition is not None else ()
    return "".join(hive_segment(name, value) + "/" for name, value in named)


def key_sql(table: Table, time_zone: str) -> list[str]:
    """DuckDB's SQL over the table's columns from which `groups` makes the partition keys.

    Args:
        time_zone: in which the day or hour is that of a time with a zone.

    Raises:
        UnsupportedFeatureError: names a key that is not computed here.
    """
    texts = []
    for column, transform in partition_keys(table):
        if column not in table.columns:
            raise UnsupportedFeatureError(
                f"Writing to a table partitioned by the nested field {column.name} is not supported."
            )
        texts.append(transform.sql(quote_identifier(column.name), column.data_type, time_zone))
    return texts


def groups(keys: pa.Table, table: Table) -> Iterator[tuple[Values, pa.Array]]:
    """The rows, by number, of each combination of key texts, in the order in which those come first.

    Args:
        keys: the values of `key_sql`.
    """
    rows: dict[Values, list[int]] = {}
    columns = [
        transform.keys(column) for (_, transform), column in zip(partition_keys(table), keys.columns, strict=True)
    ]
    for number, values in enumerate(zip(*columns, strict=True)):
        rows.setdefault(values, []).append(number)
    for values, numbers in rows.items():
        yield values, pa.array(np.asarray(numbers, np.int64))
