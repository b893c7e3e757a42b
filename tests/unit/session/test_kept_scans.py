"""Planned reads are kept from statement to statement: never longer than they are true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)

COUNT = "SELECT count(*), sum(i) FROM t WHERE i >= 0"
CHANGES = {
    "INSERT INTO t VALUES (100)": (5, 110),
    "INSERT INTO t SELECT i FROM range(1000, 1020) r(i)": (25, 20300),
    "DELETE FROM t WHERE i = 1002": (24, 19298),
    "UPDATE t SET i = i + 1 WHERE i = 100": (24, 19299),
    "ALTER TABLE t ADD COLUMN added INTEGER DEFAULT 7": (24, 19299),
    "CALL ducklake_flush_inlined_data('lake')": (24, 19299),
    "CALL ducklake_merge_adjacent_files('lake')": (24, 19299),
    "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)": (24, 19299),
    "CALL ducklake_expire_snapshots('lake', older_than => now())": (24, 19299),
    "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)": (24, 19299),
    "TRUNCATE t": (0, None),
}


@pytest.fixture
def sessions(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[tuple[dl.Session, dl.Session]]:
    uri = lake_uri()
    with (
        dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as reader,
        dl.connect(uri, alias="lake") as writer,
    ):
        writer.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2), (3), (4)")
        yield reader, writer


@pytest.mark.every_catalog
@pytest.mark.slow
def test_what_another_session_commits_is_seen(sessions: tuple[dl.Session, dl.Session]) -> None:
    reader, writer = sessions
    assert reader.sql(COUNT).fetchall() == [(4, 10)]
    for change, expected in CHANGES.items():
        assert reader.sql(COUNT).fetchall() == reader.sql(COUNT).fetchall()
        writer.sql(change)
        assert reader.sql(COUNT).fetchall() == [expected], change


def test_a_transaction_reads_its_own_changes(sessions: tuple[dl.Session, dl.Session]) -> None:
    _, session = sessions
    assert session.sql(COUNT).fetchall() == [(4, 10)]
    session.sql("BEGIN; INSERT INTO t VALUES (10)")
    assert session.sql(COUNT).fetchall() == [(5, 20)]
    session.sql("ROLLBACK")
    assert session.sql(COUNT).fetchall() == [(4, 10)]


@pytest.mark.every_catalog
def test_a_catalog_changed_by_hand_is_read_again(sessions: tuple[dl.Session, dl.Session]) -> None:
    session, _ = sessions
    assert session.sql(COUNT).fetchall() == [(4, 10)]
    (table,) = session.sql("SELECT table_name FROM __ducklake_metadata_lake.ducklake_inlined_data_tables").fetchone()
    row_id = session.current_lake.version.inlined_columns[0]
    session.sql(f"DELETE FROM __ducklake_metadata_lake.{table} WHERE {row_id} = 0")
    assert session.sql(COUNT).fetchall() == [(3, 9)]


@pytest.mark.slow
def test_earlier_snapshots_are_read_as_they_are_now(sessions: tuple[dl.Session, dl.Session]) -> None:
    reader, writer = sessions
    at = writer.current_snapshot().snapshot_id
    query = f"SELECT count(*), sum(i) FROM t AT (VERSION => {at}) WHERE i >= 0"
    assert reader.sql(query).fetchall() == [(4, 10)]
    writer.sql("DELETE FROM t WHERE i = 1; CALL ducklake_flush_inlined_data('lake')")
    assert reader.sql(query).fetchall() == [(4, 10)]
    writer.sql("CALL ducklake_expire_snapshots('lake', older_than => now())")
    with pytest.raises(dl.SnapshotNotFoundError):
        reader.sql(query)
