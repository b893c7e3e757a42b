"""The history of a lake and the files of a table, as listings show them; a few set-based queries each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.files import among, read_data_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshot_tags import read_tags
from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.catalog.tables import visible
from ducklake_lab.collecting import without_collecting
from ducklake_lab.model.changes import DELETES, INSERTS, MAINTENANCE, OF_ROWS, Change, parse_changes, rewritten_tables
from ducklake_lab.model.commit_notes import Restored, read
from ducklake_lab.model.entries import SnapshotInfo, Table
from ducklake_lab.model.history import ChangeKind, FileEntry, HistoryEntry
from ducklake_lab.model.quoting import quoted_if_needed
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.transforms import parse_transform
from ducklake_lab.scan.alterations import alterations, view_alterations
from ducklake_lab.scan.details import FileDetails
from ducklake_lab.scan.planner import scan_files
from ducklake_lab.scan.snapshot_volumes import Movement, movements
from ducklake_lab.scan.visible_counts import count_rows

_READABLE = {
    "dropped_schema": "dropped schema {}",
    "dropped_table": "dropped table {}",
    "dropped_view": "dropped view {}",
    "created_schema": "created schema {}",
    "created_table": "created table {}",
    "created_view": "created view {}",
    "created_scalar_macro": "created macro {}",
    "created_table_macro": "created macro {}",
    "dropped_scalar_macro": "dropped macro {}",
    "dropped_table_macro": "dropped macro {}",
    "inserted_into_table": "inserted into {}",
    "inlined_insert": "inserted into {}",
    "deleted_from_table": "deleted from {}",
    "inlined_delete": "deleted from {}",
    "altered_table": "altered {}",
    "altered_view": "altered view {}",
    "inline_flush": "flushed {}",
    "flushed_inlined": "flushed {}",
    "compacted_table": "compacted {}",
    "merge_adjacent": "merged files of {}",
    "rewrite_delete": "rewrote files of {}",
}
#: Snapshots that are searched first for the last change of a table.
_RECENT = 1000
#: Reverted snapshots that a snapshot lists at most, and characters of a merged branch's name.
_SHOWN = 5
_LONGEST_NAME = 40


def kind_of(changes: Sequence[Change], restored: Collection[int] = ()) -> ChangeKind:
    """Return the main kind of a snapshot's changes: rows before schema, as CREATE TABLE AS reads as a load.

    Args:
        restored: ids of the tables that it restored.
    """
    of_rows = [change.value for change in changes if change.kind in OF_ROWS]
    if any(change.value in restored for change in changes) and all(value in restored for value in of_rows):
        return "restore"
    kinds = {change.kind for change in changes}
    inserts, deletes = bool(kinds & INSERTS), bool(kinds & DELETES)
    if inserts and deletes:
        return "update"
    if inserts:
        return "insert"
    if deletes:
        return "delete"
    if kinds & MAINTENANCE:
        return "maintenance"
    return "schema" if kinds else "none"


@without_collecting()
def lake_history(
    lake: Lake,
    connection: sa.Connection,
    *,
    table_id: int | None = None,
    last: int | None = None,
    between: tuple[int, int] | None = None,
) -> list[HistoryEntry]:
    """The snapshots of a lake, oldest first.

    Args:
        table_id: only those that touched a table.
        last: only so many, the newest.
        between: only those with an id in this range, both ends included.
    """
    names, names_of_tables, begun = _names(connection)
    ids = {name: number for number, name in names_of_tables.items()}
    newest = lake.snapshot(connection).snapshot_id if lake.at is not None else None
    snapshots: list[tuple[SnapshotInfo, list[Change], list[int]]] = []
    # the last ones are chosen after those of other tables are left out
    chosen = last if table_id is None and newest is None else None
    for info in read_history(connection, chosen, between):
        if newest is not None and info.snapshot_id > newest:
            continue
        info = replace(info, snapshot_time=lake.local(info.snapshot_time))
        changes = parse_changes(info.changes_made)
        touched = [i for change in changes if (i := _table_of(change, names_of_tables, ids)) is not None]
        if table_id is None or table_id in touched:
            snapshots.append((info, changes, touched))
    snapshots = snapshots[-last:] if last else snapshots
    if not snapshots:
        return []
    rewritten = {info.snapshot_id: tables for info, changes, _ in snapshots if (tables := rewritten_tables(changes))}
    reach = snapshots[0][0].snapshot_id, snapshots[-1][0].snapshot_id
    moved = movements(lake, connection, reach, rewritten, table_id)
    cut = _after_expired(connection, {info.snapshot_id for info, _, _ in snapshots})
    altered: dict[bool, set[tuple[int, int]]] = {False: set(), True: set()}
    for info, changes, _ in snapshots:
        for change in changes if info.snapshot_id not in cut else ():
            if (key := _altered(change, info.snapshot_id, begun)) is not None:
                altered[change.kind.endswith("_view")].add(key)
    described = alterations(connection, altered[False], names) | view_alterations(connection, altered[True], names)
    tags: dict[int, tuple[str, ...]] = {}
    for name, number in read_tags(connection).items():
        tags[number] = (*tags.get(number, ()), name)
    return [
        HistoryEntry(
            info=info,
            kind=kind_of(changes, _restored(info)),
            changes=tuple(
                dict.fromkeys(
                    [
                        *_origins(info),
                        *(
                            text
                            for change in changes
                            for text in _texts(
                                change, described, _altered(change, info.snapshot_id, begun), names, _restored(info)
                            )
                        ),
                    ]
                )
            ),
            tables=tuple(dict.fromkeys(names[i] for i in touched)),
            tags=tags.get(info.snapshot_id, ()),
            at_most=any(_restored(info)[i].at_most for i in touched if i in _restored(info)),
            **asdict(moved.get(info.snapshot_id, Movement())) | (_unknown(changes) if info.snapshot_id in cut else {}),
        )
        for info, changes, touched in snapshots
    ]


def _after_expired(connection: sa.Connection, ids: set[int]) -> set[int]:
    """Return the snapshots that follow an expired one."""
    before = {number - 1 for number in ids if number > 0}
    column = t.snapshot.c.snapshot_id
    present = (
        {row[0] for row in connection.execute(sa.select(column).where(among(column, before)))} if before else set()
    )
    return {number + 1 for number in before - present}


def _unknown(changes: Iterable[Change]) -> dict[str, None]:
    """Return the unknown counts of a snapshot that follows an expired one: those of rows and files that it removed."""
    kinds = {change.kind for change in changes}
    if kinds & (DELETES | {"dropped_table"}):
        return {"rows_removed": None, "bytes_removed": None}
    return {"bytes_removed": None} if kinds & MAINTENANCE else {}


_Begun = Mapping[tuple[tuple[str, ...], int], int]


def _altered(change: Change, snapshot: int, begun: _Begun) -> tuple[int, int] | None:
    """Yield id and snapshot of possible alterations; a renamed entry is listed as created."""
    if change.kind in ("altered_table", "altered_view") and isinstance(change.value, int):
        return change.value, snapshot
    if change.kind in ("created_table", "created_view") and not isinstance(change.value, int):
        number = begun.get((change.value, snapshot))
        return (number, snapshot) if number is not None else None
    return None


def _restored(info: SnapshotInfo) -> dict[int, Restored]:
    """Return the tables that a snapshot's note lists as restored, each with the snapshot it was restored to."""
    text = info.commit_extra_info
    note = read(text) if text is not None and '"restored"' in text else None
    return dict(note.restored) if note is not None else {}


def _origins(info: SnapshotInfo) -> Sequence[str]:
    """Return texts for the reverted snapshots and the merged branch that a snapshot's note lists."""
    text = info.commit_extra_info
    note = read(text) if text is not None and ('"reverted"' in text or '"merged"' in text) else None
    if note is None:
        return ()
    merged = [f"merged branch {note.merged.branch[:_LONGEST_NAME]}"] if note.merged is not None else []
    return [*(f"reverted snapshot {number}" for number in note.reverted[:_SHOWN]), *merged]


def _texts(
    change: Change,
    described: Mapping[tuple[int, int], Sequence[str]],
    key: tuple[int, int] | None,
    names: Mapping[int, str],
    restored: Mapping[int, Restored],
) -> Sequence[str]:
    if isinstance(change.value, int) and change.value in restored:
        text = (
            f"restored {names.get(change.value, f'#{change.value}')} to snapshot {restored[change.value].snapshot_id}"
        )
        if change.kind in OF_ROWS:
            return (text,)
        return (text, *_texts(change, described, key, names, {}))
    texts = described.get(key) if key is not None else None
    if texts is None or (not texts and change.kind.startswith("created_")):
        return (_readable(change, names),)
    return texts


def _names(connection: sa.Connection) -> tuple[dict[int, str], dict[int, tuple[str, ...]], _Begun]:
    """Return the newest name of every entry, by its id as a text; that of a table with its schemas.

    Then the id of each entry by every name that it got later, with the snapshot that gave it.
    """
    s = t.schema
    query = sa.select(s.c.schema_id, s.c.schema_name, versions.column(connection, s.c.parent_schema_id))
    schemas = {schema_id: (name, parent) for schema_id, name, parent in connection.execute(query)}
    paths = {schema_id: _path(schema_id, schemas) for schema_id in schemas}
    tables: dict[int, tuple[str, ...]] = {}
    begun: dict[tuple[tuple[str, ...], int], int] = {}
    for entries, key, column in (
        (t.view, t.view.c.view_id, t.view.c.view_name),
        (t.macro, t.macro.c.macro_id, t.macro.c.macro_name),
        (t.table, t.table.c.table_id, t.table.c.table_name),
    ):
        begin = entries.c.begin_snapshot
        rows = connection.execute(sa.select(key, entries.c.schema_id, column, begin).order_by(begin)).all()
        tables = {entry_id: (*paths.get(schema, ()), name) for entry_id, schema, name, _ in rows}
        first = {entry_id: snapshot for entry_id, _, _, snapshot in reversed(rows)}
        begun |= {
            ((*paths.get(schema, ()), name), snapshot): entry_id
            for entry_id, schema, name, snapshot in rows
            if snapshot != first[entry_id]
        }
        paths |= tables
    return {entry_id: _written(parts) for entry_id, parts in paths.items()}, tables, begun


def _written(parts: Iterable[str]) -> str:
    """A name as SQL reads it."""
    return ".".join(map(quoted_if_needed, parts))


def _path(schema_id: int, rows: Mapping[int, tuple[str, int | None]]) -> tuple[str, ...]:
    """The names from the outermost schema to one."""
    name, parent = rows[schema_id]
    parts, seen = [name], {schema_id}
    while parent is not None and parent in rows and parent not in seen:
        seen.add(parent)
        name, parent = rows[parent]
        parts.insert(0, name)
    return tuple(parts)


def touched_tables(connection: sa.Connection, between: tuple[int, int], *, maintenance: bool = True) -> dict[int, int]:
    """The tables that snapshots touched, by id, each with the newest snapshot that did.

    Args:
        between: the ids of the snapshots, both ends included.
        maintenance: whether snapshots count that only rewrote files.
    """
    _, names_of_tables, _ = _names(connection)
    ids = {name: number for number, name in names_of_tables.items()}
    newest: dict[int, int] = {}
    for info in read_history(connection, between=between):
        for change in parse_changes(info.changes_made):
            if (maintenance or change.kind not in MAINTENANCE) and (
                i := _table_of(change, names_of_tables, ids)
            ) is not None:
                newest[i] = info.snapshot_id
    return newest


def read_commit_notes(connection: sa.Connection, prefix: str, most: int) -> Sequence[str | None]:
    """Return the notes of the newest commits whose message begins so."""
    c = t.snapshot_changes.c
    query = sa.select(c.commit_extra_info).where(c.commit_message.startswith(prefix, autoescape=True))
    return connection.scalars(query.order_by(c.snapshot_id.desc()).limit(most)).all()


def snapshot_before(connection: sa.Connection, snapshot_id: int) -> int | None:
    """The newest snapshot that is older than one, and not expired; None where there is none."""
    column = t.snapshot.c.snapshot_id
    before: int | None = connection.scalar(sa.select(sa.func.max(column)).where(column < snapshot_id))
    return before


def last_change(lake: Lake, connection: sa.Connection, state: CatalogState, table: Table) -> tuple[int | None, int]:
    """Return the newest snapshot that changed a table, at or before the state's, and the one before it.

    Snapshots that only rewrote its files do not count. The first is None where the table was not there yet.
    """
    newest = state.snapshot.snapshot_id
    touched: dict[int, int] = {}
    for oldest in (max(newest - _RECENT, 0), 0):
        touched = touched_tables(connection, (oldest, newest), maintenance=False)
        if table.table_id in touched:
            break
    end = touched.get(table.table_id, newest)
    start = snapshot_before(connection, end)
    if start is not None and table.table_id not in lake.state(connection, lake.snapshot(connection, start)).tables:
        start = None
    return start, end


def _table_of(change: Change, tables: Mapping[int, tuple[str, ...]], ids: Mapping[tuple[str, ...], int]) -> int | None:
    if isinstance(change.value, int):
        return change.value if change.value in tables else None
    return ids.get(change.value) if change.kind == "created_table" else None


def _readable(change: Change, names: Mapping[int, str]) -> str:
    if isinstance(change.value, int):
        name = names.get(change.value, f"#{change.value}")
    else:
        name = _written(change.value)
    return _READABLE.get(change.kind, change.kind.replace("_", " ") + " {}").format(name)


@without_collecting()
def table_files(
    lake: Lake, connection: sa.Connection, state: CatalogState, table: Table
) -> tuple[list[FileEntry], FileDetails]:
    """List the data files of a table at the state's snapshot; details are read on demand."""
    at = state.snapshot.snapshot_id
    folder = lake.folder(state, table)
    files = read_data_files(connection, table.table_id, visible(t.data_file, at))
    scans = scan_files(lake, connection, table.table_id, folder, at, files)
    details = FileDetails(lake, table, at)
    keys = _partition_keys(connection, table)
    entries = [
        FileEntry(
            data_file=file.data_file,
            path=file.path,
            rows=counted.rows,
            deleted=counted.deleted,
            delete_path=file.delete_path,
            delete_bytes=file.delete_file.file_size_bytes if file.delete_file is not None else 0,
            partition=tuple(
                zip(keys.get(file.data_file.partition_id, ()), file.data_file.partition_values, strict=False)
            ),
            stats=details.of_file(file.data_file.data_file_id),
        )
        for file, counted in zip(scans, count_rows(scans), strict=True)
    ]
    return entries, details


def _partition_keys(connection: sa.Connection, table: Table) -> dict[int | None, tuple[str, ...]]:
    """Return the keys of every partition spec that the table ever had, as users write them."""
    p = t.partition_column
    query = (
        sa.select(p.c.partition_id, p.c.column_id, p.c.transform)
        .where(p.c.table_id == table.table_id)
        .order_by(p.c.partition_id, p.c.partition_key_index)
    )
    keys: dict[int | None, tuple[str, ...]] = {}
    for partition_id, column_id, transform in connection.execute(query):
        column = table.column_by_id(column_id)
        name = column.name if column is not None else f"#{column_id}"
        key = parse_transform(transform).written(name)
        keys[partition_id] = (*keys.get(partition_id, ()), key)
    return keys
