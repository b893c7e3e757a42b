"""Changes a catalog and is killed with SIGKILL on the way: `python -m tests.interop.killed URI WORK STEP`.

WORK is a number for one transaction, or `repair`, `migrate` or `branch`. STEP is the number of what it asks of the catalog's database
meanwhile, before which it dies; 0 lets it through and prints how many there are; -1 kills it as soon as the work is done. Of a served
catalog, requests and answers count too. Without arguments it reads them as JSON, line by line, and does each work in a copy of itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
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


def counting(step: int) -> Callable[[], int]:
    """Count what is asked of catalogs from now on, and die before one step; returns a function that gives the count."""
    asked = 0

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
    return lambda: asked


def main(uri: str, work: str, step: int) -> None:
    if work == "migrate":
        asked = counting(step)
        with dl.connect(uri, alias="lake", automatic_migration=True, ducklake_version="1.1"):
            pass
    else:
        with dl.connect(uri, alias="lake", engine="duckdb") as session:
            if work == "repair":
                found = session.doctor(deep=True).findings
                asked = counting(step)
                session.repair([one for one in found if one.can_repair], dry_run=False)
            elif work == "branch":
                asked = counting(step)
                session.branch("aside", at=session.current_snapshot().snapshot_id - 1)
            else:
                for statement in STATEMENTS:
                    session.sql(statement.format(n=int(work)))
                asked = counting(step)
                session.sql("COMMIT")
    if step < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    print(asked())


def _fork(uri: str, work: str, step: int) -> dict[str, object]:
    """Do the work in a copy of this process, which has loaded all modules."""
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            ended = 1
            try:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                main(uri, work, step)
                ended = 0
            finally:
                if ended:
                    traceback.print_exc()
                sys.stdout.flush()
                os._exit(ended)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return {"returncode": os.waitstatus_to_exitcode(status), "output": output.read()}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    for line in sys.stdin if len(sys.argv) == 1 else ():
        print(json.dumps(_fork(*json.loads(line))), flush=True)
