"""Few round trips to PostgreSQL: writes go together, reads need no transaction, and live connections no ping."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from ducklake_lab.model.quoting import quote_identifier

_UNREAD = "ducklake_unread"
#: Execution options of a statement whose result nobody reads. PostgreSQL gets it together with the next one that has a
#: result, or before COMMIT, and an error of it is raised there. Other databases run it at once.
UNREAD = {_UNREAD: True}
#: Seconds after which an idle connection is asked whether it is alive.
_IDLE_SECONDS = 30.0


class PostgreSQLDialect(PGDialect_psycopg):
    """The dialect of psycopg, with `UNREAD` statements held until another one is sent.

    Connections that were used a moment ago are given out without a ping. A server that ends a connection writes that to
    its socket, where it is found without a round trip.
    """

    supports_statement_cache = True

    def __init__(self, **options: object) -> None:
        parent: Any = super()  # untyped
        parent.__init__(**options)
        self._held: WeakKeyDictionary[object, list[Callable[[], object]]] = WeakKeyDictionary()
        self._used: WeakKeyDictionary[object, float] = WeakKeyDictionary()

    def do_execute(self, cursor: object, statement: str, parameters: object, context: object = None) -> None:
        self._run(cursor, context, "execute", statement, parameters)

    def do_executemany(self, cursor: object, statement: str, parameters: object, context: object = None) -> None:
        self._run(cursor, context, "executemany", statement, parameters)

    def do_commit(self, dbapi_connection: Any) -> None:
        self._send(dbapi_connection.driver_connection)
        parent: Any = super()
        parent.do_commit(dbapi_connection)

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Roll back, also for the pool when a connection returns: it is ready for any use then."""
        driver = dbapi_connection.driver_connection
        self._held.pop(driver, None)
        parent: Any = super()
        parent.do_rollback(dbapi_connection)
        if driver.autocommit:
            driver.autocommit = False
        self._used[driver] = time.monotonic()

    def do_ping(self, dbapi_connection: Any) -> bool:
        unused = time.monotonic() - self._used.get(dbapi_connection, 0.0)
        if unused < _IDLE_SECONDS and not dbapi_connection.closed and not _has_input(dbapi_connection):
            return True
        parent: Any = super()
        return bool(parent.do_ping(dbapi_connection))

    def _run(self, cursor: Any, context: Any, method: str, statement: str, parameters: Any) -> None:
        connection = cursor.connection
        if context is not None and context.execution_options.get(_UNREAD):
            # its own cursor is closed before it is sent
            self._held.setdefault(connection, []).append(
                lambda: getattr(connection.cursor(), method)(statement, parameters)
            )
        else:
            self._send(connection, partial(getattr(cursor, method), statement, parameters))

    def _send(self, connection: object, last: Callable[[], object] | None = None) -> None:
        """Run the held statements, then the last one, in one round trip; each only if those before it succeeded."""
        held = self._held.pop(connection, [])
        if last is not None:
            held.append(last)
        if len(held) > 1 and self.loaded_dbapi.Pipeline.is_supported():
            self._send_together(connection, held)
        else:
            for run in held:
                run()

    def _send_together(self, connection: Any, held: Sequence[Callable[[], object]]) -> None:
        first: Exception | None = None
        try:
            with connection.pipeline():
                try:
                    for run in held:
                        run()
                except self.loaded_dbapi.Error as error:
                    first = error  # leaving the pipeline with it would log its consequences
        except self.loaded_dbapi.Error as error:
            first = first or error
        if first is not None:
            raise first


@cache
def insert_arrays(table: sa.Table, columns: tuple[str, ...]) -> sa.TextClause:
    """INSERT of many rows, whose parameters `c0`, `c1`, … are the values of one column each.

    PostgreSQL parses and plans it once, not once a row.
    """
    names = ", ".join(map(quote_identifier, columns))
    arrays = ", ".join(f":c{index}" for index in range(len(columns)))
    return sa.text(f"INSERT INTO {quote_identifier(table.name)} ({names}) SELECT * FROM unnest({arrays})").bindparams(
        *(sa.bindparam(f"c{index}", type_=ARRAY(table.c[name].type)) for index, name in enumerate(columns))
    )


#: The dialect's name in URLs.
DRIVER = "postgresql+ducklake_lab"
sa.dialects.registry.register("postgresql.ducklake_lab", __name__, "PostgreSQLDialect")


def set_autocommit(connection: sa.Connection, *, wanted: bool) -> None:
    """Return whether each statement of a connection is a transaction of its own: BEGIN and ROLLBACK are round trips.

    The connection must be in no transaction.
    """
    driver: Any = connection.connection.driver_connection
    if driver.autocommit is not wanted:
        driver.autocommit = wanted


def _has_input(driver: Any) -> bool:
    """Return whether the server has sent an unread message, such as the end of the connection."""
    with selectors.DefaultSelector() as selector:
        selector.register(driver, selectors.EVENT_READ)
        return bool(selector.select(0))
