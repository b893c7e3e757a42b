"""The part of the suite that one run takes: one kind of catalog for each test, a share of each family of tests.

A family is what one mark `sampled(n)` stands on: the cases of a function, or the tests of a file. Marks `sampled(n, "name")`
make one family of several files. Each run takes one in n of its members, one at least. Long tests run more rarely: `seconds.json`
has what functions take, and a run has `A_TURN` seconds for each case. A seed chooses, which is today's date by default, so that
runs of other days take other parts. `--everything` takes all, as `make proof` does, after which `python -m tests.sampling
--record .proof` writes `seconds.json` anew. A test that is named by its id always runs. `python -m tests.sampling` lists what
runs where.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from functools import cache
from io import StringIO
from math import ceil
from pathlib import Path
from statistics import mean
from zlib import crc32

import pytest

from tests import proving

#: Kinds of catalogs.
CATALOGS = ("duckdb", "sqlite", "postgres", "mysql", "quack")
#: Kinds that a run takes only with `--catalog`; they have tests of their own. On a served catalog a test takes several times as long.
ON_REQUEST = ("quack",)
#: Marks a test that runs on every kind of catalog each time.
EVERY_CATALOG = "every_catalog"
#: Marks a family of tests; one in n runs.
SAMPLED = "sampled"
#: The mean seconds of a function's cases, by its id; functions that take less than `LONG` are left out.
SECONDS = Path(__file__).with_name("seconds.json")
LONG = 1.0
#: Seconds of a run for each case: one that takes four times as long runs on one of four days, the longest on one of `MOST_TURNS`.
A_TURN, MOST_TURNS = 0.75, 30
#: Cases that pytest has collected, those that this run leaves out included.
COLLECTED = pytest.StashKey["list[Case]"]()

#: This run takes all examples of properties.
_all_examples = False


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
        one_of: one of so many members of its family runs; 1 for all.
        family: the name in the mark `sampled`, or the id of what it stands on; empty without a mark.
        seconds: how long it took in an earlier run, with the other cases of its function; 0 for an unknown short time.
    """

    id: str
    catalog: str | None = None
    on_every_catalog: bool = False
    one_of: int = 1
    family: str = ""
    seconds: float = 0

    @property
    def turns(self) -> int:
        """On one of how many days it may run for its length."""
        return min(max(1, ceil(self.seconds / A_TURN)), MOST_TURNS)

    @property
    def without_catalog(self) -> str:
        """The id without the kind of catalog, which cases share that differ in it alone."""
        return re.sub(rf"(?<=[\[-]){self.catalog}(?=[\]-])", "", self.id, count=1) if self.catalog else self.id


def chosen(cases: Iterable[Case], seed: int) -> set[str]:
    """Return the ids of the cases that a run with this seed takes.

    With the seeds of `cycle(cases)` consecutive days, each case runs on each of its kinds of catalogs.
    """
    families: defaultdict[str, defaultdict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        key = case.without_catalog
        families[case.family or key][key].append(case)
    found: set[str] = set()
    for family, members in families.items():
        start = crc32(family.encode()) + seed
        for number, (key, on_catalogs) in enumerate(members.items()):
            one_of = max(min(on_catalogs[0].one_of, len(members)), on_catalogs[0].turns)
            if (start + number) % one_of:
                continue
            if on_catalogs[0].catalog is not None and not on_catalogs[0].on_every_catalog:
                # the turns of the family, rather than days, go through the catalogs: some days would never meet some catalog
                turn = crc32(key.encode()) + (start + number) // one_of
                on_catalogs = [on_catalogs[turn % len(on_catalogs)]]
            found |= {case.id for case in on_catalogs}
    return found


def unasked(cases: Iterable[Case]) -> list[Case]:
    """Return the cases that a run without `--catalog` chooses from."""
    return [case for case in cases if case.catalog not in ON_REQUEST]


def cycle(cases: Iterable[Case]) -> int:
    """Return after how many days every case has run on each of its kinds of catalogs."""
    return len(CATALOGS) * max((max(case.one_of, case.turns) for case in cases), default=1)


def examples(count: int) -> int:
    """Return how many of the examples of a property a run takes: a quarter in a sample, three at least.

    Hypothesis draws others in each run.
    """
    return count if _all_examples else min(count, max(3, count // 4))


def take_all_examples(config: pytest.Config) -> None:
    """Note whether a run takes all examples; call this before tests are imported."""
    global _all_examples
    _all_examples = whole(config)


def whole(config: pytest.Config) -> bool:
    """Whether a run leaves out nothing of what its arguments name."""
    return bool(config.option.everything) or names_tests(config)


def names_tests(config: pytest.Config) -> bool:
    """Whether the arguments of a run name tests by their ids."""
    return any("::" in argument for argument in config.args)


def case_of(item: pytest.Item) -> Case:
    """Return what the choice needs to know about a test that pytest has collected."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    node, mark = next(item.iter_markers_with_node(SAMPLED), (None, None))
    return Case(
        item.nodeid,
        parameters.get("catalog"),
        item.get_closest_marker(EVERY_CATALOG) is not None,
        mark.args[0] if mark else 1,
        "" if node is None or mark is None else _family(item, node, mark),
        _seconds().get(_function(item.nodeid), 0),
    )


@cache
def _seconds() -> dict[str, float]:
    found: dict[str, float] = json.loads(SECONDS.read_text())
    return found


def _function(test: str) -> str:
    """Return the id of a test without its parameters and its group."""
    return test.partition("[")[0].partition("@")[0]


def means(took: Mapping[str, float]) -> dict[str, float]:
    """Return how long functions took in the mean, those that took `LONG`.

    Args:
        took: seconds by the id of the test.
    """
    of_functions: defaultdict[str, list[float]] = defaultdict(list)
    for test, seconds in took.items():
        of_functions[_function(test)].append(seconds)
    found = {function: round(mean(each), 1) for function, each in sorted(of_functions.items())}
    return {function: each for function, each in found.items() if each >= LONG}


def _family(item: pytest.Item, node: pytest.Item | pytest.Collector, mark: pytest.Mark) -> str:
    if len(mark.args) > 1:
        return str(mark.args[1])
    # a function's cases are nodes of their own
    return item.nodeid.partition("[")[0] if node is item else node.nodeid


def table(everything: Iterable[str], taken: Iterable[str]) -> str:
    """Return a line for each file: how many of its tests one run takes, of how many."""
    all_of, some_of = (Counter(name.partition("::")[0] for name in names) for names in (everything, taken))
    lines = [f"{some_of[file]:5} of {count:5}  {file}" for file, count in sorted(all_of.items())]
    return "\n".join([*lines, f"{some_of.total():5} of {all_of.total():5}  in all"])


class _Collector:
    """Keeps the cases that pytest collects."""

    cases: Sequence[Case] = ()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.cases = session.config.stash[COLLECTED]


def main() -> None:
    """Print the table for a seed, and the ids that a run takes where that is asked."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.sampling", description="List what one run of the tests takes."
    )
    parser.add_argument("--seed", type=int, default=seed_of_today(), help="of the run; default: today's")
    parser.add_argument("--ids", action="store_true", help="list the tests themselves")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="note how long tests took in a run with --go-on FILE"
    )
    options = parser.parse_args()
    if options.record is not None:
        SECONDS.write_text(json.dumps(means(proving.seconds(options.record)), indent=1) + "\n")
        return
    collector, output = _Collector(), StringIO()
    with redirect_stdout(output):
        status = pytest.main(["--collect-only", "-qq", "--everything", "tests"], plugins=[collector])
    if status != pytest.ExitCode.OK:
        sys.exit(output.getvalue())
    taken = chosen(unasked(collector.cases), options.seed)
    if options.ids:
        print("\n".join(case.id for case in collector.cases if case.id in taken))
    print(table((case.id for case in collector.cases), taken))
    print(f"each on each of its kinds of catalogs within {cycle(collector.cases)} days")


if __name__ == "__main__":
    # pytest imports this module by its name, beside the one that runs
    from tests import sampling

    sampling.main()
