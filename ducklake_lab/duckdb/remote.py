"""Connections to a DuckDB that another process serves, by DuckDB's extension quack.

The server runs texts of SQL, each connection in a session of its own, so that BEGIN, COMMIT and ROLLBACK are texts as well. A lost
answer looks like a lost request, and the transaction of a client that dies stays open. So no transaction is open between two requests:
a read sees what was committed before it, and statements that write are held until COMMIT, and go to the server with it as one text.
The server runs all of it or nothing. A read after held statements is one text, too: these, the read, and a ROLLBACK.

A transaction that a server refuses stays open until the client's ROLLBACK. Servers of DuckLake Lab have a function that runs such a
text in a session of its own, and ends it with the answer, see `served`.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import secrets
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa

from ducklake_lab.duckdb.connections import in_memory
from ducklake_lab.duckdb.extensions import load
from ducklake_lab.duckdb.inserted_values import table_sql, with_values
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_text

#: Statements that write, and whose results nobody reads.
_WRITES = re.compile(r"\s*(?:insert|update|delete|create|drop|alter)\b", re.IGNORECASE)
#: An INSERT of one row: what is before it, and the row.
_INSERT = re.compile(r"(\s*insert\s+into\s.*\bvalues\s*)(\([^()'\"]*\))\s*", re.IGNORECASE | re.DOTALL)
_DEFINES = re.compile(r"\s*create\b", re.IGNORECASE)
#: Statements whose effect lasts as long as a session.
_SETS = re.compile(r"\s*use\b", re.IGNORECASE)
#: Parts of an error that show the text of a statement, as the server and the client got it.
_SHOWN_TEXT = re.compile(r"\s*LINE \d+: .*", re.DOTALL)
#: The class of an error, which begins its text.
_CLASS = re.compile(r"\A(?:[\w-]+ )+Error: ")
#: Seconds for an answer: large catalogs take longer than DuckDB's 30.
_TIMEOUT = 300
#: What errors of a server mean, as it sends their texts without their classes.
_ERRORS: Sequence[tuple[re.Pattern[str], type[duckdb.Error]]] = (
    (re.compile(r"No space left|File too large|Disk quota"), duckdb.IOException),
    (re.compile(r"fatal error|invalidated|INTERNAL Error", re.IGNORECASE), duckdb.FatalException),
    (re.compile(r"duplicate key|constraint", re.IGNORECASE), duckdb.ConstraintException),
    (re.compile(r"conflict|failed to commit|transaction", re.IGNORECASE), duckdb.TransactionException),
    (re.compile(r"does not exist|already exists"), duckdb.CatalogException),
    (re.compile(r"syntax error"), duckdb.ParserException),
    (re.compile(r"Could not (?:convert|cast)|out of range", re.IGNORECASE), duckdb.ConversionException),
)
#: The text of an error where what a commit has read is no longer so.
_OUTDATED = "Conflict: another client has committed meanwhile"
#: DuckDB lets one transaction at a time make an entry of a name, and refuses others at once. So the second of two commits changes
#: no row that it would lock until its ROLLBACK.
_TURN = "ducklake_lab_commit"
_TAKE_TURN = (f"CREATE TYPE {_TURN} AS BOOLEAN", f"DROP TYPE {_TURN}")
#: Seconds for which a commit waits for its turn, and between two tries. Without a turn, keys and conflicts of rows decide.
_TURN_SECONDS, _TURN_PAUSE = 2.0, (0.002, 0.02)
_NO_SESSION, _NO_ANSWER = "Invalid connection id", "Failed to send message"
#: Function of servers of DuckLake Lab: runs a text with a transaction as a whole, and gives the rows of its last statement or an error.
WHOLE = "ducklake_lab_whole"
#: Begins its answer where the server refused the text; any other answer is a stream of Arrow.
REFUSED = b"refused: "
#: A variable of a session, which a ROLLBACK leaves: rows that were read amid what it takes back.
_READ = "ducklake_lab_read"


class ServerRefusedError(duckdb.InvalidInputException):
    """A server of quack does not let a client in; the text says why, and holds no token."""


class _Clients:
    """The DuckDB of this process in which servers are attached; made anew in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0
        self._root: duckdb.DuckDBPyConnection | None = None
        self._numbers = itertools.count(1)

    def cursor(self) -> tuple[duckdb.DuckDBPyConnection, str]:
        """A connection, and a name for what it attaches.

        Raises:
            UnsupportedFeatureError: the extension is not installed.
        """
        with self._lock:
            if self._root is None or self._process != os.getpid():
                root = in_memory(threads=1)
                load_quack(root)
                # a commit that is sent twice would be made twice
                root.execute(f"SET http_retries = 0; SET http_timeout = {_TIMEOUT}")
                self._root, self._process = root, os.getpid()
            return self._root.cursor(), f"server_{next(self._numbers)}"


_CLIENTS = _Clients()


def load_quack(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes a database able to serve, and to attach servers.

    Raises:
        UnsupportedFeatureError: an extension that it needs is not installed.
    """
    for name in ("httpfs", "quack"):
        if not load(connection, name):
            raise UnsupportedFeatureError(
                f"Catalogs over the network need DuckDB's extensions quack and httpfs of the version {duckdb.__version__}: "
                "pip install 'ducklake-lab[quack]'."
            )


class RemoteConnection:
    """A session on a server, used as a connection of DuckDB is.

    Attributes:
        is_broken: the server was lost while it ran a text.

    Args:
        address: `quack:host:port`.
        plain: HTTP, also where the host is another machine; by default that needs TLS.

    Raises:
        ServerRefusedError: the server does not know the token, or speaks another version.
        duckdb.IOException: no server answers.
        UnsupportedFeatureError: the extension is not installed.
    """

    def __init__(self, address: str, token: str, *, plain: bool = False) -> None:
        self._address, self._token, self._plain = address, token, plain
        self._local, self._name = _CLIENTS.cursor()
        self._held: list[str] = []
        self._expected: list[str] = []
        self._registered: dict[str, str] = {}
        self._settings: list[str] = []
        self._has_result = self.is_broken = False
        #: Whether the server has the function `WHOLE`, as far as is known.
        self._runs_whole = True
        try:
            self._attach()
        except BaseException:
            self._local.close()
            raise

    # Statements

    def execute(self, statement: str, parameters: Sequence[object] = (), *, awaited: bool = False) -> RemoteConnection:
        """Run a statement, or hold it until COMMIT where it only writes.

        A read after held statements sees their changes, which the server makes and takes back for it.

        Args:
            awaited: run it now, in a transaction of its own, also where it only writes.
        """
        self._has_result = False
        text = with_values(statement, parameters).strip().rstrip(";")
        writes = _WRITES.match(text) is not None
        text = self._with_tables(text)
        if writes and not awaited:
            self._held.append(text)
            return self
        if self._held and not writes:
            self._read_after(self._held, text)
        else:
            self._run_anew(text, is_repeatable=not writes)
        self._has_result = True
        if _SETS.match(text):
            self._settings.append(text)
        return self

    def executemany(self, statement: str, parameters: Iterable[Sequence[object]]) -> RemoteConnection:
        """Run a statement with each of some rows of values; an INSERT of all of them is one."""
        insert = _INSERT.fullmatch(statement)
        if insert is not None:
            return self.execute(insert[1] + ", ".join(with_values(insert[2], values) for values in parameters))
        for values in parameters:
            self.execute(statement, values)
        return self

    def sql(self, statement: str, *, params: Sequence[object] = ()) -> RemoteConnection:
        """Run a query, as `execute` does."""
        return self.execute(statement, params)

    def write_first(self, statement: str, parameters: Sequence[object]) -> None:
        """Hold a statement, to be run before all that are held but the definitions of tables at their begin."""
        self._has_result = False
        place = next((n for n, text in enumerate(self._held) if not _DEFINES.match(text)), len(self._held))
        self._held.insert(place, with_values(statement, parameters))

    def expect(self, condition: str) -> None:
        """Have the commit refused as one that lost a race where a condition does not hold at its begin."""
        self._expected.append(f"SELECT CASE WHEN {condition} THEN 0 ELSE error({quote_text(_OUTDATED)}) END")

    def register(self, name: str, rows: Any) -> None:
        """Make the rows of an Arrow table a table of the following statements."""
        self._local.register(name, rows)
        try:
            self._registered[name] = table_sql(self._local, name)
        finally:
            self._local.unregister(name)

    def unregister(self, name: str) -> None:
        del self._registered[name]

    # Results

    @property
    def description(self) -> Any:
        return self._local.description if self._has_result else None

    @property
    def rowcount(self) -> int:
        return -1

    def fetchone(self) -> Any:
        return self._local.fetchone()

    def fetchmany(self, size: int = 1) -> Any:
        return self._local.fetchmany(size)

    def fetchall(self) -> Any:
        return self._local.fetchall()

    def to_arrow_table(self) -> Any:
        return self._local.to_arrow_table()

    def to_arrow_reader(self, rows: int) -> Any:
        return self._local.to_arrow_reader(rows)

    def complete(self) -> None:
        """Do nothing: the server has ended a statement before it answers."""

    # Transactions

    def prepare(self, statements: str) -> None:
        """Create the session's temporary objects, such as views."""
        self._run_anew(_text("BEGIN TRANSACTION", statements, "COMMIT"), is_repeatable=False)
        self._settings.append(statements)

    def begin(self) -> None:
        """Do nothing: the server's transaction begins with the text of the commit."""

    def commit(self) -> None:
        """Send what is held as one text.

        Raises:
            duckdb.Error: nothing was written; or the answer was lost, `is_broken` is set, and it may have been.
        """
        held, expected = self._taken()
        if held:
            self._run_transaction(expected, [*held, "COMMIT"], takes_turn=True)

    def rollback(self) -> None:
        """Drop what is held; the server knows nothing of it."""
        self._taken()

    def close(self) -> None:
        """End the session on the server."""
        with suppress(duckdb.Error):  # where the server is gone, so is the session
            self._local.execute(f"DETACH DATABASE IF EXISTS {self._name}")
        self._local.close()

    # Texts to the server

    def _taken(self) -> tuple[list[str], list[str]]:
        """Take the statements that are held, and the conditions of the commit."""
        taken = self._held, self._expected
        self._held, self._expected = [], []
        return taken

    def _with_tables(self, text: str) -> str:
        used = [rows for name, rows in self._registered.items() if name in text]
        return f"WITH {', '.join(used)} {text}" if used else text

    def _read_after(self, held: Sequence[str], text: str) -> None:
        """Run a read as it is after held statements, which are taken back."""
        row = f"{_READ}_row"  # no column has this name
        reads = (
            f"SET VARIABLE {_READ} = (SELECT list({row}) FROM ({text}) AS {row})",
            "ROLLBACK",
            f"SELECT unnest(getvariable('{_READ}'), max_depth := 2)",
        )
        self._run_transaction((), [*held, *reads], takes_turn=False)

    def _run_transaction(self, expected: Sequence[str], statements: Sequence[str], *, takes_turn: bool) -> None:
        """Run a transaction as one text, which the server runs as a whole or not at all.

        Args:
            expected: statements that fail where it is to be refused.
            takes_turn: wait until nobody else runs one that does.
        """
        if self._runs_whole and self._asked_for_whole(_text("BEGIN TRANSACTION", *expected, *statements)):
            return
        until = time.monotonic() + _TURN_SECONDS
        turn: Sequence[str] = _TAKE_TURN if takes_turn else ()
        while True:
            try:
                self._run_anew(_text("BEGIN TRANSACTION", *expected, *turn, *statements), is_repeatable=False)
            except duckdb.Error as error:
                if not self.is_broken:  # a server that is lost has ended the transaction
                    with suppress(duckdb.Error):  # a COMMIT that failed has ended it
                        self._run("ROLLBACK")
                if not (turn and isinstance(error, duckdb.TransactionException) and _TURN in str(error)):
                    raise
            else:
                return
            turn = _TAKE_TURN if time.monotonic() < until else ()
            time.sleep(random.uniform(*_TURN_PAUSE))

    def _asked_for_whole(self, text: str) -> bool:
        """Have the server's function run a text, and return whether it has one."""
        tag = f"$t{secrets.token_hex(8)}$"
        whole = _text(*self._settings, text)  # the function has a session of its own
        try:
            self._run_anew(f"SELECT {WHOLE}({tag}{whole}{tag})", is_repeatable=False)
        except duckdb.Error as error:
            if f"{WHOLE} does not exist" not in str(error):
                raise
            self._runs_whole = False
            return False
        ((answer,),) = self._local.fetchall()
        if answer.startswith(REFUSED):
            raise _understood(duckdb.InvalidInputException(answer.removeprefix(REFUSED).decode()))
        rows = pa.ipc.open_stream(answer).read_all()
        if rows.num_columns:
            self._local.register(_READ, rows)
            self._local.execute(f"FROM {_READ}")
        return True

    def _run_anew(self, text: str, *, is_repeatable: bool) -> None:
        """Run a text in no transaction, in a session that is made anew where the server has lost it.

        Args:
            is_repeatable: the text may run twice; any other is not sent again where its answer was lost.
        """
        try:
            self._run(text)
        except duckdb.Error as error:
            # the server was started anew, and has run nothing of it; or it was a read, which may run twice
            if not (_NO_SESSION in str(error) or (self.is_broken and is_repeatable)):
                raise
            self.is_broken = True
            self._attach()
            self.is_broken = False
            self._run(text)

    def _run(self, text: str) -> None:
        """Run a text in the server's session, once: DuckDB binds `execute` once, and a relation twice."""
        try:
            self._local.execute(f"FROM quack_query_by_name({quote_text(self._name)}, {quote_text(text)})")
        except duckdb.Error as error:
            raised = _understood(error)
            self.is_broken = isinstance(raised, duckdb.IOException) and _NO_ANSWER in str(raised)
        else:
            return
        raise raised

    def _attach(self) -> None:
        options = f"TOKEN {quote_text(self._token)}, TYPE quack{', DISABLE_SSL true' if self._plain else ''}"
        with suppress(duckdb.Error):  # the server has forgotten the session
            self._local.execute(f"DETACH DATABASE IF EXISTS {self._name}")
        refused: list[duckdb.Error] = []
        try:
            self._local.execute(f"ATTACH {quote_text(self._address)} AS {self._name} ({options})")
        except duckdb.Error as error:
            # not the error itself, nor as its cause: it may show the token
            refused.append(self._refusal(str(error)))
        if refused:
            raise refused[0]
        for text in self._settings:
            self._run(text)

    def _refusal(self, text: str) -> duckdb.Error:
        address = self._address.removeprefix("quack:")
        if "Authentication failed" in text:
            return ServerRefusedError(f"the server at {address} does not know the token; use the one that it printed.")
        if "resolve host" in text:
            return duckdb.IOException(f"there is no host of the name in {address}.")
        if "connect to server" in text:
            return duckdb.IOException(f"no server answers at {address}; ducklake-lab serve starts one.")
        if "SSL" in text or "certificate" in text:
            return duckdb.IOException(
                f"the server at {address} does not speak TLS, or has no certificate that is trusted; DISABLE_SSL of the "
                "secret allows plain HTTP."
            )
        return ServerRefusedError(
            f"what answers at {address} is no server of the protocol of DuckDB {duckdb.__version__}; DuckDB 1.5 and 2.0 speak "
            "different versions of it, so use one of them on both sides."
        )


def _understood(error: duckdb.Error) -> duckdb.Error:
    """The error of a server, in the class that it had there."""
    text = _CLASS.sub("", _SHOWN_TEXT.sub("", str(error)).strip(), count=1)
    if not isinstance(error, duckdb.InvalidInputException):
        return type(error)(text)
    return next((kind for pattern, kind in _ERRORS if pattern.search(text)), duckdb.InvalidInputException)(text)


def _text(*statements: str) -> str:
    return ";\n".join(statements)
