"""ALTER TABLE on every kind of catalog: what rows look like afterwards, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        yield session
        assert not session.spark_started


def rows(session: dl.Session, sql: str) -> list[tuple[Any, ...]]:
    return session.sql(sql).fetchall()


@pytest.mark.slow
def test_rows_follow_the_fields_of_nested_columns(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE t (s STRUCT(a INTEGER, b VARCHAR), l STRUCT(x INTEGER)[], m MAP(VARCHAR, STRUCT(y INTEGER)))"
    )
    session.sql(
        "INSERT INTO t VALUES ({'a': 1, 'b': 'x'}, [{'x': 1}, NULL], MAP {'k': {'y': 2}, 'n': NULL}), (NULL, NULL, NULL)"
    )
    before = session.current_snapshot().snapshot_id
    session.sql("ALTER TABLE t ADD COLUMN s.c INTEGER DEFAULT 7; ALTER TABLE t ADD COLUMN l.element.z VARCHAR")
    session.sql("ALTER TABLE t ADD COLUMN m.value.w DOUBLE; ALTER TABLE t RENAME s.a TO aa; ALTER TABLE t DROP s.b")
    session.sql("ALTER TABLE t ALTER s TYPE STRUCT(aa BIGINT, c INTEGER, d STRUCT(e VARCHAR))")
    assert rows(session, "FROM t") == [
        (
            {"aa": 1, "c": 7, "d": None},
            [{"x": 1, "z": None}, None],
            {"k": {"y": 2, "w": None}, "n": None},
        ),
        (None, None, None),
    ]
    assert rows(session, f"SELECT s FROM t AT (VERSION => {before})") == [({"a": 1, "b": "x"},), (None,)]
    session.sql("ALTER TABLE t DROP l.element.x")
    assert rows(session, "SELECT l FROM t WHERE l IS NOT NULL") == [([{"z": None}, None],)]


def test_a_field_of_the_same_name_is_another_field(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (s STRUCT(a INTEGER, b INTEGER)[]); INSERT INTO t VALUES ([{'a': 1, 'b': 2}])")
    session.sql("ALTER TABLE t DROP s.element.a; ALTER TABLE t ADD COLUMN s.element.a INTEGER")
    assert rows(session, "FROM t") == [([{"b": 2, "a": None}],)]


@pytest.mark.slow
def test_values_are_read_in_the_wider_type(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i TINYINT, f FLOAT, d DECIMAL(4,1), day DATE)")
    session.sql("INSERT INTO t VALUES (1, 1.5, 2.5, DATE '2020-01-02')")
    session.sql(
        "ALTER TABLE t ALTER i TYPE BIGINT; ALTER TABLE t ALTER f TYPE DOUBLE; ALTER TABLE t ALTER d TYPE DECIMAL(10,2)"
    )
    session.sql(
        "ALTER TABLE t ALTER day TYPE TIMESTAMP; INSERT INTO t VALUES (10000000000, 1e300, 12345.67, '2020-01-03 04:05:06')"
    )
    assert rows(session, "FROM t ORDER BY i") == [
        (1, 1.5, Decimal("2.50"), datetime(2020, 1, 2)),
        (10000000000, 1e300, Decimal("12345.67"), datetime(2020, 1, 3, 4, 5, 6)),
    ]


def test_a_default_is_for_rows_to_come(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, d DATE DEFAULT DATE '2020-01-01' + 1, n INTEGER DEFAULT 1 + 1)")
    session.sql("INSERT INTO t (i) VALUES (1); ALTER TABLE t ALTER n SET DEFAULT 5; INSERT INTO t (i) VALUES (2)")
    session.sql("ALTER TABLE t ALTER n DROP DEFAULT; INSERT INTO t (i) VALUES (3)")
    day = date(2020, 1, 2)
    assert rows(session, "FROM t ORDER BY i") == [(1, day, 2), (2, day, 5), (3, day, None)]


#: Defaults that DuckDB refuses, and its reason.
_NO_DEFAULTS = {
    "z": "column names",
    "1 + t.z": "column names",
    "(SELECT 1)": "subqueries",
    "EXISTS (SELECT 1)": "subqueries",
    "sum(1)": "aggregates",
    "row_number() OVER ()": "window functions",
    "no_function(1)": "no_function",
}


@pytest.mark.parametrize("default", _NO_DEFAULTS)
def test_a_default_is_a_value(session: dl.Session, default: str) -> None:
    session.sql("CREATE TABLE t (z VARCHAR)")
    for text in (
        f"CREATE TABLE q (z VARCHAR, d VARCHAR DEFAULT {default})",
        f"ALTER TABLE t ADD COLUMN d VARCHAR DEFAULT {default}",
        f"ALTER TABLE t ALTER z SET DEFAULT {default}",
    ):
        with pytest.raises(dl.BindError, match=_NO_DEFAULTS[default]):
            session.sql(text)
    assert session.sql("DESCRIBE t").fetchall() == [("z", "VARCHAR", "YES", None, "NULL", None)]


def test_a_default_of_now_is_the_same_for_a_statement(session: dl.Session) -> None:
    session.sql('CREATE TABLE t (i INTEGER, "at" TIMESTAMPTZ DEFAULT now(), u UUID DEFAULT uuid())')
    session.sql("INSERT INTO t (i) VALUES (1), (2), (3)")
    assert rows(session, "SELECT count(DISTINCT t.at), count(DISTINCT u), bool_and(t.at <= now()) FROM t") == [
        (1, 3, True)
    ]


def test_not_null_is_checked_against_the_rows_there_are(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, j INTEGER); INSERT INTO t VALUES (1, NULL)")
    session.sql("ALTER TABLE t ALTER i SET NOT NULL")
    with pytest.raises(dl.ConstraintError, match="NULL values"):
        session.sql("ALTER TABLE t ALTER j SET NOT NULL")
    with pytest.raises(dl.ConstraintError, match="NOT NULL"):
        session.sql("INSERT INTO t VALUES (NULL, 1)")
    session.sql("DELETE FROM t; ALTER TABLE t ALTER j SET NOT NULL; ALTER TABLE t ALTER i DROP NOT NULL")
    session.sql("INSERT INTO t VALUES (NULL, 1)")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE t ALTER i TYPE SMALLINT", "only widening type promotions are allowed"),
        ("ALTER TABLE t ALTER i TYPE VARCHAR", "from INTEGER to VARCHAR"),
        ("ALTER TABLE t ALTER i TYPE BIGINT USING i + 1", "USING an expression is not supported"),
        ("ALTER TABLE t ALTER s TYPE INTEGER", "cannot be changed"),
        ("ALTER TABLE t ALTER s TYPE STRUCT(a SMALLINT)", "Cannot change type of column a"),
        ("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 1 + 1", "must be a literal"),
        ("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 'x'", "'x' is no INTEGER"),
        ("ALTER TABLE t ADD COLUMN i.x INTEGER", "only be added to structs"),
        ("ALTER TABLE t ADD COLUMN s.a INTEGER", 'has a field "a" already'),
        ("ALTER TABLE t ADD COLUMN nope.a INTEGER", 'column with name "nope"'),
        ("ALTER TABLE t DROP s.nope", 'no field "nope"'),
        ("ALTER TABLE t DROP s.a", "only field"),
        ("ALTER TABLE t RENAME s.nope TO x", 'no field "nope"'),
        ("ALTER TABLE t RENAME i TO s", 'a column "s" already'),
        ("ALTER TABLE t ALTER s SET DEFAULT {'a': 1}", "A default value for a column of type STRUCT"),
        ("ALTER TABLE t ALTER i DROP NOT NULL", "has no NOT NULL constraint"),
        ("ALTER TABLE t SET SORTED BY (nope)", "no column nope to be sorted by"),
        ("ALTER TABLE t SET SORTED BY (t.i)", "without qualifiers"),
        ("ALTER TABLE t ALTER i SET", "expected SET DEFAULT"),
    ],
)
def test_mistakes_change_nothing(session: dl.Session, statement: str, message: str) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s STRUCT(a INTEGER))")
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.DuckLakeError, match=message):
        session.sql(statement)
    assert session.current_snapshot().snapshot_id == before


def test_a_column_that_rows_are_sorted_by_stays(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); ALTER TABLE t SET SORTED BY (lower(s), i DESC NULLS FIRST)")
    session.sql('ALTER TABLE t RENAME s TO "a name"')
    with pytest.raises(dl.BindError, match="sorted by a name"):
        session.sql('ALTER TABLE t DROP "a name"')
    session.sql('ALTER TABLE t RESET SORTED BY; ALTER TABLE t DROP "a name"')
    assert rows(session, "DESCRIBE t")[0][0] == "i"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "values", "constant"),
    [
        ("FLOAT", "DOUBLE", "0.1), (0.9", "0.1::DOUBLE"),
        ("INTEGER", "DOUBLE", "1), (2), (3", "1.5::DOUBLE"),
        ("INTEGER", "DECIMAL(12, 2)", "1), (2), (3", "1.5"),
        ("DATE", "TIMESTAMP", "'2020-01-01'), ('2020-01-02'", "TIMESTAMP '2020-01-01 12:00:00'"),
    ],
)
@pytest.mark.parametrize("added", [False, True])
def test_widened_columns_compare_in_their_new_type(
    tmp_path: Path, before: str, after: str, values: str, constant: str, added: bool
) -> None:
    """DuckDB's reader casts the constant to the type of the file, where 1.5 is 2."""
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb", data_inlining_row_limit=0) as session:
        session.sql(f"CREATE TABLE t (v {before})")
        if added:
            duckdb.execute(f"COPY (SELECT v::{before} AS v FROM (VALUES ({values})) t(v)) TO '{tmp_path}/old.parquet'")
            duckdb.execute(f"COPY (SELECT NULL::{after} AS v) TO '{tmp_path}/new.parquet'")
            session.sql(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/old.parquet')")
        else:
            session.sql(f"INSERT INTO t VALUES ({values})")
        session.sql(f"ALTER TABLE t ALTER v SET DATA TYPE {after}")
        if added:
            session.sql(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/new.parquet')")
        else:
            session.sql("INSERT INTO t VALUES (NULL)")
        held = duckdb.connect()
        held.execute(f"CREATE TABLE t AS SELECT v::{before}::{after} AS v FROM (VALUES ({values}), (NULL)) t(v)")
        for operator in ("<", "<=", "=", ">=", ">", "<>", "IS DISTINCT FROM"):
            query = f"SELECT count(*) FROM t WHERE v {operator} {constant}"
            assert session.sql(query).fetchall() == held.execute(query).fetchall(), operator


@pytest.mark.slow
def test_files_written_before_a_float_was_widened_are_not_skipped(tmp_path: Path):
    """The text of a FLOAT, 0.1, is not the DOUBLE that its value becomes."""
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb", data_inlining_row_limit=0) as session:
        session.sql("CREATE TABLE t (f FLOAT); INSERT INTO t VALUES (0.1); INSERT INTO t VALUES (0.9)")
        session.sql("ALTER TABLE t ALTER f SET DATA TYPE DOUBLE")
        for condition, expected in (("f > 0.1", 2), ("f <= 0.1", 0), ("f < 0.9", 2), ("f >= 0.9", 0), ("f > 0.2", 1)):
            found = session.sql(f"SELECT count(*) FROM t WHERE {condition}")
            assert found.fetchall() == [(expected,)], condition
        assert found.info.files_read == 1


@pytest.mark.parametrize(
    ("key", "error", "named"),
    [
        ("epoch_day(d)", dl.UnsupportedFeatureError, "DuckLake 1.1"),
        ("hour(d)", dl.DuckLakeError, "hour(d) is not possible for a column of type DATE"),
        ("l", dl.DuckLakeError, "not possible for a column of type INTEGER[]"),
        ("year(d, d)", dl.DuckLakeError, "Expected year(column)"),
        ("bucket(d)", dl.DuckLakeError, "Expected bucket(bucket_count, column)"),
        ("bucket(0, d)", dl.DuckLakeError, "one bucket or more"),
        ("bucket(2147483648, d)", dl.DuckLakeError, "too many buckets"),
    ],
)
def test_partition_keys_that_are_refused(
    key: str, error: type[Exception], named: str, lake_uri: Callable[..., str], tmp_path: Path
) -> None:
    with dl.connect(lake_uri(), data_path=f"{tmp_path}/data", ducklake_version="1.0") as session:
        session.sql("CREATE TABLE t (d DATE, l INTEGER[])")
        with pytest.raises(error, match=re.escape(named)):
            session.sql(f"ALTER TABLE t SET PARTITIONED BY ({key})")
