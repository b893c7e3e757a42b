"""A table of another format -> a table of a lake over links to its files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.errors import DataFileError, EntryExistsError, UnsupportedFeatureError
from ducklake_lab.files.adding import AddOptions, ColumnNames, column_folder, describe_files
from ducklake_lab.files.deletes import Deletions, write_deletions
from ducklake_lab.files.options import delete_options
from ducklake_lab.foreign.model import ForeignColumn, ForeignFile, ForeignTable
from ducklake_lab.model.entries import Column, Schema, Table
from ducklake_lab.model.files import WrittenDeletes
from ducklake_lab.storage import Storage, is_local
from ducklake_lab.transaction.transaction import Transaction

#: Bytes of a folder's name on the filesystems there are.
_LONGEST_NAME = 255


def take(transaction: Transaction, schema: Schema, name: str, source: ForeignTable) -> Table:
    """Create a table in a transaction whose data files are those of a table of another format.

    The files get a second name in the lake's folder, so that each side deletes its own names only.

    Raises:
        EntryExistsError: there is an entry of that name, or two columns differ by case only.
        UnsupportedFeatureError: the lake is encrypted or remote, or a file is on another filesystem.
        ConstraintError: a file has other types than its table.
        DataFileError: a file is missing or damaged.
    """
    columns = _columns(source)
    transaction.check_name_is_free(schema, name)
    _check_lake(transaction, source)
    table = transaction.create_table(schema, name, columns)
    if not source.files:
        return table
    folder = transaction.lake.folder(transaction.state, table)
    keys = dict(_keys(columns, source.columns))
    links = {_link(file, columns, source): file for file in source.files}
    storage = Storage()
    try:
        _make_links({folder + path: file for path, file in links.items()}, source, storage)
        options = AddOptions(allow_missing=True, ignore_extra_columns=True, names=ColumnNames(keys, folder))
        described = describe_files(table, [folder + path for path in links], options, "UTC")
        kept = [
            replace(file, path=file.path.removeprefix(folder), path_is_relative=True, is_own=True) for file in described
        ]
        for file in kept:
            _check_counts(links[file.path], file.record_count, source)
    except BaseException:
        storage.discard(folder + path for path in links)
        raise
    storage.discard(folder + path for path in links.keys() - {file.path for file in kept})  # without rows
    ids = transaction.append_files(table, kept)
    options_of_deletes = delete_options(transaction.options, table, transaction.lake.version)
    deletes: list[WrittenDeletes] = []
    for file_id, file in zip(ids, kept, strict=True):
        deleted = links[file.path].deleted
        if deleted is not None and len(deleted):
            written = write_deletions(Deletions(deleted), folder + file.path, folder, options_of_deletes, storage)
            deletes = [replace(written, data_file_id=file_id)]
            transaction.delete_from_files(table, deletes, {file_id: file.record_count})
    return table


def _columns(source: ForeignTable) -> tuple[Column, ...]:
    columns: list[Column] = []
    next_id = 1
    seen: set[str] = set()
    for column in source.columns:
        _check_names(column, source)
        if column.name.casefold() in seen:
            raise EntryExistsError(f'Two columns of {source.title} are named "{column.name}" but for case; rename one.')
        seen.add(column.name.casefold())
        columns.append(Column.build(column.name, column.type, next_id, nulls_allowed=column.nulls_allowed))
        next_id += sum(1 for _ in columns[-1].walk())
    if not columns:
        raise UnsupportedFeatureError(f"Adding {source.title} is not supported: it has no columns.")
    return tuple(columns)


def _check_names(column: ForeignColumn, source: ForeignTable) -> None:
    if column.type.name == "struct":
        names = [child.name.casefold() for child in column.children]
        if len(set(names)) < len(names):
            raise EntryExistsError(f"Two fields of {column.name} in {source.title} differ by case only; rename one.")
    for child in column.children:
        _check_names(child, source)


def _check_lake(transaction: Transaction, source: ForeignTable) -> None:
    lake = transaction.lake
    if transaction.options.get("encrypted") == "true":
        raise UnsupportedFeatureError(
            f"Adding {source.title} to an encrypted lake is not supported, which has a key for each of its files; INSERT its rows."
        )
    if not is_local(lake.data_path):
        raise UnsupportedFeatureError(
            f"Adding {source.title} to {lake.alias} is not supported: the lake's files are not on this machine's disks."
        )


def _keys(columns: Sequence[Column], given: Sequence[ForeignColumn]) -> Iterator[tuple[int, Sequence[int | str]]]:
    for column, foreign in zip(columns, given, strict=True):
        yield column.column_id, foreign.keys
        yield from _keys(column.children, foreign.children)


def _link(file: ForeignFile, columns: Sequence[Column], source: ForeignTable) -> str:
    """Return a new relative path for a file, whose folders have the values that the file lacks."""
    folders = [_folder(columns[number], text, source) for number, text in sorted(file.constants.items())]
    return "".join(folders) + f"added-{new_uuid()}.parquet"


def _folder(column: Column, text: str | None, source: ForeignTable) -> str:
    folder = column_folder(column.column_id, text)
    if len(folder) > _LONGEST_NAME:
        raise UnsupportedFeatureError(
            f"Adding {source.title} is not supported: a partition value of {column.name} is too long for a folder's name."
        )
    return folder


def _make_links(files: Mapping[str, ForeignFile], source: ForeignTable, storage: Storage) -> None:
    storage.check_regular([file.path for file in files.values()])
    for target, file in files.items():
        target = target.removeprefix("file://")
        try:
            size = os.stat(file.path).st_size
            if file.size is not None and size != file.size:
                raise DataFileError(f"{file.path} of {source.title} has {size:,} bytes instead of {file.size:,}.")
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.link(os.path.realpath(file.path), target)
        except FileNotFoundError:
            raise DataFileError(f"{source.title.capitalize()} names a file that is not there: {file.path}.") from None
        except OSError as error:
            raise UnsupportedFeatureError(
                f"Adding {source.title} without copying is not supported here: {file.path} cannot be linked into {target} "
                f"({error.strerror}). Put the lake's data on the same filesystem."
            ) from None


def _check_counts(file: ForeignFile, records: int, source: ForeignTable) -> None:
    if file.records is not None and file.records != records:
        raise DataFileError(f"{file.path} of {source.title} has {records:,} rows instead of {file.records:,}.")
    if file.deleted is not None and len(file.deleted) and int(file.deleted[-1]) >= records:
        raise DataFileError(f"A deleted row of {file.path} in {source.title} is beyond its {records:,} rows.")
