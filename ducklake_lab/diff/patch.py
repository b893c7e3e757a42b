"""Patch of a diff: statements that turn one of its states into the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import pyarrow as pa

from ducklake_lab.diff.as_sql import check_fields, check_returned, check_row_ids, free_name
from ducklake_lab.diff.diff_states import Side, Sides
from ducklake_lab.diff.model import DiffSummary, RowKind
from ducklake_lab.diff.rows import ChangedRows, places_of
from ducklake_lab.duckdb.casting import has_part
from ducklake_lab.duckdb.literals import literals
from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.promotion import is_wider
from ducklake_lab.model.quoting import path_parts, quote_identifier, quote_text
from ducklake_lab.model.types import DataType

#: Changed rows that a patch holds at most.
MAX_ROWS = 100_000
#: Spark gives no nanoseconds, and variants of fewer types.
_NOT_FROM_SPARK = ("timestamp_ns", "variant")

#: Reads some columns of all rows of a state, by their places, as c0, c1, …; None where they are too many.
Reading = Callable[[Sequence[int]], pa.Table] | None


@dataclass(frozen=True, slots=True)
class _Cell:
    """A column of the changed rows, which the patched table has.

    Attributes:
        place: of the column in the changed rows.
        name: in the table once it is altered.
        kind: its type then.
    """

    place: int
    name: str
    kind: DataType


class Patch:
    """Writes the statements that make the later state of a diff of the earlier one, or the way back.

    Args:
        reading: reads columns of the state that is patched.
        revert: the way back.

    Raises:
        UsageError: there are too many changed rows, or the key names several rows.
        UnsupportedFeatureError: no statements change the one table to the other.
    """

    def __init__(
        self,
        sides: Sides,
        key: Sequence[str],
        changed: ChangedRows,
        summary: DiffSummary,
        reading: Reading,
        *,
        revert: bool,
    ) -> None:
        self._sides, self._key, self._changed, self._summary = sides, key, changed, summary
        self._revert = revert
        if revert and sides.is_open:
            raise UsageError("These changes are not committed: ROLLBACK is their way back.")
        self._from, self._to = (sides.after, sides.before) if revert else (sides.before, sides.after)
        if self._from.table is None or self._to.table is None:
            raise UnsupportedFeatureError(
                "Only one of the two states has the table; a patch changes one that both have."
            )
        self._old, self._new = self._from.table, self._to.table
        self._check_amount()
        for each in sides.matched():
            check_returned(each)
        self._matched = [
            (place, *((each.after, each.before) if revert else (each.before, each.after)))
            for place, each in enumerate(sides.matched())
        ]
        if not key:
            check_row_ids(self._old)
        elif sides.same:
            self._check_key(reading)

    def text(self) -> str:
        """Return the patch: a comment about its effect, then statements."""
        before, after = self._alterations()
        rows = list(self._rows())
        statements = [*before, *(["BEGIN TRANSACTION", *rows, "COMMIT"] if rows else []), *after]
        comment = "".join(f"-- {line}\n" for line in self._comment(altered=bool(before or after), empty=not statements))
        return comment + "".join(f"{statement};\n" for statement in statements)

    # Refusals

    def _check_amount(self) -> None:
        if self._summary.changed > MAX_ROWS or self._changed.total is not None:
            raise UsageError(
                f"{self._summary.changed:,} rows differ, and a patch holds {MAX_ROWS:,}: diff fewer snapshots, or use "
                "restore, which copies no row."
            )
        for column in self._changed.all_columns if self._changed.from_spark else ():
            if has_part(column.data_type, _NOT_FROM_SPARK):
                raise UnsupportedFeatureError(
                    f"Spark cuts values of {column.name}, which is {column.data_type.sql()}; make the patch in a session with "
                    "engine='duckdb'."
                )

    def _check_key(self, reading: Reading) -> None:
        """Raises UsageError where a key of a changed row is that of another row, too."""
        if reading is None:
            raise UsageError(
                f"{self._old.name} has too many rows to check that {', '.join(self._key)} is a key; leave the key out, "
                "and rows are found by their ids."
            )
        places = places_of(self._changed.columns, self._key)
        listed = ", ".join(f"c{place}" for place in places)
        side = "added" if self._revert else "removed"
        equal = " AND ".join(f"w.c{place} IS NOT DISTINCT FROM k.c{place}" for place in places)
        tables = {"k": self._changed.tables[side], "w": reading(places)}
        counted = engine.evaluate(f"SELECT count(*) FROM w WHERE EXISTS (FROM k WHERE {equal})", tables)
        there = counted.column(0)[0].as_py() - self._changed.tables[side].num_rows
        if there:
            raise UsageError(
                f"{', '.join(self._key)} is no key: {there:,} more rows have the values of changed ones ({listed}); "
                "name more columns."
            )

    # Columns

    def _alterations(self) -> tuple[list[str], list[str]]:
        """Statements that change the columns and the name: before the rows change, and after."""
        kept = [(old, new) for _, old, new in self._matched if old is not None and new is not None]
        gone = [old for _, old, new in self._matched if new is None and old is not None]
        made = [new for _, old, new in self._matched if old is None and new is not None]
        self._check_columns(kept, gone, made)
        before = [
            f"ALTER COLUMN {quote_identifier(old.name)} DROP NOT NULL"
            for old, new in kept
            if not old.nulls_allowed and new.nulls_allowed
        ]
        drops = [f"DROP COLUMN {quote_identifier(column.name)}" for column in gone]
        adds = [_addition(column, self._initial(column)) for column in made]
        before += [*drops, *self._renames(kept), *adds] if kept else [*adds, *drops]
        for old, new in kept:
            if old.data_type != new.data_type:
                before.append(f"ALTER COLUMN {self._name(old, new)} SET DATA TYPE {new.data_type.sql()}")
            if _default(old) != _default(new):
                before.append(_set_default(self._name(old, new), new))
        before += [
            _set_default(quote_identifier(column.name), column)
            for column in made
            if _default(column) != (self._initial(column), "literal")
        ]
        strict = [
            self._name(old, new)
            for _, old, new in self._matched
            if new is not None and not new.nulls_allowed and (old is None or old.nulls_allowed)
        ]
        after = [f"ALTER COLUMN {name} SET NOT NULL" for name in strict]
        altered = [f"ALTER TABLE {self._path(self._old.name)} {change}" for change in before]
        if self._table != self._old.name:
            altered.append(f"ALTER TABLE {self._path(self._old.name)} RENAME TO {quote_identifier(self._table)}")
        return altered, [f"ALTER TABLE {self._path(self._table)} {change}" for change in after]

    def _check_columns(
        self, kept: Sequence[tuple[Column, Column]], gone: Sequence[Column], made: Sequence[Column]
    ) -> None:
        if self._sides.same and self._from.state.schema_of(self._old) != self._to.state.schema_of(self._new):
            raise UnsupportedFeatureError(f"{self._old.name} went to another schema, where no statement takes it.")
        if made and self._revert:
            raise UnsupportedFeatureError(
                f"Column {made[0].name} was dropped, and its values in unchanged rows are no part of the diff; use "
                f"restore, as in %ducklake restore {self._old.name} {self._to.snapshot_id}."
            )
        for old, new in kept:
            if self._sides.same:
                check_fields(old, new)
            if old.data_type != new.data_type and not is_wider(old.data_type, new.data_type):
                raise UnsupportedFeatureError(
                    f"No ALTER TABLE makes {new.data_type.sql()} of column {old.name}, which is {old.data_type.sql()}."
                )
        if self._sides.same and [*(new for _, new in kept), *made] != list(self._new.columns):
            order = {column.column_id: at for at, column in enumerate(self._new.columns)}
            places = [order[column.column_id] for column in (*(new for _, new in kept), *made)]
            at = next(at for at, place in enumerate(places) if at != place)
            raise UnsupportedFeatureError(
                f"No ALTER TABLE puts column {self._new.columns[at].name} in its place; use restore, which does."
            )
        if not kept and {column.name.casefold() for column in gone} & {column.name.casefold() for column in made}:
            raise UnsupportedFeatureError(
                f"No column of {self._old.name} is in both states, so that none can be dropped first."
            )

    def _renames(self, kept: Sequence[tuple[Column, Column]]) -> Iterator[str]:
        """Each in an order in which its new name is free; in a circle, one gets a third name in between."""
        taken = {old.name.casefold() for old, _ in kept}
        waiting = [(old.name, new.name) for old, new in kept if self._sides.same and old.name != new.name]
        while waiting:
            at = next((at for at, (_, to) in enumerate(waiting) if to.casefold() not in taken), None)
            name, to = waiting.pop(at or 0)
            goal = to
            if at is None:
                to = free_name(name, [*taken, *(goal for _, goal in waiting), goal])
                waiting.append((to, goal))
            taken = taken - {name.casefold()} | {to.casefold()}
            yield f"RENAME COLUMN {quote_identifier(name)} TO {quote_identifier(to)}"

    def _initial(self, column: Column) -> str | None:
        """Value that existing rows have in an added column; rows of another table lack it."""
        return column.initial_default if self._sides.same else None

    def _name(self, old: Column | None, new: Column) -> str:
        """The name of a column once the table is altered; two tables may write it differently."""
        return quote_identifier(old.name if old is not None and not self._sides.same else new.name)

    @property
    def _table(self) -> str:
        """The table's name once it is altered."""
        return self._new.name if self._sides.same else self._old.name

    def _path(self, name: str) -> str:
        return ".".join(map(quote_identifier, (*path_parts(self._from.state.schema_of(self._old).name), name)))

    # Rows

    def _rows(self) -> Iterator[str]:
        """Return statements that change rows: deletions first, so that no new row is mistaken for a deleted one."""
        goes: RowKind = "inserted" if self._revert else "deleted"
        comes: RowKind = "deleted" if self._revert else "inserted"
        here, there = ("added", "removed") if self._revert else ("removed", "added")
        cells = [
            _Cell(place, self._name(old, new), new.data_type) for place, old, new in self._matched if new is not None
        ]
        by_place = {cell.place: cell for cell in cells}
        path = self._path(self._table)
        keys = [by_place[place] for place in places_of(self._changed.columns, self._key)]
        gone = self._changed.of_kind(here, goes)
        if gone.num_rows and keys:
            yield f"DELETE FROM {path} AS t USING ({_values(_listed(gone, keys))}) AS p({_names(keys)})\nWHERE {_equal(keys)}"
        elif gone.num_rows:
            ids = ", ".join(map(str, gone.column("rid").to_pylist()))
            yield f"DELETE FROM {path} WHERE rowid IN ({ids})"
        updated = self._changed.of_kind(there, "updated")
        for changed, rows in self._by_cells(updated):
            if set_here := [by_place[place] for place in changed if place in by_place]:
                yield self._update(path, rows, keys, set_here)
        new = self._changed.of_kind(there, comes)
        if new.num_rows:
            yield f"INSERT INTO {path} ({_names(cells)})\n{_values(_listed(new, cells))}"

    def _by_cells(self, updated: pa.Table) -> Iterator[tuple[list[int], pa.Table]]:
        """Updated rows by the columns whose cells differ, so that no other cell is written."""
        count = len(self._changed.columns)
        by_cells: dict[tuple[bool, ...], list[int]] = {}
        differs = [updated.column(f"d{place}").to_pylist() for place in range(count)]
        for row, cells in enumerate(zip(*differs, strict=True)):
            by_cells.setdefault(cells, []).append(row)
        for cells, rows in by_cells.items():
            yield list(compress(range(count), cells)), updated.take(pa.array(rows))

    def _update(self, path: str, rows: pa.Table, keys: Sequence[_Cell], cells: Sequence[_Cell]) -> str:
        sets = ", ".join(f"{cell.name} = CAST(p.{cell.name} AS {cell.kind.sql()})" for cell in cells)
        values = _listed(rows, [*keys, *cells])
        if keys:
            names, where = _names([*keys, *cells]), _equal(keys)
        else:
            number = free_name("row_id", [column.name for column in self._new.columns])
            ids = rows.column("rid").to_pylist()
            values = [(str(row_id), *cells) for row_id, cells in zip(ids, values, strict=True)]
            names, where = f"{number}, {_names(cells)}", f"t.rowid = p.{number}"
        return f"UPDATE {path} AS t SET {sets}\nFROM ({_values(values)}) AS p({names})\nWHERE {where}"

    # Words

    def _comment(self, *, altered: bool, empty: bool) -> Iterator[str]:
        name = _line(self._from.state.qualified_name(self._old))
        s = self._summary
        inserted, deleted = (s.deleted, s.inserted) if self._revert else (s.inserted, s.deleted)
        yield f"Turns {name} as of {_state(self._from)} into {self._goal()}: {inserted:,} rows inserted, {s.updated:,} updated, {deleted:,} deleted."
        if empty:
            yield "Nothing differs."
            return
        yield f"Run it with the lake in use (USE lake), where the table is as of {_state(self._from)}."
        if self._key:
            yield f"Rows are found by {_line(', '.join(self._key))}."
        else:
            yield "Rows are found by their row ids, which the lake has, and a copy of its files; no other table does."
        yield "It restores the names, types, defaults and NOT NULL of columns, and the values of rows."
        yield "It restores no row ids of inserted rows, which get new ones, and no comments, partition or sort keys."
        if altered:
            yield "Each ALTER TABLE commits by itself; the rows change in one transaction."

    def _goal(self) -> str:
        if self._sides.same:
            return f"what it is as of {_state(self._to)}"
        return f"{_line(self._to.state.qualified_name(self._new))} as of {_state(self._to)}"


def _state(side: Side) -> str:
    return f"snapshot {side.snapshot_id}" + ("" if side.staged is None else " with uncommitted changes")


def _line(text: str) -> str:
    """A text that ends no comment."""
    return " ".join(text.splitlines())


def _listed(rows: pa.Table, cells: Sequence[_Cell]) -> list[tuple[str, ...]]:
    return literals(rows.select([f"c{cell.place}" for cell in cells]), [cell.kind for cell in cells])


def _names(cells: Sequence[_Cell]) -> str:
    return ", ".join(cell.name for cell in cells)


def _equal(keys: Sequence[_Cell]) -> str:
    return " AND ".join(f"t.{key.name} IS NOT DISTINCT FROM CAST(p.{key.name} AS {key.kind.sql()})" for key in keys)


def _values(rows: Sequence[tuple[str, ...]]) -> str:
    return "VALUES\n" + ",\n".join(f"  ({', '.join(row)})" for row in rows)


def _addition(column: Column, initial: str | None) -> str:
    default = "" if initial is None else f" DEFAULT {quote_text(initial)}"
    return f"ADD COLUMN {quote_identifier(column.name)} {column.data_type.sql()}{default}"


def _default(column: Column) -> tuple[str | None, str]:
    """Return the value of rows that give none, and whether it is a literal or an expression."""
    text = None if column.default_value == "NULL" else column.default_value
    return text, "expression" if text is not None and column.default_value_type == "expression" else "literal"


def _set_default(name: str, column: Column) -> str:
    text, kind = _default(column)
    if text is None:
        return f"ALTER COLUMN {name} DROP DEFAULT"
    return f"ALTER COLUMN {name} SET DEFAULT {text if kind == 'expression' else quote_text(text)}"
