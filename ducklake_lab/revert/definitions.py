"""Three versions of a table's definition: before a snapshot, after it, and today's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from ducklake_lab.errors import EntryExistsError, UnsupportedFeatureError
from ducklake_lab.model.entries import Column, PartitionField, SortKey, Table
from ducklake_lab.model.transforms import parse_transform
from ducklake_lab.revert.conflicts import Conflict, Found, Rule, TableRules
from ducklake_lab.transaction.transaction import Transaction

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Definition:
    """A table as a revert leaves it.

    Attributes:
        table: today's, with the changes of the snapshot taken back; its keys have no new ids yet.
        added: columns of today that the snapshot added, and which go.
        returned: columns that the snapshot dropped, and which come back.
        reshaped: names of columns whose type or fields change back, which values of later files may not fit.
        strict: columns that are NOT NULL again.
    """

    table: Table
    added: tuple[Column, ...] = ()
    returned: tuple[Column, ...] = ()
    reshaped: tuple[str, ...] = ()
    strict: tuple[Column, ...] = ()


class Merging:
    """Takes the changes of a table's definition back; notes conflicts that no rule settles."""

    def __init__(
        self, title: str, snapshot_id: int, rules: TableRules, found: Found, filled: Mapping[int, int] | None = None
    ) -> None:
        """Begins to merge.

        Args:
            filled: values that were written since into columns which the snapshot added, by column id.
        """
        self._title = title
        self._snapshot = snapshot_id
        self._rules = rules
        self._found = found
        self._filled = filled or {}

    def merge(self, before: Table, then: Table, now: Table) -> Definition:
        """Return today's table without what changed from `before` to `then`.

        Raises:
            EntryExistsError: a column would come back under a name that is taken.
            UnsupportedFeatureError: no column would be left, or a partition key would go.
        """
        columns: list[Column] = []
        added: list[Column] = []
        reshaped: list[str] = []
        strict: list[Column] = []
        for column in now.columns:
            old, set_by = _own(before, column), _own(then, column)
            if set_by is None:
                columns.append(column)
            elif old is None:
                if not self._goes(set_by, column):
                    columns.append(column)
                    continue
                added.append(column)
            else:
                found = self._merged(old, set_by, column)
                columns.append(found)
                if found.data_type != column.data_type or _parts(found) != _parts(column):
                    reshaped.append(column.name)
                if not found.nulls_allowed and column.nulls_allowed:
                    strict.append(found)
        returned = [c for c in before.columns if _own(then, c) is None and _own(now, c) is None]
        columns += returned
        columns.sort(key=lambda column: column.order)
        self._check(columns, added)
        partition = self._three(_fields(before), _fields(then), _fields(now), "partition keys")
        sort = self._three(_keys(before), _keys(then), _keys(now), "sort keys")
        table = replace(
            now,
            name=self._three(before.name, then.name, now.name, "name"),
            schema_id=self._three(before.schema_id, then.schema_id, now.schema_id, "schema"),
            columns=tuple(columns),
            comment=self._three(before.comment, then.comment, now.comment, "comment"),
            partition=now.partition if partition == _fields(now) else before.partition,
            sort=now.sort if sort == _keys(now) else before.sort,
        )
        self._check_keys(table, partition, now)
        strict += [column for column in returned if not column.nulls_allowed]
        return Definition(table, tuple(added), tuple(returned), tuple(reshaped), tuple(strict))

    def _goes(self, then: Column, now: Column) -> bool:
        """Whether a column that the snapshot added is dropped."""
        filled = self._filled.get(now.column_id, 0)
        if _shown(then) == _shown(now) and not filled:
            return True
        rule = self._rules.of_column(now.name)
        if rule is None:
            shown = f"{_text(now)}, {filled:,} values" if filled else _text(now)
            self._note(now.name, None, _text(then), shown, "column added, and changed since")
        return rule == "revert"

    def _merged(self, before: Column, then: Column, now: Column) -> Column:
        name, rule = now.name, self._rules.of_column(now.name)

        def three(old: _Value, set_by: _Value, today: _Value, what: str) -> _Value:
            return self._three(old, set_by, today, what, name, rule)

        kind, children = three(
            (before.type, before.children), (then.type, then.children), (now.type, now.children), "type"
        )
        default, default_type, dialect = three(_default(before), _default(then), _default(now), "default")
        return replace(
            now,
            name=three(before.name, then.name, now.name, "name"),
            order=three(before.order, then.order, now.order, "place"),
            type=kind,
            children=children,
            nulls_allowed=three(before.nulls_allowed, then.nulls_allowed, now.nulls_allowed, "NOT NULL"),
            default_value=default,
            default_value_type=default_type,
            default_value_dialect=dialect,
            comment=three(before.comment, then.comment, now.comment, "comment"),
        )

    def _three(
        self, before: _Value, then: _Value, now: _Value, what: str, column: str | None = None, rule: Rule | None = None
    ) -> _Value:
        """The value before, where the snapshot set today's; notes a conflict where a later one changed it again."""
        if before == then or now == before:
            return now
        if now == then:
            return before
        rule = self._rules.whole if column is None else rule
        if rule is None:
            self._note(column, _plain(before), _plain(then), _plain(now), f"{what} changed since")
        return before if rule == "revert" else now

    def _note(self, column: str | None, base: object, then: object, now: object, reason: str) -> None:
        self._found.add(Conflict(self._title, None, column, base, then, now, reason))

    def _check(self, columns: list[Column], added: list[Column]) -> None:
        names = set[str]()
        for column in columns:
            if column.name.casefold() in names:
                raise EntryExistsError(
                    f"Column {column.name} of {self._title} cannot come back, as another column has the name now; "
                    "rename that first."
                )
            names.add(column.name.casefold())
        if not columns:
            raise UnsupportedFeatureError(
                f"Snapshot {self._snapshot} added all columns that {self._title} has now ({added[0].name}, …), and a table "
                "needs one; drop the table instead."
            )

    def _check_keys(self, table: Table, fields: tuple[PartitionField, ...], now: Table) -> None:
        ids = {part.column_id for part in table.all_columns()}
        for key in fields:
            if key.column_id not in ids:
                column = now.column_by_id(key.column_id)
                name = column.name if column is not None else f"#{key.column_id}"
                raise UnsupportedFeatureError(
                    f"{self._title} is partitioned by {name}, which snapshot {self._snapshot} added; RESET PARTITIONED BY first."
                )


def with_new_keys(transaction: Transaction, table: Table) -> Table:
    """Return the table, its keys with ids of the transaction where it has other keys now."""
    known = transaction.state.tables.get(table.table_id)
    partition, sort = table.partition, table.sort
    if partition is not None and (known is None or partition != known.partition):
        partition = transaction.new_partition(partition.fields)
    if sort is not None and (known is None or sort != known.sort):
        sort = transaction.new_sort(sort.keys)
    return replace(table, partition=partition, sort=sort)


def _own(table: Table, column: Column) -> Column | None:
    """The top-level column of a table with a column's id."""
    return next((own for own in table.columns if own.column_id == column.column_id), None)


def _parts(column: Column) -> list[tuple[int, str, str]]:
    return [(part.column_id, part.name, part.type) for part in column.walk() if part is not column]


def _shown(column: Column) -> Column:
    return replace(column, initial_default=None, order=0)


def _default(column: Column) -> tuple[str | None, str, str]:
    return column.default_value, column.default_value_type, column.default_value_dialect


def _fields(table: Table) -> tuple[PartitionField, ...]:
    return table.partition.fields if table.partition is not None else ()


def _keys(table: Table) -> tuple[SortKey, ...]:
    return table.sort.keys if table.sort is not None else ()


def _text(column: Column) -> str:
    return f"{column.name} {column.data_type.sql()}"


def _plain(value: object) -> object:
    """A value of a definition for people."""
    if isinstance(value, tuple):
        return ", ".join(text for part in value for text in _texts(part))
    return value


def _texts(part: object) -> Iterator[str]:
    match part:
        case PartitionField():
            yield parse_transform(part.transform).written(f"#{part.column_id}")
        case SortKey():
            yield f"{part.expression} {part.direction}"
        case Column():
            yield _text(part)
        case tuple():
            for inner in part:
                yield from _texts(inner)
        case None | "":
            return
        case _:
            yield str(part)
