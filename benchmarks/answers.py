"""The snapshots at which an answer changed, beside the query at 15 snapshots: among 1,000 snapshots, ten changed it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ducklake_lab as dl
from benchmarks.measure import Comparison, compare

SNAPSHOTS, ROWS, CHANGES, QUERIES = 1_000, 6_000_000, 10, 15

#: Statistics prove most snapshots, or only the rows do: each file has texts of all kinds.
_QUERIES = {
    "statistics": "SELECT count(*), sum(v) FROM t WHERE day BETWEEN {first} AND {last}",
    "rows": "SELECT count(*), sum(v) FROM t WHERE kind = 'kind 5x'",
}


def run(folder: Path, rounds: int, share: float) -> Iterator[Comparison]:
    """All comparisons, as they are finished.

    Args:
        folder: an empty one, for a lake.
        share: of the snapshots and rows.
    """
    snapshots = max(3 * CHANGES, int(SNAPSHOTS * share))
    with dl.connect(f"ducklake:{folder}/answers.ducklake", engine="duckdb") as session:
        _fill(session, snapshots, int(ROWS * share) // snapshots)
        first = snapshots // 2
        for name, query in _QUERIES.items():
            text = query.format(first=first, last=first + CHANGES - 1)
            lines = len(session.when(text))
            assert lines == CHANGES + 1, lines
            yield compare(
                f"when among {snapshots:,} snapshots, by {name}",
                f"the query at {QUERIES} snapshots",
                lambda text=text: session.when(text),  # type: ignore[misc]
                lambda text=text: [session.sql(text, at=snapshots - n).fetchall() for n in range(QUERIES)],  # type: ignore[misc]
                rounds,
            )


def _fill(session: dl.Session, snapshots: int, rows: int) -> None:
    """Makes a snapshot per day; one of twenty changes few rows, inlined."""
    session.sql("CREATE TABLE t (day INTEGER, kind VARCHAR, v BIGINT)")
    changing = {snapshots * (number + 1) // (CHANGES + 1) for number in range(CHANGES)}
    for day in range(snapshots):
        count = 5 if day % 20 == 7 else rows
        kind = "CASE WHEN i = 1 THEN 'kind 5x' ELSE 'kind ' || i % 10 END" if day in changing else "'kind ' || i % 10"
        session.sql(f"INSERT INTO t SELECT {day}, {kind}, i FROM range({count}) r(i)")
