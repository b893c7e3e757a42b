"""The diff of two answers: the rows of one query at two snapshots, paired by columns that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.diff.group_steps import group_steps
from ducklake_lab.diff.model import ColumnChange, ColumnSteps, GroupStep, RowChange, RowChoice
from ducklake_lab.diff.row_diff import RowDiff, in_json
from ducklake_lab.diff.rows import ChangedRows
from ducklake_lab.duckdb.casting import EQUAL_APART, has_part, told_apart
from ducklake_lab.duckdb.literals import literals
from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import (
    BindError,
    EntryNotFoundError,
    UnsupportedFeatureError,
    UsageError,
    did_you_mean,
)
from ducklake_lab.model.entries import Column, SnapshotInfo
from ducklake_lab.model.labels import distinct
from ducklake_lab.model.types import FLOATS, INTEGERS, NESTED, DataType, from_field
from ducklake_lab.redaction import hide
from ducklake_lab.sql.planning.group_rows import GroupRows

#: Columns that are tried as a key, from the left.
_TRIED = 16
#: Types whose values DuckDB does not group.
_NO_KEYS = ("variant", "geometry")


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a query at a snapshot.

    Attributes:
        rows: in the Arrow forms of their types.
        grouped: positions of the columns by which the query groups; () where it does not.
        computed: positions of columns that name no row, such as those with aggregates.
    """

    snapshot: SnapshotInfo
    rows: pa.Table
    grouped: tuple[int, ...] = ()
    computed: frozenset[int] = frozenset()


class AnswerDiff(RowDiff):
    """Difference of a query's answers at two snapshots; it stays as it was computed.

    Rows are paired by `key`. Without a key, answers of one row are that row before and after; of others, equal rows are
    left out, as often as both have them, and the rest was deleted or inserted. Changed numbers have their `steps`: the
    later value minus the earlier one.

    Attributes:
        table: the query.
        key: the columns by which rows were paired, given or found; ().
        groups: what the query groups; None where its rows stand for no groups.
        ask: returns the diff of another query's answers at the same snapshots, paired by a key.
        is_behind: the rows are those behind a row of another answer.
    """

    groups: GroupRows | None = None
    ask: Callable[[str, Sequence[str]], AnswerDiff] | None = None
    is_behind: bool = False

    @cached_property
    def group_steps(self) -> tuple[ColumnSteps, ...]:
        if not self.key or self.is_behind:
            return ()
        added = {change.column_id for change in self.schema if change.kind == "added"}
        return group_steps(self._changed, self._counts, self.key, added)

    @property
    def has_sources(self) -> bool:
        """Return whether the rows behind a changed row can be compared."""
        retyped = {change.column_id for change in self.schema if change.kind != "added"}
        return self.ask is not None and self.groups is not None and not retyped & set(self.groups.keys)

    def sources(self, row: RowChange | GroupStep) -> AnswerDiff:
        """Returns the diff of the group of rows behind a changed row, at the same two snapshots.

        Rows of a table are paired by row id. One that went to another group is deleted here, and inserted there.

        Raises:
            UnsupportedFeatureError: the query has no GROUP BY whose columns it shows, and is no aggregate of all rows; or a
                column of GROUP BY has another type in one of the answers.
        """
        if self.groups is None or self.ask is None or not self.has_sources:
            raise UnsupportedFeatureError(
                "The rows behind a row are those of a group; ask SELECT … GROUP BY with the columns that it groups by."
            )
        values = self._groups_of(row.row_id, self.groups)
        behind = None
        if self.groups.has_ids:
            with suppress(BindError, EntryNotFoundError, UsageError):  # a view has no row ids
                behind = self.ask(self.groups.text(values, ids=True), ["rowid"])
        if behind is None:
            behind = self.ask(self.groups.text(values, ids=False), ())
        behind.is_behind = True
        return behind

    def _groups_of(self, row_id: int, groups: GroupRows) -> list[tuple[str, ...]]:
        """Returns the values of a row's keys before and after, as SQL."""
        places = list(groups.keys)
        kinds = [self._changed.columns[place].data_type for place in places]
        keys: list[tuple[str, ...]] = []
        for side in self._changed.tables["removed"], self._changed.tables["added"]:
            own = side.filter(pc.equal(side.column("rid"), row_id)).select([f"c{place}" for place in places])
            for values in literals(own, kinds):
                typed = (f"CAST({value} AS {kind.sql()})" for value, kind in zip(values, kinds, strict=True))
                keys.append(tuple(typed))
        return list(dict.fromkeys(keys))

    def statement(self, choice: RowChoice, limit: int | None = None, offset: int = 0) -> str:
        return ""

    def to_dict(self, rows: int = 50) -> dict[str, Any]:
        plain: dict[str, Any] = in_json(
            {
                "query": self.table,
                "start": self.start.snapshot_id,
                "end": self.end.snapshot_id if self.end is not None else None,
                "key": list(self.key),
                "schema": [asdict(change) for change in self.schema],
                "summary": asdict(self.summary),
                "columns": [asdict(column) for column in self.columns],
                "patterns": [asdict(pattern) for pattern in self.patterns],
                "rows": [asdict(row) for row in self.rows(rows)],
            }
        )
        return plain

    def __repr__(self) -> str:
        s = self.summary
        return (
            f"<Diff of answers, {self.start.snapshot_id} to {self.end.snapshot_id if self.end else ''}: "
            f"{s.deleted:,} deleted, {s.inserted:,} inserted, {s.updated:,} updated, {s.unchanged:,} unchanged>"
        )


def diff_answers(query: str, before: Answer, after: Answer, *, key: Sequence[str] = (), time_zone: str) -> AnswerDiff:
    """The diff of two answers.

    Args:
        query: its text, for people.
        key: columns by which rows are paired; else those of GROUP BY, else the first columns that are unique.
        time_zone: in which times are shown.

    Raises:
        EntryNotFoundError: an answer has no column of the key.
        UsageError: the key is not unique in one of the answers.
    """
    aligned = Aligned(before.rows, after.rows)
    places = [aligned.place(name) for name in key] or aligned.key(after.grouped, after.computed)
    removed, added = aligned.sides if places else aligned.numbered()
    changed = ChangedRows(
        removed,
        added,
        aligned.columns,
        only_before=aligned.only_before,
        key=[aligned.columns[place].name for place in places],
        time_zone=time_zone,
        steps=True,
    )
    counts = changed.count()
    return AnswerDiff(
        table=" ".join(hide(query).split()),
        start=before.snapshot,
        end=after.snapshot,
        schema=aligned.schema,
        summary=counts.summary(after.rows.num_rows),
        counts=counts,
        changed=changed,
        key=tuple(aligned.columns[place].name for place in places),
    )


class Aligned:
    """Both answers under one list of columns, matched by name: the later ones, then those only the earlier one has.

    Columns of two types are compared as the wider of two integers, or else as texts.

    Attributes:
        columns: of both.
        only_before: how many of them, at the end, only the earlier answer has.
        schema: columns that differ.
        sides: the earlier and the later rows: c0, c1, …
    """

    def __init__(self, before: pa.Table, after: pa.Table) -> None:
        old, new = _named(before), _named(after)
        self.schema: list[ColumnChange] = []
        matched: list[tuple[str, DataType, int | None, int | None]] = []
        for place, (folded, (name, kind)) in enumerate(new.items()):
            was = list(old).index(folded) if folded in old else None
            then = old.get(folded)
            shared = kind
            if then is None:
                self.schema.append(ColumnChange("added", place, None, (name, kind.sql())))
            elif then[1] != kind:
                self.schema.append(ColumnChange("retyped", place, (then[0], then[1].sql()), (name, kind.sql())))
                shared = _shared(then[1], kind)
            matched.append((name, shared, was, place))
        for place, (folded, (name, kind)) in enumerate(old.items()):
            if folded not in new:
                self.schema.append(ColumnChange("dropped", len(matched), (name, kind.sql()), None))
                matched.append((name, kind, place, None))
        self.only_before = len(matched) - len(new)
        self.columns = [Column.build(name, kind, 1000 * i) for i, (name, kind, _, _) in enumerate(matched)]
        self._in_both = [i for i, (_, _, was, now) in enumerate(matched) if was is not None and now is not None]
        self.sides = (
            _side(before, [(kind, was) for _, kind, was, _ in matched]),
            _side(after, [(kind, now) for _, kind, _, now in matched]),
        )

    def place(self, name: str) -> int:
        """The place of a column that both answers have.

        Raises:
            EntryNotFoundError: one of them lacks it.
        """
        names = [self.columns[i].name for i in self._in_both]
        folded = [name.casefold() for name in names]
        if name not in names and name.casefold() not in folded:
            hint = did_you_mean(name, names)
            raise EntryNotFoundError(f'The answers have no column "{name}" to pair rows by.{hint}')
        return self._in_both[names.index(name) if name in names else folded.index(name.casefold())]

    def key(self, grouped: Sequence[int], computed: Collection[int]) -> list[int]:
        """Places of columns that are unique in both answers: the grouped ones, or the first that are; [] without any."""
        if grouped and all(place in self._in_both for place in grouped) and self._is_unique(grouped):
            return list(grouped)
        if max(side.num_rows for side in self.sides) <= 1:
            return []
        usable = [
            place for place in self._in_both if place not in computed and _may_be_key(self.columns[place].data_type)
        ][:_TRIED]
        single = ([place] for place in usable)
        several = (usable[:length] for length in range(2, len(usable) + 1))
        # with a key of all columns, no row could be updated
        tried = (places for places in chain(single, several) if len(places) < len(self.columns))
        return next(filter(self._is_unique, tried), [])

    def _is_unique(self, places: Sequence[int]) -> bool:
        listed = ", ".join(f"c{place}" for place in places)
        sql = f"SELECT 1 FROM t GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
        return not any(engine.evaluate(sql, {"t": side}).num_rows for side in self.sides)

    def numbered(self) -> tuple[pa.Table, pa.Table]:
        """Both sides with numbers in `rid`: one row each is that row; else rows that the other side lacks, each its own.

        Raises:
            UnsupportedFeatureError: DuckDB compares no rows with variants.
        """
        old, new = self.sides
        if max(old.num_rows, new.num_rows) <= 1:
            return _with_ids(old, 0), _with_ids(new, 0)
        if any(has_part(column.data_type, _NO_KEYS) for column in self.columns):
            raise UnsupportedFeatureError(
                "Rows with a VARIANT or GEOMETRY are paired by columns; name some that are unique, with key=… or --key."
            )
        gone = self.beyond(old, new)
        return _with_ids(gone, 0), _with_ids(self.beyond(new, old), gone.num_rows)

    def beyond(self, mine: pa.Table, other: pa.Table) -> pa.Table:
        """The rows that one side has more often than the other one."""
        later = range(len(self.columns) - self.only_before)
        values = {f"k{i}": f"c{i}" for i in later}
        kinds = {i: self.columns[i].data_type for i in later if has_part(self.columns[i].data_type, EQUAL_APART)}
        values |= {f"x{i}": told_apart(f"c{i}", kind) for i, kind in kinds.items()}
        listed = ", ".join(f"{value} AS {name}" for name, value in values.items())
        names = ", ".join(values)
        equal = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in values)
        everything = ", ".join(f"a.c{i}" for i in range(len(self.columns)))
        return engine.evaluate(
            f"SELECT {everything} FROM (SELECT *, row_number() OVER (PARTITION BY {names}) AS n FROM (SELECT *, {listed} "
            f"FROM mine)) AS a LEFT JOIN (SELECT {names}, count(*) AS n FROM (SELECT {listed} FROM other) GROUP BY {names}) "
            f"AS b ON {equal} WHERE a.n > coalesce(b.n, 0) ORDER BY ALL",
            {"mine": mine, "other": other},
        )


def _named(table: pa.Table) -> dict[str, tuple[str, DataType]]:
    """Names, as they are shown, and types of an answer's columns, by folded name; repeated names are numbered."""
    names = distinct(field.name for field in table.schema)
    folded = distinct(name.casefold() for name in names)
    kinds = [from_field(field) for field in table.schema]
    return dict(zip(folded, zip(names, kinds, strict=True), strict=True))


def _may_be_key(kind: DataType) -> bool:
    """Whether a column of the type may name rows; fractions measure them, and are unique by chance."""
    return kind.decimal is None and not has_part(kind, (*NESTED, *FLOATS, *_NO_KEYS))


def _shared(old: DataType, new: DataType) -> DataType:
    if old.name in INTEGERS and new.name in INTEGERS and "uint128" not in (old.name, new.name):
        return DataType("int128")
    return DataType("varchar")


def _side(rows: pa.Table, chosen: Sequence[tuple[DataType, int | None]]) -> pa.Table:
    """The chosen columns of an answer, by place, in their types: c0, c1, …; NULL where it has none."""
    arrays, fields = [], []
    for i, (kind, place) in enumerate(chosen):
        if place is None:
            arrays.append(pa.nulls(rows.num_rows, kind.arrow()))
            fields.append(kind.field(f"c{i}"))
            continue
        values, field = rows.column(place), rows.schema.field(place)
        if from_field(field) != kind:
            alone = pa.table([values], schema=pa.schema([field.with_name("v")]))
            cast = engine.evaluate(f"SELECT CAST(v AS {kind.sql()}) AS v FROM t", {"t": alone})
            values, field = cast.column(0), cast.schema.field(0)
        arrays.append(values)
        fields.append(field.with_name(f"c{i}"))
    return pa.table(arrays, schema=pa.schema(fields))


def _with_ids(rows: pa.Table, first: int) -> pa.Table:
    ids = pa.array(range(first, first + rows.num_rows), pa.int64())
    return rows.add_column(0, pa.field("rid", pa.int64()), ids)


def is_same(before: pa.Table, after: pa.Table) -> bool:
    """Whether two answers have equal columns, and equal rows in any order."""
    if before.num_rows != after.num_rows or _named(before) != _named(after):
        return False
    aligned = Aligned(_comparable(before), _comparable(after))
    beyond: int = aligned.beyond(*aligned.sides).num_rows
    return beyond == 0


def _comparable(rows: pa.Table) -> pa.Table:
    """The rows with texts in place of values that DuckDB does not group."""
    kinds = [from_field(field) for field in rows.schema]
    if not any(has_part(kind, _NO_KEYS) for kind in kinds):
        return rows
    names = [f"v{i}" for i in range(len(kinds))]
    items = [f"CAST({n} AS VARCHAR) AS {n}" if has_part(k, _NO_KEYS) else n for n, k in zip(names, kinds, strict=True)]
    compared = engine.evaluate(f"SELECT {', '.join(items)} FROM t", {"t": rows.rename_columns(names)})
    return compared.rename_columns(distinct(rows.column_names))


def in_one_column(answers: Sequence[pa.Table | None]) -> tuple[pa.ChunkedArray, pa.Field]:
    """Answers as values of one type, in a column `answer`; NULL for None.

    Each answer's only value; or a STRUCT, where no answer has several rows; or a LIST of STRUCT. They are DuckDB's texts
    of that where the answers' columns, or their types, differ.
    """
    present = [answer for answer in answers if answer is not None]
    one_row = all(answer.num_rows <= 1 for answer in present)
    one_value = one_row and all(answer.num_columns == 1 for answer in present)
    shown = "first(r.v)" if one_value else "first(r)" if one_row else "coalesce(list(r), [])"
    if len({_form(answer, named=not one_value) for answer in present}) > 1:
        shown = f"CAST({shown} AS VARCHAR)"
    rows = {}
    for i, answer in enumerate(answers):
        if answer is not None:
            names = ["v"] if one_value else distinct(answer.column_names)
            rows[i] = engine.evaluate(f"SELECT {shown} AS answer FROM r", {"r": answer.rename_columns(names)})
    field = next(iter(rows.values())).schema.field(0) if rows else pa.field("answer", pa.string())
    nothing = pa.nulls(1, field.type)
    parts = [rows[i].column(0).combine_chunks() if i in rows else nothing for i in range(len(answers))]
    return pa.chunked_array(parts, field.type), field


def _form(answer: pa.Table, *, named: bool) -> tuple[object, ...]:
    kinds = [kind for _, kind in _named(answer).values()]
    return (*kinds, *(answer.column_names if named else ()))
