"""Converts Python values, or rows with any Arrow types, to the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import time, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa

from ducklake_lab.duckdb.casting import cast_columns, constant_column
from ducklake_lab.errors import ConstraintError, UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import DataType

_LONG = range(-(2**63), 2**63)
#: Arrow's errors for values without a common type, or of another type than wanted.
_NO_TYPE = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)


def table_of(names: Sequence[str], rows: Sequence[Sequence[object]], columns: Sequence[Column]) -> pa.Table:
    """Returns Python values as an Arrow table whose types hold them.

    Args:
        names: the columns that rows have values for.
        columns: the columns of the table.

    Raises:
        ConstraintError: no type holds all values of a column.
    """
    kinds = {column.name: column.data_type for column in columns}
    arrays = [
        _array(name, list(values), kinds.get(name)) for name, values in zip(names, zip(*rows, strict=True), strict=True)
    ]
    return pa.table(arrays, names=list(names))


def _array(name: str, values: list[object], kind: DataType | None) -> pa.Array:
    if kind is not None and kind.is_nested:
        try:
            return pa.array([_nested(value, kind) for value in values], kind.arrow())
        except _NO_TYPE:
            pass  # DuckDB casts from the values' own type
    try:
        return pa.array(_plain(values))
    except _NO_TYPE:
        type_names = sorted({type(value).__name__ for value in values if value is not None})
        raise ConstraintError(
            f'Column "{name}" cannot take values of {" and ".join(type_names)} together; convert them to one type.'
        ) from None


def _nested(value: object, kind: DataType) -> Any:
    """Returns a nested value in Arrow's form: maps become lists of pairs."""
    if value is None:
        return None
    parts = dict(kind.children)
    if kind.name == "map" and isinstance(value, Mapping):
        return [(_nested(key, parts["key"]), _nested(item, parts["value"])) for key, item in value.items()]
    if kind.name == "struct" and isinstance(value, Mapping):
        if not value.keys() <= parts.keys():
            raise pa.ArrowInvalid("a field that the struct does not have")
        return {key: _nested(item, parts[key]) for key, item in value.items()}
    if kind.name == "list" and isinstance(value, list | tuple):
        return [_nested(item, parts["element"]) for item in value]
    return value


def _plain(values: list[object]) -> list[Any]:
    """Returns values of types that Arrow knows; others become text, which DuckDB casts."""
    if any(isinstance(value, int) and value not in _LONG for value in values):
        return [str(value) if isinstance(value, int) else value for value in values]
    return [_plain_value(value) for value in values]


def _plain_value(value: object) -> Any:
    if isinstance(value, timedelta):
        return pa.MonthDayNano([0, value.days, (value.seconds * 1_000_000 + value.microseconds) * 1_000])
    return str(value) if isinstance(value, UUID) or (isinstance(value, time) and value.tzinfo is not None) else value


def filled(rows: pa.Table, columns: Sequence[Column], time_zone: str) -> pa.Table:
    """Returns rows with all columns of a table in their types; missing columns get their defaults.

    Args:
        time_zone: the time zone for times without one.

    Raises:
        ConstraintError: a value does not fit its column.
        UnsupportedFeatureError: the default of a missing column differs by row.
    """
    empty = [field.name for field in rows.schema if pa.types.is_null(field.type)]
    types = {c.name: c.data_type for c in columns if c.name in rows.column_names and c.name not in empty}
    cast = cast_columns(rows.select(list(types)), types, time_zone)
    arrays = []
    for column in columns:
        if column.name in types:
            arrays.append(cast.column(column.name))
        elif column.name in empty:
            arrays.append(pa.nulls(rows.num_rows, column.data_type.arrow()))
        else:
            arrays.append(constant_column(_default(column), column.data_type, rows.num_rows))
    return pa.table(arrays, schema=pa.schema([column.data_type.field(column.name) for column in columns]))


def _default(column: Column) -> str | None:
    text = column.default_value
    if text is None or text.upper() == "NULL":
        return None
    if column.default_value_type == "expression":
        raise UnsupportedFeatureError(
            f'Column "{column.name}" has a default that differs by row, {text}; append values for it, or use INSERT.'
        )
    return text
