"""Metadata tables beside each table: `lake.main.t.snapshots`, `.files`, `.changes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.scan.history import lake_history, table_files
from ducklake_lab.session.functions import FeedCall
from ducklake_lab.session.listings import History
from ducklake_lab.session.rows.feed import plan_call
from ducklake_lab.session.spark_tables.parts import Parts, Request

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame


def frame(parts: Parts, token: Request) -> DataFrame:
    """Returns the rows of a metadata table at the snapshot of its token."""
    with parts.engine.running() as spark:
        return TABLES[token["metadata"]](parts, token).frame(spark)


def _snapshots(parts: Parts, token: Request) -> Rows:
    state = parts.state(token["snapshot"])
    table = state.table(token["schema"], token["name"])
    with parts.lake.connect() as connection:
        entries = lake_history(parts.lake, connection, table_id=table.table_id)
    visible = [entry for entry in entries if entry.info.snapshot_id <= state.snapshot.snapshot_id]
    return InMemory(History(table.name, visible).arrow())


def _files(parts: Parts, token: Request) -> Rows:
    state = parts.state(token["snapshot"])
    table = state.table(token["schema"], token["name"])
    with parts.lake.connect() as connection:
        entries, _ = table_files(parts.lake, connection, state, table)
    files = [entry.data_file for entry in entries]
    rows = pa.table(
        {
            "file_path": pa.array([entry.path for entry in entries], pa.string()),
            "record_count": pa.array([file.record_count for file in files], pa.int64()),
            "deleted_count": pa.array([entry.deleted for entry in entries], pa.int64()),
            "file_size_in_bytes": pa.array([file.file_size_bytes for file in files], pa.int64()),
            "begin_snapshot": pa.array([file.begin_snapshot for file in files], pa.int64()),
            "row_id_start": pa.array([file.row_id_start for file in files], pa.int64()),
        }
    )
    return InMemory(rows)


def _changes(parts: Parts, token: Request) -> Rows:
    call = FeedCall("table_changes", parts.lake, token["schema"], token["name"], 0, token["snapshot"])
    return plan_call(parts.lakes, call, parts.engine.placing)


#: The metadata tables by name.
TABLES: dict[str, Callable[[Parts, Request], Rows]] = {
    "snapshots": _snapshots,
    "files": _files,
    "changes": _changes,
}
