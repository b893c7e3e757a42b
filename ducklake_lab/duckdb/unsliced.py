"""Copies of Arrow rows that DuckDB reads rightly.

DuckDB forgets the offset of an array when it reads a struct within a struct, or a union: of a slice it gives the values
of other rows.
"""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatchReader)


def unsliced(rows: _Rows) -> _Rows:
    """Copy the columns that DuckDB would misread; readers stay as they are."""
    if not isinstance(rows, pa.Table):
        return rows
    for place, (field, column) in enumerate(zip(rows.schema, rows.columns, strict=True)):
        if _is_misread(field.type) and not all(map(_starts_at_zero, column.chunks)):
            chunks = [chunk.take(pa.array(range(len(chunk)), pa.int64())) for chunk in column.chunks]
            rows = rows.set_column(place, field, pa.chunked_array(chunks, field.type))
    return rows


def _is_misread(kind: pa.DataType, *, in_struct: bool = False) -> bool:
    """Returns whether the type has a struct directly within a struct, or a union."""
    if pa.types.is_union(kind) or (in_struct and pa.types.is_struct(kind)):
        return True
    is_struct = pa.types.is_struct(kind)
    return any(_is_misread(kind.field(at).type, in_struct=is_struct) for at in range(kind.num_fields))


def _starts_at_zero(array: pa.Array) -> bool:
    """Returns whether neither the array nor one within it is a slice."""
    if array.offset:
        return False
    kind = array.type
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        return all(_starts_at_zero(array.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _starts_at_zero(array.keys) and _starts_at_zero(array.items)
    return not kind.num_fields or _starts_at_zero(array.values)
