"""Refreshes a live table and is killed with SIGKILL on the way: `python -m tests.interop.killed_refresh URI STEP`.

STEP is the number of what the refresh asks of the catalog's database, before which it dies; 0 lets it through and prints
how many there are; -1 kills it as soon as the refresh has returned.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import sqlalchemy as sa

import ducklake_lab as dl


def main(uri: str, step: int) -> None:
    asked = 0
    with dl.connect(uri, alias="lake", engine="duckdb") as session:

        def count(*_: Any) -> None:
            nonlocal asked
            asked += 1
            if asked == step:
                os.kill(os.getpid(), signal.SIGKILL)

        sa.event.listen(sa.Engine, "before_cursor_execute", count)
        sa.event.listen(sa.Engine, "commit", count)
        session.sql("REFRESH x")
        if step < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    print(asked)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
