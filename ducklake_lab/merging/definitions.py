"""Three versions of a table's definition: where both sides began, theirs, and ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ducklake_lab.errors import EntryExistsError, UnsupportedFeatureError
from ducklake_lab.merging.conflicts import Conflict, Reason, Rule, TableRules, Unsettled, Words
from ducklake_lab.merging.nested import merged_fields
from ducklake_lab.model.entries import Column, PartitionField, SortKey, SortSpec, Table
from ducklake_lab.model.expectations import PREFIX
from ducklake_lab.model.promotion import is_wider
from ducklake_lab.model.transforms import parse_transform
from ducklake_lab.sql.bind import following
from ducklake_lab.transaction.transaction import Transaction

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Definition:
    """A table as a merge leaves it.

    Attributes:
        table: ours, with the changes of theirs; its keys have no new ids yet.
        gone: columns of ours that theirs lacks, and which go.
        came: columns of theirs alone, which come.
        reshaped: names of columns whose type or fields change.
        strict: columns that become NOT NULL.
    """

    table: Table
    gone: tuple[Column, ...] = ()
    came: tuple[Column, ...] = ()
    reshaped: tuple[str, ...] = ()
    strict: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """Numbers of values that one side wrote into columns which the other one dropped, by column id.

    Attributes:
        ours: in columns that theirs dropped.
        theirs: in columns that ours dropped; None where these are not compared.
    """

    ours: Mapping[int, int] = field(default_factory=dict)
    theirs: Mapping[int, int] | None = None


class Merging:
    """Merges the definition of a table; notes conflicts that no rule settles."""

    def __init__(self, title: str, words: Words, rules: TableRules, unsettled: Unsettled, filled: Filled) -> None:
        self._title = title
        self._words = words
        self._rules = rules
        self._unsettled = unsettled
        self._filled = filled

    def merge(self, theirs: Table, base: Table, ours: Table) -> Definition:
        """Return our table with what theirs changed since both were `base`.

        Raises:
            EntryExistsError: a column would come under a name that is taken.
            UnsupportedFeatureError: no column would be left, a partition key would go, or a dropped column is wanted.
        """
        columns: list[Column] = []
        gone: list[Column] = []
        reshaped: list[str] = []
        strict: list[Column] = []
        our_columns, old_columns, their_columns = map(_by_id, (ours, base, theirs))
        for column in ours.columns:
            their, old = their_columns.get(column.column_id), old_columns.get(column.column_id)
            if old is None:
                columns.append(column)
            elif their is None:
                (gone if self._goes(old, column) else columns).append(column)
            else:
                merged = self._merged(their, old, column)
                columns.append(merged)
                if merged.data_type != column.data_type or _parts(merged) != _parts(column):
                    reshaped.append(column.name)
                if not merged.nulls_allowed and column.nulls_allowed:
                    strict.append(merged)
        theirs_alone = [column for column in theirs.columns if column.column_id not in our_columns]
        for column in theirs_alone:
            if column.column_id in old_columns:
                self._check_dropped(column, old_columns[column.column_id])
        came = [column for column in theirs_alone if column.column_id not in old_columns]
        columns += came
        columns.sort(key=lambda column: column.order)
        self._check(columns, gone)
        partition = self._three(
            partition_fields(theirs), partition_fields(base), partition_fields(ours), "partition keys"
        )
        their_keys, old_keys, own_keys = (following.sort_keys(table, columns) for table in (theirs, base, ours))
        sort = self._three(their_keys, old_keys, own_keys, "sort keys")
        tags = self._tags(*(dict(following.expectation_tags(table, columns)) for table in (theirs, base, ours)))
        table = replace(
            ours,
            name=self._three(theirs.name, base.name, ours.name, "name"),
            schema_id=self._three(theirs.schema_id, base.schema_id, ours.schema_id, "schema"),
            columns=tuple(columns),
            comment=self._three(theirs.comment, base.comment, ours.comment, "comment"),
            tags=tags,
            partition=ours.partition if partition == partition_fields(ours) else theirs.partition,
            sort=ours.sort if sort == _keys(ours) else SortSpec(0, sort) if sort else None,
        )
        self._check_keys(table, partition, (ours, theirs))
        self._check_names(table, ours)
        strict += [column for column in came if not column.nulls_allowed]
        return Definition(table, tuple(gone), tuple(came), tuple(reshaped), tuple(strict))

    def _tags(
        self, theirs: Mapping[str, str], base: Mapping[str, str], ours: Mapping[str, str]
    ) -> tuple[tuple[str, str], ...]:
        """Merge the expectations, each of which is a tag, by name."""
        merged: dict[str, str] = {}
        for key in sorted({*theirs, *base, *ours}):
            part = f"expectation {key.removeprefix(PREFIX)}"
            value = self._three(theirs.get(key), base.get(key), ours.get(key), part)
            if value is not None:
                merged[key] = value
        return tuple(merged.items())

    def _goes(self, base: Column, ours: Column) -> bool:
        """Whether a column that theirs lacks is dropped."""
        filled = self._filled.ours.get(ours.column_id, 0)
        if _shown(base) == _shown(ours) and not filled:
            return True
        rule = self._rules.of_column(ours.name)
        if rule is None:
            shown = f"{_text(ours)}, {filled:,} values" if filled else _text(ours)
            self._note(ours.name, None, _text(base), shown, self._words.reason(Reason.COLUMN_DROPPED))
        return rule == "theirs"

    def _check_dropped(self, theirs: Column, base: Column) -> None:
        """Notes a conflict where theirs changed a column that ours dropped."""
        if self._filled.theirs is None:
            return
        filled = self._filled.theirs.get(theirs.column_id, 0)
        if _shown(base) == _shown(theirs) and not filled:
            return
        rule = self._rules.of_column(theirs.name)
        if rule is None:
            shown = f"{_text(theirs)}, {filled:,} values" if filled else _text(theirs)
            self._note(theirs.name, shown, _text(base), None, self._words.reason(Reason.COLUMN_FILLED))
        elif rule == "theirs":
            raise UnsupportedFeatureError(
                f"Column {theirs.name} of {self._title} was dropped, and does not come back with {self._words.title}; "
                f'revert that first, or choose "{self._words.ours}".'
            )

    def _merged(self, theirs: Column, base: Column, ours: Column) -> Column:
        name, rule = ours.name, self._rules.of_column(ours.name)

        def three(their: _Value, old: _Value, our: _Value, part: str) -> _Value:
            return self._three(their, old, our, part, name, rule)

        if self._loses_fields(theirs, base, ours):
            kind, children = ours.type, ours.children
        elif (fields := self._fields(theirs, base, ours)) is not None:
            kind, children = ours.type, fields
        else:
            kind, children = three(
                (theirs.type, theirs.children), (base.type, base.children), (ours.type, ours.children), "type"
            )
        default, default_type, dialect = three(_default(theirs), _default(base), _default(ours), "default")
        return replace(
            ours,
            name=three(theirs.name, base.name, ours.name, "name"),
            order=three(theirs.order, base.order, ours.order, "place"),
            type=kind,
            children=children,
            nulls_allowed=three(theirs.nulls_allowed, base.nulls_allowed, ours.nulls_allowed, "NOT NULL"),
            default_value=default,
            default_value_type=default_type,
            default_value_dialect=dialect,
            comment=three(theirs.comment, base.comment, ours.comment, "comment"),
        )

    def _fields(self, theirs: Column, base: Column, ours: Column) -> tuple[Column, ...] | None:
        """The fields that a nested column of two branches gets from both; None where one side changed it, or both the same."""
        kinds = [(column.type, column.children) for column in (theirs, base, ours)]
        is_both = kinds[0] not in (kinds[1], kinds[2]) and kinds[1] != kinds[2]
        return merged_fields(theirs, base, ours) if is_both and self._filled.theirs is not None else None

    def _loses_fields(self, theirs: Column, base: Column, ours: Column) -> bool:
        """Whether the column keeps our fields, as one side wrote into fields that the other one dropped.

        Notes a conflict where no rule settles it.
        """
        in_ours = self._filled.ours.get(ours.column_id, 0)
        in_theirs = (self._filled.theirs or {}).get(theirs.column_id, 0)
        if not in_ours and not in_theirs:
            return False
        rule = self._rules.of_column(ours.name)
        if rule is None:
            reason = Reason.COLUMN_DROPPED if in_ours else Reason.COLUMN_FILLED
            our, their = (
                f"{_text(column)}, {filled:,} values" if filled else _text(column)
                for column, filled in ((ours, in_ours), (theirs, in_theirs))
            )
            self._note(ours.name, their, _text(base), our, self._words.reason(reason))
        elif rule == "theirs" and in_theirs:
            raise UnsupportedFeatureError(
                f"A field of column {ours.name} of {self._title} was dropped, and does not come back with "
                f'{self._words.title}; choose "{self._words.ours}".'
            )
        return rule != "theirs"

    def _three(
        self, theirs: _Value, base: _Value, ours: _Value, part: str, column: str | None = None, rule: Rule | None = None
    ) -> _Value:
        """The value that one side changed; notes a conflict where both sides changed it."""
        if theirs == base or ours == theirs:
            return ours
        if ours == base:
            return theirs
        rule = self._rules.whole if column is None else rule
        if rule is None:
            reason = self._words.reason(Reason.DEFINITION, part)
            self._note(column, _plain(theirs), _plain(base), _plain(ours), reason)
        return theirs if rule == "theirs" else ours

    def _note(self, column: str | None, theirs: object, base: object, ours: object, reason: str) -> None:
        self._unsettled.add(Conflict(self._title, None, column, base, ours, theirs, reason))

    def _check(self, columns: list[Column], gone: list[Column]) -> None:
        names = set[str]()
        for column in columns:
            if column.name.casefold() in names:
                raise EntryExistsError(
                    f"Column {column.name} of {self._title} cannot {self._words.comes}, as another column has the name now; "
                    "rename that first."
                )
            names.add(column.name.casefold())
        if not columns:
            raise UnsupportedFeatureError(
                f"All columns that {self._title} has now ({gone[0].name}, …) go with {self._words.title}, and a table "
                "needs one; drop the table instead."
            )

    def _check_keys(self, table: Table, fields: tuple[PartitionField, ...], sides: Iterable[Table]) -> None:
        ids = {part.column_id for part in table.all_columns()}
        for key in fields:
            if key.column_id not in ids:
                columns = (side.column_by_id(key.column_id) for side in sides)
                name = next((column.name for column in columns if column is not None), f"#{key.column_id}")
                raise UnsupportedFeatureError(
                    f"{self._title} is partitioned by {name}, which goes with {self._words.title}; RESET PARTITIONED BY first."
                )

    def _check_names(self, table: Table, ours: Table) -> None:
        """Raises UnsupportedFeatureError where a sort key or an expectation loses a column that it names."""
        here, now = ({(column.column_id, column.name) for column in one.columns} for one in (ours, table))
        if here <= now and (table.sort, table.tags) == (ours.sort, ours.tags):
            return
        known = set(following.missing_columns(ours))
        for what, name, drop in following.missing_columns(table):
            if (what, name, drop) not in known:
                raise UnsupportedFeatureError(
                    f"{self._title} has no column {name} with {self._words.title}, and its {what} names it; {drop} first, "
                    "on the side that has it."
                )


def check_types(title: str, merged: Table, sides: Iterable[Table], words: Words) -> None:
    """Raises UnsupportedFeatureError where a column gets a type that does not hold all values of a side."""
    for side in sides:
        kinds = {part.column_id: part for part in side.all_columns()}
        for column in merged.all_columns():
            kind = kinds[column.column_id].data_type if column.column_id in kinds else column.data_type
            if not kind.is_nested and kind != column.data_type and not is_wider(kind, column.data_type):
                raise UnsupportedFeatureError(
                    f"Column {column.name} of {title} cannot be {column.data_type.sql()} with {words.title}, as it is "
                    f"{kind.sql()} on the other side; ALTER it to one type on both sides."
                )


def with_new_keys(transaction: Transaction, table: Table) -> Table:
    """Return the table, its keys with ids of the transaction where it has other keys now."""
    table_now = transaction.state.tables.get(table.table_id)
    partition, sort = table.partition, table.sort
    if partition is not None and (table_now is None or partition != table_now.partition):
        partition = transaction.new_partition(partition.fields)
    if sort is not None and (table_now is None or sort != table_now.sort):
        sort = transaction.new_sort(sort.keys)
    return replace(table, partition=partition, sort=sort)


def _by_id(table: Table) -> dict[int, Column]:
    """The top-level columns of a table, by id."""
    return {column.column_id: column for column in table.columns}


def _parts(column: Column) -> list[tuple[int, str, str]]:
    return [(part.column_id, part.name, part.type) for part in column.walk() if part is not column]


def _shown(column: Column) -> Column:
    return replace(column, initial_default=None, order=0)


def _default(column: Column) -> tuple[str | None, str, str]:
    return column.default_value, column.default_value_type, column.default_value_dialect


def types_differ(one: Table, other: Table) -> bool:
    """Whether a column that two versions of a table share has different types."""
    types = {column.column_id: column.data_type for column in one.columns}
    return any(types.get(column.column_id, column.data_type) != column.data_type for column in other.columns)


def partition_fields(table: Table) -> tuple[PartitionField, ...]:
    """The partition keys of a table; () for none."""
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
