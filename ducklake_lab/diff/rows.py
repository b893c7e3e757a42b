"""Changed rows of a diff, paired by row id or by key, and queried with DuckDB in process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.diff.baseline_stats import Known
from ducklake_lab.diff.model import RowChange, RowChoice, RowKind
from ducklake_lab.diff.pairs import RowCounts, check_unique, count, paired, step_sql
from ducklake_lab.duckdb.handing import python_rows, texts_to_show
from ducklake_lab.duckdb.zones import in_zone
from ducklake_lab.engine.in_process import engine
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import EntryNotFoundError, did_you_mean
from ducklake_lab.model.entries import Column

#: Every changed row, by row id or key.
ALL = RowChoice()


class ChangedRows:
    """Rows of the earlier state that are gone and rows of the later state that are new.

    Args:
        removed: row ids, then the columns: rid, c0, c1, …
        added: row ids and columns, in the same form.
        columns: the columns of both: those of the later schema, then those only the earlier one has.
        only_before: how many of them only the earlier one has.
        key: columns by which rows are paired; by row id where there are none.
        known: facts about the whole table.
        time_zone: in which times are shown.
        total: how many rows have changed, where these are a sample of them; None where they are all.
        from_spark: Spark gave the rows.
        steps: whether rows say by how much their numbers changed.
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
        from_spark: bool = False,
        time_zone: str = "UTC",
        steps: bool = False,
        earlier: Callable[[Sequence[int]], pa.Table] | None = None,
    ) -> None:
        self.all_columns = list(columns)
        self.columns = self.all_columns[: len(self.all_columns) - only_before]
        self.known = known or Known()
        self.total = total
        self.from_spark = from_spark
        self.time_zone = time_zone
        self.earlier = earlier
        self._steps = {i: c.name for i, c in enumerate(self.columns) if steps and c.data_type.is_numeric}
        self.tables = {"removed": removed, "added": added}
        if key:
            self._number_by_key(places_of(self.columns, key), key)
        old, new = (InMemory(self.tables[side]) for side in ("removed", "added"))
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
            renumbered = engine.evaluate(f"SELECT k.rid, {columns} FROM x JOIN k ON {equal}", tables)
            check_unique(InMemory(renumbered), indexes, key, "earlier" if side == "removed" else "later")
            self.tables[side] = renumbered

    def run(self, sql: str) -> pa.Table:
        """A query over `tables`."""
        return in_zone(engine.evaluate(sql, self.tables, self.time_zone), self.time_zone)

    def row(self, sql: str) -> list[object]:
        """The one row of a query's result."""
        return [column[0].as_py() for column in self.run(sql).columns]

    def count(self) -> RowCounts:
        return count(InMemory(self.tables["pairs"]), len(self.columns))

    def named(self, choice: RowChoice) -> RowChoice:
        """The choice with names of columns as they are written.

        Raises:
            EntryNotFoundError: it names a column that is not there.
        """
        changed = (
            self.columns[places_of(self.columns, [choice.changed])[0]].name if choice.changed is not None else None
        )
        keys = ((self.all_columns[places_of(self.all_columns, [name])[0]].name, down) for name, down in choice.sort)
        return RowChoice(choice.kind, changed, tuple(keys))

    def of_kind(self, side: str, kind: RowKind) -> pa.Table:
        """The rows of one kind as they are in `removed` or `added`, by row id: rid, c0, c1, …, then d0, d1, …"""
        differs = "".join(f", p.d{i}" for i in range(len(self.columns)))
        return self.run(
            f"SELECT x.*{differs} FROM {side} AS x JOIN pairs AS p ON p.rid = x.rid WHERE p.kind = '{kind}' ORDER BY x.rid"
        )

    def passing(self, choice: RowChoice) -> int:
        """Count the chosen rows among these."""
        return int(str(self.row(f"SELECT count(*) FROM pairs AS p WHERE {self._condition(choice)}")[0]))

    def page(self, limit: int, offset: int = 0, choice: RowChoice = ALL, *, as_shown: bool = False) -> list[RowChange]:
        """Some of the chosen rows: at most `limit`, after the first `offset`.

        Args:
            as_shown: whether the values are for people: DuckDB's texts of them, as results show.

        Raises:
            EntryNotFoundError: the choice names a column that is not there.
        """
        before = ", ".join(f"r.c{i} AS b{i}" for i in range(len(self.all_columns)))
        after = "".join(f", a.c{i} AS a{i}" for i in range(len(self.columns)))
        after += "".join(
            f", {step_sql(f'r.c{i}', f'a.c{i}', self.columns[i].data_type)} AS step{i}" for i in self._steps
        )
        sides = "LEFT JOIN removed AS r ON r.rid = p.rid LEFT JOIN added AS a ON a.rid = p.rid"
        order = ", ".join([*(self._sort_key(name, down) for name, down in choice.sort), "p.rid"])
        fetched = self.run(
            f"""
            SELECT p.*, {before}{after} FROM (
                SELECT p.* FROM pairs AS p {sides if choice.sort else ""} WHERE {self._condition(choice)}
                ORDER BY {order} LIMIT {limit:d} OFFSET {offset:d}
            ) AS p {sides} ORDER BY {order}
            """
        )
        rows = []
        listed: Iterable[Sequence[object]] = (
            zip(*texts_to_show(fetched, self.time_zone), strict=True)
            if as_shown
            else python_rows(fetched, self.time_zone)
        )
        for values in listed:
            row = dict(zip(fetched.column_names, values, strict=True))
            kind = row["kind"]
            old = None if kind == "inserted" else {c.name: row[f"b{i}"] for i, c in enumerate(self.all_columns)}
            new = None if kind == "deleted" else {c.name: row[f"a{i}"] for i, c in enumerate(self.columns)}
            changed = tuple(c.name for i, c in enumerate(self.columns) if row[f"d{i}"]) if kind == "updated" else ()
            steps = {
                name: row[f"step{i}"]
                for i, name in self._steps.items()
                if name in changed and row[f"step{i}"] is not None
            }
            rows.append(RowChange(row["rid"], kind, old, new, changed, steps))
        return rows

    def _condition(self, choice: RowChoice) -> str:
        conditions = [f"p.kind = '{choice.kind}'"] if choice.kind is not None else []
        if choice.changed is not None:
            conditions += ["p.kind = 'updated'", f"p.d{places_of(self.columns, [choice.changed])[0]}"]
        return " AND ".join(conditions) or "true"

    def _sort_key(self, name: str, down: bool) -> str:
        place = places_of(self.all_columns, [name])[0]
        only_before = place >= len(self.columns)
        value = f"r.c{place}" if only_before else f"CASE p.kind WHEN 'deleted' THEN r.c{place} ELSE a.c{place} END"
        return f"{value} {'DESC' if down else 'ASC'} NULLS LAST"


def place_of(names: Sequence[str], name: str) -> int:
    """The place of a column among some.

    Raises:
        EntryNotFoundError: there is none of that name.
    """
    if name in names:
        return names.index(name)
    folded = [name.casefold() for name in names]
    if name.casefold() not in folded:
        raise EntryNotFoundError(f'The diff has no column "{name}".{did_you_mean(name, names)}')
    return folded.index(name.casefold())


def places_of(columns: Sequence[Column], key: Sequence[str]) -> list[int]:
    """The places of a key's columns."""
    names = [column.name for column in columns]
    return [place_of(names, name) for name in key]
