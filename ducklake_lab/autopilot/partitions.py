"""Partitions that a condition of the policy chooses."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.errors import BindError, UsageError
from ducklake_lab.files.partitions import folder_names, partition_keys
from ducklake_lab.model.entries import Table
from ducklake_lab.scan.file_stats import Partition
from ducklake_lab.sql.parse.expectations import stored_condition

#: The values of one partition, as the catalog has them.
Values = tuple[str | None, ...]
_NUMBER = "ducklake_lab_number"


def chosen(where: str, table: Table, partitions: Collection[Partition], time_zone: str) -> set[Values]:
    """Return the values of partitions for which a condition is true; DuckDB decides.

    The text may be anybody's, as the catalog keeps it. It reaches no file and no other row.

    Args:
        partitions: those of other partition keys than the table has now are left out.
        time_zone: for times without one.

    Raises:
        UsageError: it is no condition over the table's partition keys.
        SqlSyntaxError, UnsupportedFeatureError: it is no condition on one row.
    """
    keys = table.partition.partition_id if table.partition is not None else None
    values = sorted({one.values for one in partitions if one.partition_id == keys and keys is not None}, key=str)
    sql = f"SELECT {_NUMBER} FROM given WHERE {checked_condition(where)}"
    try:
        found = evaluate(sql, {"given": _typed(table, values, time_zone)}, time_zone)
    except BindError as error:
        known = ", ".join(folder_names(table)) or "none"
        raise UsageError(
            f'The condition "{where}" does not fit the partition keys of {table.name}, which are {known}: {error}'
        ) from error
    return {values[number] for number in found.column(0).to_pylist()}


def checked_condition(where: str) -> str:
    """Return the text of a condition on one partition.

    Raises:
        SqlSyntaxError, UnsupportedFeatureError: it is none.
    """
    return stored_condition(where, "condition of partitions")


def _typed(table: Table, values: Sequence[Values], time_zone: str) -> pa.Table:
    """Return a row for each partition, with its keys in their types and its number."""
    types = {
        name: transform.result_type(column.data_type)
        for name, (column, transform) in zip(folder_names(table), partition_keys(table), strict=True)
    }
    texts = {name: pa.array([one[at] for one in values], pa.string()) for at, name in enumerate(types)}
    typed = cast_columns(pa.table(texts), types, time_zone) if types else pa.table({})
    return typed.append_column(_NUMBER, pa.array(range(len(values)), pa.int64()))


def shown(table: Table | None, partitions: Sequence[Partition]) -> str:
    """Return the first partition and the number of others; "" for a table without keys."""
    named = [one for one in partitions if one.partition_id is not None]
    if table is None or not named:
        return ""
    keys = table.partition.partition_id if table.partition is not None else None
    first = next((one for one in named if one.partition_id == keys), None)
    if first is None:
        return f"{len(named):,} of earlier keys"
    text = ", ".join(
        f"{name} = {'NULL' if value is None else value}"
        for name, value in zip(folder_names(table), first.values, strict=False)
    )
    return text if len(named) == 1 else f"{text} and {len(named) - 1:,} more"
