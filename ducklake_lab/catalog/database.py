"""The connection to a catalog database, open only while a statement needs it."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.errors import CatalogError, CatalogLockedError, CatalogNotFoundError

#: How long a locked catalog file is waited for.
LOCK_WAIT_SECONDS = 3.0


class CatalogDatabase:
    """Opens connections to one catalog.

    A DuckDB or SQLite file is closed as soon as the connection is, so that other processes can use it in between.
    """

    def __init__(self, location: CatalogLocation) -> None:
        self.location = location
        options: dict[str, Any] = {"poolclass": NullPool} if location.path is not None else {"pool_pre_ping": True}
        try:
            self._engine = sa.create_engine(location.url, **options)
        except ImportError:
            raise CatalogError(
                "PostgreSQL catalogs need the psycopg driver: pip install 'ducklake-lab[postgres]'."
            ) from None
        self._keeping = False
        self._keeper: sa.Connection | None = None
        if location.backend == "sqlite":
            _take_over_sqlite_transactions(self._engine)

    @property
    def backend(self) -> str:
        return self.location.backend

    def keep_open(self) -> None:
        """Keeps a DuckDB file open from its next use until `release`: opening it again and again takes 15 ms each."""
        self._keeping = self.location.backend == "duckdb"

    def release(self) -> None:
        """Lets go of the file as soon as no connection uses it."""
        self._keeping = False
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def exists(self) -> bool:
        """Whether there is a catalog file; True for servers, which only a connection can tell."""
        return self.location.path is None or self.location.path.exists()

    @contextmanager
    def connect(self, *, create: bool = False) -> Iterator[sa.Connection]:
        """A connection in a transaction that is rolled back at the end unless it was committed.

        Raises:
            CatalogNotFoundError: there is no such catalog and `create` is false.
            CatalogLockedError: another process or client holds the file.
            CatalogError: the database refuses the connection.
        """
        if not create and not self.exists():
            raise CatalogNotFoundError(
                f"There is no lake at {self.location.display}; check the path, or attach with create_if_not_exists."
            )
        connection = self._open()
        try:
            yield connection
        finally:
            connection.close()

    def _open(self) -> sa.Connection:
        deadline = time.monotonic() + LOCK_WAIT_SECONDS
        pause = 0.02
        while True:
            try:
                connection = self._engine.connect()
                connection.begin()
                if self._keeping and self._keeper is None:
                    self._keeper = self._engine.connect()
                return connection
            except (sa.exc.DBAPIError, sqlite3.OperationalError) as error:
                locked = self._lock_message(str(getattr(error, "orig", error)))
                if locked is None:
                    raise CatalogError(self._refusal(error)) from error
                if time.monotonic() + pause > deadline:
                    raise CatalogLockedError(locked) from error
                time.sleep(pause)
                pause = min(pause * 2, 0.4)

    def _lock_message(self, text: str) -> str | None:
        name = self.location.display
        if "Could not set lock" in text:
            holder = re.search(r"held in (\S+) \(PID (\d+)\)", text)
            who = f"{holder[1].rsplit('/', 1)[-1]} (process {holder[2]})" if holder else "another process"
            return f"The catalog {name} is in use by {who}; close it there, or wait until it has finished."
        if "Unique file handle conflict" in text or "different configuration" in text:
            return (
                f"The catalog {name} is open in this process through another DuckDB connection; "
                "DETACH it there or close that connection first."
            )
        if "database is locked" in text:
            return f"The catalog {name} is being written by another process; try again when it has finished."
        return None

    def _refusal(self, error: Exception) -> str:
        text = str(getattr(error, "orig", error)).strip().splitlines()
        reason = text[0] if text else type(error).__name__
        if "not a valid DuckDB database file" in reason or "file is not a database" in reason:
            return f"{self.location.display} is not a {self.location.backend} database file."
        password = self.location.url.password
        if password:
            reason = reason.replace(str(password), "***")
        return f"The catalog {self.location.display} cannot be opened: {reason}"

    def has_table(self, connection: sa.Connection, name: str) -> bool:
        """Whether the catalog has a table of that name."""
        query = {
            "duckdb": "SELECT 1 FROM duckdb_tables() WHERE table_name = :name AND NOT internal",
            "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name",
            "postgresql": "SELECT 1 WHERE to_regclass(quote_ident(:name)) IS NOT NULL",
        }[self.location.backend]
        return connection.execute(sa.text(query), {"name": name}).first() is not None

    def tables_with_prefix(self, connection: sa.Connection, prefix: str) -> list[str]:
        """Names of the catalog's tables that begin so, in order."""
        query = {
            "duckdb": "SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, :prefix) ORDER BY 1",
            "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' "
            "AND substr(name, 1, length(:prefix)) = :prefix ORDER BY 1",
            "postgresql": "SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, :prefix) "
            "AND pg_table_is_visible(oid) ORDER BY 1",
        }[self.location.backend]
        return [name for (name,) in connection.execute(sa.text(query), {"prefix": prefix})]

    def dispose(self) -> None:
        """Closes pooled connections."""
        self.release()
        self._engine.dispose()


def raw_duckdb(connection: sa.Connection) -> Any:
    """The DuckDB connection below a SQLAlchemy one: for Arrow in and out."""
    wrapper: Any = connection.connection.driver_connection
    return getattr(wrapper, "c", wrapper)


def _take_over_sqlite_transactions(engine: sa.Engine) -> None:
    """Lets BEGIN IMMEDIATE take the write lock at once, so that ids read are ids nobody else takes."""

    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout = 3000")

    def began(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    listen: Callable[..., Any] = sa.event.listen
    listen(engine, "connect", connected)
    listen(engine, "begin", began)


def lock_for_commit(connection: sa.Connection) -> None:
    """Makes this transaction the only writer where the database would otherwise let two read the same ids."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
