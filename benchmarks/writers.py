"""Commits a second against writers, ours beside the reference: `python -m benchmarks.writers --plot docs/images`.

Each writer is a process that inserts one row a commit, for some seconds. With conflicts, all delete rows of one file.
A statement that is refused is run again, and counted.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from benchmarks.catalogs import Place, places
from benchmarks.curves import Point, draw
from tests import reference

WRITERS = (1, 2, 4, 8, 16)
SECONDS = 5.0
KINDS = ("DuckDB", "SQLite", "PostgreSQL", "Quack", "MariaDB")
#: What a writer prints before it waits for the others.
_READY = "ready\n"
#: Rows that writers with conflicts delete from.
_ROWS = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.writers", description="Commits a second, by writers.")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--catalogs", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--writers", type=int, nargs="+", default=WRITERS)
    parser.add_argument("--plot", type=Path, help="a folder for pictures of the curves; needs Chromium")
    parser.add_argument("--worker", nargs=4, metavar=("ROLE", "URI", "NUMBER", "CONFLICTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        role, uri, number, conflicts = options.worker
        print(json.dumps(_work(role, uri, int(number), options.seconds, conflicts == "yes")))
        return
    print("| catalog | conflicts | writers | ours, commits/s | retries | theirs, commits/s | retries | ratio |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    points: list[Point] = []
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-writers-") as folder:
        for kind, place in places(Path(folder), ours=True, served=True):
            for conflicts in (False, True) if kind in options.catalogs else ():
                for writers in options.writers:
                    ours, theirs = (
                        _measured(role, kind, place, Path(folder), writers, options.seconds, conflicts=conflicts)
                        for role in ("ours", "theirs")
                    )
                    print(_line(kind, conflicts, writers, ours, theirs), flush=True)
                    rates = {"ours": ours, "the reference": theirs}
                    points += [
                        Point(kind, role, conflicts, writers, one[0]) for role, one in rates.items() if one is not None
                    ]
    if options.plot is not None:
        draw(points, options.plot)


def _line(
    kind: str, conflicts: bool, writers: int, ours: tuple[float, int] | None, theirs: tuple[float, int] | None
) -> str:
    cells = [f"{found[0]:.1f} | {found[1]}" if found is not None else "cannot | " for found in (ours, theirs)]
    ratio = f"{ours[0] / theirs[0]:.2f}" if ours is not None and theirs is not None and theirs[0] else ""
    return f"| {kind} | {'yes' if conflicts else 'no'} | {writers} | {' | '.join(cells)} | {ratio} |"


def _measured(
    role: str, kind: str, place: Place, folder: Path, writers: int, seconds: float, *, conflicts: bool
) -> tuple[float, int] | None:
    """Commits a second of all writers, and how often a commit was refused; None where several cannot write."""
    if role == "theirs" and (kind == "MariaDB" or (kind == "DuckDB" and writers > 1)):
        return None  # not supported there; and the reference holds a file as long as it is attached
    name = f"{role}_{writers}_{'c' if conflicts else 'n'}"
    uri = f"ducklake:{place(name)}"
    with dl.connect(uri, alias="lake", data_path=f"{folder}/{kind}-{name}") as session:
        session.sql("CREATE TABLE t (worker INTEGER, n INTEGER)")
        session.sql(f"CREATE TABLE d AS SELECT range AS n FROM range({_ROWS})")
    command = [sys.executable, "-m", "benchmarks.writers", "--seconds", str(seconds), "--worker", role, uri]
    running = [
        subprocess.Popen(
            [*command, str(number), "yes" if conflicts else "no"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    for process in running:  # all of them have committed once before one is measured
        assert process.stdout is not None and process.stdout.readline() == _READY
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0]) for process in running]
    done = sum(report["commits"] for report in found)
    with dl.connect(uri, alias="lake") as session:
        table, before = ("d", _ROWS) if conflicts else ("t", 0)
        ((rows,),) = session.sql(f"SELECT count(*) FROM {table}").fetchall()
        assert abs(rows - before) == done, f"{abs(rows - before)} rows for {done} commits"
    return sum(report["rate"] for report in found), sum(r["refused"] for r in found)


def _work(role: str, uri: str, number: int, seconds: float, conflicts: bool) -> dict[str, Any]:
    run = _session(role, uri)
    done = refused = 0

    def commit() -> None:
        nonlocal done, refused
        row = f"DELETE FROM d WHERE n = {number * 5_000 + done}"
        while not run(row if conflicts else f"INSERT INTO t VALUES ({number}, {done})"):
            refused += 1
            time.sleep(random.uniform(0, 0.02))
        done += 1

    commit()  # it loads what the others use
    refused = 0
    print(_READY, end="", flush=True)
    sys.stdin.readline()
    started = time.monotonic()
    while time.monotonic() < started + seconds:
        commit()
    return {"commits": done, "refused": refused, "rate": (done - 1) / (time.monotonic() - started)}


def _session(role: str, uri: str) -> Callable[[str], bool]:
    """Return a function that runs a statement, and returns whether it was committed."""
    if role == "ours":
        session = dl.Session()
        while not session.lakes:
            with suppress(dl.CatalogLockedError):
                session.attach(uri, alias="lake")

        def ours(statement: str) -> bool:
            try:
                session.sql(statement)
            except (dl.TransactionError, dl.CatalogLockedError):
                return False
            return True

        return ours
    import duckdb

    connection = reference.connect()

    def theirs(statement: str) -> bool:
        try:
            connection.execute(statement)
        except duckdb.Error:
            return False
        return True

    for statement in (f"ATTACH '{uri}' AS lake", "USE lake"):
        while not theirs(statement):
            time.sleep(random.uniform(0, 0.02))  # another writer has the catalog
    return theirs


if __name__ == "__main__":
    main()
