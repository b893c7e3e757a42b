"""Lakes of 1.1 worked on Spark have the rows that they have in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from tests.independent import open_lake, schema_of

pytestmark = pytest.mark.sampled(4)

SCRIPT = """
CREATE SCHEMA sales; CREATE SCHEMA sales.europe; CREATE SCHEMA "sales.europe";
CREATE TABLE sales.europe.n (row_id INTEGER, s VARCHAR, t TIMESTAMP, st STRUCT(a INTEGER, b VARCHAR));
ALTER TABLE sales.europe.n SET PARTITIONED BY (epoch_month(t));
INSERT INTO sales.europe.n SELECT i, 'row ' || i, TIMESTAMP '1969-11-30 12:00:00' + to_days(i::INTEGER), {'a': i, 'b': 'x'}
    FROM range(100) AS r(i);
INSERT INTO sales.europe.n VALUES (1000, NULL, NULL, NULL), (1001, 'inlined', TIMESTAMP '1970-01-01', {'a': 1, 'b': NULL});
CREATE TABLE "sales.europe".n AS SELECT 7 AS flat;
CREATE VIEW sales.europe.v (number) AS SELECT row_id, s FROM n WHERE row_id < 50;
COMMENT ON COLUMN sales.europe.v.number IS 'the number';
CREATE MACRO sales.europe.twice(x) AS x * 2;
UPDATE sales.europe.n SET s = 'seven' WHERE row_id = 7;
DELETE FROM sales.europe.n WHERE row_id % 10 = 3;
ALTER TABLE sales.europe.n SET (parquet_compression = 'zstd', data_inlining_row_limit = 0);
INSERT INTO lake.sales.europe.n SELECT 2000 + i, 'late', TIMESTAMP '2024-02-29', NULL FROM range(5) AS r(i);
MERGE INTO sales.europe.n USING (SELECT 1000 AS row_id, 'merged' AS s) AS m USING (row_id)
    WHEN MATCHED THEN UPDATE SET s = m.s;
ALTER TABLE sales.europe.n ADD COLUMN e DATE DEFAULT '2024-02-29';
CALL ducklake_flush_inlined_data('lake', schema_name => 'sales.europe');
CREATE TABLE sales.europe.copy AS SELECT * FROM sales.europe.n WHERE t < TIMESTAMP '1970-02-01';
DELETE FROM sales.europe.copy WHERE row_id = 1
"""
QUERIES = (
    "SELECT * FROM sales.europe.n ORDER BY row_id",
    "SELECT count(*), min(t), max(row_id) FROM lake.sales.europe.n WHERE t >= TIMESTAMP '1970-01-01'",
    "SELECT number, s FROM sales.europe.v ORDER BY ALL",
    "SELECT s, sum(row_id), max(st.a) FROM sales.europe.n GROUP BY ALL ORDER BY ALL",
    'SELECT * FROM "sales.europe".n',
    "SELECT count(*), count(e) FROM sales.europe.copy",
    "SELECT n.row_id FROM sales.europe.n JOIN sales.europe.copy AS c ON c.row_id = n.row_id ORDER BY 1",
    "SELECT count(*) FROM sales.europe.n AT (VERSION => 6)",
    "SELECT snapshot_id, change_type, s FROM ducklake_table_changes('lake', 'sales.europe', 'n', 6, 12) ORDER BY ALL",
)


def test_spark_reads_and_writes_what_the_process_does(
    spark: SparkSession, lake_uri: Callable[..., str], tmp_path: Path
) -> None:
    made = {}
    for engine in ("duckdb", "spark"):
        uri = lake_uri(engine)
        with dl.connect(
            uri, alias="lake", data_path=f"{tmp_path}/{engine}/", ducklake_version="1.1", engine=engine, spark=spark
        ) as session:
            session.sql(SCRIPT)
            found = [sorted(session.sql(query).fetchall(), key=repr) for query in QUERIES]
        with dl.connect(uri, alias="lake", engine="duckdb" if engine == "spark" else "spark", spark=spark) as session:
            assert [sorted(session.sql(query).fetchall(), key=repr) for query in QUERIES] == found
        made[engine] = found
    assert made["spark"] == made["duckdb"]
    assert made["duckdb"][5] == [(len(made["duckdb"][6]), len(made["duckdb"][6]))]
    assert all(made["duckdb"])


def test_a_column_of_nulls(spark: SparkSession, new_catalog: Callable[..., str], tmp_path: Path) -> None:
    uri = new_catalog("sqlite")
    catalog = open_lake(uri, f"{tmp_path}/data/")
    catalog.create_table("main.x", schema=schema_of("i int32, n null"))
    for count in (50, 3):
        catalog.load_table("main.x").append(pa.table({"i": pa.array(range(count), pa.int32()), "n": pa.nulls(count)}))
    with dl.connect(uri, alias="lake", engine="spark", spark=spark) as session:
        assert session.sql("SELECT count(*), count(n), max(i) FROM x WHERE n IS NULL").fetchall() == [(53, 0, 49)]
        session.sql("UPDATE x SET i = -1 WHERE i = 7; DELETE FROM x WHERE n IS NULL AND i > 40")
        session.sql("INSERT INTO x SELECT 100 + i, NULL FROM range(20) AS r(i)")
        found = sorted(session.sql("FROM x").fetchall())
        assert session.table("x").spark().count() == 64
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert sorted(session.sql("FROM x").fetchall()) == found
