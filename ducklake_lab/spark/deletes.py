"""Matched rows -> deletions of data files: positions to inline, or delete files (spec: ducklake_delete_file)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.model.entries import DELETE_PATH_FIELD, DELETE_POSITION_FIELD
from ducklake_lab.model.files import WrittenDeletes
from ducklake_lab.model.staged import FILE_ID, POSITION
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.positions import check_files, deleted_positions
from ducklake_lab.storage import Storage, is_local, join

_storage = Storage()

#: The schema of a delete file.
DELETE_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={b"PARQUET:field_id": str(DELETE_PATH_FIELD).encode()}),
        pa.field("pos", pa.int64(), metadata={b"PARQUET:field_id": str(DELETE_POSITION_FIELD).encode()}),
    ]
)
_RESULT = pa.schema(
    [
        ("file_id", pa.int64()),
        ("path", pa.string()),
        ("delete_count", pa.int64()),
        ("file_size_bytes", pa.int64()),
        ("footer_size", pa.int64()),
        ("positions", pa.list_(pa.int64())),
    ]
)
_RESULT_DDL = (
    "file_id bigint, path string, delete_count bigint, file_size_bytes bigint, footer_size bigint, "
    "positions array<bigint>"
)


def write_deletes(
    spark: SparkSession, matched: DataFrame, files: Mapping[int, ScanFile], folder: str, inline_limit: int
) -> list[WrittenDeletes]:
    """Records deletions, in one job whose tasks write the delete files. Creates no snapshot.

    Args:
        matched: has `_ducklake_file_id` and `_ducklake_position`; rows without a file id (inlined ones) are left out,
            and rows may be there twice.
        files: the data files that may be matched, with what is deleted from them already.
        folder: the table's folder, an absolute path or URL.
        inline_limit: of a committed file with at most this many newly deleted rows, the positions are returned for the
            catalog.

    Returns:
        One per file with newly deleted rows, by file id.

    Raises:
        UnsupportedFeatureError: a file has a feature that is not supported.
        DataFileError: a delete file of before is missing.
    """
    check_files(files.values())
    temporary = join(folder, f"ducklake-{new_uuid()}")
    positions = matched.where(F.col(FILE_ID).isNotNull()).select(FILE_ID, POSITION)
    try:
        rows = (
            positions.groupBy(FILE_ID)
            .applyInArrow(_task(dict(files), temporary, inline_limit), _RESULT_DDL)
            .toArrow()
            .to_pylist()
        )
        written = [_published(row, folder, temporary) for row in sorted(rows, key=lambda row: int(row["file_id"]))]
    except BaseException:
        _storage.delete_folder(temporary)
        raise
    if is_local(folder):
        _storage.delete_folder(temporary)
    return written


def _published(row: Mapping[str, object], folder: str, temporary: str) -> WrittenDeletes:
    file_id, count, size, footer = (
        int(str(row[name])) for name in ("file_id", "delete_count", "file_size_bytes", "footer_size")
    )
    path, positions = row["path"], row["positions"]
    if path is None:
        assert isinstance(positions, list)  # the result's schema says so
        return WrittenDeletes(file_id, positions=tuple(positions))
    if is_local(folder):
        target = f"ducklake-{new_uuid()}-delete.parquet"
        _storage.move(join(temporary, str(path)), join(folder, target))
    else:
        target = f"{temporary.rpartition('/')[2]}/{path}"
    return WrittenDeletes(file_id, target, count, size, footer)


def _task(
    files: dict[int, ScanFile], folder: str, inline_limit: int
) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    def run(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        file_id = key[0].as_py()
        file = files[file_id]
        storage = Storage()
        # inlined positions stay in the catalog: a reader takes a position that is in both for a broken file
        in_file = replace(file, inlined_deletes=())
        earlier = deleted_positions([in_file], storage).get(file.path, np.zeros(0, np.int64))
        matched = np.unique(rows.column(POSITION).to_numpy())
        added = np.setdiff1d(np.setdiff1d(matched, earlier), np.array(file.inlined_deletes, np.int64))
        if not len(added):
            return _RESULT.empty_table()
        # the rows of a file that is not committed yet have no id to inline a deletion under
        if len(added) <= inline_limit and file.snapshot_id is not None:
            return _result(file_id, None, 0, 0, 0, added.tolist())
        name = f"{uuid.uuid4()}-delete.parquet"
        count = len(earlier) + len(added)
        size, footer = write_delete_file(storage, join(folder, name), file.path, np.union1d(earlier, added))
        return _result(file_id, name, count, size, footer, [])

    return run


def _result(file_id: int, path: str | None, count: int, size: int, footer: int, positions: list[int]) -> pa.Table:
    row = dict(zip(_RESULT.names, (file_id, path, count, size, footer, positions), strict=True))
    return pa.Table.from_pylist([row], schema=_RESULT)


def write_delete_file(storage: Storage, path: str, data_file: str, positions: np.ndarray) -> tuple[int, int]:
    """Writes a delete file of ascending positions; (size of the file, size of its footer) in bytes."""
    storage.make_folder(path.rpartition("/")[0])
    paths = pa.DictionaryArray.from_arrays(np.zeros(len(positions), np.int32), pa.array([data_file]))
    table = pa.table([paths.cast(pa.string()), pa.array(positions, pa.int64())], schema=DELETE_SCHEMA)
    with storage.open_output(path) as sink:
        # neighbouring positions differ by little: deltas are a fraction of the size
        pq.write_table(
            table,
            sink,
            use_dictionary=["file_path"],
            column_encoding={"pos": "DELTA_BINARY_PACKED"},
            store_schema=False,
        )
    with storage.open_input(path) as source:
        return source.size(), pq.read_metadata(source).serialized_size
