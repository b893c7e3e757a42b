"""Finds data files and inlined rows that may hold versions of some rows, by row ids and by snapshots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import among, read_data_files, read_delete_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.tables import one_of
from ducklake_lab.model.entries import Column
from ducklake_lab.model.files import VECTOR_FORMAT, DataFile, DeleteFile
from ducklake_lab.scan.endings import Endings, InlinedDeletes
from ducklake_lab.scan.plan import DeletedRows, ScanFile

#: An open catalog.
Connection = sa.Connection
_EVER = 1 << 61
#: Ids that are listed in the text of a query, instead of the range they lie in.
_LISTED = 1000


@dataclass(frozen=True, slots=True)
class EndedFiles:
    """Data files with rows that end at some snapshots.

    The reference takes a deletion vector that another replaces out of the catalog: the later one seems to have deleted the
    rows of both. With such vectors a row may end earlier than it seems.

    Attributes:
        folder: of the table.
        snapshots: those snapshots, and those of later deletion vectors.
        files: by file id.
        deletes: all delete files of each file, by its id.
        positions: all inlined deletions from each file, likewise.
        may_seem_late: there are deletion vectors.
    """

    folder: str
    snapshots: frozenset[int]
    files: Sequence[DataFile]
    deletes: Mapping[int, Sequence[DeleteFile]]
    positions: Mapping[int, InlinedDeletes]
    may_seem_late: bool

    def endings(self, files: Iterable[DataFile]) -> tuple[list[ScanFile], list[DeletedRows]]:
        """Return the files that the snapshots dropped, and the rows that they deleted from files."""
        return Endings(self.folder, self.snapshots.__contains__).of(files, self.deletes, self.positions)


def read_ended(
    lake: Lake, connection: sa.Connection, table_id: int, folder: str, snapshots: Collection[int]
) -> EndedFiles:
    """Read the data files of a table of which rows may end at some snapshots."""
    f, d = t.data_file, t.delete_file
    first, last = min(snapshots), max(snapshots)
    positions = inlined_deletions.read(connection, lake.database, table_id, last)
    ids = {file_id for file_id, deletions in positions.items() if any(begin in snapshots for _, begin in deletions)}
    # a delete file with the snapshots of its deletions may have later ones than its own
    named = sa.or_(sa.and_(d.c.partial_max.is_not(None), d.c.partial_max >= first), f.c.partial_max.is_not(None))
    deletes = (
        sa.select(d.c.data_file_id)
        .join(f, sa.and_(f.c.data_file_id == d.c.data_file_id, f.c.table_id == table_id))
        .where(
            d.c.table_id == table_id,
            sa.or_(
                sa.and_(d.c.begin_snapshot <= last, sa.or_(one_of(connection, d.c.begin_snapshot, snapshots), named)),
                sa.and_(d.c.begin_snapshot > first, d.c.format == VECTOR_FORMAT),
            ),
        )
    )
    ids.update(connection.scalars(deletes))
    dropped = one_of(connection, f.c.end_snapshot, snapshots)
    wanted = sa.or_(dropped, one_of(connection, f.c.data_file_id, ids)) if ids else dropped
    files = read_data_files(connection, table_id, sa.and_(wanted, f.c.begin_snapshot < last))
    by_file: dict[int, list[DeleteFile]] = defaultdict(list)
    if files:
        of_files = among(d.c.data_file_id, [file.data_file_id for file in files])
        known = sa.or_(d.c.begin_snapshot <= last, d.c.format == VECTOR_FORMAT)
        for delete in read_delete_files(connection, table_id, sa.and_(of_files, known)):
            by_file[delete.data_file_id].append(delete)
    vectors = {
        d.begin_snapshot for deletes in by_file.values() for d in deletes if seems_late(d) and d.begin_snapshot >= first
    }
    return EndedFiles(folder, frozenset({*snapshots, *vectors}), files, by_file, positions, bool(vectors))


def seems_late(delete: DeleteFile) -> bool:
    """Whether rows may have been deleted before the delete file that names them; see `EndedFiles`."""
    return delete.format == VECTOR_FORMAT and delete.partial_max is None


@dataclass(frozen=True, slots=True)
class FilesOfRow:
    """Data files with all deletions from them.

    Attributes:
        files, deletes, positions: as in `EndedFiles`.
    """

    files: Sequence[DataFile]
    deletes: Mapping[int, Sequence[DeleteFile]]
    positions: Mapping[int, InlinedDeletes]


def read_anchors(lake: Lake, connection: sa.Connection, table_id: int, row_id: int, up_to: int) -> FilesOfRow:
    """Read the files begun by a snapshot that may have a row by their first row id, and those made of several snapshots."""
    f = t.data_file.c
    counted = sa.and_(f.row_id_start <= row_id, f.row_id_start + f.record_count > row_id)
    wanted = sa.or_(counted, f.row_id_start.is_(None), f.partial_max.is_not(None))
    return _with_deletes(lake, connection, table_id, sa.and_(wanted, f.begin_snapshot <= up_to))


def read_begun(lake: Lake, connection: sa.Connection, table_id: int, first: int, last: int) -> FilesOfRow:
    """Read the files of one snapshot each that begin between two snapshots, both inclusive."""
    f = t.data_file.c
    own = sa.and_(f.row_id_start.is_not(None), f.partial_max.is_(None), f.mapping_id.is_(None))
    return _with_deletes(lake, connection, table_id, sa.and_(own, f.begin_snapshot.between(first, last)))


def _with_deletes(
    lake: Lake, connection: sa.Connection, table_id: int, condition: sa.ColumnElement[bool]
) -> FilesOfRow:
    d = t.delete_file.c
    files = read_data_files(connection, table_id, condition)
    by_file: dict[int, list[DeleteFile]] = defaultdict(list)
    if not files:
        return FilesOfRow(files, by_file, {})
    of_files = among(d.data_file_id, [file.data_file_id for file in files])
    for delete in read_delete_files(connection, table_id, of_files):
        by_file[delete.data_file_id].append(delete)
    positions = inlined_deletions.read(connection, lake.database, table_id, _EVER)
    return FilesOfRow(files, by_file, positions)


def read_inlined_versions(
    lake: Lake,
    connection: sa.Connection,
    table_id: int,
    columns: Sequence[Column],
    row_ids: npt.NDArray[np.int64],
    *,
    up_to: int,
) -> pa.Table | None:
    """Read the inlined versions of some rows, perhaps of others too, that began by a snapshot.

    Returns:
        As `inlined.read_rows` with ends; None where there are none.
    """
    row_id, begin, _ = versions.of(connection).inlined_columns
    condition = f"{begin} <= {up_to:d} AND {_within(row_id, row_ids)}"
    zone = lake.session.time_zone()

    def read() -> pa.Table | None:
        return inlined.read_rows(
            connection, lake.database, table_id, columns, condition, with_ends=True, time_zone=zone
        )

    # most tables have none of the rows
    return lake.answer(connection, ("inlined", table_id, condition), read, lambda rows: rows is None)


def _within(name: str, ids: npt.NDArray[np.int64]) -> str:
    if len(ids) > _LISTED or int(ids.max()) - int(ids.min()) < 2 * len(ids):
        return f"{name} BETWEEN {int(ids.min()):d} AND {int(ids.max()):d}"
    return f"{name} IN ({', '.join(f'{one:d}' for one in ids.tolist())})"
