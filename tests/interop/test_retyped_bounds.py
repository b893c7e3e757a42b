"""Bounds of columns that change their type: readers compare them as values of the newest type."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from ducklakepy.types import parse_primitive_type

import ducklake_lab as dl
from tests.independent import KINDS, open_lake
from tests.interop.comparing import attach

pytestmark = pytest.mark.sampled(4)

Make = Callable[..., str]
CREATED = "CREATE TABLE t (i INTEGER, f FLOAT)"
ROWS = "INSERT INTO t SELECT i, 0.1::FLOAT FROM range(100) AS r(i)"
FEW = "INSERT INTO t SELECT i, 0.1::FLOAT FROM range(5) AS r(i)"
WIDER = "ALTER TABLE t ALTER f TYPE DOUBLE"
SINGLE, UNKNOWN = "0.10000000149011612", None
COMPARISONS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
#: A history, then the bounds of each file and those of the table.
HISTORIES = {
    "files": (f"{CREATED}; {ROWS}; {WIDER}", [(SINGLE, SINGLE)], (SINGLE, SINGLE)),
    "one transaction": (
        f"BEGIN; {CREATED}; {ROWS}; {WIDER}; INSERT INTO t SELECT i, 0.1 FROM range(100) AS r(i); COMMIT",
        [("0.1", "0.1"), (SINGLE, SINGLE)],
        ("0.1", SINGLE),
    ),
    "rows before, then one transaction": (
        f"{CREATED}; {ROWS}; BEGIN; {WIDER}; INSERT INTO t SELECT i, 0.1 FROM range(100) AS r(i); COMMIT",
        [("0.1", "0.1"), (SINGLE, SINGLE)],
        ("0.1", SINGLE),
    ),
    "inlined": (f"{CREATED}; {FEW}; {WIDER}", [], (SINGLE, SINGLE)),
    "flushed": (f"{CREATED}; {FEW}; {WIDER}; CALL flush_inlined_data()", [(SINGLE, SINGLE)], (SINGLE, SINGLE)),
    "merged": (
        f"{CREATED}; {ROWS}; {ROWS}; {WIDER}; CALL merge_adjacent_files()",
        [(SINGLE, SINGLE)],
        (SINGLE, SINGLE),
    ),
    "rewritten": (
        f"{CREATED}; {ROWS}; {WIDER}; DELETE FROM t WHERE i > 3; CALL rewrite_data_files()",
        [(SINGLE, SINGLE), (SINGLE, SINGLE)],
        (SINGLE, SINGLE),
    ),
    "two changes": (
        f"CREATE TABLE t (i INTEGER, f DECIMAL(9,1)); {ROWS}; ALTER TABLE t ALTER f TYPE FLOAT; {WIDER}",
        [(UNKNOWN, UNKNOWN)],
        (UNKNOWN, UNKNOWN),
    ),
    "two changes, then rows": (
        f"CREATE TABLE t (i INTEGER, f DECIMAL(9,1)); {FEW}; ALTER TABLE t ALTER f TYPE DECIMAL(12,2); "
        "ALTER TABLE t ALTER f TYPE DOUBLE; INSERT INTO t VALUES (7, 5)",
        [],
        (UNKNOWN, UNKNOWN),
    ),
    "a default": (
        f"CREATE TABLE t (i INTEGER); ALTER TABLE t ADD COLUMN f FLOAT DEFAULT 0.1; {ROWS}; {WIDER}",
        [(UNKNOWN, UNKNOWN)],
        (UNKNOWN, UNKNOWN),
    ),
    "a default that is the same": (
        f"CREATE TABLE t (i INTEGER); ALTER TABLE t ADD COLUMN f FLOAT DEFAULT 0.5; {ROWS}; {WIDER}",
        [(SINGLE, SINGLE)],
        (SINGLE, SINGLE),
    ),
    "decimals": (
        "CREATE TABLE t (i INTEGER, f DECIMAL(38,10)); "
        f"INSERT INTO t SELECT i, 1234567890123456789.0123456789 FROM range(100) AS r(i); {WIDER}",
        [("1.2345678901234568e+18", "1.2345678901234568e+18")],
        ("1.2345678901234568e+18", "1.2345678901234568e+18"),
    ),
}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("history", HISTORIES)
def test_bounds_are_values_of_the_newest_type(lake_uri: Make, tmp_path: Path, history: str, version: str) -> None:
    script, of_files, of_table = HISTORIES[history]
    options = {"data_path": f"{tmp_path}/data", "ducklake_version": version}
    with dl.connect(lake_uri(), alias="lake", engine="duckdb", **options) as session:
        session.sql(script)
        bounds = "SELECT min_value, max_value FROM __ducklake_metadata_lake.{} WHERE column_id = 2 ORDER BY ALL"
        assert session.sql(bounds.format("ducklake_file_column_stats")).fetchall() == of_files
        found = session.sql(bounds.format("ducklake_table_column_stats")).fetchall()
        assert found == [of_table] or (found == [] and of_table == (UNKNOWN, UNKNOWN))
        rows = session.sql("SELECT f FROM t").fetchall()
        expected = {}
        for value in ("0.1", "0.1::FLOAT::DOUBLE", "1234567890123456789.0123456789::DECIMAL(38,10)::DOUBLE"):
            number = duckdb.sql(f"SELECT {value}::DOUBLE").fetchall()[0][0]
            for comparison, holds in COMPARISONS.items():
                query = f"(SELECT count(*) FROM t WHERE f {comparison} {value}::DOUBLE)"
                expected[query] = sum(holds(f, number) for (f,) in rows)
        # each part is a scan of its own, with bounds of its own
        (found,) = session.sql(f"SELECT {', '.join(expected)}").fetchall()
        assert dict(zip(expected, found, strict=True)) == expected


def test_an_added_file_has_bounds_of_the_columns_type(lake_uri: Make, tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT 0.1::FLOAT AS f FROM range(100)) TO '{tmp_path}/x.parquet'")
    with dl.connect(lake_uri(), alias="lake", engine="duckdb", data_path=f"{tmp_path}/data") as session:
        session.sql(f"CREATE TABLE t (f DOUBLE); CALL ducklake_add_data_files('lake', 't', '{tmp_path}/x.parquet')")
        query = "SELECT min_value, max_value FROM __ducklake_metadata_lake.ducklake_{}_column_stats"
        for place in ("file", "table"):
            assert session.sql(query.format(place)).fetchall() == [(SINGLE, SINGLE)]


def test_the_reference_finds_nested_rows(lake_uri: Make, tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = lake_uri()
    with dl.connect(
        uri, alias="lake", engine="duckdb", data_path=f"{tmp_path}/data", ducklake_version="1.0"
    ) as session:
        session.sql("CREATE TABLE t (s STRUCT(x FLOAT)); INSERT INTO t SELECT {'x': 0.1::FLOAT} FROM range(100)")
        session.sql("ALTER TABLE t ALTER s TYPE STRUCT(x DOUBLE)")
    attach(reference, uri)
    assert reference.execute("SELECT count(*) FROM t WHERE s.x > 0.1").fetchall() == [(100,)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_independent_implementation_spells_them_so(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with dl.connect(
        uri, alias="lake", engine="duckdb", data_path=f"{tmp_path}/data/", ducklake_version="1.1"
    ) as session:
        session.sql("CREATE TABLE ours (f FLOAT); INSERT INTO ours SELECT i * 0.1::FLOAT FROM range(1, 100) AS r(i)")
        session.sql("CREATE TABLE theirs AS FROM ours; ALTER TABLE ours ALTER f TYPE DOUBLE")
        catalog = open_lake(uri)
        with catalog.load_table("main.theirs").update_schema() as update:
            update.set_column_type("f", parse_primitive_type("float64"))
        bounds = (
            "SELECT min_value, max_value FROM __ducklake_metadata_lake.ducklake_{}_column_stats WHERE table_id = {}"
        )
        for place in ("file", "table"):
            ours, theirs = (session.sql(bounds.format(place, table)).fetchall() for table in (1, 2))
            assert ours == theirs == [("0.10000000149011612", "9.90000057220459")]


def test_bounds_that_a_table_lacks_stay_unknown(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """Another client may keep bounds of files alone; those of the next rows would hide all others."""
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with dl.connect(uri, alias="lake", engine="duckdb", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t SELECT i FROM range(100) AS r(i)")
    with sqlite3.connect(tmp_path / "m.sqlite") as catalog:
        assert (
            catalog.execute("UPDATE ducklake_table_column_stats SET min_value = NULL, max_value = NULL").rowcount == 1
        )
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql("INSERT INTO t SELECT i FROM range(500, 600) AS r(i)")
    attach(reference, uri)
    assert reference.execute("SELECT count(*) FROM t WHERE i < 50").fetchall() == [(50,)]
