"""Reads a ScanPlan in process with DuckDB into Arrow: for previews, profiles and small diffs, never for pipelines.

It reads little: files of object stores are fetched whole, through the common access to files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.files.duckdb_query import marked_positions
from ducklake_lab.files.reader import read_files, schema_of
from ducklake_lab.model.positions import Positions
from ducklake_lab.model.staged import FILE_ID, FILE_INDEX, FILE_NAME, POSITION, ROW_ID, SNAPSHOT_ID
from ducklake_lab.scan.plan import DeletedRows, ScanPlan
from ducklake_lab.scan.positions import (
    check_files,
    distinct_files,
    distinct_paths,
    newly_deleted_positions,
)
from ducklake_lab.storage import Storage

_storage = Storage()
_LOCATION = pa.schema([(FILE_NAME, pa.string()), (FILE_INDEX, pa.uint64())])


def read(
    plan: ScanPlan, *, virtual: bool = False, located: bool = False, only: Mapping[int, Positions] | None = None
) -> pa.Table:
    """Returns the rows of a plan with the table's columns, then on request the virtual columns, then the row locations.

    Args:
        only: the positions to read of each file, by its id; None for those that are not deleted.

    Raises:
        DataFileError: a file of the plan is missing or unreadable.
        UnsupportedFeatureError: a file or type of the plan cannot be read yet.
    """
    if located:
        return _located(plan)
    parts = []
    if plan.files:
        check_files(plan.files)
        parts += [
            read_files(
                plan.columns,
                files,
                marked_positions(files, only),
                virtual,
                keep_deleted=only is not None,
                time_zone=plan.time_zone,
            )
            for files in distinct_paths(plan.files)
        ]
    if plan.inlined is not None:
        parts.append(_inlined(plan, virtual))
    schema = schema_of(plan.columns, virtual)
    return pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()


def _located(plan: ScanPlan) -> pa.Table:
    rows = read(plan, virtual=True)
    in_files = rows.num_rows - (plan.inlined.rows.num_rows if plan.inlined is not None else 0)
    ids = pa.array([file.data_file.data_file_id for file in plan.files], pa.int64())
    indices = pc.index_in(rows.column(FILE_ID).slice(0, in_files).combine_chunks(), ids)
    names = [pa.array([file.path for file in plan.files], pa.string()).take(indices)]
    places = [indices.cast(pa.uint64())]
    if plan.inlined is not None:
        names.append(plan.inlined.rows.column(FILE_NAME).combine_chunks())
        places.append(plan.inlined.places(len(plan.files)))
    columns = [*rows.columns, pa.chunked_array(names, pa.string()), pa.chunked_array(places, pa.uint64())]
    return pa.table(columns, schema=pa.schema([*rows.schema, *_LOCATION]))


def read_deleted(plan: ScanPlan, deleted: Sequence[DeletedRows]) -> pa.Table:
    """Returns the rows that were deleted between two states of the files, with virtual columns."""
    schema = schema_of(plan.columns, virtual=True)
    parts = []
    check_files(rows.after for rows in deleted)
    for group in distinct_files(deleted):
        positions = newly_deleted_positions(group, _storage)
        files = [replace(rows.after, snapshot_id=rows.snapshot_id) for rows in group if len(positions[rows.after.path])]
        if files:
            rows_of_files = read_files(
                plan.columns, files, positions, virtual=True, keep_deleted=True, time_zone=plan.time_zone
            )
            parts.append(rows_of_files)
    return pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()


def _inlined(plan: ScanPlan, virtual: bool) -> pa.Table:
    assert plan.inlined is not None  # requested only for plans with inlined rows
    rows = plan.inlined.rows
    table = rows.select([column.name for column in plan.columns])
    if virtual:
        nulls = pa.nulls(rows.num_rows, pa.int64())
        for name, values in (
            (FILE_ID, nulls),
            (POSITION, nulls),
            (ROW_ID, rows.column(ROW_ID)),
            (SNAPSHOT_ID, rows.column(SNAPSHOT_ID)),
        ):
            table = table.append_column(name, values)
    return table
