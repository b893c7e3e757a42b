"""Every type in files on Spark: what the reference wrote, and what Spark's tasks write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from tests.interop.comparing import attach, detach
from tests.type_matrix import VALUES

pytestmark = pytest.mark.sampled(5)

_META = "__ducklake_metadata_lake"


@pytest.fixture
def lake(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> str:
    """A lake of the reference's with a table for each type, t0, t1, …, all in files."""
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    attach(reference, uri, data_path=tmp_path / "data")
    for number, (name, (sql, values)) in enumerate(VALUES.items()):
        more = ["'100 hours'"] if name == "interval" else []
        rows = [f"CAST({value} AS {sql})" for value in (*values, *more)] + ["NULL"] * 12
        listed = ", ".join(f"({i}, {row})" for i, row in enumerate(rows))
        reference.execute(f"CREATE TABLE t{number} (i INTEGER, v {sql})")
        reference.execute(f"INSERT INTO t{number} VALUES {listed}")
    detach(reference)
    return uri


def rows(reference: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    return reference.execute(f"SELECT i, CAST(v AS VARCHAR) FROM {table} ORDER BY i").fetchall()


def statistics(reference: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    return reference.execute(
        "SELECT column_id, value_count, null_count, min_value, max_value, contains_nan, extra_stats "
        f"FROM {_META}.ducklake_file_column_stats JOIN {_META}.ducklake_table USING (table_id) "
        "WHERE table_name = ? ORDER BY column_id",
        [table],
    ).fetchall()


def test_spark_copies_every_type(lake: str, spark: SparkSession, reference: duckdb.DuckDBPyConnection) -> None:
    with dl.connect(lake, alias="lake", spark=spark, engine="spark") as session:
        for number, (sql, _) in enumerate(VALUES.values()):
            session.sql(f"CREATE TABLE c{number} (i INTEGER, v {sql})")
            session.write(session.table(f"t{number}").spark(), f"c{number}", mode="append")
    attach(reference, lake)
    for number, name in enumerate(VALUES):
        assert rows(reference, f"c{number}") == rows(reference, f"t{number}"), name
        found, wanted = statistics(reference, f"c{number}"), statistics(reference, f"t{number}")
        if name in ("float32", "float64"):
            # Spark's own writer does not tell the bounds of what a NaN is among
            assert found == [wanted[0], (*wanted[1][:3], None, None, *wanted[1][5:])], name
        elif name == "variant":
            # Spark gives variants without their shredding; DuckDB shreds them anew
            assert [row[:6] for row in found] == [row[:6] for row in wanted], name
        else:
            assert found == wanted, name


def test_both_engines_hand_out_equal_values(lake: str, spark: SparkSession) -> None:
    with dl.connect(lake, alias="lake", spark=spark, engine="spark") as session:
        for number, name in enumerate(VALUES):
            found, local = (session.sql(f"FROM t{number} ORDER BY i", engine=engine) for engine in ("spark", "duckdb"))
            assert not found.in_process and local.in_process
            assert found.types == local.types
            if name == "uint128":
                assert found.fetchall()[1][1] == int(12345678901234567890123456789.0)
                continue
            # as text, as NaN is not equal to itself
            assert repr(found.fetchall()) == repr(local.fetchall()), name
            assert list(found.pandas().dtypes) == list(local.pandas().dtypes), name
            assert found.arrow().schema.types == local.arrow().schema.types, name
            assert name in _UNEQUAL or found.arrow().to_pylist() == local.arrow().to_pylist(), name


#: Types with values that are not equal to themselves, or that Python has no form for.
_UNEQUAL = ("float32", "float64", "date", "timestamp", "timestamptz")


def test_a_variant_that_spark_cannot_hold_is_refused_with_its_column(spark: Any, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", spark=spark, engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INT, good VARIANT, bad VARIANT)")
        session.sql("INSERT INTO t VALUES (1, 1::VARIANT, (INTERVAL 3 DAY)::VARIANT)")
        with pytest.raises(dl.UnsupportedFeatureError, match=r"column bad: .*INTERVAL.*engine='duckdb'"):
            session.table("t").spark()
        assert session.table("t").arrow().num_rows == 1


def test_variants_within_other_values(spark: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"spark": spark, "engine": "spark", "limits": Limits(refused=-1)}
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", **settings) as session:
        session.sql("SET ducklake_default_data_inlining_row_limit = 0")
        session.sql("CREATE TABLE t (i INT)")
        session.sql("INSERT INTO t VALUES (1), (2)")
        query = (
            "SELECT [i::VARIANT, NULL] AS \"a.b\", {'x': NULL::VARIANT, 'y': 'z'::VARIANT} AS s, ([i, 2]::VARIANT)[1], "
            "MAP {i: [i]::VARIANT} AS m, CASE WHEN i > 1 THEN {'v': [NULL::VARIANT]} END AS n FROM t ORDER BY i"
        )
        result = session.sql(query)
        assert not result.in_process
        assert result.fetchall() == session.sql(query, engine="duckdb").fetchall()


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT"])
def test_a_number_of_39_digits_is_refused_on_spark(kind: str, spark: Any, tmp_path: Path) -> None:
    # what was refused would run in process
    settings: dict[str, Any] = {"spark": spark, "engine": "spark", "limits": Limits(refused=-1)}
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", **settings) as session:
        session.sql("SET ducklake_default_data_inlining_row_limit = 0")
        session.sql("CREATE TABLE t (digits VARCHAR, negative BOOLEAN)")
        session.sql(f"INSERT INTO t VALUES ('{'9' * 38}', false), ('1{'0' * 38}', true)")
        number = f"CAST(CASE WHEN negative AND '{kind}' = 'HUGEINT' THEN '-' ELSE '' END || digits AS {kind}) AS n"
        result = session.sql(f"SELECT {number} FROM t WHERE length(digits) = 38")
        assert not result.in_process
        assert result.fetchall() == [(int("9" * 38),)]
        with pytest.raises(dl.UnsupportedFeatureError, match="more than 38 digits; cast it to DOUBLE or VARCHAR"):
            session.sql(f"SELECT {number} FROM t").fetchall()


def test_only_columns_that_are_read_may_hold_39_digits(spark: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"spark": spark, "engine": "spark", "limits": Limits(refused=-1)}
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", **settings) as session:
        session.sql("CREATE TABLE t (a INTEGER, h HUGEINT, s STRUCT(u UHUGEINT))")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0); INSERT INTO t VALUES (3, 4, NULL)")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 10)")
        session.sql(f"INSERT INTO t VALUES (1, {2**127 - 1}, {{u: {2**128 - 1}}}), (2, -3, {{u: 4}})")
        for query, rows in {
            "SELECT a FROM t ORDER BY a": [(1,), (2,), (3,)],
            "SELECT count(*), max(a + 1) FROM t": [(3, 4)],
            "SELECT sum(x.a) FROM (SELECT *, a + 1 AS b FROM t) x JOIN t y ON x.b = y.a": [(3,)],
        }.items():
            result = session.sql(query)
            assert (result.in_process, result.fetchall()) == (False, rows)
        for query, column in {
            "SELECT h FROM t": "h",
            "SELECT count(h), max(a + 1) FROM t": "h",
            "SELECT * FROM t WHERE a > 1": "h",
            "SELECT max(s.u) FROM t": "s",
        }.items():
            with pytest.raises(dl.UnsupportedFeatureError, match=f"Spark cannot read column {column}: .*38 digits"):
                session.sql(query)


def test_a_sum_of_39_digits_is_refused_on_spark(spark: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"spark": spark, "engine": "spark", "limits": Limits(refused=-1)}
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", **settings) as session:
        session.sql("SET ducklake_default_data_inlining_row_limit = 0")
        session.sql("CREATE TABLE t (a INTEGER, h HUGEINT, d DECIMAL(38, 0), n HUGEINT)")
        most = 9 * 10**37  # in a file, the nearest DOUBLE
        session.sql(
            f"INSERT INTO t VALUES (1, {most}, {most}, NULL), (2, {most // 2}, {most // 2}, NULL), (3, -5, 5, NULL)"
        )
        plain = "SELECT sum(h), sum(d), avg(h), sum(DISTINCT h), sum(n) FROM t WHERE a IN (1, 3)"
        assert session.sql(plain).fetchall() == session.sql(plain, engine="duckdb").fetchall()
        for value in ("sum(h)", "sum(d)", "sum(DISTINCT d)", "max(a) + sum(h)", "sum(h) OVER (ORDER BY a DESC)"):
            assert len(session.sql(f"SELECT {value} FROM t", engine="duckdb").fetchall()) > 0
            with pytest.raises(dl.UnsupportedFeatureError, match="A sum of more than 38 digits"):
                session.sql(f"SELECT {value} FROM t").fetchall()


def test_a_variant_that_is_null_is_null(spark: SparkSession, tmp_path: Path) -> None:
    """Files keep no NULL of a variant but a variant that is null."""
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data", alias="lake", spark=spark, engine="spark"
    ) as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE t (i INTEGER, x VARIANT)")
        rows = "SELECT i, CASE WHEN i < 3 THEN i::VARIANT END FROM range(5) r(i)"
        session.sql(f"INSERT INTO t {rows}", engine="duckdb")
        for query in (
            "SELECT count(x), count(*) FILTER (x IS NULL), count(*) FROM t",
            "SELECT i FROM t WHERE x IS NULL ORDER BY i",
            "SELECT i, x, x IS NULL, coalesce(x::VARCHAR, 'none') FROM t ORDER BY i",
        ):
            assert session.sql(query).fetchall() == session.sql(query, engine="duckdb").fetchall(), query
        session.sql("DELETE FROM t WHERE i = 4; UPDATE t SET i = -i WHERE x IS NULL")
        assert session.sql("SELECT i FROM t WHERE x IS NULL").fetchall() == [(-3,)]


#: Days that Python's dates do not reach, by a number.
FAR = (
    "INSERT INTO far SELECT n, d, d, d, d, {'d': d, 'm': d::TIMESTAMP_MS} FROM (VALUES (1, DATE '2024-01-31'), "
    "(2, DATE '0044-03-15 (BC)'), (3, DATE '12000-01-01'), (4, 'infinity'), (5, '-infinity'), (6, NULL)) v(n, d)",
    "INSERT INTO far (n, d) VALUES (7, '5877642-06-25 (BC)'), (8, '5881580-07-10')",
    "INSERT INTO far (n, ts, tz, ms) VALUES (9, '290309-12-22 (BC)', '290309-12-22 (BC)', '290309-12-22 (BC)')",
    "CREATE TABLE few AS SELECT * FROM far WHERE n <> 3",
)


def test_far_days_and_times(spark: Any, tmp_path: Path) -> None:
    plain = duckdb.connect()
    uri, options = f"ducklake:{tmp_path}/l.ducklake", {"data_path": f"{tmp_path}/data", "engine": "spark"}
    with dl.connect(uri, spark=spark, limits=Limits(refused=-1), **options) as session:
        session.sql("SET ducklake_default_data_inlining_row_limit = 0; SET TimeZone = 'UTC'")
        plain.execute("SET TimeZone = 'UTC'")
        columns = "n INTEGER, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, ms TIMESTAMP_MS, s STRUCT(d DATE, m TIMESTAMP_MS)"
        for text in (f"CREATE TABLE far ({columns})", *FAR):
            session.sql(text)
            plain.execute(text)
        joined = [f"SELECT far.n, few.n FROM far JOIN few ON far.{c} = few.{c}" for c in ("d", "ts", "tz", "ms", "s")]
        compared = [
            *(
                "ms = 'infinity'",
                "ms > '-infinity'",
                "ms BETWEEN '290309-12-22 (BC)' AND '2030-01-01'",
                "s.m = 'infinity'",
            ),
            *(
                "d > '-infinity'",
                "d > DATE '5877642-06-25 (BC)'",
                "d = DATE '5877642-06-25 (BC)'",
                "d <> '5881580-07-10'",
            ),
            "d IN (DATE '5877642-06-25 (BC)', 'infinity', DATE '0044-03-15 (BC)')",
            *("tz > '-infinity'", "tz >= '290309-12-22 (BC) 00:00:00'", "ts > '-infinity' AND ts <> 'infinity'"),
        ]
        shown = ["SELECT n, d, ts, tz, ms, s FROM far", "SELECT max(ms), min(ms), max(d), min(d), min(tz) FROM far"]
        for query in (*joined, *(f"SELECT n FROM far WHERE {condition}" for condition in compared), *shown):
            found, wanted = session.sql(f"{query} ORDER BY ALL"), plain.execute(f"{query} ORDER BY ALL")
            assert found.info.placement is not None and not found.info.placement.is_here, query
            assert [str(row) for row in found.fetchall()] == [str(row) for row in wanted.fetchall()], query
    plain.close()
