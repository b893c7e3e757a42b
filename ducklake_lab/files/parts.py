"""Parts of a nested column in a file: found by field id at every depth, under whatever names the file has.

DuckDB finds top-level columns by field id and the parts of nested ones by name. A part that was renamed, or whose name
another part had when a file was written, is therefore read under its name in that file and renamed afterwards.

Spark finds both by field id, until a query reads some parts of a column only: then it looks for the column by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from ducklake_lab.errors import DataFileError, UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.mapping import NameMapping
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.footers import field_id, file_column_ids, file_schemas, file_types
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.storage import Storage

#: The target of a dropped part, read where a struct has no other: only it shows which values are NULL.
_DROPPED = -1

#: Nested columns whose parts a file holds under other names, or does not hold.
Parts = tuple[NameMapping, ...]


def renamed_parts(columns: Sequence[Column], files: Iterable[ScanFile], storage: Storage) -> dict[str, Parts]:
    """Return the nested columns to read by their parts, by path; files with the table's names are left out.

    Looks at the footers of files that have field ids; encrypted ones and those with a mapping of names are left out too.

    Raises:
        DataFileError: a file has no field ids at all, or cannot be read.
    """
    paths = [file.path for file in files if _has_ids(file)]
    for path, ids in file_column_ids(paths, storage).items():
        if not ids:
            raise DataFileError.without_field_ids(path)
    nested = with_structs(columns)
    if not nested:
        return {}
    renamed = {}
    for path, schema in file_schemas(paths, storage).items():
        fields = {field_id(field): field for field in schema}
        looked_at = [_found(fields[column.column_id], column) for column in nested if column.column_id in fields]
        parts = tuple(entry for entry, is_named_alike in looked_at if not is_named_alike)
        if parts:
            renamed[path] = parts
    return renamed


def under_other_names(columns: Sequence[Column], files: Iterable[ScanFile], storage: Storage) -> set[str]:
    """The paths of files that hold a column with structs in it, or a part of one, under another name than the table's.

    Looks at the footers of files that may hold one otherwise than the table.

    Raises:
        DataFileError: a file cannot be read.
    """
    nested = with_structs(columns)
    paths = [
        file.path
        for file in files
        if _has_ids(file) and any(_may_differ(part, file) for column in nested for part in column.walk())
    ]
    retyped = set()
    for path, schema in file_schemas(paths, storage).items():
        fields = {field_id(field): field for field in schema}
        for column in nested:
            field = fields.get(column.column_id)
            if field is None:
                differs = column.name.casefold() in map(str.casefold, schema.names)
            else:
                differs = field.name != column.name or not _found(field, column)[1]
            if differs:
                retyped.add(path)
    return retyped


def check_encrypted(columns: Sequence[Column], file: ScanFile, schema: pa.Schema) -> None:
    """Checks that the parts of nested columns can be found by name in an encrypted file, whose field ids are out of reach.

    Args:
        schema: the file's columns as DuckDB names them.

    Raises:
        UnsupportedFeatureError: a part may have had another name when the file was written.
    """
    fields = {field.name.casefold(): field for field in schema}
    for column in with_structs(columns):
        # a file that came with its table has the table's names
        newer = {part.name.casefold() for part in column.walk() if part is not column and _may_be_newer(part, file)}
        if file.data_file.begin_snapshot < 0 or not newer:
            continue
        field = fields.get(column.name.casefold())
        held = {name.casefold() for name in _names(field.type)} if field is not None else set()
        names = {part.name.casefold() for part in column.walk() if part is not column}
        if field is None or newer & held or held - names:
            raise UnsupportedFeatureError(
                f"Fields of {column.name} changed their names or types after encrypted files were written; "
                "such files cannot be read yet."
            )


def stored_type(column: Column, entry: NameMapping) -> DataType:
    """The type to read a nested column by: the table's types under the file's names."""
    if not entry.children:
        return column.data_type
    targets = {child.column_id: child for child in column.children}
    parts = tuple(
        (part.source_name, stored_type(targets[part.target_field_id], part))
        if part.target_field_id != _DROPPED
        else (part.source_name, DataType("varchar"))
        for part in entry.children
    )
    return DataType(column.type, parts)


def with_structs(columns: Sequence[Column]) -> list[Column]:
    """The columns that are structs or hold some."""
    return [column for column in columns if any(part.type == "struct" for part in column.walk())]


def of_other_types(columns: Sequence[Column], files: Iterable[ScanFile], storage: Storage) -> set[str]:
    """The paths of files that may hold one of the columns in another type than the table has now.

    Looks at the footers of files that may hold one otherwise than the table.

    Raises:
        DataFileError: a file cannot be read.
    """
    suspects = [file for file in files if any(_may_differ(part, file) for column in columns for part in column.walk())]
    file_schemas((file.path for file in suspects if _has_ids(file)), storage)
    return {file.path for file in suspects if not all(holds_type(column, file, storage) for column in columns)}


def holds_type(column: Column, file: ScanFile, storage: Storage) -> bool:
    """Returns whether a file certainly holds a column in the type that the table has now.

    Raises:
        DataFileError: the file cannot be read.
    """
    if not any(_may_differ(part, file) for part in column.walk()):
        return True
    return _has_ids(file) and file_types(file.path, storage).get(column.column_id) == column.data_type.arrow()


def _may_differ(part: Column, file: ScanFile) -> bool:
    """Returns whether a file may hold a column, or a part of one, otherwise than the table has it.

    A transaction may alter a column after it wrote the file. Rewritten files, which have no first row id, keep the columns
    of older ones.
    """
    data_file = file.data_file
    return part.altered or part.begin_snapshot in (None, data_file.begin_snapshot) or data_file.row_id_start is None


def _may_be_newer(part: Column, file: ScanFile) -> bool:
    """Returns whether a part may have a name or type that is younger than a file, and of another transaction."""
    written = file.data_file.begin_snapshot
    if part.begin_snapshot is None or part.begin_snapshot > written:
        return True
    return part.altered and part.begin_snapshot != written and file.data_file.row_id_start is None


def _has_ids(file: ScanFile) -> bool:
    return file.data_file.mapping is None and file.data_file.encryption_key is None


def _found(field: pa.Field, column: Column) -> tuple[NameMapping, bool]:
    """Map a field of a file to a column's parts, and return whether DuckDB finds the same ones by the table's names."""
    pairs, is_named_alike = _pairs(field.type, column)
    entries = [_found(part, child) for part, child in pairs]
    children = tuple(entry for entry, _ in entries)
    if column.type == "struct" and not children and pa.types.is_struct(field.type):
        children = (NameMapping(field.type.field(0).name, _DROPPED),)
    return NameMapping(field.name, column.column_id, children=children), is_named_alike and all(ok for _, ok in entries)


def _pairs(kind: pa.DataType, column: Column) -> tuple[list[tuple[pa.Field, Column]], bool]:
    """The parts that a file holds of a column, and whether names alone find these and no others."""
    if column.type == "list" and pa.types.is_list(kind):
        return [(kind.value_field, column.children[0])], True
    if column.type == "map" and pa.types.is_map(kind):
        return [(kind.key_field, column.children[0]), (kind.item_field, column.children[1])], True
    if column.type != "struct" or not pa.types.is_struct(kind):
        return [], True
    fields = [kind.field(i) for i in range(kind.num_fields)]
    names = {field.name.casefold(): field for field in fields}
    held = {field_id(field): field for field in fields}
    if held.keys() == {None}:  # its writer numbers top-level columns only
        held = {
            child.column_id: names[child.name.casefold()] for child in column.children if child.name.casefold() in names
        }
    is_named_alike = any(child.column_id in held for child in column.children) and all(
        held[child.column_id].name == child.name
        if child.column_id in held
        else child.name.casefold() not in names and child.initial_default is None
        for child in column.children
    )
    return [(held[child.column_id], child) for child in column.children if child.column_id in held], is_named_alike


def _names(kind: pa.DataType) -> Iterator[str]:
    """The names of all fields of structs in a type."""
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            yield kind.field(i).name
            yield from _names(kind.field(i).type)
    elif pa.types.is_map(kind):
        yield from _names(kind.key_type)
        yield from _names(kind.item_type)
    elif pa.types.is_list(kind):
        yield from _names(kind.value_type)
