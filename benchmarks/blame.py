"""Blame of one row and of a file's rows, in a table of many snapshots and files: `python -m benchmarks.blame`."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ducklake_lab as dl
from benchmarks.measure import Comparison, compare, table

#: Files that each insert writes, one for each partition.
_FILES = 20
#: Files and rows of each, for ten million rows in a thousand snapshots.
FILES, ROWS = 20_000, 500
#: Updates of the row that is blamed, and of some rows beside it, among the inserts.
_UPDATES = 10
#: The row, by its column `i`.
_ROW = 77


def build(session: dl.Session, files: int, rows: int) -> None:
    """Make a table t of so many files with so many rows in each, and a snapshot for every twenty files."""
    session.sql("CREATE TABLE t (i BIGINT, part INTEGER, name VARCHAR, value DOUBLE)")
    session.sql("ALTER TABLE t SET PARTITIONED BY (part)")
    step, inserts = _FILES * rows, files // _FILES
    between = max(1, inserts // _UPDATES)
    for number in range(inserts):
        first = number * step
        session.sql(
            f"INSERT INTO t SELECT i, (i // {rows}) % {_FILES}, 'row ' || i, i / 7 FROM range({first}, {first + step}) r(i)"
        )
        if number % between == between - 1:
            session.sql(f"UPDATE t SET value = value + 1 WHERE i BETWEEN {_ROW} AND {_ROW + 30}")


def run(folder: Path, rounds: int, *, files: int, rows: int) -> Iterator[Comparison]:
    """All comparisons, as they are finished.

    Args:
        folder: an empty one, for the lake.
        files: of the table.
        rows: of each file.
    """
    with dl.connect(f"ducklake:{folder}/lake.ducklake", alias="lake", engine="duckdb") as session:
        build(session, files, rows)
        handle = session.table("t")
        title = f"of {files:,} files"
        for what, where in (("one row", f"i = {_ROW}"), ("a file's rows", f"i >= {3 * rows} AND i < {4 * rows}")):
            yield compare(
                f"blame of {what} {title}",
                "SELECT of it",
                lambda where=where: handle.blame(where).arrow(),  # type: ignore[misc]
                lambda where=where: session.sql(f"FROM t WHERE {where}").arrow(),  # type: ignore[misc]
                rounds,
            )
        yield compare(
            f"life of one row {title}",
            "SELECT of it",
            lambda: handle.life(_ROW).arrow(),
            lambda: session.sql(f"FROM t WHERE i = {_ROW}").arrow(),
            rounds,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blame", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help=f"data files of the table ({FILES:,})")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of each file ({ROWS})")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each comparison (5)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-blame-") as folder:
        found = list(run(Path(folder), given.rounds, files=given.files, rows=given.rows))
    print(table(found))


if __name__ == "__main__":
    main()
