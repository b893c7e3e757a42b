"""The tests that one run takes of all there are."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.installed import ROOT
from tests.sampling import A_TURN, CATALOGS, COLLECTED, LONG, MOST_TURNS, Case, chosen, cycle, means, table

_FUNCTION = "tests/unit/test_a.py::test_b"


def _on_catalogs(*values: str, every: bool = False) -> list[Case]:
    return [Case(f"{_FUNCTION}[{kind}-{value}]", kind, on_every_catalog=every) for value in values for kind in CATALOGS]


@pytest.mark.parametrize("seed", range(4))
def test_each_case_runs_on_one_catalog(seed: int) -> None:
    values = ["x", "y", "sqlite", "of-mysql"]
    taken = chosen(_on_catalogs(*values), seed)
    assert sorted(name.partition("-")[2] for name in taken) == sorted(f"{value}]" for value in values)


def _family(cases: Iterable[Case], one_of: int) -> list[Case]:
    return [replace(case, one_of=one_of, family="a family") for case in cases]


def test_seeds_of_some_days_take_each_case() -> None:
    catalogs = _on_catalogs("x", "y")
    sampled = _family((Case(f"{_FUNCTION}[{number}]") for number in range(10)), 4)
    both = _family(_on_catalogs("x", "y", "z"), 2)
    for cases, days in ((catalogs, len(CATALOGS)), (sampled, 4), (both, 2 * len(CATALOGS))):
        by_day = [chosen(cases, seed) for seed in range(7, 7 + days)]
        assert sorted(name for taken in by_day for name in taken) == sorted(case.id for case in cases)


def test_each_run_takes_a_member_of_a_family_at_least() -> None:
    for count in range(1, 9):
        cases = _family((Case(f"{_FUNCTION}[{number}]") for number in range(count)), 4)
        for seed in range(12):
            assert max(1, count // 4) <= len(chosen(cases, seed)) <= -(-count // 4)
    assert chosen(_family([Case(_FUNCTION)], 4), 3) == {_FUNCTION}


def test_long_tests_run_on_as_many_days_fewer() -> None:
    alone, longest = Case(_FUNCTION, seconds=4 * A_TURN), Case(f"{_FUNCTION}_too", seconds=1e6)
    family = [replace(case, seconds=3 * A_TURN) for case in _family(_on_catalogs("x", "y", "z"), 2)]
    for cases, turns in (([alone], 4), ([longest], MOST_TURNS), (family, 3)):
        days = cycle(cases)
        assert days == turns * len(CATALOGS)
        counts = Counter(name for day in range(days) for name in chosen(cases, 7 + day))
        assert set(counts) == {case.id for case in cases}
        assert set(counts.values()) == {1 if cases[0].catalog else len(CATALOGS)}


def test_functions_take_the_mean_of_their_cases() -> None:
    took = {f"{_FUNCTION}[x]": 2.0, f"{_FUNCTION}[y-[]": 5.0, "tests/a.py::test_short": LONG / 2}
    assert means(took) == {_FUNCTION: 3.5}


def test_a_file_is_a_family_and_a_function_of_it_another(request: pytest.FixtureRequest) -> None:
    cases = {case.id: case for case in request.config.stash[COLLECTED]}
    here = [case for case in cases.values() if case.id.startswith("tests/unit/test_sampling.py::test_options_choose")]
    assert {(case.family, case.one_of) for case in here} == {("tests/unit/test_sampling.py::test_options_choose", 5)}
    elsewhere = [case for case in cases.values() if case.id.startswith("tests/interop/test_old_lakes.py::")]
    assert {(case.family, case.one_of) for case in elsewhere} <= {("tests/interop/test_old_lakes.py", 5)}


@pytest.mark.sampled(1, "a name")
def test_files_have_one_family_by_its_name(request: pytest.FixtureRequest) -> None:
    (case,) = (case for case in request.config.stash[COLLECTED] if case.id == request.node.nodeid.partition("@")[0])
    assert case.family == "a name"
    shared = [Case(f"tests/unit/test_{file}.py::test_b", one_of=4, family=case.family) for file in "vwxyz"]
    by_day = [chosen(shared, seed) for seed in range(4)]
    assert sorted(map(len, by_day)) == [1, 1, 1, 2]
    assert set().union(*by_day) == {each.id for each in shared}


def test_runs_of_consecutive_days_take_the_whole_suite_on_every_catalog(request: pytest.FixtureRequest) -> None:
    """Of all tests that this run has collected, those that it leaves out included."""
    cases = request.config.stash[COLLECTED]
    assert request.node.nodeid.partition("@")[0] in {case.id for case in cases}
    days = cycle(cases)
    for start in (0, request.config.option.seed):
        left = {case.id for case in cases}.difference(*(chosen(cases, start + day) for day in range(days)))
        assert left == set()


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
    return _run("--collect-only", "--quiet", *arguments)


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.sampled(5)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ((), 1),
        (("--everything",), 4),
        (("--catalog", "all"), len(CATALOGS)),
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


@pytest.mark.slow
def test_a_run_prints_its_seed() -> None:
    assert "takes: a sample; the same again: --seed 77\n" in _run("--seed", "77", "tests/unit/test_package.py")
