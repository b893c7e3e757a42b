"""Every path that writes, reads or lists, on a store that fails: the right answer, or one line of ours and no change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import fs

import ducklake_lab as dl
from ducklake_lab import filesystems
from ducklake_lab.errors import DataFileError
from ducklake_lab.scan.read_cache import KeptReads
from ducklake_lab.storage import Storage

pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")

from tests.faulty_store import WRITES, FaultyStore, How, Kind, faulty_store, make_impatient

pytestmark = [pytest.mark.slow, pytest.mark.sampled(4)]
SECRET = "t0p-s3cret"
BIG = pa.table({"i": pa.array(range(5000, 5100), pa.int64()), "s": ["big"] * 100})
#: What writes files, each in a way of its own.
WRITING: dict[str, Callable[[dl.Session], object]] = {
    "INSERT": lambda s: s.sql("INSERT INTO t SELECT i, 'new' FROM range(1000, 1100) r(i)"),
    "INSERT by key": lambda s: s.sql("INSERT INTO p SELECT i % 3, 'new' FROM range(90) r(i)"),
    "write of pandas": lambda s: s.write(pd.DataFrame({"i": range(50), "s": ["x"] * 50}), "t"),
    "write of Arrow": lambda s: s.write(BIG, "t"),
    "overwrite": lambda s: s.write(BIG, "t", mode="overwrite"),
    "CTAS": lambda s: s.sql("CREATE TABLE fresh AS SELECT i FROM range(100) r(i)"),
    "COPY FROM": lambda s: s.sql("COPY t FROM 's3://faulty/in/rows.csv' (HEADER)"),
    "COPY TO CSV": lambda s: s.sql("COPY (FROM t) TO 's3://faulty/out/rows.csv' (HEADER)"),
    "COPY TO Parquet": lambda s: s.sql("COPY (FROM t) TO 's3://faulty/out/rows.parquet'"),
    "save": lambda s: s.table("t").view().save("s3://faulty/out/seen.csv"),
    "UPDATE": lambda s: s.sql("UPDATE t SET s = 'up' WHERE i < 50"),
    "DELETE": lambda s: s.sql("DELETE FROM t WHERE i % 3 = 0"),
    "DELETE by vector": lambda s: s.sql("DELETE FROM v WHERE i % 3 = 0"),
    "DELETE again": lambda s: s.sql("DELETE FROM d WHERE i % 5 = 0"),
    "MERGE": lambda s: s.sql(
        "MERGE INTO t USING (SELECT i FROM range(40, 140) r(i)) u ON t.i = u.i "
        "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT VALUES (u.i, 'm')"
    ),
    "merge_adjacent_files": lambda s: s.sql("CALL lake.merge_adjacent_files('t')"),
    "rewrite_data_files": lambda s: s.sql("CALL lake.rewrite_data_files('d', delete_threshold => 0)"),
    "flush_inlined_data": lambda s: s.sql("CALL lake.flush_inlined_data(table_name => 'n')"),
    "restore": lambda s: s.sql("CALL lake.restore('d', to => 9)"),
    "CHECKPOINT": lambda s: s.sql("CHECKPOINT lake"),
    "appender": lambda s: by_appender(s),
    "transaction": lambda s: in_transaction(s, "INSERT INTO t SELECT i, 'b' FROM range(2000, 2050) r(i)"),
}
#: What reads files, or looks for them.
READING: dict[str, Callable[[dl.Session], object]] = {
    "SELECT": lambda s: s.sql("SELECT count(s), sum(i)::BIGINT FROM t").fetchall(),
    "SELECT of deleted": lambda s: s.sql("SELECT count(s), sum(i)::BIGINT FROM d").fetchall(),
    "SELECT of a vector": lambda s: s.sql("SELECT count(s), sum(i)::BIGINT FROM v").fetchall(),
    "AT": lambda s: s.sql("SELECT count(s), sum(i)::BIGINT FROM d AT (VERSION => 10)").fetchall(),
    "diff": lambda s: s.table("d").diff(10, 11).patch(),
    "changes": lambda s: sorted(s.table("d").changes(9, 12).fetchall()),
}


def in_transaction(session: dl.Session, statement: str) -> None:
    with session.transaction():
        session.sql(statement)


def by_appender(session: dl.Session) -> None:
    with session.appender("t", rows=60) as appender:
        appender.extend(BIG)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyStore]:
    with faulty_store("faulty") as server:
        yield server


@pytest.fixture
def store(server: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyStore]:
    """The server, to clients that are impatient and try once."""
    make_impatient(monkeypatch)
    yield server
    filesystems._connect.cache_clear()


def opened(store: FaultyStore, folder: Path) -> dl.Session:
    session = dl.Session(engine="duckdb")
    session.sql(
        f"CREATE SECRET store (TYPE s3, KEY_ID 'k', SECRET '{SECRET}', REGION 'us-east-1', "
        f"ENDPOINT '{store.endpoint.removeprefix('http://')}', USE_SSL false)"
    )
    session.attach(f"ducklake:sqlite:{folder}/lake.sqlite", alias="lake", data_path=f"s3://faulty/{uuid4().hex}/")
    session.use("lake.main")
    return session


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a file is remembered: each statement asks for it."""
    monkeypatch.setattr(KeptReads, "read", lambda self, key, read: read())


@pytest.fixture
def session(store: FaultyStore, tmp_path: Path) -> Iterator[dl.Session]:
    """A lake of a table of small files, one with delete files, one with vectors, one by keys, one whose rows are inlined."""
    with opened(store, tmp_path) as session:
        session.sql("""
            CREATE TABLE t (i BIGINT, s VARCHAR); CREATE TABLE d (i BIGINT, s VARCHAR); CREATE TABLE v (i BIGINT, s VARCHAR);
            CREATE TABLE n (i BIGINT, s VARCHAR); CREATE TABLE p (i BIGINT, s VARCHAR);
            ALTER TABLE p SET PARTITIONED BY (i);
            INSERT INTO t SELECT i, 'a' FROM range(60) r(i); INSERT INTO t SELECT i, 'b' FROM range(60, 120) r(i);
            INSERT INTO d SELECT i, 'a' FROM range(200) r(i);
            DELETE FROM d WHERE i % 7 = 1; DELETE FROM d WHERE i % 11 = 2;
            CALL lake.set_option('write_deletion_vectors', true, table_name => 'v');
            INSERT INTO v SELECT i, 'a' FROM range(200) r(i);
            INSERT INTO n VALUES (1, 'x'), (2, 'y'); DELETE FROM n WHERE i = 2;
            COPY (SELECT i, 'c' AS s FROM range(300, 330) r(i)) TO 's3://faulty/in/rows.csv' (HEADER)
        """)
        yield session


def state(session: dl.Session) -> object:
    """The newest snapshot, the rows, and the files that the catalog names; all exist."""
    ((newest,),) = session.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
    listed = " UNION ALL ".join(f"FROM ducklake_list_files('lake', '{name}')" for name in "tdvnp")
    files = session.sql(f"SELECT data_file, delete_file FROM ({listed})").fetchall()
    sizes = Storage().sizes(path for row in files for path in row if path is not None)
    assert None not in sizes.values(), sizes
    rows = session.sql("""
        SELECT 't', s, count(*), sum(i)::BIGINT FROM t GROUP BY ALL UNION ALL FROM n SELECT 'n', s, count(*), sum(i)::BIGINT
        GROUP BY ALL UNION ALL FROM d SELECT 'd', 'a', count(*), sum(i)::BIGINT ORDER BY ALL
    """)
    return newest, sizes, rows.fetchall()


def folder(session: dl.Session) -> str:
    return str(session.sql("SELECT data_path FROM lake.settings()").fetchall()[0][0]).rstrip("/")


def refused(session: dl.Session, statement: Callable[[dl.Session], object]) -> None:
    """A statement fails with one line of ours, which names a file."""
    with pytest.raises(dl.DuckLakeError) as caught:
        statement(session)
    text = str(caught.value)
    assert isinstance(caught.value, DataFileError), repr(caught.value)
    assert "\n" not in text and SECRET not in text and "s3://faulty/" in text, text


@pytest.mark.parametrize("how", [403, 503, "lose"])
def test_a_refused_file_is_never_committed(session: dl.Session, store: FaultyStore, how: How) -> None:
    before = state(session)
    for name, statement in WRITING.items():
        print(name)  # shown with a failure
        with store.failing(*WRITES, how=how):
            refused(session, statement)
        assert store.failed
        assert state(session) == before


@pytest.mark.parametrize(("kind", "how"), [("GET", 503), ("GET", "drop"), ("GET", "cut"), ("HEAD", 403)])
def test_what_cannot_be_read_is_one_line(session: dl.Session, store: FaultyStore, kind: Kind, how: How) -> None:
    before = state(session)
    answers = {name: statement(session) for name, statement in READING.items()}
    for name, statement in READING.items():
        print(name)
        with store.failing(kind, how=how):
            refused(session, statement)
        assert store.failed
        assert statement(session) == answers[name]
    for name in ("COPY FROM", "UPDATE", "DELETE again", "MERGE", "merge_adjacent_files", "rewrite_data_files"):
        print(name)
        with store.failing(kind, how=how):
            refused(session, WRITING[name])
        assert state(session) == before


def test_what_cannot_be_listed_or_deleted_is_one_line(session: dl.Session, store: FaultyStore) -> None:
    orphans = "CALL lake.delete_orphaned_files(cleanup_all => true)"
    session.sql("CALL lake.merge_adjacent_files('t')")
    before = state(session)
    for how in (403, "drop", "cut"):
        with store.failing("LIST", how=how):  # type: ignore[arg-type]
            refused(session, lambda s: s.sql(orphans))
    Storage().upload(__file__, f"{folder(session)}/x.parquet")
    for statement in (orphans, "CALL lake.cleanup_old_files(cleanup_all => true)"):
        with store.failing("DELETE", how=403):
            refused(session, lambda s, text=statement: s.sql(text))
        assert state(session) == before
        assert session.sql(statement).fetchall() and not session.sql(statement).fetchall()
    assert state(session) == before
    # it is committed: what is left over of it is an orphan, not an error
    with store.failing("DELETE", how=403), session.transaction():
        session.sql("DELETE FROM t WHERE i < 40; DELETE FROM t WHERE i < 80")
    assert session.sql("SELECT count(s) FROM t").fetchall() == [(40,)]
    assert len(session.sql(orphans).fetchall()) == 1


def test_expiry_and_cleanup_of_all_that_is_old(session: dl.Session, store: FaultyStore) -> None:
    session.sql("CALL lake.merge_adjacent_files('t'); CALL lake.rewrite_data_files('d', delete_threshold => 0)")
    expire = "CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)"
    cleanup = "CALL lake.cleanup_old_files(cleanup_all => true)"
    before = state(session)
    with store.failing(*WRITES, "GET", "HEAD", "LIST", "DELETE", how=503):
        # this is the catalog's alone
        assert session.sql(expire).fetchall()
        refused(session, lambda s: s.sql(cleanup))
    assert state(session) == before
    for kind, how in (("HEAD", 403), ("DELETE", 403), ("DELETE", "drop"), ("DELETE", "lose")):
        with store.failing(kind, how=how):  # type: ignore[arg-type]
            refused(session, lambda s: s.sql(cleanup))
        assert store.failed and state(session) == before
    # what a lost answer has deleted is no error the next time
    assert session.sql(cleanup).fetchall() and not session.sql(cleanup).fetchall()
    assert state(session) == before
    assert session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)").fetchall() == []


def test_cleanup_looks_for_what_took_the_place(session: dl.Session, store: FaultyStore) -> None:
    rows = session.sql("FROM t ORDER BY ALL").fetchall()
    cleanup = "CALL lake.cleanup_old_files(cleanup_all => true, dry_run => {})"
    assert len(session.sql(cleanup.format(False)).fetchall()) == 1  # the first delete file of d
    with store.failing(*WRITES, how=503):
        refused(session, lambda s: s.sql("CALL lake.merge_adjacent_files('t')"))
    assert session.sql(cleanup.format(False)).fetchall() == []
    assert session.sql("FROM t ORDER BY ALL").fetchall() == rows

    session.sql("CALL lake.merge_adjacent_files('t')")
    ((merged, size),) = session.sql(
        "SELECT data_file, data_file_size_bytes FROM ducklake_list_files('lake', 't')"
    ).fetchall()
    with Storage().open_input(merged) as source:
        whole = source.read()
    for left in (None, whole[:-1]):
        Storage().delete([merged])
        if left is not None:
            with Storage().open_output(merged) as sink:
                sink.write(left)
        said = "does not exist" if left is None else f"has {size - 1:,} bytes rather than {size:,}"
        for dry in (True, False):
            with pytest.raises(DataFileError, match=rf"main\.t needs the file {merged}, which {said}"):
                session.sql(cleanup.format(dry))
    Storage().delete([merged])
    with Storage().open_output(merged) as sink:
        sink.write(whole)
    assert len(session.sql(cleanup.format(False)).fetchall()) == 2
    assert session.sql("FROM t ORDER BY ALL").fetchall() == rows


def test_files_that_vanish_before_the_commit(session: dl.Session) -> None:
    before, known = state(session), set(Storage().list_files(folder(session)))
    for name in ("INSERT", "DELETE", "DELETE by vector", "UPDATE", "flush_inlined_data", "rewrite_data_files"):
        print(name)
        session.sql("BEGIN")
        WRITING[name](session)
        written = set(Storage().list_files(folder(session))) - known
        assert written
        Storage().delete(written)
        with pytest.raises(DataFileError, match=r"commit would name the file .* does not exist; nothing was committed"):
            session.sql("COMMIT")
        assert state(session) == before


def test_a_large_file_is_refused_at_any_of_its_requests(
    store: FaultyStore, session: dl.Session, tmp_path: Path
) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(range(256)) * (12 << 12))
    storage, path = Storage(), f"{folder(session)}/large"
    for kind in ("BEGIN", "PART", "END"):
        for how in (403, "drop", "lose"):
            with store.failing(kind, how=how), pytest.raises(DataFileError, match=f"{path} cannot be written"):  # type: ignore[arg-type]
                storage.upload(str(large), path)
            assert not storage.exists(path)
            assert path.removeprefix("s3://faulty/") not in store.uploads("faulty")
    storage.upload(str(large), path)
    with store.failing("PUT", how=403), pytest.raises(DataFileError):
        storage.upload(__file__, path, is_new=False)
    with storage.local_copy(path) as copy:
        assert Path(copy).read_bytes() == large.read_bytes()


def test_uploads_of_others_are_not_aborted(store: FaultyStore, session: dl.Session, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(12 << 20))
    storage, key = Storage(), f"{folder(session).removeprefix('s3://faulty/')}/a b+ü.parquet"
    path = f"s3://faulty/{key}"
    others = [store.client().create_multipart_upload(Bucket="faulty", Key=name) for name in (f"{key}2", key[:-1])]
    with store.failing("PART", how=403), pytest.raises(DataFileError):
        storage.upload(str(large), path)
    assert sorted(store.uploads("faulty")) == sorted(other["Key"] for other in others)
    # somebody else may be writing a file whose name was given
    for kinds, is_new in ((("PART",), False), (("PART", "ABORT"), True), (("PART", "UPLOADS"), True)):
        with store.failing(*kinds, how=403), pytest.raises(DataFileError, match="fails UploadPart"):  # type: ignore[arg-type]
            storage.upload(str(large), path, is_new=is_new)
    assert store.uploads("faulty").count(key) == 3


def test_no_parts_stay_of_a_refused_data_file(session: dl.Session, store: FaultyStore) -> None:
    before, begun = state(session), store.uploads("faulty")
    with store.failing("END", how=503):
        refused(session, lambda s: s.sql("INSERT INTO t SELECT i, sha256(i::VARCHAR) FROM range(400_000) r(i)"))
    assert store.failed and store.uploads("faulty") == begun
    assert state(session) == before


@pytest.mark.parametrize("how", [503, "drop", "lose", "slow"])
def test_what_fails_once_is_tried_again(
    session: dl.Session, store: FaultyStore, how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = filesystems._one_request()
    patient = {**quick, "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=3)}
    monkeypatch.setattr(filesystems, "_one_request", lambda: patient)
    filesystems._connect.cache_clear()
    with store.failing("PUT", how=how, times=1):
        session.sql("INSERT INTO t SELECT i, 'new' FROM range(1000, 1100) r(i)")
    with store.failing("GET", "HEAD", how=how, times=1):
        assert session.sql("SELECT count(s), sum(i)::BIGINT FROM t").fetchall() == [(220, 7140 + 104950)]
    assert store.failed == 1
    state(session)


def test_a_store_that_does_not_answer(session: dl.Session, store: FaultyStore) -> None:
    before = state(session)
    with store.failing("PUT", how="hang", seconds=2.5):
        refused(session, WRITING["INSERT"])
    with store.failing("GET", how="hang", seconds=2.5):
        refused(session, READING["SELECT"])
    assert state(session) == before


def test_many_files_are_looked_for_by_their_folder(
    session: dl.Session, store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ducklake_lab.storage._FEW", 4)
    storage, place = Storage(), f"{folder(session)}/many/"
    paths = [f"{place}{i}" for i in range(6)] + [f"{place}k={i}/x" for i in range(2)]
    for path in paths:
        storage.upload(__file__, path)
    size = Path(__file__).stat().st_size
    for below, requests in (((), {"LIST": 1, "HEAD": 2}), ((place,), {"LIST": 1})):
        store.requests.clear()
        assert storage.sizes(paths, *below) == dict.fromkeys(paths, size)
        assert dict(store.requests) == requests
    assert storage.sizes([*paths, f"{place}none"], place)[f"{place}none"] is None
    with store.failing("LIST", how=403), pytest.raises(DataFileError, match="cannot be listed"):
        storage.sizes(paths, place)
    store.requests.clear()
    session.sql("INSERT INTO p SELECT i % 6, 'new' FROM range(90) r(i)")
    session.sql("CALL lake.merge_adjacent_files('t')")
    session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
    state(session)
