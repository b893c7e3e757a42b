"""Versions of rows: where a row was in files and catalog, when each version began and which one came before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.columns import column_lives
from ducklake_lab.catalog.files import read_files_by_id
from ducklake_lab.catalog.inlined import END_SNAPSHOT
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine import changes
from ducklake_lab.engine.in_process import engine
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.engine.scans import Scan, at_positions
from ducklake_lab.model.entries import ROW_ID_FIELD, Column, Table
from ducklake_lab.model.files import DataFile, DeleteFile
from ducklake_lab.model.positions import Positions, ascending
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID, SNAPSHOT_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.column_history import check_encrypted, history_of
from ducklake_lab.scan.ended import (
    Connection,
    EndedFiles,
    FilesOfRow,
    read_anchors,
    read_begun,
    read_ended,
    read_inlined_versions,
)
from ducklake_lab.scan.endings import file_with
from ducklake_lab.scan.footers import file_column_ids, with_columns_by_place
from ducklake_lab.scan.plan import ChangePlan, ScanFile, ScanPlan
from ducklake_lab.storage import Storage

_storage = Storage()
#: Most files that an answer of the catalog has which is kept.
_KEPT_FILES = 1000
_Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Found:
    """Rows that a query found at a snapshot.

    Attributes:
        rows: `row_id`, `file_id` and `position`; these two are NULL of inlined rows. Of rows that were read in process,
            `snapshot_id` and the texts `t0`, `t1`, … of their cells follow, by the places of the columns.
        files: their data files, where they were read in process.
    """

    rows: pa.Table
    files: Sequence[DataFile] | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """Places of versions that others replaced.

    Attributes:
        inlined: versions in the catalog.
        ended: files that may have more; None for none.
        left: the versions that replaced these: `row_id` and `began`.
    """

    inlined: pa.Table
    ended: EndedFiles | None
    left: pa.Table | None = None


class Versions:
    """Versions of the rows of one table that began up to a snapshot.

    Tables of versions have `row_id` and `began`, the snapshot that made the version, then `c0`, `c1`, … for columns by
    their places, in the types that they have at that snapshot.

    Attributes:
        at: the snapshot.
        columns: those of the table at it.
        column_begins: since when the table has each column, by place.
    """

    def __init__(self, lake: Lake, state: CatalogState, table: Table) -> None:
        self.at = state.snapshot.snapshot_id
        self._lake, self._table = lake, table
        self._folder = lake.folder(state, table)
        with lake.connect() as connection:
            versions = lake.column_versions(connection, table.table_id)
        self._history, lives = history_of(table.columns, versions), column_lives(versions, self.at)
        self._inlined: pa.Table | None = None
        self.columns: tuple[Column, ...] = self._history.columns
        self.column_begins = [lives[column.column_id][-1].first for column in self.columns]

    def here(self, found: Found, places: Sequence[int]) -> pa.Table:
        """Returns the versions of some rows at the snapshot.

        Args:
            places: of the columns to read.
        """
        is_inlined = pc.is_null(found.rows.column("file_id"))
        in_files = found.rows.filter(pc.invert(is_inlined))
        inlined_ids = found.rows.filter(is_inlined).column("row_id").to_numpy()
        files, inlined = found.files, None
        if files is None or len(inlined_ids):
            with self._lake.connect() as connection:
                if files is None:
                    ids = pc.unique(in_files.column("file_id")).to_pylist()
                    files = read_files_by_id(connection, self._table.table_id, ids)
                if len(inlined_ids):
                    inlined = self._read_inlined(connection, places, inlined_ids)
        parts = [self.cells(files, in_files, places)]
        if inlined is not None:
            wanted = pa.table({"row_id": pa.array(inlined_ids, pa.int64())})
            live = f"r.ended IS NULL OR r.ended > {self.at:d}"
            parts.append(self._joined(inlined, wanted, places, f"r.row_id = p.row_id AND ({live})"))
        return pa.concat_tables(parts)

    def began(self, found: Found) -> pa.ChunkedArray:
        """Returns the snapshots at which the versions of rows began that were read in process."""
        begins, snapshots = _begins(found.files or ()), found.rows.column("snapshot_id")
        last = pc.max(begins.column("began")).as_py()
        if last is None or last <= pc.min(snapshots).as_py():
            return snapshots
        # copies of merged files begin later than the rows in them
        of_file = begins.column("began").take(pc.index_in(found.rows.column("file_id"), begins.column("file_id")))
        return pc.max_element_wise(snapshots, of_file)

    def before(self, pending: pa.Table, places: Sequence[int]) -> pa.Table:
        """Returns for each version the one that it replaced; none for rows that began with it, or have no earlier one left.

        Args:
            pending: versions of which each row has one at most; in further calls, of rows of the first.
            places: of the columns to read; in further calls, of columns of the first.
        """
        return self.read(self.search(pending, places), places)

    def search(self, pending: pa.Table, places: Sequence[int]) -> Search:
        """Returns where the versions are that some replaced, by the catalog alone; arguments as in `before`."""
        if not pending.num_rows:
            return Search(self.schema(places).empty_table(), None)
        with self._lake.connect() as connection:
            inlined = self._inlined_before(connection, pending, places)
            left = _without(pending, inlined)
            if not left.num_rows:
                return Search(inlined, None)
            snapshots = frozenset(pc.unique(left.column("began")).to_pylist())
            asked = "ended", self._table.table_id, self._folder, snapshots
            ended = self._lake.answer(connection, asked, lambda: self._read_ended(connection, snapshots), _is_small)
        return Search(inlined, ended if ended.files else None, left)

    def _read_ended(self, connection: Connection, snapshots: frozenset[int]) -> EndedFiles:
        return read_ended(self._lake, connection, self._table.table_id, self._folder, snapshots)

    def read(self, search: Search, places: Sequence[int]) -> pa.Table:
        """Returns the versions that a search is for."""
        ended, left = search.ended, search.left
        if ended is None or left is None:
            return search.inlined
        wanted = _by_snapshot(left)
        near = [file for file in ended.files if _counts_one(file, wanted)]
        in_files = self._matching(ended, near, left, places)
        if not ended.may_seem_late:
            left = _without(left, in_files)
        if left.num_rows:
            names = {file.data_file_id for file in near}
            far = [file for file in ended.files if file.data_file_id not in names]
            found = self._matching(ended, self.with_row_ids(far), left, places)
            in_files = self._newest(pa.concat_tables([in_files, found]), places)
        return pa.concat_tables([search.inlined, in_files])

    # Versions of one row

    def anchors(self, row_id: int) -> FilesOfRow:
        """Returns the files that may have a row, as far as the catalog says; see `read_anchors`."""
        with self._lake.connect() as connection:
            return read_anchors(self._lake, connection, self._table.table_id, row_id, self.at)

    def begun(self, first: int, last: int) -> FilesOfRow:
        """Returns the files that begin in a range of snapshots, both ends inclusive, and hold row ids."""
        with self._lake.connect() as connection:
            found = read_begun(self._lake, connection, self._table.table_id, first, last)
        return replace(found, files=self.with_row_ids(found.files))

    def inlined_of(self, row_id: int, places: Sequence[int]) -> pa.Table | None:
        """Returns the inlined versions of a row, `ended` first; None for none."""
        with self._lake.connect() as connection:
            rows = self._read_inlined(connection, places, np.array([row_id], np.int64))
        return (
            None if rows is None else engine.evaluate("FROM rows WHERE ended IS NULL OR began < ended", {"rows": rows})
        )

    def positions_of(self, files: Sequence[DataFile], row_id: int) -> pa.Table:
        """Returns the places of a row in files, deleted or not: `row_id`, `file_id`, `position` and `began`."""
        scans = [file_with(self._folder, file, snapshot_id=file.begin_snapshot) for file in files]
        self._lake.check_data_path(scan.path for scan in scans)
        rows = Scan(self._plan(scans, ()), virtual=True).here()
        return rows.query(
            f"SELECT r.{ROW_ID} AS row_id, r.{FILE_ID} AS file_id, r.{POSITION} AS position, "
            f"greatest(f.began, r.{SNAPSHOT_ID}) AS began "
            f"FROM rows AS r JOIN begins AS f ON r.{FILE_ID} = f.file_id WHERE r.{ROW_ID} = {row_id:d} AND began <= {self.at:d}",
            begins=InMemory(_begins(files)),
        ).arrow()

    def file_with(self, file: DataFile, delete: DeleteFile) -> ScanFile:
        """Returns a file to read, with a delete file."""
        return file_with(self._folder, file, delete)

    # Files

    def _inlined_before(self, connection: Connection, pending: pa.Table, places: Sequence[int]) -> pa.Table:
        """Returns the inlined versions that the given ones replaced; reads those of all rows once."""
        if self._inlined is None:
            found = self._read_inlined(connection, places, pending.column("row_id").to_numpy())
            self._inlined = self.schema(places, ended=True).empty_table() if found is None else found
        if not self._inlined.num_rows:
            return self.schema(places).empty_table()
        return self._joined(self._inlined, pending, places, "r.row_id = p.row_id AND r.ended = p.began")

    def with_row_ids(self, files: Sequence[DataFile]) -> list[DataFile]:
        """Returns the files that hold row ids, instead of counting them from the first."""
        own = [file for file in files if file.mapping is None]
        paths = {file.data_file_id: file_with(self._folder, file).path for file in own}
        plain = [paths[file.data_file_id] for file in own if file.encryption_key is None]
        ids = file_column_ids(plain, _storage)
        return [
            file for file in own if file.encryption_key is not None or ROW_ID_FIELD in ids[paths[file.data_file_id]]
        ]

    def _matching(
        self, ended: EndedFiles, files: Sequence[DataFile], wanted: pa.Table, places: Sequence[int]
    ) -> pa.Table:
        """Returns the versions in files that the given ones replaced."""
        removed, deleted = ended.endings(files)
        if not wanted.num_rows or not (removed or deleted):
            return self.schema(places).empty_table()
        empty = self._plan((), ())
        plan = ChangePlan(empty, self._plan(removed, ()), tuple(deleted))
        self._lake.check_data_path(file.path for file in plan.files)
        found = changes.removed(plan, None).query(
            f"SELECT r.{ROW_ID} AS row_id, r.{FILE_ID} AS file_id, r.{POSITION} AS position FROM rows AS r "
            f"JOIN pending AS p ON r.{ROW_ID} = p.row_id AND r.{SNAPSHOT_ID} {'>=' if ended.may_seem_late else '='} p.began",
            pending=InMemory(wanted),
        )
        cells = self.cells(files, found.arrow(), places)
        # a version that began with its end was in no snapshot
        successors = pc.index_in(cells.column("row_id"), value_set=wanted.column("row_id").combine_chunks())
        cells = cells.filter(pc.less(cells.column("began"), wanted.column("began").take(successors)))
        return self._newest(cells, places)

    def _newest(self, cells: pa.Table, places: Sequence[int]) -> pa.Table:
        """Returns the newest version of each row."""
        if len(pc.unique(cells.column("row_id"))) == cells.num_rows:
            return cells
        return engine.evaluate(
            "FROM cells QUALIFY row_number() OVER (PARTITION BY row_id ORDER BY began DESC) = 1", {"cells": cells}
        ).cast(self.schema(places))

    def cells(self, files: Sequence[DataFile], found: pa.Table, places: Sequence[int]) -> pa.Table:
        """Returns the versions at some positions of files."""
        positions = _by_file(found) if found.num_rows else {}
        scans = [file_with(self._folder, file, snapshot_id=file.begin_snapshot) for file in files]
        scans = [scan for scan in scans if scan.data_file.data_file_id in positions]
        if not scans:
            return self.schema(places).empty_table()
        self._lake.check_data_path(scan.path for scan in scans)
        check_encrypted(self.columns, scans, self._history.reused)
        plan = self._plan(with_columns_by_place(self.columns, scans, _storage), places)
        listed = "".join(f", r.c{place}" for place in places)
        # copies of merged files begin later than the rows in them
        rows = at_positions(plan, positions).query(
            f"SELECT r.{ROW_ID} AS row_id, greatest(f.began, r.{SNAPSHOT_ID}) AS began{listed} "
            f"FROM rows AS r JOIN begins AS f ON r.{FILE_ID} = f.file_id",
            begins=InMemory(_begins([scan.data_file for scan in scans])),
        )
        return rows.arrow().cast(self.schema(places))

    def _plan(self, files: Sequence[ScanFile], places: Sequence[int]) -> ScanPlan:
        return ScanPlan(
            table=replace(self._table, columns=self._narrow(places)),
            files=tuple(files),
            inlined=None,
            files_total=len(files),
            bytes_total=sum(file.data_file.file_size_bytes for file in files),
            data_path=self._folder,
            reused_names=self._history.reused,
            time_zone=self._lake.session.time_zone(),
            retyped=self._history.retyped,
        )

    def _narrow(self, places: Sequence[int]) -> tuple[Column, ...]:
        """Returns some columns, with numbers instead of names: DuckDB folds case, the columns need not."""
        return tuple(replace(self.columns[place], name=f"c{place}") for place in places)

    def schema(self, places: Sequence[int], *, ended: bool = False) -> pa.Schema:
        """Returns the schema of a table of versions, on request with `ended` first."""
        names = [*(["ended"] if ended else []), "row_id", "began"]
        own = [pa.field(name, pa.int64()) for name in names]
        return pa.schema([*own, *(column.data_type.field(column.name) for column in self._narrow(places))])

    def _read_inlined(
        self,
        connection: Connection,
        places: Sequence[int],
        row_ids: _Ids,
    ) -> pa.Table | None:
        """Returns inlined versions of rows, `ended` first; None for none."""
        rows = read_inlined_versions(
            self._lake,
            connection,
            self._table.table_id,
            self._narrow(places),
            row_ids,
            up_to=self.at,
        )
        if rows is None:
            return None
        names = [END_SNAPSHOT, ROW_ID, SNAPSHOT_ID, *(f"c{place}" for place in places)]
        schema = self.schema(places, ended=True)
        return rows.select(names).rename_columns(schema.names).cast(schema)

    def _joined(self, inlined: pa.Table, wanted: pa.Table, places: Sequence[int], condition: str) -> pa.Table:
        listed = "".join(f", r.c{place}" for place in places)
        return engine.evaluate(
            f"SELECT r.row_id, r.began{listed} FROM inlined AS r JOIN pending AS p ON {condition} "
            "WHERE r.ended IS NULL OR r.began < r.ended",
            {"inlined": inlined, "pending": wanted},
        ).cast(self.schema(places))


def _by_snapshot(pending: pa.Table) -> dict[int, _Ids]:
    """The row ids of versions, ascending, by the snapshot that made these."""
    row_ids, began = (pending.column(name).to_numpy() for name in ("row_id", "began"))
    order = np.lexsort((row_ids, began))
    snapshots, starts = np.unique(began[order], return_index=True)
    return dict(zip(snapshots.tolist(), np.split(row_ids[order], starts[1:]), strict=True))


def _counts_one(file: DataFile, wanted: Mapping[int, _Ids]) -> bool:
    """Whether a file that counts its row ids from its first has one of the wanted."""
    if file.row_id_start is None:
        return False
    ends = (file.row_id_start, file.row_id_start + file.record_count)
    return any(first < last for first, last in (np.searchsorted(ids, ends) for ids in wanted.values()))


def _is_small(ended: EndedFiles) -> bool:
    return len(ended.files) + len(ended.positions) <= _KEPT_FILES


def _begins(files: Sequence[DataFile]) -> pa.Table:
    """The snapshot at which each file begins, by its id."""
    columns = ([file.data_file_id for file in files], [file.begin_snapshot for file in files])
    return pa.table([pa.array(values, pa.int64()) for values in columns], names=["file_id", "began"])


def _by_file(found: pa.Table) -> dict[int, Positions]:
    file_ids, positions = (found.column(name).to_numpy().astype(np.int64) for name in ("file_id", "position"))
    order = np.lexsort((positions, file_ids))
    ids, starts = np.unique(file_ids[order], return_index=True)
    return {
        int(file_id): ascending(own) for file_id, own in zip(ids, np.split(positions[order], starts[1:]), strict=True)
    }


def _without(pending: pa.Table, found: pa.Table) -> pa.Table:
    if not found.num_rows:
        return pending
    known = found.column("row_id").combine_chunks()
    return pending.filter(pc.invert(pc.is_in(pending.column("row_id"), value_set=known)))
