"""The demo lake through the reference, and what the reference does to it through us."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach

#: What the reference does to the lake: inserts, updates and deletes, inlined and in files, and DDL.
STATEMENTS = [
    "INSERT INTO airlines VALUES ('ZZ', 'Zeppelin Lines'), ('YY', NULL)",
    "UPDATE airlines SET name = upper(name) WHERE carrier < 'B'",
    "DELETE FROM airlines WHERE carrier = 'YY'",
    "DELETE FROM flights WHERE carrier = 'OO'",
    "UPDATE flights SET dep_delay = 0 WHERE dep_delay < 0 AND month = 2",
    "DELETE FROM flights WHERE dep_delay = 0 AND month = 2 AND day = 3",
    "INSERT INTO flights BY NAME SELECT * REPLACE (2014 AS year) FROM flights WHERE month = 1 AND day = 1",
    "ALTER TABLE weather ADD COLUMN station VARCHAR DEFAULT 'NYC'",
    "UPDATE weather SET station = origin WHERE month = 1 AND day = 1 AND hour < 3",
    "DELETE FROM planes WHERE year IS NULL",
    "CREATE TABLE notes AS SELECT 1 AS id, 'inlined' AS text",
    "INSERT INTO notes VALUES (2, NULL)",
]

Digest = dict[tuple[int, str], tuple[int, int]]


@pytest.fixture
def lake(demo_lake: Path, tmp_path: Path) -> str:
    """A copy of the demo lake; its data stays where the catalog says it is."""
    shutil.copy(demo_lake / "flights.ducklake", tmp_path / "flights.ducklake")
    return f"ducklake:{tmp_path}/flights.ducklake"


def names_at(session: dl.Session, snapshot_id: int) -> list[str]:
    return [f"{info.schema}.{info.table.name}" for info in session.tables(at=snapshot_id)]


def theirs(reference: duckdb.DuckDBPyConnection, uri: str, wanted: list[tuple[int, str]]) -> Digest:
    """Count and checksum of every table's rows, lineage included, as the reference reads them."""
    attach(reference, uri)
    try:
        return {
            (snapshot_id, name): one(
                reference,
                "SELECT count(*), bit_xor(hash(t)) FROM (SELECT rowid, snapshot_id, * "
                f"FROM lake.{name} AT (VERSION => {snapshot_id})) AS t",
            )
            for snapshot_id, name in wanted
        }
    finally:
        detach(reference)


def ours(session: dl.Session, wanted: list[tuple[int, str]]) -> Digest:
    """Return the digest of the rows that Spark reads."""
    found = {}
    for snapshot_id, name in wanted:
        rows = session.sql(f"SELECT rowid, snapshot_id, * FROM {name} AT (VERSION => {snapshot_id})").arrow()
        with duckdb.connect() as connection:
            connection.register("rows", rows)
            found[snapshot_id, name] = one(connection, "SELECT count(*), bit_xor(hash(t)) FROM (FROM rows) AS t")
    return found


def one(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    return connection.execute(sql).fetchone()


def everything(session: dl.Session, since: int = 0) -> list[tuple[int, str]]:
    snapshots = [entry.info.snapshot_id for entry in session.snapshots() if entry.info.snapshot_id >= since]
    return [(snapshot_id, name) for snapshot_id in snapshots for name in names_at(session, snapshot_id)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("part", range(4))
def test_both_read_the_same_at_every_snapshot(
    part: int, lake: str, reference: duckdb.DuckDBPyConnection, spark: Any
) -> None:
    session = dl.connect(lake, alias="lake", spark=spark)
    wanted = everything(session)
    assert len(wanted) > 17 * 4
    # the tables of one snapshot are in several parts
    some = wanted[part::4]
    expected = theirs(reference, lake, some)
    assert ours(session, some) == expected


def test_we_read_what_the_reference_does_to_it(lake: str, reference: duckdb.DuckDBPyConnection, spark: Any) -> None:
    session = dl.connect(lake, alias="lake", spark=spark)
    last = session.current_snapshot().snapshot_id
    attach(reference, lake)
    for statement in STATEMENTS:
        reference.execute(statement)
    detach(reference)
    added = everything(session, since=last + 1)
    assert {snapshot_id for snapshot_id, _ in added} == set(range(last + 1, last + 1 + len(STATEMENTS)))
    assert ours(session, added) == theirs(reference, lake, added)
