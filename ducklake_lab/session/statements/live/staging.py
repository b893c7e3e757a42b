"""Stages the rows of live tables: changed ones, or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog import attachments
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.changes import Feed
from ducklake_lab.engine.facts import facts_of_rows
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.live.definition import Definition
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.quoting import quote_identifier, quoted_path
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.visible_counts import live_rows
from ducklake_lab.session.names.attached_lakes import Lakes, NamedEntry
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.ddl import Ddl, build_columns
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.session.statements.live.changes import Keys, replace_rows
from ducklake_lab.session.statements.live.look import LiveLook, Look, fits, types_of
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query
from ducklake_lab.sql.bind.expansion import columns_of
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.refresh.signed import SIGN, added_rows, merged_rows
from ducklake_lab.sql.refresh.sums import merged
from ducklake_lab.sql.types import type_or_none
from ducklake_lab.transaction.transaction import Transaction


class LiveStaging:
    """Stages refreshes in the transaction that is open for writing; names are looked up where the caller stands."""

    def __init__(self, lakes: Lakes, sources: Sources, engine: SparkEngine, ddl: Ddl, look: LiveLook) -> None:
        self._sources = sources
        self._engine = engine
        self._ddl = ddl
        self._dml = Dml(lakes, sources, engine)
        self._look = look

    # All rows

    def made(self, transaction: Transaction, entry: NamedEntry, plan: QueryPlan, definition: Definition) -> int:
        """Creates the table of a definition, in place of one that has its name; returns the number of rows."""
        result = self._sources.run(plan, purpose="change")
        columns = [
            op.ColumnDef(name, _column_type(name, kind))
            for name, kind in zip(result.columns, result.types, strict=True)
        ]
        old = transaction.state.find_table(entry.schema, entry.name)
        kept = self._ddl.create_table(entry, build_columns(columns), replace_existing=True, is_live=True)
        if old is not None and old.comment is not None:
            kept = replace(kept, comment=old.comment)
            transaction.replace_table(kept)
        transaction.is_one_statement = True
        count = self._dml.append(kept, result.rows())
        transaction.set_tag(kept, attachments.LIVE, definition.text())
        return count

    def recomputed(self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look) -> tuple[int, int]:
        """Stages a full refresh; returns the numbers of read and changed rows."""
        lake, state = entry.lake, transaction.state
        read = self.rows_in(lake, state, look.tables.values())
        result = self._sources.run(look.plan, purpose="change")
        columns = list(zip(result.columns, result.types, strict=True))
        if not fits(table, columns):
            gone = self._dml.truncate(NamedEntry(lake, state, entry.schema, table.name), table)
            return read, gone + self._dml.append(_with_columns(transaction, table, columns), result.rows())
        path = self._path(lake, state, table)
        few = self.rows_in(lake, state, [table]) <= self._engine.placing.limits.changed_rows
        if few and result.in_process:
            return read, replace_rows(self._dml, self._sources, transaction, table, path, result.rows(), None)
        gone = self._dml.truncate(NamedEntry(lake, state, entry.schema, table.name), table)
        return read, gone + self._dml.append(table, result.rows())

    # Changed rows

    def changed(self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look) -> tuple[int, int] | str:
        """Stages an incremental refresh; returns the numbers of read and changed rows, or why all is recomputed."""
        changed, read = {}, 0
        for view, (source, plan) in look.changes.items():
            sides: list[Rows] = [
                Feed(name, plan, False, self._engine.placing) for name in ("table_insertions", "table_deletions")
            ]
            if self._engine.placing.place(facts_of_rows(sides, "change")).is_here:
                sides = [InMemory(side.arrow()) for side in sides]
                read += sum(side.arrow().num_rows for side in sides)
            else:
                read += sum(_rows_of(side) for side in (plan.inserted, plan.removed))
            names = [self._register(side, source.name) for side in sides]
            added, removed = map(quote_identifier, names)
            changed[view] = f"(SELECT *, 1 AS {SIGN} FROM {added} UNION ALL SELECT *, -1 AS {SIGN} FROM {removed})"
        if not changed:
            return read, 0
        match look.adds:
            case "sums":
                staged = self._add_sums(transaction, entry, table, look, changed)
            case "rows":
                staged = self._add_rows(transaction, entry, table, look, changed)
            case _:
                staged = self._replace_keys(transaction, entry, table, look, changed)
        return staged if isinstance(staged, str) else (read, staged)

    def _replace_keys(
        self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look, changed: Mapping[str, str]
    ) -> int | str:
        queries = self._look.queries(entry.lake, transaction.state, table, look, changed)
        affected = self._affected(queries.affected, [table.columns[place].name for place in queries.keys])
        if isinstance(affected, int | str):
            return affected
        keys, _ = affected
        return self._replaced(transaction, entry, table, self._query(queries.rows(keys.view, keys.nullable)), keys)

    def _add_sums(
        self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look, changed: Mapping[str, str]
    ) -> int | str:
        sums = self._look.sums(entry.lake, transaction.state, table, look, changed)
        affected = self._affected(sums.query, [table.columns[place].name for place in sums.keys])
        if isinstance(affected, int | str):
            return affected
        keys, _ = affected
        path, names = self._path(entry.lake, transaction.state, table), _quoted_names(table)
        text, below = merged(sums, path, names, types_of(table), keys.view)
        if self._query(below).fetchall() != [(0,)]:
            return "its counts are not those of its query"
        return self._replaced(transaction, entry, table, self._query(text), keys)

    def _add_rows(
        self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look, changed: Mapping[str, str]
    ) -> int | str:
        signed = self._look.signed(entry.lake, transaction.state, table, look, changed)
        affected = self._affected(signed.query, [column.name for column in table.columns])
        if isinstance(affected, int | str):
            return affected
        (keys, rows), names = affected, _quoted_names(table)
        least, most = (int(pc.call_function(name, [rows.column("n")]).as_py()) for name in ("min", "max"))
        if least > 0:
            return self._dml.append(table, self._query(added_rows(names, keys.view, self._numbers(most))).rows())
        path = self._path(entry.lake, transaction.state, table)
        ((least, most),) = self._query(merged_rows(path, names, keys.view, "")[1]).fetchall()
        if least < 0:
            return "it lacks rows that its query had"
        text, _ = merged_rows(path, names, keys.view, self._numbers(most))
        return self._replaced(transaction, entry, table, self._query(text), keys)

    def _numbers(self, most: int) -> str:
        """Returns the name of rows with the numbers from 1."""
        numbers = pa.table({"i": pa.array(range(1, most + 1), pa.int64())})
        return quote_identifier(self._register(InMemory(numbers), "numbers"))

    def _replaced(self, transaction: Transaction, entry: NamedEntry, table: Table, rows: Result, keys: Keys) -> int:
        path = self._path(entry.lake, transaction.state, table)
        return replace_rows(self._dml, self._sources, transaction, table, path, rows.rows(), keys)

    def _query(self, text: str) -> Result:
        return self._sources.query(parse_query(text))

    def _affected(self, text: str, columns: Sequence[str]) -> tuple[Keys, pa.Table] | int | str:
        """Returns the rows of a query with a row per key, as keys of rows to replace: its first columns.

        It returns 0 where there are none, and the reason why too many are not fetched.
        """
        result, most = self._query(text), self._engine.placing.limits.source_rows
        is_here = result.in_process
        rows = result.carried() if is_here else result.head(most + 1)
        if not is_here and rows.num_rows > most:
            return f"changes affect more than {most:,} keys"
        if not rows.num_rows:
            return 0
        nullable = [rows.column(i).null_count > 0 for i in range(len(columns))]
        return Keys(columns, quote_identifier(self._register(InMemory(rows), "keys")), nullable), rows

    @staticmethod
    def _path(lake: Lake, state: CatalogState, table: Table) -> str:
        return quoted_path(lake.alias, state.schema_of(table).name, table.name)

    def rows_in(self, lake: Lake, state: CatalogState, tables: Iterable[Table]) -> int:
        """Returns the number of rows of tables, from the catalog."""
        return sum(_rows_of(self._sources.scans.plan(lake, state, table)) for table in tables)

    @contextmanager
    def registered(self) -> Iterator[None]:
        """Forgets the rows that are registered in the block."""
        registered = self._sources.names.registered
        before = set(registered)
        try:
            yield
        finally:
            for name in registered.keys() - before:
                del registered[name]

    def _register(self, rows: Rows, shown: str) -> str:
        return self._sources.names.register(rows, shown)


def _with_columns(transaction: Transaction, table: Table, columns: Sequence[tuple[str, str]]) -> Table:
    """Gives a table other columns; a column of the same name and type stays, with its declarations."""
    next_id, wanted = transaction.next_column_id(table), []
    for order, (name, kind) in enumerate(columns, 1):
        own, data_type = table.column(name), _column_type(name, kind)
        if own is None or own.data_type != data_type:
            own = Column.build(name, data_type, next_id)
            next_id += sum(1 for _ in own.walk())
        wanted.append(replace(own, name=name, order=order))
    changed = replace(table, columns=tuple(wanted))
    ids = {column.column_id for column in wanted}
    if table.partition is not None and any(key.column_id not in ids for key in table.partition.fields):
        changed = replace(changed, partition=transaction.new_partition(()))
    names = {column.name.casefold() for column in wanted}
    keys = table.sort.keys if table.sort is not None else ()
    if any(name.casefold() not in names for key in keys for name in columns_of(key.expression)):
        changed = replace(changed, sort=None)
    transaction.replace_table(changed)
    return changed


def _rows_of(plan: ScanPlan) -> int:
    return live_rows(plan.files) + (plan.inlined.rows.num_rows if plan.inlined is not None else 0)


def _quoted_names(table: Table) -> list[str]:
    return [quote_identifier(column.name) for column in table.columns]


def _column_type(name: str, kind: str) -> DataType:
    data_type = type_or_none(kind)
    if data_type is None:
        raise UnsupportedFeatureError(f'Column "{name}" has the type {kind}, which lakes do not have; cast it.')
    return data_type
