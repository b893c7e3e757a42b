"""A process that reads its lakes as of a snapshot, by environment variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog import as_of
from ducklake_lab.datasource.options import Target


@pytest.fixture
def uri(lake_uri: Callable[..., str], tmp_path: Path) -> str:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS FROM range(20) r(i); INSERT INTO t FROM range(30)")
        session.tag("q3", 1)
    return uri


def test_all_lakes_are_read_as_of_it(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(as_of.AS_OF, "q3")
    monkeypatch.setenv(as_of.RECORD, f"{tmp_path}/noted")
    with dl.connect(uri, alias="lake") as session:
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(20,)]
        assert session.pinned == {"lake": "q3 (snapshot 1)"}
        with pytest.raises(
            dl.TransactionError, match=r"read as of q3 \(snapshot 1\) in this process, and cannot be written"
        ):
            session.sql("DELETE FROM t")
        session.pin(2)
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(50,)]
        session.pin(None)
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(20,)]
        assert session.sql("SELECT count(*) FROM t AT (VERSION => 2)").fetchall() == [(50,)]
    assert Path(tmp_path / "noted").read_text() == "1 lake\n"
    with dl.connect(uri, alias="lake", snapshot_version=2) as session:  # what the program says wins
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(50,)]


def test_only_one_lake_may_be_meant(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(as_of.AS_OF, "1")
    monkeypatch.setenv(as_of.ONLY, "LAKE")
    with dl.connect(uri, alias="other") as session:
        session.attach(uri, alias="lake")
        assert session.pinned.keys() <= {"lake", "other"} and "lake" in session.pinned
        assert session.sql("SELECT count(*) FROM lake.t").fetchall() == [(20,)]
        session.attach(f"ducklake:{tmp_path}/scratch.ducklake", alias="scratch")
        session.sql("CREATE TABLE scratch.x AS SELECT 1 AS i")


def test_nothing_is_made_or_migrated(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(as_of.AS_OF, "1")
    with pytest.raises(dl.DuckLakeError, match="no lake at"):
        dl.connect(f"ducklake:{tmp_path}/new.ducklake")
    assert not Path(tmp_path / "new.ducklake").exists()
    monkeypatch.setenv(as_of.AS_OF, "no such tag")
    with pytest.raises(dl.SnapshotNotFoundError, match="no such tag"):
        dl.connect(uri)


def test_spark_reads_tables_as_of_it_too(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(as_of.AS_OF, "q3")
    target = Target.of({"path": uri, "table": "t"})
    with target.open() as lake, lake.connect() as connection:
        assert lake.snapshot(connection).snapshot_id == 1
    with target.open(read_only=False) as lake, pytest.raises(dl.TransactionError):
        lake.check_writable()
