"""Three versions of rows, compared by one query in process or on Spark: where both sides began, theirs, and ours.

An operation says what becomes of a row: it is inserted, updated or deleted, or a conflict that no rule settles. In the
queries a version is one letter: `t` theirs, `b` the base, `o` ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.duckdb.casting import differs_sql
from ducklake_lab.duckdb.handing import python_rows, texts_to_show
from ducklake_lab.engine.changes import numbered
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.errors import ConstraintError
from ducklake_lab.merging.conflicts import Conflict, Reason, TableRules, Words
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.staged import VIRTUAL_COLUMNS

#: The column of operations, the last one. `new` inserts a row under a new id, `insert` under its own.
OPERATION = "_ducklake_operation"


@dataclass(frozen=True, slots=True)
class Places:
    """Columns of the three versions, by their places in one list.

    Attributes:
        columns: all of them; ours first.
        cells: those that all three versions have, whose cells are merged.
        kept: those of ours that theirs did not drop.
        came: those that only theirs has, and which come.
        target: those that the table has afterwards, in order.
    """

    columns: Sequence[Column]
    cells: Sequence[int]
    kept: Sequence[int]
    came: Sequence[int]
    target: Sequence[int]


def side(rows: Rows, count: int) -> Rows:
    """Rows of one version under the names that the queries use: rid, file_id, place, c0, c1, …"""
    return numbered(rows, count).query(f"SELECT {_listed(count)} FROM rows")


def _listed(count: int) -> str:
    return ", ".join(["rid", "file_id", "place", *(f"c{i}" for i in range(count))])


def with_returned(theirs: Rows, moved: Rows, deleted: Rows, count: int) -> Rows:
    """Adds rows to an earlier version that were deleted before it and have come back since, as they were last.

    Args:
        theirs: see `side`.
        moved: rows that were written since.
        deleted: all rows that were deleted up to the version, with the snapshots that did.
        count: of the columns.
    """
    listed = _listed(count)
    last = numbered(deleted, count).query(
        f"SELECT {listed} FROM (SELECT *, row_number() OVER (PARTITION BY rid ORDER BY snapshot_id DESC) AS n FROM rows "
        "WHERE rid IN (SELECT rid FROM moved) AND rid NOT IN (SELECT rid FROM theirs)) WHERE n = 1",
        moved=moved,
        theirs=theirs,
    )
    return theirs.query(f"SELECT {listed} FROM rows UNION ALL SELECT {listed} FROM last", last=last)


def with_values(rows: Rows, known: Rows, places: Collection[int], count: int) -> Rows:
    """Give rows the values of known ones with their ids, in the columns at some places.

    Args:
        count: of the columns.
    """
    values = (
        f"CASE WHEN k.rid IS NOT NULL THEN k.c{i} ELSE r.c{i} END AS c{i}" if i in places else f"r.c{i}"
        for i in range(count)
    )
    return rows.query(
        f"SELECT {', '.join(['r.rid', 'r.file_id', 'r.place', *values])} FROM rows AS r LEFT JOIN known AS k ON r.rid = k.rid",
        known=known,
    )


def only(rows: Rows, ids: Rows) -> Rows:
    """Rows of a version whose row ids are among some, in the column `rid`."""
    return rows.query("SELECT * FROM rows WHERE rid IN (SELECT rid FROM ids)", ids=ids)


def row_ids(theirs: Rows, base: Rows, first_new: int | None) -> Rows:
    """The row ids of both versions that ours can have, each once.

    Args:
        first_new: from which row id on theirs are not ours; None where all are.
    """
    shared = "" if first_new is None else f" WHERE rid < {first_new:d}"
    return theirs.query(f"SELECT rid FROM rows{shared} UNION SELECT rid FROM base{shared}", base=base)


def changed_since(theirs: Rows, base: Rows, places: Places, first_new: int) -> Rows:
    """The number `n` of rows that came with an earlier merge and that theirs changed since; others only moved.

    Args:
        first_new: from which row id on theirs are not ours.
    """
    differs = [differs_sql(f"b.c{i}", f"t.c{i}", column.data_type) for i, column in enumerate(places.columns)]
    return base.query(
        "SELECT count(*) AS n FROM rows AS b LEFT JOIN theirs AS t ON b.rid = t.rid "
        f"WHERE b.rid >= {first_new:d} AND (t.rid IS NULL OR {' OR '.join(differs)})",
        theirs=theirs,
    )


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of the rows that theirs changed.

    Attributes:
        theirs: see `side`.
        base: in the places that they had where both sides began.
        first_new: from which row id on theirs are not ours; None where all are.
        gone: row ids of those that are no longer in these places; None where all are.
        moved: those that are in other places of ours, as they are; None where none is.
        placed: the places of the base are places of ours.
    """

    theirs: Rows
    base: Rows
    first_new: int | None = None
    gone: Rows | None = None
    moved: Rows | None = None
    placed: bool = True

    def compared(self, places: Places) -> Rows:
        """Return the rows with their three versions, and which of these differ.

        Columns: rid, file_id, place, in_theirs, in_base, in_ours, t0…, b0…, o0…, then whether values differ: tb<i> and ot<i>
        of cells and columns that come, ob<i> of kept columns, to<i> of those that come. Rows that are in their places have only tb<i>.
        """

        def differs(one: str, other: str, listed: Sequence[int]) -> list[str]:
            kinds = ((i, places.columns[i].data_type) for i in listed)
            return [f"{differs_sql(f'{one}{i}', f'{other}{i}', kind)} AS {one}{other}{i}" for i, kind in kinds]

        differing = [*differs("t", "b", [*places.cells, *places.came]), *differs("t", "o", places.came)]
        if self.moved is not None:
            differing += [*differs("o", "b", sorted({*places.cells, *places.kept})), *differs("o", "t", places.cells)]
        joined = self._joined(len(places.columns))
        return joined.query(f"SELECT *, {', '.join(differing)} FROM rows") if differing else joined

    def decided(self, compared: Rows, places: Places, rules: TableRules) -> Rows:
        """Return compared rows with what becomes of them.

        Columns are added: op, and u<i>, x<i>, a<i> for each cell: theirs changed it, it conflicts, theirs is taken.
        """
        return _with_operations(compared, places, rules, self.first_new, has_moved=self.moved is not None)

    def _joined(self, count: int) -> Rows:
        every = range(count)
        theirs = "".join(f", t.c{i} AS t{i}" for i in every)
        base = "".join(f", b.c{i} AS b{i}" for i in every)
        pairs = (
            "SELECT coalesce(t.rid, b.rid) AS rid, b.file_id, b.place, t.rid IS NOT NULL AS in_theirs, "
            f"b.rid IS NOT NULL AS in_base{theirs}{base} FROM rows AS t FULL JOIN base AS b ON t.rid = b.rid"
        )
        if self.placed and self.moved is None and self.gone is None:
            ours = "".join(f", b{i} AS o{i}" for i in every)
            return self.theirs.query(f"SELECT *, in_base AS in_ours{ours} FROM ({pairs})", base=self.base)
        others: dict[str, Rows] = {"base": self.base}
        joins, moved, stays = "", "false", "v.in_base" if self.placed else "false"
        if self.gone is not None:
            others["gone"] = self.gone
            joins += " LEFT JOIN gone AS g ON v.rid = g.rid"
            stays = f"{stays} AND g.rid IS NULL"
        values = [f"v.b{i} AS o{i}" for i in every]
        spot = ["v.file_id", "v.place"]
        if self.moved is not None:
            others["moved"] = self.moved
            joins += " LEFT JOIN moved AS m ON v.rid = m.rid"
            moved = "m.rid IS NOT NULL"
            values = [f"CASE WHEN m.rid IS NOT NULL THEN m.c{i} ELSE v.b{i} END AS o{i}" for i in every]
            spot = [
                f"CASE WHEN m.rid IS NOT NULL THEN m.{name} ELSE v.{name} END AS {name}"
                for name in ("file_id", "place")
            ]
        same = "".join(f", v.t{i}, v.b{i}" for i in every)
        return self.theirs.query(
            f"SELECT v.rid, {', '.join(spot)}, v.in_theirs, v.in_base, ({moved}) OR ({stays}) AS in_ours{same}, "
            f"{', '.join(values)} FROM ({pairs}) AS v{joins}",
            **others,
        )


def _with_operations(
    compared: Rows, places: Places, rules: TableRules, first_new: int | None, *, has_moved: bool
) -> Rows:
    def any_of(conditions: Sequence[str]) -> str:
        return f"({' OR '.join(conditions)})" if conditions else "false"

    settled = _Settled(rules, places.columns)
    # a row that came back on both sides differs in each cell from none
    is_back = "false" if first_new is None else "NOT in_base"
    changed = [f"in_theirs AND ({is_back} OR in_base AND tb{i}) AS u{i}" for i in places.cells]
    # what an earlier state had in a column that comes back is no change of a row that went since
    changed += [f"{'false' if first_new is None else f'in_theirs AND in_base AND tb{i}'} AS u{i}" for i in places.came]
    if has_moved:
        again = [f"u{i} AND in_ours AND (NOT in_base OR ob{i}) AND ot{i} AS x{i}" for i in places.cells]
        taken = [
            f"u{i} AND in_ours AND ot{i} AND (NOT x{i} OR {settled.cell(i)} IS NOT DISTINCT FROM 'theirs') AS a{i}"
            for i in places.cells
        ]
    else:
        again = [f"false AS x{i}" for i in places.cells]
        taken = [f"u{i} AND in_ours AS a{i}" for i in places.cells]
    written = [*places.cells, *places.came]
    since_base = any_of([f"ob{i}" for i in places.kept]) if has_moved else "false"
    moved = (
        f"CASE WHEN in_theirs AND in_base THEN NOT in_ours AND {any_of([f'u{i}' for i in written])} "
        f"ELSE in_base AND in_ours AND {since_base} END AS moved"
    )
    open_cells = any_of([f"x{i} AND {settled.cell(i)} IS NULL" for i in places.cells])
    is_taken = any_of([*(f"a{i}" for i in places.cells), *(f"to{i}" for i in places.came)])
    theirs = f"{settled.row} IS NOT DISTINCT FROM 'theirs'"
    new = (
        ""
        if first_new is None
        else f"WHEN rid >= {first_new:d} THEN CASE WHEN in_theirs AND NOT in_base THEN 'new' END "
    )
    operation = (
        f"CASE {new}WHEN (moved AND {settled.row} IS NULL) OR {open_cells} THEN 'conflict' "
        f"WHEN in_theirs AND (in_base OR {is_back}) AND in_ours THEN CASE WHEN {is_taken} THEN 'update' END "
        f"WHEN in_theirs AND in_base THEN CASE WHEN moved AND {theirs} THEN 'insert' END "
        f"WHEN in_base THEN CASE WHEN in_ours AND (NOT moved OR {theirs}) THEN 'delete' END "
        "WHEN NOT in_ours THEN 'insert' END AS op"
    )
    source, given = "rows", "SELECT *"
    others: dict[str, Rows] = {}
    if settled.given is not None:
        others["rules"] = settled.given
        source, given = "rows AS v LEFT JOIN rules AS r ON v.rid = r.rule_rid", "SELECT v.*, r.* EXCLUDE (rule_rid)"
    query = f"{given} FROM {source}"
    query = f"SELECT *{''.join(f', {one}' for one in changed)} FROM ({query})"
    query = f"SELECT *, {', '.join([moved, *again])} FROM ({query})"
    if taken:
        query = f"SELECT *, {', '.join(taken)} FROM ({query})"
    return compared.query(f"SELECT *, {operation} FROM ({query})", **others)


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
        self._named = {name: folded[name] for cells in rules.cells.values() for name in cells if name in folded}
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


def operations(decided: Rows, places: Places) -> Rows:
    """Return the rows that change: the virtual columns, the columns of the table afterwards, then `OPERATION`."""
    inserts = "op IN ('insert', 'new')"
    values = []
    for number, i in enumerate(places.target):
        if i in places.came:
            value = f"CASE WHEN in_theirs THEN t{i} ELSE o{i} END"
        elif i in places.cells:
            value = f"CASE WHEN {inserts} OR a{i} THEN t{i} ELSE o{i} END"
        else:
            value = f"CASE WHEN {inserts} THEN t{i} ELSE o{i} END"
        values.append(f"{value} AS w{number}")
    spot = [f"CASE WHEN {inserts} THEN NULL ELSE {name} END AS {name}" for name in ("file_id", "place")]
    listed = ", ".join([*spot, "rid", "CAST(NULL AS BIGINT) AS snapshot_id", *values, f"op AS {OPERATION}"])
    return decided.query(f"SELECT {listed} FROM rows WHERE op IS NOT NULL")


def chosen(made: Rows, kinds: Sequence[str], names: Sequence[str]) -> Rows:
    """The rows with some operations, as an UPDATE finds them: the virtual columns, then the table's under their names."""
    columns = [*VIRTUAL_COLUMNS, *names]
    return made.pick(OPERATION, kinds, [OPERATION]).first(len(columns), columns)


def filled_sql(columns: Sequence[tuple[int, Column]]) -> str:
    """SQL that counts the rows of `after` whose value in a column is another than in `rows`, or than the first default.

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
    return f"SELECT {', '.join(counts)} FROM after AS m LEFT JOIN rows AS s ON m.rid = s.rid"


def carried(theirs: Rows, moved: Rows, places: Places) -> Rows:
    """Operations that give rows, written anew without columns that come, the values of theirs.

    Args:
        theirs: see `side`.
        moved: the rows that are in other places of ours.
    """
    lost = " OR ".join(differs_sql(f"t.c{i}", f"m.c{i}", places.columns[i].data_type) for i in places.came)
    values = "".join(
        f", {'t' if i in places.came else 'm'}.c{i} AS w{number}" for number, i in enumerate(places.target)
    )
    return theirs.query(
        f"SELECT m.file_id, m.place, m.rid, CAST(NULL AS BIGINT) AS snapshot_id{values}, 'update' AS {OPERATION} "
        f"FROM rows AS t JOIN moved AS m ON t.rid = m.rid WHERE {lost}",
        moved=moved,
    )


def conflicts(
    decided: Rows, places: Places, rules: TableRules, title: str, words: Words, most: int, time_zone: str
) -> tuple[list[Conflict], int]:
    """List the conflicts of rows that no rule settles, by row id, and count all of them.

    Args:
        most: how many are listed.
    """
    settled = _Settled(rules, places.columns)
    of_row = f"moved AND {settled.row} IS NULL"
    cells = {i: f"x{i} AND {settled.cell(i)} IS NULL" for i in places.cells}
    count = _sum([f"CASE WHEN {condition} THEN 1 ELSE 0 END" for condition in (of_row, *cells.values())])
    source = "FROM rows WHERE op = 'conflict'"
    total = decided.query(f"SELECT CAST(sum({count}) AS BIGINT) AS n {source}").arrow().column("n")[0].as_py()
    flags = "".join(f", {cell} AS y{i}, u{i}" for i, cell in cells.items()) + "".join(f", u{i}" for i in places.came)
    values = "".join(f", t{i}, b{i}, o{i}" for i in range(len(places.columns)))
    listed = decided.query(
        f"SELECT rid, in_theirs, in_base, {of_row} AS moved{flags}{values} {source} ORDER BY rid LIMIT {most:d}"
    ).arrow()
    noted: list[Conflict] = []
    for row in _rows(listed, time_zone):
        noted += _of_row(dict(zip(listed.column_names, row, strict=True)), places, title, words)
    return noted[:most], int(total)


def _sum(terms: Sequence[str]) -> str:
    """SQL of a sum, as deep as the logarithm of its terms: DuckDB limits the depth, and tables have thousands of columns."""
    half = len(terms) // 2
    return f"({_sum(terms[:half])} + {_sum(terms[half:])})" if half else terms[0]


def _rows(table: pa.Table, time_zone: str) -> Iterable[Sequence[object]]:
    """The rows as Python values, or as DuckDB's texts where Python cannot hold one."""
    try:
        return python_rows(table, time_zone)
    except ConstraintError:
        is_value = [name[0] in "tbo" for name in table.column_names]
        plain = [column.to_pylist() for column in table.columns]
        texts = texts_to_show(table, time_zone)
        return zip(
            *(text if shown else own for shown, text, own in zip(is_value, texts, plain, strict=True)), strict=True
        )


def _of_row(row: Mapping[str, object], places: Places, title: str, words: Words) -> list[Conflict]:
    row_id = int(str(row["rid"]))
    names = {i: column.name for i, column in enumerate(places.columns)}
    if not row["moved"]:
        reason = words.reason(Reason.CELL)
        return [
            Conflict(title, row_id, names[i], row[f"b{i}"], row[f"o{i}"], row[f"t{i}"], reason)
            for i in places.cells
            if row[f"y{i}"]
        ]

    def cells(version: str, listed: Sequence[int]) -> dict[str, object]:
        return {names[i]: row[f"{version}{i}"] for i in listed}

    if row["in_theirs"] and row["in_base"]:
        changed = [i for i in (*places.cells, *places.came) if row[f"u{i}"]]
        reason = words.reason(Reason.ROW_UPDATED)
        return [Conflict(title, row_id, None, cells("b", changed), None, cells("t", changed), reason)]
    reason = words.reason(Reason.ROW_DELETED)
    return [Conflict(title, row_id, None, cells("b", places.kept), cells("o", places.kept), None, reason)]
