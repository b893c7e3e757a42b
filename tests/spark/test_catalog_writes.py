"""Plain Spark writes lakes: one snapshot for each statement, which the reference reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from tests.spark.catalogs import SparkLake, spark_lake

pytestmark = pytest.mark.sampled(5)


@pytest.fixture
def lake(spark: Any, spark_jar: None, new_catalog: Callable[..., str]) -> Iterator[SparkLake]:
    with spark_lake(spark, new_catalog()) as found:
        yield found


def steps(lake: SparkLake, *texts: str) -> None:
    """Runs statements, each of which makes one snapshot."""
    for text in texts:
        before = lake.snapshot()
        lake.sql(text)
        assert lake.snapshot() == before + 1, text


def same(lake: SparkLake, text: str) -> list[tuple[object, ...]]:
    """The rows of a query, which are the reference's."""
    ours = lake.sql(text.replace("{}", "lake.main."))
    assert ours == lake.reference(text.replace("{}", "")), text
    return ours


def test_inserts_match_by_place_and_by_name_and_fill_defaults(lake: SparkLake) -> None:
    steps(
        lake,
        "CREATE TABLE lake.main.t (id BIGINT, name STRING COMMENT 'what', n INT DEFAULT 7, d DATE DEFAULT DATE '2020-02-29')",
        "INSERT INTO lake.main.t (id, name) VALUES (1, 'a'), (2, NULL)",
        "INSERT INTO lake.main.t VALUES (3, 'c', 1, DATE '1999-12-31')",
        "INSERT INTO lake.main.t SELECT id + 10, name, n, d FROM lake.main.t",
        "INSERT INTO lake.main.t BY NAME SELECT 'z' AS name, 30L AS id",
    )
    found = same(lake, "SELECT id, name, n, CAST(d AS VARCHAR(10)) FROM {}t ORDER BY id")
    assert found[0] == (1, "a", 7, "2020-02-29") and found[-1] == (30, "z", 7, "2020-02-29") and len(found) == 7


def test_a_default_that_spark_cannot_express_is_an_error(lake: SparkLake) -> None:
    lake.session.sql("CREATE TABLE t (a INTEGER, b TIMESTAMPTZ DEFAULT now())")
    with pytest.raises(Exception, match="give the column a value"):
        lake.sql("INSERT INTO lake.main.t (a) VALUES (1)")
    with pytest.raises(Exception, match=r"DEFAULT concat\(.* of column"):
        lake.sql("CREATE TABLE lake.main.u (a STRING DEFAULT concat('a', 'b'))")
    assert lake.sql("SELECT count(*) FROM lake.main.t") == [(0,)]


def test_overwrites_replace_what_they_name(lake: SparkLake) -> None:
    from pyspark.sql import functions as F

    frame = lake.spark.range(1000).selectExpr("id AS k", "id % 4 AS p")
    frame.writeTo("lake.main.t").partitionedBy(F.col("p")).create()
    more = lake.spark.range(1000, 1010).selectExpr("id AS k", "1L AS p")
    before = lake.snapshot()
    more.writeTo("lake.main.t").overwritePartitions()
    assert lake.snapshot() == before + 1
    assert same(lake, "SELECT p, count(*) FROM {}t GROUP BY p ORDER BY p") == [(0, 250), (1, 10), (2, 250), (3, 250)]
    more.writeTo("lake.main.t").overwrite(F.col("k") < 500)
    assert same(lake, "SELECT count(*), min(k) FROM {}t") == [(395, 500)]
    steps(lake, "INSERT INTO lake.main.t REPLACE WHERE k = 999 SELECT 999L AS k, 3L AS p")
    assert same(lake, "SELECT count(*), max(p) FROM {}t WHERE k = 999") == [(1, 3)]
    steps(lake, "INSERT OVERWRITE lake.main.t SELECT k + 1, p FROM lake.main.t WHERE p = 3")
    assert same(lake, "SELECT count(*), min(k) FROM {}t") == [(125, 504)]
    more.write.insertInto("lake.main.t")
    more.write.mode("append").saveAsTable("lake.main.t")
    assert same(lake, "SELECT count(*) FROM {}t") == [(145,)]
    more.write.mode("overwrite").saveAsTable("lake.main.t")
    assert same(lake, "SELECT count(*) FROM {}t") == [(10,)]


def test_dynamic_overwrite_keeps_other_partitions(lake: SparkLake) -> None:
    lake.session.sql("CREATE TABLE t (k BIGINT, day DATE)")
    lake.session.sql("ALTER TABLE t SET PARTITIONED BY (day)")
    lake.session.sql("INSERT INTO t SELECT i, DATE '2024-01-01' + (i % 5)::INTEGER FROM range(100) r(i)")
    lake.session.sql("INSERT INTO t VALUES (-1, NULL)")
    setting = "spark.sql.sources.partitionOverwriteMode"
    lake.spark.conf.set(setting, "dynamic")
    try:
        steps(lake, "INSERT OVERWRITE lake.main.t SELECT 1000L, DATE '2024-01-02'")
        steps(lake, "INSERT OVERWRITE lake.main.t SELECT 2000L, CAST(NULL AS DATE)")
    finally:
        lake.spark.conf.unset(setting)
    assert same(lake, "SELECT count(*), max(k), count(day) FROM {}t") == [(82, 2000, 81)]


def test_tables_from_queries(lake: SparkLake) -> None:
    lake.session.sql("CREATE TABLE s AS SELECT i AS k, 'v' || i AS v FROM range(3000) r(i)")
    steps(
        lake,
        "CREATE TABLE lake.main.t COMMENT 'copied' AS SELECT * FROM lake.main.s",
        "CREATE OR REPLACE TABLE lake.main.t PARTITIONED BY (bucket(4, k)) AS SELECT k, v FROM lake.main.t WHERE k < 100",
        "REPLACE TABLE lake.main.t AS SELECT k FROM lake.main.t",
        "CREATE OR REPLACE TABLE lake.main.empty (a INT, b STRING)",
    )
    assert same(lake, "SELECT count(*), sum(k) FROM {}t") == [(100, 4950)]
    with pytest.raises(Exception, match="already"):
        lake.sql("CREATE TABLE lake.main.t AS SELECT 1 AS a")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.sql("REPLACE TABLE lake.main.none AS SELECT 1 AS a")
    before = lake.snapshot()
    with pytest.raises(Exception, match=r"DIVIDE_BY_ZERO|[Dd]ivi"):
        lake.sql("CREATE TABLE lake.main.failed AS SELECT k / (k - 5) AS a FROM lake.main.s")
    assert lake.snapshot() == before and not lake.spark.catalog.tableExists("lake.main.failed")


@pytest.mark.anywhere
def test_deletes_updates_and_merges_have_sparks_meaning(lake: SparkLake) -> None:
    lake.session.sql("CREATE TABLE t AS SELECT i AS k, 'v' || i AS v, i % 7 AS g FROM range(3000) r(i)")
    lake.session.sql("INSERT INTO t VALUES (9001, 'inlined', 1), (9002, 'inlined', 2)")
    lake.session.sql("DELETE FROM t WHERE k < 5")
    lake.sql("CREATE TABLE lake.main.s AS SELECT id AS k, concat('n', id) AS v FROM range(2990, 3010)")
    ids = "SELECT k, rowid FROM t WHERE k IN (100, 9002) ORDER BY k"
    before = lake.reference(ids)
    steps(
        lake,
        "DELETE FROM lake.main.t WHERE k % 10 = 3 OR v = 'inlined' AND g = 1",
        # Spark's own functions and its division, which is no integer
        "UPDATE lake.main.t SET v = initcap(concat_ws('-', 'a b', g)), g = g + 1 WHERE k / 4 = 25.0 OR k = 9002",
        "DELETE FROM lake.main.t AS x WHERE EXISTS (SELECT 1 FROM lake.main.s WHERE s.k = x.k AND s.k % 2 = 0)",
        "UPDATE lake.main.t SET v = 'most' WHERE k = (SELECT max(k) FROM lake.main.t WHERE k < 3000)",
        "MERGE INTO lake.main.t USING lake.main.s ON t.k = s.k "
        "WHEN MATCHED AND s.k = 2991 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED AND s.k > 3000 THEN INSERT (k, v) VALUES (s.k, upper(s.v)) "
        "WHEN NOT MATCHED BY SOURCE AND t.k BETWEEN 200 AND 210 THEN DELETE",
    )
    assert lake.reference(ids) == before  # updated rows keep their row ids
    same(lake, "SELECT count(*), sum(k), count(g), sum(g) FROM {}t")
    assert same(lake, "SELECT v, g FROM {}t WHERE k IN (100, 9002) ORDER BY k") == [("A B-2", 3), ("A B-2", 3)]
    assert same(lake, "SELECT k, v, g FROM {}t WHERE k >= 2991 AND k < 9000 ORDER BY k") == [
        (2995, "n2995", 6),
        (2997, "n2997", 1),
        (2999, "n2999", 3),
        *((k, f"N{k}", None) for k in range(3001, 3010)),
    ]
    assert same(lake, "SELECT count(*) FROM {}t WHERE k BETWEEN 200 AND 210") == [(0,)]


def test_merges_of_a_dataframe(lake: SparkLake) -> None:
    from pyspark.sql import functions as F

    lake.sql("CREATE TABLE lake.main.t AS SELECT id AS k, 0L AS n FROM range(10)")
    frame = lake.spark.range(5, 15).selectExpr("id AS k", "id * 2 AS n").alias("source")
    frame.mergeInto(
        "lake.main.t", F.expr("t.k = source.k")
    ).whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert same(lake, "SELECT count(*), sum(n) FROM {}t") == [(15, 190)]
    frame.mergeInto("lake.main.t", F.expr("t.k = source.k + 100")).whenNotMatched().insertAll().merge()
    assert same(lake, "SELECT count(*) FROM {}t") == [(25,)]
    with pytest.raises(Exception, match="multiple rows of the source"):
        lake.sql(
            "MERGE INTO lake.main.t USING (SELECT explode(array(1, 1)) AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = 1"
        )


@pytest.mark.anywhere
def test_many_changed_rows_are_written_by_spark(lake: SparkLake) -> None:
    lake.session._placing.limits = Limits(fetched_rows=10)
    lake.session.sql("CREATE TABLE t AS SELECT i AS k, 'v' || i AS v, uuid() AS u FROM range(2000) r(i)")
    steps(
        lake,
        "DELETE FROM lake.main.t WHERE k % 3 = 0",
        "UPDATE lake.main.t SET v = 'w' WHERE k % 3 = 1",
        "MERGE INTO lake.main.t USING (SELECT id AS k FROM range(1990, 2100)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'i')",
    )
    found = same(lake, "SELECT v, count(*), count(u) FROM {}t WHERE v IN ('w', 'm', 'i') GROUP BY v ORDER BY v")
    assert found == [("i", 103, 0), ("m", 7, 7), ("w", 663, 663)]


@pytest.mark.anywhere
def test_every_type_goes_there_and_back(lake: SparkLake) -> None:
    lake.session.sql(
        "CREATE TABLE t AS SELECT 1::UTINYINT AS a, 18446744073709551615::UBIGINT AS b, 1.25::DECIMAL(9,2) AS c, "
        "uuid() AS d, TIMESTAMP_S '2020-01-01 00:00:01' AS e, TIMESTAMPTZ '2020-01-01 00:00:00+00' AS f, 'x'::BLOB AS g, "
        "{'x': 1, 'y': ['a', NULL]} AS h, MAP {'k': 1} AS i, DATE '0001-01-01' AS j, 'nan'::DOUBLE AS k, true AS l"
    )
    steps(lake, "INSERT INTO lake.main.t SELECT * FROM lake.main.t", "UPDATE lake.main.t SET l = false WHERE a = 1")
    distinct = lake.reference("SELECT count(*), count(DISTINCT t::VARCHAR) FROM t")
    assert distinct == [(2, 1)]
    kinds = "SELECT column_type FROM (DESCRIBE t)"
    assert lake.reference(kinds)[:4] == [("UTINYINT",), ("UBIGINT",), ("DECIMAL(9,2)",), ("UUID",)]
    with pytest.raises(Exception, match=r"UTINYINT|UINT8|range"):
        lake.sql("UPDATE lake.main.t SET a = 300")


def test_alterations(lake: SparkLake) -> None:
    lake.sql(
        "CREATE TABLE lake.main.t (a INT, b STRUCT<x: INT>)", "INSERT INTO lake.main.t VALUES (1, named_struct('x', 2))"
    )
    steps(
        lake,
        "ALTER TABLE lake.main.t ADD COLUMNS (c STRING COMMENT 'new', d INT)",
        "ALTER TABLE lake.main.t RENAME COLUMN a TO `a ü`",
        "ALTER TABLE lake.main.t ALTER COLUMN `a ü` TYPE BIGINT",
        "ALTER TABLE lake.main.t ADD COLUMN b.y INT",
        "ALTER TABLE lake.main.t ALTER COLUMN c COMMENT 'newer'",
        "ALTER TABLE lake.main.t ALTER COLUMN c SET DEFAULT 'c'",
        "ALTER TABLE lake.main.t DROP COLUMN d",
        "ALTER TABLE lake.main.t SET TBLPROPERTIES ('comment' = 'told')",
        "ALTER TABLE lake.main.t RENAME TO lake.main.t2",
    )
    lake.sql("ALTER TABLE lake.main.t2 SET TBLPROPERTIES ('parquet_compression' = 'zstd')")
    lake.sql("INSERT INTO lake.main.t2 (`a ü`) VALUES (2)")
    assert same(lake, "SELECT b.x, b.y, c FROM {}t2 ORDER BY 1 NULLS LAST") == [(2, None, None), (None, None, "c")]
    for text, reason in (
        ("ALTER TABLE lake.main.t2 ADD COLUMN z INT FIRST", "FIRST or AFTER"),
        ("ALTER TABLE lake.main.t2 ALTER COLUMN c FIRST", "UpdateColumnPosition"),
        ("ALTER TABLE lake.main.t2 SET TBLPROPERTIES ('no_such_option' = '1')", "no_such_option"),
        ("ALTER TABLE lake.main.t2 ALTER COLUMN `a ü` TYPE INT", "INT|int"),
        ("CREATE TABLE lake.main.x (a INT) USING orc", "USING orc"),
        ("CREATE TABLE lake.main.x (a INT) LOCATION '/tmp/x'", "LOCATION"),
        ("DROP TABLE lake.main.t2 PURGE", "PURGE"),
    ):
        with pytest.raises(Exception, match=reason):
            lake.sql(text)


def test_namespaces_and_drops(lake: SparkLake) -> None:
    steps(lake, "CREATE NAMESPACE lake.s", "CREATE TABLE lake.s.t (a INT)", "INSERT INTO lake.s.t VALUES (1)")
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.s")
    with pytest.raises(Exception, match="SCHEMA_NOT_EMPTY"):
        lake.sql("DROP NAMESPACE lake.s")
    with pytest.raises(Exception, match="SCHEMA_ALREADY_EXISTS"):
        lake.sql("CREATE NAMESPACE lake.s")
    steps(lake, "TRUNCATE TABLE lake.s.t", "DROP TABLE lake.s.t", "DROP NAMESPACE lake.s")
    lake.sql("DROP TABLE IF EXISTS lake.main.none")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.sql("DROP TABLE lake.main.none")


def test_calls_run_the_lakes_functions(lake: SparkLake) -> None:
    lake.sql("CREATE TABLE lake.main.t (a INT)", *(f"INSERT INTO lake.main.t VALUES ({i})" for i in range(3)))
    assert lake.sql("CALL lake.flush_inlined_data(table_name => 't')")[0][:2] == ("main", "t")
    assert lake.sql("CALL lake.system.expire_snapshots(versions => array(1L, 2L), dry_run => true)")[0][0] == 1
    with pytest.raises(Exception, match="no function flush_inline"):
        lake.sql("CALL lake.flush_inline()")


def test_a_statement_that_loses_runs_again(lake: SparkLake) -> None:
    """Another client commits between the planning of a statement and its transaction."""
    lake.session.sql("CREATE TABLE t AS SELECT i AS k FROM range(2000) r(i)")
    frame = lake.spark.table("lake.main.t")
    with dl.connect(lake.uri, "other") as other:
        other.sql("DELETE FROM t WHERE k < 1000")
        other.sql("CALL other.rewrite_data_files('t', delete_threshold => 0)")
    lake.sql("UPDATE lake.main.t SET k = -k WHERE k < 1500")
    assert same(lake, "SELECT count(*), sum(k) FROM {}t") == [(1000, 500 * 1749.5 - 500 * 1249.5)]
    assert frame.count() in (1000, 2000)  # a DataFrame keeps its snapshot, or Spark finds the newer one


def test_threads_write_in_turns(lake: SparkLake) -> None:
    lake.sql("CREATE TABLE lake.main.t (k INT)")
    failed: list[BaseException] = []

    def insert(number: int) -> None:
        try:
            for _ in range(3):
                lake.sql(f"INSERT INTO lake.main.t VALUES ({number})")
        except BaseException as error:  # noqa: BLE001 - the test raises it
            failed.append(error)

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert same(lake, "SELECT k, count(*) FROM {}t GROUP BY k ORDER BY k") == [(0, 3), (1, 3), (2, 3)]


def test_batches_of_a_stream_merge_by_name(lake: SparkLake, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE lake.main.t AS SELECT id AS k, 0 AS n FROM range(10)")
    lake.spark.range(5, 15).withColumnRenamed("id", "k").write.parquet(f"{tmp_path}/source")

    def merge(batch: Any, number: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(
            "MERGE INTO lake.main.t USING batch ON t.k = batch.k "
            "WHEN MATCHED THEN UPDATE SET n = 1 WHEN NOT MATCHED THEN INSERT (k, n) VALUES (batch.k, 2)"
        )

    stream = lake.spark.readStream.schema("k bigint").parquet(f"{tmp_path}/source").writeStream.foreachBatch(merge)
    stream.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True).start().awaitTermination()
    assert same(lake, "SELECT n, count(*) FROM {}t GROUP BY n ORDER BY n") == [(0, 5), (1, 5), (2, 5)]


def test_nothing_is_written_to_the_past_or_to_a_read_only_lake(lake: SparkLake, spark: Any) -> None:
    lake.sql("CREATE TABLE lake.main.t (k INT)")
    with dl.spark_catalog(spark, "closed", lake.uri, read_only=True):
        for text in (
            "INSERT INTO closed.main.t VALUES (1)",
            "DELETE FROM closed.main.t WHERE k = 1",
            "DROP TABLE closed.main.t",
        ):
            with pytest.raises(Exception, match=r"read.only"):
                spark.sql(text)
    assert lake.snapshot() == 1


def test_explain_changes_nothing(lake: SparkLake) -> None:
    lake.sql("CREATE TABLE lake.main.t AS SELECT id AS k FROM range(10)")
    plan = lake.sql("EXPLAIN DELETE FROM lake.main.t WHERE k > 5")[0][0]
    assert "InsertIntoDataSourceCommand" in str(plan)
    assert lake.sql("SELECT count(*) FROM lake.main.t") == [(10,)]
