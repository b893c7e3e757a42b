"""Name the client that holds a catalog."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from ducklake_lab.catalog.servers import COMMITS

#: The client that commits: one of ours by the lock of commits, another one by its writes.
_POSTGRESQL = f"""
SELECT a.pid, a.usename, a.application_name, host(a.client_addr), a.state, a.xact_start
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.pid <> pg_backend_pid() AND (
    l.locktype = 'advisory' AND CAST(l.classid AS bigint) = {COMMITS}
    AND CAST(l.objid AS bigint) = (CAST(hashtext(current_schema()) AS bigint) & 4294967295)
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    OR l.locktype = 'relation' AND l.relation = to_regclass('ducklake_snapshot') AND l.mode = 'RowExclusiveLock'
)
ORDER BY a.xact_start LIMIT 1"""
_MYSQL = """
SELECT p.id, p.user, '', p.host, p.command, CONVERT_TZ(t.trx_started, @@GLOBAL.time_zone, '+00:00')
FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
WHERE t.trx_rows_locked > 0 AND p.id <> CONNECTION_ID() AND p.db = DATABASE()
ORDER BY t.trx_started LIMIT 1"""
_QUERIES = {"postgresql": (_POSTGRESQL, "SELECT pg_terminate_backend({})"), "mysql": (_MYSQL, "KILL {}")}
#: States of a process that was stopped.
_STOPPED = ("T", "t")


def of_server(connection: sa.Connection) -> str:
    """Describe the client of a server that holds the catalog: since when, and how to end it.

    Args:
        connection: in a transaction without an error.
    """
    query, end = _QUERIES[connection.dialect.name]
    try:
        client = connection.exec_driver_sql(query).first()
    except sa.exc.DBAPIError:  # this user may not see other users' clients
        client = None
    if client is None:
        return "another client, which has not finished its commit; wait for it"
    number, user, program, host, state, began = client
    described = ", ".join(text for text in (f"user {user}", program, f"at {host}" if host else "", state) if text)
    since = f" since {began:%Y-%m-%d %H:%M:%S} UTC" if began is not None else ""
    return f"connection {number} ({described}){since}; wait for it, or end it with {end.format(number)}"


def of_file(path: Path) -> str:
    """The process that has a lock on a file, as far as the system says."""
    with suppress(OSError, ValueError, IndexError):
        inode = path.stat().st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            parts = line.split()
            if "->" not in parts and parts[5].rpartition(":")[2] == str(inode) and parts[3] == "WRITE":
                return process(int(parts[4]))
    return "another process"


def process(pid: int, name: str | None = None) -> str:
    """A process by its name and number, and whether it is stopped."""
    state = ""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        own, _, rest = stat.partition("(")[2].rpartition(")")
        name = name or own
        state = " is stopped" if rest.split()[0] in _STOPPED else ""
    return f"{name or 'a process'} (process {pid}{', which' + state if state else ''})"
