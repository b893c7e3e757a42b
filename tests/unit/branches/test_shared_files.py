"""Branches of lakes in an object store, which name the files of their lake: maintenance of either side leaves what the other reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.branches import making
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import CatalogError, DataFileError, TransactionConflictError, UnsupportedFeatureError
from ducklake_lab.scan import presence

pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")

from tests.object_store import ObjectStore, object_store
from tests.reference import extension

_MAINTENANCE = (
    "CALL lake.rewrite_data_files(delete_threshold => 0)",
    "CALL lake.merge_adjacent_files()",
    "CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)",
    "CALL lake.cleanup_old_files(cleanup_all => true)",
    "CALL lake.delete_orphaned_files(cleanup_all => true)",
)
_SUMS = "SELECT count(*), sum(i)::BIGINT, count(*) FILTER (s = 'new') FROM t"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store("lake") as store:
        yield store


@pytest.fixture
def session(
    store: ObjectStore, lake_uri: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dl.Session]:
    """A lake of four snapshots after the first, with 900 rows of 1,000."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    with dl.Session(engine="duckdb") as session:
        session.sql(
            "CREATE SECRET store (TYPE s3, KEY_ID 'k', SECRET 's', REGION 'us-east-1', USE_SSL false, "
            f"ENDPOINT '{store.endpoint.removeprefix('http://')}', SCOPE 's3://lake')"
        )
        session.attach(lake_uri(), alias="lake", data_path=f"s3://lake/{tmp_path.name}/data/")
        session.use("lake.main")
        session.sql("CALL lake.set_option('data_inlining_row_limit', '0')")
        session.sql("CREATE TABLE t AS SELECT i, 's' || i AS s FROM range(500) r(i)")
        session.sql("INSERT INTO t SELECT i, 's' || i FROM range(500, 1000) r(i)")
        session.sql("DELETE FROM t WHERE i < 60")
        session.sql("DELETE FROM t WHERE i BETWEEN 500 AND 539")
        yield session


def keys(store: ObjectStore, session: dl.Session) -> set[str]:
    """Return the names of all objects beside the lake's data path and below it."""
    prefix = session.current_lake.data_path.removeprefix("s3://lake/").partition("/")[0]
    pages = store.client().get_paginator("list_objects_v2").paginate(Bucket="lake", Prefix=prefix)
    listed = {item["Key"] for page in pages for item in page.get("Contents", ())}
    return {key for key in listed if not key.endswith("/")}


def rows(session: dl.Session, name: str | None = None) -> list[tuple[object, ...]]:
    session.switch(name)
    return session.sql(_SUMS).fetchall()


def maintain(session: dl.Session) -> None:
    for call in _MAINTENANCE:
        session.sql(call)


def history(session: dl.Session) -> dict[int, list[tuple[object, ...]]]:
    """Return the rows of t at each snapshot that has it."""
    at = [entry.info.snapshot_id for entry in session.snapshots()]
    return {n: session.sql(f"SELECT * FROM t AT (VERSION => {n}) ORDER BY ALL").fetchall() for n in at if n}


def test_no_byte_is_copied(session: dl.Session, store: ObjectStore) -> None:
    before, past = keys(store, session), history(session)
    made = session.branch("fix")
    assert (made.files, keys(store, session)) == ("shared", before)
    listing = session.branches()
    assert [(row["branch"], row["files"]) for row in listing] == [("fix", "shared")]
    assert "Let only this package delete" in str(listing)
    session.switch("fix")
    assert history(session) == past
    session.sql("UPDATE t SET s = 'new' WHERE i > 900; DELETE FROM t WHERE i < 100; INSERT INTO t VALUES (5000, 'new')")
    expected = 900 - 40 + 1, sum(range(540, 1000)) + sum(range(100, 500)) + 5000, 100
    assert session.sql(_SUMS).fetchall() == [expected]
    session.switch(None)
    assert history(session) == past


def test_either_side_deletes_only_its_own(session: dl.Session, store: ObjectStore) -> None:
    session.branch("fix")
    session.branch("idle")
    own, session_rows = keys(store, session), rows(session)
    session.switch("fix")
    session.sql("UPDATE t SET s = 'new' WHERE i > 900")
    maintain(session)
    assert own <= keys(store, session)
    on_branch = rows(session, "fix")
    assert rows(session) == session_rows
    session.sql("DELETE FROM t WHERE i % 2 = 0; INSERT INTO t VALUES (7000, 'lake')")
    changed = rows(session)
    maintain(session)
    assert own <= keys(store, session)
    assert (rows(session, "fix"), rows(session, "idle"), rows(session)) == (on_branch, session_rows, changed)
    session.drop_branch("idle")
    session.drop_branch("fix")
    maintain(session)
    assert not own & keys(store, session)
    assert rows(session) == changed


def test_a_lake_that_drops_the_table(session: dl.Session) -> None:
    session.branch("fix")
    expected = rows(session, "fix")
    session.switch(None)
    session.sql("DROP TABLE t")
    maintain(session)
    assert rows(session, "fix") == expected


def test_deletions_of_later_snapshots_are_left_out(session: dl.Session) -> None:
    """Both delete files of a table with deletions in one file are merged, and trimmed for the branch."""
    session.sql("DELETE FROM t WHERE i BETWEEN 60 AND 80")
    past = history(session)
    for at in (2, 3, 4):
        session.branch(f"at-{at}", at=at)
        session.switch(f"at-{at}")
        assert history(session) == {n: found for n, found in past.items() if n <= at}
        session.switch(None)


def test_branches_of_branches(session: dl.Session, store: ObjectStore) -> None:
    session.branch("one")
    session.switch("one")
    session.sql("UPDATE t SET s = 'new' WHERE i > 900")
    session.branch("two")
    expected, both = rows(session, "two"), keys(store, session)
    session.switch("one")
    session.sql("DELETE FROM t WHERE i > 700")
    maintain(session)
    assert both <= keys(store, session)
    session.switch(None)
    maintain(session)
    assert rows(session, "two") == expected
    session.switch(None)
    for refused in (lambda: session.drop_branch("one"), lambda: session.drop_branch("one", dry_run=True)):
        with pytest.raises(
            UnsupportedFeatureError, match='"two" began on "one" and reads files of it; drop "two" first'
        ):
            refused()
    with pytest.raises(UnsupportedFeatureError, match='"two" began on "one"'):
        session.rebase("one")
    session.drop_branch("two")
    session.rebase("one")
    session.drop_branch("one")


def test_merged_and_rebased(session: dl.Session) -> None:
    session.branch("fix")
    session.switch("fix")
    session.sql("UPDATE t SET s = 'new' WHERE i > 900; INSERT INTO t SELECT i, 'came' FROM range(2000, 2300) r(i)")
    session.sql("CREATE TABLE u AS FROM range(400)")
    session.switch(None)
    session.sql("DELETE FROM t WHERE i BETWEEN 200 AND 209")
    session.rebase("fix")
    on_branch = rows(session, "fix")
    assert on_branch[0][0] == 900 - 10 + 300
    session.switch(None)
    session.merge("fix")
    assert rows(session) == on_branch
    session.drop_branch("fix")
    maintain(session)
    assert rows(session) == on_branch
    assert session.sql("SELECT count(*) FROM u").fetchall() == [(400,)]


def test_expiry_while_a_branch_is_made(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("CALL lake.rewrite_data_files(delete_threshold => 0)")
    fill, expected = making.fill_place, rows(session)

    def late(root: Lake, lake: Lake, *args: object, **options: object) -> None:
        fill(root, lake, *args, **options)  # type: ignore[arg-type]
        with root.connect(fresh=True) as connection:
            connection.exec_driver_sql("DELETE FROM ducklake_data_file WHERE end_snapshot IS NOT NULL")
            connection.commit()

    monkeypatch.setattr(making, "fill_place", late)
    if session.current_lake.database.backend == "sqlite":
        pytest.skip("nobody else writes while a branch is made: SQLite has one writer")
    with pytest.raises(TransactionConflictError, match="Snapshots expired while the branch was made; branch again"):
        session.branch("fix")
    assert len(session.branches()) == 0
    monkeypatch.undo()
    session.branch("fix")
    assert rows(session, "fix") == expected


def test_a_lost_catalog_of_a_branch_keeps_the_files(session: dl.Session, store: ObjectStore) -> None:
    session.branch("fix")
    session.switch("fix")
    path = session.current_lake.location.path
    session.switch(None)
    session.sql("DELETE FROM t WHERE i % 2 = 0")
    for call in (*_MAINTENANCE[:3],):
        session.sql(call)
    if path is None:
        pytest.skip("a schema of a server is not lost alone")
    path.unlink()
    before = keys(store, session)
    for call in _MAINTENANCE[3:]:
        with pytest.raises(CatalogError, match='The branch "fix" shares files of the lake, and its catalog is missing'):
            session.sql(call)
    assert keys(store, session) == before
    session.drop_branch("fix")
    maintain(session)
    assert keys(store, session) < before


def reach(reference: duckdb.DuckDBPyConnection, store: ObjectStore, catalog: str) -> None:
    """Lets the reference read the store, where its own client can open the catalog."""
    if catalog != "duckdb":
        pytest.skip("its catalog is a file here")
    reference.execute(f"LOAD '{extension('httpfs')}'")
    reference.execute(
        "CREATE SECRET (TYPE s3, KEY_ID 'k', SECRET 's', REGION 'us-east-1', USE_SSL false, URL_STYLE 'path', "
        f"ENDPOINT '{store.endpoint.removeprefix('http://')}', SCOPE 's3://lake')"
    )


def test_the_reference_reads_the_branch(
    session: dl.Session, store: ObjectStore, tmp_path: Path, reference: duckdb.DuckDBPyConnection, catalog: str
) -> None:
    reach(reference, store, catalog)
    session.branch("fix")
    session.switch("fix")
    session.sql("UPDATE t SET s = 'new' WHERE i > 900")
    past, path = history(session), session.current_lake.location.path
    session.switch(None)
    reference.execute(f"ATTACH 'ducklake:{path}' AS lake")
    for at, expected in past.items():
        assert reference.execute(f"SELECT * FROM lake.t AT (VERSION => {at}) ORDER BY ALL").fetchall() == expected
    reference.execute("DELETE FROM lake.t WHERE i > 950; INSERT INTO lake.t VALUES (9000, 'theirs')")
    expected = reference.execute("SELECT count(*), sum(i)::BIGINT, count(*) FILTER (s = 'new') FROM lake.t").fetchall()
    reference.execute("DETACH lake")
    assert rows(session, "fix") == expected


#: What the catalog answers without reading rows.
_FROM_METADATA: dict[str, Callable[[dl.Session], object]] = {
    "count(*)": lambda s: s.sql("SELECT count(*) FROM t").fetchall(),
    "count of a column": lambda s: s.sql("SELECT count(i) FROM t").fetchall(),
    "extremes": lambda s: s.sql("SELECT min(i), max(i) FROM u").fetchall(),
    "count at a snapshot": lambda s: s.sql("SELECT count(*) FROM t AT (VERSION => 3)").fetchall(),
    "describe": lambda s: s.table("t").describe(),
    "column_stats": lambda s: s.table("t").column_stats(),
    "view": lambda s: s.table("t").view(),
    "diff": lambda s: s.table("t").diff(2, s.current_snapshot().snapshot_id),
}


@pytest.mark.parametrize("name", ["fix", None])
def test_a_file_that_another_client_deleted_is_said_at_once(
    session: dl.Session, store: ObjectStore, name: str | None
) -> None:
    """Each answer of the catalog names the file, on either side, in the statement after it was deleted."""
    session.sql("CREATE TABLE u AS SELECT i FROM range(400) r(i)")
    session.branch("fix")
    session.switch(name)
    expected = {what: str(ask(session)) for what, ask in _FROM_METADATA.items()}
    files = {table: session.sql(f"SELECT data_file FROM ducklake_list_files('lake', '{table}')") for table in "tu"}
    first = {table: str(found.fetchall()[0][0]) for table, found in files.items()}
    client = store.client()
    kept = {}
    for table, path in first.items():
        key = path.removeprefix("s3://lake/")
        kept[key] = client.get_object(Bucket="lake", Key=key)["Body"].read()
        client.delete_object(Bucket="lake", Key=key)
        for what, ask in _FROM_METADATA.items():
            if (what == "extremes") == (table == "u"):
                with pytest.raises(DataFileError, match=path):
                    ask(session)
    with pytest.raises(DataFileError, match=rf"main\.t needs the file {first['t']}, which does not exist; another"):
        session.sql("SELECT count(*) FROM t")
    # a lake is looked at as a whole, and other tables are read
    assert [info.record_count for info in session.tables()] == [900, 400]
    session.sql("CREATE TABLE v AS SELECT 1 AS i")
    assert session.sql("SELECT count(*) FROM v").fetchall() == [(1,)]
    for key, body in kept.items():
        client.put_object(Bucket="lake", Key=key, Body=body)
    for what in ("count(*)", "count of a column", "extremes", "count at a snapshot"):
        assert str(_FROM_METADATA[what](session)) == expected[what]


def test_a_delete_file_is_looked_for_too(session: dl.Session, store: ObjectStore) -> None:
    session.branch("fix")
    session.switch("fix")
    deletes = session.sql("SELECT delete_file FROM ducklake_list_files('lake', 't') WHERE delete_file IS NOT NULL")
    path = str(deletes.fetchall()[0][0])
    store.client().delete_object(Bucket="lake", Key=path.removeprefix("s3://lake/"))
    with pytest.raises(DataFileError, match=path):
        session.sql("SELECT count(*) FROM t")


def test_reviews_count_no_rows_of_missing_files(session: dl.Session, store: ObjectStore) -> None:
    session.branch("fix")
    session.switch("fix")
    session.sql("CREATE TABLE made AS SELECT i FROM range(400) r(i)")
    ((made,),) = session.sql("SELECT data_file FROM ducklake_list_files('lake', 'made')").fetchall()
    session.switch(None)
    assert session.review("fix").tables[0].summary.inserted == 400
    store.client().delete_object(Bucket="lake", Key=made.removeprefix("s3://lake/"))
    with pytest.raises(DataFileError, match=f"main.made needs the file {made}"):
        session.review("fix")


def test_only_lakes_that_share_files_ask_for_them(session: dl.Session, store: ObjectStore) -> None:
    def requests() -> int:
        store.requests.clear()
        session.sql("SELECT count(*), min(i) FROM v").fetchall()
        return sum(store.requests.values())

    session.sql("CREATE TABLE v AS SELECT i FROM range(400) r(i)")
    assert requests() == 0
    session.branch("copied", copy=True)
    assert requests() == 0
    session.branch("fix")
    assert requests() == 1
    session.switch("fix")
    assert requests() == 1
    session.switch(None)
    session.drop_branch("fix")
    assert requests() == 0


def test_many_files_are_looked_for_once_a_minute(
    session: dl.Session, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 6_000.0
    monkeypatch.setattr(presence, "_FEW", 2)
    monkeypatch.setattr(presence, "monotonic", lambda: now)
    session.branch("fix")

    def requests() -> Counter[str]:
        store.requests.clear()
        session.sql("SELECT count(*) FROM t").fetchall()
        return +store.requests

    assert requests() == {"HEAD": 4}
    assert requests() == {}
    session.sql("INSERT INTO t SELECT i, 'x' FROM range(2000, 2400) r(i)")
    assert requests() == {"HEAD": 5}
    now += 60
    assert requests() == {"HEAD": 5}
    # a failure is not kept
    path = str(session.sql("SELECT data_file FROM ducklake_list_files('lake', 't')").fetchall()[0][0])
    store.client().delete_object(Bucket="lake", Key=path.removeprefix("s3://lake/"))
    now += 60
    for _ in range(2):
        with pytest.raises(DataFileError, match=path):
            session.sql("SELECT count(*) FROM t")


def test_files_of_partitions_are_listed_by_their_table(
    session: dl.Session, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ducklake_lab.storage._FEW", 4)
    session.sql("CREATE TABLE p (k INTEGER, s VARCHAR); ALTER TABLE p SET PARTITIONED BY (k)")
    session.sql("INSERT INTO p SELECT i % 8, 's' || i FROM range(80) r(i)")
    session.branch("fix")
    session.switch("fix")
    session.sql("INSERT INTO p VALUES (1, 'own')")
    store.requests.clear()
    assert session.sql("SELECT count(*) FROM p").fetchall() == [(81,)]
    assert dict(store.requests) == {"LIST": 1, "HEAD": 1}


def test_the_reference_deletes_files_of_the_other_side(
    session: dl.Session, store: ObjectStore, tmp_path: Path, reference: duckdb.DuckDBPyConnection, catalog: str
) -> None:
    """Its cleanup of the branch deletes files that the lake reads, whose next answer says it."""
    reach(reference, store, catalog)
    session.branch("fix")
    session.switch("fix")
    path = session.current_lake.location.path
    session.switch(None)
    count = "SELECT count(*) FROM t"
    assert session.sql(count).fetchall() == [(900,)]
    before = keys(store, session)
    reference.execute(f"ATTACH 'ducklake:{path}' AS lake; DROP TABLE lake.t")
    reference.execute("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)")
    reference.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true); DETACH lake")
    assert keys(store, session) < before
    for query in (count, "SELECT sum(i) FROM t"):
        with pytest.raises(DataFileError, match="s3://lake/"):
            session.sql(query).fetchall()
