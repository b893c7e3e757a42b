"""One of many processes that commit to one lake at the same time: `python -m tests.interop.worker ours|theirs …`.

It commits a fixed list of changes, each again and again until it is in, and prints what it did as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

ROWS_TO_DELETE = "d"


def changes(worker: int, commits: int) -> Iterator[tuple[str, int]]:
    """(statement, rows it inserts into t), in order: inserts, deletions and definitions of tables mixed."""
    deleted = 0
    for n in range(commits):
        match n % 5:
            case 3:
                yield f"DELETE FROM d WHERE worker = {worker} AND n = {deleted}", 0
                deleted += 1
            case 4 if n % 10 == 4:
                yield f"CREATE TABLE made_{worker}_{n} (i INTEGER)", 0
            case 4:
                yield f"DROP TABLE made_{worker}_{n - 5}", 0
            case _:
                rows = n % 3 + 1
                values = ", ".join(f"({worker}, {n * 10 + i})" for i in range(rows))
                yield f"INSERT INTO t VALUES {values}", rows


#: Runs a statement; why it was refused, or None.
Run = Callable[[str], str | None]


def ours(uri: str) -> Run | None:
    import ducklake_lab as dl

    try:
        session = dl.connect(uri, alias="lake")
    except dl.CatalogLockedError:
        return None

    def run(statement: str) -> str | None:
        try:
            session.sql(statement)
        except dl.TransactionConflictError as error:
            return str(error)
        except dl.TransactionError as error:
            if "lost against other commits" not in str(error):
                raise
            return "lost"
        except dl.CatalogLockedError:
            return "locked"
        return None

    return run


def theirs(uri: str) -> Run | None:
    import duckdb

    from tests import reference

    connection: Any = reference.connect()
    try:
        connection.execute(f"ATTACH '{uri}' AS lake; USE lake")
    except duckdb.Error as error:
        if "locked" not in str(error):
            raise
        return None

    def run(statement: str) -> str | None:
        try:
            connection.execute(statement)
        except duckdb.Error as error:
            text = str(error).casefold()
            if not any(sign in text for sign in ("conflict", "lock", "serialize", "retry")):
                raise
            return "theirs"
        return None

    return run


def main(role: str, uri: str, worker: int, commits: int) -> None:
    random.seed(worker)
    refused, rows, done = [], 0, 0
    deadline = time.monotonic() + 900
    while (run := {"ours": ours, "theirs": theirs}[role](uri)) is None:
        assert time.monotonic() < deadline, "the lake could not be attached"
        time.sleep(random.uniform(0, 0.3))
    for statement, inserted in changes(worker, commits):
        while (refusal := run(statement)) is not None:
            refused.append(refusal)
            assert time.monotonic() < deadline, f"{statement} never got in: {refusal}"
            time.sleep(random.uniform(0, 0.3))
        rows += inserted
        done += 1
    print(json.dumps({"role": role, "commits": done, "rows": rows, "refused": refused}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
