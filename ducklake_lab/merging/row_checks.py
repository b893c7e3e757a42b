"""Checks of what a merge makes of the rows of a table, against its columns and against values that have expired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.errors import ConstraintError, UnsupportedFeatureError
from ducklake_lab.merging import versions
from ducklake_lab.merging.conflicts import Conflict, Reason, TableRules, Unsettled, Words
from ducklake_lab.merging.reading import Reading
from ducklake_lab.merging.sides import Version
from ducklake_lab.merging.taking_over import Arrival
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.staged import SNAPSHOT_ID
from ducklake_lab.scan.plan import ScanPlan

_NO_IDS = pa.chunked_array([], pa.int64())


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations on the rows of one table.

    Attributes:
        rows: see `versions.operations`; None for no row.
        counts: of the rows by operation.
        scan: reads the table as ours has it.
        files: files of theirs that are taken over whole.
    """

    rows: Rows | None
    counts: Mapping[str, int]
    scan: ScanPlan
    files: Sequence[Arrival] = ()

    def count(self, *kinds: str) -> int:
        return sum(self.counts.get(kind, 0) for kind in kinds)


class RowChecks:
    """Checks of the rows of one table."""

    def __init__(self, reading: Reading, engines: Engines, title: str, words: Words) -> None:
        self._reading = reading
        self._engines = engines
        self._title = title
        self._words = words

    def check_values(self, table: Table, made: Operations) -> None:
        """Raises ConstraintError where a row would have no value in a column that is NOT NULL."""
        strict = [(number, column.name) for number, column in enumerate(table.columns) if not column.nulls_allowed]
        if made.rows is None or not strict or not made.count("insert", "update", "new"):
            return
        counts = ", ".join(f"count(CASE WHEN w{number} IS NULL THEN 1 END) AS n{number}" for number, _ in strict)
        firsts = ", ".join(f"min(CASE WHEN w{number} IS NULL THEN rid END) AS f{number}" for number, _ in strict)
        condition = f"{versions.OPERATION} IN ('insert', 'update', 'new')"
        (nulls,) = made.rows.query(f"SELECT {counts}, {firsts} FROM rows WHERE {condition}").arrow().to_pylist()
        for number, name in strict:
            if count := nulls[f"n{number}"]:
                first = f", row {nulls[f'f{number}']} first" if nulls[f"f{number}"] is not None else ""
                raise ConstraintError(
                    f"{count:,} rows of {self._title} would have no value in {name} with {self._words.title}, and {name} is NOT NULL"
                    f"{first}; ALTER {name} DROP NOT NULL, or leave these rows out."
                )

    def check_not_null(self, ours: Version, columns: Sequence[Column]) -> None:
        """Raises ConstraintError where a column that becomes NOT NULL has NULL in some row."""
        for column in columns:
            plan = self._reading.plan(ours, [column])
            rows: Rows = Scan(plan)
            with ExitStack() as stack:
                if not self._engines.placing.place(facts_of(plan.files)).is_here:
                    spark = stack.enter_context(self._engines.running())
                    rows = OnSpark(rows.frame(spark), engines=self._engines)
                nulls = rows.first(1, ["c0"]).query("SELECT count(*) AS n FROM rows WHERE c0 IS NULL").arrow()
            if nulls.column("n")[0].as_py():
                raise ConstraintError(
                    f"Column {column.name} of {self._title} cannot become NOT NULL with {self._words.title}: it has NULL values "
                    "that are younger."
                )

    def check_unwritten(self, theirs: Version, ours: Version, columns: Sequence[str]) -> None:
        """Raises UnsupportedFeatureError where rows were written since into columns that get their former types.

        Args:
            theirs: an earlier state of the same lake.
        """
        plan = self._reading.plan(ours, ours.table.columns)
        first = theirs.state.snapshot.next_file_id
        ids = plan.inlined.rows.column(SNAPSHOT_ID) if plan.inlined is not None else _NO_IDS
        young = pc.any(pc.fill_null(pc.greater(ids, theirs.state.snapshot.snapshot_id), True)).as_py()
        if young or any(file.data_file.data_file_id >= first for file in plan.files):
            raise UnsupportedFeatureError(
                f"The type of column {columns[0]} of {self._title} is not changed back: files were written since, whose "
                "values may not fit; revert with rows=…, which leaves columns alone, or restore the table."
            )

    def without_lost(self, rows: Rows, column: str, ids: Rows, rules: TableRules, unsettled: Unsettled) -> Rows:
        """Leave out rows that would come without their values of a column; notes those that no rule keeps away.

        Args:
            rows: with what becomes of them.
            ids: of rows whose values have expired.
        """
        hit = rows.query("SELECT rid FROM rows WHERE op = 'insert' AND rid IN (SELECT rid FROM ids)", ids=ids).arrow()
        if not hit.num_rows:
            return rows
        reason = self._words.reason(Reason.VALUE_EXPIRED)
        for row_id in sorted(hit.column("rid").to_pylist()):
            rule = rules.of_cell(row_id, column)
            if rule is None:
                unsettled.add(Conflict(self._title, row_id, column, None, None, None, reason))
            elif rule == "theirs":
                raise UnsupportedFeatureError(
                    f"Row {row_id} of {self._title} cannot {self._words.comes}, as its value of column {column} has expired; "
                    f'choose "{self._words.ours}" for it, or restore the table to a snapshot with the column.'
                )
        return rows.query("SELECT * FROM rows WHERE rid NOT IN (SELECT rid FROM hit)", hit=InMemory(hit))
