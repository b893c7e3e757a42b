"""Rules of placement, each with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ducklake_lab.engine.placement import Facts, Limits, check_engine, place
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
        (replace(SMALL, refusal=REFUSED), "spark", "in process · 1 of 12 files, 1.3 MB, not supported on Spark"),
        (replace(LARGE, refusal=REFUSED), "spark", "Spark · asked for"),
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
