"""Data files of another lake that become files of this one as they are: a second name of the file, or a copy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.file_paths import join
from ducklake_lab.maintenance.rewriting import new_path
from ducklake_lab.merging.definitions import partition_fields, types_differ
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import ColumnStats, WrittenFile
from ducklake_lab.scan.footers import file_column_ids
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.transaction import Transaction

_storage = Storage()


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file that is taken over: all of its rows are new, and there are no others in it.

    Attributes:
        stats: of its columns.
    """

    file: ScanFile
    stats: tuple[ColumnStats, ...]

    @property
    def written(self) -> WrittenFile:
        """The file under its new name."""
        data_file = self.file.data_file
        return WrittenFile(
            path=new_path(data_file),
            record_count=data_file.record_count,
            file_size_bytes=data_file.file_size_bytes,
            footer_size=data_file.footer_size or 0,
            column_stats=self.stats,
            partition_values=data_file.partition_values,
        )


def whole_files(
    lake: Lake, theirs: Table, merged: Table, plan: ScanPlan, first_new: int, last_shared: int
) -> Sequence[Arrival]:
    """Return the files that can be taken over, with their statistics.

    Not files with row ids or names of columns of their own, with deleted rows, or that our table would partition
    otherwise; nor any where a column was retyped, as bounds are spelled in the type of their time. A file with a column
    that theirs dropped again is none either: ours gives the id to another column.

    Args:
        lake: theirs.
        merged: our table as it becomes; columns have the same ids in both.
        plan: reads the files that theirs has and the base has not.
        first_new: the first row id that theirs gave out.
        last_shared: the last id that means the same column on both sides.
    """
    if (
        partition_fields(theirs) != partition_fields(merged)
        or plan.retyped is None
        or plan.retyped
        or types_differ(theirs, merged)
    ):
        return ()
    partition_id = theirs.partition.partition_id if theirs.partition is not None and theirs.partition.fields else None
    plain = [file for file in plan.files if _is_whole(file, partition_id, first_new)]
    ids = file_column_ids([file.path for file in plain], _storage)
    # a file without field ids has its columns by place
    their_ids = {column.column_id for column in theirs.all_columns()}
    whole = [file for file in plain if ids[file.path] and _are_known(ids[file.path], their_ids, last_shared)]
    if not whole:
        return ()
    with lake.connect() as connection:
        numbers = [file.data_file.data_file_id for file in whole]
        newest = lake.snapshot(connection).snapshot_id
        stats = read_column_stats(connection, theirs.table_id, None, newest, numbers)
    strict = [column.column_id for column in merged.columns if not column.nulls_allowed]
    arrivals = []
    for file in whole:
        of_file = stats.get(file.data_file.data_file_id, {})
        # an unknown count of NULLs is looked at when the rows are written
        if all(number in of_file and of_file[number].null_count == 0 for number in strict):
            arrivals.append(Arrival(file, tuple(of_file.values())))
    return arrivals


def _are_known(ids: Collection[int], known: Collection[int], last_shared: int) -> bool:
    """Whether field ids of a file mean the same columns in ours; that of row ids means none."""
    return all(number <= last_shared or number in known for number in ids)


def _is_whole(file: ScanFile, partition_id: int | None, first_new: int) -> bool:
    data_file = file.data_file
    return (
        not file.has_deletes
        and not file.is_bounded
        and data_file.path_is_relative
        and data_file.partial_max is None
        and data_file.mapping_id is None
        and data_file.encryption_key is None
        and data_file.partition_id == partition_id
        and data_file.row_id_start is not None
        and data_file.row_id_start >= first_new
    )


def take_over(transaction: Transaction, table: Table, arrivals: Sequence[Arrival]) -> None:
    """Stages the files under new names in the table's folder.

    Raises:
        DataFileError: a file is not there.
    """
    folder = transaction.lake.folder(transaction.state, table)
    files = {join(folder, written.path): (arrival, written) for arrival in arrivals for written in [arrival.written]}
    try:
        _storage.duplicate_all({path: arrival.file.path for path, (arrival, _) in files.items()})
    except BaseException:
        _storage.discard(files)
        raise
    transaction.append_files(table, [written for _, written in files.values()])
