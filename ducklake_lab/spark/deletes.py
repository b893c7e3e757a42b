"""Converts matched rows to deletions: positions to inline, or delete files (spec: ducklake_delete_file)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.file_paths import is_local, join
from ducklake_lab.files.deletes import delete_positions
from ducklake_lab.files.options import DeleteOptions
from ducklake_lab.model.files import WrittenDeletes
from ducklake_lab.model.staged import FILE_ID, POSITION
from ducklake_lab.object_access import granted
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.positions import check_files
from ducklake_lab.spark.errors import marking
from ducklake_lab.spark.workers.start import begin_task
from ducklake_lab.storage import Storage

_storage = Storage()

_RESULT = pa.schema([("deletes", pa.binary())])


def write_deletes(
    spark: SparkSession,
    matched: DataFrame,
    files: Mapping[int, ScanFile],
    folder: str,
    options: DeleteOptions,
    new_snapshot: int,
) -> list[WrittenDeletes]:
    """Records deletions in one job whose tasks write the delete files. Creates no snapshot.

    Args:
        matched: has `_ducklake_file_id` and `_ducklake_position`; inlined rows, without a file id, are ignored,
            and rows may be duplicated.
        files: the data files that may be matched, with their existing deletions.
        folder: the table's folder, an absolute path or URL.
        new_snapshot: the likely id of the transaction's snapshot.

    Returns:
        One entry per file with new deletions, by file id.

    Raises:
        UnsupportedFeatureError: a file has a feature that is not supported.
        DataFileError: an existing delete file is missing.
    """
    check_files(files.values())
    temporary = join(folder, f"ducklake-{new_uuid()}")
    positions = matched.where(F.col(FILE_ID).isNotNull()).select(FILE_ID, POSITION)
    task = _task(dict(files), temporary, options, new_snapshot)
    try:
        rows = positions.groupBy(FILE_ID).applyInArrow(task, "deletes binary").toArrow()
        unpublished: list[WrittenDeletes] = [pickle.loads(data) for data in rows.column("deletes").to_pylist()]
        written = [
            _published(deletes, folder, temporary) for deletes in sorted(unpublished, key=lambda d: d.data_file_id)
        ]
    except BaseException:
        _storage.discard_folder(temporary)
        raise
    if is_local(folder):
        _storage.delete_folder(temporary)
    return written


def _published(deletes: WrittenDeletes, folder: str, temporary: str) -> WrittenDeletes:
    if deletes.path is None:
        return deletes
    if not is_local(folder):
        return replace(deletes, path=f"{temporary.rpartition('/')[2]}/{deletes.path}")
    target = f"ducklake-{deletes.path}"
    _storage.move(join(temporary, deletes.path), join(folder, target))
    return replace(deletes, path=target)


def _task(
    files: dict[int, ScanFile], folder: str, options: DeleteOptions, new_snapshot: int
) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    accesses = granted()

    def run(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        begin_task(accesses)
        matched = rows.column(POSITION).to_numpy()
        with marking():
            deletes = delete_positions(files[key[0].as_py()], matched, folder, "", options, new_snapshot, Storage())
        return pa.table([[] if deletes is None else [pickle.dumps(deletes)]], schema=_RESULT)

    return run
