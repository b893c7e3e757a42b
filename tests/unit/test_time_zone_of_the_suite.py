"""The suite runs in UTC on every machine."""

from __future__ import annotations

from ducklake_lab.catalog.zones import process_time_zone


def test_the_process_is_in_utc() -> None:
    assert process_time_zone() == "UTC"
