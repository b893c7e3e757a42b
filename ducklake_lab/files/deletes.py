"""Positions to delete from a data file -> a delete file, or a few for the catalog (spec: ducklake_delete_file)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.duckdb.file_access import connect, load_encryption
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.file_paths import is_local, join
from ducklake_lab.files.options import DeleteOptions
from ducklake_lab.model import deletion_vectors
from ducklake_lab.model.entries import DELETE_PATH_FIELD, DELETE_POSITION_FIELD, SNAPSHOT_ID_COLUMN, SNAPSHOT_ID_FIELD
from ducklake_lab.model.files import DELETES_PER_ROW_GROUP, VECTOR_FORMAT, DeleteFile, WrittenDeletes
from ducklake_lab.model.positions import ascending
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.staged import FILE_ID, POSITION
from ducklake_lab.scan.encryption import encryption_sql, new_key
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.positions import check_files, keep_written, read_deletions
from ducklake_lab.storage import Storage

#: The schema of a delete file.
DELETE_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={b"PARQUET:field_id": str(DELETE_PATH_FIELD).encode()}),
        pa.field("pos", pa.int64(), metadata={b"PARQUET:field_id": str(DELETE_POSITION_FIELD).encode()}),
    ]
)
_SNAPSHOT_FIELD = pa.field(
    SNAPSHOT_ID_COLUMN, pa.int64(), metadata={b"PARQUET:field_id": str(SNAPSHOT_ID_FIELD).encode()}
)


def write_matched(
    matched: pa.Table, files: Mapping[int, ScanFile], folder: str, options: DeleteOptions, new_snapshot: int
) -> list[WrittenDeletes]:
    """Records deletions of rows that are known here, writing delete files in process. Creates no snapshot.

    Args:
        matched: has `_ducklake_file_id`, not NULL, and `_ducklake_position`; rows may be there twice.
        files, folder, options, new_snapshot: as of `spark.deletes.write_deletes`.

    Returns:
        One per file with newly deleted rows, by file id.
    """
    check_files(files.values())
    file_ids, positions = (matched.column(name).to_numpy() for name in (FILE_ID, POSITION))
    storage = Storage()
    written: list[WrittenDeletes] = []
    try:
        for file_id in ascending(file_ids).tolist():
            delete_file = delete_positions(
                files[file_id],
                positions[file_ids == file_id],
                folder,
                "ducklake-",
                options,
                new_snapshot,
                storage,
            )
            written += [delete_file] if delete_file is not None else []
    except BaseException:
        storage.discard(join(folder, deletes.path) for deletes in written if deletes.path is not None)
        raise
    return written


def delete_positions(
    file: ScanFile,
    matched: npt.NDArray[np.int64],
    folder: str,
    prefix: str,
    options: DeleteOptions,
    new_snapshot: int,
    storage: Storage,
) -> WrittenDeletes | None:
    """Delete positions of one file beside the earlier ones; None where all were deleted before.

    Args:
        matched: positions, in any order, also several times.
        folder: where a delete file goes; its name starts with `prefix`.
        new_snapshot: the snapshot that the transaction is likely to become. Beside deletions of earlier snapshots the
            new ones are marked with it.
    """
    file_id = file.data_file.data_file_id
    earlier = earlier_deletions(file, storage)
    # inlined positions stay in the catalog: a reader takes a position that is in both for a broken file
    already = ascending(np.concatenate([earlier.positions, np.asarray(file.inlined_deletes, np.int64)]))
    added = np.setdiff1d(ascending(matched), already, assume_unique=True)
    if not len(added):
        return None
    # the rows of a file that is not committed yet have no id to inline a deletion under
    if len(added) <= options.inline_limit and file.snapshot_id is not None:
        return WrittenDeletes(file_id, positions=tuple(added.tolist()))
    both = np.concatenate([earlier.positions, added])
    deletions = Deletions(both)
    if earlier.snapshots is not None and not _starts_anew(file, earlier, options):
        deletions = Deletions(both, np.concatenate([earlier.snapshots, np.full(len(added), new_snapshot, np.int64)]))
    written = replace(write_deletions(deletions, file.path, folder, options, storage, prefix), data_file_id=file_id)
    if deletions.snapshots is not None:
        written = replace(written, new_snapshot=new_snapshot)
    return replace(written, replaces=earlier.replaces)


def _starts_anew(file: ScanFile, earlier: Deletions, options: DeleteOptions) -> bool:
    """Return whether the earlier delete file ends, and the new one needs no snapshot ids.

    The earlier one goes on being read for the snapshots before. But where the catalog has deletions from its time, moving
    these into a file makes one that begins then.
    """
    one_snapshot = options.vectors and not options.vectors_by_snapshot
    return one_snapshot and bool(earlier.replaces) and not file.inlined_deletes


@dataclass(frozen=True, slots=True)
class Deletions:
    """Deleted positions of a data file.

    Attributes:
        snapshots: of each the snapshot that deleted it; None where all are the open transaction's.
        replaces: the committed delete files they are from.
    """

    positions: npt.NDArray[np.int64]
    snapshots: npt.NDArray[np.int64] | None = None
    replaces: tuple[DeleteFile, ...] = ()


def earlier_deletions(file: ScanFile, storage: Storage) -> Deletions:
    """Read the deletions in the delete file of a data file.

    Deletions of the snapshot that made the file are not marked as such in it, unless earlier ones are in it too.
    """
    delete = file.delete_file
    if delete is None:
        return Deletions(np.zeros(0, np.int64))
    positions, snapshots = read_deletions(replace(file, inlined_deletes=()), storage)
    if delete.delete_file_id < 0:
        return Deletions(positions, snapshots)
    if snapshots is None:
        snapshots = np.full(len(positions), delete.begin_snapshot, np.int64)
    return Deletions(positions, snapshots, (delete,))


def write_deletions(
    deletions: Deletions,
    data_file: str,
    folder: str,
    options: DeleteOptions,
    storage: Storage,
    prefix: str = "ducklake-",
) -> WrittenDeletes:
    """Write a delete file, or a deletion vector where options ask for one; for the data file with the id -1.

    Args:
        data_file: the path of the file that the rows are in.
        folder: where the delete file goes; its name starts with `prefix`.
    """
    order = np.argsort(deletions.positions, kind="stable")
    positions, snapshots = deletions.positions[order], deletions.snapshots
    if snapshots is not None:
        snapshots = snapshots[order]
    is_vector = options.vectors and (snapshots is None or options.vectors_by_snapshot)
    written = WrittenDeletes(
        -1,
        f"{prefix}{new_uuid()}-delete.{VECTOR_FORMAT if is_vector else 'parquet'}",
        len(positions),
        begin_snapshot=None if snapshots is None else int(snapshots.min()),
        partial_max=None if snapshots is None else int(snapshots.max()),
        format=VECTOR_FORMAT if is_vector else "parquet",
        encryption_key=new_key() if options.encrypted else None,
    )
    return _stored(written, data_file, positions, snapshots, folder, storage)


def restamped(deletes: WrittenDeletes, folder: str, snapshot_id: int) -> WrittenDeletes:
    """Write the delete file anew with another id for its snapshot, after other commits came first."""
    assert deletes.path is not None
    storage = Storage()
    path = join(folder, deletes.path)
    data_file, positions, snapshots = _read_whole(path, deletes, storage)
    renamed = replace(
        deletes,
        path=f"ducklake-{new_uuid()}-delete.{VECTOR_FORMAT if deletes.format == VECTOR_FORMAT else 'parquet'}",
        partial_max=snapshot_id,
        new_snapshot=snapshot_id,
        encryption_key=new_key() if deletes.encryption_key is not None else None,
    )
    snapshots = np.where(snapshots == deletes.new_snapshot, snapshot_id, snapshots)
    written = _stored(renamed, data_file, positions, snapshots, folder, storage)
    storage.discard([path])
    return written


def _read_whole(
    path: str, deletes: WrittenDeletes, storage: Storage
) -> tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The data file, the positions and the snapshot ids of a delete file of ours."""
    if deletes.format == VECTOR_FORMAT:
        with storage.open_input(path) as source:
            data = source.read()
        positions, snapshots = deletion_vectors.read(data)
        assert snapshots is not None  # vectors without are those of the snapshot that commits them
        return deletion_vectors.data_file(data), positions, snapshots
    key = deletes.encryption_key
    with storage.local_copy(path) as local, closing(connect()) as connection:
        config = "" if key is None else f", encryption_config = {encryption_sql(connection, key, path)}"
        table = arrow(connection, f"FROM read_parquet($1{config})", [local])
    return table.column(0)[0].as_py(), table.column(1).to_numpy(), table.column(2).to_numpy()


def _stored(
    deletes: WrittenDeletes,
    data_file: str,
    positions: npt.NDArray[np.int64],
    snapshots: npt.NDArray[np.int64] | None,
    folder: str,
    storage: Storage,
) -> WrittenDeletes:
    """Write the delete file under its path; return it with its sizes."""
    assert deletes.path is not None
    path = join(folder, deletes.path)
    storage.make_folder(path.rpartition("/")[0])
    if deletes.format == VECTOR_FORMAT:
        data, footer = deletion_vectors.write(positions, snapshots, data_file)
        with storage.open_output(path) as sink:
            sink.write(data)
        size = len(data)
    else:
        size, footer = _write_parquet(storage, path, data_file, positions, snapshots, deletes.encryption_key)
    keep_written(path, deletes, positions, snapshots)
    return replace(deletes, file_size_bytes=size, footer_size=footer)


def _write_parquet(
    storage: Storage,
    path: str,
    data_file: str,
    positions: npt.NDArray[np.int64],
    snapshots: npt.NDArray[np.int64] | None,
    key: str | None,
) -> tuple[int, int]:
    """The size of the file and of its footer, in bytes; it is encrypted if there is a key."""
    paths = pa.DictionaryArray.from_arrays(np.zeros(len(positions), np.int32), pa.array([data_file])).cast(pa.string())
    columns = [paths, pa.array(positions, pa.int64())]
    schema = DELETE_SCHEMA
    if snapshots is not None:
        columns.append(pa.array(snapshots, pa.int64()))
        schema = schema.append(_SNAPSHOT_FIELD)
    if key is not None:
        return _write_encrypted(storage, path, pa.table(columns, schema=schema), key)
    made = pa.BufferOutputStream()
    # neighbouring positions differ by little: deltas are a fraction of the size
    pq.write_table(
        pa.table(columns, schema=schema),
        made,
        use_dictionary=["file_path", _SNAPSHOT_FIELD.name],
        column_encoding={"pos": "DELTA_BINARY_PACKED"},
        store_schema=False,
        row_group_size=DELETES_PER_ROW_GROUP,
    )
    data = made.getvalue()
    with storage.open_output(path) as sink:
        sink.write(data)
    return data.size, pq.read_metadata(pa.BufferReader(data)).serialized_size


def _write_encrypted(storage: Storage, path: str, rows: pa.Table, key: str) -> tuple[int, int]:
    ids = ", ".join(f"{field.name}: {field.metadata[b'PARQUET:field_id'].decode()}" for field in rows.schema)
    with TemporaryDirectory() as folder, closing(connect()) as connection:
        load_encryption(connection)
        config = encryption_sql(connection, key, path)
        target = path.removeprefix("file://") if is_local(path) else f"{folder}/deletes.parquet"
        connection.register("deletions", rows)
        try:
            _, _, size, footer, *_ = connection.execute(
                f"COPY (FROM deletions) TO {quote_text(target)} "
                f"(FORMAT parquet, RETURN_STATS, USE_TMP_FILE false, FIELD_IDS {{{ids}}}, ENCRYPTION_CONFIG {config})"
            ).fetchall()[0]
        finally:
            connection.unregister("deletions")
        if target != path.removeprefix("file://"):
            storage.upload(target, path)
    return int(size), int(footer)
