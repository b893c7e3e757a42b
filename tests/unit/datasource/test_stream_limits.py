"""Batches of streams: their limits, change feeds, and what deletions do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.datasource.source import DuckLakeDataSource
from ducklake_lab.datasource.stream import TableStreamReader
from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError, UsageError
from tests.unit.datasource.lakes import SourceLake

streaming = pytest.importorskip("pyspark.sql.streaming.datasource")

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def lake(tmp_path: Path) -> SourceLake:
    """A table in four files, and a row in the catalog."""
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (i BIGINT)")
    lake.sql(*(f"INSERT INTO t SELECT range FROM range({n * 20}, {n * 20 + 20})" for n in range(4)))
    lake.sql("INSERT INTO t VALUES (80)")
    return lake


class Run:
    """A query that reads a stream from its checkpoint on."""

    def __init__(self, lake: SourceLake, **options: str) -> None:
        self.lake, self.options = lake, options
        self.offset: dict[str, Any] | None = None

    def reader(self) -> TableStreamReader:
        source = DuckLakeDataSource({"path": self.lake.uri, "table": "t", **self.options})
        reader = source.streamReader(source.schema())
        assert isinstance(reader, TableStreamReader)
        return reader

    def batches(self, most: int = 50) -> list[list[tuple[Any, ...]]]:
        """All batches that there are now; a new reader for each, as if the query had been started again."""
        found: list[list[tuple[Any, ...]]] = []
        for _ in range(most):
            reader = self.reader()
            start = self.offset or reader.initialOffset()
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
            if end == start:
                return found
            rows = [
                tuple(row.values())
                for part in reader.partitions(start, end)
                for batch in reader.read(part)
                for row in batch.to_pylist()
            ]
            self.offset = end
            if rows:
                found.append(rows)
        raise AssertionError("the stream does not end")

    def ids(self) -> list[list[int]]:
        return [sorted(row[0] for row in batch) for batch in self.batches()]


def test_files_of_a_batch(lake: SourceLake) -> None:
    run = Run(lake, maxFilesPerTrigger="1")
    assert run.ids() == [[*range(20)], [*range(20, 40)], [*range(40, 60)], [*range(60, 81)]]
    lake.sql("INSERT INTO t VALUES (100)", "INSERT INTO t SELECT range FROM range(200, 220)")
    assert run.ids() == [[100], [*range(200, 220)]]
    assert Run(lake, maxFilesPerTrigger="3").ids() == [[*range(60)], [*range(60, 81), 100, *range(200, 220)]]
    assert Run(lake).ids() == [[*range(81), 100, *range(200, 220)]]


def test_rows_and_bytes_of_a_batch(lake: SourceLake) -> None:
    assert [len(ids) for ids in Run(lake, maxRowsPerTrigger="45").ids()] == [40, 41]
    assert [len(ids) for ids in Run(lake, maxRowsPerTrigger="1").ids()] == [20, 20, 20, 21]
    assert [len(ids) for ids in Run(lake, maxBytesPerTrigger="1").ids()] == [20, 20, 20, 21]
    assert [len(ids) for ids in Run(lake, maxBytesPerTrigger="1g", startingVersion="2").ids()] == [81]
    # snapshots, from the first on
    steps = Run(lake, maxRowsPerTrigger="45", startingVersion="1").ids()
    assert steps == [[*range(40)], [*range(40, 81)]]
    for text in ("0", "-1", "x", "1.5"):
        with pytest.raises(UsageError, match="is a number above 0"):
            Run(lake, maxFilesPerTrigger=text).ids()


def test_one_snapshot_in_parts(tmp_path: Path) -> None:
    lake = SourceLake.new(tmp_path, "CREATE TABLE t (i BIGINT)")
    lake.sql("ALTER TABLE t SET PARTITIONED BY (bucket(8, i))")
    lake.sql("INSERT INTO t SELECT range FROM range(100)")
    for options in ({}, {"startingVersion": "1"}):
        run = Run(lake, maxFilesPerTrigger="3", **options)
        steps = run.ids()
        assert len(steps) == 3
        assert sorted(i for step in steps for i in step) == [*range(100)]
        run = Run(lake, maxFilesPerTrigger="3", **options)
        reader = run.reader()
        run.offset = reader.latestOffset(reader.initialOffset(), streaming.ReadMaxFiles(3))
        # without a limit, everything comes at once
        assert reader.latestOffset(run.offset, streaming.ReadAllAvailable()) == {"snapshot": lake.snapshot()}


def test_files_that_are_merged_between_two_parts_are_an_error(lake: SourceLake) -> None:
    run = Run(lake, maxFilesPerTrigger="2")
    reader = run.reader()
    run.offset = reader.latestOffset(reader.initialOffset(), streaming.ReadMaxFiles(2))
    lake.sql("CALL lake.flush_inlined_data()")
    reader.partitions(run.offset, {"snapshot": run.offset["snapshot"]})  # a flush changes no file that was read
    lake.sql("CALL lake.merge_adjacent_files('t')")
    with pytest.raises(DuckLakeError, match="were merged after 2 of them"):
        run.ids()


def test_names_that_users_of_iceberg_know(lake: SourceLake) -> None:
    run = Run(lake, **{"streaming-max-files-per-micro-batch": "3", "streaming-skip-overwrite-snapshots": "true"})
    assert [len(ids) for ids in run.ids()] == [60, 21]
    lake.sql("UPDATE t SET i = -1 WHERE i = 3", "INSERT INTO t VALUES (100)")
    assert run.ids() == [[100]]
    run = Run(lake, **{"streaming-max-rows-per-micro-batch": "1", "streaming-skip-delete-snapshots": "true"})
    run.ids()
    lake.sql("DELETE FROM t WHERE i = 100", "INSERT INTO t VALUES (101)")
    assert run.ids() == [[101]]


def test_limits_need_pyspark_4_2(lake: SourceLake) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"from PySpark 4\.2"):
        Run(lake, maxFilesPerTrigger="1").reader().latestOffset()


@pytest.mark.parametrize("limit", [{}, {"maxRowsPerTrigger": "1"}])
def test_deletions_stop_a_stream_unless_asked(lake: SourceLake, limit: dict[str, str]) -> None:
    base = lake.snapshot()
    runs = {
        name: Run(lake, **options, **limit)
        for name, options in (
            ("default", {}),
            ("deletes", {"ignoreDeletes": "true"}),
            ("changes", {"ignoreChanges": "true"}),
            ("skip", {"skipChangeCommits": "true"}),
        )
    }
    for run in runs.values():
        assert sorted(i for step in run.ids() for i in step) == [*range(81)]
    lake.sql("INSERT INTO t VALUES (100)", "DELETE FROM t WHERE i IN (3, 80)", "INSERT INTO t VALUES (101)")
    with pytest.raises(DuckLakeError, match=rf"Snapshot {base + 2} deleted or updated rows of main\.t.*ignoreDeletes"):
        runs["default"].ids()
    for name in ("deletes", "changes", "skip"):
        assert sorted(i for step in runs[name].ids() for i in step) == [100, 101], name
    lake.sql("UPDATE t SET i = i + 1000 WHERE i < 2", "INSERT INTO t VALUES (102)")
    with pytest.raises(DuckLakeError, match=f"Snapshot {base + 4} "):
        runs["deletes"].ids()
    assert sorted(i for step in runs["changes"].ids() for i in step) == [102, 1000, 1001]
    assert sorted(i for step in runs["skip"].ids() for i in step) == [102]
    # an option that is given later lets the query go on
    runs["deletes"].options["skipChangeCommits"] = "true"
    assert sorted(i for step in runs["deletes"].ids() for i in step) == [102]


def test_compaction_is_no_deletion(lake: SourceLake) -> None:
    run = Run(lake)
    run.ids()
    lake.sql("CALL lake.merge_adjacent_files('t')", "CALL lake.flush_inlined_data()", "INSERT INTO t VALUES (100)")
    assert run.ids() == [[100]]
    assert [*range(81), 100] == sorted(i for step in Run(lake, startingVersion="1").ids() for i in step)


def test_a_replaced_table_stops_a_stream(lake: SourceLake) -> None:
    run = Run(lake)
    run.ids()
    lake.sql("CREATE OR REPLACE TABLE t AS SELECT 7::BIGINT AS i")
    with pytest.raises(DuckLakeError, match=r"main\.t was replaced after snapshot"):
        run.ids()


def test_where_a_stream_starts(lake: SourceLake) -> None:
    with dl.connect(lake.uri, engine="duckdb") as session:
        session.tag("third", 4)
    assert Run(lake, startingVersion="third").ids() == [[*range(40, 81)]]
    latest = Run(lake, startingVersion="latest")
    reader = latest.reader()
    latest.offset = reader.initialOffset()
    assert latest.ids() == []
    lake.sql("INSERT INTO t VALUES (100)")
    assert latest.ids() == [[100]]


@pytest.mark.parametrize("limit", [{}, {"maxFilesPerTrigger": "1"}])
def test_a_change_feed_replayed_equals_the_table(lake: SourceLake, limit: dict[str, str]) -> None:
    run = Run(lake, readChangeFeed="true", **limit)
    copy: dict[int, int] = {}

    def replay() -> list[str]:
        seen = []
        for batch in run.batches():
            for _, row_id, change, i in batch:
                seen.append(change)
                if change in ("insert", "update_postimage"):
                    copy[row_id] = i
                else:
                    assert copy[row_id] == i
                if change == "delete":
                    del copy[row_id]
        assert sorted(copy.values()) == [i for (i,) in lake.read()]
        return sorted(set(seen))

    assert replay() == ["insert"]
    lake.sql("DELETE FROM t WHERE i % 7 = 3", "UPDATE t SET i = -i WHERE i > 50", "INSERT INTO t VALUES (500)")
    lake.sql("CALL lake.merge_adjacent_files('t')", "UPDATE t SET i = 501 WHERE i = 500")
    assert replay() == ["delete", "insert", "update_postimage", "update_preimage"]
    lake.sql("DELETE FROM t WHERE i = 501", "TRUNCATE t")
    assert replay() == ["delete"]
    assert copy == {}


def test_columns_of_a_change_feed_are_not_chosen(lake: SourceLake) -> None:
    source = DuckLakeDataSource({"path": lake.uri, "table": "t", "readChangeFeed": "true"})
    whole = source.schema()
    assert whole.names == ["snapshot_id", "rowid", "change_type", "i"]
    with pytest.raises(UsageError, match="reads all columns"):
        source.streamReader(type(whole)(whole.fields[:2]))
