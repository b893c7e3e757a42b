"""Changes of rows: the change feed of a table, planned or read, and the rows in only one of two states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.rows import Columns, Here, InMemory, Query, Rows, unique_name
from ducklake_lab.files.duckdb_query import is_direct, query_of
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.plan import ChangePlan, DeletedRows, ScanFile, ScanPlan

if TYPE_CHECKING:
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
    return OnSpark(frame, tuple((name, _MICROS if kind.name == "timestamp_ns" else kind) for name, kind in columns))


def _here(plan: ScanPlan, deleted: Sequence[DeletedRows], *, virtual: bool) -> Here:
    if is_direct((*plan.files, *(rows.after for rows in deleted))):
        query = query_of(plan, unique_name(), virtual=virtual, deleted=deleted)
        return Query(query, _columns(plan, virtual=virtual))
    parts = [local_reader.read_deleted(plan, deleted)] if deleted else []
    return InMemory(pa.concat_tables([local_reader.read(plan, virtual=virtual), *parts]))


def _columns(plan: ScanPlan, *, virtual: bool) -> Columns:
    own = [(column.name, column.data_type) for column in plan.columns]
    return [*own, *VIRTUAL_COLUMNS.items()] if virtual else own


def feed(plan: ChangePlan, spark: SparkSession | None, *, ordered: bool = False) -> Rows:
    """Returns added and removed rows with `change_type`; both in one snapshot are an update's pre- and postimage.

    Args:
        ordered: return them in the order of the changes, a row's old version before its new one.
    """
    names = [column.name for column in plan.inserted.columns]
    # numbers instead of names: DuckDB ignores case, the columns may not
    numbered = [f"c{i}" for i in range(len(names))]
    sides = [
        rows.first(len(names) + 4, [*numbered, "file_id", "place", "row_id", "snapshot_id"])
        for rows in (removed(plan, spark), added(plan, spark))
    ]
    paired = sides[0].query(
        "WITH updated AS (SELECT r.snapshot_id, r.row_id FROM rows AS r JOIN added AS a "
        "ON r.snapshot_id = a.snapshot_id AND r.row_id = a.row_id) "
        + " UNION ALL ".join(
            f"SELECT s.snapshot_id, s.row_id, CASE WHEN u.row_id IS NULL THEN '{alone}' ELSE '{paired}' END AS change_type"
            f"{''.join(f', s.{name}' for name in numbered)} FROM {side} AS s "
            "LEFT JOIN updated AS u ON s.snapshot_id = u.snapshot_id AND s.row_id = u.row_id"
            for side, alone, paired in (
                ("rows", "delete", "update_preimage"),
                ("added", "insert", "update_postimage"),
            )
        )
        + (" ORDER BY snapshot_id, row_id, change_type DESC" if ordered else ""),
        added=sides[1],
    )
    return paired.first(len(names) + 3, ["snapshot_id", "rowid", "change_type", *names])


@dataclass(frozen=True)
class Feed(Rows):
    """The rows that a range of snapshots changed, not read yet.

    table_changes gives `snapshot_id`, `rowid`, `change_type` (insert, delete, update_preimage, update_postimage), then
    the table's columns as of the last snapshot. table_insertions and table_deletions give those columns, then the
    virtual ones on request.
    """

    name: str
    plan: ChangePlan
    virtual: bool = False

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
            return feed(self.plan, spark, ordered=ordered)
        if self.name == "table_insertions":
            return added(self.plan, spark, virtual=self.virtual)
        rows = removed(self.plan, spark)
        return rows if self.virtual else rows.first(len(self.plan.inserted.columns))
