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
from ducklake_lab.files.options import DeleteOptions
from ducklake_lab.model.deletion_vectors import encode
from ducklake_lab.model.entries import DELETE_PATH_FIELD, DELETE_POSITION_FIELD, SNAPSHOT_ID_COLUMN, SNAPSHOT_ID_FIELD
from ducklake_lab.model.files import DELETES_PER_ROW_GROUP, VECTOR_FORMAT, DeleteFile, WrittenDeletes
from ducklake_lab.model.positions import ascending
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.staged import FILE_ID, POSITION
from ducklake_lab.scan.encryption import encryption_sql, new_key
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.positions import check_files, read_deletions
from ducklake_lab.storage import Storage, is_local, join

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
            found = delete_positions(
                files[file_id],
                positions[file_ids == file_id],
                folder,
                "ducklake-",
                options,
                new_snapshot,
                storage,
            )
            written += [found] if found is not None else []
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
    """Deletes positions of one file beside those deleted before; None where all of them were.

    Args:
        matched: positions, in any order, also several times.
        folder: where a delete file goes; its name starts with `prefix`.
        new_snapshot: the snapshot that the transaction is likely to become. Beside deletions of earlier snapshots the
            new ones are marked with it.
    """
    file_id = file.data_file.data_file_id
    earlier = earlier_deletions(file, storage)
    # inlined positions stay in the catalog: a reader takes a position that is in both for a broken file
    known = ascending(np.concatenate([earlier.positions, np.asarray(file.inlined_deletes, np.int64)]))
    added = np.setdiff1d(ascending(matched), known, assume_unique=True)
    if not len(added):
        return None
    # the rows of a file that is not committed yet have no id to inline a deletion under
    if len(added) <= options.inline_limit and file.snapshot_id is not None:
        return WrittenDeletes(file_id, positions=tuple(added.tolist()))
    positions = ascending(np.concatenate([earlier.positions, added]))
    key = new_key() if options.encrypted else None
    if options.vectors and _can_be_vector(file, earlier):
        name = f"{prefix}{new_uuid()}-delete.{VECTOR_FORMAT}"
        size = write_vector(storage, join(folder, name), positions)
        written = WrittenDeletes(file_id, name, len(positions), size, replaces=earlier.replaces, format=VECTOR_FORMAT)
        return replace(written, encryption_key=key)
    name = f"{prefix}{new_uuid()}-delete.parquet"
    if earlier.snapshots is None:
        size, footer = write_delete_file(storage, join(folder, name), file.path, positions, key=key)
        return WrittenDeletes(file_id, name, len(positions), size, footer, encryption_key=key)
    deletions = Deletions(
        np.concatenate([earlier.positions, added]),
        np.concatenate([earlier.snapshots, np.full(len(added), new_snapshot, np.int64)]),
    )
    written = write_deletions(deletions, file, folder, name, storage, key)
    return replace(written, new_snapshot=new_snapshot, replaces=earlier.replaces)


def _can_be_vector(file: ScanFile, earlier: Deletions) -> bool:
    """Whether a delete file need not say which snapshot deleted what.

    An earlier delete file ends where a vector begins, and goes on being read for the snapshots before. But where the
    catalog has deletions from the time of the earlier one, moving these into a file makes one that begins then.
    """
    return earlier.snapshots is None or (bool(earlier.replaces) and not file.inlined_deletes)


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
    """What the delete file of a data file says.

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
    deletions: Deletions, file: ScanFile, folder: str, name: str, storage: Storage, key: str | None
) -> WrittenDeletes:
    """Writes a delete file that has the snapshot ids of its deletions, encrypted if there is a key."""
    assert deletions.snapshots is not None
    order = np.argsort(deletions.positions, kind="stable")
    positions, snapshots = deletions.positions[order], deletions.snapshots[order]
    size, footer = write_delete_file(storage, join(folder, name), file.path, positions, snapshots, key)
    return WrittenDeletes(
        file.data_file.data_file_id,
        name,
        len(positions),
        size,
        footer,
        begin_snapshot=int(snapshots.min()),
        partial_max=int(snapshots.max()),
        encryption_key=key,
    )


def restamped(deletes: WrittenDeletes, folder: str, snapshot_id: int) -> WrittenDeletes:
    """The delete file, written anew with another id for the snapshot that commits it: others came in between."""
    assert deletes.path is not None
    storage = Storage()
    path = join(folder, deletes.path)
    data_file, positions, snapshots = _read_whole(path, deletes.encryption_key, storage)
    snapshots = np.where(snapshots == deletes.new_snapshot, snapshot_id, snapshots)
    name = f"ducklake-{new_uuid()}-delete.parquet"
    key = new_key() if deletes.encryption_key is not None else None
    size, footer = write_delete_file(storage, join(folder, name), data_file, positions, snapshots, key)
    storage.delete([path])
    return replace(
        deletes,
        path=name,
        file_size_bytes=size,
        footer_size=footer,
        partial_max=snapshot_id,
        new_snapshot=snapshot_id,
        encryption_key=key,
    )


def _read_whole(
    path: str, key: str | None, storage: Storage
) -> tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The data file, the positions and the snapshot ids of a delete file of ours."""
    with storage.local_copy(path) as local, closing(connect()) as connection:
        config = "" if key is None else f", encryption_config = {encryption_sql(connection, key, path)}"
        table = arrow(connection, f"FROM read_parquet($1{config})", [local])
    return table.column(0)[0].as_py(), table.column(1).to_numpy(), table.column(2).to_numpy()


def write_vector(storage: Storage, path: str, positions: npt.NDArray[np.int64]) -> int:
    """Writes a deletion vector of ascending positions; its size in bytes."""
    blob = encode(positions)
    storage.make_folder(path.rpartition("/")[0])
    with storage.open_output(path) as sink:
        sink.write(blob)
    return len(blob)


def write_delete_file(
    storage: Storage,
    path: str,
    data_file: str,
    positions: npt.NDArray[np.int64],
    snapshots: npt.NDArray[np.int64] | None = None,
    key: str | None = None,
) -> tuple[int, int]:
    """Writes a delete file of ascending positions, with the snapshots that deleted them where these are given.

    Args:
        key: encrypts the file.

    Returns:
        Size of the file and of its footer, in bytes.
    """
    storage.make_folder(path.rpartition("/")[0])
    paths = pa.DictionaryArray.from_arrays(np.zeros(len(positions), np.int32), pa.array([data_file])).cast(pa.string())
    columns = [paths, pa.array(positions, pa.int64())]
    schema = DELETE_SCHEMA
    if snapshots is not None:
        columns.append(pa.array(snapshots, pa.int64()))
        schema = schema.append(_SNAPSHOT_FIELD)
    if key is not None:
        return _write_encrypted(storage, path, pa.table(columns, schema=schema), key)
    with storage.open_output(path) as sink:
        # neighbouring positions differ by little: deltas are a fraction of the size
        pq.write_table(
            pa.table(columns, schema=schema),
            sink,
            use_dictionary=["file_path", _SNAPSHOT_FIELD.name],
            column_encoding={"pos": "DELTA_BINARY_PACKED"},
            store_schema=False,
            row_group_size=DELETES_PER_ROW_GROUP,
        )
    with storage.open_input(path) as source:
        return source.size(), pq.read_metadata(source).serialized_size


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
