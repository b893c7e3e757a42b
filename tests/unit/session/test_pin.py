"""A pinned lake is read as of one snapshot by everything that names none, and is not written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.result import summary
from ducklake_lab.widgets.summary import of_session

pytestmark = pytest.mark.sampled(3)

QUERIES = (
    "FROM t ORDER BY i",
    "SELECT count(*), min(i), max(i) FROM t",
    "SELECT t.i, u.x FROM t JOIN u ON t.i = u.x ORDER BY ALL",
    "FROM v ORDER BY ALL",
    "SELECT i FROM t WHERE i > 3 ORDER BY i",
    "SELECT twice(i) FROM t ORDER BY ALL",
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_catalog = 'lake' ORDER BY ALL",
    "SHOW TABLES",
    "DESCRIBE t",
)


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(uri: str, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql(
            """
            CREATE TABLE t AS SELECT range AS i FROM range(30);
            CREATE TABLE u AS SELECT 1 AS x;
            CREATE VIEW v AS SELECT i FROM t WHERE i < 5;
            CREATE MACRO twice(a) AS 2 * a;
            INSERT INTO u VALUES (2), (3);
            DELETE FROM t WHERE i = 2;
            ALTER TABLE t ADD COLUMN note VARCHAR;
            UPDATE t SET note = 'seen', i = 100 WHERE i = 3;
            CREATE OR REPLACE VIEW v AS SELECT i, note FROM t;
            CREATE OR REPLACE MACRO twice(a) AS 20 * a;
            INSERT INTO t SELECT range, 'late' FROM range(50, 90);
            CALL lake.flush_inlined_data();
            CALL lake.merge_adjacent_files();
            """
        )
        session.tag("before", 6)
        yield session


def rows(session: dl.Session, text: str, **given: Any) -> list[Any]:
    return session.sql(text, **given).fetchall()


@pytest.mark.slow
def test_a_pin_equals_a_lake_attached_there(session: dl.Session, uri: str) -> None:
    newest = session.current_snapshot().snapshot_id
    for at in range(4, newest + 1):
        pinned = session.pin(at)
        assert pinned is not None and pinned.snapshot_id == session.current_snapshot().snapshot_id == at
        with dl.connect(uri, alias="lake", snapshot_version=at) as other:
            for query in QUERIES:
                assert rows(session, query) == rows(other, query) == rows(other, query, at=at), (at, query)
            assert [(i.table.name, i.record_count) for i in session.tables()] == [
                (i.table.name, i.record_count) for i in other.tables()
            ]
            assert len(session.snapshots("t")) == len(other.snapshots("t"))
            assert session.table("t").arrow().equals(other.table("t").arrow())
            assert len(session.table("t").files()) == len(other.table("t").files())
        assert rows(session, "FROM t ORDER BY i") == rows(session, f"FROM t AT (VERSION => {at}) ORDER BY i")
    session.pin(None)
    assert session.current_snapshot().snapshot_id == newest


def test_a_snapshot_that_a_query_names_wins(session: dl.Session) -> None:
    session.pin(1)
    assert rows(session, "SELECT count(*) FROM t AT (VERSION => 6)") == [(29,)]
    assert rows(session, "SELECT count(*) FROM t", at=6) == [(29,)]
    assert session.table("t", at=6).arrow().num_rows == 29
    assert rows(session, "SELECT count(*) FROM t") == [(30,)]


def test_a_diff_ends_at_the_pin(session: dl.Session) -> None:
    session.pin(6)
    found = session.table("t").diff(1)
    assert found.end is not None and found.end.snapshot_id == 6
    assert (found.summary.deleted, found.summary.inserted) == (1, 0)
    assert session.diff(1).end.snapshot_id == 6


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t (i) VALUES (1)",
        "INSERT INTO t (i) SELECT 1",
        "UPDATE t SET i = 1",
        "DELETE FROM t",
        "CREATE TABLE z (i INTEGER)",
        "DROP TABLE t",
        "COMMENT ON TABLE t IS 'x'",
        "CHECKPOINT",
        "CALL lake.set_option('parquet_compression', 'zstd')",
        "CALL lake.expire_snapshots(versions => [1])",
        "CALL lake.merge_adjacent_files()",
        "UPDATE __ducklake_metadata_lake.ducklake_metadata SET value = 'x' WHERE key = 'none'",
    ],
)
def test_writes_are_refused_in_one_line(session: dl.Session, text: str) -> None:
    session.pin("before")
    with pytest.raises(dl.DuckLakeError) as error:
        session.sql(text)
    assert str(error.value) == (
        "The lake lake is pinned at before (snapshot 6) and can only be read; session.pin(None) or "
        "%ducklake pin --off unpins it."
    )


def test_writes_by_python_are_refused(session: dl.Session) -> None:
    session.pin(6)
    for write in (
        lambda: session.write(pa.table({"i": [1]}), "t"),
        lambda: session.restore("t", 1),
        lambda: session.tag("other"),
        lambda: session.untag("before"),
        lambda: session.preview("DELETE FROM t"),
    ):
        with pytest.raises(dl.DuckLakeError, match="pinned at snapshot 6"):
            write()
    assert not session.in_transaction
    session.pin(None)
    assert session.sql("DELETE FROM t WHERE i = 4").fetchall() == [(1,)]


def test_a_tag_and_a_time_are_resolved_once(session: dl.Session, uri: str) -> None:
    before = session.pin("before")
    with dl.connect(uri, alias="lake") as other:
        other.tag("before", 1)
    assert before is not None and session.current_snapshot().snapshot_id == 6
    by_time = session.pin(before.snapshot_time)
    assert by_time == before and session.pinned == {"lake": "snapshot 6"}
    with pytest.raises(dl.SnapshotNotFoundError):
        session.pin("no such tag")
    with pytest.raises(dl.SnapshotNotFoundError):
        session.pin(99)
    assert session.pinned == {"lake": "snapshot 6"}  # a pin that fails changes nothing


def test_a_pin_ends_at_what_was_attached(session: dl.Session, uri: str) -> None:
    session.attach(uri, alias="old", snapshot_version=6)
    session.use("old")
    session.pin(4)
    assert rows(session, "SELECT count(*) FROM old.u") == [(1,)]
    session.pin(None)
    assert rows(session, "SELECT count(*) FROM old.u") == [(3,)]
    with pytest.raises(dl.DuckLakeError, match="attached at snapshot 6"):
        session.sql("DELETE FROM old.t")


def test_a_transaction_and_a_pin_exclude_each_other(session: dl.Session) -> None:
    with session.transaction(), pytest.raises(dl.TransactionError, match="COMMIT or ROLLBACK first"):
        session.pin(1)
    assert session.pinned == {}
    session.pin(1)
    session.sql("BEGIN")
    assert rows(session, "SELECT count(*) FROM t") == [(30,)]
    session.sql("COMMIT")


def test_lines_under_results_say_it(session: dl.Session, uri: str) -> None:
    session.pin("before")
    assert "pinned at before (snapshot 6)" in summary(session.sql("FROM t"))
    assert "pinned" not in summary(session.sql("FROM t AT (VERSION => 1)"))
    assert "pinned at before (snapshot 6)" in repr(of_session(session))
    session.attach(uri, alias="other")
    line = summary(session.sql("SELECT count(*) FROM t, other.t AS o"))
    assert "snapshot other 1" in line and "lake pinned at before (snapshot 6)" in line
