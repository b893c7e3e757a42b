"""Rows that two states do not share, in pairs: by the same SQL in process and on Spark.

A side has the columns `rid`, `c0`, `c1`, …; pairs have `rid`, `kind`, `d0`, `d1`, … (the cell differs), then the earlier
version as `old_rid`, `old0`, … and the later one as `new_rid`, `new0`, …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.diff.model import KINDS, DiffSummary
from ducklake_lab.duckdb.casting import cast_columns, differs_sql
from ducklake_lab.engine.changes import numbered
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import FLOATS, INTEGERS, DataType

#: A sample takes some of this many parts.
_PARTS = 1_000_000


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Changed rows by kind, and per later column the updated rows whose cell differs."""

    inserted: int
    deleted: int
    updated: int
    cells: tuple[int, ...]

    @property
    def changed(self) -> int:
        return self.inserted + self.deleted + self.updated

    def summary(self, rows_after: int) -> DiffSummary:
        """With the rows that did not change, given how many the later state has."""
        unchanged = rows_after - self.inserted - self.updated
        return DiffSummary(self.inserted, self.deleted, self.updated, unchanged, sum(self.cells))


def side(rows: Rows, columns: Sequence[Column]) -> Rows:
    """One side, of rows with the columns and then the virtual ones."""
    listed = ", ".join(["rid", *(f"c{i}" for i in range(len(columns)))])
    return numbered(rows, len(columns)).query(f"SELECT {listed} FROM rows")


def check_unique(rows: Rows, places: Sequence[int], key: Sequence[str], state: str) -> None:
    """Raises UsageError where several rows of a side have the same key."""
    listed = ", ".join(f"c{i}" for i in places)
    repeated = rows.query(
        f"SELECT CAST(sum(n - 1) AS BIGINT) AS n FROM (SELECT count(*) AS n FROM rows GROUP BY {listed} HAVING count(*) > 1)"
    )
    shared = repeated.arrow().column("n")[0].as_py()
    if shared:
        raise UsageError(
            f"{', '.join(key)} is no key: in the {state} state {shared:,} rows share its values with another row; "
            "name more columns."
        )


def paired(removed: Rows, added: Rows, columns: Sequence[Column], later: int, places: Sequence[int] = ()) -> Rows:
    """The pairs of two sides; `kind` is NULL where the values are equal, as such a row has not changed.

    Args:
        columns: both sides have them; the first `later` are compared.
        places: of the columns by which rows are paired; by row id where there are none.
    """
    condition = " AND ".join(f"r.c{i} IS NOT DISTINCT FROM a.c{i}" for i in places) or "r.rid = a.rid"
    compared = [
        f"r.rid IS NOT NULL AND a.rid IS NOT NULL AND {differs_sql(f'r.c{i}', f'a.c{i}', columns[i].data_type)}"
        for i in range(later)
    ]
    items = ["coalesce(r.rid, a.rid) AS rid", *(f"{value} AS d{i}" for i, value in enumerate(compared))]
    for name, alias in (("old", "r"), ("new", "a")):
        items += [f"{alias}.rid AS {name}_rid", *(f"{alias}.c{i} AS {name}{i}" for i in range(len(columns)))]
    any_cell = " OR ".join(f"d{i}" for i in range(later)) or "false"
    kind = f"CASE WHEN old_rid IS NULL THEN 'inserted' WHEN new_rid IS NULL THEN 'deleted' WHEN {any_cell} THEN 'updated' END"
    inner = f"SELECT {', '.join(items)} FROM rows AS r FULL JOIN added AS a ON {condition}"
    return removed.query(
        f"SELECT rid, {kind} AS kind, * EXCLUDE (rid) FROM ({inner})",
        added=added,
    )


def step_sql(old: str, new: str, kind: DataType) -> str:
    """SQL that gives the later of two numbers minus the earlier one; NULL where no value of the type says it."""
    if kind.name in INTEGERS:
        old, new = f"CAST({old} AS HUGEINT)", f"CAST({new} AS HUGEINT)"
    if kind.name in FLOATS:
        far = f"isfinite({old}) AND isfinite({new}) AND isinf({new} - {old})"
        return f"CASE WHEN {far} THEN NULL ELSE {new} - {old} END"
    return f"TRY({new} - {old})"


def count(pairs: Rows, later: int) -> RowCounts:
    """Counts the pairs by kind, and the cells that differ."""
    # DuckDB plans thousands of FILTERs in a time that grows with their square
    conditions = [f"kind = '{kind}'" for kind in KINDS] + [f"d{i}" for i in range(later)]
    sums = [f"count(CASE WHEN {condition} THEN 1 END)" for condition in conditions]
    counted = pairs.query(f"SELECT {', '.join(f'{one} AS n{i}' for i, one in enumerate(sums))} FROM rows").arrow()
    inserted, deleted, updated, *cells = (column[0].as_py() for column in counted.columns)
    return RowCounts(inserted, deleted, updated, tuple(cells))


def sampled(
    pairs: Rows, columns: Sequence[Column], share: float, places: Sequence[int] = ()
) -> tuple[pa.Table, pa.Table]:
    """Both sides of about that share of the pairs, drawn by their row ids or keys, in memory."""
    drawn = ", ".join(f"coalesce(old{i}, new{i})" for i in places) or "rid"
    chosen = f" AND hash({drawn}) % {_PARTS} < {int(share * _PARTS)}" if share < 1 else ""
    rows = InMemory(pairs.query(f"SELECT * FROM rows WHERE kind IS NOT NULL{chosen}").arrow())
    names = [f"c{i}" for i in range(len(columns))]
    types = {name: column.data_type for name, column in zip(names, columns, strict=True)}

    def of(side: str) -> pa.Table:
        shown = ", ".join(f"{side}{i} AS c{i}" for i in range(len(columns)))
        values = rows.query(f"SELECT {side}_rid AS rid, {shown} FROM rows WHERE {side}_rid IS NOT NULL").arrow()
        return cast_columns(values, types).add_column(0, "rid", values.column("rid"))

    return of("old"), of("new")
