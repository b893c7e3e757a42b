"""Assumptions of the suite: it runs in UTC, and tests of one file run in one process."""

from __future__ import annotations

import pytest

from ducklake_lab.duckdb.zones import process_time_zone


def test_the_process_is_in_utc() -> None:
    assert process_time_zone() == "UTC"


def test_a_file_is_one_group(request: pytest.FixtureRequest) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("runs in one process")
    assert request.node.nodeid.endswith(f"@{request.node.path}")
