"""Writes data files with pyarrow in Python workers: exact Parquet types and field ids, at about 1.3 times the cost.

Each task writes files under names of its own and reports them, with their partition keys. Nothing is listed, so files
of a task that was tried twice are not taken for data.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ducklake_lab.model.entries import ROW_ID_COLUMN, ROW_ID_FIELD, Column, Table
from ducklake_lab.spark.types import to_stored
from ducklake_lab.storage import Storage, join

#: Types that Spark's writer has no Parquet type for, or whose parts it gives no field ids.
_NEEDED_FOR = frozenset(("uint8", "uint16", "uint32", "uint64", "uuid", "timestamp_ms", "timestamp_ns", "list", "map"))


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A file as a task left it.

    Attributes:
        keys: the key texts of its partition.
        nan_leaves: the leaf columns, by number, that have a NaN.
    """

    path: str
    keys: tuple[str, ...] = ()
    nan_leaves: frozenset[int] = frozenset()


def is_needed(table: Table) -> bool:
    """Whether Spark's own writer cannot write the table's columns as the format wants them."""
    return any(column.type in _NEEDED_FOR for column in table.all_columns())


def file_schema(columns: Sequence[Column], with_row_ids: bool = False) -> pa.Schema:
    """The Arrow schema of a data file, with field ids at all levels."""
    fields = [_field(column) for column in columns]
    if with_row_ids:
        fields.append(pa.field(ROW_ID_COLUMN, pa.int64(), metadata=_field_id(ROW_ID_FIELD)))
    return pa.schema(fields)


def _field(column: Column, *, nullable: bool = True) -> pa.Field:
    return pa.field(column.name, _file_type(column), nullable=nullable, metadata=_field_id(column.column_id))


def _field_id(field_id: int) -> dict[bytes, bytes]:
    return {b"PARQUET:field_id": str(field_id).encode()}


def _file_type(column: Column) -> pa.DataType:
    if column.type == "struct":
        return pa.struct([_field(child) for child in column.children])
    if column.type == "list":
        return pa.list_(_field(column.children[0]).with_name("element"))
    if column.type == "map":
        key, value = column.children
        return pa.map_(_field(key, nullable=False).with_name("key"), _field(value).with_name("value"))
    if column.type == "uuid":
        return pa.uuid()
    if column.type == "timestamp_s":
        return pa.timestamp("us")
    return column.data_type.arrow()


def write(
    frame: DataFrame, table: Table, folder: str, keys: Sequence[str], keeps_ids: bool, compression: str
) -> list[WrittenPart]:
    """Writes the rows below a folder.

    Args:
        frame: columns `c0`, `c1`, … of the table, the row ids if they are kept, then the key texts.

    Returns:
        One per file.
    """
    values = [to_stored(F.col(f"c{i}"), column.data_type).alias(f"c{i}") for i, column in enumerate(table.columns)]
    ids = [F.col(ROW_ID_COLUMN)] if keeps_ids else []
    prepared = frame.select(*values, *ids, *keys)
    if keys:
        prepared = prepared.sortWithinPartitions(*keys)
    task = _task(file_schema(table.columns, keeps_ids), folder, len(keys), compression)
    rows = prepared.mapInArrow(task, "path string, keys array<string>, nan array<int>").toArrow().to_pylist()
    return [WrittenPart(row["path"], tuple(row["keys"]), frozenset(row["nan"])) for row in rows]


def _task(
    schema: pa.Schema, folder: str, key_count: int, compression: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = Storage()
        storage.make_folder(folder)
        written: list[tuple[str, list[str], set[int]]] = []
        writer: pq.ParquetWriter | None = None
        try:
            for batch in batches:
                for keys, rows in _runs(pa.Table.from_batches([batch]), key_count):
                    if writer is None or keys != written[-1][1]:
                        if writer is not None:
                            writer.close()
                        path = join(folder, f"{uuid.uuid4()}.parquet")
                        writer = _open(storage, path, schema, compression)
                        written.append((path, keys, set()))
                    table = to_file(rows, schema)
                    written[-1][2].update(_leaves_with_nan(table))
                    for part in table.to_batches():
                        writer.write_batch(part)
        finally:
            if writer is not None:
                writer.close()
        paths, keys_of, nans = [[row[i] for row in written] for i in range(3)]
        yield pa.record_batch(
            [
                pa.array(paths, pa.string()),
                pa.array(keys_of, pa.list_(pa.string())),
                pa.array([sorted(found) for found in nans], pa.list_(pa.int32())),
            ],
            names=["path", "keys", "nan"],
        )

    return run


def _open(storage: Storage, path: str, schema: pa.Schema, compression: str) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        storage.open_output(path), schema, compression=compression, store_schema=False, store_decimal_as_integer=True
    )


def _leaves_with_nan(table: pa.Table) -> list[int]:
    """The numbers of the leaf columns that have a NaN. pyarrow leaves NaN out of the statistics without a trace."""
    leaves = [leaf for column in table.columns for leaf in _leaves(column.combine_chunks())]
    return [
        i
        for i, leaf in enumerate(leaves)
        if pa.types.is_floating(leaf.type) and pc.any(pc.is_nan(leaf), skip_nulls=True).as_py()
    ]


def _leaves(values: pa.Array) -> list[pa.Array]:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if pa.types.is_struct(values.type):
        return [leaf for part in values.flatten() for leaf in _leaves(part)]
    if pa.types.is_map(values.type):
        return [*_leaves(values.keys), *_leaves(values.items)]
    if pa.types.is_list(values.type):
        return _leaves(values.values)
    return [values]


def _runs(rows: pa.Table, key_count: int) -> Iterator[tuple[list[str], pa.Table]]:
    """The rows, sorted by their last columns, cut where those change."""
    if not rows.num_rows:
        return
    data = rows.select(range(rows.num_columns - key_count))
    if not key_count:
        yield [], data
        return
    keys = list(
        zip(*(rows.column(rows.num_columns - key_count + i).to_pylist() for i in range(key_count)), strict=True)
    )
    start = 0
    for end in range(1, len(keys) + 1):
        if end == len(keys) or keys[end] != keys[start]:
            yield list(keys[start]), data.slice(start, end - start)
            start = end


def to_file(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in Spark's Arrow types as the file's.

    Raises:
        ValueError: a number does not fit; marked so that the driver can tell what happened.
    """
    columns = []
    for field, column in zip(schema, rows.columns, strict=True):
        try:
            columns.append(_convert(column.combine_chunks(), field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"ducklake-lab constraint: A value does not fit column {field.name}: {reason}") from None
    return pa.table(columns, schema=schema)


def _convert(values: pa.Array, target: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if pa.types.is_struct(target):
        parts = [_convert(values.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=values.is_null())
    if pa.types.is_map(target):
        flat = _compact(values)
        keys, items = _convert(flat.keys, target.key_type), _convert(flat.items, target.item_type)
        return pa.MapArray.from_arrays(flat.offsets, keys, items, type=target, mask=flat.is_null())
    if pa.types.is_list(target):
        flat = _compact(values)
        return pa.ListArray.from_arrays(
            flat.offsets, _convert(flat.values, target.value_type), target, mask=flat.is_null()
        )
    if isinstance(target, pa.UuidType):
        return pa.ExtensionArray.from_storage(target, values.cast(target.storage_type))
    if pa.types.is_timestamp(target):
        return values.cast(target, safe=False)
    return values.cast(target)


def _compact(values: pa.Array) -> pa.Array:
    """The same list or map values, starting at offset 0 of their buffers."""
    return pa.concat_arrays([values, values.slice(0, 0)]) if values.offset else values
