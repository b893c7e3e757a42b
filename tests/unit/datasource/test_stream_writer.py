"""Micro-batches are committed once, by any client, at any time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import datasource
from pyspark.sql.types import LongType, StructField, StructType

import ducklake_lab as dl
from ducklake_lab.datasource.options import Target
from ducklake_lab.datasource.writer import TaskFiles
from ducklake_lab.errors import CatalogError, SparkError
from ducklake_lab.transaction.batches import BatchCommittedError, StreamBatch
from ducklake_lab.transaction.commit import commit
from ducklake_lab.transaction.transaction import Transaction
from tests.interop.comparing import attach, detach

if not hasattr(datasource, "DataSourceStreamArrowWriter"):
    pytest.skip("PySpark before 4.1 gives writers of streams no Arrow batches", allow_module_level=True)
from ducklake_lab.datasource.stream_writer import TableStreamWriter

pytestmark = pytest.mark.sampled(3)

QUERY = "0e9a1b2c-0000-4000-8000-000000000001"
OTHER = "0e9a1b2c-0000-4000-8000-000000000002"


class Stream:
    """Calls of Spark on the sink of a stream, without Spark."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.uri, self._folder = uri, folder
        with self.session() as session:
            session.sql("CREATE TABLE t (i BIGINT)")

    def session(self) -> dl.Session:
        return dl.connect(self.uri, alias="lake", data_path=f"{self._folder}/data", engine="duckdb")

    def writer(self, checkpoint: str = "/cp", *, overwrite: bool = False) -> TableStreamWriter:
        target = Target.of({"path": self.uri, "table": "t", "checkpointLocation": checkpoint})
        return TableStreamWriter(target, StructType([StructField("i", LongType())]), overwrite)

    def tasks(self, rows: range, query: str | None = QUERY) -> list[TaskFiles]:
        message = self.writer().write(iter([pa.RecordBatch.from_pydict({"i": list(rows)})] if rows else []))
        assert isinstance(message, TaskFiles)
        return [TaskFiles(message.files, query)]

    def run(self, batch: int, rows: range, query: str = QUERY, checkpoint: str = "/cp") -> None:
        self.writer(checkpoint).commit(self.tasks(rows, query), batch)

    def rows(self) -> list[int]:
        with self.session() as session:
            return [row[0] for row in session.sql("SELECT i FROM t ORDER BY i").fetchall()]

    def files(self) -> int:
        return len(list((self._folder / "data").rglob("*.parquet")))


@pytest.fixture
def stream(lake_uri: Callable[..., str], tmp_path: Path) -> Stream:
    return Stream(lake_uri(), tmp_path)


@pytest.fixture
def local(tmp_path: Path) -> Stream:
    return Stream(f"ducklake:{tmp_path}/lake.ducklake", tmp_path)


@pytest.mark.slow
def test_a_batch_is_committed_once_also_after_expiry(stream: Stream) -> None:
    stream.run(0, range(20))
    stream.run(1, range(20, 40))
    with stream.session() as session:
        session.sql("INSERT INTO t VALUES (100)")
        session.sql("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
        assert len(session.snapshots()) == 1
    for batch in (1, 0):
        stream.run(batch, range(20 * batch, 20 * batch + 20))
    assert stream.rows() == [*range(40), 100]
    assert stream.files() == 2
    stream.run(2, range(40, 60))
    assert stream.rows() == [*range(60), 100]


@pytest.mark.slow
def test_a_query_with_a_checkpoint_made_anew_is_another(local: Stream) -> None:
    local.run(0, range(20))
    with local.session() as session:
        session.sql("TRUNCATE t")
    local.run(0, range(20), OTHER)
    assert local.rows() == list(range(20))
    local.run(1, range(20, 40), OTHER)
    local.run(0, range(20), OTHER)
    assert local.rows() == list(range(40))


@pytest.mark.every_catalog
def test_a_batch_that_two_writers_commit_at_once_lands_once(stream: Stream) -> None:
    target = Target.of({"path": stream.uri, "table": "t"})
    with target.open(read_only=False) as lake:
        transactions = []
        for _ in range(2):
            transaction = Transaction(lake)
            table = transaction.state.table("main", "t")
            transaction.append_files(table, stream.tasks(range(20))[0].files)
            transaction.batch = StreamBatch(QUERY, 0)
            transactions.append(transaction)
        assert commit(transactions[0]) is not None
        with pytest.raises(BatchCommittedError, match="Batch 0"):
            commit(transactions[1])
        transactions[1].rollback()
    assert stream.rows() == list(range(20))
    assert stream.files() == 1


@pytest.mark.slow
def test_writers_at_once_commit_each_batch_once(stream: Stream) -> None:
    batches = [range(20 * number, 20 * number + 20) for number in range(3)]

    def run(_: int) -> None:
        for number, rows in enumerate(batches):
            stream.run(number, rows)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert stream.rows() == list(range(60))
    assert stream.files() == 3


@pytest.mark.slow
def test_batches_without_rows_are_noted_and_never_set_back(stream: Stream) -> None:
    stream.run(0, range(0))
    stream.run(1, range(20))
    stream.run(0, range(0))
    stream.run(1, range(20))
    assert stream.rows() == list(range(20))
    with stream.session() as session:
        assert session.current_snapshot().snapshot_id == 2
        assert _records(session) == [(f"ducklake_lab_stream:{QUERY}", "1", "GLOBAL")]


@pytest.mark.slow
def test_a_batch_that_replaces_all_rows_is_left_out_the_second_time(local: Stream) -> None:
    for batch, rows in ((0, range(20)), (1, range(5)), (0, range(20)), (1, range(5))):
        local.writer(overwrite=True).commit(local.tasks(rows), batch)
    assert local.rows() == list(range(5))
    # a complete result without partitions has no tasks
    local.writer(overwrite=True).commit([], 2)
    assert local.rows() == []


@pytest.mark.slow
def test_batches_of_earlier_releases_are_known(local: Stream) -> None:
    """They noted a batch by the checkpoint's path, in its snapshot alone."""
    with local.session() as session:
        with session.transaction(extra_info='{"stream": "/old", "batch": 7}'):
            session.sql("INSERT INTO t SELECT i FROM range(20) r(i)")
        with session.transaction(extra_info='{"stream": "/old", "batch": 0}'):
            session.sql("INSERT INTO t SELECT i FROM range(100, 120) r(i)")
    local.run(7, range(20), checkpoint="/old")
    assert local.rows() == [*range(20), *range(100, 120)]
    local.run(8, range(20, 40), checkpoint="/old")
    assert local.rows() == [*range(40), *range(100, 120)]
    # a query that begins is a new one, although its checkpoint is where an older one's was
    local.run(0, range(200, 220), OTHER, checkpoint="/old")
    local.run(7, range(220, 240), OTHER, checkpoint="/old")
    assert local.rows() == [*range(40), *range(100, 120), *range(200, 240)]


def test_a_batch_of_no_known_query_is_refused(local: Stream) -> None:
    tasks = local.tasks(range(20), None)
    with pytest.raises(SparkError, match="names no query"):
        local.writer().commit(tasks, 0)
    assert local.rows() == [] and local.files() == 0


@pytest.mark.slow
def test_a_record_that_is_no_number_is_an_error(local: Stream) -> None:
    local.run(0, range(20))
    with duckdb.connect(local.uri.removeprefix("ducklake:")) as catalog:
        catalog.execute("UPDATE ducklake_metadata SET value = 'x' WHERE key LIKE 'ducklake_lab%'")
    with pytest.raises(CatalogError, match=f'{QUERY} in ducklake_metadata is "x", .* delete the row'):
        local.run(1, range(20, 40))
    assert local.rows() == list(range(20)) and local.files() == 1


@pytest.mark.slow
def test_the_reference_keeps_the_record(stream: Stream, reference: duckdb.DuckDBPyConnection) -> None:
    stream.run(3, range(20))
    attach(reference, stream.uri)
    options: list[tuple[str, str, str]] | None = None
    if duckdb.__version__ != "1.5.2":  # which cannot list options that it does not know
        options = reference.execute("SELECT option_name, value, scope FROM ducklake_options('lake')").fetchall()
    reference.execute("CALL lake.set_option('parquet_compression', 'zstd')")
    reference.execute("INSERT INTO t SELECT i FROM range(100, 150) r(i)")
    reference.execute("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)")
    detach(reference)
    with stream.session() as session:
        if options is not None:
            assert _records(session) == [row for row in options if row[0].startswith("ducklake_lab_stream:")]
        described = session.sql("SELECT description FROM lake.options() WHERE option_name LIKE 'ducklake_lab%'")
        assert described.fetchall() == [("Last micro-batch that the stream committed",)]
    stream.run(3, range(20))
    stream.run(4, range(20, 40))
    assert stream.rows() == [*range(40), *range(100, 150)]


def _records(session: dl.Session) -> list[tuple[str, str, str]]:
    query = "SELECT option_name, value, scope FROM lake.options() WHERE option_name LIKE 'ducklake_lab%'"
    return [(name, value, scope) for name, value, scope in session.sql(query).fetchall()]
