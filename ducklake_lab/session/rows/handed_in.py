"""Rows from a program or notebook that SQL reads by name: DataFrames, Arrow tables, results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.errors import UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.model.nanoseconds import nanoseconds_in
from ducklake_lab.model.types import from_field, has_geoarrow
from ducklake_lab.session.rows.result import Result

#: Kinds of rows that `rows_of` accepts, for messages.
KINDS = "a Spark, pandas or Polars DataFrame, an Arrow table, or a result"
#: How Arrow names the column of a pandas DataFrame that it cannot read.
_FAILED = re.compile(r"Conversion failed for column (.*) with type \S+", re.DOTALL)


def is_rows(value: object) -> bool:
    """Returns whether SQL can read a value as a table."""
    if isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return True
    if isinstance(value, Result):
        return value.is_query
    return _is_frame(value, "pyspark") or _is_frame(value, "polars", "LazyFrame") or _streams(value)


def rows_of(value: Any, name: str) -> Rows:
    """Returns a value of the program as rows.

    Named levels of a pandas index become the first columns; unnamed levels are dropped.

    Args:
        value: a pandas, Polars or Spark DataFrame, a result, or an object with the Arrow C stream interface.
        name: its name in messages.

    Raises:
        UsageError: it is no table, can be read only once, or has no columns, unnamed columns or duplicate names;
            or it has values without an Arrow type, or values that DuckDB would truncate.
    """
    if isinstance(value, Result) and value.is_query:
        return value.rows()
    if _is_frame(value, "pyspark"):
        _check_names(value.columns, name)
        return OnSpark(value)
    table = _table_of(value, name)
    _check_names(table.column_names, name)
    table = _carried(table, name)
    _check_digits(table, name)
    return InMemory(table)


def _table_of(value: Any, name: str) -> pa.Table:
    if isinstance(value, pa.Table):
        return _as_wkb(value)
    if isinstance(value, pa.RecordBatch):
        return _as_wkb(pa.Table.from_batches([value]))
    if isinstance(value, pa.RecordBatchReader):
        raise UsageError(f"{name} is a RecordBatchReader, which can be read only once; hand in {name}.read_all().")
    try:
        if _is_frame(value, "pandas"):
            return _of_pandas(value, name)
        if _is_frame(value, "polars", "LazyFrame"):
            value = value.collect()
        if _is_frame(value, "polars"):
            _check_objects(value, name)
        if _streams(value):
            return _as_wkb(_in_microseconds(pa.table(value)))
    except (pa.ArrowException, OverflowError, TypeError) as error:
        reason = str(error.args[0] if error.args else error).strip().partition("\n")[0].rstrip(".")
        column = _FAILED.fullmatch(str(error.args[-1])) if len(error.args) > 1 else None
        what = f'Column "{column[1]}" of {name}' if column is not None else name
        raise UsageError(f"{what} cannot be read as a table: {reason}; cast it.") from error
    raise UsageError(f"{name} is of type {type(value).__name__}; rows are {KINDS}.")


def _carried(rows: pa.Table, name: str) -> pa.Table:
    """Returns the rows in the Arrow types that the model has: other layouts of the same values are read by DuckDB.

    Raises:
        UnsupportedFeatureError: a column has a type that lakes do not have.
    """
    for index, field in enumerate(rows.schema):
        kind = _with_parts(field.type, _in_model)
        if kind != field.type:
            rows = rows.set_column(index, field.with_type(kind), rows.column(index).cast(kind))
        elif _has_layout(kind):
            rows = rows.set_column(index, *_read_again(rows.select([index])))
        try:
            from_field(rows.schema.field(index))
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(
                f'Column "{field.name}" of {name} has the Arrow type {field.type}, which lakes do not have; cast it.'
            ) from error
    return rows


def _read_again(column: pa.Table) -> tuple[pa.Field, pa.ChunkedArray]:
    read = evaluate("FROM rows", {"rows": column})
    return read.schema.field(0), read.column(0)


def _in_model(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def _has_layout(kind: pa.DataType) -> bool:
    """Returns whether Arrow lays out the values of a type, or of a part of it, as the model does not."""
    if pa.types.is_run_end_encoded(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return True
    if isinstance(kind, pa.Bool8Type):
        return True
    return pa.types.is_nested(kind) and any(_has_layout(kind.field(i).type) for i in range(kind.num_fields))


def _as_wkb(rows: pa.Table) -> pa.Table:
    """Returns the rows with GeoArrow's geometries as the model carries geometries, without their coordinate system."""
    for index, field in enumerate(rows.schema):
        if has_geoarrow(field):
            kind = from_field(field)
            rows = rows.set_column(index, kind.field(field.name), rows.column(index).cast(kind.arrow()))
    return rows


def _of_pandas(frame: Any, name: str) -> pa.Table:
    levels = [level for level in frame.index.names if level is not None]
    # Arrow would name an unnamed column "None", and refuses duplicate names
    _check_names([*levels, *frame.columns], name)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if not levels:
        return table
    index = pa.Table.from_pandas(frame.index.to_frame(index=False)[levels], preserve_index=False)
    columns = [*index.columns, *table.columns]
    return pa.table(columns, schema=pa.schema([*index.schema, *table.schema]))


def check_folded(rows: Rows, name: str) -> None:
    """Raises UsageError if two column names differ only in case."""
    folded = [column.casefold() for column, _ in rows.columns]
    if len(set(folded)) < len(folded):
        twice = next(column for column in folded if folded.count(column) > 1)
        raise UsageError(f'{name} has two columns named "{twice}"; rename one of them.')


def _check_names(names: Iterable[object], frame: str) -> None:
    """Raises UsageError for columns that SQL cannot name.

    Raises:
        UsageError: there are no columns, or unnamed columns or duplicate names.
    """
    texts = ["" if name is None or name != name else str(name) for name in names]
    if not texts:
        raise UsageError(f"{frame} has no columns.")
    spellings: dict[str, str] = {}
    for number, text in enumerate(texts, 1):
        if not text:
            raise UsageError(f"Column {number} of {frame} has no name; give it one.")
        other = spellings.get(text.casefold())
        if other is not None:
            two = f'two columns "{text}"' if other == text else f'columns "{other}" and "{text}", one name for SQL'
            raise UsageError(f"{frame} has {two}; rename one.")
        spellings[text.casefold()] = text


def _check_digits(rows: pa.Table, frame: str) -> None:
    """Raises UsageError for nanoseconds that DuckDB would truncate.

    Raises:
        UsageError: a value has such nanoseconds.
    """
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        for chunk in column.chunks:
            for value in nanoseconds_in(chunk, _is_cut):
                raise UsageError(
                    f'Column "{name}" of {frame} holds {value}, whose nanoseconds would be lost; round it to microseconds.'
                )


def _is_cut(kind: pa.DataType) -> bool:
    """Returns whether DuckDB reads an Arrow type with nanoseconds as one with microseconds."""
    return pa.types.is_duration(kind) or (pa.types.is_timestamp(kind) and kind.tz is not None)


def _check_objects(frame: Any, name: str) -> None:
    """Raises UsageError for Polars columns of Python objects; otherwise their addresses would be written.

    Raises:
        UsageError: such a column exists.
    """
    for column, kind in frame.schema.items():
        if "Object" in str(kind):
            raise UsageError(f'Column "{column}" of {name} holds Python objects, which no type of SQL holds; cast it.')


def _in_microseconds(rows: pa.Table) -> pa.Table:
    """Returns the rows with times in microseconds, unless a digit would be lost; Polars only has nanoseconds."""
    schema = pa.schema([field.with_type(_with_parts(field.type, _with_microseconds)) for field in rows.schema])
    try:
        return rows if schema == rows.schema else rows.cast(schema)
    except pa.ArrowInvalid:
        return rows  # DuckDB reads it as TIME_NS


def _with_microseconds(kind: pa.DataType) -> pa.DataType:
    return pa.time64("us") if kind == pa.time64("ns") else kind


def _with_parts(kind: pa.DataType, convert: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Returns a type with the types in its structs and lists converted."""

    def part(field: pa.Field) -> pa.Field:
        return field.with_type(_with_parts(field.type, convert))

    if pa.types.is_struct(kind):
        return pa.struct([part(field) for field in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(part(kind.value_field))
    if pa.types.is_list(kind):
        return pa.list_(part(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(part(kind.value_field), kind.list_size)
    return convert(kind)


def _is_frame(value: object, package: str, kind: str = "DataFrame") -> bool:
    """Returns whether a value is a DataFrame of a package; does not import the package."""
    return any(
        parent.__name__ == kind and parent.__module__.partition(".")[0] == package for parent in type(value).__mro__
    )


def _streams(value: object) -> bool:
    return hasattr(type(value), "__arrow_c_stream__") or _is_frame(value, "pandas")


class HandedIn:
    """Rows by their name in SQL, during one text.

    Args:
        tables: rows passed with the text; they hide tables of lakes. Names are case-insensitive.
        variables: values that serve as rows if no table has the name, as in DuckDB; case-sensitive.
    """

    def __init__(
        self, tables: Mapping[str, object] | None = None, variables: Mapping[str, object] | None = None
    ) -> None:
        for name, value in (tables or {}).items():
            if not is_rows(value):
                raise UsageError(
                    f'"{name}" is no argument of sql(), and a value of type {type(value).__name__} is no table; '
                    f"rows are {KINDS}."
                )
        self._tables = {name.casefold(): (name, value) for name, value in (tables or {}).items()}
        self._variables = variables or {}
        self._read: dict[str, Rows] = {}

    def table(self, name: str) -> Rows | None:
        """Returns the rows that were passed under a name."""
        table = self._tables.get(name.casefold())
        return self._once(*table) if table is not None else None

    def variable(self, name: str) -> Rows | None:
        """Returns the rows in a variable; None if the variable is missing or no table."""
        if name not in self._variables:
            return None
        value = self._variables[name]
        return self._once(name, value) if is_rows(value) else None

    def hint(self, name: str) -> str:
        """Returns a hint for a missing table: the type of a variable of that name, or a similar name."""
        if name in self._variables:
            return f' The variable "{name}" is of type {type(self._variables[name]).__name__}, which is no table.'
        tables = [table_name for table_name, _ in self._tables.values()]
        tables += [table_name for table_name in self._variables if is_rows(self._variables[table_name])]
        return did_you_mean(name, tables)

    def _once(self, name: str, value: object) -> Rows:
        if name not in self._read:
            self._read[name] = rows_of(value, name)
        return self._read[name]
