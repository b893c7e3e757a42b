"""Database files that this process serves to others, by DuckDB's extension quack.

The extension runs texts, each client's in a session of its own. A transaction that a statement in it fails stays open there until the
client's ROLLBACK, and keeps the rows that it changed. So the server has a function that runs a text with a transaction: in a session that
ends with the call, and one after the other.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from ducklake_lab.duckdb.connections import of_file
from ducklake_lab.duckdb.remote import REFUSED, WHOLE, load_quack
from ducklake_lab.model.quoting import quote_text


@contextmanager
def served(path: str, host: str, port: int, token: str, *, elsewhere: bool = False) -> Iterator[str]:
    """Serves a database file in the block, and yields the address, `quack:host:port`.

    Clients reach this file alone: no other file, no network and no setting of the server.

    Args:
        port: 0 takes a free one.
        elsewhere: allow a host that is not this machine alone.

    Raises:
        OSError: the port is in use, or the host is not of this machine.
        duckdb.Error: the file cannot be opened or served; the text holds no token.
        UnsupportedFeatureError: the extension is not installed.
    """
    port = _checked(host, port)
    address = f"quack:{f'[{host}]' if ':' in host else host}:{port}"
    connection = of_file(path)
    try:
        load_quack(connection)
        _offer_whole(connection)
        _start(connection, address, token, elsewhere=elsewhere)
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        try:
            yield address
        finally:
            connection.execute(f"CALL quack_stop({quote_text(address)})")
    finally:
        connection.close()


def _offer_whole(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the function `WHOLE`: one transaction at a time, none left open."""
    turn = threading.Lock()
    connection.execute("SET arrow_lossless_conversion = true")

    def whole(text: str) -> bytes:
        with turn, connection.cursor() as session:  # its end is that of its transaction, too
            try:
                answer = session.execute(text)
                rows = answer.to_arrow_table() if answer.description else pa.table({})
            except duckdb.Error as error:
                return REFUSED + str(error).encode()
        return _streamed(rows)

    # one value: to take a struct apart, DuckDB would call the function for each field
    connection.create_function(WHOLE, whole, ["VARCHAR"], "BLOB", side_effects=True)


def _streamed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def _checked(host: str, port: int) -> int:
    """The port, if nobody listens there: two servers of quack would share it, unnoticed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        if port and probe.connect_ex((reached, port)) == 0:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # a port whose last server has ended a moment ago is free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])


def _start(connection: duckdb.DuckDBPyConnection, address: str, token: str, *, elsewhere: bool) -> None:
    allow = ", allow_other_hostname := true" if elsewhere else ""
    failed: list[duckdb.Error] = []
    try:
        connection.execute(f"CALL quack_serve({quote_text(address)}, token := {quote_text(token)}{allow})")
    except duckdb.Error as error:
        # a new error, without the statement and its token
        failed.append(type(error)(str(error).partition("\n")[0].replace(token, "***")))
    if failed:
        raise failed[0]
