"""Paths that write, read or list on a Google store that fails: the right answer, or one line of ours and no change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pyarrow import fs

import ducklake_lab as dl
from ducklake_lab import filesystems
from ducklake_lab.errors import DataFileError
from ducklake_lab.scan.read_cache import KeptReads
from ducklake_lab.storage import Storage
from tests.faulty_google_store import WRITES, FaultyGoogleStore, How, Kind, faulty_google_store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(4),
    pytest.mark.skipif(not hasattr(fs, "GcsFileSystem"), reason="pyarrow has no client of Google's store here"),
]
WRITING = (
    "INSERT INTO t SELECT i, 'new' FROM range(1000, 1100) r(i)",
    "CREATE TABLE fresh AS SELECT i FROM range(100) r(i)",
    "COPY (FROM t) TO 'gs://faulty/out/rows.parquet'",
    "UPDATE t SET s = 'up' WHERE i < 100",
    "DELETE FROM t WHERE i % 3 = 0",
    "MERGE INTO t USING (SELECT i FROM range(40, 140) r(i)) u ON t.i = u.i "
    "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT VALUES (u.i, 'm')",
    "CALL lake.merge_adjacent_files('t')",
    "CALL lake.restore('t', to => 2)",
)
READING = (
    "SELECT count(s), sum(i)::BIGINT FROM t",
    "SELECT sum(i)::BIGINT FROM t AT (VERSION => 3)",
    "FROM lake.table_changes('t', 2, 4)",
)


@pytest.fixture(scope="module")
def store() -> Iterator[FaultyGoogleStore]:
    with faulty_google_store() as store:
        yield store


@pytest.fixture
def session(store: FaultyGoogleStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dl.Session]:
    """A lake in the store, to a client that tries for a second."""
    quick = timedelta(seconds=1)
    google = fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=store.endpoint, retry_time_limit=quick)
    connect = filesystems._connect
    monkeypatch.setattr(
        filesystems, "_connect", lambda scheme, *rest: google if scheme == "gs" else connect(scheme, *rest)
    )
    # nothing of a file is remembered: each statement asks for it
    monkeypatch.setattr(KeptReads, "read", lambda self, key, read: read())
    place = f"gs://faulty/{uuid4().hex}/"
    with dl.connect(f"ducklake:sqlite:{tmp_path}/l.sqlite", alias="lake", data_path=place, engine="duckdb") as session:
        session.sql("""
            CREATE TABLE t (i BIGINT, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(60) r(i);
            INSERT INTO t SELECT i, 'b' FROM range(60, 120) r(i); DELETE FROM t WHERE i < 40;
            INSERT INTO t SELECT i, 'c' FROM range(120, 180) r(i)
        """)
        yield session


def state(session: dl.Session) -> object:
    """The newest snapshot, the rows, and the files that the catalog names; all exist."""
    files = session.sql("SELECT data_file, delete_file FROM ducklake_list_files('lake', 't')").fetchall()
    sizes = Storage().sizes(path for row in files for path in row if path is not None)
    assert None not in sizes.values(), sizes
    rows = session.sql("SELECT s, count(*), sum(i)::BIGINT FROM t GROUP BY ALL ORDER BY ALL").fetchall()
    return session.current_snapshot().snapshot_id, sizes, rows


def refused(act: Callable[[], object]) -> None:
    """A statement fails with one line of ours, which names a file."""
    with pytest.raises(DataFileError) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text and "gs://faulty/" in text and "google::" not in text and "error_info" not in text, text


@pytest.mark.parametrize("how", [403, 503, "drop", "lose"])
def test_a_refused_file_is_never_committed(session: dl.Session, store: FaultyGoogleStore, how: How) -> None:
    before = state(session)
    for statement in WRITING if how == 403 else WRITING[:2]:
        print(statement)  # shown with a failure
        with store.failing(*WRITES, how=how):
            refused(lambda text=statement: session.sql(text))
        assert store.failed
        assert state(session) == before
    for statement in WRITING[:-1]:
        session.sql(statement)
    state(session)


@pytest.mark.parametrize(
    ("kind", "how"), [("READ", 403), ("READ", 503), ("READ", "cut"), ("STAT", 403), ("STAT", "cut")]
)
def test_what_cannot_be_read_is_one_line(session: dl.Session, store: FaultyGoogleStore, kind: Kind, how: How) -> None:
    before = state(session)
    for statement in READING if how == 403 else READING[:1]:
        print(statement)
        rows = session.sql(statement).fetchall()
        with store.failing(kind, how=how):
            refused(lambda text=statement: session.sql(text).fetchall())
        assert store.failed
        assert session.sql(statement).fetchall() == rows
    with store.failing(kind, how=how):
        refused(lambda: session.sql("UPDATE t SET s = 'up' WHERE i < 100"))
    assert state(session) == before


def test_what_cannot_be_listed_or_deleted_is_one_line(session: dl.Session, store: FaultyGoogleStore) -> None:
    orphans = "CALL lake.delete_orphaned_files(cleanup_all => true)"
    before = state(session)
    for how in (403, "cut"):
        with store.failing("LIST", how=how):  # type: ignore[arg-type]
            refused(lambda: session.sql(orphans))
    Storage().upload(__file__, f"{session.current_lake.data_path}x.parquet")
    with store.failing("DELETE", how=403):
        refused(lambda: session.sql(orphans))
    assert len(session.sql(orphans).fetchall()) == 1 and not session.sql(orphans).fetchall()
    assert state(session) == before


def test_large_files_are_refused_at_any_request(session: dl.Session, store: FaultyGoogleStore, tmp_path: Path) -> None:
    large, path, storage = tmp_path / "large", f"{session.current_lake.data_path}large", Storage()
    large.write_bytes(bytes(range(256)) * (10 << 12))
    for kind in ("BEGIN", "SEND"):
        for how in (403, "lose"):
            with store.failing(kind, how=how):  # type: ignore[arg-type]
                refused(lambda: storage.upload(str(large), path))
            assert not storage.exists(path)
    storage.upload(str(large), path)
    with storage.local_copy(path) as copy:
        assert Path(copy).read_bytes() == large.read_bytes()
