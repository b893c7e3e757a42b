"""The lakes attached to a session, the open transaction, and how names find their way to tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from ducklake_lab.catalog.kept import Kept
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.options import SessionOptions
from ducklake_lab.duckdb.stopping import is_interrupt
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.turn import Turn
from ducklake_lab.errors import (
    BindError,
    CommitUnknownError,
    DuckLakeError,
    EntryExistsError,
    EntryNotFoundError,
    TransactionError,
    UsageError,
    did_you_mean,
)
from ducklake_lab.files.deletes import restamped
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.model.quoting import path_parts, schema_path, split_dotted
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.names.commit_notes import CommitNotes
from ducklake_lab.sql.operations import TableName
from ducklake_lab.transaction.commit import commit
from ducklake_lab.transaction.transaction import Transaction

#: A snapshot: its id, a time at which it was the newest, or its tag; None for the newest.
At = int | datetime | str | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name points: a lake, the entries it is looked up in, a schema's name and an entry's."""

    lake: Lake
    state: CatalogState
    schema: str
    name: str

    def table(self) -> Table:
        return self.state.table(self.schema, self.name)

    def find(self) -> Table | None:
        return self.state.find_table(self.schema, self.name)


class Lakes:
    """Attached lakes by alias, the current one, and at most one open transaction.

    Args:
        database: the session's own database, which takes part in the transactions.
        turn: of the session; all that is here belongs to the thread that has it.

    Attributes:
        options: what the session sets for its lakes.
        immediate: a transaction reads all lakes as of its BEGIN, rather than each as of when it is first read.
        notes: what commits say of themselves.
        last: the transaction that a statement last wrote in by itself.
    """

    def __init__(self, database: SessionDatabase, turn: Turn | None = None) -> None:
        self._database = database
        self.turn = turn or Turn()
        self.options = SessionOptions(time_zone=database.time_zone)
        self.immediate = False
        self.notes = CommitNotes()
        #: Snapshots that the statements of the text that runs have made.
        self.committed: list[int] = []
        self.last: Transaction | None = None
        self._pins: dict[str, Snapshot] = {}
        self._known: dict[str, Kept] = {}
        self._by_alias: dict[str, Lake] = {}
        self._current: tuple[str, str] | None = None
        self._open: Transaction | None = None
        self._explicit = False
        self._aborted = False
        self._is_preview = False
        self._at: At = None
        self._in_statement = False

    # Attached lakes

    def __iter__(self) -> Iterator[Lake]:
        return iter(self._by_alias.values())

    def add(self, lake: Lake) -> None:
        """Attaches a lake; unqualified names are its own if no other lake's are."""
        self._by_alias[lake.alias] = lake
        if self._current is None:
            self._current = (lake.alias, "main")
            self._database.use(self._current)

    def find(self, alias: str) -> Lake | None:
        folded = alias.casefold()
        return next((lake for name, lake in self._by_alias.items() if name.casefold() == folded), None)

    def get(self, alias: str | None = None) -> Lake:
        """The lake of that alias, or the current one.

        Raises:
            EntryNotFoundError: there is none of that name.
            UsageError: no lake is attached.
        """
        if not self._by_alias:
            raise UsageError('No lake is attached; attach one with session.attach("ducklake:metadata.ducklake").')
        if alias is None:
            if self._current is None:
                raise EntryNotFoundError(f"No lake is in use; choose one with USE: {', '.join(self._by_alias)}.")
            return self._by_alias[self._current[0]]
        lake = self.find(alias)
        if lake is None:
            raise EntryNotFoundError(f'No lake "{alias}" is attached.{did_you_mean(alias, self._by_alias)}')
        return lake

    @property
    def at_home(self) -> bool:
        """Whether unqualified names are those of the session's own database."""
        return self._current is None

    def leave(self) -> None:
        """USE memory: unqualified names are those of the session's own database from now on."""
        self._current = None
        self._database.use(("memory",))

    def metadata_of(self, name: str) -> Lake | None:
        """The lake whose catalog database goes by that name."""
        folded = name.casefold()
        return next((lake for lake in self if lake.metadata_name.casefold() == folded), None)

    @property
    def current(self) -> Lake | None:
        """The lake of unqualified names; None where none is in use."""
        return self._by_alias[self._current[0]] if self._current is not None else None

    def remove(self, lake: Lake) -> None:
        if self._open is not None and self._open.lake is lake and self._open.has_changes:
            raise TransactionError(f"The lake {lake.alias} has uncommitted changes; COMMIT or ROLLBACK first.")
        del self._by_alias[lake.alias]
        self._pins.pop(lake.alias, None)
        if self._current is not None and self._current[0] == lake.alias:
            self.leave()
        self._database.forget(lake.alias)
        lake.database.dispose()

    @property
    def current_schema(self) -> str:
        return self._current[1] if self._current is not None else "main"

    def schema_in_use(self, lake: Lake) -> str:
        """The schema of unqualified names in a lake."""
        return self.current_schema if self._current is not None and self._current[0] == lake.alias else "main"

    def use(self, parts: tuple[str, ...]) -> None:
        """USE lake, USE schema or USE lake.schema."""
        if len(parts) > 2:
            raise UsageError("USE takes a lake, a schema or lake.schema; a nested schema cannot be in use.")
        schema = schema_path(parts[-1:])
        if len(parts) == 2:
            lake = self.get(parts[0])
        elif (found := self.find(parts[0])) is not None:
            lake, schema = found, "main"
        else:
            lake = self.get()
            if self.state(lake).find_schema(schema) is None:
                known = [*self._by_alias, *(s.name for s in self.state(lake).schemas.values())]
                raise EntryNotFoundError(f'There is no lake or schema "{parts[0]}".{did_you_mean(parts[0], known)}')
        self._current = (lake.alias, self.state(lake).schema(schema).name)
        self._database.use(self._current)

    @contextmanager
    def statement(self, at: At = None) -> Iterator[None]:
        """Around one statement: catalogs are opened once for it, and it reads each lake at one snapshot.

        Args:
            at: what the statement reads of the current lake where it does not say; it cannot write then.
        """
        with self.turn.taken():
            self.keep_open()
            self._at, self._in_statement = at, True
            try:
                yield
            finally:
                self._at, self._in_statement = None, False
                if not self._explicit:
                    self._pins.clear()
                self.release()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Around whatever uses the lakes: other threads wait, and an error of a damaged catalog says what is wrong with it.

        Raises:
            KeyboardInterrupt: the user stopped it, whatever DuckDB raises then.
            SessionBusyError: another thread works with the session for too long.
        """
        with self.turn.taken():
            try:
                yield
            except DuckLakeError:
                raise
            except Exception as error:
                if is_interrupt(error):
                    raise KeyboardInterrupt from None
                for lake in self:
                    if (explained := lake.database.explain(error)) is not None:
                        raise explained from error
                raise

    def keep_open(self) -> None:
        """Keeps catalogs open from their first use to `release`."""
        for lake in self:
            lake.database.keep_open()

    def release(self) -> None:
        """Lets go of catalog files, so that others can use them while a job runs."""
        for lake in self:
            lake.database.release()

    # Names

    def state(self, lake: Lake, at: At = None) -> CatalogState:
        """The entries of a lake: at a snapshot, else with the open transaction's changes, else the newest."""
        if at is None and self._at is not None and self._current is not None and lake.alias == self._current[0]:
            at = self._at
        if at is None and self._open is not None and self._open.lake is lake:
            return self._open.state
        if at is not None:
            with lake.connect() as connection:
                return lake.state(connection, lake.snapshot(connection, at))
        pinned = self._pins.get(lake.alias) or lake.newest()
        state = lake.known_state(pinned) if pinned is not None else None
        if state is None and pinned is not None:
            with lake.connect() as connection:
                state = lake.state(connection, pinned)
        found = state or lake.read_newest()
        if self._explicit or self._in_statement:
            self._pins[lake.alias] = found.snapshot
        return found

    def is_newest(self, lake: Lake, state: CatalogState) -> bool:
        """Whether a state is the newest snapshot of the lake, as this statement found it, and no transaction is open."""
        pinned = self._pins.get(lake.alias)
        at_newest = pinned is not None and pinned.snapshot_id == state.snapshot.snapshot_id and lake.at is None
        return at_newest and self._open is None and not self._explicit

    def is_uncommitted(self, state: CatalogState) -> bool:
        """Whether a state is that of the open transaction, which has changed something."""
        return self._explicit and self._open is not None and self._open.state is state and self._open.has_changes

    def place(self, catalog: str | None, schema: str | None, name: str, at: At = None) -> Place:
        """Where `[catalog.][schema.]name` points; the first part may be a lake or a schema."""
        if catalog is not None:
            if self.find(catalog) is None and schema is not None and self._current is not None:
                lake = self.get()
                nested = schema_path((catalog, *path_parts(schema)))
                if self.state(lake, at).find_schema(nested) is not None:
                    return Place(lake, self.state(lake, at), nested, name)
            lake = self.get(catalog)
            return Place(lake, self.state(lake, at), schema or "main", name)
        if schema is not None:
            other = self.find(schema)
            if other is not None and (self._current is None or self.state(self.get()).find_schema(schema) is None):
                return Place(other, self.state(other, at), "main", name)
            lake = self.get()
            return Place(lake, self.state(lake, at), schema, name)
        lake = self.get()
        return Place(lake, self.state(lake, at), self.current_schema, name)

    def parse(self, name: str, at: At = None) -> Place:
        """Where a dotted name in a string points; parts may be quoted."""
        found = TableName.of(split_name(name))
        return self.place(found.catalog, found.schema, found.name, at)

    # Transactions

    @property
    def in_transaction(self) -> bool:
        return self._explicit

    @property
    def is_writing(self) -> bool:
        """Whether a transaction is open, or a statement is within its own."""
        return self._explicit or self._open is not None

    @property
    def transaction(self) -> Transaction | None:
        return self._open

    def check_usable(self) -> None:
        """Raises TransactionError where a statement of the open transaction has failed."""
        if self._aborted:
            raise TransactionError("A statement of this transaction has failed; ROLLBACK before going on.")

    def check_present(self) -> None:
        """Raises UsageError where the statement reads a snapshot of the past, and so cannot write."""
        if self._at is not None:
            raise UsageError(f"Nothing can be written at {self._at}, which is the past; leave at out to write.")

    def abort(self) -> None:
        """A statement of the open transaction has failed: only ROLLBACK is left."""
        self._aborted = True

    def begin(self, *, preview: bool = False) -> None:
        """Opens a transaction; in that of a preview nothing runs outside of it."""
        if self._explicit:
            raise TransactionError("A transaction is open already; COMMIT or ROLLBACK it first.")
        self._explicit, self._is_preview = True, preview
        self._database.begin()
        if self.immediate:
            for lake in self:
                self.state(lake)

    @property
    def written(self) -> str | None:
        """The alias of the lake that the open transaction writes to; None where there is none."""
        return self._open.lake.alias if self._open is not None else None

    def commit(self) -> Snapshot | None:
        """Commits the open transaction; gives the new snapshot, or None where nothing was changed."""
        if not self._explicit:
            raise TransactionError("No transaction is open; BEGIN one first.")
        if self._aborted:
            self.rollback()
            raise TransactionError("A statement of this transaction had failed; it was rolled back.")
        transaction = self._open
        if transaction is None:
            self._forget(commit=True)
            return None
        self.notes.settle(transaction)
        try:
            snapshot = commit(transaction)
            self._note_commit(snapshot)
        except CommitUnknownError:
            self._forget()
            raise
        except BaseException:
            self.rollback()
            raise
        self._forget(commit=True)
        return snapshot

    def _note_commit(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.committed.append(snapshot.snapshot_id)

    def rollback(self) -> None:
        if not self._explicit:
            raise TransactionError("No transaction is open; BEGIN one first.")
        transaction = self._open
        self._forget()
        if transaction is not None:
            transaction.rollback()

    def _forget(self, *, commit: bool = False) -> None:
        self._open, self._explicit, self._aborted = None, False, False
        self._pins.clear()
        self._database.end(commit=commit)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Around what happens outside of the open transaction, which goes on afterwards.

        Raises:
            TransactionError: that is a preview, of which all has to be undone.
        """
        if self._explicit and self._is_preview:
            raise TransactionError(
                "CHECKPOINT works outside of transactions, so there is no preview of it; run it alone."
            )
        kept = self._open, self._explicit, self._aborted, dict(self._pins)
        self._forget()
        try:
            yield
        finally:
            self._open, self._explicit, self._aborted = kept[:3]
            self._pins.clear()
            self._pins.update(kept[3])

    @contextmanager
    def assuming(self) -> Iterator[bool]:
        """Around a statement that begins on what is known of lakes, if anything is, and reads no rows of them."""
        known = {
            lake.alias: kept for lake in self if (kept := lake.known()) is not None and lake.alias not in self._pins
        }
        for alias, kept in known.items():
            self._pins[alias] = kept.snapshot
        self._known, self.last = known, None
        try:
            yield bool(known)
        finally:
            self._known = {}
            for alias in known:
                self._pins.pop(alias, None)

    def _begun(self, lake: Lake) -> Transaction:
        transaction = Transaction(lake, self._pins.get(lake.alias), restamped, self._known.get(lake.alias))
        transaction.author = self.notes.author()
        return transaction

    @contextmanager
    def writing(self, lake: Lake) -> Iterator[Transaction]:
        """The transaction a statement writes in: the open one, or one that is committed at the end.

        When the statement fails, its own transaction is rolled back, and an open one must be, unless the statement
        was only wrong about a name.
        """
        self.check_present()
        if self._explicit:
            if self._open is None:
                self._open = self._begun(lake)
            elif self._open.lake is not lake:
                raise TransactionError(
                    f"The open transaction writes to {self._open.lake.alias}; a transaction writes to one lake only."
                )
            self.notes.say(self._open)
            try:
                yield self._open
                self.notes.note(self._open)
            except (BindError, EntryNotFoundError, EntryExistsError):
                raise  # found before anything was changed: the transaction goes on, as in DuckDB
            except BaseException:
                self._aborted = True
                raise
            return
        if self._open is not None:
            # within a statement that writes already, such as INSERT … FROM lake.f()
            if self._open.lake is not lake:
                raise TransactionError(f"The statement writes to {self._open.lake.alias} already.")
            yield self._open
            return
        transaction = self._begun(lake)
        self.notes.say(transaction)
        self._open = self.last = transaction
        try:
            yield transaction
            self.notes.note(transaction)
            self.notes.settle(transaction)
            self._note_commit(commit(transaction))
        except CommitUnknownError:
            raise
        except BaseException:
            transaction.rollback()
            raise
        finally:
            self._open = None
            self._pins.clear()


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted name in a string, which may be quoted."""
    try:
        return split_dotted(name)
    except ValueError:
        raise UsageError(f"{name} is not a table name; write table, schema.table or lake.schema.table.") from None
