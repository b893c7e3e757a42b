"""Branches on a store that fails at any request: lake and branch are as before or as after, and one line of ours says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import ducklake_lab as dl
from ducklake_lab import filesystems
from ducklake_lab.errors import DataFileError
from ducklake_lab.scan.read_cache import KeptReads
from ducklake_lab.storage import Storage

pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")

from tests.faulty_store import REQUESTS, FaultyStore, How, faulty_store, make_impatient

pytestmark = [pytest.mark.slow, pytest.mark.sampled(6)]
SECRET = "t0p-s3cret"
#: What asks the store, each in a way of its own. `early` is a snapshot at which a delete file has later deletions.
OPERATIONS: dict[str, Callable[[dl.Session], object]] = {
    "branch": lambda s: s.branch("new"),
    "branch at": lambda s: s.branch("new", at="early"),
    "branch copy": lambda s: s.branch("new", copy=True),
    "drop": lambda s: s.drop_branch("fix"),
    "drop copy": lambda s: s.drop_branch("copied"),
    "merge": lambda s: s.merge("fix"),
    "merge copy": lambda s: s.merge("copied"),
    "pick": lambda s: s.cherry_pick("fix", rows={"t": [300, 301]}),
    "rebase": lambda s: s.rebase("fix"),
    "rebase copy": lambda s: s.rebase("copied"),
    "review": lambda s: s.review("fix").to_json(),
}
#: How requests fail, and how often: None for each one from the first that fails.
HOWS: dict[How, int | None] = {403: None, 500: 1, 503: None, "drop": 1, "lose": 1}
#: Most requests of one operation.
MOST = 200
#: Seconds that a client waits; a busy machine is no fault.
PATIENT = 30


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyStore]:
    with faulty_store("faulty") as server:
        yield server


@pytest.fixture
def store(server: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyStore]:
    make_impatient(monkeypatch, PATIENT)
    # nothing of a file is remembered: each operation asks for it
    monkeypatch.setattr(KeptReads, "read", lambda self, key, read: read())
    yield server
    filesystems._connect.cache_clear()


@pytest.fixture
def lake(store: FaultyStore, tmp_path: Path) -> Callable[[], dl.Session]:
    """Makes sessions, each with a lake of its own and the branches `fix`, which shares files, and `copied`."""

    def make() -> dl.Session:
        name = uuid4().hex
        session = dl.Session(engine="duckdb")
        session.sql(
            f"CREATE SECRET store (TYPE s3, KEY_ID 'k', SECRET '{SECRET}', REGION 'us-east-1', "
            f"ENDPOINT '{store.endpoint.removeprefix('http://')}', USE_SSL false)"
        )
        session.attach(f"ducklake:sqlite:{tmp_path}/{name}.sqlite", alias="lake", data_path=f"s3://faulty/{name}/data/")
        session.use("lake.main")
        session.sql("""
            CALL lake.set_option('data_inlining_row_limit', '0');
            CREATE TABLE t AS SELECT i, 's' || i AS s FROM range(200) r(i);
            INSERT INTO t SELECT i, 's' || i FROM range(200, 400) r(i);
            DELETE FROM t WHERE i < 20
        """)
        session.tag("early")
        session.sql("DELETE FROM t WHERE i BETWEEN 20 AND 39")
        session.branch("fix")
        session.branch("copied", copy=True)
        for branch in ("fix", "copied"):
            session.switch(branch)
            session.sql("""
                UPDATE t SET s = 'branch' WHERE i BETWEEN 300 AND 320; DELETE FROM t WHERE i = 50;
                INSERT INTO t SELECT i, 'came' FROM range(2000, 2100) r(i); CREATE TABLE u AS FROM range(400) r(i)
            """)
        session.switch(None)
        session.sql("UPDATE t SET s = 'lake' WHERE i BETWEEN 100 AND 110")
        return session

    return make


def state(session: dl.Session) -> dict[str | None, object]:
    """The snapshot, the tables and their rows on each branch and in the lake; all files are there."""
    found: dict[str | None, object] = {}
    for name in (None, *(str(row["branch"]) for row in session.branches())):
        session.switch(name)
        tables = sorted(info.table.name for info in session.tables())
        files = [
            row
            for table in tables
            for row in session.sql(
                f"SELECT data_file, delete_file FROM ducklake_list_files('lake', '{table}')"
            ).fetchall()
        ]
        sizes = Storage().sizes(path for row in files for path in row if path is not None)
        assert None not in sizes.values(), (name, sizes)
        rows = session.sql("SELECT s, count(*), sum(i)::BIGINT FROM t GROUP BY s ORDER BY ALL").fetchall()
        if "u" in tables:
            rows += session.sql("SELECT 'u', count(*), sum(i)::BIGINT FROM u").fetchall()
        found[name] = (session.current_snapshot().snapshot_id, tables, rows)
    session.switch(None)
    return found


def objects(store: FaultyStore, session: dl.Session) -> set[str]:
    prefix = session.current_lake.data_path.removeprefix("s3://faulty/").partition("/")[0]
    pages = store.client().get_paginator("list_objects_v2").paginate(Bucket="faulty", Prefix=prefix)
    return {item["Key"] for page in pages for item in page.get("Contents", ()) if not item["Key"].endswith("/")}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_request_may_fail(lake: Callable[[], dl.Session], store: FaultyStore, operation: str, how: How) -> None:
    """One request of an operation fails after the other, once or from there on, so that what cleans up fails too.

    Each way takes one request in five, and all of them take each.
    """
    run, times = OPERATIONS[operation], HOWS[how]
    session = lake()
    before = state(session)
    run(session)
    after, kept = state(session), len(objects(store, session))
    session.close()
    session = lake()
    for skip in range(list(HOWS).index(how), MOST, len(HOWS)):
        said = None
        with store.failing(*REQUESTS, how=how, times=times, skip=skip):
            try:
                run(session)
            except DataFileError as error:
                said = str(error)
        print(skip, store.failed, said)  # shown with a failure
        if said is not None:
            assert store.failed and "\n" not in said and SECRET not in said and "s3://faulty/" in said, said
        found = state(session)
        if found != before:
            assert found == after
        if not store.failed:
            assert said is None and found == after
            break
        if found != before:
            session.close()
            session = lake()
    else:
        pytest.fail(f"{operation} asks more than {MOST} times")
    # nothing stays of what failed but files that belong to no snapshot, where they could not be deleted
    session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)")
    assert (state(session), len(objects(store, session))) == (after, kept)
    session.close()


@pytest.mark.parametrize("operation", ["branch copy", "merge", "rebase"])
def test_a_store_that_does_not_answer(
    lake: Callable[[], dl.Session], store: FaultyStore, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = lake()
    before = state(session)
    for skip in (0, 2, 4):
        make_impatient(monkeypatch)
        with (
            store.failing(*REQUESTS, how="hang", times=1, skip=skip, seconds=2.5),
            pytest.raises(DataFileError) as error,
        ):
            OPERATIONS[operation](session)
        assert "\n" not in str(error.value) and "s3://faulty/" in str(error.value)
        make_impatient(monkeypatch, PATIENT)
        assert state(session) == before
    OPERATIONS[operation](session)
    assert state(session) != before
    session.close()


def test_a_dropped_branch_whose_files_stay_says_so(lake: Callable[[], dl.Session], store: FaultyStore) -> None:
    session = lake()
    with (
        store.failing("DELETE", how=403),
        pytest.raises(DataFileError, match='"copied" is dropped, and files of it stay'),
    ):
        session.drop_branch("copied")
    assert [row["branch"] for row in session.branches()] == ["fix"]
    left = objects(store, session)
    session.branch("copied")
    session.drop_branch("copied")
    assert objects(store, session) < left
    session.close()


def test_a_rebased_branch_whose_former_files_stay_is_rebased(
    lake: Callable[[], dl.Session], store: FaultyStore
) -> None:
    session = lake()
    with store.failing("DELETE", how=403):
        made = session.rebase("copied")
    assert made.snapshot_id == session.current_snapshot().snapshot_id
    left = objects(store, session)
    session.drop_branch("copied")
    assert not [key for key in objects(store, session) if "copied" in key] and [key for key in left if "copied" in key]
    session.close()
