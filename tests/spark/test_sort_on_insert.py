"""Rows of an insert lie in the order of the table's sort keys, unless sort_on_insert says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def lake(tmp_path: Path, spark: Any) -> Any:
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data", spark=spark, engine="spark"
    ) as session:
        session.sql(
            "CREATE TABLE source AS SELECT ((i * 7) % 40)::INTEGER AS i, 's' || (i % 3) AS s FROM range(40) r(i)"
        )
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); ALTER TABLE t SET SORTED BY (upper(s) DESC, i)")
        yield session


def stored(lake: dl.Session, table: str) -> list[tuple[str, int]]:
    """The rows as they lie in the newest file."""
    path = lake.sql(f"SELECT data_file FROM lake.list_files('{table}')").fetchall()[-1][0]
    rows = pq.read_table(path, partitioning=None)
    return list(zip(rows.column("s").to_pylist(), rows.column("i").to_pylist(), strict=True))


def in_order(rows: list[tuple[str, int]]) -> bool:
    return rows == sorted(rows, key=lambda row: (-ord(row[0][1]), row[1]))


def test_by_spark(lake: dl.Session) -> None:
    lake.sql("INSERT INTO t SELECT i, s FROM source")
    assert in_order(stored(lake, "t"))


def test_by_spark_within_partitions_and_sizes(lake: dl.Session, spark: Any) -> None:
    lake.sql("ALTER TABLE t SET PARTITIONED BY (s)")
    rows = spark.range(20_000).selectExpr("cast((id * 7919) % 20000 AS int) AS i", "concat('s', id % 3) AS s")
    lake.write(rows.repartition(4), "t")
    files = lake.sql("SELECT data_file FROM lake.list_files('t')").fetchall()
    assert len(files) == 3
    for (path,) in files:
        numbers = pq.read_table(path, partitioning=None).column("i").to_pylist()
        assert numbers == sorted(numbers) and len(numbers) > 6_000
    lake.sql("CALL lake.set_option('parquet_row_group_size', 2048); CALL lake.set_option('target_file_size', '8KB')")
    lake.sql("CREATE TABLE small (i INTEGER, s VARCHAR)")
    lake.write(rows.coalesce(1), "small")
    files = lake.sql("SELECT data_file FROM lake.list_files('small')").fetchall()
    assert len(files) > 2
    footers = [pq.read_metadata(path) for (path,) in files]
    groups = [footer.row_group(i).num_rows for footer in footers for i in range(footer.num_row_groups)]
    assert sum(groups) == 20_000 and sum(count != 2048 for count in groups) == 1
    lake.sql("CALL lake.set_option('target_file_size', '512MB'); CALL lake.set_option('per_thread_output', false)")
    lake.sql("CREATE TABLE one AS SELECT 1 AS i, 's' AS s LIMIT 0")
    lake.write(rows.repartition(4), "one")
    assert len(lake.sql("FROM lake.list_files('one')").fetchall()) == 1


def test_in_process(lake: dl.Session) -> None:
    lake.write(lake.sql("FROM source").arrow(), "t")
    rows = stored(lake, "t")
    assert in_order(rows)
    assert len(rows) == 40


def test_not_where_the_option_says_so(lake: dl.Session) -> None:
    lake.sql("CALL lake.set_option('sort_on_insert', false, table_name => 't')")
    lake.write(lake.sql("FROM source").arrow(), "t")
    assert not in_order(stored(lake, "t"))
