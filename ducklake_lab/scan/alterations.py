"""Changes of tables and views by snapshots, in words: `added column shipped BOOLEAN to main.orders`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.files import among
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quoted_if_needed, split_dotted
from ducklake_lab.model.transforms import parse_transform
from ducklake_lab.redaction import hide

#: Alterations of one table that a snapshot shows; more of them are counted.
_SHOWN = 5
#: Characters of a default value.
_VALUE = 40


def alterations(
    connection: sa.Connection, altered: Collection[tuple[int, int]], names: Mapping[int, str]
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Describe changes by (table id, snapshot id): none where the catalog lacks them, () for a table's first snapshot.

    Args:
        altered: the snapshot before each must not have expired: its rows of the catalog went with it.
        names: of the tables, by id, with their schemas.
    """
    if not altered:
        return {}
    ids, snapshots = {table for table, _ in altered}, {snapshot for _, snapshot in altered}
    entries, columns = _entries(connection, ids), _columns(connection, ids)
    keys = _partitions(connection, ids) + _sorts(connection, ids)
    comments = _comments(connection, ids, snapshots)
    texts_of: dict[tuple[int, int], tuple[str, ...]] = {}
    for table, snapshot in altered:
        if min((entry.begin for entry in entries[table]), default=snapshot) == snapshot:
            texts_of[table, snapshot] = ()
            continue
        name = names.get(table, f"#{table}")
        history = _History(columns[table], snapshot)
        texts = list(_renamed("table", entries[table], snapshot, names.get(table, "")))
        texts += [text.format(name) for text in history.texts()]
        texts += [
            text.format(name) for one in keys if one.table == table for text in _key_texts(one, snapshot, keys, history)
        ]
        for column in comments.get((table, snapshot), ()):
            texts.append(f"commented on {name if column is None else f'column {history.path(column)} of {name}'}")
        if texts:
            texts_of[table, snapshot] = _first(texts, name)
    return texts_of


def view_alterations(
    connection: sa.Connection, altered: Collection[tuple[int, int]], names: Mapping[int, str]
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Describe changes of views, by (view id, snapshot id)."""
    if not altered:
        return {}
    ids, snapshots = {view for view, _ in altered}, {snapshot for _, snapshot in altered}
    entries = _entries(connection, ids, t.view)
    comments = _comments(connection, ids, snapshots)
    columns = _view_columns(connection, ids, snapshots)
    texts_of = {}
    for view, snapshot in altered:
        name = names.get(view, f"#{view}")
        texts = list(_renamed("view", entries[view], snapshot, names.get(view, "")))
        texts += [f"commented on {name}"] * len(comments.get((view, snapshot), ()))
        texts += [
            f"commented on column {quoted_if_needed(column)} of {name}" for column in columns.get((view, snapshot), ())
        ]
        if texts:
            texts_of[view, snapshot] = _first(texts, name)
    return texts_of


def _first(texts: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the first changes, and the number of the others."""
    if len(texts) <= _SHOWN:
        return tuple(texts)
    return (*texts[: _SHOWN - 1], f"{len(texts) - _SHOWN + 1} more changes of {name}")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row of `ducklake_table` or `ducklake_view`."""

    begin: int
    end: int | None
    name: str


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of `ducklake_column`; the column is without its parts."""

    begin: int
    end: int | None
    parent: int | None
    column: Column


@dataclass(frozen=True, slots=True)
class _Keys:
    """Keys that a table is partitioned or sorted by: (column id or None, text) of each."""

    table: int
    kind: str
    begin: int
    end: int | None
    keys: tuple[tuple[int | None, str], ...]


def _entries(
    connection: sa.Connection, ids: Collection[int], source: sa.Table = t.table
) -> Mapping[int, Sequence[_Entry]]:
    kind = source.name.removeprefix("ducklake_")
    number, name = source.c[f"{kind}_id"], source.c[f"{kind}_name"]
    query = sa.select(number, source.c.begin_snapshot, source.c.end_snapshot, name).where(among(number, ids))
    entries: dict[int, list[_Entry]] = defaultdict(list)
    for table, *values in connection.execute(query):
        entries[table].append(_Entry(*values))
    return entries


def _renamed(kind: str, entries: Sequence[_Entry], snapshot: int, name: str) -> Iterator[str]:
    before = next((entry.name for entry in entries if entry.end == snapshot and entry.begin != snapshot), None)
    after = next((entry.name for entry in entries if entry.begin == snapshot and entry.end != snapshot), None)
    if before is not None and after is not None and before != after:
        *schema, _ = map(quoted_if_needed, split_dotted(name))
        old, new = (".".join((*schema, quoted_if_needed(part))) for part in (before, after))
        yield f"renamed {kind} {old} to {new}"


def _columns(connection: sa.Connection, ids: Collection[int]) -> Mapping[int, Sequence[_Row]]:
    c = t.column.c
    query = sa.select(
        c.table_id,
        c.begin_snapshot,
        c.end_snapshot,
        c.parent_column,
        c.column_id,
        c.column_order,
        c.column_name,
        c.column_type,
        c.nulls_allowed,
        c.default_value,
    )
    rows: dict[int, list[_Row]] = defaultdict(list)
    for table, begin, end, parent, number, order, name, kind, nullable, default in connection.execute(
        query.where(among(c.table_id, ids)).order_by(c.column_order)
    ):
        column = Column(number, order, name, kind, nulls_allowed=nullable is not False, default_value=default)
        rows[table].append(_Row(begin, end, parent, column))
    return rows


class _History:
    """The columns of one table before and after one snapshot."""

    def __init__(self, rows: Sequence[_Row], snapshot: int) -> None:
        self._before = {r.column.column_id: r for r in rows if r.begin < snapshot and not _ended(r, snapshot - 1)}
        self._after = {r.column.column_id: r for r in rows if r.begin <= snapshot and not _ended(r, snapshot)}

    def texts(self) -> Iterator[str]:
        """Yield the changes, with `{}` for the table."""
        for number, row in self._after.items():
            old = self._before.get(number)
            if old is None:
                if row.parent is None or row.parent in self._before:
                    kind = _whole(row, self._after).data_type.sql()
                    yield f"added column {_safe(self.path(number))} {_safe(kind)} to {{}}"
            elif old != row:
                yield from self._changed(old.column, row.column)
                if row.parent is None and old.column.nulls_allowed != row.column.nulls_allowed:
                    done = "dropped" if row.column.nulls_allowed else "set"
                    yield f"{done} NOT NULL of column {_safe(self.path(number))} of {{}}"
        for number, row in self._before.items():
            if number not in self._after and (row.parent is None or row.parent in self._after):
                yield f"dropped column {_safe(_path(number, self._before))} from {{}}"

    def _changed(self, old: Column, new: Column) -> Iterator[str]:
        path = _safe(self.path(new.column_id))
        if old.name != new.name:
            yield f"renamed column {_safe(_path(old.column_id, self._before))} of {{}} to {_safe(quoted_if_needed(new.name))}"
        if old.type != new.type:
            kinds = (_safe(column.data_type.sql()) for column in (old, new))
            yield f"changed column {path} of {{}} from {next(kinds)} to {next(kinds)}"
        default = _default(new)
        if default is None and _default(old) is not None:
            yield f"dropped the default of column {path} of {{}}"
        elif default != _default(old):
            yield f"set the default of column {path} of {{}} to {_safe(hide(default or ''))}"

    def path(self, number: int) -> str:
        """The dotted name of a column after the snapshot, or of one that it dropped."""
        return _path(number, self._after if number in self._after else self._before)


def _ended(row: _Row, snapshot: int) -> bool:
    return row.end is not None and row.end <= snapshot


def _path(number: int, rows: Mapping[int, _Row]) -> str:
    parts: list[str] = []
    row = rows.get(number)
    while row is not None and len(parts) <= len(rows):
        parts.insert(0, quoted_if_needed(row.column.name))
        row = rows.get(row.parent) if row.parent is not None else None
    return ".".join(parts) or f"#{number}"


def _whole(row: _Row, rows: Mapping[int, _Row]) -> Column:
    """A column with its parts."""
    parts = (part for part in rows.values() if part.parent == row.column.column_id)
    return replace(row.column, children=tuple(_whole(part, rows) for part in parts))


def _default(column: Column) -> str | None:
    value = column.default_value
    if value is None or value == "NULL":
        return None
    return value if len(value) <= _VALUE else f"{value[:_VALUE]}…"


def _safe(text: str) -> str:
    """Escape a text for `str.format`."""
    return text.replace("{", "{{").replace("}", "}}")


def _partitions(connection: sa.Connection, ids: Collection[int]) -> list[_Keys]:
    i, p = t.partition_info.c, t.partition_column.c
    query = sa.select(p.partition_id, p.column_id, p.transform).where(among(p.table_id, ids))
    keys: dict[int, list[tuple[int | None, str]]] = defaultdict(list)
    for partition, column, transform in connection.execute(query.order_by(p.partition_id, p.partition_key_index)):
        keys[partition].append((column, transform))
    intervals = sa.select(i.table_id, i.begin_snapshot, i.end_snapshot, i.partition_id).where(among(i.table_id, ids))
    return [
        _Keys(table, "partition", begin, end, tuple(keys[partition]))
        for table, begin, end, partition in connection.execute(intervals)
    ]


def _sorts(connection: sa.Connection, ids: Collection[int]) -> list[_Keys]:
    if not versions.has(connection, t.sort_info):
        return []
    i, e = t.sort_info.c, t.sort_expression.c
    query = sa.select(e.sort_id, e.expression, e.sort_direction).where(among(e.table_id, ids))
    keys: dict[int, list[tuple[int | None, str]]] = defaultdict(list)
    for sort, expression, direction in connection.execute(query.order_by(e.sort_id, e.sort_key_index)):
        keys[sort].append((None, f"{expression} DESC" if direction == "DESC" else expression))
    intervals = sa.select(i.table_id, i.begin_snapshot, i.end_snapshot, i.sort_id).where(among(i.table_id, ids))
    return [
        _Keys(table, "sort", begin, end, tuple(keys[sort])) for table, begin, end, sort in connection.execute(intervals)
    ]


def _key_texts(keys: _Keys, snapshot: int, others: Sequence[_Keys], history: _History) -> Iterator[str]:
    if keys.begin == snapshot and keys.end != snapshot and keys.keys:
        shown = (
            text if number is None else parse_transform(text).written(history.path(number))
            for number, text in keys.keys
        )
        yield f"{'sorted' if keys.kind == 'sort' else 'partitioned'} {{}} by {_safe(', '.join(shown))}"
    elif keys.end == snapshot and keys.begin != snapshot and keys.keys:
        same = (one for one in others if (one.table, one.kind, one.begin) == (keys.table, keys.kind, snapshot))
        if not any(one.keys for one in same):
            yield f"removed the {'sorting' if keys.kind == 'sort' else 'partitioning'} of {{}}"


def _comments(
    connection: sa.Connection, ids: Collection[int], snapshots: Collection[int]
) -> Mapping[tuple[int, int], Sequence[int | None]]:
    """The columns whose comment changed, by (table id, snapshot id); None for the table's own."""
    parts_of: dict[tuple[int, int], dict[int | None, None]] = defaultdict(dict)
    own, of_column = t.tag.c, t.column_tag.c
    for table, column, rows in (
        (own.object_id, sa.null(), own),
        (of_column.table_id, of_column.column_id, of_column),
    ):
        query = sa.select(table, column, rows.begin_snapshot, rows.end_snapshot).where(
            among(table, ids), rows.key == "comment"
        )
        for number, part, begin, end in connection.execute(query):
            for snapshot in {begin, end} & set(snapshots):
                parts_of[number, snapshot][part] = None
    return {key: tuple(parts) for key, parts in parts_of.items()}


def _view_columns(
    connection: sa.Connection, ids: Collection[int], snapshots: Collection[int]
) -> Mapping[tuple[int, int], Sequence[str]]:
    """The names of a view's columns whose comment changed, by (view id, snapshot id)."""
    if not versions.has(connection, t.view_column_tag):
        return {}
    c = t.view_column_tag.c
    columns_of: dict[tuple[int, int], dict[str, None]] = defaultdict(dict)
    query = sa.select(c.view_id, c.column_name, c.begin_snapshot, c.end_snapshot)
    query = query.where(among(c.view_id, ids), c.key == "comment").order_by(c.column_name)
    for view, column, begin, end in connection.execute(query):
        for snapshot in {begin, end} & set(snapshots):
            columns_of[view, snapshot][column] = None
    return {key: tuple(names) for key, names in columns_of.items()}
