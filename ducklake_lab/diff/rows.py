"""The changed rows of a diff, paired by row id or by key, and looked at with DuckDB in process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.diff.baseline_stats import Known
from ducklake_lab.diff.model import RowChange
from ducklake_lab.diff.pairs import RowCounts, check_unique, count, paired
from ducklake_lab.duckdb.handing import python_rows, texts_to_show
from ducklake_lab.duckdb.zones import in_zone
from ducklake_lab.engine.in_process import engine
from ducklake_lab.engine.rows import held
from ducklake_lab.model.entries import Column


class ChangedRows:
    """Rows of the earlier state that are gone and rows of the later state that are new.

    Args:
        removed: row ids, then the columns: rid, c0, c1, …
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
        self.tables = {"removed": removed, "added": added}
        if key:
            self._number_by_key(places_of(self.columns, key), key)
        old, new = (held(self.tables[side]) for side in ("removed", "added"))
        pairs = paired(old, new, self.all_columns, len(self.columns))
        listed = "".join(f", d{i}" for i in range(len(self.columns)))
        self.tables["pairs"] = pairs.query(f"SELECT rid, kind{listed} FROM rows WHERE kind IS NOT NULL").arrow()
        changed = self.tables["pairs"].column("rid")
        for side in ("removed", "added"):  # rewritten files have rows that did not change
            rows = self.tables[side]
            self.tables[side] = rows.filter(pc.is_in(rows.column("rid"), value_set=changed.combine_chunks()))

    def _number_by_key(self, indexes: Sequence[int], key: Sequence[str]) -> None:
        """Replaces row ids by numbers of the key's values."""
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
            check_unique(held(found), indexes, key, "earlier" if side == "removed" else "later")
            self.tables[side] = found

    def run(self, sql: str) -> pa.Table:
        """A query over `tables`."""
        return in_zone(engine.evaluate(sql, self.tables, self.time_zone), self.time_zone)

    def row(self, sql: str) -> list[object]:
        """The one row of a query's result."""
        return [column[0].as_py() for column in self.run(sql).columns]

    def count(self) -> RowCounts:
        return count(held(self.tables["pairs"]), len(self.columns))

    def first(self, limit: int, *, as_shown: bool = False) -> list[RowChange]:
        """The first changed rows by row id, or by key.

        Args:
            as_shown: whether the values are for people: DuckDB's texts of them, as results show.
        """
        before = ", ".join(f"r.c{i} AS b{i}" for i in range(len(self.all_columns)))
        after = "".join(f", a.c{i} AS a{i}" for i in range(len(self.columns)))
        found = self.run(
            f"""
            SELECT p.*, {before}{after} FROM (SELECT * FROM pairs ORDER BY rid LIMIT {limit:d}) AS p
            LEFT JOIN removed AS r ON r.rid = p.rid LEFT JOIN added AS a ON a.rid = p.rid ORDER BY p.rid
            """
        )
        rows = []
        listed: Iterable[Sequence[Any]] = (
            zip(*texts_to_show(found, self.time_zone), strict=True) if as_shown else python_rows(found, self.time_zone)
        )
        for values in listed:
            row = dict(zip(found.column_names, values, strict=True))
            kind = row["kind"]
            old = None if kind == "inserted" else {c.name: row[f"b{i}"] for i, c in enumerate(self.all_columns)}
            new = None if kind == "deleted" else {c.name: row[f"a{i}"] for i, c in enumerate(self.columns)}
            changed = tuple(c.name for i, c in enumerate(self.columns) if row[f"d{i}"]) if kind == "updated" else ()
            rows.append(RowChange(row["rid"], kind, old, new, changed))
        return rows


def places_of(columns: Sequence[Column], key: Sequence[str]) -> list[int]:
    """The places of a key's columns."""
    folded = [column.name.casefold() for column in columns]
    return [folded.index(name.casefold()) for name in key]
