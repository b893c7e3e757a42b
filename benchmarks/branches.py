"""Branches of lakes with many files, by catalog and links alone; reviews and merges of an UPDATE: `python -m benchmarks.branches`."""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import ducklake_lab as dl
from benchmarks import metadata
from benchmarks.catalogs import places
from benchmarks.measure import Comparison
from benchmarks.reverts import create_table
from tests import reference

#: Rows of the table whose changes are merged, and those that an UPDATE changes.
ROWS, CHANGED = 60_000_000, 10_000


@dataclass(frozen=True)
class Taken:
    """Time of one run.

    Attributes:
        wall: seconds by the clock, which others on the machine stretch.
        cpu: seconds of CPU of this process, of the user and the system; a server of PostgreSQL has its own.
    """

    what: str
    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.what:<40} {self.wall:7.2f} s   {self.cpu:7.2f} s of CPU"


def run(folder: Path, rounds: int, *, files: int = metadata.FILES, folders: int = 0) -> Iterator[Taken]:
    """Branches, rebases and drops on DuckDB and on PostgreSQL; the quickest round of each.

    Args:
        folder: an empty one, for lakes and a PostgreSQL server.
        folders: of partitions, that the files are in; 0 for one folder.

    Raises:
        AssertionError: a byte of a file was copied.
    """
    for kind, place in places(folder):
        if kind == "SQLite":
            continue
        uri, data = f"ducklake:{place('many')}", folder / f"{kind}-many"
        with reference.connect() as connection:
            metadata.fill(connection, uri, f"{data}/", 1, files, folders)
        wide = data / "main" / "wide"
        inside = [wide / f"part={number}" for number in range(folders)] or [wide]
        for each in inside:
            each.mkdir(parents=True)
        for number in range(files):
            (inside[number % len(inside)] / f"ducklake-{number}.parquet").write_bytes(b"PAR1")
        with dl.connect(uri, alias="many", engine="duckdb") as session:
            found: dict[str, list[Taken]] = {}
            for number in range(rounds):
                name = f"b{number}"
                steps: dict[str, Callable[[], object]] = {
                    "branch": lambda name=name: session.branch(name),  # type: ignore[misc]
                    "rebase": lambda name=name: session.rebase(name),  # type: ignore[misc]
                    "drop": lambda name=name: session.drop_branch(name),  # type: ignore[misc]
                }
                for step, act in steps.items():
                    found.setdefault(step, []).append(_timed(f"{kind}: {step}, {files:,} files", act))
                    if step == "branch":
                        _check_links(folder / f"{kind}-many.branches", files)
            yield from (min(each, key=lambda taken: taken.wall) for each in found.values())


def merges(folder: Path, rounds: int, *, rows: int = ROWS) -> Iterator[Comparison]:
    """Reviews and merges of an UPDATE on a branch, compared with that UPDATE: of rows side by side, and of rows all over the table.

    Args:
        folder: an empty one, for the lake.
        rows: of the table.
    """
    with dl.connect(f"ducklake:{folder / 'merges.ducklake'}", alias="lake", engine="duckdb") as session:
        create_table(session, rows)
        kinds = (
            ("side by side", f"k BETWEEN {{0}}*{CHANGED} AND {{0}}*{CHANGED}+{CHANGED - 1}"),
            ("all over it", f"k % {rows // CHANGED} = {{0}}"),
        )
        for where, condition in kinds:
            steps: dict[str, list[float]] = {"update": [], "review": [], "merge": []}
            for number in range(rounds + 1):
                name, changes = f"b{number}", f"UPDATE t SET s = 'changed' WHERE {condition.format(number)}"
                session.branch(name)
                session.switch(name)
                steps["update"].append(_timed("", lambda changes=changes: session.sql(changes)).wall)  # type: ignore[misc]
                session.switch(None)
                steps["review"].append(_timed("", lambda name=name: session.review(name)._repr_html_()).wall)  # type: ignore[misc]
                steps["merge"].append(_timed("", lambda name=name: session.merge(name)).wall)  # type: ignore[misc]
                session.drop_branch(name)
            changed = f"a branch that changed {CHANGED:,} of {rows:,} rows, {where}"
            update = steps["update"][1:]
            yield Comparison(f"review of {changed}", "the UPDATE", steps["review"][1:], update)
            yield Comparison(f"merge of {changed}", "the UPDATE", steps["merge"][1:], update)
        found = session.sql("SELECT count(*) FROM t WHERE s = 'changed'").fetchall()
        # of both kinds, less those that both changed
        both = session.sql(
            f"SELECT count(*) FROM t WHERE k // {CHANGED} <= {rounds} OR k % {rows // CHANGED} <= {rounds}"
        ).fetchall()
        assert found == both, (found, both)


def _timed(what: str, act: Callable[[], object]) -> Taken:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    act()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return Taken(what, wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def _check_links(folder: Path, files: int) -> None:
    names = [entry for below, _, _ in os.walk(folder) for entry in os.scandir(below) if entry.is_file()]
    assert len(names) == files, f"{len(names):,} files of {files:,}"
    assert all(entry.stat().st_nlink > 1 for entry in names), "a file was copied"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.branches", description=__doc__)
    parser.add_argument(
        "--files", type=int, default=metadata.FILES, help=f"data files of the table ({metadata.FILES:,})"
    )
    parser.add_argument(
        "--folders", type=int, default=100, help="folders of partitions that have them; 0 for one folder (100)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of which the quickest counts (3)")
    parser.add_argument(
        "--rows", type=int, default=ROWS, help=f"rows of the table that is merged ({ROWS:,}); 0 for none"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as folder:
        for comparison in merges(Path(folder), given.rounds, rows=given.rows) if given.rows else ():
            print(f"{comparison.name}: {comparison.ratio:.2f} x {comparison.baseline}", flush=True)
        for taken in run(Path(folder), given.rounds, files=given.files, folders=given.folders):
            print(taken, flush=True)


if __name__ == "__main__":
    main()
