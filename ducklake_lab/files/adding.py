"""Parquet files that were written by others -> files of a table (spec: metadata/adding_files)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.bounds import smallest_and_largest
from ducklake_lab.duckdb.casting import cast_columns, from_duckdb, texts
from ducklake_lab.duckdb.file_access import connect
from ducklake_lab.duckdb.wording import worded_of_file
from ducklake_lab.errors import ConstraintError, DataFileError, UnsupportedFeatureError
from ducklake_lab.files.partitions import folder_names, partition_keys
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.extra_stats import geometry_text, merge_geometries
from ducklake_lab.model.files import ColumnStats, WrittenFile, counts
from ducklake_lab.model.mapping import ColumnMapping, NameMapping
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.paths import hive_values
from ducklake_lab.storage import is_local

#: The types of a file that a column takes beside its own.
_NARROWER = {
    "int64": ("uint32", "int32", "uint16", "int16", "uint8", "int8"),
    "int32": ("uint16", "int16", "uint8", "int8"),
    "int16": ("uint8", "int8"),
    "uint64": ("uint32", "uint16", "uint8"),
    "uint32": ("uint16", "uint8"),
    "uint16": ("uint8",),
    "float64": ("float32",),
    "timestamp": ("timestamp_ns", "timestamp_ms", "timestamp_s"),
    "timestamp_ns": ("timestamp", "timestamp_ms", "timestamp_s"),
    "timestamp_ms": ("timestamp", "timestamp_s"),
    "timestamp_s": ("timestamp", "timestamp_ms"),
}


@dataclass(frozen=True, slots=True)
class AddOptions:
    """How strict adding is.

    Attributes:
        allow_missing: a file may lack columns of the table; its rows then have their defaults.
        ignore_extra_columns: a file may have columns that the table lacks.
        hive_partitioning: columns may be in the path, as `name=value`.
    """

    allow_missing: bool = False
    ignore_extra_columns: bool = False
    hive_partitioning: bool = True


@dataclass(slots=True)
class _Node:
    """A column of a file; `leaf` is its number among those that hold values."""

    name: str
    kind: DataType | None
    shape: str
    children: list[_Node]
    leaf: int | None


def describe_files(table: Table, patterns: Sequence[str], options: AddOptions, time_zone: str) -> list[WrittenFile]:
    """The files that match some paths or patterns, each once, as files of a table; those without rows are left out.

    Args:
        time_zone: of times in a path that name none.

    Raises:
        DataFileError: there is no such file, or it cannot be read.
        ConstraintError: its columns are not those of the table.
        UnsupportedFeatureError: it is not on a filesystem of this machine.
    """
    found: dict[str, WrittenFile] = {}
    connection = connect()
    try:
        for pattern in patterns:
            if not is_local(pattern):
                raise UnsupportedFeatureError(f"Adding {pattern} is not supported: it is not on this machine's disks.")
            for file, chunks, schema in _footers(connection, str(Path(pattern).absolute())):
                path = str(file["file_name"])
                if path not in found:
                    found[path] = _File(table, path, file, chunks, schema, options, time_zone).describe()
    finally:
        connection.close()
    return [file for file in found.values() if file.record_count]


def _footers(connection: duckdb.DuckDBPyConnection, pattern: str) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    query = "SELECT parquet_file_metadata[1], parquet_metadata, parquet_schema FROM parquet_full_metadata($1)"
    try:
        yield from connection.execute(query, [pattern]).fetchall()
    except duckdb.Error as error:
        raise DataFileError(_unreadable(error, pattern)) from None


def _unreadable(error: duckdb.Error, pattern: str) -> str:
    """What keeps a file from being added; the error names it where a pattern stands for several."""
    text = str(error)
    if "No files found" in text:
        return f"There is no file {pattern}; nothing was added."
    named = re.search(r"""(['"])(/.+?)\1""", text.splitlines()[0])
    said = worded_of_file(error, named[2] if named else pattern, "file")
    return f"{said.partition('; ')[0].rstrip('.')}; nothing was added."


class _File:
    """One file being described."""

    def __init__(
        self,
        table: Table,
        path: str,
        file: Any,
        chunks: list[Any],
        schema: list[Any],
        options: AddOptions,
        time_zone: str,
    ) -> None:
        self._time_zone = time_zone
        self._table = table
        self._path = path
        self._file = file
        self._chunks = chunks
        self._schema = schema
        self._options = options
        self._hive = hive_values(path) if options.hive_partitioning else {}
        self._leaves: dict[int, tuple[Column, DataType | None]] = {}
        self._constants: dict[int, str | None] = {}

    def describe(self) -> WrittenFile:
        nodes = iter(self._schema)
        root = next(nodes)
        numbers = iter(range(len(self._schema)))
        columns = [_node(nodes, numbers) for _ in range(root["num_children"] or 0)]
        mapping = ColumnMapping(tuple(self._map(columns, self._table.columns, "")))
        return WrittenFile(
            path=self._path,
            record_count=self._file["num_rows"],
            file_size_bytes=self._file["file_size_bytes"],
            footer_size=self._file["footer_size"],
            column_stats=tuple(self._statistics()),
            partition_values=self._partition_values(),
            path_is_relative=False,
            is_own=False,
            mapping=mapping,
            row_group_count=self._file["num_row_groups"],
        )

    # Columns

    def _map(self, nodes: Sequence[_Node], columns: Sequence[Column], prefix: str) -> Iterator[NameMapping]:
        left = {column.name.casefold(): column for column in columns}
        for node in nodes:
            column = left.pop(node.name.casefold(), None)
            if column is None:
                if self._options.ignore_extra_columns:
                    continue
                raise ConstraintError(
                    f'Column "{prefix}{node.name}" exists in file "{self._path}" but was not found in table '
                    f'"{self._table.name}"; set ignore_extra_columns => true to add the file anyway.'
                )
            if not prefix and column.name.casefold() in self._hive:
                yield self._map_path(column)
            else:
                yield self._map_column(node, column, prefix)
        for column in left.values():
            if not prefix and column.name.casefold() in self._hive:
                yield self._map_path(column)
            elif not self._options.allow_missing:
                raise ConstraintError(
                    f'Column "{prefix}{column.name}" exists in table "{self._table.name}" but was not found in file '
                    f'"{self._path}"; set allow_missing => true to allow missing columns.'
                )

    def _map_column(self, node: _Node, column: Column, prefix: str) -> NameMapping:
        self._check(node, column, prefix)
        if node.leaf is not None:
            self._leaves[node.leaf] = (column, node.kind)
        below = f"{prefix}{node.name}."
        children: tuple[NameMapping, ...] = ()
        if column.type == "struct":
            children = tuple(self._map(node.children, column.children, below))
        elif column.type == "list":
            repeated = node.children[0]
            # old writers put the elements directly below the list
            element = repeated if repeated.name == "array" or not repeated.children else repeated.children[0]
            if element is not repeated:
                element = replace(element, name="list")
            children = (self._map_column(element, column.children[0], below),)
        elif column.type == "map":
            children = tuple(self._map(node.children[0].children, column.children, below))
        return NameMapping(node.name, column.column_id, children=children)

    def _map_path(self, column: Column) -> NameMapping:
        if column.children:
            raise ConstraintError(
                f"Column {column.name} of type {column.data_type.sql()} cannot be taken from the path {self._path}."
            )
        self._constants[column.column_id] = self._value(column.name, column.data_type)
        return NameMapping(column.name, column.column_id, is_partition=True)

    def _value(self, name: str, kind: DataType) -> str | None:
        text = self._hive[name.casefold()]
        if text is None:
            return None
        try:
            typed = cast_columns(pa.table({"v": [text]}), {"v": kind}, self._time_zone)
        except ConstraintError:
            raise ConstraintError(
                f'The path {self._path} has {name}={text}; "{text}" cannot be cast to {kind.sql()}.'
            ) from None
        return texts(typed, {"v": kind})[0][0]

    def _check(self, node: _Node, column: Column, prefix: str) -> None:
        target, found = column.data_type, node.kind
        if target.is_nested:
            fits = node.shape == target.name
        elif target.decimal is not None:
            size = found.decimal if found is not None else None
            fits = size is not None and size[0] <= target.decimal[0] and size[1] <= target.decimal[1]
        else:
            fits = found is not None and found.name in (target.name, *_NARROWER.get(target.name, ()))
        if not fits:
            shown = found.sql() if found is not None else node.shape.upper()
            raise ConstraintError(
                f'Failed to map column "{prefix}{node.name}" from file "{self._path}" to the column in table '
                f'"{self._table.name}": Expected {target.sql()}, found type {shown}.'
            )

    # Statistics and keys

    def _statistics(self) -> Iterator[ColumnStats]:
        by_leaf: dict[int, list[Any]] = {}
        for chunk in self._chunks:
            if chunk["column_id"] in self._leaves:
                by_leaf.setdefault(chunk["column_id"], []).append(chunk)
        for leaf, chunks in by_leaf.items():
            yield _merged(*self._leaves[leaf], chunks)
        rows = self._file["num_rows"]
        for column_id, value in self._constants.items():
            yield ColumnStats(
                column_id=column_id,
                column_size_bytes=0,
                value_count=rows if value is not None else 0,
                null_count=0 if value is not None else rows,
                min_value=value,
                max_value=value,
                min_is_exact=value is not None or None,
                max_is_exact=value is not None or None,
            )

    def _partition_values(self) -> tuple[str | None, ...]:
        values: list[str | None] = []
        for name, (column, transform) in zip(folder_names(self._table), partition_keys(self._table), strict=True):
            if name.casefold() not in self._hive:
                raise ConstraintError(
                    f'File "{self._path}" contains an invalid partition value for the table configuration: '
                    f"its path has no {name}=…"
                )
            values.append(self._value(name, transform.result_type(column.data_type)))
        return tuple(values)


def _node(schema: Iterator[Any], numbers: Iterator[int]) -> _Node:
    """The next column of a schema that lists parents before their parts."""
    row = next(schema)
    count = row["num_children"] or 0
    leaf = None if count else next(numbers)
    children = [_node(schema, numbers) for _ in range(count)]
    shape = {"LIST": "list", "MAP": "map"}.get(row["converted_type"] or "", "struct") if count else "value"
    is_geometry = (row["logical_type"] or "").startswith("GeometryType")
    text = "GEOMETRY" if is_geometry else row["duckdb_type"]
    kind = None if count else from_duckdb(duckdb.sqltype(text))
    return _Node(row["name"], kind, shape, children, leaf)


def _merged(column: Column, kind: DataType | None, chunks: Sequence[Mapping[str, Any]]) -> ColumnStats:
    nulls = _total([chunk["stats_null_count"] for chunk in chunks])
    value_count, null_count = counts(_total([chunk["num_values"] for chunk in chunks]), nulls)
    bounds = []
    for index, names in enumerate((("stats_min", "stats_min_value"), ("stats_max", "stats_max_value"))):
        all_found = [next((chunk[name] for name in names if chunk[name] is not None), None) for chunk in chunks]
        # in a nested column a chunk may have as many NULLs as values, and values none the less
        found = [
            text
            for text, chunk in zip(all_found, chunks, strict=True)
            if text is not None or chunk["stats_null_count"] != chunk["num_values"]
        ]
        known = [text for text in found if text is not None]
        complete = known and len(known) == len(found)
        bounds.append(smallest_and_largest(known, column.data_type)[index] if complete else None)
    return ColumnStats(
        column_id=column.column_id,
        column_size_bytes=sum(chunk["total_compressed_size"] or 0 for chunk in chunks),
        value_count=value_count,
        null_count=null_count,
        min_value=bounds[0],
        max_value=bounds[1],
        extra_stats=_geometry(chunks) if column.type == "geometry" else None,
        # other writers may have cut them
        min_is_exact=False,
        max_is_exact=False,
        written_type=kind,
    )


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None and count >= 0]
    return sum(known) if len(known) == len(counts) else None


def _geometry(chunks: Sequence[Mapping[str, Any]]) -> str | None:
    found = []
    for chunk in chunks:
        box = chunk["geo_bbox"]
        if box is None:
            return None
        names = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
        found.append(geometry_text({name: box[name] for name in names}, chunk["geo_types"] or []))
    return merge_geometries(found) if found else None
