"""Parquet files that were written by others -> files of a table (spec: metadata/adding_files)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import cast_columns, texts
from ducklake_lab.duckdb.file_access import connect
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.duckdb.wording import worded_of_file
from ducklake_lab.errors import ConstraintError, DataFileError, UnsupportedFeatureError
from ducklake_lab.file_paths import is_local
from ducklake_lab.files.chunk_statistics import FIELDS as CHUNK_FIELDS
from ducklake_lab.files.chunk_statistics import Chunk, constant, merged
from ducklake_lab.files.constraints import check_added
from ducklake_lab.files.file_columns import FIELDS as COLUMN_FIELDS
from ducklake_lab.files.file_columns import Node, nodes_of
from ducklake_lab.files.partitions import folder_names, partition_keys
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import ColumnStats, WrittenFile
from ducklake_lab.model.mapping import ColumnMapping, NameMapping
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.paths import NO_VALUE, hive_values
from ducklake_lab.storage import Storage

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
class ColumnNames:
    """Names of a table's columns in files, and in the folders that `column_folder` names.

    Attributes:
        keys: by column id, the field ids and the names that a file has a column under. Names count in files without field ids.
        folder: where the folders begin that have values in their names.
    """

    keys: Mapping[int, Sequence[int | str]]
    folder: str

    def by_id(self, nodes: Sequence[Node]) -> bool:
        """Return whether a file's columns are found by their field ids."""
        asked = any(isinstance(key, int) for keys in self.keys.values() for key in keys)
        return asked and any(node.has_ids for node in nodes)


def column_folder(column_id: int, text: str | None) -> str:
    """Return the folder, ending in `/`, of files in which a column has one value; a text of its type."""
    value = NO_VALUE if text is None else quote(text, safe="")
    if text is not None and text.casefold() in ("null", NO_VALUE.casefold()):
        # readers take these words for NULL
        value = "".join(f"%{byte:02X}" for byte in text.encode())
    return f"column_{column_id}={value}/"


@dataclass(frozen=True, slots=True)
class AddOptions:
    """Strictness of adding files.

    Attributes:
        allow_missing: a file may lack columns of the table; its rows then have their defaults.
        ignore_extra_columns: a file may have columns that the table lacks.
        hive_partitioning: columns may be in the path, as `name=value`.
        names: how files name the columns, where it is not by the table's names.
        converts: a file may have times in 96 bits, which DuckDB reads without a zone, for columns with one: they are in UTC.
    """

    allow_missing: bool = False
    ignore_extra_columns: bool = False
    hive_partitioning: bool = True
    names: ColumnNames | None = None
    converts: bool = False


#: Footers that one query reads of files whose paths are no patterns.
_AT_ONCE = 1000
_FOOTERS = """
SELECT f.file_name, f.num_rows, f.num_row_groups, f.file_size_bytes, f.footer_size, s, m
FROM (
  SELECT parquet_file_metadata[1] AS f, parquet_schema AS s, parquet_metadata AS m FROM parquet_full_metadata($1)
)
"""


def describe_files(table: Table, patterns: Sequence[str], options: AddOptions, time_zone: str) -> list[WrittenFile]:
    """The files that match some paths or patterns, each once, as files of a table; those without rows are left out.

    Args:
        time_zone: of times in a path that name none.

    Raises:
        DataFileError: there is no such file, or it cannot be read.
        ConstraintError: its columns are not those of the table, or a row has NULL in one that is NOT NULL.
        UnsupportedFeatureError: it is not on a filesystem of this machine.
    """
    describer = _Describer(table, options, time_zone)
    described: dict[str, WrittenFile] = {}
    connection = connect()
    try:
        at_once = 1 if options.names is None else _AT_ONCE
        for start in range(0, len(patterns), at_once):
            some = patterns[start : start + at_once]
            for pattern in some:
                if not is_local(pattern):
                    raise UnsupportedFeatureError(
                        f"Adding {pattern} is not supported: it is not on this machine's disks."
                    )
            whole = [str(Path(pattern).absolute()) for pattern in some]
            _check_regular(connection, whole)
            for path, *footer in _footers(connection, whole):
                if path not in described:
                    described[path] = describer.describe(path, footer)
        added = [file for file in described.values() if file.record_count]
        for file in added:
            check_added(connection, table, file)
        return added
    finally:
        connection.close()


def _check_regular(connection: duckdb.DuckDBPyConnection, patterns: Sequence[str]) -> None:
    """Refuses pipes and devices, which DuckDB would wait for."""
    try:
        listed = arrow(connection, "SELECT file FROM glob($1)", [patterns])
    except duckdb.Error as error:
        raise DataFileError(_unreadable(error, patterns[0])) from None
    try:
        Storage().check_regular(listed.column(0).to_pylist())
    except DataFileError as error:
        raise DataFileError(f"{str(error).rstrip('.')}; nothing was added.") from None


def _footers(connection: duckdb.DuckDBPyConnection, patterns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Read from each footer: path, rows, row groups, bytes, its own bytes, columns of the schema, and chunks."""
    try:
        footers = arrow(connection, _FOOTERS, [patterns])
    except duckdb.Error as error:
        raise DataFileError(_unreadable(error, patterns[0])) from None
    for batch in footers.to_batches(1000):
        *plain, schemas, chunks = batch.columns
        values = (column.to_pylist() for column in plain)
        yield from zip(*values, _parts(schemas, COLUMN_FIELDS), _parts(chunks, CHUNK_FIELDS), strict=True)


def _parts(lists: pa.ListArray, fields: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """The fields of each struct in each list: many times as fast as lists of dictionaries."""
    values, offsets = lists.flatten(), lists.offsets.to_pylist()
    rows = tuple(zip(*(values.field(name).to_pylist() for name in fields), strict=True))
    for start, end in pairwise(offsets):
        yield rows[start - offsets[0] : end - offsets[0]]


def _unreadable(error: duckdb.Error, pattern: str) -> str:
    """Describe why a file cannot be added; the error names it where a pattern stands for several."""
    text = str(error)
    if "No files found" in text:
        return f"There is no file {pattern}; nothing was added."
    named = re.search(r"""(['"])(/.+?)\1""", text.splitlines()[0])
    said = worded_of_file(error, named[2] if named else pattern, "file")
    return f"{said.partition('; ')[0].rstrip('.')}; nothing was added."


class _Describer:
    """Describes files; those with one schema share its layout."""

    def __init__(self, table: Table, options: AddOptions, time_zone: str) -> None:
        self._table = table
        self._options = options
        self._time_zone = time_zone
        self._layouts: dict[tuple[Any, ...], _Layout] = {}
        self._values: dict[tuple[str, DataType], str | None] = {}

    def describe(self, path: str, footer: Sequence[Any]) -> WrittenFile:
        rows, row_groups, size, footer_size, schema, chunks = footer
        hive = self._hive_values(path)
        key = (tuple(hive), schema)
        if (layout := self._layouts.get(key)) is None:
            layout = self._layouts[key] = _Layout(path, self._table, schema, hive.keys(), self._options)
        constants = {c.column_id: self._value(path, hive, name, c.data_type) for c, name in layout.in_path}
        return WrittenFile(
            path=path,
            record_count=rows,
            file_size_bytes=size,
            footer_size=footer_size,
            column_stats=(
                *layout.statistics([Chunk(*chunk) for chunk in chunks]),
                *(constant(*one, rows) for one in constants.items()),
            ),
            partition_values=self._partition_values(path, hive),
            path_is_relative=False,
            is_own=False,
            mapping=layout.mapping,
            row_group_count=row_groups,
        )

    def _hive_values(self, path: str) -> dict[str, str | None]:
        if not self._options.hive_partitioning:
            return {}
        names = self._options.names
        return hive_values(path if names is None else path.removeprefix(names.folder))

    def _partition_values(self, path: str, hive: Mapping[str, str | None]) -> tuple[str | None, ...]:
        values: list[str | None] = []
        for name, (column, transform) in zip(folder_names(self._table), partition_keys(self._table), strict=True):
            if name.casefold() not in hive:
                raise ConstraintError(
                    f'File "{path}" contains an invalid partition value for the table configuration: '
                    f"its path has no {name}=…"
                )
            values.append(self._value(path, hive, name, transform.result_type(column.data_type)))
        return tuple(values)

    def _value(self, path: str, hive: Mapping[str, str | None], name: str, kind: DataType) -> str | None:
        """Return the value of a column in a path, as text of its type."""
        text = hive[name.casefold()]
        if text is None or self._options.names is not None:
            return text  # `column_folder` takes texts of the column's type
        if (text, kind) not in self._values:
            try:
                typed = cast_columns(pa.table({"v": [text]}), {"v": kind}, self._time_zone)
            except ConstraintError:
                raise ConstraintError(
                    f'The path {path} has {name}={text}; "{text}" cannot be cast to {kind.sql()}.'
                ) from None
            self._values[text, kind] = texts(typed, {"v": kind})[0][0]
        return self._values[text, kind]


class _Layout:
    """Maps the columns of files with one schema to those of a table.

    Attributes:
        mapping: the columns by name.
        in_path: columns that are in the path, and their names there.
    """

    def __init__(
        self, path: str, table: Table, schema: Sequence[tuple[Any, ...]], hive: Collection[str], options: AddOptions
    ) -> None:
        self._path = path
        self._table = table
        self._hive = hive
        self._options = options
        self._leaves: dict[int, tuple[Column, DataType | None]] = {}
        self.in_path: list[tuple[Column, str]] = []
        columns = nodes_of(schema)
        self._by_id = options.names is not None and options.names.by_id(columns)
        self.mapping = ColumnMapping(tuple(self._map(columns, table.columns, "")))

    def statistics(self, chunks: Sequence[Chunk]) -> Iterator[ColumnStats]:
        """Yield the statistics of the columns that a file with these chunks holds."""
        by_leaf: dict[int, list[Chunk]] = {}
        for chunk in chunks:
            if chunk.leaf in self._leaves:
                by_leaf.setdefault(chunk.leaf, []).append(chunk)
        for leaf, some in by_leaf.items():
            yield merged(*self._leaves[leaf], some)

    def _keys(self, column: Column, *, named: bool) -> Sequence[int | str]:
        """Return what files may have a column under."""
        if named or self._options.names is None:
            return (column.name.casefold(),)
        keys = self._options.names.keys[column.column_id]
        return [key for key in keys if isinstance(key, int) == self._by_id]

    def _key(self, node: Node, *, named: bool) -> int | str | None:
        if named or self._options.names is None:
            return node.name.casefold()
        return node.field_id if self._by_id else node.name

    def _name_in_path(self, column: Column, prefix: str) -> str | None:
        """Return the name that the path has a column under; None where it is not in the path."""
        name = column.name if self._options.names is None else f"column_{column.column_id}"
        return name if not prefix and name.casefold() in self._hive else None

    def _map(
        self, nodes: Sequence[Node], columns: Sequence[Column], prefix: str, *, named: bool = False
    ) -> Iterator[NameMapping]:
        left = {key: column for column in columns for key in self._keys(column, named=named)}
        mapped: set[int] = set()
        for node in nodes:
            column = left.get(key) if (key := self._key(node, named=named)) is not None else None
            if column is None or column.column_id in mapped:
                if self._options.ignore_extra_columns:
                    continue
                raise ConstraintError(
                    f'Column "{prefix}{node.name}" exists in file "{self._path}" but was not found in table '
                    f'"{self._table.name}"; set ignore_extra_columns => true to add the file anyway.'
                )
            mapped.add(column.column_id)
            if (in_path := self._name_in_path(column, prefix)) is not None:
                yield self._map_path(column, in_path)
            else:
                yield self._map_column(node, column, prefix)
        unclaimed = {node.name.casefold() for node in nodes if self._key(node, named=named) not in left}
        for column in columns:
            if column.column_id in mapped:
                continue
            keys = self._keys(column, named=named)
            if alike := unclaimed.intersection(key.casefold() for key in keys if isinstance(key, str)):
                # some readers would find it, and others give NULL
                raise ConstraintError(
                    f'File "{self._path}" has the column "{prefix}{min(alike)}" in other upper and lower case than its table; '
                    "write the file anew."
                )
            if (in_path := self._name_in_path(column, prefix)) is not None:
                yield self._map_path(column, in_path)
            elif not self._options.allow_missing:
                raise ConstraintError(
                    f'Column "{prefix}{column.name}" exists in table "{self._table.name}" but was not found in file '
                    f'"{self._path}"; set allow_missing => true to allow missing columns.'
                )

    def _map_column(self, node: Node, column: Column, prefix: str) -> NameMapping:
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
            children = tuple(self._map(node.children[0].children, column.children, below, named=True))
        return NameMapping(node.name, column.column_id, children=children)

    def _map_path(self, column: Column, name: str) -> NameMapping:
        if column.children:
            raise ConstraintError(
                f"Column {column.name} of type {column.data_type.sql()} cannot be taken from the path {self._path}."
            )
        self.in_path.append((column, name))
        return NameMapping(name, column.column_id, is_partition=True)

    def _check(self, node: Node, column: Column, prefix: str) -> None:
        target, stored = column.data_type, node.kind
        if node.unread is not None:
            raise ConstraintError(
                f'Failed to map column "{prefix}{node.name}" from file "{self._path}": {node.unread}; '
                "write the file anew with another type."
            )
        if target.is_nested:
            fits = node.shape == target.name
        elif target.decimal is not None:
            size = stored.decimal if stored is not None else None
            fits = size is not None and size[0] <= target.decimal[0] and size[1] <= target.decimal[1]
        else:
            fits = stored is not None and stored.name in (target.name, *_NARROWER.get(target.name, ()))
        if not fits and self._options.converts and stored is not None and node.physical == "INT96":
            fits = target.name == "timestamptz"
        if not fits:
            shown = stored.sql() if stored is not None else node.shape.upper()
            raise ConstraintError(
                f'Failed to map column "{prefix}{node.name}" from file "{self._path}" to the column in table '
                f'"{self._table.name}": Expected {target.sql()}, found type {shown}.'
            )
