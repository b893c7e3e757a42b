"""The connection to a catalog database, open only while a statement needs it."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import sqlalchemy as sa

from ducklake_lab.catalog import holders, versions
from ducklake_lab.catalog.below_sqlalchemy import raw_duckdb, run_text
from ducklake_lab.catalog.damage import find_damage
from ducklake_lab.catalog.duckdb_files import FILES, FileConnection, reader_of
from ducklake_lab.catalog.engines import engine_of
from ducklake_lab.catalog.file_marks import FileMark, mark_of
from ducklake_lab.catalog.postgresql import set_autocommit
from ducklake_lab.catalog.races import is_full, is_lock_timeout
from ducklake_lab.catalog.uri import CatalogLocation, without_secrets
from ducklake_lab.catalog.versions.version import Version
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.errors import (
    CatalogError,
    CatalogLockedError,
    CatalogNotFoundError,
    DuckLakeError,
    UnsupportedFeatureError,
)
from ducklake_lab.model.quoting import quote_identifier

#: How long a locked catalog file is waited for.
LOCK_WAIT_SECONDS = 3.0
#: Seconds between two tries to open it.
_LOCK_PAUSE = (0.002, 0.02)
#: Errors of drivers of catalog databases.
_DRIVER_ERRORS = (sa.exc.SQLAlchemyError, sqlite3.Error, duckdb.Error)
_FIND_TABLE = {
    "duckdb": "SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower(:name) "
    "AND database_name = current_database() AND schema_name = current_schema()",
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name",
    "postgresql": "SELECT 1 WHERE to_regclass(quote_ident(:name)) IS NOT NULL",
    "mysql": "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = :name",
}
_LIST_TABLES = {
    "duckdb": "SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, :prefix) "
    "AND database_name = current_database() AND schema_name = current_schema() ORDER BY 1",
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' "
    "AND substr(name, 1, length(:prefix)) = :prefix ORDER BY 1",
    "postgresql": "SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, :prefix) "
    "AND pg_table_is_visible(oid) AND relnamespace <> CAST('pg_catalog' AS regnamespace) ORDER BY 1",
    "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() "
    "AND LEFT(table_name, CHAR_LENGTH(:prefix)) = :prefix ORDER BY 1",
}


#: Keys of a connection's facts about the catalog's files.
_MARK, _CONTENT = "ducklake_mark", "ducklake_content"


#: Errors of DuckDB 1.5 and 2.0 about a file that they cannot read.
_OF_NEWER_DUCKDB = re.compile("Trying to read a database file with (storage )?version number")


class _Keeping(threading.local):
    """Connections and caches of one thread for a catalog.

    Attributes:
        wanted: connections are kept from their first use until `release`.
        idle: the connection that is kept, and not in use.
    """

    wanted = False
    idle: sa.Connection | None = None


class CatalogDatabase:
    """Opens connections to one catalog; thread-safe.

    A DuckDB or SQLite file is closed as soon as the connection is, so that other processes can use it in between.
    """

    def __init__(self, location: CatalogLocation) -> None:
        self.location = location
        self._engine = engine_of(location, os.getpid())
        self._kept = _Keeping()
        self._exclusive = ExitStack()
        #: The spec version the catalog is known to have.
        self.version: Version | None = None

    @property
    def backend(self) -> str:
        return self.location.backend

    def keep_open(self) -> None:
        """Keeps one connection for this thread from its first use until `release`: opening another takes long."""
        self._kept.wanted = True

    def release(self) -> None:
        """Lets go of the catalog in this thread as soon as no connection uses it."""
        self._kept.wanted = False
        idle, self._kept.idle = self._kept.idle, None
        if idle is not None:
            idle.close()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep a DuckDB file open for many statements: none has to open it, and no other process can."""
        path = self.location.path
        if self.backend != "duckdb" or path is None:
            yield
            return
        connection = self._begun()
        try:
            connection.rollback()
            yield
        finally:
            connection.close()

    def hold(self) -> None:
        """Keeps a DuckDB file open until `dispose`, as the reference does."""
        self._exclusive.enter_context(self.held())

    def exists(self) -> bool:
        """Return whether there is a catalog file; True for servers, where only a connection shows it."""
        return self.location.path is None or self.location.path.exists()

    @contextmanager
    def connect(self, *, create: bool = False, reads: bool = False) -> Iterator[sa.Connection]:
        """A connection in a transaction that is rolled back at the end unless it was committed.

        Args:
            reads: nothing is written. PostgreSQL needs no transaction then, as each statement sees what was committed
                before it.

        Raises:
            CatalogNotFoundError: there is no such catalog and `create` is false.
            CatalogLockedError: another process or client holds the file, or holds it for too long while it is read.
            CatalogError: the database refuses the connection or a statement, or what is read from it makes no sense.
        """
        if not create and not self.exists():
            raise CatalogNotFoundError(
                f"There is no lake at {self.location.path or self.location.display}; check the path."
            )
        # views that show an older version are made for a transaction
        reads = reads and (self.version is None or self.version.is_native)
        connection = self._open(create=create, reads=reads)
        try:
            if self.version is not None:
                versions.begin(connection, self.version)
            yield connection
        except DuckLakeError:
            raise
        except Exception as error:
            explained = self._explained(error, connection)
            if explained is None:
                raise
            raise explained from error
        finally:
            self._leave(connection)

    @staticmethod
    def mark(connection: sa.Connection) -> FileMark | None:
        """Return the state of the catalog's files before the connection's transaction began; None for servers."""
        mark: FileMark | None = connection.info.get(_MARK)
        return mark

    @staticmethod
    def content(connection: sa.Connection) -> int | None:
        """The number of a DuckDB file's content when the connection's transaction began; None for other catalogs.

        The transaction reads that content or a newer one.
        """
        content: int | None = connection.info.get(_CONTENT)
        return content

    @staticmethod
    def changed(connection: sa.Connection) -> tuple[int, int] | None:
        """The numbers before and after the connection's commit; None where it has none."""
        driver = connection.connection.driver_connection
        return driver.changed if isinstance(driver, FileConnection) else None

    def explain(self, error: Exception) -> CatalogError | None:
        """Return the catalog's own error behind an error raised during its use; None where it has none."""
        with suppress(CatalogError), self.connect() as connection:
            return self._explained(error, connection)
        return None

    def _explained(self, error: Exception, connection: sa.Connection) -> CatalogError | None:
        is_of_driver = isinstance(error, _DRIVER_ERRORS)
        if is_of_driver and (locked := self._lock_message(_reason(error))) is not None:
            # SQLite gives a connection out at once, and waits for others when it reads or writes
            return CatalogLockedError(locked)
        if is_of_driver and is_full(error):
            return CatalogError(self.full())
        if is_of_driver and is_lock_timeout(error):
            return CatalogLockedError(self.held_by(connection))
        with suppress(*_DRIVER_ERRORS):
            connection.rollback()
            damage = None if self._is_foreign(error) else find_damage(connection, versions.tables(self.shown_version))
            if damage is not None:
                return CatalogError(
                    f"The catalog {self.location.display} is damaged: {damage}; restore it from a backup."
                )
        return CatalogError(self._refusal(error)) if is_of_driver else None

    def full(self) -> str:
        """Return the message of a catalog that cannot grow."""
        return (
            f"The disk of the catalog {self.location.display} is full, or its file may not grow; nothing was written. "
            "Make room and try again."
        )

    def held_by(self, connection: sa.Connection) -> str:
        """Name the client that holds the catalog after a connection has waited in vain."""
        path = self.location.path
        with suppress(*_DRIVER_ERRORS):
            connection.rollback()
        who = holders.of_server(connection) if path is None else f"{holders.of_file(path)}; wait for it, or end it"
        return f"The catalog {self.location.display} is being written by {who}."

    @property
    def shown_version(self) -> Version:
        """Version in which connections see the catalog."""
        return self.version if self.version is not None and self.version.is_native else versions.SHOWN

    @staticmethod
    def _is_foreign(error: Exception) -> bool:
        """Return whether a file is no database of this kind at all."""
        text = _reason(error)
        return "not a valid DuckDB database file" in text or "file is not a database" in text

    def _leave(self, connection: sa.Connection) -> None:
        if not self._kept.wanted or self._kept.idle is not None or connection.invalidated:
            connection.close()
            return
        try:
            connection.rollback()
        except BaseException:
            connection.close()
            raise
        self._kept.idle = connection

    def _enter(self, connection: sa.Connection, schema: str, *, create: bool) -> None:
        """Makes a schema the place of the metadata tables for this connection."""
        if self.backend not in ("duckdb", "postgresql"):
            raise UnsupportedFeatureError(f"Catalogs in {self.backend} have no schemas; leave METADATA_SCHEMA out.")
        name = quote_identifier(schema)
        # read first: on a served catalog, a read after a statement that writes would be in one transaction with it
        catalog = run_text(connection, "SELECT current_database()").scalar_one() if self.backend == "duckdb" else ""
        if create:
            run_text(connection, f"CREATE SCHEMA IF NOT EXISTS {name}")
            connection.commit()
            connection.begin()
        try:
            if self.backend == "duckdb":
                run_text(connection, f"USE {quote_identifier(catalog)}.{name}")
            else:
                run_text(connection, f"SET search_path TO {name}")
        except sa.exc.DBAPIError:
            raise CatalogNotFoundError(f"{self.location.display} has no schema {schema}.") from None
        connection.commit()
        connection.begin()

    def _open(self, *, create: bool, reads: bool) -> sa.Connection:
        """A connection in a transaction that has just begun: the one that is kept, or a new one."""
        mark = mark_of(self.location.path) if self.location.path is not None else None
        connection = self._begun_or_kept(create=create)
        if self.backend == "postgresql":
            set_autocommit(connection, wanted=reads)
        connection.info[_MARK] = mark
        return connection

    def _begun_or_kept(self, *, create: bool) -> sa.Connection:
        idle = self._kept.idle
        if idle is not None and self._kept.wanted:
            self._kept.idle = None
            try:
                self._begin(idle)
            except BaseException:
                idle.close()
                raise
            return idle
        connection = self._begun()
        if self.location.schema is not None:
            try:
                self._enter(connection, self.location.schema, create=create)
            except BaseException:
                connection.close()
                raise
        return connection

    def _begun(self) -> sa.Connection:
        deadline = time.monotonic() + LOCK_WAIT_SECONDS
        while True:
            try:
                connection = self._engine.connect()
                self._begin(connection)
                return connection
            except _DRIVER_ERRORS as error:
                locked = self._lock_message(_reason(error))
                if locked is None:
                    raise CatalogError(self._refusal(error)) from error
                if time.monotonic() > deadline:
                    raise CatalogLockedError(locked) from error
                # a process that writes all the time releases the file for moments only, which rare tries would miss
                time.sleep(random.uniform(*_LOCK_PAUSE))

    @staticmethod
    def _begin(connection: sa.Connection) -> None:
        driver = connection.connection.driver_connection
        if isinstance(driver, FileConnection):
            connection.info[_CONTENT] = driver.content
        connection.begin()

    def _lock_message(self, text: str) -> str | None:
        name = self.location.display
        if "Could not set lock" in text:
            holder = re.search(r"held in (\S+) \(PID (\d+)\)", text)
            who = holders.process(int(holder[2]), holder[1].rsplit("/", 1)[-1]) if holder else "another process"
            return f"The catalog {name} is in use by {who}; close it there, or wait until it has finished."
        if "Unique file handle conflict" in text or "different configuration" in text:
            return (
                f"The catalog {name} is open in this process through another DuckDB connection; "
                "DETACH it there or close that connection first."
            )
        if "database is locked" in text:
            path = self.location.path
            who = holders.of_file(path) if path is not None else "another process"
            return f"The catalog {name} is being written by {who}; try again when it has finished."
        return None

    def _refusal(self, error: Exception) -> str:
        if is_full(error):
            return self.full()
        reason, path = self._safe(error), self.location.path
        if path is not None and path.is_dir():
            return f"{path} is a folder; name the catalog's file."
        if self._is_foreign(error):
            return f"{self.location.display} is not a {self.location.backend} database file."
        if path is not None and _OF_NEWER_DUCKDB.search(reason):
            return (
                f"DuckDB {duckdb.__version__} cannot read the catalog {self.location.display}; use {reader_of(path)}."
            )
        return f"The catalog {self.location.display} cannot be used: {reason}"

    def _safe(self, error: Exception) -> str:
        """Return the first line of a driver's reason, without possible secrets of the URL."""
        return without_secrets(self.location.url, _reason(error).partition("\n")[0])

    def has_table(self, connection: sa.Connection, name: str) -> bool:
        """Return whether the catalog has a table of that name."""
        if self.backend == "duckdb" and self.location.path is not None:
            try:
                raw_duckdb(connection).table(name)  # a query of all tables takes a millisecond
            except duckdb.CatalogException:
                return False
            return True
        return connection.execute(sa.text(_FIND_TABLE[self.location.backend]), {"name": name}).first() is not None

    def tables_with_prefix(self, connection: sa.Connection, prefix: str) -> list[str]:
        """Names of the catalog's tables with a prefix, in order."""
        return [
            name for (name,) in connection.execute(sa.text(_LIST_TABLES[self.location.backend]), {"prefix": prefix})
        ]

    def create_table(self, connection: sa.Connection, name: str, definitions: str) -> None:
        """Creates a table in the connection's transaction, which must hold the lock of `lock_for_commit`.

        MySQL would commit the transaction with it, so there it is created at once, on a connection of its own; what
        a commit that failed has left under the name is replaced.
        """
        create = f"CREATE TABLE {quote_identifier(name)} ({definitions})"
        if self.backend != "mysql":
            run_text(connection, create)
            return
        with self._engine.connect() as other:
            run_text(other, f"DROP TABLE IF EXISTS {quote_identifier(name)}")
            run_text(other, create)

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Take the lock of statements that run again: others that run again wait, some seconds at most.

        Yields:
            Whether the catalog has such a lock; files have none.
        """
        server = self.location.server
        if server is None or server.turn is None:
            yield False
            return
        take, give_back = server.turn
        with self._engine.connect() as connection:
            try:
                connection.exec_driver_sql(take)
            except sa.exc.DBAPIError:
                connection.rollback()  # after too long a wait the statement goes on without the lock
            try:
                yield True
            finally:
                with suppress(sa.exc.DBAPIError):  # where the connection broke, the lock is gone
                    connection.exec_driver_sql(give_back)

    def dispose(self) -> None:
        """Closes pooled connections; nobody needs this catalog any more."""
        self.release()
        self._exclusive.close()
        self._engine.dispose()
        if self.backend == "duckdb" and self.location.path is not None:
            FILES.write_back(self.location.path)


def _reason(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip() or type(error).__name__
