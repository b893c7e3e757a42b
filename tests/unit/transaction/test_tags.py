"""Tags of tables: texts that belong to a snapshot as rows do, and that other clients keep and ignore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog import attachments

KEY = "ducklake_lab.test"


def _tag(session: dl.Session, at: int | None = None) -> str | None:
    lake = session._lakes.get()
    with lake.connect() as connection:
        snapshot = lake.snapshot(connection, at)
        table = lake.state(connection, snapshot).table("main", "t")
        return attachments.table_tags(connection, snapshot.snapshot_id, KEY).get((table.table_id, KEY))


def _set(session: dl.Session, value: str | None) -> None:
    """Sets the tag in the open transaction, or in one of its own."""
    with session._transactions.writing(session._lakes.get()) as transaction:
        table = transaction.state.table("main", "t")
        transaction.set_tag(table, KEY, value)
        assert transaction.tag(table, KEY) == value


def test_tags_are_read_as_of_a_snapshot_and_make_no_schema_version(lake_uri: Callable[..., str], tmp_path: Path):
    with dl.connect(lake_uri(), data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER); COMMENT ON TABLE t IS 'kept'")
        before = session.current_snapshot().snapshot_id
        _set(session, "one % _ é")
        session.sql("BEGIN; INSERT INTO t VALUES (1)")
        _set(session, "two")
        session.sql("COMMIT")
        _set(session, None)
        assert [_tag(session, before + n) for n in range(4)] == [None, "one % _ é", "two", None]
        found = session.sql(f"SELECT snapshot_id, schema_version FROM snapshots() WHERE snapshot_id >= {before}")
        versions = {version for _, version in found.fetchall()}
        assert len(versions) == 1
        assert session.sql("SELECT comment FROM duckdb_tables() WHERE table_name = 't'").fetchall() == [("kept",)]


def test_a_new_table_has_tags_and_a_dropped_one_loses_them(lake_uri: Callable[..., str], tmp_path: Path):
    with dl.connect(lake_uri(), data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("BEGIN; CREATE TABLE t AS SELECT 1 AS i")
        _set(session, "new")
        session.sql("COMMIT")
        assert _tag(session) == "new"
        session.sql("DROP TABLE t; CREATE TABLE t (i INTEGER)")
        assert _tag(session) is None


def test_what_is_rolled_back_sets_no_tag(lake_uri: Callable[..., str], tmp_path: Path):
    with dl.connect(lake_uri(), data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        before = session.current_snapshot().snapshot_id
        session.sql("BEGIN")
        _set(session, "lost")
        session.sql("ROLLBACK")
        assert (_tag(session), session.current_snapshot().snapshot_id) == (None, before)


@pytest.mark.parametrize("rows", ["", "INSERT INTO t VALUES (1)"])
def test_of_two_that_set_one_tag_the_second_conflicts(rows: str, lake_uri: Callable[..., str], tmp_path: Path):
    uri, data = lake_uri(), f"{tmp_path}/data"
    with dl.connect(uri, data_path=data, engine="duckdb") as one, dl.connect(uri, engine="duckdb") as two:
        one.sql("CREATE TABLE t (i INTEGER)")
        for session, value in ((one, "first"), (two, "second")):
            session.sql(f"BEGIN; {rows}")
            _set(session, value)
        one.sql("COMMIT")
        with pytest.raises(dl.TransactionConflictError):
            two.sql("COMMIT")
        assert _tag(one) == "first"
