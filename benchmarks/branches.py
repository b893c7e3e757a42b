"""Branches of lakes with many files, by catalog and links alone: `python -m benchmarks.branches`."""

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
from tests import reference


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


def run(folder: Path, rounds: int, *, files: int = metadata.FILES) -> Iterator[Taken]:
    """Branches, rebases and drops on DuckDB and on PostgreSQL; the quickest round of each.

    Args:
        folder: an empty one, for lakes and a PostgreSQL server.

    Raises:
        AssertionError: a byte of a file was copied.
    """
    for kind, place in places(folder):
        if kind == "SQLite":
            continue
        uri, data = f"ducklake:{place('many')}", folder / f"{kind}-many"
        with reference.connect() as connection:
            metadata.fill(connection, uri, f"{data}/", 1, files)
        wide = data / "main" / "wide"
        wide.mkdir(parents=True)
        for number in range(files):
            (wide / f"ducklake-{number}.parquet").write_bytes(b"PAR1")
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
    parser.add_argument("--rounds", type=int, default=3, help="rounds of which the quickest counts (3)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as folder:
        for taken in run(Path(folder), given.rounds, files=given.files):
            print(taken, flush=True)


if __name__ == "__main__":
    main()
