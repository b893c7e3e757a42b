"""Views of all rows of a table at one snapshot."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.session.rows.columns import ViewColumn
from ducklake_lab.session.rows.view import MAX_ROWS, RowsView


def table_view(title: str, name: str, plan: ScanPlan, snapshot_id: int, table_rows: int, time_zone: str) -> RowsView:
    """Returns a view of a table at one snapshot.

    Args:
        name: the table's name in SQL.
        table_rows: the number of its rows.
    """
    source = f"{name} AT (VERSION => {snapshot_id})"
    held, partial = _first_files(plan)
    columns = [ViewColumn(column.name, column.data_type.sql(), column.data_type) for column in plan.columns]
    return RowsView(
        title,
        f"SELECT * FROM {source}",
        source,
        columns,
        lambda: (_with_row_ids(held), partial),
        time_zone,
        whole_rows=table_rows,
    )


def _with_row_ids(plan: ScanPlan) -> pa.Table:
    """Returns the rows of a plan, and their row ids after the columns."""
    rows = local_reader.read(plan, virtual=True)
    return rows.select([*range(len(plan.columns)), rows.schema.get_all_field_indices(ROW_ID)[-1]])


def _first_files(plan: ScanPlan) -> tuple[ScanPlan, bool]:
    """Returns a plan of the first files with MAX_ROWS rows, and whether it leaves files out."""
    rows = 0
    files: list[ScanFile] = []
    for file in plan.files:
        if rows >= MAX_ROWS:
            return replace(plan, files=tuple(files)), True
        files.append(file)
        rows += file.data_file.record_count
    return plan, False
