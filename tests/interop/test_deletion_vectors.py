"""Deletion vectors of both writers, read by both at every snapshot, and changed by either after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.model.deletion_vectors import decode, encode
from ducklake_lab.scan import positions
from ducklake_lab.scan.read_cache import KeptReads
from tests.interop.comparing import attach, detach, our_history, reference_history

pytestmark = pytest.mark.sampled(5)

_META = "__ducklake_metadata_lake"


def _delete_files(reference: duckdb.DuckDBPyConnection, uri: str, *, live: bool = True) -> list[tuple[Any, ...]]:
    attach(reference, uri)
    ended = "WHERE end_snapshot IS NULL" if live else ""
    try:
        return reference.execute(
            f"SELECT format, delete_count, begin_snapshot, end_snapshot, footer_size, partial_max "
            f"FROM {_META}.ducklake_delete_file {ended} ORDER BY delete_file_id"
        ).fetchall()
    finally:
        detach(reference)


def _deletions(session: dl.Session, first: int, last: int) -> list[tuple[Any, ...]]:
    return sorted(session.sql(f"SELECT * FROM lake.table_deletions('t', {first}, {last})").fetchall())


def _their_deletions(reference: duckdb.DuckDBPyConnection, uri: str, at: int) -> list[tuple[Any, ...]]:
    attach(reference, uri)
    try:
        return sorted(reference.execute(f"SELECT * FROM lake.table_deletions('t', {at}, {at})").fetchall())
    finally:
        detach(reference)


def test_ours_keep_every_snapshot(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    session = dl.Session(engine="duckdb")
    session.attach(uri, alias="lake", data_path=f"{tmp_path}/data", write_deletion_vectors=True)
    session.use("lake")
    for sql in (
        "CREATE TABLE t AS SELECT i FROM range(13000) AS r(i)",
        "INSERT INTO t SELECT 500000 + i FROM range(100) AS r(i)",
        "DELETE FROM t WHERE i % 3 = 0",  # 3: a vector for each file
        "DELETE FROM t WHERE i IN (1, 2)",  # 4: inlined
        "DELETE FROM t WHERE i < 100 OR i >= 500050",  # 5: of one file a vector cannot say when 1 and 2 went
        "DELETE FROM t WHERE i BETWEEN 500000 AND 500030",  # 6: the second vector after a vector
    ):
        session.sql(sql)
    assert _delete_files(reference, uri, live=False) == [
        ("puffin", 33, 3, 5, 0, None),
        ("parquet", 4334 + 64, 3, None, _delete_files(reference, uri)[0][4], 5),
        ("puffin", 67, 5, 6, 0, None),
        ("puffin", 67 + 21, 6, None, 0, None),
    ]
    with session.transaction():
        session.sql("DELETE FROM t WHERE i BETWEEN 1000 AND 1050")
        session.sql("DELETE FROM t WHERE i BETWEEN 500031 AND 500049 AND i % 2 = 0")
        assert session.sql("SELECT count(*) FROM t WHERE i >= 500000").fetchall() == [(6,)]
    expected = reference_history(reference, uri)
    assert our_history(session, "duckdb") == expected
    newest = session.current_snapshot().snapshot_id
    for at in (3, 5, 6):
        assert _deletions(session, at, at) == _their_deletions(reference, uri, at)
    # it shows inlined deletions once for every delete file that there was
    assert _deletions(session, 7, 7) == sorted(set(_their_deletions(reference, uri, 7)))
    gone = _deletions(session, 3, newest)
    assert len(gone) == len(set(gone)) == 13100 - len(expected[newest, '"main"."t"'])

    # maintenance: what is inlined joins the history of the file, and what is rewritten needs no vector any more
    session.sql("DELETE FROM t WHERE i = 500031")
    session.sql("CALL lake.flush_inlined_data()")
    assert {row[0] for row in _delete_files(reference, uri)} == {"parquet"}
    assert our_history(session, "duckdb") == reference_history(reference, uri)
    assert _deletions(session, 3, newest) == gone
    session.sql("DELETE FROM t WHERE i > 9000")
    session.sql("CALL lake.rewrite_data_files('t', delete_threshold => 0.3)")
    history = our_history(session, "duckdb")
    assert history == reference_history(reference, uri)
    session.sql("CALL lake.expire_snapshots(older_than => now())")
    session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
    assert not list((tmp_path / "data").rglob("*-delete.*"))
    (kept,) = our_history(session, "duckdb").values()
    assert kept == history[max(history)]


def test_theirs(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    reference.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/data', WRITE_DELETION_VECTORS true); USE lake")
    for sql in (
        "CREATE TABLE t AS SELECT i FROM range(10000) AS r(i)",
        "DELETE FROM t WHERE i % 5 = 0 OR i < 4500",
        "CREATE TABLE u AS SELECT i FROM range(200) AS r(i)",
        "DELETE FROM u WHERE i < 50",
        "DELETE FROM u WHERE i = 60",
    ):
        reference.execute(sql)
    detach(reference)
    session = dl.connect(uri, alias="lake", engine="duckdb")
    expected = reference_history(reference, uri)
    assert our_history(session, "duckdb") == expected
    assert _deletions(session, 2, 2) == _their_deletions(reference, uri, 2)

    blob = max((tmp_path / "data" / "main" / "t").glob("*.puffin")).read_bytes()
    assert encode(decode(blob)) == blob

    # ours on top of theirs, then theirs on top of ours
    session.sql("CALL lake.set_option('write_deletion_vectors', true, table_name => 't')")
    for table, first in (("t", 9101), ("u", 101)):
        session.sql(f"DELETE FROM {table} WHERE i BETWEEN {first} AND {first + 39}")
    assert [row[0] for row in _delete_files(reference, uri)] == ["puffin", "parquet"]
    assert our_history(session, "duckdb") == reference_history(reference, uri)
    session.sql("DELETE FROM t WHERE i = 9171")
    attach(reference, uri)
    reference.execute("DELETE FROM t WHERE i = 9172")
    reference.execute("CALL ducklake_flush_inlined_data('lake')")
    detach(reference)
    history = reference_history(reference, uri)
    assert our_history(session, "duckdb") == history
    assert all(history[key] == rows for key, rows in expected.items())
    attach(reference, uri)
    reference.execute("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
    reference.execute("CALL ducklake_merge_adjacent_files('lake')")
    reference.execute("CALL ducklake_expire_snapshots('lake', versions => [2, 3, 4, 5])")
    reference.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    detach(reference)
    newest = max(snapshot for snapshot, _ in history)
    for (snapshot, name), rows in our_history(session, "duckdb").items():
        assert [row[2:] for row in rows] == [row[2:] for row in history[min(snapshot, newest), name]]


def test_a_damaged_vector_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = dl.Session(engine="duckdb")
    session.attach(
        f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data", write_deletion_vectors=True
    )
    session.use("lake")
    session.sql("CREATE TABLE t AS SELECT i FROM range(100) AS r(i)")
    session.sql("DELETE FROM t WHERE i < 50")
    (vector,) = (tmp_path / "data").rglob("*.puffin")
    vector.write_bytes(vector.read_bytes()[:-2] + b"ab")
    # the writer of a file does not read it back
    monkeypatch.setattr(positions, "_kept", KeptReads(1 << 20, positions._size))
    with pytest.raises(dl.DataFileError, match=r"-delete\.puffin cannot be read: its length or checksum is wrong"):
        session.sql("SELECT * FROM t").fetchall()
