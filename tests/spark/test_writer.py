from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.datasource import register
from ducklake_lab.errors import ConstraintError
from ducklake_lab.model.files import WrittenFile
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.spark import reader, writer
from tests.spark.lakes import ReferenceLake, ordered
from tests.spark.own_session import own_spark  # noqa: F401

pytestmark = pytest.mark.sampled(5)

_NATIVE = (
    "b BOOLEAN, i8 TINYINT, i INTEGER, f FLOAT, d DOUBLE, c DECIMAL(10,2), h DECIMAL(38,2), dt DATE, ti TIME, "
    "ts TIMESTAMP, tz TIMESTAMPTZ, s TIMESTAMP_S, v VARCHAR, bl BLOB, st STRUCT(a INTEGER, b STRUCT(x VARCHAR)), "
    "e VARCHAR"
)
_NATIVE_ROWS = (
    "true, 1, 5, 1.1, 1e20, 1.25, 1.25, '2020-01-01', '01:02:03.5', '2020-01-01', '2020-01-01 00:00:00.5+02', "
    "'2020-01-01', 'é', '\\xAA\\x00b', {'a': 1, 'b': {'x': 'y'}}, ''",
    "false, -1, NULL, '-inf', 1e-7, -1.25, -1.25, '0020-01-01', '00:00:00', '1820-01-01 00:00:00.000001', "
    "'2020-01-01 00:00:00+02', '1820-01-01', 'a', 'a', NULL, 'b'",
)
_EXACT = ", u8 UTINYINT, u64 UBIGINT, u UUID, ms TIMESTAMP_MS, ns TIMESTAMP_NS, l INTEGER[], m MAP(VARCHAR, UUID)"
_EXACT_ROWS = (
    ", 200, 18446744073709551615, '550e8400-e29b-41d4-a716-446655440000', '2020-01-01 00:00:00.123', "
    "'2020-01-01 00:00:00.123456', [1, 2, NULL], MAP {'k': '550e8400-e29b-41d4-a716-446655440000'}",
    ", 0, 0, '450e8400-e29b-41d4-a716-446655440000', '2020-01-01', '2020-01-01', NULL, MAP {'l': NULL}",
)


def _files(plan: ScanPlan) -> list[str]:
    folder = Path(plan.data_path)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _register(lake: ReferenceLake, plan: ScanPlan, files: list[WrittenFile]) -> None:
    """Commits files by hand, as a new snapshot."""
    with duckdb.connect(lake.uri.removeprefix("ducklake:")) as catalog:
        for file in files:
            catalog.execute(
                "INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, now(), schema_version, next_catalog_id, "
                "next_file_id + 1 FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"
            )
            catalog.execute(
                "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative, "
                "file_format, record_count, file_size_bytes, footer_size, row_id_start) SELECT next_file_id - 1, ?, "
                "snapshot_id, ?, true, 'parquet', ?, ?, ?, 0 FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1",
                [plan.table.table_id, file.path, file.record_count, file.file_size_bytes, file.footer_size],
            )


@pytest.mark.parametrize("kind", ["native", "exact"])
def test_files_are_as_the_reference_writes_them(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lake = ReferenceLake(tmp_path)
    more = kind == "exact"
    columns = _NATIVE + _EXACT * more
    rows = ", ".join(f"({row}{extra * more})" for row, extra in zip(_NATIVE_ROWS, _EXACT_ROWS, strict=True))
    lake.run(
        "CALL l.set_option('data_inlining_row_limit', 0)",
        f"CREATE TABLE a({columns})",
        f"CREATE TABLE b({columns})",
        f"INSERT INTO a VALUES {rows}",
    )
    source, target = lake.plan("a"), lake.plan("b")
    written = writer.write(spark, reader.read(spark, source).coalesce(1), target.table, target.data_path)
    assert _files(target) == [file.path for file in written]
    (file,) = written

    with duckdb.connect(lake.uri.removeprefix("ducklake:")) as catalog:
        expected = catalog.execute(
            "SELECT column_id, value_count, null_count, min_value, max_value, contains_nan::BOOLEAN "
            "FROM ducklake_file_column_stats ORDER BY column_id"
        ).fetchall()
    stats = [
        (s.column_id, s.value_count, s.null_count, s.min_value, s.max_value, s.contains_nan) for s in file.column_stats
    ]
    assert stats == expected

    footer = pq.read_metadata(target.data_path + file.path)
    assert (file.record_count, file.footer_size) == (2, footer.serialized_size)
    assert _field_ids(target.data_path + file.path) == _field_ids(source.files[0].path)

    _register(lake, target, written)
    assert ordered(lake.run("FROM b")) == ordered(lake.run("FROM a"))


def _field_ids(path: str) -> list[str]:
    """Field ids and names at all levels."""
    lines = str(pq.ParquetFile(path).schema).splitlines()
    return [" ".join(word for word in line.split() if "field_id" in word) for line in lines]


@pytest.mark.parametrize("kind", ["DOUBLE", "DOUBLE[]"])
def test_nan_is_noticed(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lake = ReferenceLake(tmp_path)
    value = "double('nan')" if kind == "DOUBLE" else "array(1D, double('nan'))"
    lake.run(f"CREATE TABLE t(x {kind})")
    plan = lake.plan("t")
    (file,) = writer.write(spark, spark.sql(f"SELECT {value} AS x").coalesce(1), plan.table, plan.data_path)
    assert file.column_stats[0].contains_nan is True
    _register(lake, plan, [file])
    condition = "x > 5" if kind == "DOUBLE" else "x[2] > 5"
    assert lake.run(f"SELECT count(*) FROM t WHERE {condition}") == [(1,)]


def test_long_texts_are_cut_to_bounds(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run("CREATE TABLE t(s VARCHAR)")
    plan = lake.plan("t")
    frame = spark.sql("SELECT repeat('x', 600) AS s UNION ALL SELECT repeat('é', 300)").coalesce(1)
    (file,) = writer.write(spark, frame, plan.table, plan.data_path)
    low, high = file.column_stats[0].min_value, file.column_stats[0].max_value
    assert low == "x" * 256
    assert high is not None and len(high) <= 256 and high > "é" * 300


def test_rows_keep_their_ids(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run("CREATE TABLE t(i INTEGER)")
    plan = lake.plan("t")
    frame = spark.sql("SELECT CAST(id AS INT) AS i, id + 70 AS _ducklake_internal_row_id FROM range(3)").coalesce(1)
    (file,) = writer.write(spark, frame, plan.table, plan.data_path)
    assert file.has_row_ids and len(file.column_stats) == 1
    _register(lake, plan, [file])
    assert sorted(lake.run("SELECT rowid, i FROM t")) == [(70, 0), (71, 1), (72, 2)]


def test_partition_values_and_folders(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(
        "CREATE TABLE t(d DATE, s VARCHAR, f DOUBLE, b BOOLEAN, n INTEGER)",
        "ALTER TABLE t SET PARTITIONED BY (year(d), month(d), s, f, b)",
    )
    plan = lake.plan("t")
    frame = spark.sql(
        "SELECT * FROM VALUES (DATE '2020-01-02', 'a/%=ü', 1e20D, true, 1), (DATE '2020-01-09', 'a/%=ü', 1e20D, true, 2),"
        " (NULL, '', 1D, false, 3), (NULL, NULL, NULL, NULL, 4) AS v(d, s, f, b, n)"
    )
    written = writer.write(spark, frame, plan.table, plan.data_path)
    assert {file.partition_values: file.record_count for file in written} == {
        ("2020", "1", "a/%=ü", "1e+20", "true"): 2,
        (None, None, "", "1.0", "false"): 1,
        (None, None, None, None, None): 1,
    }
    assert _files(plan) == sorted(file.path for file in written)
    folders = {file.path.rpartition("/")[0] for file in written}
    assert "year=2020/month=1/s=a%2F%25%3D%C3%BC/f=1e%2B20/b=true" in folders
    # the files keep the columns they are partitioned by
    rows = [row for file in written for row in pq.read_table(plan.data_path + file.path, partitioning=None).to_pylist()]
    assert sorted(row["n"] for row in rows if row["s"] is not None) == [1, 2, 3]


@pytest.mark.parametrize("kind", ["INTEGER", "UINTEGER"])
def test_no_rows_make_no_files(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(f"CREATE TABLE t(i {kind})")
    plan = lake.plan("t")
    assert writer.write(spark, spark.sql("SELECT 1 AS i WHERE false"), plan.table, plan.data_path) == []
    assert _files(plan) == []


@pytest.mark.parametrize(
    "query", ["SELECT IF(id = 7, NULL, id) AS i FROM range(10)", "SELECT 1 / (id - 7) FROM range(10)"]
)
@pytest.mark.parametrize("kind", ["BIGINT", "UBIGINT"])
def test_a_failure_leaves_nothing(spark: SparkSession, tmp_path: Path, query: str, kind: str) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(f"CREATE TABLE t(i {kind} NOT NULL)")
    plan = lake.plan("t")
    with pytest.raises(Exception, match=r".") as caught:
        writer.write(spark, spark.sql(query), plan.table, plan.data_path)
    if "IF" in query:
        assert isinstance(caught.value, ConstraintError)
        assert "t.i is NOT NULL" in str(caught.value)
    assert not Path(plan.data_path).exists() or list(Path(plan.data_path).iterdir()) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["INTEGER", "INTERVAL", "VARIANT", "STRUCT(a INTEGER)", "INTEGER[]"])
def test_nulls_are_noticed_that_no_file_counts(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    value = {"INTEGER": "1", "INTERVAL": "'1 day'", "VARIANT": "42", "INTEGER[]": "[1]"}.get(kind, "{'a': 1}")
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data", alias="lake", spark=spark, engine="spark"
    ) as session:
        session.sql(f"CREATE TABLE source (i INTEGER, x {kind}); CREATE TABLE t (i INTEGER, x {kind} NOT NULL)")
        rows = f"SELECT i, CASE WHEN i <> 7 THEN CAST({value} AS {kind}) END FROM range(50) r(i)"
        session.sql(f"INSERT INTO source {rows}", engine="duckdb")
        register(spark)
        frame = session.table("source").spark()
        by_source = frame.write.format("ducklake").mode("append")
        for write in (
            lambda: session.sql("INSERT INTO t FROM source"),
            lambda: session.write(frame, "t"),
            lambda: by_source.option("table", "t").save(f"ducklake:{tmp_path}/lake.ducklake"),
            lambda: session.sql("ALTER TABLE source ALTER x SET NOT NULL"),
        ):
            with pytest.raises(Exception, match=r"NOT NULL|Cannot SET") as caught:
                write()
            assert isinstance(caught.value, ConstraintError) or "t.x is NOT NULL" in str(caught.value)
        assert session.sql("SELECT count(*) FROM t", engine="duckdb").fetchall() == [(0,)]
        session.sql("INSERT INTO t FROM source WHERE i <> 7")
        assert session.sql("SELECT count(x) FROM t", engine="duckdb").fetchall() == [(49,)]
