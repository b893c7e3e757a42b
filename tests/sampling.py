"""The part of the suite that one run takes: one kind of catalog for each test, a share of large sets of cases.

A seed chooses, which is today's date by default, so that runs of other days take other parts. `--everything` takes all, as
`make proof` does. A test that is named by its id always runs. `python -m tests.sampling` lists what runs where.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from zlib import crc32

import pytest

#: Kinds of catalogs.
CATALOGS = ("duckdb", "sqlite", "postgres", "mysql")
#: Marks a test that runs on every kind of catalog each time.
EVERY_CATALOG = "every_catalog"
#: Marks a test of which one case of n runs.
SAMPLED = "sampled"


def seed_of_today() -> int:
    """Return a number for each day."""
    return date.today().toordinal()


@dataclass(frozen=True)
class Case:
    """A test with its parameters, as far as the choice needs it.

    Attributes:
        id: what pytest calls it, e.g. `tests/unit/test_a.py::test_b[sqlite-1]`.
        catalog: the kind of catalog that it runs on; None without the parameter `catalog`.
        on_every_catalog: runs on each kind.
        one_of: one of so many cases of its function runs; 1 for all.
    """

    id: str
    catalog: str | None = None
    on_every_catalog: bool = False
    one_of: int = 1

    @property
    def function(self) -> str:
        """The id without parameters."""
        return self.id.partition("[")[0]

    @property
    def without_catalog(self) -> str:
        """The id without the kind of catalog, which cases share that differ in it alone."""
        return re.sub(rf"(?<=[\[-]){self.catalog}(?=[\]-])", "", self.id, count=1) if self.catalog else self.id


def chosen(cases: Sequence[Case], seed: int) -> set[str]:
    """Return the ids of the cases that a run with this seed takes.

    With the seeds of as many days as there are kinds of catalogs, each case runs on each; the same goes for `one_of`.
    """
    alike: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cases:
        alike[case.without_catalog].append(case)
    on_catalogs: list[Case] = []
    for key, members in alike.items():
        all_of_them = members[0].catalog is None or members[0].on_every_catalog
        on_catalogs += members if all_of_them else [members[(crc32(key.encode()) + seed) % len(members)]]
    functions: defaultdict[str, list[Case]] = defaultdict(list)
    for case in on_catalogs:
        functions[case.function].append(case)
    found: set[str] = set()
    for function, members in functions.items():
        start = crc32(function.encode()) + seed
        found |= {case.id for number, case in enumerate(members) if (start + number) % case.one_of == 0}
    return found


def case_of(item: pytest.Item) -> Case:
    """Return what the choice needs to know about a test that pytest has collected."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    sampled = item.get_closest_marker(SAMPLED)
    return Case(
        item.nodeid,
        parameters.get("catalog"),
        item.get_closest_marker(EVERY_CATALOG) is not None,
        sampled.args[0] if sampled else 1,
    )


def table(everything: Iterable[str], taken: Iterable[str]) -> str:
    """Return a line for each file: how many of its tests one run takes, of how many."""
    all_of, some_of = (Counter(name.partition("::")[0] for name in names) for names in (everything, taken))
    lines = [f"{some_of[file]:5} of {count:5}  {file}" for file, count in sorted(all_of.items())]
    return "\n".join([*lines, f"{some_of.total():5} of {all_of.total():5}  in all"])


def main() -> None:
    """Print the table for a seed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.sampling", description="List what one run of the tests takes."
    )
    parser.add_argument("--seed", type=int, default=seed_of_today(), help="of the run; default: today's")
    options = parser.parse_args()

    def collected(*arguments: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", *arguments, "tests"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line for line in done.stdout.splitlines() if "::" in line]

    print(table(collected("--everything"), collected("--seed", str(options.seed))))


if __name__ == "__main__":
    main()
