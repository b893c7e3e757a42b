"""Rows of a diff as one statement for any client of the lake: DuckDB's SQL over the table at two snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from ducklake_lab.diff.diff_states import Matched, Sides
from ducklake_lab.diff.model import RowChoice
from ducklake_lab.diff.rows import place_of
from ducklake_lab.duckdb.casting import differs_sql
from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.quoting import path_parts, quote_text, quoted_if_needed


def rows_sql(sides: Sides, key: Sequence[str], choice: RowChoice, limit: int | None = None, offset: int = 0) -> str:
    """A statement that gives the chosen rows: `change`, `row_id` without a key, then `old_x` and `new_x` of each column x.

    It reads both states as a whole.

    Raises:
        UsageError: the changes are not committed, so that no snapshot has them.
        UnsupportedFeatureError: SQL cannot name the rows of a state, or compare a column.
    """
    if sides.is_open:
        raise UsageError("Changes that are not committed are in no snapshot that SQL could read; commit them first.")
    return _Writer(sides, key).write(choice, limit, offset)


def check_row_ids(table: Table) -> None:
    """Raises UnsupportedFeatureError where a column hides the ids of a table's rows."""
    if table.column("rowid") is not None:
        raise UnsupportedFeatureError(
            f"{table.name} has a column rowid, which hides the ids of its rows from SQL; pair rows by a key."
        )


class _Writer:
    def __init__(self, sides: Sides, key: Sequence[str]) -> None:
        self._sides = sides
        self._matched = sides.matched()
        self._compared = [each for each in self._matched if each.after is not None]
        names = [each.name for each in self._matched]
        self._row_id = free_name("row_id", names)
        self._key = [names[place_of(names, name)] for name in key]
        #: rows of one table have ids in common
        self._by_id = sides.same or not key
        if self._by_id:
            for table in (sides.before.table, sides.after.table):
                if table is not None:
                    check_row_ids(table)

    def write(self, choice: RowChoice, limit: int | None, offset: int) -> str:
        named = {"earlier": self._state("before"), "later": self._state("after")}
        if self._key and self._sides.same:
            # rows that both states share are no part of the comparison, whatever their key
            named = {
                "a": named["earlier"],
                "b": named["later"],
                "earlier": self._not_in("a", "b"),
                "later": self._not_in("b", "a"),
            }
        states = ",\n".join(f"  {name} AS (\n    {sql}\n  )" for name, sql in named.items())
        gone, new = f"later.{self._there} IS NULL", f"earlier.{self._there} IS NULL"
        items = [f"CASE WHEN {new} THEN 'inserted' WHEN {gone} THEN 'deleted' ELSE 'updated' END AS change"]
        if not self._key:
            items.append(f"coalesce(earlier.{self._row_id}, later.{self._row_id}) AS {self._row_id}")
        for each in self._matched:
            items.append(f"earlier.{quoted_if_needed(each.name)} AS {quoted_if_needed(f'old_{each.name}')}")
            if each.after is not None:
                items.append(f"later.{quoted_if_needed(each.name)} AS {quoted_if_needed(f'new_{each.name}')}")
        joined = [f"earlier.{name} IS NOT DISTINCT FROM later.{name}" for name in map(quoted_if_needed, self._key)]
        text = (
            f"WITH\n{states}\nSELECT\n  " + ",\n  ".join(items) + "\nFROM earlier FULL JOIN later\n  ON "
            f"{' AND '.join(joined) or f'earlier.{self._row_id} = later.{self._row_id}'}\n"
            f"WHERE {self._condition(choice, gone, new)}\nORDER BY {self._order(choice, gone)}"
        )
        if limit is not None:
            text += f"\nLIMIT {limit:d}"
        return text + (f"\nOFFSET {offset:d}" if offset else "")

    @property
    def _there(self) -> str:
        """A column that is NULL only where a side has no row."""
        return self._row_id if self._by_id else "is_there"

    def _state(self, which: str) -> str:
        """The rows of one state, with the names and types of the later one."""
        side = self._sides.before if which == "before" else self._sides.after
        number = "rowid" if side.table is not None else "CAST(NULL AS BIGINT)"
        items = [f"{number} AS {self._row_id}"] if self._by_id else ["true AS is_there"]
        for each in self._matched:
            own = each.before if which == "before" else each.after
            name = quoted_if_needed(each.name)
            value = (
                _value(own, each, same=self._sides.same)
                if side.table is not None or own is None
                else f"CAST(NULL AS {own.data_type.sql()})"
            )
            items.append(value if value == name else f"{value} AS {name}")
        selected = f"SELECT {', '.join(items)}"
        if side.table is None:
            return f"{selected} WHERE false"
        schema = side.state.schema_of(side.table).name
        path = (side.lake.alias, *path_parts(schema), side.table.name)
        return f"{selected}\n    FROM {'.'.join(map(quoted_if_needed, path))} AT (VERSION => {side.snapshot_id})"

    def _not_in(self, one: str, other: str) -> str:
        differ = self._differs(one, other)
        number = self._row_id
        return (
            f"SELECT * FROM {one} WHERE NOT EXISTS (\n      FROM {other} WHERE {other}.{number} = {one}.{number}"
            f" AND NOT ({differ})\n    )"
        )

    def _differs(self, one: str, other: str, only: str | None = None) -> str:
        return (
            "\n    OR ".join(
                differs_sql(f"{one}.{name}", f"{other}.{name}", each.after.data_type)
                for each in self._compared
                if each.after is not None and only in (None, each.name)
                for name in [quoted_if_needed(each.name)]
            )
            or "false"
        )

    def _condition(self, choice: RowChoice, gone: str, new: str) -> str:
        both = f"{gone.replace('IS NULL', 'IS NOT NULL')} AND {new.replace('IS NULL', 'IS NOT NULL')}"
        if choice.changed is not None or choice.kind == "updated":
            return f"{both} AND (\n    {self._differs('earlier', 'later', choice.changed)}\n  )"
        if choice.kind is not None:
            return new if choice.kind == "inserted" else gone
        return f"{new}\n    OR {gone}\n    OR {self._differs('earlier', 'later')}"

    def _order(self, choice: RowChoice, gone: str) -> str:
        keys = list(choice.sort)
        keys += [(name, False) for name in self._key]
        order = []
        for name, down in keys:
            each = next(each for each in self._matched if each.name == name)
            quoted = quoted_if_needed(name)
            value = f"CASE WHEN {gone} THEN earlier.{quoted} ELSE later.{quoted} END"
            value = value if each.after is not None else f"earlier.{quoted}"
            order.append(f"{value} {'DESC' if down else 'ASC'} NULLS LAST")
        return ", ".join(order if self._key else [*order, f"coalesce(earlier.{self._row_id}, later.{self._row_id})"])


def _value(own: Column | None, each: Matched, *, same: bool) -> str:
    """Write a cell of a state in the later state's type, or the default of rows older than the column."""
    wanted = each.after or each.before
    assert wanted is not None  # a column is in one of the states
    kind = wanted.data_type
    if own is None:
        check_returned(each)
        default = wanted.initial_default if same and each.before is None else None
        return f"CAST({quote_text(default)} AS {kind.sql()})"
    if same:
        check_fields(own, wanted)
    name = quoted_if_needed(own.name)
    if own.data_type == kind:
        return name
    return f"CAST({name} AS {kind.sql()})"


def check_returned(each: Matched) -> None:
    """Raises UnsupportedFeatureError where a column came back with its values, which the earlier state hides from SQL."""
    if each.has_returned:
        raise UnsupportedFeatureError(
            f"Column {each.name} was dropped before the earlier state and is back with its values, which no SQL on that "
            "state reads; use restore, or diff snapshots on one side of that."
        )


def check_fields(old: Column, new: Column) -> None:
    """Raises UnsupportedFeatureError where the fields in a column differ by more than their types."""
    parts = [[(part.column_id, part.name) for part in column.walk()][1:] for column in (old, new)]
    if parts[0] != parts[1]:
        raise UnsupportedFeatureError(
            f"{new.name} has other fields in the two states, which no SQL turns into each other; leave it out, or diff "
            "snapshots on one side of that change."
        )


def free_name(name: str, taken: Sequence[str]) -> str:
    """Return a name like the given one that differs from all others."""
    folded = {each.casefold() for each in taken}
    while name.casefold() in folded:
        name += "_"
    return name
