"""Checks the rows that a transaction changes before it commits: the one place that every write passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.duckdb.casting import differs_sql
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.staging import stage_written, target_of
from ducklake_lab.errors import EntryExistsError, ExpectationError, UnsupportedFeatureError
from ducklake_lab.expectations.asking import Asking, Read
from ducklake_lab.expectations.finding import Finder, Found, find_target, same_place
from ducklake_lab.expectations.outcomes import Outcome
from ducklake_lab.expectations.quarantine import set_aside
from ducklake_lab.expectations.states import StagedTable
from ducklake_lab.model.entries import Table
from ducklake_lab.model.expectations import Expectation, expectations_of
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import FILE_ID, ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True)
class Answer:
    """The rows of the query of an expectation, and the ids of the tables that it read."""

    count: int
    rows: pa.Table
    tables: Iterable[int]


#: Runs the query of an expectation in the transaction.
Ask = Callable[[Transaction, Table, Expectation], Answer]


def settle(transaction: Transaction, engines: Engines | None = None, ask: Ask | None = None) -> None:
    """Checks the expectations of all tables whose rows a transaction changes.

    Rows that violate one ON VIOLATION DROP or QUARANTINE are left out first; the others are checked on what is left. A new
    version of a row that is left out leaves the earlier version.

    Args:
        engines: of the session; None for DuckDB in process alone.
        ask: runs queries of expectations; None where nobody can.

    Raises:
        ExpectationError: an expectation refuses the commit.
        EntryExistsError: the transaction drops what an expectation names.
        CatalogError: another client dropped what one names, or a tag is not readable.
        UnsupportedFeatureError: an expectation has a query, and nobody runs it.
    """
    check_names(transaction)
    with ExitStack() as stack:
        _Settling(transaction, Asking(engines, stack), ask).run()


class _Settling:
    def __init__(self, transaction: Transaction, asking: Asking, ask: Ask | None) -> None:
        self._transaction = transaction
        self._asking = asking
        self._ask = ask
        self._outcomes: list[Outcome] = []

    def run(self) -> None:
        spared: dict[tuple[int, str], Outcome] = {}
        changed = True
        while changed:  # a row that is left out may be one that another one references
            changed = False
            for table, expectation in self._chosen(spares=True):
                outcome = self._spare(table, expectation)
                if outcome is not None:
                    changed = True
                    key = (table.table_id, expectation.name)
                    before = spared.get(key)
                    spared[key] = replace(before, count=before.count + outcome.count) if before else outcome
        outcomes = [
            outcome for table, e in self._chosen(spares=False) if (outcome := self._found(table, e)) is not None
        ]
        outcomes += self._referencing()
        self._transaction.outcomes += spared.values()
        failed = [outcome for outcome in outcomes if outcome.expectation.on != "warn"]
        if failed:
            more = f" And {len(failed) - 1} more expectations are violated." if len(failed) > 1 else ""
            raise ExpectationError(f"{failed[0].text()}. Nothing was written.{more}", failed)
        self._transaction.outcomes += outcomes

    def _chosen(self, *, spares: bool) -> list[tuple[Table, Expectation]]:
        """The expectations of the changed tables; those by row first, as the others read other rows.

        A row that violates two is set aside rather than dropped.
        """
        transaction = self._transaction
        chosen = []
        for table in transaction.state.tables.expecting():
            staged = transaction.data.get(table.table_id)
            if staged is not None and staged.changes_rows:
                chosen += [(table, one) for one in expectations_of(table) if one.spares == spares]
        return sorted(
            chosen, key=lambda pair: (not pair[1].is_by_row, pair[1].kind == "references", pair[1].on == "drop")
        )

    # Violations

    def _find(self, rows: StagedTable, expectation: Expectation) -> Found:
        transaction, table = self._transaction, rows.table
        finder = self._finder()
        if expectation.kind == "unique":
            self._needs(table)
        if expectation.kind == "references":
            target = find_target(transaction.state, expectation)
            if target is not None:
                self._needs(target)
        violating = finder.find(rows, expectation)
        if not violating.count or violating.places is None or not rows.updates:
            return violating
        same = self._unchanged(finder, rows, violating.places)
        if same is None:
            return violating
        if expectation.kind == "unique":
            # a row that did not change keeps its key; the others of that key violate the expectation
            settled = self._unchanged(finder, rows, self._asking.kept(finder.every(rows)))
            violating = finder.find(rows, expectation, settled=settled)
            same = settled
        return self._without(violating, same)

    def _without(self, violating: Found, same: InMemory | None) -> Found:
        if same is None or violating.places is None:
            return violating
        listed = ", ".join(f"r.{name}" for name in VIRTUAL_COLUMNS)
        sql = f"SELECT {listed} FROM rows AS r LEFT JOIN same AS s ON {same_place('r', 's')} WHERE s.{ROW_ID} IS NULL"
        left = InMemory(violating.places.query(sql, same=same).arrow())
        return Found(left.table.num_rows, left)

    def _finder(self) -> Finder:
        state = self._transaction.state
        return Finder(self._asking, state, lambda table: StagedTable.of(self._transaction, table))

    def _needs(self, table: Table) -> None:
        """Notes that the commit needs the rows of a table as they are here."""
        if self._transaction.is_committed(table):
            self._transaction.needed_rows.add(table.table_id)

    def _found(self, table: Table, expectation: Expectation) -> Outcome | None:
        if expectation.kind == "fresh":
            return None  # a table is fresh as its rows change
        if expectation.kind == "query":
            return self._answered(table, expectation)
        rows = StagedTable.of(self._transaction, table)
        violating = self._find(rows, expectation)
        return self._outcome(rows, expectation, violating) if violating.count else None

    def _answered(self, table: Table, expectation: Expectation) -> Outcome | None:
        if self._ask is None:
            raise UnsupportedFeatureError(
                f'The expectation {expectation.name} of {table.name} is a query, which format("ducklake") cannot run; '
                "write with session.write, or by the lake's catalog in Spark."
            )
        answer = self._ask(self._transaction, table, expectation)
        for table_id in {*answer.tables, table.table_id}:
            read = self._transaction.state.tables.get(table_id)
            if read is not None:
                self._needs(read)
        if not answer.count:
            return None
        return Outcome(self._title(table), expectation, self._shown(table, expectation), answer.count, answer.rows)

    def _outcome(self, rows: StagedTable, expectation: Expectation, violating: Found) -> Outcome:
        assert violating.places is not None  # there are some
        first = self._finder().first(rows, violating.places)
        return Outcome(rows.title, expectation, self._shown(rows.table, expectation), violating.count, first)

    def _shown(self, table: Table, expectation: Expectation) -> str:
        state = self._transaction.state
        target = find_target(state, expectation) if expectation.kind == "references" else None
        return expectation.shown(table, state.qualified_name(target) if target is not None else None)

    def _title(self, table: Table) -> str:
        return self._transaction.state.qualified_name(table)

    def _unchanged(self, finder: Finder, rows: StagedTable, places: Rows) -> InMemory | None:
        """Returns the places of new versions of rows that equal the earlier ones, which change nothing; None for none."""
        columns = rows.table.columns
        names = [f"c{i}" for i in range(len(columns))]
        bad = finder.whole(rows, places, virtual=True).first(len(names) + 4, [*VIRTUAL_COLUMNS, *names])
        before = Read(rows.earlier(columns), [f"o{i}" for i in range(len(columns))], virtual=True)
        differs = " OR ".join(differs_sql(f"o{i}", f"c{i}", column.data_type) for i, column in enumerate(columns))
        listed = ", ".join(f"b.{name}" for name in VIRTUAL_COLUMNS)
        same = self._asking.rows(
            f"SELECT {listed} FROM rows AS o JOIN ids AS i ON o.{ROW_ID} = i.true_id "
            f"JOIN bad AS b ON {same_place('i', 'b')} WHERE NOT ({differs})",
            before,
            ids=self._true_ids(rows, places),
            bad=bad,
        ).arrow()
        return InMemory(same) if same.num_rows else None

    def _true_ids(self, rows: StagedTable, places: Rows) -> Rows:
        """Returns the places of new versions of rows, with the row ids that they keep as `true_id`."""
        table = places.arrow()
        inlined, keeping = rows.true_ids(), pa.array(rows.keeping_files(), pa.int64())
        in_file = pc.fill_null(pc.is_in(table.column(FILE_ID), keeping), False).to_pylist()
        ids = table.column(ROW_ID).to_pylist()
        true_ids = [number if kept else inlined.get(number) for number, kept in zip(ids, in_file, strict=True)]
        with_ids = table.append_column("true_id", pa.array(true_ids, pa.int64()))
        return InMemory(with_ids.filter(pc.is_valid(with_ids.column("true_id"))))

    # Rows that are left out

    def _spare(self, table: Table, expectation: Expectation) -> Outcome | None:
        """Leaves the violating rows out, and sets them aside on request; returns None where there are none."""
        transaction = self._transaction
        rows = StagedTable.of(transaction, table)
        violating = self._find(rows, expectation)
        if not violating.count or violating.places is None:
            return None
        outcome = self._outcome(rows, expectation, violating)
        places = self._asking.kept(violating.places)
        finder = self._finder()
        if expectation.on == "quarantine":
            bad = self._asking.kept(finder.whole(rows, places))
            set_aside(
                transaction, table, self._asking.run_by(bad), violating.count, f"{expectation.name}: {outcome.shown}"
            )
        earlier = self._earlier(rows, places) if rows.updates else None
        plan = rows.came(table.columns[:1])
        target = target_of(transaction, table)
        inlined, deletes = self._asking.run_by(places).delete(target, plan, violating.count)
        staged = transaction.staged(table)
        staged.rows = rows.without(inlined)
        records = {file.data_file.data_file_id: file.data_file.record_count for file in plan.files}
        transaction.delete_from_files(table, deletes, records)
        if earlier is not None:
            count = earlier.arrow().num_rows
            if count:
                stage_written(transaction, table, earlier.write(target, keeps_ids=True, count=count))
        transaction.left_out[table.table_id] = transaction.left_out.get(table.table_id, 0) + violating.count
        return outcome

    def _earlier(self, rows: StagedTable, places: Rows) -> Rows:
        """Returns the earlier versions of rows, with the virtual columns first, under the ids that they keep."""
        columns = rows.table.columns
        names = [f"c{i}" for i in range(len(columns))]
        listed = ", ".join(f"o.{name}" for name in (*VIRTUAL_COLUMNS, *names))
        read = Read(rows.earlier(columns), names, virtual=True)
        earlier = self._asking.rows(
            f"SELECT {listed} FROM rows AS o JOIN ids AS i ON o.{ROW_ID} = i.true_id",
            read,
            ids=self._true_ids(rows, places),
        )
        kept = self._asking.kept(
            earlier.first(len(names) + 4, [*VIRTUAL_COLUMNS, *(column.name for column in columns)])
        )
        return self._asking.run_by(kept)

    # References

    def _referencing(self) -> list[Outcome]:
        """Returns violations by rows of other tables, whose referenced rows go."""
        transaction, outcomes = self._transaction, []
        gone_from = {
            table.uuid: table
            for table_id, staged in transaction.data.items()
            if (staged.deletes or staged.dropped_files or staged.deleted_row_ids)
            and (table := transaction.state.tables.get(table_id)) is not None
            and transaction.is_committed(table)
        }
        if not gone_from:
            return []
        for table in transaction.state.tables.expecting():
            for expectation in expectations_of(table):
                target = gone_from.get(expectation.target)
                if target is not None and (outcome := self._orphaned(table, expectation, target)) is not None:
                    outcomes.append(outcome)
        return outcomes

    def _orphaned(self, table: Table, expectation: Expectation, target: Table) -> Outcome | None:
        self._needs(table)
        rows, parents = StagedTable.of(self._transaction, table), StagedTable.of(self._transaction, target)
        return self._finder().orphaned(rows, expectation, parents)


def check_names(transaction: Transaction) -> None:
    """Checks that the transaction drops nothing that an expectation names.

    Raises:
        EntryExistsError: it drops a column of an expectation, or a table that one references.
    """
    base, state = transaction.base, transaction.state
    if state is base:
        return
    for table in state.tables.expecting():
        before = base.tables.get(table.table_id)
        for expectation in expectations_of(table):
            if before is not None:
                _check_columns(before, table, expectation, expectation.columns, table)
            if expectation.kind == "references":
                _check_target(transaction, table, expectation)


def _check_target(transaction: Transaction, table: Table, expectation: Expectation) -> None:
    earlier, target = find_target(transaction.base, expectation), find_target(transaction.state, expectation)
    if earlier is None:
        return
    if target is None:
        raise EntryExistsError(
            f"{transaction.base.qualified_name(earlier)} is referenced by the expectation {expectation.name} of {table.name}; "
            f"use ALTER TABLE {quote_identifier(table.name)} DROP EXPECTATION {quote_identifier(expectation.name)} first."
        )
    _check_columns(earlier, target, expectation, expectation.target_columns, table)


def _check_columns(
    before: Table, after: Table, expectation: Expectation, named: Iterable[tuple[str, int]], owner: Table
) -> None:
    for _, column_id in named:
        column = before.column_by_id(column_id)
        if column is not None and after.column_by_id(column_id) is None:
            raise EntryExistsError(
                f"The column {column.name} of {after.name} is named by the expectation {expectation.name} of {owner.name}; use "
                f"ALTER TABLE {quote_identifier(owner.name)} DROP EXPECTATION {quote_identifier(expectation.name)} first."
            )
