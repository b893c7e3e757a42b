"""Questions about planned rows, answered where the rows are: by DuckDB in process, or by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.duckdb.casting import has_part
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.scan.plan import ScanFile, ScanPlan

#: The virtual columns, which name a row.
PLACE = ", ".join(VIRTUAL_COLUMNS)
#: Types of which Spark's queries keep less than the value.
_NOT_ON_SPARK = ("timestamp_ns", "variant")


@dataclass(frozen=True, slots=True)
class Read:
    """Planned rows under names for a question; the virtual columns follow on request."""

    plan: ScanPlan
    names: Sequence[str]
    virtual: bool = False


class Asking:
    """Answers questions about rows.

    Args:
        engines: of the session; None for DuckDB in process alone.
        stack: ends what Spark keeps.
    """

    def __init__(self, engines: Engines | None, stack: ExitStack) -> None:
        self._engines = engines
        self._stack = stack

    def rows(self, sql: str, rows: Read, *, looks_up: bool = False, **others: Read | Rows) -> Rows:
        """Returns the rows of a query in DuckDB's SQL; `rows` and the others are its tables.

        Args:
            looks_up: it looks a few keys up in many rows, of which only the keys are read.
        """
        reads = [rows, *(other for other in others.values() if isinstance(other, Read))]
        on_spark = any(other.is_on_spark for other in others.values() if isinstance(other, Rows))
        if on_spark or self._goes_to_spark(reads, looks_up=looks_up):
            try:
                return self._on_spark(sql, rows, others)
            except UnsupportedFeatureError:
                if on_spark:
                    raise  # its rows are there
        given = {name: other if isinstance(other, Rows) else _here(other) for name, other in others.items()}
        return _here(rows).query(sql, **given)

    def number(self, sql: str, rows: Read, *, looks_up: bool = False, **others: Read | Rows) -> int:
        """Returns the only value of a query, a number."""
        number = self.rows(sql, rows, looks_up=looks_up, **others).arrow().column(0)[0].as_py()
        return int(number or 0)

    def kept(self, rows: Rows) -> Rows:
        """Returns the rows, computed once: here in memory, or cached by Spark."""
        if not isinstance(rows, OnSpark):
            return InMemory(rows.arrow())
        frame = rows.data.persist()
        self._stack.callback(frame.unpersist)
        return OnSpark(frame, rows.declared, self._engines)

    def run_by(self, rows: Rows) -> Rows:
        """Returns the rows with the session's engines, for a write."""
        return rows.run_by(self._engines) if self._engines is not None else rows

    def _goes_to_spark(self, reads: Sequence[Read], *, looks_up: bool) -> bool:
        if self._engines is None:
            return False
        kinds = [column.data_type for read in reads for column in read.plan.columns]
        if any(has_part(kind, _NOT_ON_SPARK) for kind in kinds):
            return False
        files: list[ScanFile] = [file for read in reads for file in read.plan.files]
        placing, facts = self._engines.placing, facts_of(files)
        return not (placing.looks_up_here(facts) if looks_up else placing.place(facts).is_here)

    def _on_spark(self, sql: str, rows: Read, others: Mapping[str, Read | Rows]) -> Rows:
        assert self._engines is not None  # asked before
        spark = self._stack.enter_context(self._engines.running())

        def frame(read: Read) -> OnSpark:
            scan = Scan(read.plan, virtual=read.virtual)
            rows = OnSpark(scan.frame(spark), tuple(scan.columns), self._engines)
            return rows.first(len(scan.columns), _names(read))

        given = {name: frame(other) if isinstance(other, Read) else other for name, other in others.items()}
        return frame(rows).query(sql, **given)


def _here(read: Read) -> Rows:
    scan = Scan(read.plan, virtual=read.virtual)
    return scan.here().first(len(scan.columns), _names(read))


def _names(read: Read) -> list[str]:
    return [*read.names, *(VIRTUAL_COLUMNS if read.virtual else ())]


def in_memory(**columns: pa.Array) -> Rows:
    """Returns columns as rows."""
    return InMemory(pa.table(columns))
