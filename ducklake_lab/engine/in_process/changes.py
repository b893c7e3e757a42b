"""A ChangePlan read in process: what was inserted, what was deleted, and both paired into updates."""

from __future__ import annotations

import pyarrow as pa

from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.engine.in_process.reader import read, read_deleted
from ducklake_lab.files.reader import schema_of
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID
from ducklake_lab.scan.plan import ChangePlan


def insertions(plan: ChangePlan, virtual: bool = False) -> pa.Table:
    """Every row that was added, new versions of updated rows included; with the virtual columns if wanted."""
    return read(plan.inserted, virtual=virtual)


def deletions(plan: ChangePlan, virtual: bool = False) -> pa.Table:
    """Likewise every row that was removed, old versions of updated rows included."""
    rows = pa.concat_tables([read(plan.removed, virtual=True), read_deleted(plan.inserted, plan.deleted)])
    return rows if virtual else rows.select(range(len(plan.inserted.columns)))


def feed(plan: ChangePlan) -> pa.Table:
    """Both, with `change_type`: a row removed and added by one snapshot is an update's preimage and postimage."""
    shape = schema_of(plan.inserted.columns, virtual=False)
    keys_of_rows = [("snapshot_id", pa.int64()), ("rowid", pa.int64()), ("change_type", pa.string())]
    schema = pa.schema([*keys_of_rows, *shape])
    sides = {"added": insertions(plan, virtual=True), "removed": deletions(plan, virtual=True)}
    keys = {
        side: rows.select([SNAPSHOT_ID, ROW_ID]).rename_columns(["snapshot_id", "row_id"])
        for side, rows in sides.items()
    }
    found = []
    for side, other, alone, paired in (
        ("added", "removed", "insert", "update_postimage"),
        ("removed", "added", "delete", "update_preimage"),
    ):
        numbered = keys[side].append_column("n", pa.array(range(keys[side].num_rows), pa.int64()))
        kinds = evaluate(
            f"SELECT CASE WHEN EXISTS (FROM other AS o WHERE o.snapshot_id = k.snapshot_id AND o.row_id = k.row_id) "
            f"THEN '{paired}' ELSE '{alone}' END AS kind FROM keys AS k ORDER BY n",
            {"keys": numbered, "other": keys[other]},
        )
        rows = sides[side]
        found.append(
            pa.table(
                [rows.column(SNAPSHOT_ID), rows.column(ROW_ID), kinds.column(0), *rows.columns[: len(shape)]],
                schema=schema,
            )
        )
    return pa.concat_tables(found)
