"""Rules of placement, each with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ducklake_lab.engine.placement import Facts, Limits, Placement, Placing, check_engine, place
from ducklake_lab.errors import UnsupportedFeatureError, UsageError

LIMITS = Limits()
SMALL = Facts(bytes=1_300_000, files=1, files_total=12)
LARGE = Facts(bytes=412_000_000, files=12, files_total=12)
REFUSED = UnsupportedFeatureError("PIVOT")


@pytest.mark.parametrize(
    ("facts", "asked", "expected"),
    [
        (Facts(), "auto", "in process"),
        (Facts(), "spark", "in process"),
        (SMALL, "auto", "in process · 1 of 12 files, 1.3 MB"),
        (SMALL, "duckdb", "in process · 1 of 12 files, 1.3 MB"),
        (SMALL, "spark", "Spark · asked for"),
        (LARGE, "auto", "Spark · 412 MB, from 256 MB on"),
        (LARGE, "duckdb", "in process · 12 of 12 files, 412 MB"),
        (replace(SMALL, purpose="change"), "auto", "in process · 1 of 12 files, 1.3 MB"),
        (replace(LARGE, bytes=65_000_000, purpose="change"), "auto", "Spark · 65 MB, from 64 MB on"),
        (replace(LARGE, bytes=65_000_000), "auto", "in process · 12 of 12 files, 65 MB"),
        (replace(LARGE, bytes=65_000_000, is_fetched=True), "auto", "Spark · 65 MB, from 64 MB on"),
        (replace(SMALL, is_far=True), "auto", "Spark · files of a remote file system"),
        (replace(SMALL, on_spark=True), "auto", "Spark · a DataFrame is read"),
        (replace(SMALL, on_spark=True), "duckdb", "in process · 1 of 12 files, 1.3 MB"),
        (
            replace(SMALL, refusal=lambda: REFUSED),
            "spark",
            "in process · 1 of 12 files, 1.3 MB, not supported on Spark",
        ),
        (replace(LARGE, refusal=lambda: REFUSED), "spark", "Spark · asked for"),
        (replace(SMALL, rows=1_000_001), "auto", "Spark · 1,000,001 rows, from 1,000,000 on"),
        (replace(LARGE, rows=1_000_000), "auto", "in process · 12 of 12 files, 412 MB"),
    ],
)
def test_each_rule_has_its_reason(facts: Facts, asked: str, expected: str) -> None:
    assert str(place(facts, LIMITS, asked)) == expected


def test_limits_are_inclusive() -> None:
    limits = Limits(look=100)
    assert place(replace(SMALL, bytes=100), limits, "auto").is_here
    assert not place(replace(SMALL, bytes=101), limits, "auto").is_here


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match=r'^"polars" is not an engine; use "auto", "spark" or "duckdb"\.$'):
        check_engine("polars")


def test_a_statement_asks_for_an_engine_until_its_end() -> None:
    placing = Placing("duckdb")
    with placing.asking("spark"):
        assert str(placing.place(SMALL)) == "Spark · asked for"
        with placing.asking(None):
            assert placing.asked == "spark"
    assert str(placing.place(LARGE)) == "in process · 12 of 12 files, 412 MB"


def test_a_refusal_is_asked_for_only_if_it_decides() -> None:
    asked: list[str] = []

    def refusal() -> Exception:
        asked.append("asked")
        return REFUSED

    for engine in ("auto", "duckdb"):
        Placing(engine).place(replace(SMALL, refusal=refusal))
    assert not asked
    assert Placing("spark").place(replace(SMALL, refusal=refusal)).is_here
    assert asked == ["asked"]


def test_questions_have_inclusive_limits() -> None:
    placing = Placing(
        "auto", Limits(look=100, eager=8, joined=32, joined_side=4, deletions=10, task_rows=20, row_ids=30)
    )
    assert placing.expects_spark(101) and not placing.expects_spark(100)
    assert not Placing("duckdb", placing.limits).expects_spark(101)
    assert placing.runs_on_demand(9) and not placing.runs_on_demand(8)
    assert placing.is_small_side(4) and not placing.is_small_side(5)
    assert placing.fetches_positions(10) and not placing.fetches_positions(11)
    assert placing.writes_in_one_task(20) and not placing.writes_in_one_task(21)
    here, there = Placement("process"), Placement("spark")
    assert placing.reads_sides_first(32, lambda: here) and not placing.reads_sides_first(31, lambda: here)
    assert placing.reads_sides_first(0, lambda: there)
    far = replace(LARGE, purpose="change")
    assert placing.compares_row_ids_here(far, 30) and not placing.compares_row_ids_here(far, 31)
    assert not placing.compares_row_ids_here(replace(far, is_fetched=True), 1)
