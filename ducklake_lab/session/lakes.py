"""The lakes attached to a session, the open transaction, and how names find their way to tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import CommitUnknownError, EntryNotFoundError, TransactionError, UsageError, did_you_mean
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.model.state import CatalogState
from ducklake_lab.transaction.commit import commit
from ducklake_lab.transaction.transaction import Transaction

At = int | datetime | None


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
    """Attached lakes by alias, the current one, and at most one open transaction."""

    def __init__(self) -> None:
        self._by_alias: dict[str, Lake] = {}
        self._current: tuple[str, str] | None = None
        self._open: Transaction | None = None
        self._explicit = False
        self._aborted = False

    # Attached lakes

    def __iter__(self) -> Iterator[Lake]:
        return iter(self._by_alias.values())

    def add(self, lake: Lake) -> None:
        self._by_alias[lake.alias] = lake
        if self._current is None:
            self._current = (lake.alias, "main")

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
                raise UsageError(f"No lake is in use; choose one with USE: {', '.join(self._by_alias)}.")
            return self._by_alias[self._current[0]]
        lake = self.find(alias)
        if lake is None:
            raise EntryNotFoundError(f'No lake "{alias}" is attached.{did_you_mean(alias, self._by_alias)}')
        return lake

    def remove(self, lake: Lake) -> None:
        if self._open is not None and self._open.lake is lake and self._open.has_changes:
            raise TransactionError(f"The lake {lake.alias} has uncommitted changes; COMMIT or ROLLBACK first.")
        del self._by_alias[lake.alias]
        if self._current is not None and self._current[0] == lake.alias:
            self._current = (next(iter(self._by_alias)), "main") if self._by_alias else None
        lake.database.dispose()

    @property
    def current_schema(self) -> str:
        return self._current[1] if self._current is not None else "main"

    def use(self, parts: tuple[str, ...]) -> None:
        """USE lake, USE schema or USE lake.schema."""
        if len(parts) == 2:
            lake, schema = self.get(parts[0]), parts[1]
        elif (found := self.find(parts[0])) is not None:
            lake, schema = found, "main"
        else:
            lake, schema = self.get(), parts[0]
            if self.state(lake).find_schema(schema) is None:
                known = [*self._by_alias, *(s.name for s in self.state(lake).schemas.values())]
                raise EntryNotFoundError(f'There is no lake or schema "{schema}".{did_you_mean(schema, known)}')
        self._current = (lake.alias, self.state(lake).schema(schema).name)

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Around one statement: catalog files are opened once for it."""
        for lake in self:
            lake.database.keep_open()
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """Lets go of catalog files, so that others can use them while a job runs."""
        for lake in self:
            lake.database.release()

    # Names

    def state(self, lake: Lake, at: At = None) -> CatalogState:
        """The entries of a lake: at a snapshot, else with the open transaction's changes, else the newest."""
        if at is None and self._open is not None and self._open.lake is lake:
            return self._open.state
        with lake.connect() as connection:
            return lake.state(connection, lake.snapshot(connection, at))

    def place(self, catalog: str | None, schema: str | None, name: str, at: At = None) -> Place:
        """Where `[catalog.][schema.]name` points; with two parts the first may also be a lake."""
        if catalog is not None:
            lake = self.get(catalog)
            return Place(lake, self.state(lake, at), schema or "main", name)
        if schema is not None:
            lake = self.get()
            state = self.state(lake, at)
            other = self.find(schema)
            if state.find_schema(schema) is None and other is not None:
                return Place(other, self.state(other, at), "main", name)
            return Place(lake, state, schema, name)
        lake = self.get()
        return Place(lake, self.state(lake, at), self.current_schema, name)

    def parse(self, name: str, at: At = None) -> Place:
        """Where a dotted name in a string points; parts may be quoted."""
        parts = _split_name(name)
        padded = (None,) * (3 - len(parts)) + parts
        return self.place(padded[0], padded[1], parts[-1], at)

    # Transactions

    @property
    def in_transaction(self) -> bool:
        return self._explicit

    @property
    def transaction(self) -> Transaction | None:
        return self._open

    def check_usable(self) -> None:
        """Raises TransactionError where a statement of the open transaction has failed."""
        if self._aborted:
            raise TransactionError("A statement of this transaction has failed; ROLLBACK before going on.")

    def begin(self) -> None:
        if self._explicit:
            raise TransactionError("A transaction is open already; COMMIT or ROLLBACK it first.")
        self._explicit = True

    def commit(self) -> Snapshot | None:
        """Commits the open transaction; gives the new snapshot, or None where nothing was changed."""
        if not self._explicit:
            raise TransactionError("No transaction is open; BEGIN one first.")
        if self._aborted:
            self.rollback()
            raise TransactionError("A statement of this transaction had failed; it was rolled back.")
        transaction = self._open
        if transaction is None:
            self._explicit = False
            return None
        try:
            snapshot = commit(transaction)
        except CommitUnknownError:
            self._forget()
            raise
        except BaseException:
            self.rollback()
            raise
        self._forget()
        return snapshot

    def rollback(self) -> None:
        if not self._explicit:
            raise TransactionError("No transaction is open; BEGIN one first.")
        transaction = self._open
        self._forget()
        if transaction is not None:
            transaction.rollback()

    def _forget(self) -> None:
        self._open, self._explicit, self._aborted = None, False, False

    @contextmanager
    def writing(self, lake: Lake) -> Iterator[Transaction]:
        """The transaction a statement writes in: the open one, or one that is committed at the end.

        When the statement fails, its own transaction is rolled back, and an open one must be.
        """
        if self._explicit:
            if self._open is None:
                self._open = Transaction(lake)
            elif self._open.lake is not lake:
                raise TransactionError(
                    f"The open transaction writes to {self._open.lake.alias}; a transaction writes to one lake only."
                )
            try:
                yield self._open
            except BaseException:
                self._aborted = True
                raise
            return
        transaction = Transaction(lake)
        self._open = transaction
        try:
            yield transaction
            commit(transaction)
        except CommitUnknownError:
            raise
        except BaseException:
            transaction.rollback()
            raise
        finally:
            self._open = None


def _split_name(name: str) -> tuple[str, ...]:
    parts: list[str] = []
    current, quoted = "", False
    for index, character in enumerate(name):
        if character == '"':
            if quoted and name[index + 1 : index + 2] == '"':
                current += '"'
            quoted = not quoted
        elif character == "." and not quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    if quoted or not all(parts) or len(parts) > 3:
        raise UsageError(f"{name} is not a table name; write table, schema.table or lake.schema.table.")
    return tuple(parts)
