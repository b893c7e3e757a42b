"""The changed rows of a diff, paired by row id and looked at with DuckDB in process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ducklake_lab.diff.model import ColumnDiff, DiffSummary, Histogram, Pattern, RowChange
from ducklake_lab.local import engine
from ducklake_lab.model.entries import Column
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.model.types import INTEGERS

_BINS = 12
_CATEGORIES = 8
_MOST = 0.5


class ChangedRows:
    """Rows of the earlier state that are gone and rows of the later state that are new.

    Args:
        removed: the columns, then the virtual ones.
        added: likewise.
        columns: the columns of both: those of the later schema, then those only the earlier one has.
        constant: columns known to hold one value in the whole table, which no pattern need tell.
        null_shares: share of NULL in the whole table by column name, where known.
    """

    def __init__(
        self,
        removed: pa.Table,
        added: pa.Table,
        columns: Sequence[Column],
        *,
        only_before: int,
        constant: frozenset[str] = frozenset(),
        null_shares: Mapping[str, float] | None = None,
    ) -> None:
        self._columns = list(columns)
        self._later = self._columns[: len(self._columns) - only_before]
        self._constant = constant
        self._null_shares = null_shares or {}
        names = [f"c{i}" for i in range(len(self._columns))]
        self._tables = {
            side: rows.select([ROW_ID, *(c.name for c in self._columns)]).rename_columns(["rid", *names])
            for side, rows in (("removed", removed), ("added", added))
        }
        self._tables["pairs"] = self._pairs()

    def _pairs(self) -> pa.Table:
        """One row per changed row id: its kind, and per later column whether the cell differs."""
        cells = "".join(f", r.c{i} IS DISTINCT FROM a.c{i} AS d{i}" for i in range(len(self._later)))
        any_cell = " OR ".join(f"r.c{i} IS DISTINCT FROM a.c{i}" for i in range(len(self._later)))
        return self._run(
            f"""
            SELECT coalesce(r.rid, a.rid) AS rid,
                   CASE WHEN a.rid IS NULL THEN 'deleted' WHEN r.rid IS NULL THEN 'inserted' ELSE 'updated' END AS kind
                   {cells}
            FROM removed AS r FULL OUTER JOIN added AS a ON r.rid = a.rid
            WHERE r.rid IS NULL OR a.rid IS NULL OR {any_cell}
            """
        )

    def _run(self, sql: str) -> pa.Table:
        return engine.evaluate(sql, self._tables)

    def summary(self, rows_after: int) -> DiffSummary:
        """Counts, given how many rows the later state has."""
        counts = dict(
            zip(*(c.to_pylist() for c in self._run("SELECT kind, count(*) FROM pairs GROUP BY 1").columns), strict=True)
        )
        inserted, deleted, updated = (counts.get(kind, 0) for kind in ("inserted", "deleted", "updated"))
        return DiffSummary(inserted, deleted, updated, rows_after - inserted - updated)

    def columns(self, summary: DiffSummary) -> list[ColumnDiff]:
        """Per column of the later schema: updated cells, and values before and after.

        Where rows were only updated, the values of a column that no update touched are left out.
        """
        if not self._later:
            return []
        updated, whole_rows = summary.updated, bool(summary.inserted or summary.deleted)
        sums = ", ".join(f"count(*) FILTER (kind = 'updated' AND d{i})" for i in range(len(self._later)))
        counts = [column[0].as_py() for column in self._run(f"SELECT {sums} FROM pairs").columns]
        return [
            ColumnDiff(
                name=column.name,
                type=column.data_type.sql(),
                updated=count,
                share=count / updated if updated else 0.0,
                histogram=self._histogram(index, column) if count or whole_rows else None,
            )
            for index, (column, count) in enumerate(zip(self._later, counts, strict=True))
        ]

    def _histogram(self, index: int, column: Column) -> Histogram | None:
        """Values of the column in the changed rows; None where there is nothing to see."""
        kind = column.data_type
        if kind.is_nested or kind.name in ("blob", "json", "uuid"):
            return None
        numeric = kind.is_numeric
        both = f"SELECT c{index} AS v FROM removed UNION ALL SELECT c{index} FROM added"
        if numeric:
            low, high, distinct = (
                c[0].as_py()
                for c in self._run(
                    f"SELECT min(v::DOUBLE), max(v::DOUBLE), approx_count_distinct(v) FROM ({both}) "
                    "WHERE v IS NOT NULL AND isfinite(v::DOUBLE)"
                ).columns
            )
            if low is None:
                return None
            if distinct <= _CATEGORIES or low == high:
                numeric = False
        if not numeric:
            return self._categories(index)
        if kind.name in INTEGERS:
            # whole numbers to a bin, or bins would look uneven that are not
            width = float(math.ceil((high - low + 1) / _BINS))
            return self._bins(index, low, width, math.floor((high - low) / width) + 1)
        return self._bins(index, low, (high - low) / _BINS, _BINS)

    def _bins(self, index: int, low: float, width: float, bins: int) -> Histogram:
        binned = f"least(floor((c{index}::DOUBLE - {low!r}::DOUBLE) / {width!r}::DOUBLE), {bins - 1})::INTEGER"
        counts = {}
        for side in ("removed", "added"):
            found = self._run(
                f"SELECT {binned} AS b, count(*) FROM {side} "
                f"WHERE c{index} IS NOT NULL AND isfinite(c{index}::DOUBLE) GROUP BY 1"
            )
            by_bin = dict(zip(*(c.to_pylist() for c in found.columns), strict=True))
            counts[side] = tuple(by_bin.get(b, 0) for b in range(bins))
        labels = tuple(f"{low + b * width:.6g}" for b in range(bins))
        return Histogram(labels, counts["removed"], counts["added"], numeric=True)

    def _categories(self, index: int) -> Histogram | None:
        found = self._run(
            f"""
            SELECT label, sum(b)::BIGINT, sum(a)::BIGINT FROM (
              SELECT c{index}::VARCHAR AS label, 1 AS b, 0 AS a FROM removed
              UNION ALL SELECT c{index}::VARCHAR, 0, 1 FROM added
            ) GROUP BY label ORDER BY sum(b) + sum(a) DESC, label LIMIT {_CATEGORIES}
            """
        )
        if found.num_rows < 2:
            return None
        labels, before, after = (c.to_pylist() for c in found.columns)
        named = tuple("NULL" if label is None else label for label in labels)
        return Histogram(named, tuple(before), tuple(after), numeric=False)

    def patterns(self, summary: DiffSummary) -> list[Pattern]:
        """Conditions that hold for most of the changed rows, and not anyway for the whole table."""
        found = []
        for kind, side, count in (
            ("deleted", "removed", summary.deleted),
            ("inserted", "added", summary.inserted),
            ("updated", "removed", summary.updated),
        ):
            if count >= 2:
                found += self._patterns_of(kind, side, count)
        return found

    def _patterns_of(self, kind: Any, side: str, count: int) -> list[Pattern]:
        found: list[Pattern] = []
        source = f"{side} JOIN pairs USING (rid) WHERE kind = '{kind}'"
        for index, column in enumerate(self._later):
            if column.data_type.is_nested or column.name in self._constant:
                continue
            nulls = self._run(f"SELECT count(*) FROM {source} AND c{index} IS NULL").column(0)[0].as_py()
            name = _identifier(column.name)
            if nulls / count > _MOST:
                if self._null_shares.get(column.name, 0.0) < nulls / count * 0.8:
                    found.append(Pattern(kind, f"{name} IS NULL", nulls / count))
                continue
            top = self._run(
                f"SELECT c{index}::VARCHAR, count(*) FROM {source} AND c{index} IS NOT NULL "
                "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"
            )
            if top.num_rows and top.column(1)[0].as_py() / count > _MOST:
                value = top.column(0)[0].as_py()
                text = value if column.data_type.is_numeric else "'" + value.replace("'", "''") + "'"
                found.append(Pattern(kind, f"{name} = {text}", top.column(1)[0].as_py() / count))
        found.sort(key=lambda pattern: -pattern.share)
        return found[:4]

    def first(self, limit: int) -> list[RowChange]:
        """The first changed rows by row id."""
        flags = [f"d{i}" for i in range(len(self._later))]
        before = ", ".join(f"r.c{i} AS b{i}" for i in range(len(self._columns)))
        after = ", ".join(f"a.c{i} AS a{i}" for i in range(len(self._later)))
        found = self._run(
            f"""
            SELECT p.*, {before}, {after} FROM (SELECT * FROM pairs ORDER BY rid LIMIT {limit:d}) AS p
            LEFT JOIN removed AS r ON r.rid = p.rid LEFT JOIN added AS a ON a.rid = p.rid ORDER BY p.rid
            """
        )
        rows = []
        for row in found.to_pylist():
            kind = row["kind"]
            rows.append(
                RowChange(
                    row_id=row["rid"],
                    kind=kind,
                    before=None if kind == "inserted" else {c.name: row[f"b{i}"] for i, c in enumerate(self._columns)},
                    after=None if kind == "deleted" else {c.name: row[f"a{i}"] for i, c in enumerate(self._later)},
                    changed=tuple(c.name for c, flag in zip(self._later, flags, strict=True) if row[flag])
                    if kind == "updated"
                    else (),
                )
            )
        return rows


def _identifier(name: str) -> str:
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'
