"""A session's queries leave the user's SparkSession as it was."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.spark.runtime import acting, is_connect

pytestmark = pytest.mark.sampled(4)

#: Settings of users that the queries of this package need otherwise.
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.variable.substitute": "true",
    "spark.sql.timeType.enabled": "false",
    "spark.sql.datetime.java8API.enabled": "false",
}
#: Queries of users, whose answers depend on these settings.
QUERIES = (
    "SELECT CAST(12345678901234567890.123 AS DECIMAL(38,18)) * CAST(3 AS DECIMAL(38,18)) AS v",
    "SELECT CAST('a' AS INT) AS v",
    "SELECT hour(timestamp_seconds(0)) AS v",
    "SELECT 2147483647 + 1 AS v",
    "SELECT '${spark.sql.ansi.enabled}' AS v",
)


@pytest.fixture
def users(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with settings of its own."""
    if is_connect(spark):
        pytest.skip("Spark Connect has one session")
    session = spark.newSession()
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    # PySpark leaves the session active that makes a DataFrame of local rows
    with acting(session):
        yield session


def _answers(spark: SparkSession) -> list[object]:
    return [spark.sql(query).collect()[0].v for query in QUERIES]


def _settings(spark: SparkSession) -> dict[str, str]:
    """The settings, but those of the catalogs that attached lakes are."""
    return {key: value for key, value in spark.conf.getAll.items() if not key.startswith("spark.sql.catalog.lake")}


def test_answers_settings_views_and_functions_stay(users: SparkSession, tmp_path: Path) -> None:
    settings, answers = _settings(users), _answers(users)
    assert answers[:3] == [Decimal("37037036703703703670.369000"), None, 5]
    with dl.Session(spark=users, engine="spark") as session:
        session.attach(f"ducklake:{tmp_path}/m.ducklake", alias="lake", data_path=str(tmp_path / "data"))
        session.use("lake")
        session.sql("SET TimeZone = 'America/New_York'")
        session.sql('CREATE TABLE t (i INTEGER, d DECIMAL(38,18), "at" TIMESTAMPTZ)')
        session.sql("INSERT INTO t SELECT i, i + 0.5, TIMESTAMPTZ '2024-01-01 00:00:00+00' FROM range(100) r(i)")
        session.sql("ALTER TABLE t RENAME i TO n")
        asked = session.sql("SELECT sum(n) AS s, max(d) AS d FROM t WHERE n % 3 = 0 AND md5(n::VARCHAR) <> ''")
        assert asked.fetchall() == [(1683, Decimal("99.5"))]
        assert _settings(users) == settings
        assert _answers(users) == answers
        assert SparkSession.getActiveSession() is not None
        frame = session.table("t").spark()
        assert frame.sparkSession is users
        users.range(3).createOrReplaceTempView("mine")
        assert [view.name for view in users.catalog.listTables() if view.isTemporary] == ["mine"]
    assert dict(users.conf.getAll) == settings
    assert _answers(users) == answers


def test_frames_mean_in_the_users_session_what_they_mean_in_the_lake(users: SparkSession, tmp_path: Path) -> None:
    with dl.Session(spark=users, engine="spark") as session:
        session.attach(f"ducklake:{tmp_path}/m.ducklake", alias="lake", data_path=str(tmp_path / "data"))
        session.use("lake")
        session.sql("CREATE TABLE t (a INTEGER, b VARCHAR, c TIME, d DATE)")
        session.sql("INSERT INTO t VALUES (1, 'x', '12:00:00', '0001-01-01'), (2, 'y', NULL, '9999-12-31')")
        session.sql("INSERT INTO t SELECT i, i::VARCHAR, '01:02:03', '2024-01-01' FROM range(3, 100) r(i)")
        session.sql("ALTER TABLE t RENAME a TO k")
        session.sql("ALTER TABLE t ADD COLUMN a VARCHAR DEFAULT 'new'")
        session.sql("DELETE FROM t WHERE k % 2 = 0")
        expected = session.sql("SELECT count(*), sum(k), min(a), count(c) FROM t", engine="duckdb").fetchall()
        mine = users.createDataFrame([(1, "one"), (3, "three"), (4, "four")], "k int, word string")
        frame = session.sql("FROM t").spark()
        frame.createOrReplaceTempView("theirs")
        assert (frame.count(), frame.select("c").distinct().count()) == (50, 2)
        found = users.sql("SELECT count(*), sum(k), min(a), count(c) FROM theirs").collect()
        assert [tuple(row) for row in found] == expected
        joined = mine.join(frame, "k").orderBy("k").select("k", "word", "b").collect()
        assert [tuple(row) for row in joined] == [(1, "one", "x"), (3, "three", "3")]
        assert [row.k for row in session.table("t").spark(where="d < DATE'0002-01-01'").collect()] == [1]


def test_the_users_rows_keep_their_meaning_on_the_way_in(users: SparkSession, tmp_path: Path) -> None:
    with dl.Session(spark=users, engine="spark") as session:
        session.attach(f"ducklake:{tmp_path}/m.ducklake", alias="lake", data_path=str(tmp_path / "data"))
        session.use("lake")
        # under ANSI rules, this cast would fail; with exact decimals, the product would
        frame = users.sql(f"SELECT CAST(x AS INT) AS n, ({QUERIES[0]}) AS v FROM VALUES ('1'), ('a') AS r(x)")
        session.write(frame, "t", mode="create")
        assert session.sql("FROM t ORDER BY n NULLS LAST").fetchall() == [
            (1, Decimal("37037036703703703670.369000")),
            (None, Decimal("37037036703703703670.369000")),
        ]
        users.udf.register("twice", lambda n: n * 2, "long")
        assert session.sql("SELECT twice(max(n)) AS n FROM lake.main.t", dialect="spark").fetchall() == [(2,)]
        # Spark SQL text has the meaning of the user's session
        assert session.sql("SELECT CAST('a' AS INT) AS n FROM lake.main.t LIMIT 1", dialect="spark").fetchall() == [
            (None,)
        ]
        # text beyond this session's INTEGER is still an error where the table is written
        wide = users.sql("SELECT CAST(3000000000 AS BIGINT) AS n, CAST(1 AS DECIMAL(38,6)) AS v")
        with pytest.raises(dl.DuckLakeError):
            session.write(wide, "t")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(2,)]


def test_two_sessions_share_one_spark(users: SparkSession, tmp_path: Path) -> None:
    found = []
    for zone in ("Asia/Tokyo", "America/New_York"):
        with dl.Session(spark=users, engine="spark") as session:
            session.attach(f"ducklake:{tmp_path}/{zone[:4]}.ducklake", alias="lake")
            session.use("lake")
            session.sql(f"SET TimeZone = '{zone}'")
            session.sql("CREATE TABLE t AS SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS at FROM range(20)")
            found.append(session.sql("SELECT DISTINCT date_part('hour', t.at) FROM t").fetchall())
    assert found == [[(9,)], [(19,)]]
    assert users.conf.get("spark.sql.session.timeZone") == "Asia/Kathmandu"


@pytest.mark.anywhere
def test_closing_restores_the_settings_of_a_connect_client(spark: SparkSession, tmp_path: Path) -> None:
    if not is_connect(spark):
        pytest.skip("classic Spark has a second session")
    ansi, zone = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
    spark.conf.set(ansi, "false")
    before = [spark.conf.get(name) for name in (ansi, zone, "spark.sql.parquet.fieldId.read.enabled")]
    first, second = (dl.Session(spark=spark, engine="spark") for _ in range(2))
    for number, session in enumerate((first, second)):
        session.attach(f"ducklake:{tmp_path}/{number}.ducklake", alias="lake")
        session.use("lake")
        session.sql("SET TimeZone = 'Asia/Tokyo'")
        session.sql("CREATE TABLE t AS SELECT 1 AS i FROM range(20)")
    first.close()
    assert second.sql("SELECT sum(i) FROM t").fetchall() == [(20,)]
    assert spark.conf.get(ansi) == "true"
    second.close()
    assert [spark.conf.get(name) for name in (ansi, zone, "spark.sql.parquet.fieldId.read.enabled")] == before
    spark.conf.unset(ansi)


def test_a_condition_skips_files(spark: SparkSession, tmp_path: Path) -> None:
    with dl.Session(spark=spark, engine="spark") as session:
        session.attach(f"ducklake:{tmp_path}/m.ducklake", alias="lake", data_path=str(tmp_path / "data"))
        session.use("lake")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        session.sql("CREATE TABLE t (k INTEGER, s VARCHAR)")
        for k in range(4):
            session.sql(f"INSERT INTO t VALUES ({k}, '{k}'), ({k}, NULL)", engine="duckdb")
        table = session.table("t")
        for condition, files in (("k = 3", 1), ("k < 2", 2), ("s = '1'", 1), ("s = 1", 4), ("k = 9", 0)):
            frame = table.spark(where=condition)
            expected = table.spark().where(condition).collect()
            assert sorted(map(repr, frame.collect())) == sorted(map(repr, expected))
            assert len(frame.inputFiles()) == files
