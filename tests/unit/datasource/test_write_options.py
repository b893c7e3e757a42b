"""Options of writes by `format("ducklake")`; the reference reads what they wrote."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from ducklake_lab.errors import (
    BindError,
    ConstraintError,
    DuckLakeError,
    EntryNotFoundError,
    TransactionConflictError,
    UnsupportedFeatureError,
    UsageError,
)
from tests.unit.datasource.lakes import SourceLake, batches

JANUARY = [(i, date(2026, 1, 1 + i)) for i in range(4)]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_table_that_is_not_there_is_made(tmp_path: Path, mode: str) -> None:
    lake = SourceLake.new(tmp_path)
    before = lake.snapshot()
    lake.write("id bigint, day date", JANUARY, mode, partitionBy="day")
    assert lake.read() == JANUARY
    assert lake.snapshot() == before + 1
    assert lake.files() == 4
    assert lake.read("SELECT column_name, column_type FROM (DESCRIBE l.t)") == [("id", "BIGINT"), ("day", "DATE")]
    with pytest.raises(EntryNotFoundError):
        lake.write("id bigint", [(1,)], table="nowhere.t")


def test_names_of_new_tables_and_columns(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, "CREATE VIEW v AS SELECT 1 AS i")
    fields = T.StructType([T.StructField('a "b`, c', T.LongType()), T.StructField("s", T.StringType())])
    lake.write(fields, [(1, "x"), (2, "y")], table="main.a b/ä", partitionBy='`a "b``, c`, bucket(4, s)')
    assert lake.read('FROM l."a b/ä" ORDER BY ALL') == [(1, "x"), (2, "y")]
    with pytest.raises(DuckLakeError, match=r"is a view|a view main.v"):
        lake.write("i bigint", [(1,)], table="v")
    with pytest.raises(DuckLakeError, match="two columns named"):
        lake.write("i bigint, I bigint", [(1, 2)])
    with pytest.raises(UsageError, match="partitionBy is a list"):
        lake.write("i bigint", [(1,)], partitionBy="bucket(4, i")
    with pytest.raises(BindError, match='does not have a column with name "j"'):
        lake.write("i bigint", [(1,)], partitionBy="j")


def test_two_writers_make_one_table(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path)
    first, second = (lake.writer("i bigint", "append") for _ in range(2))
    for number, writer in enumerate((first, second)):
        writer.commit([writer.write(iter(batches("i bigint", [(number,)])))])
    assert lake.read() == [(0,), (1,)]
    third = lake.writer("i bigint", "append", table="u")
    lake.sql("CREATE TABLE u (i BIGINT, j BIGINT)")
    message = third.write(iter(batches("i bigint", [(7,)])))
    with pytest.raises(TransactionConflictError, match=r"main\.u was altered"):
        third.commit([message])


def test_partition_keys_of_a_table_that_is_there(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, 'CREATE TABLE t (id BIGINT, "at" TIMESTAMP)')
    lake.sql("ALTER TABLE t SET PARTITIONED BY (year(at), month(at))")
    rows = [(1, datetime(2026, 1, 5)), (2, datetime(2026, 2, 5))]
    lake.write("id bigint, at timestamp", rows, partitionBy="months(at)")
    assert lake.read() == rows
    with pytest.raises(UsageError, match="other partition keys"):
        lake.write("id bigint, at timestamp", rows, partitionBy="days(at)")


def test_merge_schema_adds_columns_and_fills_others(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (id INTEGER, name VARCHAR DEFAULT 'none', k INTEGER)")
    lake.sql("INSERT INTO t VALUES (1, 'a', 1)")
    with pytest.raises(BindError, match=r'no column "extra".*mergeSchema'):
        lake.write("id int, name string, k int, extra double", [(2, "b", 2, 0.5)])
    with pytest.raises(BindError, match=r'no column "name".*mergeSchema'):
        lake.write("id int, k int", [(2, 2)])
    before = lake.snapshot()
    lake.write("extra double, ID bigint", [(0.5, 2), (None, 2**40)], mergeSchema="true")
    assert lake.snapshot() == before + 1
    assert lake.read() == [(1, "a", 1, None), (2, "none", None, 0.5), (2**40, "none", None, None)]
    assert lake.read("SELECT typeof(id), typeof(extra) FROM l.t LIMIT 1") == [("BIGINT", "DOUBLE")]
    # nothing is narrowed
    lake.write("id int, name string, k int, extra double", [(3, "c", 3, 1.5)], mergeSchema="true")
    assert lake.read("SELECT typeof(id), count(*) FROM l.t GROUP BY ALL") == [("BIGINT", 4)]
    assert lake.read("FROM l.t AT (VERSION => 2)") == [(1, "a", 1)]


def test_what_merge_schema_cannot(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, 'CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER), "at" TIMESTAMP DEFAULT now())')
    struct = T.StructType([T.StructField("a", T.IntegerType()), T.StructField("b", T.IntegerType())])
    fields = T.StructType([T.StructField("id", T.IntegerType()), T.StructField("s", struct)])
    with pytest.raises(UnsupportedFeatureError, match=r"mergeSchema of s .* fields that the table lacks"):
        lake.writer(fields, "append", mergeSchema="true")
    with pytest.raises(UnsupportedFeatureError, match="default of at is an expression"):
        lake.writer("id int", "append", mergeSchema="true")


def test_columns_that_two_writers_add_conflict(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (i BIGINT)")
    writer = lake.writer("i bigint, a string", "append", mergeSchema="true")
    message = writer.write(iter(batches("i bigint, a string", [(1, "x")])))
    lake.sql("ALTER TABLE t ADD COLUMN b VARCHAR")
    with pytest.raises(TransactionConflictError, match="was altered"):
        writer.commit([message])
    assert lake.files() == 0
    lake.write("i bigint, a string", [(1, "x")], mergeSchema="true")
    assert lake.read() == [(1, None, "x")]


def test_overwrite_schema_replaces_the_columns(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (id BIGINT, day DATE)")
    lake.sql("ALTER TABLE t SET PARTITIONED BY (day)", "INSERT INTO t VALUES (1, DATE '2026-01-01')")
    before = lake.snapshot()
    with pytest.raises(UsageError, match=r"needs \.mode"):
        lake.write("id string", [("a",)], overwriteSchema="true")
    with pytest.raises(UsageError, match="partitioned by day, which the rows lack"):
        lake.write("id string", [("a",)], "overwrite", overwriteSchema="true")
    lake.write("day date, id string", [(date(2026, 2, 1), "a")], "overwrite", overwriteSchema="true")
    assert lake.snapshot() == before + 1
    assert lake.read() == [(date(2026, 2, 1), "a")]
    assert lake.read(f"FROM l.t AT (VERSION => {before})") == [(1, date(2026, 1, 1))]
    assert "day=2026-02-01" in str(next(iter(lake.folder.rglob("day=*/*.parquet"))))
    lake.write("id string, n int", [("b", 1)], "overwrite", overwriteSchema="true", partitionBy="bucket(2, id)")
    assert lake.read() == [("b", 1)]


@pytest.mark.parametrize("inlined", [0, 100])
def test_replace_where_replaces_matching_rows(tmp_path: Path, inlined: int) -> None:
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (id BIGINT, day DATE)")
    lake.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    lake.sql("INSERT INTO t SELECT i, DATE '2026-01-01' + (i % 4)::INTEGER FROM range(40) r(i)")
    lake.sql(f"CALL lake.set_option('data_inlining_row_limit', {inlined})")
    lake.sql("INSERT INTO t VALUES (100, DATE '2026-01-02'), (101, NULL), (102, DATE '2026-01-04')")
    kept = [row for row in lake.read() if row[1] is None or row[1] not in (date(2026, 1, 2), date(2026, 1, 3))]
    before = lake.snapshot()
    where = "day BETWEEN '2026-01-02' AND '2026-01-03'"
    new = [(1000, date(2026, 1, 2)), (1001, date(2026, 1, 3))]
    lake.write("id bigint, day date", new, "overwrite", replaceWhere=where)
    assert lake.snapshot() == before + 1
    assert lake.read() == sorted([*kept, *new], key=lambda row: row[0])
    assert len(lake.read(f"FROM l.t AT (VERSION => {before})")) == 43
    # a row that the condition is not true for
    files = lake.files()
    writer = lake.writer("id bigint, day date", "overwrite", replaceWhere=where)
    with pytest.raises(ConstraintError, match="does not meet replaceWhere"):
        writer.write(iter(batches("id bigint, day date", [(1, None)])))
    assert lake.files() == files
    assert lake.snapshot() == before + 1


@pytest.mark.parametrize(
    "where", ["id % 2 = 0", "upper(name) = 'A'", "id = name", "nme = 'a'", 'name = "a"', "id = '1'", "id ="]
)
def test_conditions_that_spark_may_read_otherwise_are_refused(tmp_path: Path, where: str) -> None:
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (id BIGINT, name VARCHAR)")
    with pytest.raises(UnsupportedFeatureError, match="compare columns with constants"):
        lake.writer("id bigint, name string", "overwrite", replaceWhere=where)


def test_names_that_users_of_iceberg_know(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (id BIGINT)")
    options = {"merge-schema": "true", "compression-codec": "gzip"}
    lake.write("id bigint, n int", [(1, 2)], **options)
    assert lake.read() == [(1, 2)]
    (file,) = lake.folder.rglob("*.parquet")
    assert pq.read_metadata(file).row_group(0).column(0).compression == "GZIP"


def test_options_that_exclude_each_other(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (id BIGINT)")
    for options, message in (
        ({"replaceWhere": "id = 1", "overwriteSchema": "true"}, "exclude each other"),
        ({"replaceWhere": "id = 1", "partitionOverwriteMode": "dynamic"}, "exclude each other"),
        ({"replaceWhere": "id = 1", "saveMode": "x"}, 'no option "saveMode"'),
        ({"mergeShema": "true"}, "Did you mean mergeSchema"),
        ({"MERGESCHEMA": "maybe"}, "is true or false"),
        ({"optimizeWrite": "true"}, "does not support the option optimizeWrite"),
    ):
        with pytest.raises(DuckLakeError, match=message):
            lake.writer("id bigint", "overwrite", **options)
    with pytest.raises(UsageError, match=r'replaceWhere needs \.mode\("overwrite"\)'):
        lake.writer("id bigint", "append", replaceWhere="id = 1")
