"""Expiry and cleanup by the reference and by us: the same metadata, the same files left, the same rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, metadata, our_history, reference_history

pytestmark = pytest.mark.sampled(5)

HISTORY = [
    "CREATE TABLE t (i INTEGER, s VARCHAR)",
    "INSERT INTO t SELECT i, 'a' FROM range(20) AS r(i)",
    "INSERT INTO t VALUES (100, 'few')",
    "DELETE FROM t WHERE i < 15",
    "CREATE SCHEMA s",
    "CREATE TABLE s.gone (i INTEGER)",
    "INSERT INTO s.gone VALUES (1)",
    "INSERT INTO s.gone SELECT i FROM range(20) AS r(i)",
    "DELETE FROM s.gone WHERE i < 12",
    "DELETE FROM s.gone WHERE i = 13",
    "CREATE VIEW v AS SELECT 1 AS x",
    "DROP VIEW v",
    "DROP TABLE s.gone",
    "DROP SCHEMA s",
    "INSERT INTO t SELECT i, 'b' FROM range(200, 220) AS r(i)",
    "INSERT INTO t SELECT i, 'b' FROM range(220, 240) AS r(i)",
    "ALTER TABLE t RENAME TO u",
    "DELETE FROM u WHERE i < 100",
]
SCRIPTS = {
    "expire some": [*HISTORY, "CALL ducklake_expire_snapshots('lake', versions => [2, 4, 5, 8])"],
    "expire most": [*HISTORY, "CALL ducklake_expire_snapshots('lake', versions => range(0, 18))"],
    "expire by time": [*HISTORY, "CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)"],
    "expire empty inlined tables": [
        "CREATE TABLE u (i INTEGER)",
        "ALTER TABLE u ADD COLUMN j INTEGER",
        "ALTER TABLE u ADD COLUMN k INTEGER",
        "CHECKPOINT lake",
        "CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)",
    ],
    "expire with empty inlined tables": [
        "CREATE TABLE u (i INTEGER)",
        "ALTER TABLE u ADD COLUMN j INTEGER",
        "CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)",
    ],
    "flush nothing": [
        "CREATE TABLE u (i INTEGER)",
        "ALTER TABLE u ADD COLUMN j INTEGER",
        "CALL ducklake_flush_inlined_data('lake')",
    ],
    "expire and clean up": [
        *HISTORY,
        "CALL ducklake_expire_snapshots('lake', versions => range(0, 17))",
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    ],
    "merge and clean up": [
        *HISTORY,
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_cleanup_old_files('lake')",
        "CALL ducklake_cleanup_old_files('lake', older_than => now() + INTERVAL 1 DAY)",
        "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",
    ],
    "checkpoint": [*HISTORY, "INSERT INTO u VALUES (1, 'x')", "CHECKPOINT lake"],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_metadata_and_files_equal_the_references(
    script: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    attach(reference, f"ducklake:{tmp_path}/theirs.ducklake", data_path=tmp_path / "theirs")
    results = [
        len(reference.execute(statement).fetchall()) if statement.startswith("CALL") else reference.execute(statement)
        for statement in SCRIPTS[script]
    ]
    detach(reference)
    uri = f"ducklake:{tmp_path}/ours.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/ours", engine="duckdb") as session:
        for statement, expected in zip(SCRIPTS[script], results, strict=True):
            result = session.sql(statement)
            if isinstance(expected, int):
                assert len(result) == expected, statement
        assert not session.spark_started
        history = our_history(session, "duckdb")
    theirs, ours = metadata(reference, f"ducklake:{tmp_path}/theirs.ducklake"), metadata(reference, uri)
    assert ours.keys() == theirs.keys()
    for table, rows in theirs.items():
        assert ours[table] == rows, table
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")
    newest = max(snapshot for snapshot, _ in history)
    expected_history = newest_rows(reference, uri, newest)
    assert {key: rows for key, rows in history.items() if key[0] == newest} == expected_history


def newest_rows(reference: duckdb.DuckDBPyConnection, uri: str, newest: int) -> dict[Any, Any]:
    attach(reference, uri)
    try:
        rows = reference.execute("SELECT rowid, snapshot_id, * FROM u").fetchall()
    finally:
        detach(reference)
    return {(newest, '"main"."u"'): sorted((list(row) for row in rows), key=lambda row: row[0])}


def files(folder: Path) -> dict[str, int]:
    """Count the data and delete files in each folder."""
    counts: dict[str, int] = {}
    for path in folder.rglob("*.parquet"):
        kind = f"{path.parent.relative_to(folder)}/{'delete' if path.name.endswith('-delete.parquet') else 'data'}"
        counts[kind] = counts.get(kind, 0) + 1
    return counts


@pytest.fixture
def session(tmp_path: Path) -> Any:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session
        assert not session.spark_started


def test_a_dry_run_changes_nothing(session: dl.Session, tmp_path: Path) -> None:
    for statement in HISTORY:
        session.sql(statement)
    orphan = tmp_path / "data/main/orphan.parquet"
    orphan.write_bytes(b"")
    (tmp_path / "data/notes.txt").write_text("mine")
    before = [path for path in tmp_path.rglob("*") if path.suffix != ".wal"]
    found = session.sql("CALL lake.expire_snapshots(versions => [2, 3], dry_run => true)").fetchall()
    assert [row[0] for row in found] == [2, 3]
    assert len(session.snapshots()) == len(HISTORY) + 1
    listed = session.sql("CALL lake.delete_orphaned_files(dry_run => true, cleanup_all => true)").fetchall()
    assert listed == [(str(orphan),)]
    session.sql("CALL lake.merge_adjacent_files()")
    scheduled = session.sql("CALL lake.cleanup_old_files(dry_run => true, cleanup_all => true)").fetchall()
    assert scheduled
    assert set(before) <= set(tmp_path.rglob("*"))
    assert session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)").fetchall() == listed
    assert not orphan.exists()
    assert (tmp_path / "data/notes.txt").exists()


def test_young_files_are_kept(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t AS SELECT i FROM range(20) AS r(i)")
    (tmp_path / "data/main/t/orphan.parquet").write_bytes(b"")
    assert session.sql("CALL lake.delete_orphaned_files()").fetchall() == []
    old = datetime.now(UTC) - timedelta(days=1)
    assert session.sql("CALL lake.delete_orphaned_files(older_than => :old)", params={"old": old}).fetchall() == []
    with pytest.raises(dl.DuckLakeError, match="not both"):
        session.sql("CALL lake.cleanup_old_files(cleanup_all => true, older_than => now())")
    with pytest.raises(dl.DuckLakeError, match="not both"):
        session.sql("CALL lake.expire_snapshots(versions => [1], older_than => now())")


def test_nothing_outside_and_nothing_live_is_deleted(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t AS SELECT i FROM range(20) AS r(i)")
    (live,) = (tmp_path / "data").rglob("*.parquet")
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(b"")
    session.close()
    with duckdb.connect(f"{tmp_path}/lake.ducklake") as catalog:
        for number, (path, relative) in enumerate(
            [(str(live), False), ("main/t/" + live.name, True), (str(outside), False), ("../outside.parquet", True)]
        ):
            catalog.execute(
                "INSERT INTO ducklake_files_scheduled_for_deletion VALUES (?, ?, ?, now() - INTERVAL 9 DAY)",
                [100 + number, path, relative],
            )
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="duckdb") as again:
        assert again.sql("CALL lake.cleanup_old_files(cleanup_all => true)").fetchall() == []
        assert again.sql("SELECT count(*) FROM t").fetchall() == [(20,)]
    assert live.exists() and outside.exists()


def test_files_behind_links_are_kept(session: dl.Session, tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    session.sql("CREATE TABLE t AS SELECT i FROM range(20) AS r(i)")
    session.close()
    folder = tmp_path / "data/main/t"
    (tmp_path / "outside").mkdir()
    outside = tmp_path / "outside/theirs.parquet"
    outside.write_bytes(b"")
    orphan = folder / "orphan.parquet"
    orphan.write_bytes(b"")
    (tmp_path / "data/link").symlink_to(tmp_path / "outside")
    (tmp_path / "data/again").symlink_to(tmp_path / "data/main")
    (folder / "one.parquet").symlink_to(outside)
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    call = "CALL ducklake_delete_orphaned_files('lake', dry_run => true, cleanup_all => true)"
    attach(reference, uri)
    expected = reference.execute(call).fetchall()
    detach(reference)
    assert expected == [(str(orphan),)]
    with dl.connect(uri, alias="lake", engine="duckdb") as again:
        assert again.sql(call).fetchall() == expected
        assert again.sql("CALL lake.delete_orphaned_files(cleanup_all => true)").fetchall() == expected
        assert again.sql("SELECT count(*) FROM t").fetchall() == [(20,)]
    assert outside.exists() and (folder / "one.parquet").is_symlink() and not orphan.exists()


def test_a_file_that_is_known_by_a_path_through_a_link_is_kept(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t AS SELECT i FROM range(20) AS r(i)")
    (live,) = (tmp_path / "data").rglob("*.parquet")
    session.close()
    (tmp_path / "data/again").symlink_to(tmp_path / "data/main")
    with duckdb.connect(f"{tmp_path}/lake.ducklake") as catalog:
        # the table's own folder is named by way of the link
        catalog.execute("UPDATE ducklake_schema SET path = 'again/'")
        catalog.execute(
            "INSERT INTO ducklake_files_scheduled_for_deletion VALUES (100, ?, true, now() - INTERVAL 9 DAY)",
            [f"main/t/{live.name}"],
        )
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="duckdb") as again:
        assert again.sql("CALL lake.cleanup_old_files(cleanup_all => true)").fetchall() == []
        assert again.sql("CALL lake.delete_orphaned_files(cleanup_all => true)").fetchall() == []
        assert again.sql("SELECT count(*) FROM t").fetchall() == [(20,)]


def test_scheduled_files_behind_links_are_kept(session: dl.Session, tmp_path: Path) -> None:
    session.close()
    (tmp_path / "outside").mkdir()
    outside = tmp_path / "outside/theirs.parquet"
    outside.write_bytes(b"")
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data/link").symlink_to(tmp_path / "outside")
    with duckdb.connect(f"{tmp_path}/lake.ducklake") as catalog:
        catalog.execute(
            "INSERT INTO ducklake_files_scheduled_for_deletion"
            " VALUES (100, 'link/theirs.parquet', true, now() - INTERVAL 9 DAY)"
        )
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="duckdb") as again:
        assert again.sql("CALL lake.cleanup_old_files(cleanup_all => true)").fetchall() == []
    assert outside.exists()


@pytest.mark.every_catalog
def test_on_every_catalog(lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        for statement in HISTORY:
            session.sql(statement)
        session.sql("INSERT INTO u VALUES (1, 'x'); DELETE FROM u WHERE i = 210; CALL lake.flush_inlined_data()")
        session.sql("CALL lake.merge_adjacent_files(); CALL lake.rewrite_data_files(delete_threshold => 0)")
        expected = our_history(session, "duckdb")
        assert reference_history(reference, uri) == expected
        last = session.current_snapshot().snapshot_id
        session.sql("CALL lake.expire_snapshots(versions => [3, 5, 9, 11])")
        session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
        session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)")
        left = our_history(session, "duckdb")
        assert left == {key: rows for key, rows in expected.items() if key[0] not in (3, 5, 9, 11)}
        session.sql("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
        session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
        assert our_history(session, "duckdb") == {key: rows for key, rows in expected.items() if key[0] == last}
        session.sql("CHECKPOINT")


def test_a_client_that_was_there_before_goes_on_reading_after_an_expiry(
    lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection, catalog: str
) -> None:
    if catalog == "duckdb":
        pytest.skip("the reference holds the file of its catalog")
    uri = lake_uri()
    attach(reference, uri, data_path=tmp_path / "data")
    reference.execute("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN j INTEGER")
    reference.execute("CALL ducklake_flush_inlined_data('lake')")
    reference.execute("ALTER TABLE t ADD COLUMN k INTEGER; INSERT INTO t VALUES (2, 3, 4)")
    assert len(reference.execute("FROM t").fetchall()) == 2
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.sql("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)").fetchall()
    assert sorted(reference.execute("SELECT i, j, k FROM t").fetchall()) == [(1, None, None), (2, 3, 4)]
