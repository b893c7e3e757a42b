"""Lakes whose files are in S3, in process, with a server on this machine that speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.errors import DataFileError, UsageError
from ducklake_lab.object_access import S3Access, access_of, access_to
from ducklake_lab.storage import Storage

pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")

from tests.object_store import object_store

SECRET = "t0p-s3cret"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with object_store("lake") as store:
        yield store.endpoint


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    return "s3://lake"


def _grant(endpoint: str, scope: str) -> str:
    return (
        f"CREATE OR REPLACE SECRET store (TYPE s3, KEY_ID 'k', SECRET '{SECRET}', REGION 'us-east-1', "
        f"ENDPOINT '{endpoint.removeprefix('http://')}', USE_SSL false, SCOPE '{scope}')"
    )


def test_a_branch_in_a_bucket_has_copies(endpoint: str, bucket: str, tmp_path: Path) -> None:
    with dl.Session(engine="duckdb") as session:
        session.sql(_grant(endpoint, bucket))
        session.attach(f"ducklake:{tmp_path}/b.ducklake", alias="lake", data_path=f"{bucket}/branched/")
        session.sql("CREATE TABLE lake.t AS SELECT i FROM range(1000) r(i); DELETE FROM lake.t WHERE i < 100")
        session.branch("fix", copy=True)
        session.switch("fix")
        session.sql("DELETE FROM t WHERE i < 500; CALL lake.rewrite_data_files('t', delete_threshold => 0)")
        session.sql("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
        session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(500,)]
        session.switch(None)
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(900,)]
        session.drop_branch("fix")
        assert session.sql("SELECT count(*), min(i) FROM t").fetchall() == [(900, 100)]
        assert Storage().list_files(f"{bucket}/branched.branches/") == []


@pytest.mark.slow
def test_a_lake_in_a_bucket(endpoint: str, bucket: str, tmp_path: Path) -> None:
    catalog = tmp_path / "lake.sqlite"
    with dl.Session(engine="duckdb") as session:
        session.sql(_grant(endpoint, bucket))
        session.attach(f"ducklake:sqlite:{catalog}", alias="lake", data_path=f"{bucket}/data/")
        session.use("lake.main")
        session.sql("CREATE TABLE t AS SELECT i, 'x' || i AS s FROM range(1000) r(i)")
        session.sql("DELETE FROM t WHERE i % 50 = 7; UPDATE t SET s = 'new' WHERE i BETWEEN 100 AND 130")
        query = "SELECT count(s), sum(i)::BIGINT, count(*) FILTER (s = 'new') FROM t"
        expected = [(980, sum(i for i in range(1000) if i % 50 != 7), 30)]
        assert session.sql(query).fetchall() == expected
        assert all(file.path.startswith("s3://lake/data/main/t/") for file in session.table("t").files())

        session.sql(f"COPY (FROM t) TO '{bucket}/out/t.csv' (HEADER)")
        session.sql("CREATE TABLE copied (i BIGINT, s VARCHAR)")
        session.sql(f"COPY copied FROM '{bucket}/out/t.csv' (HEADER)")
        assert session.sql(query.replace("FROM t", "FROM copied")).fetchall() == expected
        assert session.table("t").view().save(f"{bucket}/out/seen.csv") == 980
        session.sql(f"TRUNCATE copied; COPY copied FROM '{bucket}/out/seen.csv' (HEADER)")
        assert session.sql(query.replace("FROM t", "FROM copied")).fetchall() == expected

        session.sql("CALL lake.merge_adjacent_files()")
        session.sql("CALL lake.rewrite_data_files('t', delete_threshold => 0)")
        session.sql("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
        assert len(session.sql("CALL lake.cleanup_old_files(cleanup_all => true)").fetchall()) >= 3
        assert session.sql("CALL lake.delete_orphaned_files(cleanup_all => true, dry_run => true)").fetchall() == []
        assert session.sql(query).fetchall() == expected
        assert session._engine.session is None

        shown = f"{session._secrets._by_name} {access_to(bucket)}"
        assert SECRET not in shown and SECRET.encode() not in catalog.read_bytes()
        session.sql("DROP SECRET store")
        assert access_to(bucket).key_id is None


def test_a_secret_ends_with_its_session_and_holds_for_its_scope(endpoint: str, bucket: str) -> None:
    session = dl.Session()
    session.sql(_grant(endpoint, f"{bucket}/mine"))
    assert access_to(f"{bucket}/mine/x").secret == SECRET
    assert access_to(f"{bucket}/other").secret is None
    session.close()
    assert access_to(f"{bucket}/mine/x").secret is None


def test_credentials_of_the_environment_and_of_profiles(
    endpoint: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = tmp_path / "credentials"
    profiles.write_text("[etl]\naws_access_key_id = k\naws_secret_access_key = " + SECRET)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profiles))
    assert access_of({"profile": "etl"}) == S3Access(key_id="k", secret=SECRET)
    with pytest.raises(UsageError, match='no profile "nobody"'):
        access_of({"profile": "nobody"})
    with pytest.raises(UsageError, match="both KEY_ID and SECRET"):
        access_of({"key_id": "k"})
    for name, value in {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with dl.connect(f"ducklake:sqlite:{tmp_path}/e.sqlite", alias="lake", data_path=f"{bucket}/env/") as session:
        session.sql("CREATE TABLE t AS SELECT i FROM range(100) r(i)")
        assert session.sql("SELECT sum(i)::BIGINT FROM t", engine="duckdb").fetchall() == [(4950,)]
        (file,) = session.table("t").files()
        monkeypatch.setenv("AWS_REGION", "us-west-2")
        from ducklake_lab.storage import Storage

        Storage().delete([file.path])
        with pytest.raises(DataFileError, match=r"env/main/t/.*does not exist"):
            session.sql("SELECT sum(i) FROM t", engine="duckdb").fetchall()


@pytest.mark.slow
def test_hadoop_is_told_the_same() -> None:
    options = S3Access(key_id="k", secret="s", endpoint="http://127.0.0.1:5000").hadoop_options("lake")
    assert options["fs.s3a.bucket.lake.access.key"] == "k"
    assert options["fs.s3a.bucket.lake.path.style.access"] == "true"
    assert options["fs.s3a.bucket.lake.connection.ssl.enabled"] == "false"
    assert S3Access().hadoop_options("lake") == {}
