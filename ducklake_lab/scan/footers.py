"""Columns of data files as their footers list them, read once: files never change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lab.duckdb.wording import worded_of_file
from ducklake_lab.errors import DataFileError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.mapping import ColumnMapping, NameMapping
from ducklake_lab.parallel import in_parallel
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.read_cache import KeptReads
from ducklake_lab.storage import Storage

_FIELD_ID = b"PARQUET:field_id"
#: Prefix of files that were written for a lake.
_OWN = "ducklake-"
#: The names of a file's columns, and all field ids in it.
_Columns = tuple[tuple[str, ...], frozenset[int]]
_columns: KeptReads[tuple[str, Storage], _Columns] = KeptReads(100_000, lambda columns: 1)
_schemas: KeptReads[tuple[str, Storage], pa.Schema] = KeptReads(10_000, lambda schema: 1)
_far: KeptReads[tuple[str, Storage], bool] = KeptReads(100_000, lambda _: 1)
#: By the unit of Parquet: up to which count a time has microseconds in a 64-bit integer, and is not infinite.
_NEAR = {"milliseconds": (2**63 - 1) // 1000, "nanoseconds": 2**63 - 1 - 1000}


def file_column_ids(paths: Iterable[str], storage: Storage) -> dict[str, frozenset[int]]:
    """The field ids in each Parquet file, at any depth, by path."""
    return {path: ids for path, (_, ids) in _file_columns(paths, storage).items()}


def file_schemas(paths: Iterable[str], storage: Storage) -> dict[str, pa.Schema]:
    """The columns of each Parquet file, by path."""
    paths = list(dict.fromkeys(paths))
    return dict(zip(paths, in_parallel(paths, lambda path: _schema(path, storage)), strict=True))


def with_columns_by_place(columns: Sequence[Column], files: Sequence[ScanFile], storage: Storage) -> list[ScanFile]:
    """Give files with neither field ids nor a mapping a mapping by the position of their columns.

    Before there were mappings, files could be added from outside without. Only these are looked at: files that were
    written for a lake are known by their name.

    Raises:
        DataFileError: such a file has more columns than the table, so places mean nothing; or it cannot be read.
    """
    added = [file.path for file in files if _may_lack_ids(file)]
    if not added:
        return list(files)
    columns_of = _file_columns(added, storage)
    without = {path: names for path, (names, ids) in columns_of.items() if not ids}
    return [_mapped(file, columns, without[file.path]) if file.path in without else file for file in files]


def _may_lack_ids(file: ScanFile) -> bool:
    data_file = file.data_file
    name = file.path.rpartition("/")[2]
    return data_file.mapping is None and data_file.encryption_key is None and not name.startswith(_OWN)


def _mapped(file: ScanFile, columns: Sequence[Column], names: Sequence[str]) -> ScanFile:
    if len(names) > len(columns):
        raise DataFileError.without_field_ids(file.path)
    by_place = tuple(_entry(name, column) for name, column in zip(names, columns, strict=False))
    return replace(file, data_file=replace(file.data_file, mapping=ColumnMapping(by_place)))


def _entry(name: str, column: Column) -> NameMapping:
    children = tuple(_entry(child.name, child) for child in column.children)
    return NameMapping(name, column.column_id, children=children)


def _file_columns(paths: Iterable[str], storage: Storage) -> dict[str, _Columns]:
    def columns(path: str) -> _Columns:
        schema = _schema(path, storage)
        return tuple(schema.names), frozenset(_all_ids(schema))

    paths = list(dict.fromkeys(paths))
    listed = in_parallel(paths, lambda path: _columns.read((path, storage), lambda: columns(path)))
    return dict(zip(paths, listed, strict=True))


def _schema(path: str, storage: Storage) -> pa.Schema:
    return _schemas.read((path, storage), lambda: _read_schema(path, storage))


def _read_schema(path: str, storage: Storage) -> pa.Schema:
    try:
        with storage.open_input(path) as source:
            return pq.read_schema(source)
    except (pa.ArrowException, DataFileError, OSError) as error:
        raise DataFileError(worded_of_file(error, path, "data file")) from None


@lru_cache(maxsize=10_000)
def file_types(path: str, storage: Storage) -> dict[int, pa.DataType]:
    """The types of a Parquet file's top-level columns, by field id.

    Raises:
        DataFileError: the file cannot be read.
    """
    ids = ((field_id(field), field.type) for field in _schema(path, storage))
    return {number: kind for number, kind in ids if number is not None}


def far_times(paths: Iterable[str], storage: Storage) -> set[str]:
    """Return the paths of files that may hold times, such as infinity, that Spark cannot convert to microseconds.

    Raises:
        DataFileError: a file cannot be read.
    """
    paths = list(dict.fromkeys(paths))
    answers = in_parallel(paths, lambda path: _far.read((path, storage), lambda: _has_far_times(path, storage)))
    return {path for path, is_far in zip(paths, answers, strict=True) if is_far}


def _has_far_times(path: str, storage: Storage) -> bool:
    try:
        with storage.open_input(path) as source:
            metadata = pq.read_metadata(source)
    except (pa.ArrowException, DataFileError, OSError) as error:
        raise DataFileError(worded_of_file(error, path, "data file")) from None
    for number in range(metadata.num_columns):
        near = _near(metadata.schema.column(number))
        chunks = (metadata.row_group(group).column(number) for group in range(metadata.num_row_groups))
        if near is not None and not all(_is_near(chunk, near) for chunk in chunks):
            return True
    return False


def _near(column: pq.ColumnSchema) -> int | None:
    """The bound of near times of a column; None where it holds no times, or microseconds."""
    if column.physical_type != "INT64":
        return None
    if column.converted_type == "TIMESTAMP_MILLIS":
        return _NEAR["milliseconds"]
    return next((near for unit, near in _NEAR.items() if f"timeUnit={unit}" in str(column.logical_type)), None)


def _is_near(chunk: pq.ColumnChunkMetaData, near: int) -> bool:
    statistics = chunk.statistics
    if statistics is None or statistics.physical_type != "INT64":
        return False
    if not statistics.has_min_max:
        return bool(statistics.null_count == chunk.num_values)
    return bool(statistics.min_raw >= -near and statistics.max_raw <= near)


def _all_ids(fields: Iterable[pa.Field]) -> Iterable[int]:
    for field in fields:
        id_of_field = field_id(field)
        if id_of_field is not None:
            yield id_of_field
        yield from _all_ids(_children(field.type))


def _children(data_type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    return [data_type.field(i) for i in range(data_type.num_fields)]


def field_id(field: pa.Field) -> int | None:
    """The Parquet field id of a field read from a file."""
    text = (field.metadata or {}).get(_FIELD_ID)
    return int(text) if text is not None else None
