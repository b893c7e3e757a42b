"""Matched rows -> deletions of data files: positions to inline, or delete files (spec: ducklake_delete_file)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.files.deletes import delete_positions
from ducklake_lab.model.files import WrittenDeletes
from ducklake_lab.model.staged import FILE_ID, POSITION
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.positions import check_files
from ducklake_lab.storage import Storage, is_local, join

_storage = Storage()

_RESULT = pa.schema(
    [
        ("file_id", pa.int64()),
        ("path", pa.string()),
        ("delete_count", pa.int64()),
        ("file_size_bytes", pa.int64()),
        ("footer_size", pa.int64()),
        ("begin_snapshot", pa.int64()),
        ("partial_max", pa.int64()),
        ("positions", pa.list_(pa.int64())),
    ]
)
_RESULT_DDL = (
    "file_id bigint, path string, delete_count bigint, file_size_bytes bigint, footer_size bigint, "
    "begin_snapshot bigint, partial_max bigint, positions array<bigint>"
)


def write_deletes(
    spark: SparkSession,
    matched: DataFrame,
    files: Mapping[int, ScanFile],
    folder: str,
    inline_limit: int,
    new_snapshot: int,
) -> list[WrittenDeletes]:
    """Records deletions, in one job whose tasks write the delete files. Creates no snapshot.

    Args:
        matched: has `_ducklake_file_id` and `_ducklake_position`; rows without a file id (inlined ones) are left out,
            and rows may be there twice.
        files: the data files that may be matched, with what is deleted from them already.
        folder: the table's folder, an absolute path or URL.
        inline_limit: of a committed file with at most this many newly deleted rows, the positions are returned for the
            catalog.
        new_snapshot: the snapshot that the transaction is likely to become.

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
            .applyInArrow(_task(dict(files), temporary, inline_limit, new_snapshot), _RESULT_DDL)
            .toArrow()
            .to_pylist()
        )
        written = [
            _published(row, folder, temporary, files, new_snapshot)
            for row in sorted(rows, key=lambda row: int(row["file_id"]))
        ]
    except BaseException:
        _storage.delete_folder(temporary)
        raise
    if is_local(folder):
        _storage.delete_folder(temporary)
    return written


def _published(
    row: Mapping[str, Any], folder: str, temporary: str, files: Mapping[int, ScanFile], new_snapshot: int
) -> WrittenDeletes:
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
    deletes = WrittenDeletes(file_id, target, count, size, footer)
    if row["begin_snapshot"] is None:
        return deletes
    delete_file = files[file_id].delete_file
    return replace(
        deletes,
        begin_snapshot=row["begin_snapshot"],
        partial_max=row["partial_max"],
        new_snapshot=new_snapshot,
        replaces=(delete_file,) if delete_file is not None and delete_file.delete_file_id >= 0 else (),
    )


def _task(
    files: dict[int, ScanFile], folder: str, inline_limit: int, new_snapshot: int
) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    def run(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        file_id = key[0].as_py()
        matched = rows.column(POSITION).to_numpy()
        found = delete_positions(files[file_id], matched, folder, "", inline_limit, new_snapshot, Storage())
        if found is None:
            return _RESULT.empty_table()
        values = (
            file_id,
            found.path,
            found.delete_count,
            found.file_size_bytes,
            found.footer_size,
            found.begin_snapshot,
            found.partial_max,
            list(found.positions),
        )
        return pa.Table.from_pylist([dict(zip(_RESULT.names, values, strict=True))], schema=_RESULT)

    return run
