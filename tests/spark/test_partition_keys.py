"""Partition keys by Spark are those that are computed in process, and files keep to the lake's options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(5)

COLUMNS = {
    "i": "i::INTEGER",
    "b": "i::BIGINT * 1000000007",
    "s": "'text ' || i",
    "d": "DATE '1960-01-01' + i::INTEGER * 400",
    "ts": "TIMESTAMP '2021-02-03 04:05:06.789' + to_days(i::INTEGER)",
    "n": "(i / 4)::DECIMAL(10,2)",
    "f": "i / 3",
    "u": "i::UINTEGER",
    "flag": "i % 2 = 0",
}

UNITS = {"epoch_year": "years", "epoch_month": "months", "epoch_day": "days", "epoch_hour": "hours"}
#: A count goes back by one, half a unit before 1970.
EPOCHS = [
    (f"CAST(DATE '1970-01-01' + to_{unit}(i::INTEGER) + INTERVAL 1 SECOND AS {kind})", key)
    for key, unit in UNITS.items()
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMPTZ")
    if (key, kind) != ("epoch_hour", "DATE")
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Any:
    folder: Path = tmp_path_factory.mktemp("buckets")
    with dl.connect(
        f"ducklake:{folder}/lake.ducklake", alias="lake", data_path=f"{folder}/data", spark=spark, engine="spark"
    ) as session:
        values = ", ".join(f"{value} AS {name}" for name, value in COLUMNS.items())
        session.sql(
            f"CREATE TABLE source AS SELECT {values} FROM range(30) r(i) UNION ALL SELECT {', '.join('NULL' for _ in COLUMNS)}"
        )
        yield session


@pytest.mark.parametrize("column", COLUMNS)
def test_spark_and_the_process_agree(column: str, lake: dl.Session) -> None:
    for name in ("by_spark", "in_process"):
        lake.sql(f"CREATE OR REPLACE TABLE {name} AS SELECT {column} AS x FROM source WITH NO DATA")
        lake.sql(f"ALTER TABLE {name} SET PARTITIONED BY (bucket(4, x))")
    lake.sql(f"INSERT INTO by_spark SELECT {column} FROM source")
    rows = lake.sql(f"SELECT {column} AS x FROM source").arrow()
    lake.write(rows, "in_process")
    found = {name: _files(lake, name) for name in ("by_spark", "in_process")}
    assert found["by_spark"] == found["in_process"]
    assert len(found["by_spark"]) > 1


@pytest.mark.parametrize(("column", "key"), EPOCHS, ids=str)
def test_counts_since_1970_by_spark_and_in_process(column: str, key: str, spark: Any, tmp_path: Path) -> None:
    """Catalogs of version 1.1 have these keys; here they are put into a catalog of 1.0."""
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    values = f"SELECT {column} AS x FROM range(-12, 12) r(i) UNION ALL SELECT NULL"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", spark=spark) as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        for name in ("by_spark", "in_process"):
            session.sql(
                f"CREATE TABLE {name} AS {values} WITH NO DATA; ALTER TABLE {name} SET PARTITIONED BY (year(x))"
            )
        rows = session.sql(values).arrow()
    with duckdb.connect(f"{tmp_path}/lake.ducklake") as catalog:
        catalog.execute("UPDATE ducklake_partition_column SET transform = ?", [key])
    with dl.connect(uri, alias="lake", spark=spark, engine="spark") as session:
        session.sql(f"INSERT INTO by_spark {values}")
        session.write(rows, "in_process")
        found = {name: _files(session, name) for name in ("by_spark", "in_process")}
        count = session.sql("SELECT count(*) FROM by_spark WHERE x < '1970-01-01'").fetchall()
    assert found["by_spark"] == found["in_process"]
    assert {"-1", "0", None} <= {value for value, _ in found["by_spark"]}
    assert count == [(12,)]


def _files(lake: dl.Session, table: str) -> set[tuple[str | None, int]]:
    meta = "__ducklake_metadata_lake"
    rows = lake.sql(
        f"SELECT partition_value, record_count FROM {meta}.ducklake_data_file JOIN {meta}.ducklake_file_partition_value "
        f"USING (data_file_id) JOIN {meta}.ducklake_table AS t ON t.table_id = ducklake_data_file.table_id "
        f"WHERE table_name = '{table}' AND t.end_snapshot IS NULL"
    ).fetchall()
    return set(rows)


def test_options_of_files(lake: dl.Session) -> None:
    lake.sql("CREATE TABLE z (i INTEGER, k INTEGER); ALTER TABLE z SET PARTITIONED BY (k)")
    lake.sql("CALL lake.set_option('parquet_compression', 'zstd', table_name => 'z')")
    lake.sql("CALL lake.set_option('hive_file_pattern', false, table_name => 'z')")
    lake.sql("INSERT INTO z SELECT i, i % 2 FROM source WHERE i IS NOT NULL")
    paths = [path for (path,) in lake.sql("SELECT data_file FROM lake.list_files('z')").fetchall()]
    assert len(paths) == 2
    assert not any("k=" in path for path in paths)
    assert {pq.ParquetFile(path).metadata.row_group(0).column(0).compression for path in paths} == {"ZSTD"}
