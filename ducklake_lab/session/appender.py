"""Appends many small batches of rows: holds them until there are enough, then commits them as one snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.engine.in_process.python_rows import filled, table_of
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import BindError, UsageError, did_you_mean
from ducklake_lab.model.entries import Column, Snapshot
from ducklake_lab.model.live import check_not_live
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.defaults import with_defaults
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.session.transactions.rerunning import on_what_is_known
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class _Rows:
    """Held rows that have values for the same columns, and the position of each among all held rows."""

    values: list[Sequence[object]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


@works_on_lakes
class Appender:
    """Appends rows to one table. `Session.appender` makes it.

    Rows are visible once they are flushed. A `with` block flushes at its end. An error in the block drops the held
    rows; flushed rows stay. A catalog file stays open in the block, so that a flush does not open it again.

    Attributes:
        held: the number of rows that wait for a flush.
        appended: the number of flushed rows; those that expectations left out are not counted.
        snapshot: the newest snapshot that a flush made; None before the first.
    """

    def __init__(
        self,
        transactions: Transactions,
        sources: Sources,
        dml: Dml,
        table: str,
        columns: Sequence[str] | None,
        rows: int,
        seconds: float | None,
    ) -> None:
        if rows < 1:
            raise UsageError(f"rows={rows} is no number of rows to flush at; give 1 or more.")
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._sources = sources
        self._dml = dml
        self._name = table
        self._limit = rows
        self._seconds = seconds
        entry = self._lakes.parse(table)
        check_not_live(entry.table(), f"{entry.schema}.{entry.name}")
        self._columns = {column.name.casefold(): column.name for column in entry.table().columns}
        self._given = self._known(columns) if columns is not None else tuple(self._columns.values())
        self._keys: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._by_names: dict[tuple[str, ...], _Rows] = {}
        self._tables: list[tuple[int, pa.Table]] = []
        self._due = 0.0
        self._open = ExitStack()
        self.held = 0
        self.appended = 0
        self.snapshot: Snapshot | None = None

    def append(self, row: Sequence[object] | Mapping[str, object]) -> None:
        """Appends one row; flushes when enough rows are held, or have been held long enough.

        Args:
            row: values in the order of the columns, or by column name. An omitted column gets its default.

        Raises:
            BindError: the row has too many or too few values, or names an unknown column.
        """
        names, values = self._named(row)
        alike = self._by_names.setdefault(names, _Rows())
        alike.values.append(tuple(values))
        alike.places.append(self.held)
        self._count(1)

    def extend(self, rows: Iterable[Sequence[object] | Mapping[str, object]] | pa.Table | pa.RecordBatch) -> None:
        """Appends many rows: single rows as for `append`, or an Arrow table with named columns.

        Raises:
            BindError: see `append`.
        """
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        if not isinstance(rows, pa.Table):
            for row in rows:
                self.append(row)
        elif rows.num_rows:
            self._tables.append((self.held, rows.rename_columns(list(self._known(rows.column_names)))))
            self._count(rows.num_rows)

    def flush(self) -> Snapshot | None:
        """Commits the held rows as one snapshot and returns it; None if no rows are held or a transaction is open.

        If the commit fails, the rows stay held.

        Raises:
            ConstraintError: a value does not fit its column, or a column without NULLs gets one.
            CommitUnknownError: the rows may be in the lake or not; check before you flush again.
            TransactionConflictError: another commit changed the table's columns, or dropped the table.
        """
        if not self.held:
            return None
        with self._lakes.statement(), self._lakes.reads.noting("change"):
            transaction, table_id = on_what_is_known(self._transactions, self._write) or self._write()
        self.appended += self.held - transaction.left_out.get(table_id, 0)
        self.drop()
        self.snapshot = transaction.snapshot or self.snapshot
        return transaction.snapshot

    def _write(self) -> tuple[Transaction, int]:
        """Writes the held rows; returns the transaction and the id of the table."""
        with self._transactions.writing(self._lakes.parse(self._name).lake) as transaction:
            table = self._lakes.parse(self._name).table()
            columns = with_defaults(self._sources.names, table)
            transaction.is_one_statement = not self._lakes.in_transaction
            self._dml.append(table, InMemory(self._rows(columns)))
        return transaction, table.table_id

    def drop(self) -> None:
        """Drops the held rows."""
        self._by_names, self._tables, self.held = {}, [], 0

    def close(self) -> None:
        """Flushes. The appender still takes rows afterwards."""
        self.flush()

    def __enter__(self) -> Self:
        with self._lakes.working():
            self._open.enter_context(self._lakes.parse(self._name).lake.database.held())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._open:
            if kind is None:
                self.flush()
            else:
                self.drop()

    def _named(self, row: Sequence[object] | Mapping[str, object]) -> tuple[tuple[str, ...], Sequence[Any]]:
        """Returns the columns that a row has values for, and the values."""
        if isinstance(row, Mapping):
            keys = tuple(row)
            if keys not in self._keys:
                self._keys[keys] = self._known(keys)
            return self._keys[keys], list(row.values())
        if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
            raise UsageError(f"A row is a sequence of values or a mapping of names to them, not {type(row).__name__}.")
        if len(row) != len(self._given):
            raise BindError(f"{self._name} needs {len(self._given)} values, but a row has {len(row)}.")
        return self._given, row

    def _known(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns column names in the table's spelling."""
        spelled: list[str] = []
        for name in names:
            column = self._columns.get(name.casefold())
            if column is None:
                raise BindError(f'{self._name} has no column "{name}".{did_you_mean(name, self._columns.values())}')
            if column in spelled:
                raise BindError(f'Column "{column}" of {self._name} is given twice.')
            spelled.append(column)
        return tuple(spelled)

    def _count(self, rows: int) -> None:
        if not self.held and self._seconds is not None:
            self._due = time.monotonic() + self._seconds
        self.held += rows
        if self.held >= self._limit or (self._seconds is not None and time.monotonic() >= self._due):
            self.flush()

    def _rows(self, columns: Sequence[Column]) -> pa.Table:
        """Returns the held rows with all columns of the table, in its order."""
        zone = self._lakes.options.time_zone()
        parts: list[pa.Table] = []
        places: list[int] = []
        for names, alike in self._by_names.items():
            self._check_names(names, columns)
            parts.append(filled(table_of(names, alike.values, columns), columns, zone))
            places += alike.places
        for start, table in self._tables:
            self._check_names(table.column_names, columns)
            parts.append(filled(table, columns, zone))
            places += range(start, start + table.num_rows)
        rows = pa.concat_tables(parts)
        return rows if len(parts) == 1 else rows.take(pc.sort_indices(pa.array(places)))

    def _check_names(self, names: Sequence[str], columns: Sequence[Column]) -> None:
        gone = set(names) - {column.name for column in columns}
        if gone:
            raise BindError(
                f'{self._name} has no column "{min(gone)}" any more; the rows that are held have values for it.'
            )
