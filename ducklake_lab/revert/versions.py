"""Three versions of the rows that a snapshot changed, compared by one query in process or on Spark.

An operation says what becomes of a row: it is inserted, updated or deleted, or a conflict that no rule settles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.duckdb.casting import differs_sql
from ducklake_lab.duckdb.handing import python_rows, texts_to_show
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.errors import ConstraintError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.revert.conflicts import Conflict, TableRules

#: The column of operations, the last one.
OPERATION = "_ducklake_operation"


@dataclass(frozen=True, slots=True)
class Places:
    """Columns of the three versions, by their places in one list.

    Attributes:
        columns: all of them; those of today first.
        cells: those that all three versions have, in which a cell can be taken back.
        kept: those of today that the snapshot did not add.
        returned: those that only the earlier version has, and which come back.
        target: those that the table has afterwards, in order.
    """

    columns: Sequence[Column]
    cells: Sequence[int]
    kept: Sequence[int]
    returned: Sequence[int]
    target: Sequence[int]


def side(rows: Rows, count: int) -> Rows:
    """Rows of one version under the names that the queries use: rid, file_id, place, c0, c1, …"""
    names = [f"c{i}" for i in range(count)]
    found = rows.first(count + len(VIRTUAL_COLUMNS), [*names, "file_id", "place", "rid", "snapshot_id"])
    return found.query(f"SELECT {', '.join(['rid', 'file_id', 'place', *names])} FROM rows")


def only(rows: Rows, ids: Rows) -> Rows:
    """Rows of a version whose row ids are among some, in the column `rid`."""
    return rows.query("SELECT * FROM rows WHERE rid IN (SELECT rid FROM ids)", ids=ids)


def row_ids(removed: Rows, added: Rows) -> Rows:
    """The row ids of both sides, each once."""
    return removed.query("SELECT rid FROM rows UNION SELECT rid FROM added", added=added)


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of the rows that a snapshot changed.

    Attributes:
        removed: as they were before it; see `side`.
        added: as they were after it, in the places of then.
        gone: row ids of those that are no longer in these places; None where all are.
        moved: those that are in other places today, as they are; None where none is.
    """

    removed: Rows
    added: Rows
    gone: Rows | None = None
    moved: Rows | None = None

    def compared(self, places: Places) -> Rows:
        """Return the rows with their three versions, and which of these differ.

        Columns: rid, file_id, place, had, got, has, p0…, s0…, n0… (before, then, now), then whether values differ: ps<i> and
        np<i> of cells, ns<i> of kept columns, pn<i> of those that come back. Rows that are in their places have only ps<i>.
        """

        def differs(one: str, other: str, listed: Sequence[int]) -> list[str]:
            kinds = ((i, places.columns[i].data_type) for i in listed)
            return [f"{differs_sql(f'{one}{i}', f'{other}{i}', kind)} AS {one}{other}{i}" for i, kind in kinds]

        found = [*differs("p", "s", places.cells), *differs("p", "n", places.returned)]
        if self.moved is not None:
            found += [*differs("n", "s", sorted({*places.cells, *places.kept})), *differs("n", "p", places.cells)]
        joined = self._joined(len(places.columns))
        return joined.query(f"SELECT *, {', '.join(found)} FROM rows") if found else joined

    def decided(self, compared: Rows, places: Places, rules: TableRules) -> Rows:
        """Return compared rows with what becomes of them.

        Columns are added: op, and u<i>, x<i>, a<i> for each cell: the snapshot changed it, it conflicts, it is taken back.
        """
        return _with_operations(compared, places, rules, has_moved=self.moved is not None)

    def _joined(self, count: int) -> Rows:
        every = range(count)
        old = "".join(f", p.c{i} AS p{i}" for i in every)
        then = "".join(f", s.c{i} AS s{i}" for i in every)
        pairs = (
            "SELECT coalesce(p.rid, s.rid) AS rid, s.file_id, s.place, p.rid IS NOT NULL AS had, s.rid IS NOT NULL AS got"
            f"{old}{then} FROM rows AS p FULL JOIN added AS s ON p.rid = s.rid"
        )
        if self.moved is None and self.gone is None:
            now = "".join(f", s{i} AS n{i}" for i in every)
            return self.removed.query(f"SELECT *, got AS has{now} FROM ({pairs})", added=self.added)
        others: dict[str, Rows] = {"added": self.added}
        joins, stays, moved = "", "v.got", "false"
        if self.gone is not None:
            others["gone"] = self.gone
            joins += " LEFT JOIN gone AS g ON v.rid = g.rid"
            stays = "v.got AND g.rid IS NULL"
        values = [f"v.s{i} AS n{i}" for i in every]
        spot = ["v.file_id", "v.place"]
        if self.moved is not None:
            others["moved"] = self.moved
            joins += " LEFT JOIN moved AS m ON v.rid = m.rid"
            moved = "m.rid IS NOT NULL"
            values = [f"CASE WHEN m.rid IS NOT NULL THEN m.c{i} ELSE v.s{i} END AS n{i}" for i in every]
            spot = [
                f"CASE WHEN m.rid IS NOT NULL THEN m.{name} ELSE v.{name} END AS {name}"
                for name in ("file_id", "place")
            ]
        same = "".join(f", v.p{i}, v.s{i}" for i in every)
        return self.removed.query(
            f"SELECT v.rid, {', '.join(spot)}, v.had, v.got, ({moved}) OR ({stays}) AS has{same}, {', '.join(values)} "
            f"FROM ({pairs}) AS v{joins}",
            **others,
        )


def _with_operations(compared: Rows, places: Places, rules: TableRules, *, has_moved: bool) -> Rows:
    def any_of(conditions: Sequence[str]) -> str:
        return f"({' OR '.join(conditions)})" if conditions else "false"

    settled = _Settled(rules, places.columns)
    changed = [f"had AND got AND ps{i} AS u{i}" for i in places.cells]
    if has_moved:
        again = [f"u{i} AND has AND ns{i} AND np{i} AS x{i}" for i in places.cells]
        back = [
            f"u{i} AND has AND np{i} AND (NOT x{i} OR {settled.cell(i)} IS NOT DISTINCT FROM 'revert') AS a{i}"
            for i in places.cells
        ]
    else:
        again = [f"false AS x{i}" for i in places.cells]
        back = [f"u{i} AND has AS a{i}" for i in places.cells]
    since_insert = any_of([f"ns{i}" for i in places.kept]) if has_moved else "false"
    moved = (
        f"CASE WHEN had AND got THEN NOT has AND {any_of([f'u{i}' for i in places.cells])} "
        f"ELSE got AND has AND {since_insert} END AS moved"
    )
    open_cells = any_of([f"x{i} AND {settled.cell(i)} IS NULL" for i in places.cells])
    is_back = any_of([*(f"a{i}" for i in places.cells), *(f"pn{i}" for i in places.returned)])
    reverts = f"{settled.row} IS NOT DISTINCT FROM 'revert'"
    operation = (
        f"CASE WHEN (moved AND {settled.row} IS NULL) OR {open_cells} THEN 'conflict' "
        f"WHEN had AND got AND has THEN CASE WHEN {is_back} THEN 'update' END "
        f"WHEN had AND got THEN CASE WHEN moved AND {reverts} THEN 'insert' END "
        f"WHEN got THEN CASE WHEN has AND (NOT moved OR {reverts}) THEN 'delete' END "
        "WHEN NOT has THEN 'insert' END AS op"
    )
    source, given = "rows", "SELECT *"
    others: dict[str, Rows] = {}
    if settled.given is not None:
        others["rules"] = settled.given
        source, given = "rows AS v LEFT JOIN rules AS r ON v.rid = r.rule_rid", "SELECT v.*, r.* EXCLUDE (rule_rid)"
    found = f"{given} FROM {source}"
    found = f"SELECT *{''.join(f', {one}' for one in changed)} FROM ({found})"
    found = f"SELECT *, {', '.join([moved, *again])} FROM ({found})"
    if back:
        found = f"SELECT *, {', '.join(back)} FROM ({found})"
    return compared.query(f"SELECT *, {operation} FROM ({found})", **others)


class _Settled:
    """The rules as expressions over the rows: literals, and columns of a table of rules where some are for rows.

    Attributes:
        row: the rule for the row.
        given: rules by row id: rule_rid, rule, rule0, …; None where none is for a row.
    """

    def __init__(self, rules: TableRules, columns: Sequence[Column]) -> None:
        self._rules = rules
        self._columns = columns
        folded = {column.name.casefold(): i for i, column in reversed(list(enumerate(columns)))}
        self._named = {name: folded[name] for cells in rules.cells.values() for name in cells}
        self.given: Rows | None = None
        if rules.rows or rules.cells:
            ids = sorted({*rules.rows, *rules.cells})
            data = {"rule_rid": pa.array(ids, pa.int64()), "rule": _texts(rules.rows.get(i) for i in ids)}
            for name, place in self._named.items():
                data[f"rule{place}"] = _texts(rules.cells.get(i, {}).get(name) for i in ids)
            self.given = InMemory(pa.table(data))
        self.row = self._expression([*(["rule"] if self.given is not None else []), _literal(rules.whole)])

    def cell(self, place: int) -> str:
        """The rule for a cell of the row."""
        parts = [f"rule{place}"] if place in self._named.values() else []
        if self.given is not None:
            parts.append("rule")
        return self._expression([*parts, _literal(self._rules.of_column(self._columns[place].name))])

    def _expression(self, parts: Sequence[str]) -> str:
        return f"coalesce({', '.join(parts)})" if len(parts) > 1 else parts[0]


def _texts(values: object) -> pa.Array:
    return pa.array(list(values), pa.string())  # type: ignore[call-overload]


def _literal(rule: str | None) -> str:
    return "CAST(NULL AS VARCHAR)" if rule is None else f"'{rule}'"


def operations(found: Rows, places: Places) -> Rows:
    """Return the rows that change: the virtual columns, the columns of the table afterwards, then `OPERATION`."""
    values = []
    for number, i in enumerate(places.target):
        if i in places.returned:
            value = f"CASE WHEN had THEN p{i} ELSE n{i} END"
        elif i in places.cells:
            value = f"CASE WHEN op = 'insert' OR a{i} THEN p{i} ELSE n{i} END"
        else:
            value = f"CASE WHEN op = 'insert' THEN p{i} ELSE n{i} END"
        values.append(f"{value} AS t{number}")
    spot = [
        "CASE WHEN op = 'insert' THEN NULL ELSE file_id END AS file_id",
        "CASE WHEN op = 'insert' THEN NULL ELSE place END AS place",
    ]
    listed = ", ".join([*spot, "rid", "CAST(NULL AS BIGINT) AS snapshot_id", *values, f"op AS {OPERATION}"])
    return found.query(f"SELECT {listed} FROM rows WHERE op IS NOT NULL")


def chosen(made: Rows, kinds: Sequence[str], names: Sequence[str]) -> Rows:
    """The rows with some operations, as an UPDATE finds them: the virtual columns, then the table's under their names."""
    found = [*VIRTUAL_COLUMNS, *names]
    return made.pick(OPERATION, kinds, [OPERATION]).first(len(found), found)


def filled_sql(columns: Sequence[tuple[int, Column]]) -> str:
    """SQL that counts the rows of `moved` whose value in a column is another than in `rows`, or than the first default.

    Args:
        columns: each with its place.
    """
    counts = []
    for i, column in columns:
        kind = column.data_type.sql()
        text = "NULL" if column.initial_default is None else quote_text(column.initial_default)
        value = f"CASE WHEN s.rid IS NULL THEN CAST({text} AS {kind}) ELSE s.c{i} END"
        differs = differs_sql(f"m.c{i}", value, column.data_type)
        counts.append(f"count(CASE WHEN m.c{i} IS NOT NULL AND {differs} THEN 1 END) AS n{i}")
    return f"SELECT {', '.join(counts)} FROM moved AS m LEFT JOIN rows AS s ON m.rid = s.rid"


def carried(removed: Rows, moved: Rows, places: Places) -> Rows:
    """Operations that give rows, written anew without columns that come back, the values of then.

    Args:
        removed: the rows as they were before; see `side`.
        moved: the rows that are in other places today.
    """
    lost = " OR ".join(differs_sql(f"p.c{i}", f"m.c{i}", places.columns[i].data_type) for i in places.returned)
    values = "".join(
        f", {'p' if i in places.returned else 'm'}.c{i} AS t{number}" for number, i in enumerate(places.target)
    )
    return removed.query(
        f"SELECT m.file_id, m.place, m.rid, CAST(NULL AS BIGINT) AS snapshot_id{values}, 'update' AS {OPERATION} "
        f"FROM rows AS p JOIN moved AS m ON p.rid = m.rid WHERE {lost}",
        moved=moved,
    )


def conflicts(
    found: Rows, places: Places, rules: TableRules, title: str, most: int, time_zone: str
) -> tuple[list[Conflict], int]:
    """List the conflicts of rows that no rule settles, by row id, and count all of them.

    Args:
        most: how many are listed.
    """
    settled = _Settled(rules, places.columns)
    of_row = f"moved AND {settled.row} IS NULL"
    cells = {i: f"x{i} AND {settled.cell(i)} IS NULL" for i in places.cells}
    count = " + ".join(f"CASE WHEN {condition} THEN 1 ELSE 0 END" for condition in (of_row, *cells.values()))
    source = "FROM rows WHERE op = 'conflict'"
    total = found.query(f"SELECT CAST(sum({count}) AS BIGINT) AS n {source}").arrow().column("n")[0].as_py()
    flags = "".join(f", {cell} AS y{i}, u{i}" for i, cell in cells.items())
    values = "".join(f", p{i}, s{i}, n{i}" for i in range(len(places.columns)))
    listed = found.query(
        f"SELECT rid, had, got, {of_row} AS moved{flags}{values} {source} ORDER BY rid LIMIT {most:d}"
    ).arrow()
    noted: list[Conflict] = []
    for row in _rows(listed, time_zone):
        noted += _of_row(dict(zip(listed.column_names, row, strict=True)), places, title)
    return noted[:most], int(total)


def _rows(table: pa.Table, time_zone: str) -> Iterable[Sequence[object]]:
    """The rows as Python values, or as DuckDB's texts where Python cannot hold one."""
    try:
        return python_rows(table, time_zone)
    except ConstraintError:
        flags = [name[0] in "pns" for name in table.column_names]
        plain = [column.to_pylist() for column in table.columns]
        texts = texts_to_show(table, time_zone)
        return zip(*(text if flag else own for flag, text, own in zip(flags, texts, plain, strict=True)), strict=True)


def _of_row(row: Mapping[str, object], places: Places, title: str) -> list[Conflict]:
    row_id = int(str(row["rid"]))
    names = {i: column.name for i, column in enumerate(places.columns)}
    if not row["moved"]:
        return [
            Conflict(title, row_id, names[i], row[f"p{i}"], row[f"s{i}"], row[f"n{i}"], "changed since")
            for i in places.cells
            if row[f"y{i}"]
        ]

    def cells(version: str, listed: Sequence[int]) -> dict[str, object]:
        return {names[i]: row[f"{version}{i}"] for i in listed}

    if row["had"] and row["got"]:
        changed = [i for i in places.cells if row[f"u{i}"]]
        return [
            Conflict(title, row_id, None, cells("p", changed), cells("s", changed), None, "updated, and deleted since")
        ]
    return [
        Conflict(
            title, row_id, None, None, cells("s", places.kept), cells("n", places.kept), "inserted, and changed since"
        )
    ]
