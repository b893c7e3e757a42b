"""Snapshots that a stream reads, and its end."""

from __future__ import annotations

from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.datasource.options import Target
from ducklake_lab.datasource.stream import TableStreamReader
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.spark.types import table_schema


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i FROM range(20) r(i)")
    return uri


def _reader(uri: str, **options: str) -> TableStreamReader:
    target = Target.of({"path": uri, "table": "t", **options})
    with target.open() as lake, lake.connect() as connection:
        columns = lake.state(connection, lake.snapshot(connection)).table("main", "t").columns
    return TableStreamReader(target, table_schema(columns))


def _insert(uri: str, start: int) -> None:
    with dl.connect(uri, engine="duckdb") as session:
        session.sql(f"INSERT INTO t SELECT i FROM range({start}, {start + 20}) r(i)")


def _read(reader: TableStreamReader, start: int, end: int) -> list[int]:
    parts = reader.partitions({"snapshot": start}, {"snapshot": end})
    return sorted(i for part in parts for batch in reader.read(part) for i in batch.column("i").to_pylist())


@pytest.mark.slow
def test_available_now_ends_at_the_snapshot_it_began_with(uri: str) -> None:
    reader = _reader(uri)
    _insert(uri, 20)
    reader.prepareForTriggerAvailableNow()
    _insert(uri, 40)
    # a batch that an earlier run planned comes first
    assert _read(reader, -1, 1) == list(range(20))
    assert reader.latestOffset({"snapshot": 1}) == {"snapshot": 2}
    assert _read(reader, 1, 2) == list(range(20, 40))
    assert reader.latestOffset({"snapshot": 2}) == {"snapshot": 2}
    assert reader.partitions({"snapshot": 2}, {"snapshot": 2}) == []
    assert _reader(uri).latestOffset({"snapshot": 2}) == {"snapshot": 3}
    assert _reader(uri).latestOffset() == {"snapshot": 3}


@pytest.mark.slow
def test_a_stream_waits_for_the_version_it_starts_with(uri: str) -> None:
    reader = _reader(uri, starting_version="3")
    assert reader.latestOffset(reader.initialOffset()) == reader.initialOffset() == {"snapshot": 2}
    _insert(uri, 20)
    _insert(uri, 40)
    assert reader.latestOffset(reader.initialOffset()) == {"snapshot": 3}
    assert _read(reader, 2, 3) == list(range(40, 60))


def test_a_lake_that_went_back_is_an_error(uri: str) -> None:
    with pytest.raises(DuckLakeError, match=r"at snapshot 1, .* up to 7.* new checkpoint"):
        _reader(uri).latestOffset({"snapshot": 7})


@pytest.mark.slow
def test_snapshots_that_expired_unread_are_an_error(uri: str) -> None:
    _insert(uri, 20)
    _insert(uri, 40)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql("DELETE FROM t WHERE i % 2 = 0")
        session.sql("CALL lake.rewrite_data_files('t', delete_threshold => 0)")
        newest = session.current_snapshot().snapshot_id
        assert _read(_reader(uri, ignore_deletes="true"), 1, newest) == list(range(20, 60))
        session.sql("CALL lake.expire_snapshots(versions => [3])")
    assert _read(_reader(uri, ignore_deletes="true"), 3, newest) == []
    with pytest.raises(DuckLakeError, match=f"Snapshots 2 to {newest} have not been read, and some have expired"):
        _read(_reader(uri), 1, newest)
    assert _read(_reader(uri), -1, newest) == list(range(1, 60, 2))
