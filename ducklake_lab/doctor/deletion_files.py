"""Repairs of deletions: each deletion of a data file in one place, with the snapshot that made it.

Deletions never go back: a row that a snapshot deleted from a file is gone from it for all later ones. So the earliest
snapshot that any delete file, or the catalog, names for a position is the one that deleted it.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

import numpy as np

from ducklake_lab.doctor import footers
from ducklake_lab.doctor.check import Row
from ducklake_lab.doctor.context import NEVER, Context
from ducklake_lab.doctor.plan import Change, NoRepairError, Plan, Record, number, only, read, replaced, update
from ducklake_lab.errors import DataFileError, UnsupportedFeatureError
from ducklake_lab.files.deletes import Deletions, write_deletions
from ducklake_lab.files.options import DeleteOptions
from ducklake_lab.model.files import DeleteFile
from ducklake_lab.model.positions import Positions
from ducklake_lab.scan.positions import read_delete_file

#: Stands for the path of a file that a preview does not write.
_UNWRITTEN = "(a new delete file)"
_MARKS = {b"PAR1": "parquet", b"PARE": "parquet", b"PFA1": "puffin"}


def deletions_of(context: Context, delete: DeleteFile, table_id: int) -> tuple[Positions, Positions]:
    """Read the positions of a delete file, and the snapshot from which on each is deleted.

    Raises:
        DataFileError: the file is missing or cannot be read.
    """
    path = context.place(table_id, delete.path, delete.path_is_relative)
    positions, snapshots = read_delete_file(path, delete, context.storage)
    begin = np.full(len(positions), delete.begin_snapshot, np.int64)
    return positions, begin if snapshots is None else snapshots


def delete_of(record: Row) -> DeleteFile:
    """Return a row of `ducklake_delete_file` as readers take it."""
    return DeleteFile(**{one.name: record[one.name] for one in fields(DeleteFile)})  # type: ignore[arg-type]


def _delete_files(context: Context, table_id: int, file_id: int) -> list[DeleteFile]:
    deletes = map(delete_of, read(context, "ducklake_delete_file", table_id=table_id, data_file_id=file_id))
    return sorted(deletes, key=lambda delete: (delete.begin_snapshot, delete.delete_file_id))


def _read(context: Context, delete: DeleteFile, table_id: int) -> tuple[Positions, Positions]:
    try:
        return deletions_of(context, delete, table_id)
    except (DataFileError, UnsupportedFeatureError) as error:
        raise NoRepairError(f"delete file {delete.delete_file_id} cannot be read: {error}") from None


def untangle(context: Context, row: Row) -> Plan:
    """Remove deletions of the catalog that delete files have; where that would show rows, write the files anew."""
    table_id, file_id = number(row["table_id"]), int(str(row["id"]))
    name = context.delete_tables.get(table_id)
    marks = read(context, name, file_id=file_id) if name is not None else []
    deletes = _delete_files(context, table_id, file_id)
    data_file = only(read(context, "ducklake_data_file", data_file_id=file_id), f"data file {file_id}")
    end = _end(data_file["end_snapshot"])
    in_files: dict[int, list[tuple[int, int]]] = {}
    for delete in deletes:
        for position, start in zip(*map(np.ndarray.tolist, _read(context, delete, table_id)), strict=True):
            span = max(start, delete.begin_snapshot), _end(delete.end_snapshot)
            in_files.setdefault(position, []).append(span)
    surplus, tangled = [], False
    for mark in marks:
        spans = in_files.get(int(str(mark["row_id"])), [])
        if _covers(spans, int(str(mark["begin_snapshot"])), end):
            surplus.append(mark)
        elif spans:
            tangled = True
    if tangled or not surplus or name is None:
        return merge_delete_files(context, row)
    kept = [mark for mark in marks if mark not in surplus]
    return Plan(replaced(name, marks, kept), table_id)


def _end(snapshot: object) -> int:
    return NEVER if snapshot is None else int(str(snapshot))


def _covers(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Return whether spans hold at each snapshot from one inclusive to another exclusive."""
    for first, last in sorted(spans):
        if first > start:
            return False
        start = max(start, last)
    return start >= end


def merge_delete_files(context: Context, row: Row) -> Plan:
    """Write one delete file for a data file, with the first snapshot of each deletion, instead of all others."""
    table_id, file_id = number(row["table_id"]), int(str(row["id"]))
    data_file = only(read(context, "ducklake_data_file", data_file_id=file_id), f"data file {file_id}")
    rows = int(str(data_file["record_count"]))
    deletes = _delete_files(context, table_id, file_id)
    for delete in deletes:
        if _end(delete.end_snapshot) < delete.begin_snapshot or delete.begin_snapshot > context.newest:
            raise NoRepairError(f"delete file {delete.delete_file_id} has an interval that is damaged itself")
    first: dict[int, int] = {}
    for delete in deletes:
        positions, starts = _read(context, delete, table_id)
        for position, start in zip(positions.tolist(), np.maximum(starts, 0).tolist(), strict=True):
            if 0 <= position < rows:
                first[position] = min(first.get(position, NEVER), start)
    name = context.delete_tables.get(table_id)
    marks = read(context, name, file_id=file_id) if name is not None else []
    kept: list[Record] = []
    for mark in sorted(marks, key=lambda one: int(str(one["begin_snapshot"]))):
        position, begin = int(str(mark["row_id"])), int(str(mark["begin_snapshot"]))
        if begin < first.get(position, NEVER) and all(one["row_id"] != position for one in kept):
            first.pop(position, None)
            kept.append(mark)
    plan = Plan(replaced(name, marks, kept) if name is not None else [], table_id)
    _put(context, plan, data_file, deletes, first)
    return plan


def _put(context: Context, plan: Plan, data_file: Record, deletes: list[DeleteFile], first: dict[int, int]) -> None:
    """Plan one delete file with some deletions instead of others, which are scheduled for deletion."""
    table_id = int(str(data_file["table_id"]))
    records = [
        only(
            read(context, "ducklake_delete_file", delete_file_id=one.delete_file_id),
            f"delete file {one.delete_file_id}",
        )
        for one in deletes
    ]
    if first:
        positions = np.array(sorted(first), np.int64)
        starts = np.array([first[position] for position in positions.tolist()], np.int64)
        several = len(np.unique(starts)) > 1
        values = _written(context, plan, data_file, positions, starts if several else None)
        values |= {
            "begin_snapshot": int(starts.min()),
            "end_snapshot": data_file["end_snapshot"],
            "partial_max": int(starts.max()) if several else None,
        }
        plan.changes.append(update("ducklake_delete_file", records[0], **values))
    for record in records[1:] if first else records:
        plan.changes.append(Change("ducklake_delete_file", record, None))
    ids = {record["delete_file_id"] for record in records}
    named = {other["path"] for other in read(context, "ducklake_delete_file") if other["delete_file_id"] not in ids}
    for path, record in {record["path"]: record for record in records}.items():
        if path not in named:
            plan.changes.append(_scheduled(context, table_id, record))


def _scheduled(context: Context, table_id: int, record: Record) -> Change:
    path = context.place(table_id, str(record["path"]), record["path_is_relative"])
    inside = path.startswith(context.lake.data_path)
    new: Record = {
        "data_file_id": record["delete_file_id"],
        "path": path[len(context.lake.data_path) :] if inside else path,
        "path_is_relative": inside,
        "schedule_start": datetime.now(UTC),
    }
    return Change("ducklake_files_scheduled_for_deletion", None, new)


def _written(context: Context, plan: Plan, data_file: Record, positions: Positions, starts: Positions | None) -> Record:
    """Write a delete file, and return the columns that describe it; a preview writes none."""
    values: Record = {"delete_count": len(positions), "format": "parquet", "path_is_relative": True}
    if context.is_preview:
        return values | {"path": _UNWRITTEN}
    table_id = int(str(data_file["table_id"]))
    folder = context.folders[table_id]
    path = context.place(table_id, str(data_file["path"]), data_file["path_is_relative"])
    options = DeleteOptions(0, encrypted=context.is_encrypted)
    written = write_deletions(Deletions(positions, starts), path, folder, options, context.storage)
    assert written.path is not None  # written into a file, since none are inlined
    plan.written.append(folder + written.path)
    return values | {
        "path": written.path,
        "file_size_bytes": written.file_size_bytes,
        "footer_size": written.footer_size,
        "encryption_key": written.encryption_key,
        "row_group_count": written.row_group_count,
    }


# Counts


def recount(context: Context, row: Row) -> Plan:
    return recount_id(context, {**row, "id": row["delete_file_id"]})


def recount_id(context: Context, row: Row) -> Plan:
    table_id = number(row["table_id"])
    record = only(read(context, "ducklake_delete_file", delete_file_id=row["id"]), f"delete file {row['id']}")
    delete = delete_of(record)
    positions, _ = _read(context, delete, table_id)
    path = context.place(table_id, delete.path, delete.path_is_relative)
    size = context.storage.size(path)
    if record["delete_count"] != len(positions) and record["file_size_bytes"] != size:
        raise NoRepairError(f"the file has {len(positions)} deletions in {size} bytes; it may be another one")
    values: Record = {"delete_count": len(positions), "file_size_bytes": size}
    if str(record["format"]).casefold() == "parquet":
        values["footer_size"] = footers.read_footer(context, path, record["encryption_key"]).size
    change = update("ducklake_delete_file", record, **values)
    if change.old == change.new:
        raise NoRepairError("the delete file has these deletions; deep checks say which are wrong")
    return Plan([change], table_id)


def name_format(context: Context, row: Row) -> Plan:
    table_id = number(row["table_id"])
    record = only(read(context, "ducklake_delete_file", delete_file_id=row["id"]), f"delete file {row['id']}")
    path = context.place(table_id, str(record["path"]), record["path_is_relative"])
    try:
        with context.storage.open_input(path) as source:
            mark = source.read(4)
    except DataFileError as error:
        raise NoRepairError(str(error)) from None
    if mark not in _MARKS:
        raise NoRepairError(f"{path} is neither Parquet nor Puffin")
    return Plan([update("ducklake_delete_file", record, format=_MARKS[mark])], table_id)


def clean_delete_file(context: Context, row: Row) -> Plan:
    table_id = number(row["table_id"])
    record = only(read(context, "ducklake_delete_file", delete_file_id=row["id"]), f"delete file {row['id']}")
    data_file = only(read(context, "ducklake_data_file", data_file_id=row["data_file_id"]), "its data file")
    path = context.place(table_id, str(data_file["path"]), data_file["path_is_relative"])
    rows = footers.read_footer(context, path, data_file["encryption_key"]).rows
    delete = delete_of(record)
    positions, starts = _read(context, delete, table_id)
    first: dict[int, int] = {}
    for position, start in zip(positions.tolist(), starts.tolist(), strict=True):
        if 0 <= position < rows:
            first[position] = min(first.get(position, NEVER), start)
    plan = Plan(table_id=table_id)
    if not first:
        raise NoRepairError("none of its deletions is in the data file; it may be that of another one")
    kept = np.array(sorted(first), np.int64)
    begins = np.array([first[position] for position in kept.tolist()], np.int64)
    named = delete.partial_max is not None or len(np.unique(begins)) > 1
    values = _written(context, plan, data_file, kept, begins if named else None)
    plan.changes += [update("ducklake_delete_file", record, **values), _scheduled(context, table_id, record)]
    return plan
