"""Which rows of data files are deleted: positions from delete files and from the catalog, and what cannot be read.

Positions are metadata, not rows: reading them here costs a few milliseconds, and one bit per row of a file to pass on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lab.errors import DataFileError, UnsupportedFeatureError
from ducklake_lab.model.deletion_vectors import decode
from ducklake_lab.model.entries import DELETE_POSITION_FIELD, SNAPSHOT_ID_FIELD
from ducklake_lab.model.files import VECTOR_FORMAT
from ducklake_lab.model.positions import Positions, ascending
from ducklake_lab.scan.encryption import encryption_sql
from ducklake_lab.scan.footers import field_id, in_parallel
from ducklake_lab.scan.plan import DeletedRows, ScanFile
from ducklake_lab.storage import Storage


def check_files(files: Iterable[ScanFile]) -> None:
    """Raises what keeps any of the files from being read.

    Raises:
        UnsupportedFeatureError: names the feature and the file.
    """
    for file in files:
        delete = file.delete_file
        if delete is not None and delete.format.lower() not in ("parquet", VECTOR_FORMAT):
            raise UnsupportedFeatureError(
                f"Delete files of format {delete.format} are not supported yet ({file.path})."
            )


def distinct_paths(files: Iterable[ScanFile]) -> list[list[ScanFile]]:
    """The files in as few groups as have no path twice: a file can be added to a table several times."""
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
    return in_parallel({file.path: file for file in files if file.has_deletes}, lambda file: _positions(file, storage))


def newly_deleted_positions(deleted: Iterable[DeletedRows], storage: Storage) -> dict[str, Positions]:
    """The positions deleted in the later state and not in the earlier one, by the path of the file."""

    def difference(rows: DeletedRows) -> Positions:
        after, before = _positions(rows.after, storage), _positions(rows.before, storage)
        return np.setdiff1d(after, before, assume_unique=True) if len(before) else after

    return in_parallel({rows.after.path: rows for rows in deleted}, difference)


def distinct_files(deleted: Sequence[DeletedRows]) -> list[list[DeletedRows]]:
    """The entries in as few groups as have no file twice: a file that several snapshots deleted from has several."""
    groups: list[dict[str, DeletedRows]] = []
    for rows in deleted:
        group = next((group for group in groups if rows.after.path not in group), None)
        if group is None:
            group = {}
            groups.append(group)
        group[rows.after.path] = rows
    return [list(group.values()) for group in groups]


def deleting_snapshots(file: ScanFile, storage: Storage) -> list[int] | None:
    """The snapshots whose deletions a delete file holds, ascending; None where it does not name them."""
    _, snapshots = _read_delete_file(file, storage)
    return None if snapshots is None else np.unique(snapshots).tolist()


def pack(positions: Positions) -> npt.NDArray[np.int64]:
    """The positions as bits: position p is bit `p & 63`, from the lowest, of word `p >> 6`."""
    if not len(positions):
        return np.zeros(0, np.int64)
    bits = np.zeros(((int(positions[-1]) >> 6) + 1) << 6, np.bool_)
    bits[positions] = True
    return np.packbits(bits, bitorder="little").view("<i8").astype(np.int64)


def read_deletions(file: ScanFile, storage: Storage) -> tuple[Positions, Positions | None]:
    """The positions that the delete file of a data file names, and the snapshots that deleted them, if it has these."""
    positions, snapshots = _read_delete_file(file, storage)
    if file.deleted_up_to is not None and snapshots is not None:
        applies = snapshots <= file.deleted_up_to
        return positions[applies], snapshots[applies]
    return positions, snapshots


def _positions(file: ScanFile, storage: Storage) -> Positions:
    inlined = np.asarray(file.inlined_deletes, np.int64)
    if file.delete_path is None:
        return ascending(inlined)
    stored = read_deletions(file, storage)[0]
    return ascending(np.concatenate([stored, inlined]) if len(inlined) else stored)


def _read_delete_file(file: ScanFile, storage: Storage) -> tuple[Positions, Positions | None]:
    """Positions, then the snapshot ids if the file has them."""
    path = file.delete_path
    assert file.delete_file is not None and path is not None  # asked for only where there is one
    try:
        is_vector = file.delete_file.format.lower() == VECTOR_FORMAT
        if file.delete_file.encryption_key and not is_vector:
            return _read_encrypted(path, file.delete_file.encryption_key, storage)
        with storage.open_input(path) as source:
            return (decode(source.read()), None) if is_vector else _read_parquet(pq.ParquetFile(source))
    except (pa.ArrowException, duckdb.Error, KeyError, OSError, ValueError) as error:
        raise DataFileError(f"The delete file {path} cannot be read: {str(error).splitlines()[0]}") from None


def _read_encrypted(path: str, key: str, storage: Storage) -> tuple[Positions, Positions | None]:
    fields = [(DELETE_POSITION_FIELD, "pos"), (SNAPSHOT_ID_FIELD, "snapshot_id")]
    schema = ", ".join(f"{i}: {{'name': '{name}', 'type': 'BIGINT', 'default_value': NULL}}" for i, name in fields)
    with storage.local_copy(path) as local, duckdb.connect(":memory:", config={"threads": 1}) as connection:
        config = encryption_sql(connection, key, path)
        table = connection.execute(
            f"FROM read_parquet($1, schema = MAP {{{schema}}}, encryption_config = {config})", [local]
        ).to_arrow_table()
    positions = table.column("pos").to_numpy().astype(np.int64)
    snapshots = table.column("snapshot_id")
    return positions, None if snapshots.null_count == len(snapshots) else snapshots.to_numpy().astype(np.int64)


def _read_parquet(file: pq.ParquetFile) -> tuple[Positions, Positions | None]:
    by_id = {field_id(field): field.name for field in file.schema_arrow}
    names = [by_id.get(DELETE_POSITION_FIELD, "pos")]
    names += [by_id[SNAPSHOT_ID_FIELD]] if SNAPSHOT_ID_FIELD in by_id else []
    table = file.read(columns=names)
    columns = [table.column(name).to_numpy().astype(np.int64) for name in names]
    return columns[0], columns[1] if len(columns) > 1 else None
