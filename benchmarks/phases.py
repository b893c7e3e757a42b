"""Where the time of small statements in process goes, phase by phase: `python -m benchmarks.phases`."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ducklake_lab as dl
from benchmarks.looking import CHANGES, QUERIES
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.demo.builder import build
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.session import session as session_module
from ducklake_lab.session.names import attached_lakes
from ducklake_lab.session.rows import result
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements import dml
from ducklake_lab.session.transactions import transactions

ROUNDS = 15
#: The functions that each phase times. A phase does not count the phases that it calls.
PHASES: dict[str, list[tuple[Any, str]]] = {
    "parse": [(session_module, "parse")],
    "open and read the catalog": [(Lake, "read_newest"), (Lake, "newest")],
    "bind and prune": [(Sources, "plan")],
    "plan the scan": [(Sources, "load_all")],
    "describe": [(SessionDatabase, "describe")],
    "run": [(SessionDatabase, "run")],
    "write files": [(dml, "write_rows")],
    "commit": [(transactions, "commit")],
    "let go of the catalog": [(attached_lakes.Lakes, "release")],
    "Python values": [(result, "python_rows")],
}


class Clock:
    """Seconds by phase; a phase inside another counts for itself only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner: list[float] = []

    def around(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                taken = time.perf_counter() - started
                self.seconds[phase] += taken - self._inner.pop()
                if self._inner:
                    self._inner[-1] += taken

        return timed


def measured(session: dl.Session, text: str) -> dict[str, float]:
    """The median milliseconds of each phase of a statement, and of all else."""
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(ROUNDS + 2):
        clock = Clock()
        statement = text.replace("{}", str(number)).replace("{0}", str(number))
        patches = [
            patch.object(holder, name, clock.around(phase, getattr(holder, name)))
            for phase, functions in PHASES.items()
            for holder, name in functions
        ]
        for one in patches:
            one.start()
        try:
            clock.around("all else", lambda statement=statement: session.sql(statement).fetchall())()
        finally:
            for one in patches:
                one.stop()
        if number > 1:
            for phase in (*PHASES, "all else"):
                found[phase].append(1000 * clock.seconds[phase])
    return {phase: statistics.median(times) for phase, times in found.items()}


def main() -> None:
    statements = {**QUERIES, **CHANGES}
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-phases-") as folder:
        build(Path(folder), report=lambda line: None)
        with dl.connect(f"ducklake:{folder}/flights.ducklake") as session:
            # a catalog that was just changed is read again by each statement
            time.sleep(3)
            columns = {name: measured(session, text) for name, text in statements.items()}
    print("| ms | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for phase in (*PHASES, "all else"):
        print(f"| {phase} | " + " | ".join(f"{column[phase]:.1f}" for column in columns.values()) + " |")
    print("| **all** | " + " | ".join(f"{sum(column.values()):.1f}" for column in columns.values()) + " |")


if __name__ == "__main__":
    main()
