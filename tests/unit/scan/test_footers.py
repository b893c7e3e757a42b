"""Types of columns in the footers of data files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ducklake_lab.scan.footers import far_times
from ducklake_lab.storage import Storage


@pytest.mark.parametrize(
    ("value", "is_far"),
    [
        ("TIMESTAMP_MS '2024-01-01'", False),
        ("NULL::TIMESTAMP_MS", False),
        ("TIMESTAMP 'infinity'", False),
        ("TIMESTAMP_MS 'infinity'", True),
        ("TIMESTAMP_MS '-infinity'", True),
        ("{'l': ['infinity'::TIMESTAMP_MS]}", True),
        ("TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", False),
        ("TIMESTAMP_NS 'infinity'", True),
        ("{'l': ['-infinity'::TIMESTAMP_NS]}", True),
    ],
)
def test_times_that_are_far_in_microseconds(value: str, is_far: bool, tmp_path: Path) -> None:
    path = f"{tmp_path}/x.parquet"
    duckdb.sql(f"COPY (SELECT {value} AS v, 7 AS i) TO '{path}'")
    assert far_times([path], Storage()) == ({path} if is_far else set())
