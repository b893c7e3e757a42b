"""Times without a zone are read, and all times are shown, in the zone in which the reference does so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from tests.reference import connect, extension

pytestmark = pytest.mark.sampled(5)

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
    extension("ducklake")  # skips where there is none
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


#: A table whose columns have a zone since later than their first rows, at every depth.
WIDENED = (
    "CREATE TABLE w (i INT, t TIMESTAMP, d DATE, s STRUCT(a TIMESTAMP, b DATE), l TIMESTAMP[], m MAP(INT, DATE))",
    "INSERT INTO w VALUES (1, '2024-11-03 01:30:00', '2024-11-03', {'a': TIMESTAMP '2024-03-10 02:30:00', "
    "'b': DATE '2024-03-10'}, [TIMESTAMP '2024-11-03 01:30:00'], MAP {1: DATE '2024-03-10'})",
    "INSERT INTO w (i) VALUES (2)",
    "ALTER TABLE w ALTER t SET TYPE TIMESTAMPTZ",
    "ALTER TABLE w ALTER d SET TYPE TIMESTAMPTZ",
    "ALTER TABLE w ALTER s SET TYPE STRUCT(a TIMESTAMPTZ, b TIMESTAMPTZ)",
    "ALTER TABLE w ALTER l SET TYPE TIMESTAMPTZ[]",
    "ALTER TABLE w ALTER m SET TYPE MAP(INT, TIMESTAMPTZ)",
    "INSERT INTO w (i, t, d) VALUES (3, '2024-11-03 01:30:00', '2024-11-03')",
    "DELETE FROM w WHERE i = 2",
)
ZONES = ("America/New_York", "Asia/Kathmandu", "UTC")
AS_TEXT = "SELECT i, t::VARCHAR, d::VARCHAR, s::VARCHAR, l::VARCHAR, m::VARCHAR FROM {} ORDER BY i"


def texts_of(rows: Any, sql: str, zone: str) -> list[Any]:
    with duckdb.connect() as shown:
        shown.execute(f"SET TimeZone = '{zone}'")
        shown.register("rows", rows)
        return shown.execute(sql.format("rows")).fetchall()


@pytest.mark.parametrize("inlined", [10, 0])
def test_times_that_get_a_zone_are_read_in_that_of_the_session(inlined: int, spark: Any, tmp_path: Path) -> None:
    uri = f"ducklake:{tmp_path}/x.ducklake"
    feed = AS_TEXT.replace("i,", "snapshot_id, change_type, i,").format(
        "ducklake_table_changes('lake', 'main', 'w', 0, 10)"
    )
    with connect() as reference:
        reference.execute(
            f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/d', DATA_INLINING_ROW_LIMIT {inlined}); USE lake"
        )
        for statement in WIDENED:
            reference.execute(statement)
        expected = {}
        for zone in ZONES:
            reference.execute(f"SET TimeZone = '{zone}'")
            expected[zone] = [reference.execute(q).fetchall() for q in (AS_TEXT.format("w"), feed)]
    assert expected["UTC"] != expected["America/New_York"]
    for engine in ("duckdb", "spark"):
        with dl.connect(uri, alias="lake", spark=spark, engine=engine) as session:
            for zone in ZONES:
                session.sql(f"SET TimeZone = '{zone}'")
                found = [session.sql(AS_TEXT.format("w")).fetchall(), sorted(session.sql(feed).fetchall(), key=repr)]
                assert found == [expected[zone][0], sorted(expected[zone][1], key=repr)], (engine, zone)
                for rows in (session.table("w").arrow(), session.sql("FROM w").arrow()):
                    assert rows.schema.field("t").type == pa.timestamp("us", zone)
                    assert texts_of(rows, AS_TEXT, zone) == expected[zone][0], (engine, zone)


#: Times in the paths of files: that come twice or not at all in New York, and with a zone of their own.
PATHS = ("2024-11-03 01:30:00", "2024-03-10 02:30:00", "2024-06-01 00:00:00+02")


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_times_in_paths_are_in_the_zone_of_the_session(zone: str, spark: Any, tmp_path: Path) -> None:
    with duckdb.connect() as plain:
        for number, moment in enumerate(PATHS):
            folder = tmp_path / "files" / f"z={quote(moment)}"
            folder.mkdir(parents=True)
            plain.execute(f"COPY (SELECT {number} AS i) TO '{folder}/x.parquet'")
    statements = [
        f"SET TimeZone = '{zone}'",
        "CREATE TABLE t (i INT, z TIMESTAMPTZ)",
        "CREATE TABLE p (i INT, z TIMESTAMPTZ)",
        "ALTER TABLE p SET PARTITIONED BY (z)",
        *(f"CALL ducklake_add_data_files('lake', '{name}', '{tmp_path}/files/*/x.parquet')" for name in "tp"),
    ]
    queries = [
        *(f"SELECT i, z::VARCHAR FROM {name} ORDER BY i" for name in "tp"),
        *(f"SELECT i FROM {name} WHERE z {op} '{at}' ORDER BY i" for name in "tp" for at in PATHS for op in ("=", "<")),
        "SELECT min(z)::VARCHAR, max(z)::VARCHAR FROM p",
    ]
    known = [
        "SELECT table_id, column_id, min_value, max_value FROM __ducklake_metadata_lake.ducklake_table_column_stats ORDER BY ALL",
        "SELECT partition_value FROM __ducklake_metadata_lake.ducklake_file_partition_value ORDER BY ALL",
    ]
    with connect() as reference:
        reference.execute(f"ATTACH 'ducklake:{tmp_path}/theirs.ducklake' AS lake (DATA_PATH '{tmp_path}/d'); USE lake")
        for statement in statements:
            reference.execute(statement)
        expected = {query: reference.execute(query).fetchall() for query in (*queries, *known)}
    with dl.connect(f"ducklake:{tmp_path}/ours.ducklake", alias="lake", data_path=f"{tmp_path}/e") as session:
        for statement in statements:
            session.sql(statement)
        assert {query: session.sql(query).fetchall() for query in known} == {query: expected[query] for query in known}
    for engine, name in (("duckdb", "theirs"), ("spark", "theirs"), ("duckdb", "ours"), ("spark", "ours")):
        with dl.connect(f"ducklake:{tmp_path}/{name}.ducklake", alias="lake", spark=spark, engine=engine) as session:
            session.sql(f"SET TimeZone = '{zone}'")
            assert {query: session.sql(query).fetchall() for query in queries} == {q: expected[q] for q in queries}, (
                engine
            )
            rows = texts_of(session.table("t").arrow(), "SELECT i, z::VARCHAR FROM {} ORDER BY i", zone)
            assert rows == expected[queries[0]]
