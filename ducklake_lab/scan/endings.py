"""Ends of row versions in data files: files that a snapshot dropped, and positions that it deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ducklake_lab.catalog import paths
from ducklake_lab.model.files import DataFile, DeleteFile
from ducklake_lab.scan.plan import DeletedRows, ScanFile
from ducklake_lab.scan.planner import may_name_snapshots
from ducklake_lab.scan.positions import deletions_by_snapshot

#: Positions in a data file that rows of the catalog delete, each with its snapshot.
InlinedDeletes = Sequence[tuple[int, int]]


def file_with(folder: str, file: DataFile, delete: DeleteFile | None = None, **fields: object) -> ScanFile:
    """A data file to read, with a delete file; `fields` are further fields of the ScanFile."""
    return ScanFile(
        data_file=file,
        path=paths.resolve(folder, file.path, file.path_is_relative),
        delete_file=delete,
        delete_path=paths.resolve(folder, delete.path, delete.path_is_relative) if delete else None,
        **fields,  # type: ignore[arg-type]
    )


class Endings:
    """Finds the rows of data files that end at some snapshots; rows that the same snapshot inserted are left out.

    Args:
        folder: of the table.
        chosen: whether a snapshot is one of them.
    """

    def __init__(self, folder: str, chosen: Callable[[int], bool]) -> None:
        self._folder = folder
        self._chosen = chosen

    def of(
        self,
        files: Iterable[DataFile],
        deletes: Mapping[int, Sequence[DeleteFile]],
        positions: Mapping[int, InlinedDeletes],
    ) -> tuple[list[ScanFile], list[DeletedRows]]:
        """Return the dropped files, with the rows they had before, and the rows deleted from files.

        Args:
            deletes: all delete files of each file, by its id.
            positions: all inlined deletions from each file, likewise.
        """
        removed: list[ScanFile] = []
        deleted: list[DeletedRows] = []
        for file in files:
            by_file, by_rows = deletes.get(file.data_file_id, ()), positions.get(file.data_file_id, ())
            ended = file.end_snapshot
            if ended is not None and self._chosen(ended):
                removed.append(self._before_end(file, by_file, by_rows, ended))
            deleted += self._deleted_by_files(file, by_file, by_rows)
            deleted += self._deleted_by_rows(file, by_rows)
        return removed, deleted

    def _before_end(
        self, file: DataFile, deletes: Sequence[DeleteFile], positions: InlinedDeletes, ended: int
    ) -> ScanFile:
        """The file with the rows it had just before it was dropped."""
        last = next((d for d in deletes if d.end_snapshot in (None, ended)), None)
        return file_with(
            self._folder,
            file,
            last,
            inlined_deletes=_before(positions, ended),
            deleted_up_to=ended - 1 if may_name_snapshots(file, last) else None,
            snapshot_id=ended,
        )

    def _deleted_by_files(
        self, file: DataFile, deletes: Sequence[DeleteFile], positions: InlinedDeletes
    ) -> list[DeletedRows]:
        deletions = []
        for delete in deletes:
            path = paths.resolve(self._folder, delete.path, delete.path_is_relative)
            named = deletions_by_snapshot(path, delete) if may_name_snapshots(file, delete) else None
            for snapshot_id in [delete.begin_snapshot] if named is None else named:
                if not self._chosen(snapshot_id) or _never_seen(file, snapshot_id):
                    continue
                # a delete file may repeat earlier deletions by catalog rows
                earlier = _before(positions, snapshot_id)
                if named is not None:
                    after = file_with(self._folder, file, delete, deleted_up_to=snapshot_id)
                    before = replace(after, deleted_up_to=snapshot_id - 1, inlined_deletes=earlier)
                else:
                    after = file_with(self._folder, file, delete)
                    previous = next((d for d in deletes if d.end_snapshot == snapshot_id), None)
                    up_to = snapshot_id - 1 if may_name_snapshots(file, previous) else None
                    before = file_with(self._folder, file, previous, inlined_deletes=earlier, deleted_up_to=up_to)
                deletions.append(DeletedRows(after, before, snapshot_id))
        return deletions

    def _deleted_by_rows(self, file: DataFile, positions: InlinedDeletes) -> list[DeletedRows]:
        by_snapshot: dict[int, list[int]] = defaultdict(list)
        for position, snapshot_id in positions:
            if self._chosen(snapshot_id) and not _never_seen(file, snapshot_id):
                by_snapshot[snapshot_id].append(position)
        whole = file_with(self._folder, file)
        return [
            DeletedRows(replace(whole, inlined_deletes=tuple(listed)), whole, snapshot_id)
            for snapshot_id, listed in by_snapshot.items()
        ]


def first_rows(
    folder: str, file: DataFile, deletes: Sequence[DeleteFile], positions: InlinedDeletes, **fields: object
) -> ScanFile:
    """A data file with the rows that the snapshot had with which it begins; arguments as for `file_with` and `Endings.of`."""
    begin = file.begin_snapshot
    if file.partial_max is not None:
        return file_with(folder, file, None, **fields)
    own = next((delete for delete in deletes if delete.begin_snapshot == begin), None)
    return file_with(
        folder,
        file,
        own,
        inlined_deletes=tuple(position for position, snapshot_id in positions if snapshot_id == begin),
        deleted_up_to=begin if may_name_snapshots(file, own) else None,
        **fields,
    )


def _never_seen(file: DataFile, snapshot_id: int) -> bool:
    """Whether rows that a snapshot deletes from a file are in no snapshot: their transaction inserted them too."""
    return file.partial_max is None and file.begin_snapshot == snapshot_id


def _before(positions: InlinedDeletes, snapshot: int) -> tuple[int, ...]:
    """The positions deleted by earlier snapshots."""
    return tuple(position for position, snapshot_id in positions if snapshot_id < snapshot)
