"""Changes of rows: the change feed of a table, planned or read, and the rows in only one of two states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Placing
from ducklake_lab.engine.rows import Columns, Here, InMemory, Query, Rows, unique_name
from ducklake_lab.files.duckdb_query import is_direct, query_of
from ducklake_lab.model.entries import SNAPSHOT_ID_FIELD, Column
from ducklake_lab.model.staged import FILE_NAME, ROW_ID, SNAPSHOT_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.footers import file_column_ids
from ducklake_lab.scan.plan import ChangePlan, DeletedRows, InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.positions import distinct_files, newly_deleted_positions
from ducklake_lab.storage import Storage

if TYPE_CHECKING:
    from ducklake_lab.spark.feed import Paired
    from ducklake_lab.spark.library import DataFrame, SparkSession

_MICROS = DataType("timestamp")
#: First columns of `table_changes`.
_FEED_COLUMNS = (("snapshot_id", DataType("int64")), ("rowid", DataType("int64")), ("change_type", DataType("varchar")))


def added(plan: ChangePlan, spark: SparkSession | None, *, virtual: bool = True) -> Rows:
    """Returns all added rows, including new versions of updated rows.

    Args:
        spark: reads them lazily; without it, they are read now, in process.
        virtual: include the virtual columns.
    """
    if spark is None:
        return _here(plan.inserted, (), virtual=virtual)
    from ducklake_lab.spark import reader

    return _on_spark(reader.read(spark, plan.inserted, virtual=virtual), plan.inserted, virtual=virtual)


def removed(plan: ChangePlan, spark: SparkSession | None) -> Rows:
    """Returns all removed rows, with old versions of updated rows and the virtual columns; `spark` as in `added`."""
    gone, deleted = plan.removed, plan.deleted
    if spark is None:
        return _here(gone, deleted, virtual=True)
    from ducklake_lab.spark import reader

    frame = reader.read(spark, gone, virtual=True)
    if deleted:
        frame = frame.unionByName(reader.read_deleted(spark, gone, deleted))
    return _on_spark(frame, gone, virtual=True)


def _on_spark(frame: DataFrame, plan: ScanPlan, *, virtual: bool) -> OnSpark:
    """Returns rows of a table in their types, as precisely as Spark has them."""
    columns = _columns(plan, virtual=virtual)
    return OnSpark(frame, tuple((name, _carried(kind)) for name, kind in columns))


def _carried(kind: DataType) -> DataType:
    """Returns the type of a column of Spark."""
    return _MICROS if kind.name == "timestamp_ns" else kind


def _here(plan: ScanPlan, deleted: Sequence[DeletedRows], *, virtual: bool) -> Here:
    if is_direct((*plan.files, *(rows.after for rows in deleted))):
        query = query_of(plan, unique_name(), virtual=virtual, deleted=deleted)
        return Query(query, _columns(plan, virtual=virtual))
    parts = [local_reader.read_deleted(plan, deleted)] if deleted else []
    return InMemory(pa.concat_tables([local_reader.read(plan, virtual=virtual), *parts]))


def _columns(plan: ScanPlan, *, virtual: bool) -> Columns:
    own = [(column.name, column.data_type) for column in plan.columns]
    return [*own, *VIRTUAL_COLUMNS.items()] if virtual else own


def feed(
    plan: ChangePlan, spark: SparkSession | None, *, ordered: bool = False, placing: Placing | None = None
) -> Rows:
    """Returns added and removed rows with `change_type`; both in one snapshot are an update's pre- and postimage.

    Args:
        ordered: return them in the order of the changes, a row's old version before its new one.
        placing: chooses where row ids are compared for Spark; without it, Spark joins the rows.
    """
    pairs = _paired(plan, placing) if spark is not None and placing is not None else None
    if spark is not None and pairs is not None:
        from ducklake_lab.spark.feed import read_feed

        own = [(name, _carried(kind)) for name, kind in _columns(plan.inserted, virtual=False)]
        return OnSpark(read_feed(spark, plan, *pairs), (*_FEED_COLUMNS, *own))
    names = [column.name for column in plan.inserted.columns]
    paired = numbered(removed(plan, spark), len(names)).query(
        "WITH updated AS (SELECT DISTINCT r.snapshot_id, r.rid FROM rows AS r JOIN added AS a "
        "ON r.snapshot_id = a.snapshot_id AND r.rid = a.rid) "
        + " UNION ALL ".join(
            f"SELECT s.snapshot_id, s.rid, CASE WHEN u.rid IS NULL THEN '{alone}' ELSE '{paired}' END AS change_type"
            f"{''.join(f', s.c{i}' for i in range(len(names)))} FROM {side} AS s "
            "LEFT JOIN updated AS u ON s.snapshot_id = u.snapshot_id AND s.rid = u.rid"
            for side, alone, paired in (
                ("rows", "delete", "update_preimage"),
                ("added", "insert", "update_postimage"),
            )
        )
        + (" ORDER BY snapshot_id, rid, change_type DESC" if ordered else ""),
        added=numbered(added(plan, spark), len(names)),
    )
    return paired.first(len(names) + 3, ["snapshot_id", "rowid", "change_type", *names])


def _paired(plan: ChangePlan, placing: Placing) -> tuple[Paired, Paired] | None:
    """Returns the rows whose other version is on the other side, among those added and those removed.

    Row ids are compared in process, of snapshots that both added and removed rows; no other column is read. None if
    they are too many.
    """
    from ducklake_lab.spark.feed import Paired

    adding, removing = _snapshots_of(plan.inserted), _snapshots_of(plan.removed)
    gone = {rows.snapshot_id for rows in plan.deleted}
    if removing is not None:
        removing |= gone
    inserted, removed = _at(plan.inserted, removing), _at(plan.removed, adding)
    deleted = [rows for rows in plan.deleted if adding is None or rows.snapshot_id in adding]
    if _is_empty(inserted) or (_is_empty(removed) and not deleted):
        return Paired({}), Paired({})
    files = [*inserted.files, *removed.files, *(rows.after for rows in deleted)]
    if not placing.compares_row_ids_here(facts_of(files), sum(file.data_file.record_count for file in files)):
        return None
    names = ("file_id", "place", "row_id", "snapshot_id")
    sides = [_here(inserted, (), virtual=True).first(4, names), _here(removed, deleted, virtual=True).first(4, names)]
    # each is read twice, and these are few bytes
    sides = [InMemory(side.arrow()) for side in sides]
    sql = "FROM rows AS a SEMI JOIN other AS b ON a.snapshot_id = b.snapshot_id AND a.row_id = b.row_id"
    added, taken = (_positions(side.query(sql, other=other).arrow()) for side, other in (sides, reversed(sides)))
    return added, taken


def _snapshots_of(plan: ScanPlan) -> set[int] | None:
    """Returns the snapshots that changed rows of a side; None if the files themselves say it."""
    inlined = plan.inlined.rows.column(SNAPSHOT_ID).to_pylist() if plan.inlined is not None else []
    if _naming_snapshots(plan.files):
        return None
    return {*inlined, *(file.snapshot_id for file in plan.files if file.snapshot_id is not None)}


def _naming_snapshots(files: Sequence[ScanFile]) -> set[str]:
    """Returns the paths of files whose rows name their snapshots, or may do so."""
    own = [file for file in files if file.shows_own_snapshots or file.snapshot_id is None]
    unread = {file.path for file in own if file.data_file.encryption_key is not None}
    ids = file_column_ids((file.path for file in own if file.path not in unread), Storage())
    return unread | {path for path, field_ids in ids.items() if SNAPSHOT_ID_FIELD in field_ids}


def _at(plan: ScanPlan, snapshots: set[int] | None) -> ScanPlan:
    """Returns a read of the row ids of a side that some snapshots changed."""
    plan = _of_columns(plan, ())
    if snapshots is None:
        return plan
    naming = _naming_snapshots(plan.files)
    files = tuple(file for file in plan.files if file.path in naming or file.snapshot_id in snapshots)
    return replace(plan, files=files)


def _is_empty(plan: ScanPlan) -> bool:
    return not plan.files and plan.inlined is None


def _positions(rows: pa.Table) -> Paired:
    from ducklake_lab.spark.feed import Paired

    in_file = pc.is_valid(rows.column("file_id"))
    stored, others = rows.filter(in_file), rows.filter(pc.invert(in_file))
    file_ids, places = (stored.column(name).to_numpy() for name in ("file_id", "place"))
    order = np.lexsort((places, file_ids))
    ids, starts = np.unique(file_ids[order], return_index=True)
    positions = dict(zip(ids.tolist(), np.split(places[order], starts[1:]), strict=True)) if len(ids) else {}
    keys = zip(others.column("snapshot_id").to_pylist(), others.column("row_id").to_pylist(), strict=True)
    return Paired(positions, frozenset(keys))


def numbered(rows: Rows, count: int) -> Rows:
    """Returns rows under the names that queries use: c0, c1, …, then file_id, place, rid and snapshot_id.

    DuckDB ignores case, and names of columns may differ by it alone.

    Args:
        rows: have the virtual columns after the table's own.
        count: of the table's columns.
    """
    names = [*(f"c{i}" for i in range(count)), "file_id", "place", "rid", "snapshot_id"]
    return rows.first(len(names), names)


def snapshots_with(plan: ChangePlan, columns: Sequence[Column], condition: str) -> set[int]:
    """Returns the snapshots that inserted, removed or deleted rows for which a condition is true; reads them in process.

    Args:
        columns: the columns that the condition needs.
        condition: DuckDB's SQL, which names them c0, c1, …
    """
    plan = replace(plan, inserted=_of_columns(plan.inserted, columns), removed=_of_columns(plan.removed, columns))
    snapshot_ids: set[int] = set()
    for scan in (plan.inserted, plan.removed):
        rows = numbered(_here(scan, (), virtual=True), len(columns))
        snapshot_ids |= _snapshots(rows.query(f"SELECT DISTINCT snapshot_id FROM rows WHERE {condition}"))
    if plan.deleted:
        files = {rows.after.path: _whole(rows.after) for rows in plan.deleted}
        rows = _here(replace(plan.inserted, files=tuple(files.values()), inlined=None), (), virtual=True)
        snapshot_ids |= _snapshots(
            numbered(rows, len(columns)).query(
                "SELECT DISTINCT d.snapshot_id FROM rows AS r JOIN deletions AS d "
                f"ON r.file_id = d.file_id AND r.place = d.place WHERE {condition}",
                deletions=InMemory(_deletions(plan.deleted)),
            )
        )
    return snapshot_ids


def _of_columns(scan: ScanPlan, columns: Sequence[Column]) -> ScanPlan:
    """Returns a plan that reads some of the columns."""
    by_id = {column.column_id: column for column in scan.columns}
    chosen = tuple(by_id[column.column_id] for column in columns)
    inlined = scan.inlined
    if inlined is not None:
        inlined = InlinedRows(inlined.rows.select([ROW_ID, SNAPSHOT_ID, *(c.name for c in chosen), FILE_NAME]))
    return replace(scan, table=replace(scan.table, columns=chosen), inlined=inlined)


def _whole(file: ScanFile) -> ScanFile:
    return replace(file, delete_file=None, delete_path=None, inlined_deletes=(), deleted_up_to=None)


def _deletions(deleted: Sequence[DeletedRows]) -> pa.Table:
    """Returns the file, the position and the snapshot of each deletion."""
    parts = []
    for group in distinct_files(deleted):
        positions = newly_deleted_positions(group, Storage())
        for rows in group:
            places = pa.array(positions[rows.after.path], pa.int64())
            file_id, snapshot_id = rows.after.data_file.data_file_id, rows.snapshot_id
            alike = [pa.repeat(pa.scalar(number, pa.int64()), len(places)) for number in (file_id, snapshot_id)]
            parts.append(pa.table({"file_id": alike[0], "place": places, "snapshot_id": alike[1]}))
    return pa.concat_tables(parts)


def _snapshots(rows: Rows) -> set[int]:
    return set(rows.arrow().column(0).to_pylist())


@dataclass(frozen=True)
class Feed(Rows):
    """The rows that a range of snapshots changed, not read yet.

    table_changes gives `snapshot_id`, `rowid`, `change_type` (insert, delete, update_preimage, update_postimage), then
    the table's columns as of the last snapshot. table_insertions and table_deletions give those columns, then the
    virtual ones on request.

    Attributes:
        placing: as in `feed`.
    """

    name: str
    plan: ChangePlan
    virtual: bool = False
    placing: Placing | None = None

    @property
    def files(self) -> Sequence[ScanFile]:
        return self.plan.files

    @property
    def files_total(self) -> int:
        return len(self.plan.files)

    @property
    def columns(self) -> Columns:
        own = _columns(self.plan.inserted, virtual=self.virtual)
        return own if self.name != "table_changes" else [*_FEED_COLUMNS, *own]

    def here(self) -> Here:
        return self._rows(None).here()

    def arrow(self) -> pa.Table:
        """Returns the rows, read in process, in the order of their changes."""
        return self._rows(None, ordered=True).arrow()

    def frame(self, spark: SparkSession) -> DataFrame:
        return self._rows(spark).frame(spark)

    def _rows(self, spark: SparkSession | None, *, ordered: bool = False) -> Rows:
        if self.name == "table_changes":
            return feed(self.plan, spark, ordered=ordered, placing=self.placing)
        if self.name == "table_insertions":
            return added(self.plan, spark, virtual=self.virtual)
        rows = removed(self.plan, spark)
        return rows if self.virtual else rows.first(len(self.plan.inserted.columns))
