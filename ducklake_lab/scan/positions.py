"""Positions of deleted rows in data files, from delete files and the catalog; checks of files that cannot be read.

Positions are metadata, not rows: reading them here costs a few milliseconds, and one bit per row of a file to pass on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.connections import in_memory
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.duckdb.wording import worded_of_file
from ducklake_lab.errors import DataFileError, UnsupportedFeatureError
from ducklake_lab.model.deletion_vectors import read as read_vectors
from ducklake_lab.model.entries import DELETE_POSITION_FIELD, SNAPSHOT_ID_FIELD
from ducklake_lab.model.files import VECTOR_FORMAT, DeleteFile, WrittenDeletes
from ducklake_lab.model.positions import Positions, ascending
from ducklake_lab.parallel import in_parallel
from ducklake_lab.scan.encryption import encryption_sql
from ducklake_lab.scan.footers import field_id
from ducklake_lab.scan.plan import DeletedRows, ScanFile
from ducklake_lab.scan.read_cache import KeptReads
from ducklake_lab.storage import Storage

#: Storage of reads that are kept from call to call.
_STORAGE = Storage()
#: Memory for deletions that were read; each takes 8 or 16 bytes.
_KEPT_BYTES = 64 << 20
#: Positions, then the snapshot ids, if the file has them.
Deletions = tuple[Positions, Positions | None]
#: Rows of a file that are taken from the catalog: as many bits fit into 8 MB.
_FEW = 1 << 26
_Key = tuple[str, str, str | None]
_UNREADABLE = (pa.ArrowException, duckdb.Error, DataFileError, KeyError, OSError, ValueError)


def check_files(files: Iterable[ScanFile]) -> None:
    """Raise where any of the files cannot be read.

    Raises:
        UnsupportedFeatureError: names the feature and the file.
        DataFileError: one is a pipe or a device, which a reader would wait for; or it has fewer rows than the catalog says,
            by so many that what is made for these would not fit into memory.
    """
    files = list(files)
    try:
        _STORAGE.check_regular(file.path for file in files)
    except DataFileError as error:
        raise DataFileError(f"{error} Restore it from a backup, or DELETE its rows from the lake.") from None
    for file in files:
        if file.data_file.record_count > _FEW:
            _check_count(file)
        delete = file.delete_file
        if delete is not None and delete.format.lower() not in _READERS:
            raise UnsupportedFeatureError(
                f"Delete files of format {delete.format} are not supported yet ({file.path})."
            )


def _check_count(file: ScanFile) -> None:
    claimed, stored = file.data_file.record_count, _record_count(file.path, file.data_file.encryption_key)
    if stored < claimed:
        raise DataFileError(
            f"The catalog is damaged: record_count is {claimed} in ducklake_data_file, and {file.path} has "
            f"{stored} rows; restore it from a backup."
        )


@lru_cache(maxsize=10_000)
def _record_count(path: str, key: str | None) -> int:
    """The rows of a data file. Files never change."""
    try:
        if key is not None:
            with _STORAGE.local_copy(path) as local, in_memory(threads=1) as connection:
                sql = f"SELECT count(*) AS n FROM read_parquet($1, encryption_config = {encryption_sql(connection, key, path)})"
                return int(arrow(connection, sql, [local]).column(0)[0].as_py())
        with _STORAGE.open_input(path) as source:
            return int(pq.read_metadata(source).num_rows)
    except _UNREADABLE as error:
        raise DataFileError(worded_of_file(error, path, "data file", encrypted=key is not None)) from None


def distinct_paths(files: Iterable[ScanFile]) -> list[list[ScanFile]]:
    """Divide files into few groups without a repeated path: a table can have a file several times."""
    groups: list[dict[str, ScanFile]] = []
    for file in files:
        group = next((group for group in groups if file.path not in group), None)
        if group is None:
            group = {}
            groups.append(group)
        group[file.path] = file
    return [list(group.values()) for group in groups]


def deleted_positions(files: Iterable[ScanFile], storage: Storage) -> dict[str, Positions]:
    """The deleted positions of each file that has any, by its path.

    Raises:
        DataFileError: a delete file is missing or cannot be read.
    """
    wanted = {file.path: file for file in files if file.has_deletes}
    return dict(zip(wanted, in_parallel(wanted.values(), lambda file: _positions(file, storage)), strict=True))


def newly_deleted_positions(deleted: Iterable[DeletedRows], storage: Storage) -> dict[str, Positions]:
    """The positions deleted in the later state and not in the earlier one, by the path of the file."""

    def difference(rows: DeletedRows) -> Positions:
        after, before = _positions(rows.after, storage), _positions(rows.before, storage)
        return np.setdiff1d(after, before, assume_unique=True) if len(before) else after

    listed = {rows.after.path: rows for rows in deleted}
    return dict(zip(listed, in_parallel(listed.values(), difference), strict=True))


def distinct_files(deleted: Sequence[DeletedRows]) -> list[list[DeletedRows]]:
    """Divide entries into few groups without a repeated file: each snapshot that deleted from a file has one."""
    groups: list[dict[str, DeletedRows]] = []
    for rows in deleted:
        group = next((group for group in groups if rows.after.path not in group), None)
        if group is None:
            group = {}
            groups.append(group)
        group[rows.after.path] = rows
    return [list(group.values()) for group in groups]


def pack(positions: Positions) -> npt.NDArray[np.int64]:
    """The positions as bits: position p is bit `p & 63`, from the lowest, of word `p >> 6`."""
    if not len(positions):
        return np.zeros(0, np.int64)
    bits = np.zeros(((int(positions[-1]) >> 6) + 1) << 6, np.bool_)
    bits[positions] = True
    return np.packbits(bits, bitorder="little").view("<i8").astype(np.int64)


def read_deletions(file: ScanFile, storage: Storage) -> Deletions:
    """The positions that the delete file of a data file names, and the snapshots that deleted them, if it has these."""
    positions, snapshots = _read_delete_file(file, storage)
    if file.deleted_up_to is not None and snapshots is not None:
        applies = snapshots <= file.deleted_up_to
        return positions[applies], snapshots[applies]
    return positions, snapshots


def _positions(file: ScanFile, storage: Storage) -> Positions:
    inlined = np.asarray(file.inlined_deletes, np.int64)
    if file.delete_path is None:
        return _within(ascending(inlined), file)
    stored = read_deletions(file, storage)[0]
    return _within(ascending(np.concatenate([stored, inlined]) if len(inlined) else stored), file)


def _within(positions: Positions, file: ScanFile) -> Positions:
    """Positions that may be in the file: bits up to a position far outside of it would not fit into memory."""
    first, end = np.searchsorted(positions, (0, max(file.data_file.record_count, _FEW)))
    return positions[first:end]


def _read_delete_file(file: ScanFile, storage: Storage) -> Deletions:
    assert file.delete_file is not None and file.delete_path is not None  # asked for only where there is one
    path, delete = file.delete_path, file.delete_file
    return _kept.read(_key(path, delete), lambda: _fixed(read_delete_file(path, delete, storage)))


def keep_written(path: str, delete: WrittenDeletes, positions: Positions, snapshots: Positions | None) -> None:
    """Keeps the deletions of a delete file that was written here, as if it had been read."""
    _kept.keep(_key(path, delete), _fixed((positions, snapshots)))


def _key(path: str, delete: DeleteFile | WrittenDeletes) -> _Key:
    """Return the key of a read: all that its result depends on."""
    return path, delete.format.lower(), delete.encryption_key


def _fixed(deletions: Deletions) -> Deletions:
    for part in deletions:
        if part is not None:
            part.flags.writeable = False
    return deletions


def _size(deletions: Deletions) -> int:
    return sum(part.nbytes for part in deletions if part is not None)


_kept: KeptReads[_Key, Deletions] = KeptReads(_KEPT_BYTES, _size)


def read_delete_file(path: str, delete: DeleteFile, storage: Storage) -> Deletions:
    """Positions, then the snapshot ids if the file has them.

    Raises:
        DataFileError: the file is missing or cannot be read.
    """
    try:
        read = _READERS.get(delete.format.lower(), _read_parquet)
        if delete.encryption_key and read is _read_parquet:
            return _read_encrypted_deletes(path, delete.encryption_key, storage)
        with storage.open_input(path) as source:
            return read(source)
    except _UNREADABLE as error:
        raise DataFileError(worded_of_file(error, path, "delete file", encrypted=bool(delete.encryption_key))) from None


@lru_cache(maxsize=10_000)
def deletions_by_snapshot(path: str, delete: DeleteFile) -> Mapping[int, int] | None:
    """Count the deletions in a delete file by snapshot; None where it names no snapshots. Files never change."""
    snapshots = read_delete_file(path, delete, _STORAGE)[1]
    return None if snapshots is None else _counted(snapshots)


@lru_cache(maxsize=10_000)
def rows_by_snapshot(path: str, key: str | None) -> Mapping[int, int] | None:
    """Count the rows of a data file by snapshot; None where it names no snapshots. Files never change.

    Args:
        key: of an encrypted file, as the catalog keeps it.

    Raises:
        DataFileError: the file is missing or cannot be read.
    """
    snapshots = row_snapshots(path, key, _STORAGE)
    return None if snapshots is None else _counted(snapshots)


def row_snapshots(path: str, key: str | None, storage: Storage) -> Positions | None:
    """The snapshot that inserted each row of a data file; None where the file does not say."""
    try:
        if key is not None:
            return _read_encrypted(path, key, storage, [SNAPSHOT_ID_FIELD])[0]
        with storage.open_input(path) as source:
            file = pq.ParquetFile(source)
            name = {field_id(field): field.name for field in file.schema_arrow}.get(SNAPSHOT_ID_FIELD)
            return None if name is None else file.read(columns=[name]).column(0).to_numpy().astype(np.int64)
    except _UNREADABLE as error:
        raise DataFileError(worded_of_file(error, path, "data file", encrypted=key is not None)) from None


def _counted(snapshots: Positions) -> Mapping[int, int]:
    ids, counts = np.unique(snapshots, return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def _read_encrypted_deletes(path: str, key: str, storage: Storage) -> Deletions:
    positions, snapshots = _read_encrypted(path, key, storage, [DELETE_POSITION_FIELD, SNAPSHOT_ID_FIELD])
    assert positions is not None
    return positions, snapshots


def _read_encrypted(path: str, key: str, storage: Storage, fields: Sequence[int]) -> list[Positions | None]:
    """Columns of whole numbers by their field ids; None for those without values."""
    schema = ", ".join(f"{i}: {{'name': 'f{i}', 'type': 'BIGINT', 'default_value': NULL}}" for i in fields)
    with storage.local_copy(path) as local, in_memory(threads=1) as connection:
        config = encryption_sql(connection, key, path)
        sql = f"FROM read_parquet($1, schema = MAP {{{schema}}}, encryption_config = {config})"
        table = arrow(connection, sql, [local])
    return [
        None if column.null_count == len(column) else column.to_numpy().astype(np.int64) for column in table.columns
    ]


def _read_parquet(source: pa.NativeFile) -> Deletions:
    file = pq.ParquetFile(source)
    by_id = {field_id(field): field.name for field in file.schema_arrow}
    names = [by_id.get(DELETE_POSITION_FIELD, "pos")]
    names += [by_id[SNAPSHOT_ID_FIELD]] if SNAPSHOT_ID_FIELD in by_id else []
    table = file.read(columns=names)
    columns = [table.column(name).to_numpy().astype(np.int64) for name in names]
    return columns[0], columns[1] if len(columns) > 1 else None


def _read_puffin(source: pa.NativeFile) -> Deletions:
    return read_vectors(source.read())


#: Readers of delete files by format; DuckDB reads encrypted ones of Parquet.
_READERS = {"parquet": _read_parquet, VECTOR_FORMAT: _read_puffin}
