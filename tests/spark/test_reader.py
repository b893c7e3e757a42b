from __future__ import annotations

import contextlib
import datetime
import io
import os
import uuid
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.errors import DataFileError
from ducklake_lab.scan.plan import DeletedRows
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.spark import reader
from ducklake_lab.spark.errors import translate_error
from tests.old_lakes.make import unpack
from tests.reference import connect
from tests.spark.lakes import ReferenceLake, ordered
from tests.spark.own_session import own_spark  # noqa: F401

pytestmark = pytest.mark.sampled(5)

_ALL_TYPES = (
    "b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INTEGER, i64 BIGINT, u8 UTINYINT, u16 USMALLINT, u32 UINTEGER, "
    "u64 UBIGINT, f FLOAT, d DOUBLE, c DECIMAL(20,3), dt DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMPTZ, "
    "s TIMESTAMP_S, ms TIMESTAMP_MS, ns TIMESTAMP_NS, v VARCHAR, j JSON, bl BLOB, u UUID, "
    "st STRUCT(a INTEGER, u UUID), l UUID[], m MAP(VARCHAR, TIMESTAMP_NS)"
)
_VALUES = (
    "true, -1, -2, -3, -4, 255, 65535, 4294967295, 18446744073709551615, 1.5, 'nan', 0.125, '2020-02-29', "
    "'12:00:01.5', '1820-01-01 00:00:00.000001', '2020-01-01 00:00:00+02', '2020-01-01 01:02:03', "
    "'2020-01-01 01:02:03.123', '1960-01-01 01:02:03.123456', 'é', '{\"a\": 1}', '\\xAA\\x00b', "
    "'550e8400-e29b-41d4-a716-446655440000', {'a': 1, 'u': '550e8400-e29b-41d4-a716-446655440000'}, "
    "['550e8400-e29b-41d4-a716-446655440000', NULL], MAP {'k': TIMESTAMP_NS '2020-01-01 01:02:03.123456'}"
)


def _plain(value: object) -> object:
    """A value of Spark's or the reference's in a form that both share."""
    if isinstance(value, Row):
        return _plain(value.asDict())
    if isinstance(value, dict):
        return [(key, _plain(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)
    return value


def _rows(frame: DataFrame) -> list[str]:
    return ordered([_plain(tuple(row)) for row in frame.collect()])


def _expected(rows: list[tuple[object, ...]]) -> list[str]:
    return ordered([_plain(row) for row in rows])


@pytest.mark.anywhere
def test_every_type_has_the_reference_s_values(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    nulls = ", ".join(["NULL"] * 26)
    lake.run(
        "CALL l.set_option('data_inlining_row_limit', 0)",
        f"CREATE TABLE t({_ALL_TYPES})",
        f"INSERT INTO t VALUES ({_VALUES}), ({nulls})",
    )
    assert _rows(reader.read(spark, lake.plan("t"))) == _expected(lake.run("FROM t"))


@pytest.mark.anywhere
def test_every_snapshot_of_a_table_that_changes(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(
        "CREATE TABLE t(i INTEGER, s VARCHAR DEFAULT 'x', d DOUBLE, st STRUCT(a INTEGER, b VARCHAR))",
        "INSERT INTO t SELECT i, 'a' || i, i, {'a': i, 'b': 'x'} FROM range(100) r(i)",
        "INSERT INTO t(i, d) VALUES (1000, 'inf')",
        "DELETE FROM t WHERE i BETWEEN 20 AND 50",
        "DELETE FROM t WHERE i BETWEEN 60 AND 65",
        "UPDATE t SET s = 'upd' WHERE i BETWEEN 5 AND 30",
        "UPDATE t SET s = 'upd' WHERE i = 99",
        "DELETE FROM t WHERE i >= 99",
        "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7",
        "ALTER TABLE t ADD COLUMN bl BLOB DEFAULT '\\xAA\\x01'",
        "INSERT INTO t(i, n) SELECT i, NULL FROM range(200, 220) r(i)",
        "ALTER TABLE t RENAME COLUMN s TO s2",
        "ALTER TABLE t ALTER i TYPE BIGINT",
        "ALTER TABLE t DROP COLUMN d",
        "ALTER TABLE t ADD COLUMN d VARCHAR",
        "ALTER TABLE t ADD COLUMN st.z INTEGER",
        "ALTER TABLE t RENAME COLUMN st.a TO aa",
        "INSERT INTO t(i, d, n) SELECT i * 10000000000, 'd' || i, i FROM range(200, 220) r(i)",
        "ALTER TABLE t SET PARTITIONED BY (n)",
        "INSERT INTO t(i, n) SELECT i, i % 2 FROM range(300, 330) r(i)",
        "DELETE FROM t WHERE i % 7 = 0",
    )
    last = lake.run("SELECT max(snapshot_id) FROM l.snapshots()")[0][0]
    assert isinstance(last, int)
    for at in range(1, last + 1):
        if at in (2, 3, 4, 5, 8, 9, 13, 17, 18, 21, last):
            frame = reader.read(spark, lake.plan("t", at), virtual=True)
            names = [name for name in frame.columns if not name.startswith("_ducklake")]
            shown = frame.select(*names, "_ducklake_row_id", "_ducklake_snapshot_id")
            expected = lake.run(f"SELECT *, rowid, snapshot_id FROM t AT (VERSION => {at})")
            assert _rows(shown) == _expected(expected), at


@pytest.mark.anywhere
def test_a_column_that_took_an_old_name_is_not_skipped_by_the_old_statistics(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(
        "CREATE TABLE t(a INTEGER, b INTEGER)",
        "INSERT INTO t SELECT i, 1000 - i FROM range(1000) r(i)",
        "ALTER TABLE t RENAME COLUMN a TO c",
        "ALTER TABLE t RENAME COLUMN b TO a",
        "ALTER TABLE t RENAME COLUMN c TO b",
    )
    # in the file, `a` holds what is `b` now, and has no value above 999
    assert reader.read(spark, lake.plan("t")).where("a = 1000").count() == 1


def _explained(frame: DataFrame) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        frame.explain()
    return text.getvalue()


def test_filters_reach_the_file_where_names_are_safe(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run("CREATE TABLE t(a INTEGER)", "INSERT INTO t FROM range(100)")
    frame = reader.read(spark, lake.plan("t")).where("a = 5")
    assert "PushedFilters: [IsNotNull(a), EqualTo(a,5)]" in _explained(frame)


def test_without_deletes_nothing_is_added_to_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run("CREATE TABLE t(a INTEGER, s VARCHAR)", "INSERT INTO t SELECT i, 'x' FROM range(100) r(i)")
    lines = _explained(reader.read(spark, lake.plan("t"))).splitlines()[1:]
    operators = [line.partition("[")[0].strip(" *()0123456789:+-") for line in lines if line.strip()]
    assert operators == ["ColumnarToRow", "FileScan parquet"]


@pytest.mark.anywhere
def test_deletes_meet_their_file_by_its_size_or_by_its_path(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run("CREATE TABLE t(a INTEGER)", *(f"INSERT INTO t FROM range({n}, {n + 50})" for n in (0, 50, 3000)))
    lake.run("INSERT INTO t FROM range(9000, 9900)", "DELETE FROM t WHERE a % 50 < 30 AND a <> 9010")
    plan = lake.plan("t")
    first, *_, large = plan.files
    assert reader._sizes(plan.files) is None, "some files are of the same size"
    assert reader._sizes([first, large]) is not None
    kept = [a for a in (*range(50), *range(9000, 9900)) if a % 50 >= 30 or a == 9010]
    others = [a for a in (*range(50, 100), *range(3000, 3050)) if a % 50 >= 30]
    for files, expected in ((plan.files, [*kept, *others]), ((first, large), kept)):
        rows = reader.read(spark, replace(plan, files=tuple(files))).collect()
        assert sorted(row["a"] for row in rows) == sorted(expected)


@pytest.mark.anywhere
def test_deletes_of_few_files_cost_no_join(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(
        "CREATE TABLE t(a INTEGER, s VARCHAR)", *(f"INSERT INTO t SELECT i, i FROM range({n}) r(i)" for n in (70, 400))
    )
    # of the first file nothing is deleted, of the second the last word has only zeros
    lake.run("ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 7", "INSERT INTO t SELECT i, i, i FROM range(1000, 1900) r(i)")
    lake.run("DELETE FROM t WHERE a BETWEEN 63 AND 65 OR a IN (100, 191, 192) OR a % 100 = 1 AND a >= 1000")
    plan, expected = lake.plan("t"), lake.run("FROM t")
    few = reader.read(spark, plan)
    assert "Join" not in _explained(few) and "Subquery" in _explained(few)
    assert _rows(few) == _expected(expected)
    assert few.where("a = 1000 OR s = '100'").count() == 1
    monkeypatch.setattr(reader, "_FEW_FILES", 0)
    many = reader.read(spark, plan)
    assert "BroadcastHashJoin" in _explained(many)
    assert _rows(many) == _expected(expected)


@pytest.mark.anywhere
def test_an_empty_table_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run("CREATE TABLE t(a INTEGER, s VARCHAR)")
    frame = reader.read(spark, lake.plan("t"), virtual=True)
    assert frame.columns[:2] == ["a", "s"] and len(frame.columns) == 6
    assert frame.collect() == []


@pytest.mark.anywhere
def test_rows_deleted_between_two_snapshots(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(
        "CREATE TABLE t(i INTEGER)",
        "INSERT INTO t FROM range(1000)",
        "DELETE FROM t WHERE i < 30",
        "DELETE FROM t WHERE i < 60 OR i = 700",
        "DELETE FROM t WHERE i = 500",
    )
    before, after = lake.plan("t", 3), lake.plan("t", 5)
    deleted = [DeletedRows(after.files[0], before.files[0], 9)]
    frame = reader.read_deleted(spark, after, deleted)
    rows = sorted(row["i"] for row in frame.collect())
    assert rows == [*range(30, 60), 500, 700]
    assert {row["_ducklake_snapshot_id"] for row in frame.collect()} == {9}
    assert ordered(frame.toArrow().to_pylist()) == ordered(local_reader.read_deleted(after, deleted).to_pylist())


@pytest.mark.anywhere
def test_the_local_reader_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(
        "CREATE TABLE t(i INTEGER, v VARCHAR, d DATE)",
        "INSERT INTO t SELECT i, 'v' || i, DATE '2020-01-01' + i::INTEGER FROM range(500) r(i)",
        "DELETE FROM t WHERE i % 9 = 0",
        "INSERT INTO t VALUES (1000, 'inlined', NULL)",
        "DELETE FROM t WHERE i = 1",
        "UPDATE t SET v = 'new' WHERE i BETWEEN 100 AND 140",
    )
    plan = lake.plan("t")
    theirs = local_reader.read(plan, virtual=True, located=True).to_pylist()
    assert len(theirs) == 444
    ours = reader.read(spark, plan, virtual=True, located=True)
    as_number = ours.withColumn("_ducklake_file_index", ours["_ducklake_file_index"].cast("bigint"))
    assert ordered(as_number.toArrow().to_pylist()) == ordered(theirs)


@pytest.mark.anywhere
def test_a_missing_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run("CREATE TABLE t(i INTEGER)", "INSERT INTO t FROM range(100)", "DELETE FROM t WHERE i < 50")
    plan = lake.plan("t")
    file = plan.files[0]
    assert file.delete_path is not None
    deletions = Path(file.delete_path).rename(f"{file.delete_path}.away")
    with pytest.raises(DataFileError, match=Path(file.delete_path).name):
        reader.read(spark, plan)
    deletions.rename(file.delete_path)
    frame = reader.read(spark, plan)
    Path(file.path).rename(f"{file.path}.away")
    for late in (frame.collect, lambda: reader.read(spark, plan).collect()):
        with pytest.raises(Exception, match=r".") as caught:
            late()
        error = translate_error(caught.value)
        assert isinstance(error, DataFileError)
        assert Path(file.path).name in str(error) and "\n" not in str(error)


def test_a_pipe_is_refused_at_once(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run("CREATE TABLE t(i INTEGER)", "INSERT INTO t FROM range(100)")
    plan = lake.plan("t")
    Path(plan.files[0].path).unlink()
    os.mkfifo(plan.files[0].path)
    with pytest.raises(DataFileError, match=f"{Path(plan.files[0].path).name} is no regular file"):
        reader.read(spark, plan)


@pytest.mark.anywhere
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT 1 / (id - 1) FROM range(3)", "Division by zero."),
        ("SELECT CAST(concat('x', id) AS INT) FROM range(3)", "A value cannot be cast: 'x"),
        ("SELECT CAST(id * 1000 AS TINYINT) FROM range(3)", "A value does not fit its type"),
        ("SELECT raise_error(concat('too long: ', id)) FROM range(1)", "too long: 0"),
    ],
)
def test_errors_of_values_are_one_line(spark: SparkSession, query: str, text: str) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        spark.sql(query).collect()
    message = str(translate_error(caught.value))
    assert message.startswith(text) and "\n" not in message and "SQLSTATE" not in message


@pytest.mark.anywhere
def test_snapshots_of_rows_are_the_file_s_own_where_the_catalog_lost_them(spark: SparkSession, tmp_path: Path) -> None:
    unpack("0.3", "duckdb", tmp_path)
    uri = f"ducklake:{tmp_path}/duckdb.catalog"
    with connect() as reference:
        reference.execute(f"ATTACH '{uri}' AS lake (AUTOMATIC_MIGRATION true); DETACH lake")
    lake = open_lake(parse_uri(uri), "lake")
    with lake.connect() as connection:
        state = lake.state(connection, lake.snapshot(connection, 12))
        plan = plan_scan(lake, connection, state, state.table("main", "numbers"))
    expected = {8: 3, 9: 1, 10: 20, 11: 15}
    ours = reader.read(spark, plan, virtual=True).groupBy("_ducklake_snapshot_id").count().collect()
    assert {row[0]: row[1] for row in ours} == expected
    theirs = local_reader.read(plan, virtual=True).group_by("_ducklake_snapshot_id").aggregate([([], "count_all")])
    assert {row["_ducklake_snapshot_id"]: row["count_all"] for row in theirs.to_pylist()} == expected
