"""Finds rows that violate an expectation, among rows that came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.engine import changes
from ducklake_lab.engine.key_predicates import between, has_predicates, of_values
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.errors import CatalogError
from ducklake_lab.expectations.asking import PLACE, Asking, Read
from ducklake_lab.expectations.outcomes import FIRST_ROWS, Outcome
from ducklake_lab.expectations.states import TableRows
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.expectations import Expectation, Named, columns_by_id
from ducklake_lab.model.predicates import And, Predicate
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import ChangePlan, ScanPlan
from ducklake_lab.sql.parse.expectations import stored_condition

#: Most rows that came whose keys are read into memory, to look them up.
_FEW = 200_000
#: Returns the rows of a table in the state that is checked.
RowsOf = Callable[[Table], TableRows]


@dataclass(frozen=True)
class Found:
    """Rows that violate an expectation.

    Attributes:
        places: the virtual columns of these rows.
    """

    count: int
    places: Rows | None = None


class Finder:
    """Finds violations in one state.

    Args:
        rows_of: returns the rows of a referenced table.
    """

    def __init__(self, asking: Asking, state: CatalogState, rows_of: RowsOf) -> None:
        self._asking = asking
        self._state = state
        self._rows_of = rows_of

    def find(self, rows: TableRows, expectation: Expectation, *, settled: Rows | None = None) -> Found:
        """Returns the rows that came and violate an expectation by row, by key or by reference.

        Args:
            settled: the places of rows that have changed in nothing; of rows with one key, these are the first.
        """
        columns = self.columns(rows.table, expectation)
        names = [name for name, _ in columns]
        plan = rows.came([column for _, column in columns])
        if not plan.files and plan.inlined is None:
            return Found(0)
        if expectation.is_by_row:
            return self._by_row(Read(plan, names, virtual=True), _condition(expectation, names))
        keyed = Read(plan, [f"k{i}" for i in range(len(names))], virtual=True)
        if expectation.kind == "unique":
            return self._repeated(rows, [column for _, column in columns], keyed, settled)
        return self._dangling(expectation, [column for _, column in columns], keyed)

    def columns(self, table: Table, expectation: Expectation) -> list[tuple[str, Column]]:
        """Returns the columns that an expectation names.

        Raises:
            CatalogError: another client dropped one.
        """
        return _existing(table, expectation, expectation.columns, table)

    def first(self, rows: TableRows, places: Rows) -> pa.Table:
        """Returns the first violating rows, with all columns."""
        return self.whole(rows, places, f"ORDER BY f.{FILE_ID}, f.{POSITION}, f.{ROW_ID} LIMIT {FIRST_ROWS}").arrow()

    def whole(self, rows: TableRows, places: Rows, rest: str = "", *, virtual: bool = False) -> Rows:
        """Returns rows by their places, with all columns."""
        columns = rows.table.columns
        names = [f"c{i}" for i in range(len(columns))]
        read = Read(rows.came(columns), names, virtual=True)
        listed = ", ".join(
            [*(f"f.{name}" for name in (PLACE.split(", ") if virtual else ())), *(f"f.{n}" for n in names)]
        )
        joined = self._asking.rows(
            f"SELECT {listed} FROM rows AS f JOIN bad AS b ON {same_place('f', 'b')} {rest}", read, bad=places
        )
        own = [column.name for column in columns]
        return joined.first(len(own) + (4 if virtual else 0), [*(PLACE.split(", ") if virtual else ()), *own])

    # Kinds

    def _by_row(self, read: Read, condition: str) -> Found:
        count = self._asking.number(f"SELECT count(*) AS n FROM rows WHERE {condition}", read)
        if not count:
            return Found(0)
        return Found(count, self._asking.rows(f"SELECT {PLACE} FROM rows WHERE {condition}", read))

    def _repeated(self, rows: TableRows, columns: Sequence[Column], read: Read, settled: Rows | None) -> Found:
        names, present = read.names, _present(read.names)
        listed = ", ".join(names)
        keys, predicate, is_repeated = self._keys(read, columns)
        if is_repeated is None:
            inside = self._asking.rows(
                f"SELECT count(*) AS n FROM rows WHERE {present} GROUP BY {listed} HAVING count(*) > 1 LIMIT 1", read
            )
            is_repeated = inside.arrow().num_rows > 0
        beside = rows.beside(columns, predicate)
        matched = self._looked_up(keys, read, beside) if beside is not None else None
        if matched is None and not is_repeated:
            return Found(0)
        others: dict[str, Rows] = {} if settled is None else {"settled": settled}
        source, later = "rows", "0"
        if settled is not None:
            named = ", ".join(f"r.{name}" for name in (*PLACE.split(", "), *names))
            source = (
                f"(SELECT {named}, CASE WHEN s.{ROW_ID} IS NULL THEN 1 ELSE 0 END AS later "
                f"FROM rows AS r LEFT JOIN settled AS s ON {same_place('r', 's')}) AS u"
            )
            later = "later"
        numbered = (
            f"SELECT {PLACE}, {listed}, row_number() OVER (PARTITION BY {listed} "
            f"ORDER BY {later}, {ROW_ID}, {FILE_ID}, {POSITION}) AS nth FROM {source} WHERE {present}"
        )
        if matched is None:
            return self._counted(f"SELECT {PLACE} FROM ({numbered}) WHERE nth > 1", read, **others)
        joined = " AND ".join(f"n.{name} = m.{name}" for name in names)
        places = ", ".join(f"n.{name}" for name in PLACE.split(", "))
        sql = f"SELECT {places} FROM ({numbered}) AS n LEFT JOIN matched AS m ON {joined} WHERE n.nth > 1 OR m.{names[0]} IS NOT NULL"
        return self._counted(sql, read, matched=matched, **others)

    def every(self, rows: TableRows) -> Rows:
        """Returns the places of all rows that came."""
        column = rows.table.columns[:1]
        return self._asking.rows(f"SELECT {PLACE} FROM rows", Read(rows.came(column), ["k0"], virtual=True))

    def _dangling(self, expectation: Expectation, columns: Sequence[Column], read: Read) -> Found:
        target, others = self.target_of(expectation)
        same = all(one.data_type == other.data_type for one, other in zip(columns, others, strict=True))
        keys, predicate, _ = self._keys(read, others if same else ())
        beside = self._rows_of(target).all(others, predicate)
        matched = self._looked_up(keys, read, beside)
        present = _present(read.names)
        if matched is None:
            return self._counted(f"SELECT {PLACE} FROM rows WHERE {present}", read)
        joined = " AND ".join(f"n.{name} = m.{name}" for name in read.names)
        places = ", ".join(f"n.{name}" for name in PLACE.split(", "))
        sql = (
            f"SELECT {places} FROM (SELECT * FROM rows WHERE {present}) AS n LEFT JOIN matched AS m ON {joined} "
            f"WHERE m.{read.names[0]} IS NULL"
        )
        return self._counted(sql, read, matched=matched)

    def target_of(self, expectation: Expectation) -> tuple[Table, list[Column]]:
        """Returns the referenced table and columns."""
        target = find_target(self._state, expectation)
        if target is None:
            raise CatalogError(
                f"The table that the expectation {expectation.name} references was dropped; drop it too."
            )
        return target, [column for _, column in _existing(target, expectation, expectation.target_columns, target)]

    def orphaned(self, rows: TableRows, expectation: Expectation, parents: TableRows) -> Outcome | None:
        """Returns a violation by rows of a table, old and new, whose referenced rows went; None where there is none.

        Args:
            rows: the referencing table.
            parents: the referenced table, with what changed in it.
        """
        target, columns = self.target_of(expectation)
        change = parents.changes(columns)
        gone = self._gone(change, parents.all(columns), len(columns)) if change is not None else None
        if gone is None:
            return None
        own = [column for _, column in self.columns(rows.table, expectation)]
        read = Read(rows.all(own), [f"k{i}" for i in range(len(own))], virtual=True)
        joined = " AND ".join(f"n.{name} = g.{name}" for name in read.names)
        places = ", ".join(f"n.{name}" for name in PLACE.split(", "))
        violating = self._counted(f"SELECT {places} FROM rows AS n JOIN gone AS g ON {joined}", read, gone=gone)
        if not violating.count or violating.places is None:
            return None
        title = self._state.qualified_name(target)
        reason = f"rows of {title} go that they reference"
        first = self._first_of_all(rows, violating.places)
        # no row came, which could be left out
        refusing = replace(expectation, on="warn" if expectation.on == "warn" else "fail")
        return Outcome(rows.title, refusing, expectation.shown(rows.table, title), violating.count, first, reason)

    def _gone(self, change: ChangePlan, present: ScanPlan, width: int) -> InMemory | None:
        """Returns the keys that rows had which went, and that no row has now; None for none."""
        names = [f"k{i}" for i in range(width)]
        removed = changes.removed(change, None).first(width, names)
        keys = InMemory(removed.query(f"SELECT DISTINCT {', '.join(names)} FROM rows WHERE {_present(names)}").arrow())
        if not keys.table.num_rows:
            return None
        still = self._shared(keys, Read(present, names))
        joined = " AND ".join(f"r.{name} = s.{name}" for name in names)
        listed = ", ".join(f"r.{name}" for name in names)
        sql = f"SELECT {listed} FROM rows AS r LEFT JOIN still AS s ON {joined} WHERE s.k0 IS NULL"
        gone = InMemory(keys.query(sql, still=still.here()).arrow())
        return gone if gone.table.num_rows else None

    def _first_of_all(self, rows: TableRows, places: Rows) -> pa.Table:
        """Returns the first of some rows, whether they came or not."""
        columns = rows.table.columns
        names = [f"c{i}" for i in range(len(columns))]
        first = self._asking.rows(
            f"SELECT {', '.join(f'f.{n}' for n in names)} FROM rows AS f JOIN bad AS b ON {same_place('f', 'b')} "
            f"ORDER BY f.{ROW_ID} LIMIT {FIRST_ROWS}",
            Read(rows.all(columns), names, virtual=True),
            bad=places,
        )
        return first.first(len(names), [column.name for column in columns]).arrow()

    # Parts

    def _counted(self, sql: str, read: Read, **others: Rows) -> Found:
        count = self._asking.number(f"SELECT count(*) AS n FROM ({sql})", read, looks_up=True, **others)
        return Found(count, self._asking.rows(sql, read, looks_up=True, **others)) if count else Found(0)

    def _keys(self, read: Read, columns: Sequence[Column]) -> tuple[Rows | None, Predicate | None, bool | None]:
        """Returns the distinct keys of the rows that came, a predicate that they fulfil, and whether one comes twice.

        The first and the last are None for many rows.
        """
        present, listed = _present(read.names), ", ".join(read.names)
        inlined = read.plan.inlined.rows.num_rows if read.plan.inlined is not None else 0
        rows = inlined + sum(file.data_file.record_count for file in read.plan.files)
        bounded = [(column, f"k{i}") for i, column in enumerate(columns) if has_predicates(column.data_type)]
        if rows <= _FEW:
            counted = self._asking.rows(
                f"SELECT {listed}, count(*) AS many FROM rows WHERE {present} GROUP BY {listed}", read
            ).arrow()
            keys = counted.drop_columns(["many"])
            is_repeated = pc.any(pc.greater(counted.column("many"), 1)).as_py() is True
            terms = [of_values((column.name,), _ordered(keys.column(name))) for column, name in bounded]
            return InMemory(keys), And(tuple(terms)) if terms and keys.num_rows else None, is_repeated
        if not bounded:
            return None, None, None
        ends = ", ".join(f"min({name}) AS a{name}, max({name}) AS b{name}" for _, name in bounded)
        bounds = self._asking.rows(f"SELECT {ends} FROM rows WHERE {present}", read).arrow()
        terms = []
        for column, name in bounded:
            low, high = bounds.column(f"a{name}"), bounds.column(f"b{name}")
            if low[0].as_py() is not None:
                terms.append(between((column.name,), pa.chunked_array([*low.chunks, *high.chunks])))
        return None, And(tuple(terms)) if terms else None, None

    def _looked_up(self, keys: Rows | None, read: Read, beside: ScanPlan) -> Rows | None:
        """Returns those of the keys that other rows have; None where they have none."""
        if (not beside.files and beside.inlined is None) or (keys is not None and not keys.arrow().num_rows):
            return None
        existing = self._shared(keys if keys is not None else read, Read(beside, read.names))
        return existing if existing.head(1).num_rows else None

    def _shared(self, keys: Rows | Read, read: Read) -> Rows:
        """Returns the distinct keys that rows of a read have, too; keys that are read already are looked up."""
        joined = " AND ".join(f"r.{name} = k.{name}" for name in read.names)
        listed = ", ".join(f"k.{name}" for name in read.names)
        sql = f"SELECT DISTINCT {listed} FROM rows AS r JOIN keys AS k ON {joined}"
        return self._asking.kept(self._asking.rows(sql, read, looks_up=isinstance(keys, Rows), keys=keys))


def same_place(one: str, other: str) -> str:
    """Returns the condition that two rows with the virtual columns are one."""
    parts = [f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in (FILE_ID, POSITION)]
    return f"{one}.{ROW_ID} = {other}.{ROW_ID} AND {' AND '.join(parts)}"


def find_target(state: CatalogState, expectation: Expectation) -> Table | None:
    """Returns the table that an expectation references; None where it was dropped."""
    tables = state.tables
    if expectation.target_id in tables and tables[expectation.target_id].uuid == expectation.target:
        return tables[expectation.target_id]
    return next((table for table in map(tables.__getitem__, tables) if table.uuid == expectation.target), None)


def _existing(table: Table, expectation: Expectation, named: Named, owner: Table) -> list[tuple[str, Column]]:
    columns = list(columns_by_id(owner, named))
    if len(columns) < len(named):
        present = {name for name, _ in columns}
        gone = next(name for name, _ in named if name not in present)
        raise CatalogError(
            f"The expectation {expectation.name} names the column {gone} of {owner.name}, which was dropped; use ALTER TABLE "
            f"{quote_identifier(table.name)} DROP EXPECTATION {quote_identifier(expectation.name)}."
        )
    return columns


def _condition(expectation: Expectation, names: Sequence[str]) -> str:
    """Returns SQL that is true for rows that violate an expectation by row."""
    if expectation.kind == "check":
        # NULL passes, as in SQL
        return f"NOT ({stored_condition(expectation.sql)})"
    return " OR ".join(f"{quote_identifier(name)} IS NULL" for name in names)


def _present(names: Sequence[str]) -> str:
    return " AND ".join(f"{name} IS NOT NULL" for name in names)


def _ordered(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns distinct values in DuckDB's order, which is Arrow's for types whose statistics bound files."""
    distinct = pa.chunked_array([pc.unique(values)])
    return distinct.take(pc.sort_indices(distinct))
