"""Tables of Delta and Iceberg in a lake, and exports: DuckDB's extensions read what the lake has."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from tests import reference
from tests.unit.foreign.tables import check_same, lake_rows
from tests.unit.foreign.test_exporting import COMMON


@pytest.fixture
def session(tmp_path: Path) -> dl.Session:
    return dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data")


def theirs(tmp_path: Path, *tables: str) -> list[pa.Table]:
    """Rows that the reference reads of the lake's tables."""
    with reference.connect() as connection:
        connection.execute(f"ATTACH 'ducklake:{tmp_path}/lake.ducklake' AS lake")
        return [connection.execute(f"FROM lake.{table}").arrow().read_all() for table in tables]


def make(tmp_path: Path) -> pa.Table:
    """Write a Delta table whose partition values are hard to carry in paths."""
    deltalake = pytest.importorskip("deltalake", reason="needs the extra [delta]")
    texts = ["a b", "c/d=é%&?#[*]", None, "null", "x=y/z", "__HIVE_DEFAULT", "NULL", "'\""]
    rows = pa.table(
        {
            "n": range(8),
            "s": texts,
            "day": [None, dt.date(1, 1, 1), *[dt.date(2020, 1, day) for day in range(1, 7)]],
            "moment": pa.array([None, -1, 0, 1_500_000, 10**15, 1, 2, 3], pa.timestamp("us", tz="UTC")),
            "real": [None, 0.1, -0.0, 1e20, 5e-9, 1.0, 2.0, 3.0],
        }
    )
    deltalake.write_deltalake(tmp_path / "delta", rows, partition_by=["s", "day", "moment", "real"])
    return rows


def test_the_reference_reads_added_tables(session: dl.Session, tmp_path: Path) -> None:
    rows = make(tmp_path)
    with session:
        session.add_table("delta", tmp_path / "delta", "t")
        session.sql("DELETE FROM t WHERE n = 0")
        ours = lake_rows(session, "t")
    check_same(ours, rows.slice(1))
    check_same(theirs(tmp_path, "t")[0], ours)


def test_the_references_maintenance_takes_no_file_of_others(session: dl.Session, tmp_path: Path) -> None:
    rows = make(tmp_path)
    files = sorted((tmp_path / "delta").rglob("*.parquet"))
    with session:
        session.add_table("delta", tmp_path / "delta", "t")
    with reference.connect() as connection:
        connection.execute(f"ATTACH 'ducklake:{tmp_path}/lake.ducklake' AS lake")
        connection.execute("CALL ducklake_merge_adjacent_files('lake')")
        connection.execute("DELETE FROM lake.t WHERE n < 4; CALL ducklake_rewrite_data_files('lake')")
        connection.execute("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)")
        connection.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
        connection.execute("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    assert sorted((tmp_path / "delta").rglob("*.parquet")) == files
    check_same(theirs(tmp_path, "t")[0], rows.slice(4))


def scanned(kind: str, path: str) -> pa.Table:
    extensions = {"delta": ("delta",), "iceberg": ("avro", "iceberg")}[kind]
    for name in extensions:
        reference.extension(name)
    connection: duckdb.DuckDBPyConnection
    with reference.connect(*extensions) as connection:
        call = f"{kind}_scan('{path}')"
        return connection.execute(f"FROM {call}").arrow().read_all()


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_duckdb_reads_exports(session: dl.Session, tmp_path: Path, kind: str) -> None:
    package = {"delta": "deltalake", "iceberg": "pyiceberg"}[kind]
    pytest.importorskip(package, reason=f"needs the extra [{kind}]")
    with session:
        session.sql(COMMON)
        session.sql("CREATE TABLE big AS SELECT i, i % 7 AS p FROM range(10000) r(i); DELETE FROM big WHERE p = 3")
        session.sql("INSERT INTO big VALUES (NULL, -1); CREATE TABLE none(i INTEGER)")
        for name in ("t", "big", "none"):
            made = session.table(name).export(kind, f"{tmp_path}/out {name}")
            found = scanned(kind, f"{tmp_path}/out {name}")
            assert made.rows == found.num_rows
            check_same(found, lake_rows(session, name))
        session.sql("INSERT INTO big VALUES (7, 7)")
        session.table("big").export(kind, f"{tmp_path}/out big", overwrite=True)
        check_same(scanned(kind, f"{tmp_path}/out big"), lake_rows(session, "big"))


def test_duckdb_reads_iceberg_as_the_lake_does(session: dl.Session, tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg", reason="needs the extra [iceberg]")
    with session:
        session.sql(COMMON)
        session.table("t").export("iceberg", f"{tmp_path}/out")
        session.add_table("iceberg", f"{tmp_path}/out", "again")
        check_same(lake_rows(session, "again"), lake_rows(session, "t"))
    check_same(theirs(tmp_path, "again")[0], scanned("iceberg", f"{tmp_path}/out"))
