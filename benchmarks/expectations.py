"""Appends with and without expectations: `python -m benchmarks.expectations`."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ducklake_lab as dl
from benchmarks.measure import Comparison, compare, table

_COLUMNS = "id BIGINT, part INTEGER, price DOUBLE, discount DOUBLE, comment VARCHAR"
_ROWS = "SELECT {first} + i, i % 200000, 900 + hash(i) % 10000000 / 100.0, (i % 11) / 100.0, 'row ' || hash(i) FROM range({count}) r(i)"
#: Rows of each of the inserts that make the large table.
_STEP = 10_000_000
_CHECKS = (
    "price_positive CHECK (price > 0)",
    "discount_small CHECK (discount BETWEEN 0 AND 0.1 OR price > 1000000)",
    "id_known NOT NULL (id)",
)


def appends(session: dl.Session, count: int, rounds: int) -> Comparison:
    """Compare an append to a table with three checks with one to a table without."""
    session.sql(f"CREATE TABLE plain ({_COLUMNS}); CREATE TABLE checked ({_COLUMNS})")
    for check in _CHECKS:
        session.sql(f"ALTER TABLE checked EXPECT {check}")
    rows = _ROWS.format(first=0, count=count)
    return compare(
        f"append of {count:,} rows, three checks",
        "without checks",
        lambda: session.sql(f"INSERT INTO checked {rows}"),
        lambda: session.sql(f"INSERT INTO plain {rows}"),
        rounds,
    )


def lookups(session: dl.Session, count: int, few: int, rounds: int) -> Iterator[tuple[str, float, float]]:
    """Yield the seconds, and those of CPU, of appends of a few rows to a large table with UNIQUE.

    New keys are after all others, or so with ten of them late, or anywhere.
    """
    session.sql(f"CREATE TABLE large ({_COLUMNS}); CREATE TABLE alone ({_COLUMNS})")
    for first in range(0, count, _STEP):
        # even ids are taken
        session.sql(f"INSERT INTO large {_keyed('2 * id', first, min(_STEP, count - first))}")
    session.sql("ALTER TABLE large EXPECT one_each UNIQUE (id)")
    end = 2 * count
    for number in range(rounds):
        spread = 2 * count // few
        for what, key in (
            ("keys after all others", f"{end} + 2 * id"),
            ("ten keys late", f"CASE WHEN id < 10 THEN 2000 * id + {2 * number + 1001} ELSE {end} + 2 * id END"),
            ("keys anywhere", f"id * {spread} + {2 * number + 1}"),
        ):
            end += 2 * few
            for title, name in ((what, "large"), (f"{what}, without UNIQUE", "alone")):
                began, worked = time.perf_counter(), time.process_time()
                session.sql(f"INSERT INTO {name} {_keyed(key, 0, few)}")
                spent = time.perf_counter() - began, time.process_time() - worked
                yield f"{few:,} rows to {count:,}: {title}", *spent


def _keyed(key: str, first: int, count: int) -> str:
    rows = _ROWS.format(first=first, count=count)
    return f"SELECT {key}, part, price, discount, comment FROM ({rows}) AS r(id, part, price, discount, comment)"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.expectations", description=__doc__)
    parser.add_argument(
        "--append", type=int, default=6_000_000, help="rows of the append with three checks (6,000,000)"
    )
    parser.add_argument("--rows", type=int, default=100_000_000, help="rows of the table with UNIQUE (100,000,000)")
    parser.add_argument("--few", type=int, default=10_000, help="rows appended to it (10,000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each (3)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-expectations-") as folder:
        path = Path(folder)
        with dl.connect(
            f"ducklake:{path}/lake.ducklake", alias="lake", data_path=f"{path}/data", engine="duckdb"
        ) as session:
            print(table([appends(session, given.append, given.rounds)]))
            for title, seconds, worked in lookups(session, given.rows, given.few, given.rounds):
                print(f"{title}: {seconds:.2f} s, {worked:.2f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
