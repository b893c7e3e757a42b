"""Rows written under one set of columns as rows under another."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.duckdb.casting import cast_columns, constant_column
from ducklake_lab.model.entries import Column


def project(rows: pa.Table, stored: Sequence[Column], columns: Sequence[Column], time_zone: str = "UTC") -> pa.Table:
    """Rows written under one set of columns as rows under another: matched by id, cast, new ones by default.

    Columns of `rows` that are neither (row and snapshot ids) are kept, first.
    """
    names = {column.column_id: column.name for column in stored}
    stored_names = set(names.values())
    arrays: list[pa.ChunkedArray | pa.Array] = []
    target: list[str] = []
    for name in rows.column_names:
        if name not in stored_names:
            arrays.append(rows.column(name))
            target.append(name)
    by_id = {column.column_id: column for column in stored}
    for column in columns:
        old = by_id.get(column.column_id)
        if old is None:
            arrays.append(constant_column(column.initial_default, column.data_type, rows.num_rows))
        else:
            arrays.append(_converted(rows.column(names[column.column_id]), old, column, time_zone))
        target.append(column.name)
    return pa.table(arrays, names=target)


def _converted(values: pa.ChunkedArray, old: Column, new: Column, time_zone: str) -> pa.ChunkedArray:
    """Values of one version of a column as another's: parts of nested values matched by id, as columns are."""
    if old is new or _same_parts(old, new):
        return values
    if not old.children:
        return cast_columns(pa.table({"v": values}), {"v": new.data_type}, time_zone).column("v")
    chunks = [_converted_nested(chunk, old, new, time_zone) for chunk in values.chunks]
    return pa.chunked_array(chunks, new.data_type.arrow())


def _same_parts(old: Column, new: Column) -> bool:
    """Returns whether two versions of a column have the same parts under the same names and with the same types."""
    return [(part.column_id, part.name, part.type) for part in old.walk() if part is not old] == [
        (part.column_id, part.name, part.type) for part in new.walk() if part is not new
    ] and old.type == new.type


def _converted_nested(array: pa.Array, old: Column, new: Column, time_zone: str) -> pa.Array:
    if old.type == "struct":
        fields = pa.table(
            [pc.struct_field(array, [index]) for index in range(len(old.children))],
            names=[child.name for child in old.children],
        )
        projected = project(fields, old.children, new.children, time_zone)
        parts = [column.combine_chunks() for column in projected.columns]
        return pa.StructArray.from_arrays(parts, fields=list(new.data_type.arrow()), mask=array.is_null())
    lengths = pc.fill_null(pc.list_value_length(_as_list(array)), 0)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    starts = pa.array(
        [None if null else start for null, start in zip(array.is_null().to_pylist(), offsets.to_pylist(), strict=False)]
    )
    bounds = pa.concat_arrays([starts.cast(pa.int32()), offsets.slice(len(offsets) - 1)])
    parts = []
    for index, (before, after) in enumerate(zip(old.children, new.children, strict=True)):
        flat = pa.chunked_array([pc.list_flatten(_as_list(array, index))])
        parts.append(_converted(flat, before, after, time_zone).combine_chunks())
    kind = new.data_type.arrow()
    if old.type == "list":
        return pa.ListArray.from_arrays(bounds, parts[0], type=kind)
    return pa.MapArray.from_arrays(bounds, parts[0], parts[1], type=kind)


def _as_list(array: pa.Array, part: int = 0) -> pa.Array:
    """A list as it is; a map as the list of its keys or values."""
    if not pa.types.is_map(array.type):
        return array
    return pa.ListArray.from_arrays(array.offsets, array.items if part else array.keys, mask=array.is_null())
