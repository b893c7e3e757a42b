"""The demo lake, read by the reference and by us: the same rows at every snapshot, before and after it writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.demo.source import TABLES

LAST = 17  # the demo's newest snapshot


@pytest.fixture
def lake(demo_lake: Path, tmp_path: Path) -> str:
    """A copy of the demo's catalog; new files go to the demo's folder, where no other copy sees them."""
    shutil.copy(demo_lake / "flights.ducklake", tmp_path)
    return f"ducklake:{tmp_path / 'flights.ducklake'}"


@contextmanager
def attached(reference: duckdb.DuckDBPyConnection, uri: str) -> Iterator[None]:
    """The lake in the reference as `lake`; only one of us can have the catalog's file open at a time."""
    reference.execute(f"ATTACH '{uri}' AS lake")
    try:
        yield
    finally:
        reference.execute("DETACH lake")


def differences(
    reference: duckdb.DuckDBPyConnection, uri: str, table: str, snapshot: int, ours: pa.Table
) -> list[tuple[object, ...]]:
    """Counts and up to three rows, where the reference's rows are not ours as multisets; empty where they are."""
    reference.register("ours", ours)
    theirs = f"lake.{table} AT (VERSION => {snapshot})"
    with attached(reference, uri):
        described = reference.execute(f"DESCRIBE SELECT * FROM {theirs}").fetchall()
        assert [column[:2] for column in described] == [
            column[:2] for column in reference.execute("DESCRIBE ours").fetchall()
        ]
        counts = reference.execute(f"SELECT (SELECT count(*) FROM {theirs}), (SELECT count(*) FROM ours)").fetchall()
        rows = reference.execute(f"SELECT * FROM {theirs} EXCEPT ALL SELECT * FROM ours LIMIT 3").fetchall()
    reference.unregister("ours")
    return [*(count for count in counts if count[0] != count[1]), *rows]


@pytest.mark.parametrize("snapshot", range(1, LAST + 1))
def test_every_table_at_every_snapshot_is_the_same(
    demo_lake: Path, lake: str, reference: duckdb.DuckDBPyConnection, snapshot: int
) -> None:
    with dl.connect(lake) as session:
        for table in TABLES:
            ours = session.table(table, at=snapshot).arrow()
            assert differences(reference, lake, table, snapshot, ours) == []


@pytest.mark.parametrize("snapshot", [1, 12, 13, 14, LAST])
def test_spark_reads_the_same(spark: object, lake: str, reference: duckdb.DuckDBPyConnection, snapshot: int) -> None:
    with dl.connect(lake) as session:
        ours = session.sql(f"SELECT * FROM flights AT (VERSION => {snapshot})").arrow()
        assert differences(reference, lake, "flights", snapshot, ours) == []


def test_what_the_reference_writes_is_read(spark: object, lake: str, reference: duckdb.DuckDBPyConnection) -> None:
    with attached(reference, lake):
        for statement in (
            # small ones are inlined
            "INSERT INTO lake.airlines VALUES ('ZZ', 'Zeppelin Airways'), ('ZY', NULL)",
            "UPDATE lake.airlines SET name = 'Zephyr' WHERE carrier = 'ZY'",
            "DELETE FROM lake.airlines WHERE carrier IN ('ZZ', 'AA')",
            # large ones are files
            "INSERT INTO lake.flights SELECT * FROM lake.flights WHERE month = 2",
            "UPDATE lake.flights SET dep_delay = dep_delay + 1 WHERE carrier = 'HA'",
            "DELETE FROM lake.flights WHERE origin = 'LGA' AND month <= 3",
            "DELETE FROM lake.flights WHERE dest = 'LEX'",
        ):
            reference.execute(statement)
        last = reference.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()[0][0]
    assert last == LAST + 7
    with dl.connect(lake) as session:
        for snapshot in range(LAST, last + 1):
            for table in ("airlines", "flights"):
                ours = session.sql(f"SELECT * FROM {table} AT (VERSION => {snapshot})").arrow()
                assert differences(reference, lake, table, snapshot, ours) == [], (table, snapshot)


def test_the_change_feed_of_an_update_is_the_same(
    spark: object, lake: str, reference: duckdb.DuckDBPyConnection
) -> None:
    query = (
        "SELECT snapshot_id, rowid, change_type, tailnum, dep_time, arr_time"
        " FROM lake.table_changes('flights', 13, 13) ORDER BY ALL"
    )
    with dl.connect(lake, alias="lake") as session:
        ours = session.sql(query).fetchall()
    with attached(reference, lake):
        theirs = reference.execute(query).fetchall()
    assert len(ours) == 2 * 183
    assert ours == theirs
