"""A table of a lake, at the newest or an older snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from ducklake_lab.catalog.identity import read_of
from ducklake_lab.diff.compute import diff_sides
from ducklake_lab.diff.diff import Diff
from ducklake_lab.diff.diff_states import Side
from ducklake_lab.duckdb.handing import arrow_table, pandas_frame
from ducklake_lab.duckdb.zones import in_zone
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import SnapshotNotFoundError, UsageError
from ducklake_lab.file_paths import is_below
from ducklake_lab.foreign import delta_writing, iceberg_writing
from ducklake_lab.foreign.exporting import Exported
from ducklake_lab.model.entries import Column
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.quoting import quoted_path
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.scan.counts import TableCounts, inlined_rows, table_counts
from ducklake_lab.scan.history import lake_history, last_change, table_files
from ducklake_lab.scan.presence import check_present, check_table
from ducklake_lab.session.describe import column_stats, describe, partitions
from ducklake_lab.session.foreign_tables import Format, check_format
from ducklake_lab.session.functions import FeedCall
from ducklake_lab.session.functions.blame import blame_call, life_call
from ducklake_lab.session.listings import FileListing, History, Listing
from ducklake_lab.session.names.argument_types import texts
from ducklake_lab.session.names.attached_lakes import Lakes, NamedEntry
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.rows.feed import feed_result
from ducklake_lab.session.rows.lives import Lives
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.rows.table_view import table_view
from ducklake_lab.session.rows.view import RowsView
from ducklake_lab.sql.prune.spark_condition import predicate_of

if TYPE_CHECKING:
    import pandas as pd

    from ducklake_lab.spark.library import DataFrame


@works_on_lakes
class TableHandle:
    """A handle for one table. `at` fixes the snapshot; without it, each call reads the newest."""

    def __init__(self, lakes: Lakes, sources: Sources, engine: SparkEngine, name: str, at: At = None) -> None:
        self._lakes = lakes
        self._sources = sources
        self._engine = engine
        self._name = name
        self.at = at
        self._entry().table()  # a wrong name is an error immediately

    def _entry(self, at: At = None) -> NamedEntry:
        return self._lakes.parse(self._name, self.at if at is None else at)

    def _reads(self, entry: NamedEntry) -> tuple[EntryRead]:
        is_fixed = self._lakes.is_fixed(entry.lake, self.at)
        is_uncommitted = self._lakes.reads.is_uncommitted(entry.state)
        return (read_of(entry.lake, entry.state, entry.table(), is_fixed=is_fixed, is_uncommitted=is_uncommitted),)

    @property
    def name(self) -> str:
        """The name, as `schema.table`."""
        entry = self._entry()
        return entry.state.qualified_name(entry.table())

    @property
    def schema(self) -> tuple[Column, ...]:
        """The columns of the table; each has its nested columns as children."""
        return self._entry().table().columns

    def spark(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """Returns a lazy Spark DataFrame of the table.

        Args:
            where: a condition in Spark SQL. Files without such rows are skipped if it compares columns with constants of
                their types.
            columns: the column, or columns, in order; None for all.
        """
        predicate = predicate_of(where, self._entry().table().columns) if where is not None else None
        scan = self._scan(predicate)
        with self._engine.running() as spark:
            frame = self._engine.handed_out(scan.frame(spark))
        if where is not None:
            frame = frame.where(where)
        return (
            frame.select(*(f"`{name.replace('`', '``')}`" for name in texts(columns))) if columns is not None else frame
        )

    def arrow(self) -> pa.Table:
        """Returns all rows as an Arrow table with DuckDB's types, read in process."""
        return in_zone(arrow_table(self._scan().arrow()), self._engine.time_zone())

    def pandas(self) -> pd.DataFrame:
        """Returns all rows as a pandas DataFrame."""
        return pandas_frame(self._scan().arrow(), self._engine.time_zone())

    def _scan(self, predicate: Predicate | None = None) -> Scan:
        entry = self._entry()
        return Scan(self._sources.scans.plan(entry.lake, entry.state, entry.table(), predicate))

    def export(self, format: Format, path: str, at: At = None, *, overwrite: bool = False) -> Exported:  # noqa: A002
        """Exports the rows at a snapshot as a Delta or an Iceberg table, which other engines read; creates no snapshot.

        Files of the lake get a second name in the folder, and their bytes are not copied, where the format reads the same rows
        from them: on the same filesystem, without deleted rows, with the columns as they are now. The others are written.
        The log or the metadata is written last. Keys, defaults and NOT NULL are not exported.

        Args:
            format: "delta" needs the package deltalake, "iceberg" the package pyiceberg.
            path: the folder of the new table, on this machine.
            at: a snapshot, by id, time or tag; by default that of the handle.
            overwrite: replace the table that is in the folder; its data files stay.

        Raises:
            UnsupportedFeatureError: a package is missing, or the format lacks a type or a value. Nothing was written.
            EntryExistsError: the folder is not empty.
        """
        check_format(format)
        with self._lakes.statement():
            entry = self._entry(at)
            plan = self._sources.scans.plan(entry.lake, entry.state, entry.table())
            if is_below(str(path), entry.lake.data_path):
                raise UsageError(
                    f'"{path}" is in the data path of {entry.lake.alias}, whose cleanup would delete it; export elsewhere.'
                )
            export = {"delta": delta_writing.export, "iceberg": iceberg_writing.export}[format]
            return export(plan, self._name, str(path), entry.state.snapshot.snapshot_id, overwrite=overwrite)

    def files(self) -> FileListing:
        """Lists the data files with sizes, deleted rows, partition values and column statistics."""
        entry = self._entry()
        state, table = entry.state, entry.table()
        with entry.lake.connect() as connection:
            entries, details = table_files(entry.lake, connection, state, table)
            inlined = inlined_rows(connection, state.snapshot.snapshot_id, table.table_id).get(table.table_id, 0)
        listing = FileListing(state.qualified_name(table), state.snapshot.snapshot_id, entries, details, inlined)
        listing.reads = self._reads(entry)
        return listing

    def describe(self) -> Listing:
        """Lists the columns with types, defaults, keys and value ranges."""
        entry = self._entry()
        return describe(entry.lake, entry.state, entry.table())

    def column_stats(self) -> Listing:
        """Lists minimum, maximum, share of NULL and size of each leaf column, from the files' statistics."""
        entry = self._entry()
        with entry.lake.connect() as connection:
            snapshot_id, table = entry.state.snapshot.snapshot_id, entry.table()
            check_table(entry.lake, entry.state, table)
            entries, _ = table_files(entry.lake, connection, entry.state, table)
            inlined = inlined_rows(connection, snapshot_id, table.table_id).get(table.table_id, 0)
        return column_stats(self.name, snapshot_id, table, entries, inlined)

    def view(self) -> RowsView:
        """Returns the rows for sorting, filtering and paging; reads up to MAX_ROWS of them in process."""
        entry = self._entry()
        table = entry.table()
        plan = self._sources.scans.plan(entry.lake, entry.state, table)
        check_present(entry.lake, self.name, plan.files)
        quoted = quoted_path(entry.lake.alias, entry.state.schema_of(table).name, table.name)
        with entry.lake.connect() as connection:
            counts = table_counts(entry.lake, connection, entry.state.snapshot.snapshot_id)
        rows = counts.get(table.table_id, TableCounts()).rows
        view = table_view(self.name, quoted, plan, entry.state.snapshot.snapshot_id, rows, self._engine.time_zone())
        view.reads = self._reads(entry)
        behind = Lives(self._lakes).behind(entry.lake, entry.state, table, [column.name for column in table.columns])
        view.find_behind = lambda: behind
        return view

    def partitions(self) -> Listing:
        """Lists files, rows, deleted rows and bytes per partition."""
        return partitions(self.files())

    def history(self) -> History:
        """Lists the snapshots that changed the table, oldest first."""
        entry = self._entry()
        with entry.lake.connect() as connection:
            entries = lake_history(entry.lake, connection, table_id=entry.table().table_id)
        return History(self.name, entries)

    def changes(self, start: int | datetime, end: int | datetime) -> Result:
        """Returns the changes in snapshots `start` to `end`, inclusive: snapshot_id, rowid, change_type and columns."""
        entry = self._entry(end)
        call = FeedCall("table_changes", entry.lake, entry.schema, entry.name, start, end)
        return feed_result(self._lakes, call, self._engine)

    def blame(
        self, where: str | None = None, columns: Sequence[str] | None = None, at: int | datetime | str | None = None
    ) -> Result:
        """Returns who set each cell of some rows, in which snapshot, and the value before.

        The columns are row_id, column, value, previous, snapshot_id, time, author, message, statement, notebook and cell.
        Values are DuckDB's texts of them. What expired snapshots set has no snapshot_id.

        Args:
            where: a condition in DuckDB's SQL; None for all rows.
            columns: column names; None for all.
            at: blame the rows as of a snapshot, by id, time or tag; by default that of the handle.
        """
        with self._lakes.statement():
            entry = self._entry(at)
            return self._sources.blames.result(
                blame_call(entry.lake, entry.schema, entry.name, where, columns, self.at if at is None else at)
            )

    def life(self, row_id: int, at: int | datetime | str | None = None) -> Result:
        """Returns the changes of one row, from its insert to its delete, oldest first.

        The columns are snapshot_id, kind (insert, update, delete, alter), time, author, message, statement, notebook, cell,
        and changes: a list of column, before and after.

        Args:
            row_id: the row's id, which SQL gives as `rowid`.
            at: changes up to a snapshot, by id, time or tag; by default that of the handle.

        Raises:
            EntryNotFoundError: the table never had a row of that id, as far as its snapshots have not expired.
        """
        with self._lakes.statement():
            entry = self._entry(at)
            return self._sources.blames.result(
                life_call(entry.lake, entry.schema, entry.name, row_id, self.at if at is None else at)
            )

    def diff(
        self,
        start: int | datetime | str | None = None,
        end: int | datetime | str | None = None,
        *,
        key: str | Sequence[str] | None = None,
        other: str | None = None,
    ) -> Diff:
        """Returns the differences between two snapshots.

        Args:
            start: the earlier snapshot, by id, time or tag. By default the one before the table's last change up to
                `end`, or in a transaction the one it started from.
            end: the later snapshot; the newest by default.
            key: the column, or columns, that pair rows; required if rows have other row ids in the two states.
            other: a table whose state at `end` is the later state.
        """
        with self._lakes.statement():
            is_fixed = end is not None or self.at is not None
            if start is None:
                if other is not None:
                    raise UsageError(f"Say which snapshot of {self.name} is compared with {other}.")
                start, end = self._last_change(end)
            return self._diff(start, end, texts(key), other, is_fixed=is_fixed)

    def _last_change(self, end: int | datetime | str | None) -> tuple[int, int | None]:
        """Returns the snapshots before and after the table's last change up to `end`."""
        entry = self._entry(end)
        table = entry.table()
        transaction = self._lakes.transaction
        if transaction is not None and entry.state is transaction.state:
            return transaction.base.snapshot.snapshot_id, None
        with entry.lake.connect() as connection:
            before, changed = last_change(entry.lake, connection, entry.state, table)
        if before is None:
            raise SnapshotNotFoundError(
                f"Snapshot {changed} made {self.name}; there is no earlier state to compare with."
            )
        return before, changed

    def _diff(
        self,
        start: int | datetime | str,
        end: int | datetime | str | None,
        key: Sequence[str],
        other: str | None,
        *,
        is_fixed: bool,
    ) -> Diff:
        before = self._side(self._lakes.parse(self._name, start), is_fixed=True)
        entry = self._lakes.parse(other, end) if other is not None else self._entry(end)
        after = self._side(entry, is_fixed=is_fixed)
        if before.table is None:
            raise SnapshotNotFoundError(
                f"{self.name} did not exist at snapshot {before.snapshot_id}; choose a later one."
            )
        if after.table is None:
            entry.table()  # raises the error of a missing table
        if other is None and after.table is not None and after.table.table_id != before.table.table_id and not key:
            # a renamed table keeps its id; a new table with its old name has another
            same = after.state.tables.get(before.table.table_id)
            after = replace(after, table=same) if same is not None else after
        diff = diff_sides(before, after, self.name, key=key, engines=self._engine)
        diff.lives = Lives(self._lakes).of
        return diff

    def _side(self, entry: NamedEntry, *, is_fixed: bool) -> Side:
        table = entry.find()
        if table is None:
            own = self._lakes.parse(self._name, self.at).find()
            table = entry.state.tables.get(own.table_id) if own is not None else None
        transaction = self._lakes.transaction
        open_here = table is not None and transaction is not None and entry.state is transaction.state
        return Side(
            entry.lake,
            entry.state,
            table,
            transaction.peek(table) if open_here and transaction is not None and table is not None else None,
            transaction.is_committed(table) if open_here and transaction is not None and table is not None else True,
            is_fixed,
        )

    def __repr__(self) -> str:
        at = f" at {self.at}" if self.at is not None else ""
        return f"<Table {self.name}{at}: {', '.join(column.name for column in self.schema)}>"
