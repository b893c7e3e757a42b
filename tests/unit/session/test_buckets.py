"""Parts of a scan by the bucket of a column: each row is in one, the one of its value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.engine.in_process import reader
from ducklake_lab.model.transforms import Bucket
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.session.spark_tables import buckets

COLUMNS = "a TINYINT, k BIGINT, s VARCHAR, d DATE, n HUGEINT"
VALUES = "(range % 100)::TINYINT, range - 20, 'ü' || range, DATE '1960-01-01' + range::INTEGER * 40, range"


def plan(uri: str, name: str = "t") -> ScanPlan:
    lake = open_lake(parse_uri(uri), "l")
    with lake.connect() as connection:
        state = lake.state(connection, lake.snapshot(connection))
        return plan_scan(lake, connection, state, state.table("main", name))


@pytest.fixture
def empty(lake_uri: Callable[[], str], tmp_path: Path) -> str:
    made = lake_uri()
    dl.connect(made, alias="lake", data_path=f"{tmp_path}/data").close()
    return made


@pytest.fixture
def uri(empty: str) -> str:
    made = empty
    with dl.connect(made, alias="lake", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t ({COLUMNS})")
        session.sql("ALTER TABLE t SET PARTITIONED BY (bucket(3, a), bucket(4, k), bucket(2, s), bucket(5, d))")
        session.sql(f"INSERT INTO t SELECT {VALUES} FROM range(200)")
        session.sql(
            "INSERT INTO t VALUES (NULL, NULL, NULL, NULL, 1), (-7, -7, '', '0001-01-01', 2), (0, 5, 'z', NULL, 3)"
        )
        session.sql("DELETE FROM t WHERE n % 9 = 4")
    return made


@pytest.mark.parametrize(("name", "count"), [("a", 3), ("k", 4), ("s", 2), ("d", 5)])
def test_parts_are_the_rows_of_a_bucket(uri: str, name: str, count: int) -> None:
    whole = plan(uri)
    assert whole.inlined is not None
    assert buckets.is_whole(whole, name)
    parts = [reader.read(buckets.part(whole, name, bucket)) for bucket in range(count)]
    every = reader.read(whole)
    assert sorted(map(repr, pa.concat_tables(parts).to_pylist())) == sorted(map(repr, every.to_pylist()))
    column = whole.table.column(name)
    assert column is not None and sum(part.num_rows > 0 for part in parts) == count
    for bucket, part in enumerate(parts):
        values = part.column(name)
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        # rows without a value are in the first
        assert {int(key or 0) for key in Bucket(count).keys(values)} == {bucket}


def test_files_of_other_keys_or_types_are_in_no_bucket(empty: str) -> None:
    uri = empty
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t (i INTEGER, {COLUMNS})")
        session.sql(f"INSERT INTO t SELECT 1, {VALUES} FROM range(50)")
        session.sql("ALTER TABLE t SET PARTITIONED BY (bucket(4, k), bucket(4, i))")
        assert not buckets.is_whole(plan(uri), "k")  # no file is in a bucket
        session.sql("TRUNCATE t")
        session.sql(f"INSERT INTO t SELECT range, {VALUES} FROM range(50)")
        found = plan(uri)
        assert buckets.is_whole(found, "k") and buckets.is_whole(found, "i")
        assert not buckets.is_whole(found, "s")
        session.sql("ALTER TABLE t ALTER COLUMN i SET TYPE BIGINT")
        found = plan(uri)
        assert buckets.is_whole(found, "k") and not buckets.is_whole(found, "i")
        session.sql("ALTER TABLE t SET PARTITIONED BY (bucket(8, k))")
        assert not buckets.is_whole(plan(uri), "k")


def test_types_that_compare_alike_in_spark(empty: str) -> None:
    uri = empty
    kinds = (
        "TINYINT",
        "BIGINT",
        "VARCHAR",
        "DATE",
        "UINTEGER",
        "HUGEINT",
        "DOUBLE",
        "DECIMAL(9,2)",
        "UUID",
        "TIMESTAMP",
        "BLOB",
    )
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t ({', '.join(f'c{place} {kind}' for place, kind in enumerate(kinds))})")
    found = [buckets.form_of(column) for column in plan(uri).table.columns]
    assert found == ["long", "long", "text", "days", *[None] * 7]
