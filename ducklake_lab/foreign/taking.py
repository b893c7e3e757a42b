"""A table of another format -> a table of a lake over links to its files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.engine.in_process import reader
from ducklake_lab.errors import ConstraintError, DataFileError, EntryExistsError, UnsupportedFeatureError
from ducklake_lab.file_paths import is_local
from ducklake_lab.files.adding import AddOptions, ColumnNames, column_folder, describe_files
from ducklake_lab.files.deletes import Deletions, write_deletions
from ducklake_lab.files.options import delete_options, write_options
from ducklake_lab.files.writer import Writer
from ducklake_lab.foreign.links import link
from ducklake_lab.foreign.model import ForeignColumn, ForeignFile, ForeignTable
from ducklake_lab.model.entries import Column, Schema, Table
from ducklake_lab.model.files import DataFile, WrittenFile
from ducklake_lab.model.staged import POSITION
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.transaction import Transaction

#: Bytes of a folder's name on the filesystems there are.
_LONGEST_NAME = 255


def take(transaction: Transaction, schema: Schema, name: str, source: ForeignTable, *, copy: bool = False) -> Table:
    """Create a table in a transaction whose data files are those of a table of another format.

    The files get a second name in the lake's folder, so that each side deletes its own names only.

    Args:
        copy: write the rows of files that are on another filesystem, or whose types have to be cast.

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
    if source.files:
        _Taking(transaction, table, source, copy).run()
    return table


class _Taking:
    """Files of a table of another format, as they come into the folder of a lake's table."""

    def __init__(self, transaction: Transaction, table: Table, source: ForeignTable, copy: bool) -> None:
        self._transaction = transaction
        self._table = table
        self._source = source
        self._copy = copy
        self._storage = Storage()
        self._folder = transaction.lake.folder(transaction.state, table).removeprefix("file://")
        keys = dict(_keys(table.columns, source.columns))
        self._options = AddOptions(allow_missing=True, ignore_extra_columns=True, names=ColumnNames(keys, self._folder))
        # by the relative path in the lake
        self._files = {_link(file, table.columns, source): file for file in source.files}

    def run(self) -> None:
        try:
            self._make_links()
            kept = self._described()
            for file in kept:
                _check_counts(self._files[file.path], file.record_count, self._source)
        except BaseException as error:
            self._discard(self._files)
            if isinstance(error, ConstraintError) and not self._copy:
                said = (
                    f"{str(error).rstrip('.')}. With copy=True the rows of files whose types can be cast are written."
                )
                raise ConstraintError(said) from None
            raise
        # those without rows, and those whose rows were written
        self._discard(self._files.keys() - {file.path for file in kept})
        self._stage(kept)

    def _discard(self, paths: Iterable[str]) -> None:
        self._storage.discard(self._folder + path for path in paths)

    def _make_links(self) -> None:
        title = self._source.title
        self._storage.check_regular([file.path for file in self._files.values()])
        for path, file in self._files.items():
            target = self._folder + path
            try:
                size = os.stat(file.path).st_size
                if file.size is not None and size != file.size:
                    raise DataFileError(f"{file.path} of {title} has {size:,} bytes instead of {file.size:,}.")
                os.makedirs(os.path.dirname(target), exist_ok=True)
                is_there = link(file.path, target) or (self._copy and bool(shutil.copyfile(file.path, target)))
            except FileNotFoundError:
                raise DataFileError(
                    f"{title[0].upper()}{title[1:]} names a file that is not there: {file.path}."
                ) from None
            except OSError as error:
                raise DataFileError(f"{file.path} of {title} cannot be added: {error.strerror}.") from None
            if not is_there:
                raise UnsupportedFeatureError(
                    f"Adding {title} without copying is not supported: {file.path} is on another filesystem than the lake's data, "
                    "or on one without hard links. With copy=True it is copied."
                )

    def _described(self) -> list[WrittenFile]:
        """Return the files with rows, by relative paths; those that are written take the places of their links."""
        try:
            return self._own(self._files, self._options)
        except ConstraintError:
            if not self._copy:
                raise
        files: list[WrittenFile] = []
        for path in list(self._files):
            try:
                files += self._own([path], self._options)
            except ConstraintError:
                files += map(self._converted, self._own([path], replace(self._options, converts=True)))
        return files

    def _own(self, paths: Iterable[str], options: AddOptions) -> list[WrittenFile]:
        described = describe_files(self._table, [self._folder + path for path in paths], options, "UTC")
        relative = ((file, file.path.removeprefix(self._folder)) for file in described)
        return [replace(file, path=path, path_is_relative=True, is_own=True) for file, path in relative]

    def _converted(self, file: WrittenFile) -> WrittenFile:
        """Write the rows of a file in the table's types, at the same positions."""
        path, table, folder = f"ducklake-{new_uuid()}.parquet", self._table, self._folder
        self._files[path] = self._files[file.path]
        size = file.file_size_bytes
        data_file = DataFile(
            -1, table.table_id, 0, None, file.path, True, file.record_count, size, None, 0, mapping=file.mapping
        )
        scan = ScanFile(data_file, folder + file.path)
        rows = reader.read(ScanPlan(table, (scan,), None, 1, size, folder), virtual=True).sort_by(POSITION)
        with Writer(table, write_options(self._transaction.options, table)) as writer:
            written = writer.write(rows.select(range(len(table.columns))), folder + path, self._storage)
        return replace(written, path=path)

    def _stage(self, files: Sequence[WrittenFile]) -> None:
        transaction, table, folder = self._transaction, self._table, self._folder
        options = delete_options(transaction.options, table, transaction.lake.version)
        for file_id, file in zip(transaction.append_files(table, files), files, strict=True):
            deleted = self._files[file.path].deleted
            if deleted is not None and len(deleted):
                written = write_deletions(Deletions(deleted), folder + file.path, folder, options, self._storage)
                deletes = [replace(written, data_file_id=file_id)]
                transaction.delete_from_files(table, deletes, {file_id: file.record_count})


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


def _check_counts(file: ForeignFile, records: int, source: ForeignTable) -> None:
    if file.records is not None and file.records != records:
        raise DataFileError(f"{file.path} of {source.title} has {records:,} rows instead of {file.records:,}.")
    if file.deleted is not None and len(file.deleted) and int(file.deleted[-1]) >= records:
        raise DataFileError(f"A deleted row of {file.path} in {source.title} is beyond its {records:,} rows.")
