"""The attached lakes of a session, the states in which statements read them, and the resolution of table names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.options import SessionOptions
from ducklake_lab.duckdb.stopping import is_interrupt
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.turn import Turn
from ducklake_lab.errors import DuckLakeError, EntryNotFoundError, TransactionError, UsageError, did_you_mean
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.model.quoting import path_parts, schema_path, split_dotted
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.names.read_states import At, ReadStates
from ducklake_lab.sql.operations import TableName
from ducklake_lab.transaction.transaction import Transaction

#: A table or view, a scalar or table macro, or an entry that is about to be made.
Sought = Literal["relation", "scalar", "table", "new"]


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """Entry of a lake that a name denotes, whether it exists or not: the lake, its state, and the names of schema and entry."""

    lake: Lake
    state: CatalogState
    schema: str
    name: str

    def table(self) -> Table:
        return self.state.table(self.schema, self.name)

    def find(self) -> Table | None:
        return self.state.find_table(self.schema, self.name)


class Lakes:
    """Attached lakes by alias, the current lake, and the state in which each is read.

    Args:
        database: the session's own database.
        turn: the session's turn; only the thread that holds it may use this object.

    Attributes:
        options: the session's settings for its lakes.
        reads: the snapshots and staged changes that statements read.
        on_change: called when a lake was attached or detached.
    """

    def __init__(self, database: SessionDatabase, turn: Turn | None = None) -> None:
        self._database = database
        self.turn = turn or Turn()
        self.options = SessionOptions(time_zone=database.time_zone)
        self.reads = ReadStates()
        self._by_alias: dict[str, Lake] = {}
        self._current: tuple[str, str] | None = None
        self.on_change: Callable[[], None] = lambda: None

    # Attached lakes

    def __iter__(self) -> Iterator[Lake]:
        return iter(self._by_alias.values())

    def add(self, lake: Lake) -> None:
        """Attaches a lake; it becomes the current lake if there is none."""
        self._by_alias[lake.alias] = lake
        self.on_change()
        if self._current is None:
            self._current = (lake.alias, "main")
            self._database.use(self._current)

    def find(self, alias: str) -> Lake | None:
        folded = alias.casefold()
        return next((lake for name, lake in self._by_alias.items() if name.casefold() == folded), None)

    def get(self, alias: str | None = None) -> Lake:
        """Returns the lake with that alias, or the current lake.

        Raises:
            EntryNotFoundError: no lake has the alias, or no lake is in use.
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
        """Returns whether unqualified names belong to the session's own database."""
        return self._current is None

    def leave(self) -> None:
        """Runs USE memory: unqualified names now belong to the session's own database."""
        self._current = None
        self._database.use(("memory",))

    def metadata_of(self, name: str) -> Lake | None:
        """Returns the lake whose catalog database has that name."""
        folded = name.casefold()
        return next((lake for lake in self if lake.metadata_name.casefold() == folded), None)

    @property
    def current(self) -> Lake | None:
        """The current lake; None if none is in use."""
        return self._by_alias[self._current[0]] if self._current is not None else None

    def remove(self, lake: Lake) -> None:
        """Detaches a lake.

        Raises:
            TransactionError: it has uncommitted changes.
        """
        self._let_go(lake)
        del self._by_alias[lake.alias]
        if self._current is not None and self._current[0] == lake.alias:
            self.leave()
        self.on_change()

    def replace(self, lake: Lake) -> None:
        """Attaches a lake in place of the one that has its alias; the schema in use stays in use if the lake has it.

        Raises:
            TransactionError: a transaction is open.
        """
        if self.in_transaction:
            raise TransactionError("A transaction is open; COMMIT or ROLLBACK before you switch branches.")
        self._let_go(self._by_alias[lake.alias])
        self._by_alias[lake.alias] = lake
        if self._current is not None and self._current[0] == lake.alias:
            schema = self._current[1]
            self._current = (lake.alias, schema if self.state(lake).find_schema(schema) is not None else "main")
            self._database.use(self._current)
        self.on_change()

    def _let_go(self, lake: Lake) -> None:
        if self.transaction is not None and self.transaction.lake is lake and self.transaction.has_changes:
            raise TransactionError(f"The lake {lake.alias} has uncommitted changes; COMMIT or ROLLBACK first.")
        self.reads.unpin([lake.alias])
        self._database.forget(lake.alias)
        lake.database.dispose()

    @property
    def current_schema(self) -> str:
        return self._current[1] if self._current is not None else "main"

    def schema_in_use(self, lake: Lake) -> str:
        """Returns the schema of unqualified names in a lake."""
        return self.current_schema if self._current is not None and self._current[0] == lake.alias else "main"

    def use(self, parts: tuple[str, ...]) -> None:
        """Runs USE lake, USE schema or USE lake.schema."""
        if len(parts) > 2:
            raise UsageError("USE takes a lake, a schema or lake.schema; a nested schema cannot be in use.")
        schema = schema_path(parts[-1:])
        if len(parts) == 2:
            lake = self.get(parts[0])
        elif (named_lake := self.find(parts[0])) is not None:
            lake, schema = named_lake, "main"
        else:
            lake = self.get()
            if self.state(lake).find_schema(schema) is None:
                names = [*self._by_alias, *(s.name for s in self.state(lake).schemas.values())]
                raise EntryNotFoundError(f'There is no lake or schema "{parts[0]}".{did_you_mean(parts[0], names)}')
        self._current = (lake.alias, self.state(lake).schema(schema).name)
        self._database.use(self._current)

    @contextmanager
    def standing_in(self, lake: Lake, schema: str) -> Iterator[None]:
        """Looks unqualified names up in a schema of a lake in the block, as a stored query does."""
        before = self._current
        self._current = (lake.alias, self.state(lake).schema(schema).name)
        self._database.use(self._current)
        try:
            yield
        finally:
            self._current = before
            self._database.use(before or ("memory",))

    @contextmanager
    def in_place(self, lake: Lake, transaction: Transaction | None = None) -> Iterator[None]:
        """Reads a lake in the block in place of the attached one of its alias, which it is a branch of.

        Args:
            transaction: one on that lake, whose changes are read too.
        """
        attached, reads = self._by_alias[lake.alias], self.reads
        self._by_alias[lake.alias], self.reads = lake, ReadStates()
        self.reads.transaction = transaction
        try:
            with self.reads.statement():
                yield
        finally:
            self._by_alias[lake.alias], self.reads = attached, reads

    @contextmanager
    def statement(self, at: At = None) -> Iterator[None]:
        """Runs one statement in the block: opens catalogs once, and reads each lake at one snapshot.

        Args:
            at: the default snapshot of the current lake; a statement with one cannot write.
        """
        with self.turn.taken():
            self.keep_open()
            try:
                with self.reads.statement(at):
                    yield
            finally:
                self.release()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Takes the turn for work on lakes in the block, and explains errors of a damaged catalog.

        Raises:
            KeyboardInterrupt: the user interrupted, even if DuckDB raised another error for it.
            SessionBusyError: another thread uses the session for too long.
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
        """Closes catalog files, so that other clients can use them during a job."""
        for lake in self:
            lake.database.release()

    def pin(self, lake: Lake, at: At) -> Snapshot | None:
        """Pins a lake at a snapshot for all reads; None unpins it. See `Lake.pin`.

        Raises:
            TransactionError: a transaction is open, which reads its own snapshot.
        """
        if self.in_transaction:
            raise TransactionError(
                "A transaction is open, and reads one snapshot until its end; COMMIT or ROLLBACK first."
            )
        snapshot = lake.pin(at)
        self.reads.unpin([lake.alias])
        return snapshot

    # Names

    @property
    def transaction(self) -> Transaction | None:
        """The open transaction, which statements read and write in; None if there is none."""
        return self.reads.transaction

    @property
    def in_transaction(self) -> bool:
        """Returns whether a BEGIN pins the snapshots of all lakes."""
        return self.reads.held

    def state(self, lake: Lake, at: At = None) -> CatalogState:
        """Returns the entries of a lake: at a snapshot, or with the open transaction's changes, or the newest."""
        is_current = self._current is not None and lake.alias == self._current[0]
        return self.reads.state(lake, self.reads.at if at is None and is_current else at)

    def is_fixed(self, lake: Lake, at: At = None) -> bool:
        """Whether a statement names the snapshot at which it reads a lake, so that it reads the same rows again."""
        is_current = self._current is not None and lake.alias == self._current[0]
        return at is not None or lake.at is not None or (is_current and self.reads.at is not None)

    def entry(
        self, catalog: str | None, schema: str | None, name: str, at: At = None, sought: Sought = "relation"
    ) -> NamedEntry:
        """Resolves `[catalog.][schema.]name`; the first part may be a lake or a schema.

        An unqualified name is looked up in the current schema and then in `main`, as in DuckDB.
        """
        if catalog is not None:
            if self.find(catalog) is None and schema is not None and self._current is not None:
                lake = self.get()
                nested = schema_path((catalog, *path_parts(schema)))
                if self.state(lake, at).find_schema(nested) is not None:
                    return NamedEntry(lake, self.state(lake, at), nested, name)
            lake = self.get(catalog)
            return NamedEntry(lake, self.state(lake, at), schema or "main", name)
        if schema is not None:
            other = self.find(schema)
            if other is not None and (self._current is None or self.state(self.get()).find_schema(schema) is None):
                return NamedEntry(other, self.state(other, at), "main", name)
            lake = self.get()
            return NamedEntry(lake, self.state(lake, at), schema, name)
        lake = self.get()
        state = self.state(lake, at)
        return NamedEntry(lake, state, self._schema_of(state, name, sought), name)

    def _schema_of(self, state: CatalogState, name: str, sought: Sought) -> str:
        """Returns the current schema, or `main` if that alone has an entry of the name."""
        own = self.current_schema

        def has(schema: str) -> bool:
            if sought == "relation":
                return state.find_table(schema, name) is not None or state.find_view(schema, name) is not None
            return state.find_macro(schema, name, sought) is not None

        if sought == "new" or own.casefold() == "main" or has(own) or not has("main"):
            return own
        return "main"

    def parse(self, name: str, at: At = None, sought: Sought = "relation") -> NamedEntry:
        """Resolves a dotted name in a string; parts may be quoted."""
        parts = TableName.of(split_name(name))
        return self.entry(parts.catalog, parts.schema, parts.name, at, sought)


def split_name(name: str) -> tuple[str, ...]:
    """Splits a dotted name in a string; parts may be quoted."""
    try:
        return split_dotted(name)
    except ValueError:
        raise UsageError(f"{name} is not a table name; write table, schema.table or lake.schema.table.") from None
