"""A stream of small batches, ours beside the reference: `python -m benchmarks.streaming`.

Sensors send ten readings at a time; each batch is one commit, and its rows stay in the catalog. Then all of them are
aggregated, CHECKPOINT moves them to files, and they are aggregated again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from benchmarks.catalogs import Place, places
from tests import reference

BATCHES = 3000
#: Readings of a batch.
ROWS = 10
CREATE = "CREATE TABLE readings (sensor INTEGER, taken TIMESTAMP, value DOUBLE, state VARCHAR)"
AGGREGATE = "SELECT sensor, count(*), avg(value), max(taken) FROM readings GROUP BY sensor ORDER BY sensor"

Reading = tuple[int, str, float, str]
#: Runs a statement; its rows.
Run = Callable[[str], list[tuple[Any, ...]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description="A stream of small batches.")
    parser.add_argument("--batches", type=int, default=BATCHES)
    options = parser.parse_args()
    print(f"{options.batches:,} batches of {ROWS} rows\n")
    print("| catalog | writer | inserts, s | commits/s | aggregation, s | CHECKPOINT, s | aggregation of files, s |")
    print("|---|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-streaming-") as folder:
        for kind, place in places(Path(folder)):
            answers = []
            for writer, measure in (("INSERT", _inserts), ("appender", _appends), ("the reference", _reference)):
                name = writer.split()[-1].lower()
                times, rows = measure(place, f"{folder}/{kind}-{name}", f"stream_{name}", options.batches)
                answers.append(rows)
                rate = options.batches / times[0]
                shown = " | ".join(f"{value:.2f}" for value in times[1:])
                print(f"| {kind} | {writer} | {times[0]:.1f} | {rate:.0f} | {shown} |", flush=True)
            assert answers[0] == answers[1] == answers[2]


def _batch(number: int) -> list[Reading]:
    first = number * ROWS
    return [
        (row % 97, f"2026-01-{row // 86400 % 28 + 1:02} {row // 3600 % 24:02}:{row // 60 % 60:02}:{row % 60:02}",
         row % 1000 / 8, "ok" if row % 50 else "late")
        for row in range(first, first + ROWS)
    ]  # fmt: skip


def _insert(rows: Sequence[Reading]) -> str:
    values = (f"({sensor}, '{at}', {value}, '{state}')" for sensor, at, value, state in rows)
    return f"INSERT INTO readings VALUES {', '.join(values)}"


def _inserts(place: Place, data: str, name: str, batches: int) -> tuple[list[float], list[tuple[Any, ...]]]:
    with dl.connect(f"ducklake:{place(name)}", alias="lake", data_path=data) as session:
        run = _rows_of(session)
        return _measured(run, lambda: [session.sql(_insert(_batch(number))) for number in range(batches)])


def _appends(place: Place, data: str, name: str, batches: int) -> tuple[list[float], list[tuple[Any, ...]]]:
    with dl.connect(f"ducklake:{place(name)}", alias="lake", data_path=data) as session:

        def append() -> None:
            with session.appender("readings", rows=ROWS) as appender:
                for number in range(batches):
                    appender.extend(_batch(number))

        return _measured(_rows_of(session), append)


def _reference(place: Place, data: str, name: str, batches: int) -> tuple[list[float], list[tuple[Any, ...]]]:
    with reference.connect() as connection:
        connection.execute(f"ATTACH 'ducklake:{place(name)}' AS lake (DATA_PATH '{data}'); USE lake")
        return _measured(
            lambda sql: connection.execute(sql).fetchall(),
            lambda: [connection.execute(_insert(_batch(number))) for number in range(batches)],
        )


def _rows_of(session: dl.Session) -> Run:
    def run(sql: str) -> list[tuple[Any, ...]]:
        result = session.sql(sql)
        return result.fetchall()

    return run


def _measured(run: Run, write: Callable[[], object]) -> tuple[list[float], list[tuple[Any, ...]]]:
    """Seconds of the inserts, the aggregation, CHECKPOINT and the aggregation again; the rows of the aggregation."""
    run(CREATE)
    times, rows = [], []
    for step in (write, lambda: run(AGGREGATE), lambda: run("CHECKPOINT lake"), lambda: run(AGGREGATE)):
        started = time.perf_counter()
        found = step()
        times.append(time.perf_counter() - started)
        rows.append(found)
    assert rows[1] == rows[3]
    return times, run(AGGREGATE)


if __name__ == "__main__":
    main()
