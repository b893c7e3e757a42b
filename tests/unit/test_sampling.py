"""The tests that one run takes of all there are."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.installed import ROOT
from tests.sampling import CATALOGS, Case, chosen, table

_FUNCTION = "tests/unit/test_a.py::test_b"


def _on_catalogs(*values: str, every: bool = False) -> list[Case]:
    return [Case(f"{_FUNCTION}[{kind}-{value}]", kind, on_every_catalog=every) for value in values for kind in CATALOGS]


@pytest.mark.parametrize("seed", range(4))
def test_each_case_runs_on_one_catalog(seed: int) -> None:
    values = ["x", "y", "sqlite", "of-mysql"]
    taken = chosen(_on_catalogs(*values), seed)
    assert sorted(name.partition("-")[2] for name in taken) == sorted(f"{value}]" for value in values)


def test_seeds_of_some_days_take_each_case() -> None:
    catalogs = _on_catalogs("x", "y")
    sampled = [Case(f"{_FUNCTION}[{number}]", one_of=4) for number in range(10)]
    once = [Case(_FUNCTION, one_of=4)]
    for cases in (catalogs, sampled, once):
        by_day = [chosen(cases, seed) for seed in range(7, 11)]
        assert sorted(name for taken in by_day for name in taken) == sorted(case.id for case in cases)


def test_a_case_on_every_catalog_runs_on_each() -> None:
    cases = _on_catalogs("x", every=True)
    assert chosen(cases, 1) == {case.id for case in cases}


def test_a_seed_takes_the_same_again() -> None:
    cases = [*_on_catalogs(*map(str, range(20))), Case("tests/unit/test_c.py::test_d")]
    assert chosen(cases, 5) == chosen(cases, 5)
    assert chosen(cases, 5) != chosen(cases, 6)


def test_the_table_counts_by_file() -> None:
    everything = ["tests/a.py::test_x[1]", "tests/a.py::test_x[2]", "tests/b.py::test_y"]
    assert table(everything, everything[1:]).splitlines() == [
        "    1 of     2  tests/a.py",
        "    1 of     1  tests/b.py",
        "    2 of     3  in all",
    ]


def _collected(*arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ((), 1),
        (("--everything",), 4),
        (("--catalog", "all"), 4),
        (("--catalog", "sqlite", "--catalog", "mysql"), 2),
        (("--catalog", "sqlite", "--everything"), 1),
    ],
)
def test_options_choose(arguments: tuple[str, ...], count: int) -> None:
    collected = _collected("tests/unit/session/test_health.py", *arguments)
    assert collected.count("::test_small_worn_and_inlined_is_found_and_mended[") == count


@pytest.mark.slow
def test_what_is_named_runs() -> None:
    named = "tests/unit/session/test_health.py::test_small_worn_and_inlined_is_found_and_mended"
    assert _collected(named).count(f"{named}[") == len(CATALOGS)
