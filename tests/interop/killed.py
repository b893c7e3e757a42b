"""Commits one transaction and is killed with SIGKILL on the way: `python -m tests.interop.killed URI N STEP`.

STEP is the number of what it asks of the catalog's database while committing, before which it dies; 0 lets it through
and prints how many there are; -1 kills it as soon as the commit has returned. Of a served catalog, requests and answers count too.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.duckdb.remote import RemoteConnection

#: Some of everything, in one transaction: a new table, rows added and deleted, another shape.
STATEMENTS = (
    "BEGIN",
    "CREATE TABLE made_{n} (i INTEGER)",
    "INSERT INTO made_{n} VALUES (1), (2)",
    "INSERT INTO t VALUES ({n}, 'new')",
    "DELETE FROM t WHERE i = {n} - 1",
    "ALTER TABLE shape ADD COLUMN c{n} INTEGER DEFAULT {n}",
)


def main(uri: str, n: int, step: int) -> None:
    asked = 0
    with dl.connect(uri, alias="lake") as session:
        for statement in STATEMENTS:
            session.sql(statement.format(n=n))

        def count(*_: Any) -> None:
            nonlocal asked
            asked += 1
            if asked == step:
                os.kill(os.getpid(), signal.SIGKILL)

        sa.event.listen(sa.Engine, "before_cursor_execute", count)
        sa.event.listen(sa.Engine, "commit", count)
        run = RemoteConnection._run

        def counted(connection: RemoteConnection, text: str) -> None:
            count()
            try:
                run(connection, text)
            finally:
                count()

        RemoteConnection._run = counted  # type: ignore[method-assign]
        session.sql("COMMIT")
        if step < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    print(asked)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
