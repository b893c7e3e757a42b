"""The behaviour of statements on every kind of catalog, inlining on, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session
        assert not session.spark_started


def rows(session: dl.Session, sql: str, **params: Any) -> list[tuple[Any, ...]]:
    return session.sql(sql, params=params or None).fetchall()


def snapshot(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


def test_a_new_lake_has_a_schema_and_no_tables(session: dl.Session) -> None:
    assert snapshot(session) == 0
    assert rows(session, "SHOW TABLES") == []
    assert [entry.changes for entry in session.snapshots()] == [("created schema main",)]


@pytest.mark.every_catalog
def test_insert_update_delete_and_time_travel(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR DEFAULT 'x')")
    assert rows(session, "INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, 'c')") == [(3,)]
    session.sql("INSERT INTO t (i) VALUES (4)")
    session.sql("INSERT INTO t BY NAME SELECT 'y' AS s, 5 AS i")
    assert rows(session, "UPDATE t SET s = s || '!' WHERE i >= 3") == [(3,)]
    assert rows(session, "DELETE FROM t WHERE i = 2") == [(1,)]
    assert rows(session, "FROM t ORDER BY i") == [(1, "a"), (3, "c!"), (4, "x!"), (5, "y!")]
    assert rows(session, "FROM t AT (VERSION => 2) ORDER BY i") == [(1, "a"), (2, None), (3, "c")]
    assert rows(session, "SELECT count(*) FROM t AT (VERSION => 1)") == [(0,)]
    joined = "SELECT a.s, b.s FROM t AS a JOIN t AT (VERSION => 4) AS b USING (i) WHERE i = 5"
    assert rows(session, joined) == [("y!", "y")]


def test_row_ids_stay_through_updates(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (10), (20), (30)")
    session.sql("UPDATE t SET i = 21 WHERE i = 20; DELETE FROM t WHERE i = 10; INSERT INTO t VALUES (40)")
    assert rows(session, "SELECT rowid, i FROM t ORDER BY rowid") == [(1, 21), (2, 30), (3, 40)]


def test_time_travel_by_timestamp(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    then = session.current_snapshot().snapshot_time
    session.sql("INSERT INTO t VALUES (2)")
    assert rows(session, "SELECT count(*) FROM t AT (TIMESTAMP => :t)", t=then) == [(1,)]
    assert session.table("t", at=then).arrow().num_rows == 1
    with pytest.raises(dl.SnapshotNotFoundError, match="no snapshot as old"):
        session.sql("FROM t AT (TIMESTAMP => :t)", params={"t": datetime.now(UTC) - timedelta(days=9)})


@pytest.mark.every_catalog
def test_values_of_many_types_come_back(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE t (b BOOLEAN, i BIGINT, u UBIGINT, d DOUBLE, n DECIMAL(20,3), day DATE, ts TIMESTAMP, "
        "tz TIMESTAMPTZ, s VARCHAR, x BLOB, st STRUCT(a INTEGER, b VARCHAR[]), m MAP(VARCHAR, INTEGER))"
    )
    session.sql(
        "INSERT INTO t VALUES (true, -5, 18446744073709551615, 'nan', 12345678901234567.125, DATE '1999-12-31', "
        "TIMESTAMP '2020-01-02 03:04:05.678901', TIMESTAMPTZ '2020-01-02 03:04:05+02', 'it''s, {}', '\\x00\\xFF', "
        "{'a': 1, 'b': ['x, y', NULL]}, MAP {'k': 1})"
    )
    (row,) = rows(session, "FROM t")
    assert row[:3] == (True, -5, 18446744073709551615)
    assert row[3] != row[3]
    assert row[4:7] == (
        Decimal("12345678901234567.125"),
        date(1999, 12, 31),
        datetime(2020, 1, 2, 3, 4, 5, 678901),
    )
    assert row[7] == datetime(2020, 1, 2, 1, 4, 5, tzinfo=UTC)
    assert row[8:] == ("it's, {}", b"\x00\xff", {"a": 1, "b": ["x, y", None]}, {"k": 1})


@pytest.mark.slow
def test_columns_change_by_id(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a')")
    session.sql("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7")
    session.sql("ALTER TABLE t RENAME COLUMN s TO text; ALTER TABLE t DROP COLUMN i")
    session.sql("ALTER TABLE t ADD COLUMN i VARCHAR; INSERT INTO t VALUES ('b', NULL, 'new')")
    assert rows(session, "FROM t ORDER BY text") == [("a", 7, None), ("b", None, "new")]
    assert rows(session, "FROM t AT (VERSION => 2)") == [(1, "a")]


def test_a_transaction_is_one_snapshot_and_sees_itself(session: dl.Session) -> None:
    with session.transaction(author="ann", message="all at once", extra_info="{}") as transaction:
        session.sql("CREATE SCHEMA s; CREATE TABLE s.t (i INTEGER); INSERT INTO s.t VALUES (1), (2)")
        session.sql("UPDATE s.t SET i = 3 WHERE i = 1; ALTER TABLE s.t ADD COLUMN j INTEGER DEFAULT 9")
        assert rows(session, "FROM s.t ORDER BY i") == [(2, 9), (3, 9)]
    assert transaction.snapshot is not None
    assert transaction.snapshot.snapshot_id == snapshot(session) == 1
    info = session.snapshots()[-1].info
    assert (info.author, info.commit_message, info.commit_extra_info) == ("ann", "all at once", "{}")
    assert rows(session, "FROM s.t ORDER BY i") == [(2, 9), (3, 9)]


def test_an_error_rolls_a_transaction_back(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER)")
    with pytest.raises(dl.BindError), session.transaction():
        session.sql("INSERT INTO t VALUES (1); SELECT nope FROM t")
    assert rows(session, "FROM t") == []
    assert snapshot(session) == 1


def test_begin_commit_and_rollback(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER)")
    session.sql("BEGIN; INSERT INTO t VALUES (1); ROLLBACK")
    assert (rows(session, "FROM t"), snapshot(session)) == ([], 1)
    session.sql("BEGIN; INSERT INTO t VALUES (1); DELETE FROM t; COMMIT")
    assert (rows(session, "FROM t"), snapshot(session)) == ([], 1), "what cancels out is no snapshot"
    session.sql("BEGIN; COMMIT")
    with pytest.raises(dl.TransactionError, match="No transaction is open"):
        session.sql("COMMIT")


@pytest.mark.every_catalog
def test_a_failed_statement_aborts_the_open_transaction(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); BEGIN; INSERT INTO t VALUES (1)")
    with pytest.raises(dl.ConstraintError):
        session.sql("INSERT INTO t VALUES ('one')")
    with pytest.raises(dl.TransactionError, match="ROLLBACK"):
        session.sql("SELECT 1")
    session.sql("ROLLBACK")
    assert rows(session, "FROM t") == []


def test_create_table_forms(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b")
    session.sql("CREATE TABLE IF NOT EXISTS t AS SELECT 2 AS c")
    assert rows(session, "FROM t") == [(1, "x")]
    with pytest.raises(dl.EntryExistsError, match="OR REPLACE"):
        session.sql("CREATE TABLE t (i INTEGER)")
    session.sql("CREATE OR REPLACE TABLE t AS SELECT 2 AS c")
    assert rows(session, "FROM t") == [(2,)]
    session.sql("DROP TABLE t; DROP TABLE IF EXISTS t")
    with pytest.raises(dl.EntryNotFoundError):
        session.sql("DROP TABLE t")


def test_schemas(session: dl.Session) -> None:
    session.sql("CREATE SCHEMA s; CREATE SCHEMA IF NOT EXISTS s; CREATE TABLE s.t (i INTEGER)")
    with pytest.raises(dl.EntryExistsError, match="CASCADE"):
        session.sql("DROP SCHEMA s")
    session.sql("USE s; INSERT INTO t VALUES (1); USE lake.main")
    assert rows(session, "FROM lake.s.t") == [(1,)]
    session.sql("DROP SCHEMA s CASCADE")
    with pytest.raises(dl.DuckLakeError, match='no schema "s"'):
        session.sql("FROM s.t")


def test_parameters_are_bound(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (s VARCHAR)")
    hostile = "'); DROP TABLE t; --"
    session.sql("INSERT INTO t VALUES (:s)", params={"s": hostile})
    assert rows(session, "SELECT s FROM t WHERE s = $s", s=hostile) == [(hostile,)]
    with pytest.raises(dl.UsageError, match="nam"):
        session.sql("SELECT :name", params={"nam": 1})


def test_functions_of_the_lake(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    assert rows(session, "FROM lake.current_snapshot()") == [(2,)]
    assert rows(session, "SELECT snapshot_id FROM lake.snapshots() ORDER BY 1 DESC LIMIT 1") == [(2,)]
    assert rows(session, "SELECT changes FROM ducklake_snapshots('lake') WHERE snapshot_id = 1") == [
        ({"tables_created": ["main.t"]},)
    ]
    assert rows(session, "FROM ducklake_list_files('lake', 't')") == []
    with pytest.raises(dl.DuckLakeError, match="Did you mean snapshots"):
        session.sql("FROM lake.snapshot()")


@pytest.mark.every_catalog
def test_names_with_everything_in_them(session: dl.Session) -> None:
    name = 'a "b", c.d %s :e <x>'
    quoted = '"' + name.replace('"', '""') + '"'
    session.sql(f"CREATE SCHEMA {quoted}; CREATE TABLE {quoted}.{quoted} ({quoted} VARCHAR)")
    session.sql(f"INSERT INTO {quoted}.{quoted} VALUES ('v')")
    session.sql(f"UPDATE {quoted}.{quoted} SET {quoted} = 'w'")
    result = session.sql(f"FROM {quoted}.{quoted}")
    assert (result.columns, result.fetchall()) == ([name], [("w",)])
    assert session.snapshots()[-1].tables == (f"{quoted}.{quoted}",)


def test_not_null_is_kept(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER NOT NULL)")
    with pytest.raises(dl.ConstraintError, match="NOT NULL"):
        session.sql("INSERT INTO t VALUES (NULL)")
    assert snapshot(session) == 1


def test_two_lakes(session: dl.Session, tmp_path: Path) -> None:
    session.sql(f"ATTACH 'ducklake:{tmp_path}/other.ducklake' AS other (DATA_PATH '{tmp_path}/other')")
    session.sql("CREATE TABLE t AS SELECT 1 AS i; CREATE TABLE other.t AS SELECT i + 1 AS i FROM t")
    assert rows(session, "SELECT a.i, b.i FROM t AS a, other.t AS b") == [(1, 2)]
    with pytest.raises(dl.TransactionError, match="one lake"), session.transaction():
        session.sql("INSERT INTO t VALUES (1); INSERT INTO other.t VALUES (1)")
    session.sql("USE other; DETACH lake")
    assert rows(session, "FROM t") == [(2,)]
    with pytest.raises(dl.EntryNotFoundError, match='No lake "lake"'):
        session.table("lake.main.t")


def test_a_lake_attached_at_a_snapshot_is_read_only(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i; INSERT INTO t VALUES (2)")
    with dl.connect(uri, alias="old", snapshot_version=1, engine="duckdb") as old:
        assert old.sql("FROM t").fetchall() == [(1,)]
        assert len(old.snapshots()) == 2
        with pytest.raises(dl.TransactionError, match="at snapshot 1"):
            old.sql("INSERT INTO t VALUES (3)")


@pytest.mark.slow
def test_a_diff_tells_what_changed(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    session.sql("UPDATE t SET s = 'B' WHERE i = 2; DELETE FROM t WHERE i = 3; INSERT INTO t VALUES (4, 'd')")
    session.sql("ALTER TABLE t RENAME COLUMN s TO text")
    diff = session.table("t").diff(2, 6)
    assert (diff.summary.inserted, diff.summary.deleted, diff.summary.updated, diff.summary.unchanged) == (1, 1, 1, 1)
    assert [(change.kind, change.before, change.after) for change in diff.schema] == [
        ("renamed", ("s", "VARCHAR"), ("text", "VARCHAR"))
    ]
    by_kind = {row.kind: row for row in diff.rows()}
    assert by_kind["updated"].before == {"i": 2, "text": "b"}
    assert by_kind["updated"].after == {"i": 2, "text": "B"}
    assert by_kind["updated"].changed == ("text",)
    assert by_kind["deleted"].before == {"i": 3, "text": "c"}
    assert by_kind["inserted"].after == {"i": 4, "text": "d"}
    assert diff.to_dict()["summary"]["updated"] == 1


def test_an_uncommitted_diff(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2)")
    with session.transaction() as transaction:
        session.sql("DELETE FROM t WHERE i = 1")
        diff = transaction.diff()
        assert (diff.end, diff.summary.deleted, diff.summary.unchanged) == (None, 1, 1)
        transaction.rollback()
    assert rows(session, "SELECT count(*) FROM t") == [(2,)]


def test_rows_of_files_join_with_inlined_rows(session: dl.Session) -> None:
    """DuckDB pushes Bloom filters of joins into scans, and scans of Arrow refuse them."""
    session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i, 's' || i AS s FROM range(20) r(i)")
    session.sql(
        "INSERT INTO t SELECT i::INTEGER, 's' || i FROM range(100, 120) r(i); INSERT INTO t VALUES (7, 'again')"
    )
    odd = "(SELECT i FROM t WHERE i % 2 = 1 AND i < 100)"
    found = session.sql(
        f"SELECT o.i, t.s FROM {odd} AS o JOIN t ON o.i = t.i WHERE o.i * 2 > 30 OR o.i = 7 ORDER BY ALL"
    )
    assert found.fetchall() == [*[(7, "again")] * 2, *[(7, "s7")] * 2, (17, "s17"), (19, "s19")]


def test_inlined_rows_join_by_their_row_ids(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i FROM range(20) r(i)")
    session.sql("INSERT INTO t SELECT i + 100 FROM range(3) r(i); INSERT INTO t SELECT i + 200 FROM range(9) r(i)")
    even = "(SELECT rowid FROM t WHERE i % 2 = 0)"
    assert rows(session, f"SELECT count(*) FROM t WHERE rowid IN {even}") == [(17,)]
    assert rows(session, f"SELECT count(*) FROM t JOIN {even} AS e ON t.rowid = e.rowid") == [(17,)]
