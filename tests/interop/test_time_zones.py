"""Times without a zone are read, and all times are shown, in the zone in which the reference does so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _answers(zone: str, folder: Path) -> dict[str, list[Any]]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.interop.zones", str(folder)],
        cwd=ROOT,
        env={**os.environ, "TZ": zone, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, list[Any]] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu", "UTC"])
def test_times_are_those_of_the_reference(zone: str, tmp_path: Path) -> None:
    found = _answers(zone, tmp_path)
    different = {query: rows for query, rows in found.items() if rows[0] != rows[1]}
    assert different == {}
    assert found["SELECT 1; SELECT current_setting('TimeZone')"][1] == [[zone]]
    assert found["SET TIME ZONE 'Europe/Berlin'; SELECT current_setting('TimeZone')"][1] == [["Europe/Berlin"]]
    if zone == "America/New_York":  # the later of the two half past ones
        rows = found["SELECT 1; SELECT count(*), max(i) FROM lake.t AT (TIMESTAMP => '2024-11-03 01:30:00')"][1]
        assert rows == [["5", "4"]]
