"""Information on the lakes of a session: snapshots, tags, tables, options, health. It needs no Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshot_tags import read_tags
from ducklake_lab.diff.answers import AnswerDiff
from ducklake_lab.diff.lake import LakeDiff, diff_lake
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import TransactionError, UsageError
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.counts import TableCounts, table_counts
from ducklake_lab.scan.history import lake_history
from ducklake_lab.session.answers import compare_answers
from ducklake_lab.session.health import Health, health_of
from ducklake_lab.session.listings import History, Listing
from ducklake_lab.session.names.argument_types import texts
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.names.system_tables import ViewComments
from ducklake_lab.session.overview import TableInfo, all_tables, options_of
from ducklake_lab.session.redacting import redacts
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.when import AnswerHistory
from ducklake_lab.transaction.tagging import tag_snapshot, untag_snapshot


@works_on_lakes
class LakeInfo:
    """The part of a session that describes its lakes, and tags their snapshots."""

    _lakes: Lakes
    _sources: Sources
    _engine: SparkEngine
    sql: Callable[..., Result]

    @property
    def lakes(self) -> list[Lake]:
        """The attached lakes."""
        return list(self._lakes)

    @property
    def current_lake(self) -> Lake:
        """The lake of unqualified names."""
        return self._lakes.get()

    @property
    def current_schema(self) -> str:
        """The schema of unqualified names."""
        return self._lakes.current_schema

    def snapshots(self, table: str | None = None, last: int | None = None) -> History:
        """Returns the snapshots of the current lake, oldest first, with the changes of each."""
        lake, table_id = self._lakes.get(), None
        if table is not None:
            entry = self._lakes.parse(table)
            lake, table_id = entry.lake, entry.table().table_id
        with lake.connect() as connection:
            entries = lake_history(lake, connection, table_id=table_id, last=last)
        return History(table or lake.alias, entries)

    def history(self, table: str | None = None) -> History:
        """Returns the snapshots, as `snapshots` does."""
        return self.snapshots(table)

    def diff(self, start: int | datetime | str, end: At = None) -> LakeDiff:
        """Returns the diff of the current lake between two snapshots: created, dropped and changed tables, and rows.

        Args:
            start: the earlier snapshot, by its id, a time or a tag.
            end: the later one; the newest by default.
        """
        lakes, lake = self._lakes, self._lakes.get()
        if end is None and lakes.transaction is not None and lakes.transaction.lake is lake:
            raise UsageError(
                "The open transaction has changes of its own: tx.diffs() shows them; COMMIT or name the later snapshot."
            )
        with lakes.statement():
            earlier, later = lakes.state(lake, start), lakes.state(lake, end)
            return diff_lake(lake, earlier, later, self._engine, is_fixed=end is not None)

    def pin(self, at: At, lake: str | None = None) -> Snapshot | None:
        """Pins a lake at a snapshot, for all that this session reads of it, until `pin(None)`.

        Queries, tables, listings and the default ends of diffs are as of the snapshot; a snapshot that a query or a call
        names wins. Nothing can be written to the lake meanwhile. No snapshot is created.

        Args:
            at: the snapshot's id, a time at which it was the newest, or its tag, resolved once; None unpins the lake.
            lake: its alias; the current lake by default.

        Returns:
            The snapshot it is pinned at; None where it is unpinned.

        Raises:
            SnapshotNotFoundError: the snapshot does not exist.
            TransactionError: a transaction is open.
        """
        return self._lakes.pin(self._lakes.get(lake), at)

    @property
    def pinned(self) -> dict[str, str]:
        """The names of the snapshots that lakes are pinned at, by alias of the lake."""
        return {lake.alias: lake.pinned for lake in self._lakes if lake.pinned is not None}

    @redacts
    def compare(
        self,
        query: str,
        a: int | datetime | str,
        b: At = None,
        key: str | Sequence[str] | None = None,
        params: Mapping[str, object] | None = None,
    ) -> AnswerDiff:
        """Returns the diff of a query's answers at two snapshots of the current lake.

        Args:
            query: one query in DuckDB's SQL. A snapshot that it names itself wins.
            a: the earlier snapshot, by its id, a time or a tag.
            b: the later one; the newest by default.
            key: the column, or columns, that pair rows. By default those of GROUP BY, else the first ones that are unique in both
                answers; without any, rows are compared as wholes.
            params: values of `:name` and `$name` parameters.

        Raises:
            UsageError: the text is not one query, or the key is not unique.
            EntryNotFoundError: an answer has no column of the key.
        """
        with self._lakes.working():
            diff = compare_answers(self._lakes, self.sql, query, a, b, texts(key), params)
            lake = self._lakes.get()
        assert diff.end is not None
        start, end = diff.start.snapshot_id, diff.end.snapshot_id

        def ask(text: str, by: Sequence[str]) -> AnswerDiff:
            self._check_in_use(lake)
            return self.compare(text, start, end, by, params)

        diff.ask = ask
        return diff

    @redacts
    def when(
        self,
        query: str,
        start: At = None,
        end: At = None,
        monotonic: bool = False,
        params: Mapping[str, object] | None = None,
    ) -> Result:
        """Returns the snapshots of the current lake at which a query's answer changed, oldest first.

        Only snapshots that changed rows or columns the query needs are asked: file lists, statistics and changed rows
        prove the others. Answers are equal if they have equal rows, in any order.

        Args:
            query: one query in DuckDB's SQL, whose answer depends on the lake alone and has at most 10,000 rows.
            start: the first snapshot, by its id, a time or a tag; by default the first that has the query's tables.
            end: the last one, inclusive; the newest by default.
            monotonic: an answer that was left never comes back, so that few snapshots need be asked.
            params: values of `:name` and `$name` parameters.

        Returns:
            snapshot_id, time, author, message and answer; the first line is the answer at the start. An answer is its
            only value, a STRUCT of its only row, or a LIST of STRUCT; text, where its columns changed; NULL at snapshots
            without a table or column of the query.

        Raises:
            EntryNotFoundError, BindError: no snapshot has the tables and columns of the query.
            UnsupportedFeatureError: the answer differs by run, as that of `random()` does.
        """
        with self._lakes.working():
            history = AnswerHistory(self._lakes, self._sources, self._engine, self.sql, query, params)
            changes = history.result(start, end, monotonic=monotonic)
            lake = self._lakes.get()

        def compare(a: int, b: int) -> AnswerDiff:
            self._check_in_use(lake)
            return self.compare(query, a, b, params=params)

        changes.compare = compare
        return changes

    def _check_in_use(self, lake: Lake) -> None:
        if self._lakes.get() is not lake:
            raise UsageError(f"The lake in use is another one now; USE {lake.alias} first.")

    def tag(self, name: str, snapshot: int | None = None) -> int:
        """Tags a snapshot of the current lake, by default the newest, and returns its id. An existing tag moves.

        A tag can replace a snapshot id everywhere. A tagged snapshot does not expire.

        Raises:
            SnapshotNotFoundError: the snapshot does not exist.
            UsageError: the name is not valid for a tag.
            TransactionError: a transaction is open; it could not roll the tag back.
        """
        self._check_no_transaction()
        return tag_snapshot(self._lakes.get(), name, snapshot)

    def untag(self, name: str) -> int:
        """Removes a tag; returns the id of the snapshot it named."""
        self._check_no_transaction()
        return untag_snapshot(self._lakes.get(), name)

    def _check_no_transaction(self) -> None:
        if self._lakes.in_transaction:
            raise TransactionError("Tags are set at once, and no ROLLBACK takes that back; COMMIT or ROLLBACK first.")

    def tags(self) -> dict[str, int]:
        """Returns the ids of the tagged snapshots of the current lake, by tag."""
        with self._lakes.get().connect() as connection:
            return read_tags(connection)

    def current_snapshot(self) -> Snapshot:
        """The snapshot that statements read now."""
        return self._lakes.state(self._lakes.get()).snapshot

    def state(self, lake: str | None = None, at: At = None) -> CatalogState:
        """Returns the entries of a lake, by default the current one, as statements see them now or at a snapshot."""
        return self._lakes.state(self._lakes.get(lake), at)

    def tables(self, at: At = None) -> list[TableInfo]:
        """The tables of all attached lakes, by lake, schema and name, with their sizes."""
        return all_tables(self._lakes, at)

    def catalog(self, at: At = None) -> tuple[CatalogState, Mapping[int, TableCounts], ViewComments]:
        """Returns the entries of the current lake, the sizes of its tables by id, and the comments of view columns."""
        lake = self._lakes.get()
        with nullcontext() if at is None else self._lakes.statement(at):
            state = self._lakes.state(lake)
            with lake.connect() as connection:
                counts = table_counts(lake, connection, state.snapshot.snapshot_id)
            return state, counts, self._sources.names.system.view_comments(lake, state)

    def view_comments(self, lake: str) -> ViewComments:
        """Returns the comments of view columns, by view id and column."""
        attached = self._lakes.get(lake)
        return self._sources.names.system.view_comments(attached, self._lakes.state(attached))

    def options(self) -> Listing:
        """The options set in the current lake, in its schemas and in its tables."""
        return options_of(self._lakes)

    def reading(self) -> AbstractContextManager[None]:
        """Opens the catalog once for all reads in the block; nobody can write to a catalog file meanwhile."""
        return self._lakes.statement()

    def health(self, table: str | None = None) -> Health:
        """Checks the files of a table, or of all tables of the current lake; changes nothing.

        It needs a few catalog queries, for any number of tables.
        """
        return health_of(self._lakes, table, self.sql)
