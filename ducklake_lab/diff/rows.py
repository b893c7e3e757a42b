"""The changed rows of a diff, paired by row id or by key, and looked at with DuckDB in process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.handing import python_rows
from ducklake_lab.catalog.zones import in_zone
from ducklake_lab.diff.baseline_stats import Known
from ducklake_lab.diff.model import DiffSummary, RowChange
from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.staged import ROW_ID


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


class ChangedRows:
    """Rows of the earlier state that are gone and rows of the later state that are new.

    Args:
        removed: the columns, then the virtual ones.
        added: likewise.
        columns: the columns of both: those of the later schema, then those only the earlier one has.
        only_before: how many of them only the earlier one has.
        key: columns by which rows are paired; by row id where there are none.
        known: what is known of the whole table.
        time_zone: in which times are shown.
        total: how many rows have changed, where these are a sample of them; None where they are all.
        earlier: reads some columns of all rows of the earlier state, by their places in `columns`, as c0, c1, …; None
            where they are too many.

    Attributes:
        columns: those of the later schema.
        all_columns: those, then those only the earlier schema has.
        tables: `removed`, `added` (rid, c0, c1, …) and `pairs` (rid, kind, d0, d1, …) as queries see them.

    Raises:
        UsageError: the key is not unique in one of the states.
    """

    def __init__(
        self,
        removed: pa.Table,
        added: pa.Table,
        columns: Sequence[Column],
        *,
        only_before: int,
        key: Sequence[str] = (),
        known: Known | None = None,
        total: int | None = None,
        time_zone: str = "UTC",
        earlier: Callable[[Sequence[int]], pa.Table] | None = None,
    ) -> None:
        self.all_columns = list(columns)
        self.columns = self.all_columns[: len(self.all_columns) - only_before]
        self.known = known or Known()
        self.total = total
        self.time_zone = time_zone
        self.earlier = earlier
        names = [f"c{i}" for i in range(len(self.all_columns))]
        self.tables = {
            side: rows.select([ROW_ID, *(c.name for c in self.all_columns)]).rename_columns(["rid", *names])
            for side, rows in (("removed", removed), ("added", added))
        }
        if key:
            self._number_by_key([self._index(name) for name in key], key)
        self.tables["pairs"] = self._pairs()

    def _index(self, name: str) -> int:
        folded = name.casefold()
        return next(i for i, column in enumerate(self.columns) if column.name.casefold() == folded)

    def _number_by_key(self, indexes: Sequence[int], key: Sequence[str]) -> None:
        """Puts numbers of the key's values in the place of row ids."""
        listed = ", ".join(f"c{i}" for i in indexes)
        equal = " AND ".join(f"k.c{i} IS NOT DISTINCT FROM x.c{i}" for i in indexes)
        numbered = self.run(
            f"SELECT row_number() OVER (ORDER BY {listed}) - 1 AS rid, {listed} "
            f"FROM (SELECT {listed} FROM removed UNION SELECT {listed} FROM added)"
        )
        columns = ", ".join(f"x.c{i}" for i in range(len(self.all_columns)))
        for side in ("removed", "added"):
            tables = {"x": self.tables[side], "k": numbered}
            found = engine.evaluate(f"SELECT k.rid, {columns} FROM x JOIN k ON {equal}", tables)
            distinct = engine.evaluate("SELECT count(DISTINCT rid) FROM t", {"t": found}).column(0)[0].as_py()
            if distinct < found.num_rows:
                state = "earlier" if side == "removed" else "later"
                raise UsageError(
                    f"{', '.join(key)} is no key: in the {state} state {found.num_rows - distinct:,} rows share its "
                    "values with another row; name more columns."
                )
            self.tables[side] = found

    def _pairs(self) -> pa.Table:
        """One row per changed row id: its kind, and per later column whether the cell differs."""
        removed, added = self.tables["removed"], self.tables["added"]
        before, after = removed.column("rid").to_numpy(), added.column("rid").to_numpy()
        # Row ids are unique in a state, so the rows are matched by their order, which costs much less than a join.
        common, left, right = np.intersect1d(before, after, assume_unique=True, return_indices=True)
        names = [f"d{i}" for i in range(len(self.columns))]
        compared = self._compare(_taken(removed, left), _taken(added, right))
        updated = pa.table([pa.array(common), *compared], names=["rid", *names])
        if names:
            updated = updated.filter(reduce(pc.or_, compared))
        parts = [updated.add_column(1, "kind", _repeated("updated", updated.num_rows))]
        for kind, rids in (("deleted", before), ("inserted", after)):
            alone = pa.array(np.setdiff1d(rids, common, assume_unique=True))
            same = pa.repeat(pa.scalar(False), len(alone))
            columns = [alone, _repeated(kind, len(alone)), *(same for _ in names)]
            parts.append(pa.table(columns, schema=parts[0].schema))
        return pa.concat_tables(parts)

    def _compare(self, removed: pa.Table, added: pa.Table) -> list[pa.ChunkedArray]:
        """Per later column whether its cells differ, in two tables of the same rows in the same order."""
        count = len(self.columns)
        if not count or not removed.num_rows:
            return [pa.chunked_array([], pa.bool_()) for _ in range(count)]
        names = [f"{side}{i}" for side in "ra" for i in range(count)]
        fields = [*removed.schema][1 : count + 1] + [*added.schema][1 : count + 1]
        both = pa.table(
            removed.columns[1 : count + 1] + added.columns[1 : count + 1],
            schema=pa.schema([field.with_name(name) for field, name in zip(fields, names, strict=True)]),
        )
        # values of two types in a VARIANT do not compare, and differ; nor do some of one type, which may be the same bytes
        differ = ", ".join(
            f"coalesce(TRY(r{i} IS DISTINCT FROM a{i}), true) AS d{i}"
            if any(part.type == "variant" for part in column.walk())
            else f"r{i} IS DISTINCT FROM a{i} AS d{i}"
            for i, column in enumerate(self.columns)
        )
        compared = list(engine.evaluate(f"SELECT {differ} FROM compared", {"compared": both}).columns)
        for i, column in enumerate(self.columns):
            if column.type == "variant":
                same = pc.fill_null(pc.equal(both.column(f"r{i}"), both.column(f"a{i}")), False)
                compared[i] = pc.and_not(compared[i], same)
        return compared

    def run(self, sql: str) -> pa.Table:
        """A query over `tables`."""
        return in_zone(engine.evaluate(sql, self.tables, self.time_zone), self.time_zone)

    def row(self, sql: str) -> list[object]:
        """The one row of a query's result."""
        return [column[0].as_py() for column in self.run(sql).columns]

    def count(self) -> RowCounts:
        pairs = self.tables["pairs"]
        found = {str(one["values"]): int(one["counts"]) for one in pc.value_counts(pairs.column("kind")).to_pylist()}
        inserted, deleted, updated = (found.get(kind, 0) for kind in ("inserted", "deleted", "updated"))
        # one query for them all takes a time that grows with the square of the columns
        cells = tuple(int(pc.sum(pairs.column(f"d{i}")).as_py() or 0) for i in range(len(self.columns)))
        return RowCounts(inserted, deleted, updated, cells)

    def first(self, limit: int) -> list[RowChange]:
        """The first changed rows by row id, or by key."""
        before = ", ".join(f"r.c{i} AS b{i}" for i in range(len(self.all_columns)))
        after = "".join(f", a.c{i} AS a{i}" for i in range(len(self.columns)))
        found = self.run(
            f"""
            SELECT p.*, {before}{after} FROM (SELECT * FROM pairs ORDER BY rid LIMIT {limit:d}) AS p
            LEFT JOIN removed AS r ON r.rid = p.rid LEFT JOIN added AS a ON a.rid = p.rid ORDER BY p.rid
            """
        )
        rows = []
        for values in python_rows(found, self.time_zone):
            row = dict(zip(found.column_names, values, strict=True))
            kind = row["kind"]
            old = None if kind == "inserted" else {c.name: row[f"b{i}"] for i, c in enumerate(self.all_columns)}
            new = None if kind == "deleted" else {c.name: row[f"a{i}"] for i, c in enumerate(self.columns)}
            changed = tuple(c.name for i, c in enumerate(self.columns) if row[f"d{i}"]) if kind == "updated" else ()
            rows.append(RowChange(row["rid"], kind, old, new, changed))
        return rows


def _taken(rows: pa.Table, places: npt.NDArray[np.intp]) -> pa.Table:
    """The rows at some places; all of them as they are, where that is what is asked for."""
    if len(places) == rows.num_rows and np.array_equal(places, np.arange(len(places))):
        return rows
    return rows.take(pa.array(places))


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)
