"""Times without a zone are read, and all times are shown, in the zone in which the reference does so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from tests.reference import connect

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
        assert rows == [["6", "5"]]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_partition_keys_are_in_the_zone_of_the_session(zone: str, tmp_path: Path) -> None:
    statements = (
        f"SET TimeZone = '{zone}'",
        "CREATE TABLE lake.t (z TIMESTAMPTZ)",
        "ALTER TABLE lake.t SET PARTITIONED BY (day(z), hour(z))",
        "INSERT INTO lake.t SELECT TIMESTAMPTZ '2024-11-03 00:15:00' + to_hours(i::INT) FROM range(0, 24) AS r(i)",
    )
    keys = (
        "SELECT DISTINCT partition_key_index, partition_value "
        "FROM __ducklake_metadata_lake.ducklake_file_partition_value ORDER BY ALL"
    )
    with connect() as reference:
        reference.execute(f"ATTACH 'ducklake:{tmp_path}/theirs.ducklake' AS lake (DATA_PATH '{tmp_path}/theirs')")
        for statement in statements:
            reference.execute(statement)
        theirs = reference.execute(keys).fetchall()
    path = f"{tmp_path}/ours"
    with dl.connect(f"ducklake:{tmp_path}/ours.ducklake", alias="lake", data_path=path, engine="duckdb") as session:
        for statement in statements:
            session.sql(statement)
        assert session.sql(keys).fetchall() == theirs
    assert len(theirs) > 20
