"""Plain Spark reads lakes: SELECT, time travel, SHOW, DESCRIBE, metadata tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from tests.spark.catalogs import SparkLake, spark_lake

pytestmark = pytest.mark.sampled(5)


@pytest.fixture
def lake(spark: Any, spark_jar: None, new_catalog: Callable[..., str]) -> Iterator[SparkLake]:
    with spark_lake(spark, new_catalog()) as found:
        yield found


@pytest.fixture
def filled(lake: SparkLake) -> SparkLake:
    """A table of two files with deletes, an update, inlined rows and a renamed column; one of inlined rows."""
    for statement in (
        "CREATE TABLE t AS SELECT i AS k, 'v' || i AS v, i * 1.5 AS x FROM range(2000) r(i)",
        "INSERT INTO t SELECT i, 'w' || i, NULL FROM range(2000, 3000) r(i)",
        "DELETE FROM t WHERE k % 100 = 0",
        "UPDATE t SET v = 'new' WHERE k BETWEEN 11 AND 13",
        "INSERT INTO t VALUES (5000, 'inlined', 1)",
        "ALTER TABLE t RENAME COLUMN v TO word",
        "CREATE TABLE small AS SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL",
    ):
        lake.session.sql(statement)
    return lake


def test_a_select_has_the_rows_that_the_reference_has(filled: SparkLake) -> None:
    for text in (
        "SELECT count(*), min(k), max(k), count(x), min(word), max(word) FROM {}t",
        "SELECT k, word, CAST(x AS DOUBLE) FROM {}t WHERE k BETWEEN 9 AND 14 OR k > 2998 ORDER BY k",
        "SELECT a.k, b.b FROM {}t a JOIN {}small b ON a.k = b.a ORDER BY 1",
        "SELECT x.k FROM {}t x JOIN {}t y ON x.k = y.k + 1 WHERE y.k < 5 ORDER BY 1",
        "SELECT a FROM {}small WHERE a IN (SELECT k - 10 FROM {}t WHERE k < 12) ORDER BY a",
    ):
        ours = filled.sql(text.replace("{}", "lake.main."))
        assert ours == filled.reference(text.replace("{}", "")), text


def test_tables_are_found_without_a_schema_and_by_use(filled: SparkLake) -> None:
    assert filled.sql("SELECT count(*) FROM lake.small") == [(2,)]
    assert filled.spark.table("lake.main.small").count() == 2
    try:
        assert filled.sql("USE lake", "SELECT count(*) FROM small") == [(2,)]
    finally:
        filled.sql("USE spark_catalog.default")


def test_scans_are_those_of_sparks_own_reader(filled: SparkLake) -> None:
    plan = filled.spark.table("lake.main.t")._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
    assert "BatchScan" not in plan


def test_filters_skip_files(filled: SparkLake) -> None:
    frame = filled.spark.sql("SELECT * FROM lake.main.t WHERE k = 2501")
    assert len(frame.inputFiles()) == 1
    assert [row.word for row in frame.collect()] == ["w2501"]
    assert len(filled.spark.sql("SELECT * FROM lake.main.t WHERE k < 0 AND x > 1").inputFiles()) == 0
    assert len(filled.spark.sql("SELECT * FROM lake.main.t WHERE 1000 < k").inputFiles()) == 2
    assert filled.sql("SELECT word FROM lake.main.t WHERE k = 2500") == []  # deleted
    assert filled.sql("SELECT count(*) FROM lake.main.t WHERE word IS NULL OR word LIKE 'inl%'") == [(1,)]
    assert filled.sql("SELECT count(*) FROM lake.main.t WHERE 2997 < k AND x IS NULL") == [(2,)]


def test_filters_of_each_type_keep_the_files_of_their_rows(lake: SparkLake) -> None:
    kinds = {
        "BOOLEAN": ("true", "true"),
        "INTEGER": ("7", "7"),
        "UBIGINT": ("18446744073709551615", "18446744073709551615"),
        "HUGEINT": ("-7", "-7"),
        "DECIMAL(9,2)": ("1.25", "1.25"),
        "FLOAT": ("0.1", "FLOAT(0.1)"),
        "DOUBLE": ("-0.1", "-0.1D"),
        "VARCHAR": ("'ü'", "'ü'"),
        "DATE": ("DATE '1969-12-31'", "DATE '1969-12-31'"),
        "TIMESTAMP": ("TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'"),
        "TIMESTAMPTZ": ("TIMESTAMPTZ '2000-01-01 00:00:00+00'", "TIMESTAMP '2000-01-01 00:00:00+00:00'"),
        "TIMESTAMP_NS": ("TIMESTAMP_NS '2000-01-01 00:00:00.000000500'", "TIMESTAMP_NTZ '2000-01-01 00:00:00'"),
        "UUID": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
    }
    lake.session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    for number, (kind, (stored, asked)) in enumerate(kinds.items()):
        lake.session.sql(f"CREATE TABLE t{number} (v {kind})")
        lake.session.sql(f"INSERT INTO t{number} VALUES ({stored})")
        lake.session.sql(f"INSERT INTO t{number} VALUES (NULL)")
        for condition in (f"v = {asked}", f"v IN ({asked}, NULL)", f"{asked} <= v", f"v <=> {asked}", "v IS NOT NULL"):
            text = f"SELECT count(*) FROM lake.main.t{number} WHERE {condition}"
            assert lake.sql(text) == [(1,)], (kind, condition)
        assert lake.sql(f"SELECT count(*) FROM lake.main.t{number} WHERE v IS NULL") == [(1,)], kind


def test_time_travel_by_version_tag_and_time(filled: SparkLake) -> None:
    assert filled.sql("SELECT count(*), count_if(v = 'new') FROM lake.main.t VERSION AS OF 1") == [(2000, 0)]
    third = filled.session.sql("SELECT snapshot_time FROM lake.snapshots() WHERE snapshot_id = 2").fetchall()[0][0]
    stamp = third.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00:00")
    assert filled.sql(f"SELECT count(*) FROM lake.main.t TIMESTAMP AS OF '{stamp}'") == [(3000,)]
    assert filled.spark.read.option("versionAsOf", 1).table("lake.main.t").count() == 2000
    for clause in ("VERSION AS OF 999", "TIMESTAMP AS OF '1999-01-01'"):
        with pytest.raises(Exception, match=r"[Nn]o snapshot"):
            filled.sql(f"SELECT count(*) FROM lake.main.t {clause}")


def test_show_and_describe(filled: SparkLake) -> None:
    filled.session.sql("CREATE SCHEMA s2")
    filled.session.sql("COMMENT ON COLUMN t.k IS 'the key'")
    assert filled.sql("SHOW NAMESPACES IN lake") == [("main",), ("s2",)]
    assert [row[1] for row in filled.sql("SHOW TABLES IN lake.main")] == ["small", "t"]
    described = filled.sql("DESCRIBE lake.main.t")
    assert described[:2] == [("k", "bigint", "the key"), ("word", "string", None)]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        filled.sql("SELECT * FROM lake.main.nothing")


def test_metadata_tables(filled: SparkLake) -> None:
    assert filled.sql("SELECT count(*), min(snapshot_id) FROM lake.main.t.snapshots")[0][1] == 1
    assert filled.sql("SELECT sum(record_count), sum(deleted_count) FROM lake.main.t.files") == [(3000, 33)]
    changes = "SELECT change_type, count(*) FROM lake.main.t.changes GROUP BY 1 ORDER BY 1"
    calls = f"SELECT change_type, count(*) FROM l.table_changes('t', 0, {filled.snapshot()}) GROUP BY 1 ORDER BY 1"
    assert filled.sql(changes) == filled.reference(calls)
    with pytest.raises(Exception, match="metadata table"):
        filled.sql("DELETE FROM lake.main.t.files")


def test_two_lakes_join(filled: SparkLake, new_catalog: Callable[..., str]) -> None:
    with spark_lake(filled.spark, new_catalog(name="other"), "other"):
        filled.sql("CREATE TABLE other.main.o AS SELECT k, word FROM lake.main.t WHERE k < 20")
        joined = "SELECT count(*) FROM lake.main.t a JOIN other.main.o b ON a.k = b.k AND a.word = b.word"
        assert filled.sql(joined) == [(19,)]


def test_names_with_quotes_backticks_and_letters_of_other_scripts(lake: SparkLake) -> None:
    name, column = 'a"b`c.d ü', "x'y`z \"ß.é"
    quoted = "`" + name.replace("`", "``") + "`"
    of_column = "`" + column.replace("`", "``") + "`"
    lake.sql(
        f"CREATE TABLE lake.main.{quoted} ({of_column} STRING, k INT) PARTITIONED BY (k)",
        f"INSERT INTO lake.main.{quoted} VALUES ('o''r', 1), ('b`', 2)",
        f"UPDATE lake.main.{quoted} SET {of_column} = concat({of_column}, '!') WHERE k = 2",
    )
    rows = f"SELECT {of_column}, k FROM lake.main.{quoted} WHERE {of_column} LIKE '%' ORDER BY k"
    assert lake.sql(rows) == [("o'r", 1), ("b`!", 2)]
    in_duckdb = '"' + name.replace('"', '""') + '"'
    assert lake.reference(f"FROM {in_duckdb} ORDER BY k") == [("o'r", 1), ("b`!", 2)]


def test_a_transactions_changes_are_read(filled: SparkLake) -> None:
    before = filled.snapshot()
    with filled.session.transaction():
        filled.session.sql("DELETE FROM small WHERE a = 1")
        assert filled.sql("SELECT a FROM lake.main.small") == [(2,)]
        filled.sql("INSERT INTO lake.main.small VALUES (3, 'z')")
        assert filled.sql("SELECT a FROM lake.main.small ORDER BY a") == [(2,), (3,)]
        assert filled.sql(f"SELECT a FROM lake.main.small VERSION AS OF {before} ORDER BY a") == [(1,), (2,)]
    assert filled.snapshot() == before + 1


def test_cached_rows_are_those_of_their_snapshot(filled: SparkLake) -> None:
    cached = filled.spark.table("lake.main.small").cache()
    assert cached.count() == 2
    filled.sql("INSERT INTO lake.main.small VALUES (3, 'z')")
    assert filled.sql("SELECT count(*) FROM lake.main.small") == [(3,)]
    cached.unpersist()


def test_rows_are_fetched_as_arrow_within_a_transaction(filled: SparkLake) -> None:
    """Spark plans these reads in a thread of its own, while this thread holds the session's turn."""
    with filled.session.transaction():
        filled.session.sql("DELETE FROM t WHERE k < 1000")
        frame = filled.spark.table("lake.main.t").select("k")
        assert frame.toArrow().num_rows == len(frame.toPandas()) == len(list(frame.toLocalIterator())) == 1981
    assert filled.sql("SELECT count(*) FROM lake.main.t") == [(1981,)]


def test_a_sessions_sql_reads_views_of_spark_on_a_lake(filled: SparkLake) -> None:
    filled.spark.table("lake.main.small").createOrReplaceTempView("seen")
    assert filled.session.sql("SELECT a FROM seen JOIN small USING (a) ORDER BY a").fetchall() == [(1,), (2,)]
    filled.session.sql("CREATE VIEW v AS SELECT 1 AS one")
    assert filled.sql("SELECT * FROM lake.main.v") == [(1,)]
    filled.session.close()
    with (
        dl.Session(spark=filled.spark) as other,
        pytest.raises(
            dl.SparkError, match="temporary view seen of Spark cannot be read: The session of this catalog is closed"
        ),
    ):
        other.sql("FROM seen")
    filled.spark.catalog.dropTempView("seen")


def test_a_session_with_spark_has_its_lakes_as_catalogs(
    spark: Any, spark_jar: None, new_catalog: Callable[..., str]
) -> None:
    with dl.Session(spark=spark) as session:
        session.attach(new_catalog(), "mine")
        session.sql("CREATE TABLE t AS SELECT 1 AS a")
        assert spark.table("mine.main.t").collect()[0].a == 1
        with pytest.raises(dl.UsageError, match="catalog mine already"):
            dl.spark_catalog(spark, "mine", new_catalog(name="second"))
    with pytest.raises(Exception, match="closed"):
        spark.table("mine.main.t").collect()


def test_without_the_jar_the_catalog_is_refused_and_a_session_works(
    spark: Any, new_catalog: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from ducklake_lab.spark import catalog

    monkeypatch.setattr(catalog, "JAR", tmp_path / "none.jar")
    with pytest.raises(dl.UnsupportedFeatureError, match=r"Spark catalog lake .*JDK"):
        dl.spark_catalog(spark, "lake", new_catalog())
    with dl.Session(spark=spark) as session:
        session.attach(new_catalog(name="second"), "plain")
        assert session.sql("SELECT 1").fetchall() == [(1,)]
