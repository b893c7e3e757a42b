"""Reverts of an UPDATE, compared with the UPDATE: right after it, and long after."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import ducklake_lab as dl
from benchmarks.measure import Comparison

#: Rows of the table, and those that an UPDATE changes.
ROWS, CHANGED = 6_000_000, 10_000


def run(folder: Path, rounds: int, *, rows: int = ROWS) -> Iterator[Comparison]:
    """All comparisons, as they are finished.

    Args:
        folder: an empty one, for the lake.
        rows: of the table.
    """
    with dl.connect(f"ducklake:{folder / 'reverts.ducklake'}", alias="lake", engine="duckdb") as session:
        create_table(session, rows)
        ours, theirs = [], []
        for number in range(rounds + 1):
            theirs.append(_seconds(partial(_update, session, number)))
            made = session.current_snapshot().snapshot_id
            ours.append(_seconds(partial(session.revert, made)))
        name = f"revert of an UPDATE of {CHANGED:,} of {rows:,} rows"
        yield Comparison(name, "the UPDATE", ours[1:], theirs[1:])
        made_at: list[int] = []
        theirs = []
        for number in range(rounds + 1):
            theirs.append(_seconds(partial(_update, session, number, number)))
            made_at.append(session.current_snapshot().snapshot_id)
        for number in range(50):
            session.sql(
                f"INSERT INTO t SELECT i, 'late', 0, DATE '2025-01-01' FROM range({number * 1000}, {number * 1000 + 1000}) r(i)"
            )
        ours = [_seconds(partial(session.revert, at)) for at in made_at]
        yield Comparison(f"{name}, 50 snapshots later", "the UPDATE", ours[1:], theirs[1:])


def create_table(session: dl.Session, rows: int) -> None:
    """Creates the table `t`, sorted by its key `k`."""
    session.sql(
        "CREATE TABLE t AS SELECT i AS k, 'text ' || i % 1000 AS s, i / 7 AS d, DATE '2024-01-01' + (i % 365)::INTEGER AS day "
        f"FROM range({rows}) r(i)"
    )


def _update(session: dl.Session, value: int, part: int = 0) -> None:
    low = part * CHANGED
    session.sql(f"UPDATE t SET s = 'changed {value}' WHERE k BETWEEN {low} AND {low + CHANGED - 1}")


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
