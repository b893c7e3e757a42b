"""Servers that keep catalogs, one entry each: names in URIs, drivers, and locks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: Number that commits lock in PostgreSQL, beside the schema of the catalog (ADR 0052).
COMMITS = 0x6C616B65
#: Seconds for which a commit waits for a lock of another client, which may have stopped.
LOCK_SECONDS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """A kind of server.

    Attributes:
        label: its name for people.
        kinds: its names in URIs, as in `ducklake:postgres:…`, and in URLs; the first is written.
        dialect: whose SQL it takes.
        driver: SQLAlchemy's name of the dialect and the driver.
        package: the driver, and the extra that installs it.
        words: the parts of a URL by the words of a connection string, as DuckDB's extension for the server names them.
        database: the word that names the database.
        socket: the word that names a socket in a URL.
        default_database: where a connection string names none; None where it must.
        bound: SQL that ends the waits of a transaction for locks after some seconds; None where connections begin so.
        lock: SQL that makes a transaction the only one of ours that commits; None where the key of snapshots decides alone.
        turn: SQL that takes the lock of statements that run again, waiting some seconds at most, and SQL that gives it
            back; None where the server has no such lock.
        commits_in_parts: commits of other clients may be seen in part; the row of their changes comes last.
    """

    label: str
    kinds: tuple[str, ...]
    dialect: Literal["postgresql", "mysql", "duckdb"]
    driver: str
    package: tuple[str, str]
    words: Mapping[str, str]
    database: str
    socket: str
    default_database: str | None
    bound: str | None
    lock: str | None
    turn: tuple[str, str] | None
    commits_in_parts: bool = False


_POSTGRESQL = Server(
    label="PostgreSQL",
    kinds=("postgres", "postgresql"),
    dialect="postgresql",
    driver="postgresql+psycopg",
    package=("psycopg", "postgres"),
    words={
        "host": "host",
        "hostaddr": "host",
        "port": "port",
        "dbname": "database",
        "user": "username",
        "password": "password",
    },
    database="dbname",
    socket="host",
    default_database="postgres",
    # no lock on a table: other clients, which take them in another order, could wait for us and we for them
    bound="SELECT set_config('lock_timeout', '{seconds}s', true)",
    lock=f"SELECT pg_advisory_xact_lock({COMMITS}, hashtext(current_schema()))",
    turn=(f"SET LOCAL lock_timeout = '10s'; SELECT pg_advisory_xact_lock({COMMITS + 1}, 0)", "ROLLBACK"),
)
_MYSQL = Server(
    label="MySQL",
    kinds=("mysql", "mariadb"),
    dialect="mysql",
    driver="mysql+pymysql",
    package=("pymysql", "mysql"),
    words={
        "host": "host",
        "port": "port",
        "db": "database",
        "database": "database",
        "user": "username",
        "password": "password",
        "passwd": "password",
        "socket": "socket",
        "unix_socket": "socket",
    },
    database="db",
    socket="unix_socket",
    default_database=None,
    bound=None,
    lock="SELECT 1 FROM ducklake_metadata FOR UPDATE",
    turn=(
        "SELECT GET_LOCK(CONCAT('ducklake ', MD5(DATABASE())), 10)",
        "SELECT RELEASE_LOCK(CONCAT('ducklake ', MD5(DATABASE())))",
    ),
)
#: A DuckDB that serves its file; its URIs name a host and a port, and no more.
QUACK = Server(
    label="Quack",
    kinds=("quack",),
    dialect="duckdb",
    driver="duckdb",
    package=("duckdb-extension-quack", "quack"),
    words={},
    database="",
    socket="",
    default_database=None,
    bound=None,
    lock=None,
    turn=None,
    # DuckDB's own client sends the statements of a commit without BEGIN
    commits_in_parts=True,
)
#: Port of servers whose URI names none.
QUACK_PORT = 9494
#: Every server there is, by each of its names.
SERVERS = {kind: server for server in (_POSTGRESQL, _MYSQL, QUACK) for kind in server.kinds}
