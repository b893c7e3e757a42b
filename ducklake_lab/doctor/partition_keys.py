"""Partition keys of the rows of a data file, beside those that the catalog gives the file."""

from __future__ import annotations

import pyarrow as pa

from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.files.partitions import groups, key_sql, partition_keys
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import DataFile
from ducklake_lab.model.transforms.identity import Identity
from ducklake_lab.model.transforms.transform import Transform
from ducklake_lab.model.types import FLOATS

Values = tuple[str | None, ...]


def other_keys(file: DataFile, table: Table, rows: pa.Table) -> Values | None:
    """Return keys of rows that differ from the keys of their file; None where none do, or where keys are unknown.

    Readers skip files by their keys. It compares no keys that depend on a time zone, and none of earlier types.
    """
    spec = table.partition
    if spec is None or file.partition_id != spec.partition_id or len(file.partition_values) != len(spec.fields):
        return None
    try:
        keys = partition_keys(table)
        texts = key_sql(table, "UTC")
    except UnsupportedFeatureError:
        return None
    columns = ", ".join(f"{sql} AS k{at}" for at, sql in enumerate(texts))
    for values, _ in groups(evaluate(f"SELECT {columns} FROM rows", {"rows": rows}), table):
        if not all(map(_is_same, keys, file.partition_values, values)):
            return values
    return None


def _is_same(key: tuple[Column, Transform], stored: str | None, computed: str | None) -> bool:
    """Return whether two texts of a key are one value, or may be."""
    (column, transform), kind = key, key[0].data_type
    if stored == computed or transform.depends_on_type:
        return True
    if not isinstance(transform, Identity):
        return column.type == "timestamptz"
    if stored is None or computed is None:
        return False
    if kind.name in FLOATS:
        return True  # the value of a shorter type is another one
    typed = cast_columns(pa.table({"a": [stored], "b": [computed]}), {"a": kind, "b": kind})
    return bool(evaluate("SELECT a IS NOT DISTINCT FROM b FROM typed", {"typed": typed}).column(0)[0].as_py())
