"""States of streaming queries, on a real Spark."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from ducklake_lab.magics import streams
from ducklake_lab.spark.streams import Stream, StreamState, active_queries
from ducklake_lab.widgets.stream import StreamView, facts

pytestmark = pytest.mark.sampled(3)


def ended(stream: Stream) -> StreamState:
    for _ in range(600):
        if (state := stream.look()).state != "running":
            return state
        time.sleep(0.1)
    raise AssertionError("the query goes on")


def test_batches_and_rows_until_it_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(70).write.parquet(f"{tmp_path}/rows")
    rows = spark.readStream.schema("id BIGINT").parquet(f"{tmp_path}/rows")
    query = rows.writeStream.format("memory").queryName("seen").start()
    stream = Stream(query)
    assert stream.run_id in {str(one.runId) for one in active_queries([spark])}
    query.processAllAvailable()
    state = stream.look()
    assert (state.state, state.batch, state.rows, state.error) == ("running", 0, 70, "")
    spark.range(5).write.mode("append").parquet(f"{tmp_path}/rows")
    query.processAllAvailable()
    assert facts(stream.look()).startswith("batch 1 · 75 rows · ")
    # a query without new rows reports its next batch, too
    while not any(progress["batchId"] == 2 for progress in query.recentProgress):
        time.sleep(0.5)
    assert (stream.look().batch, stream.look().rows) == (1, 75)
    assert '</b> running <span class="dlk-soft">as of 20' in StreamView(stream).still()
    query.stop()
    assert (ended(stream).state, stream.look().rows) == ("stopped", 75)
    assert repr(StreamView(stream)) == "Stream seen stopped · batch 1 · 75 rows"
    assert stream.run_id not in {str(one.runId) for one in active_queries([spark])}


def test_rows_of_a_batch_without_their_sum() -> None:
    source = {"description": "s", "startOffset": "", "endOffset": "", "latestOffset": "", "metrics": {}}
    sources = [source | {"numInputRows": n, "inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0} for n in (40, 2)]
    progress = StreamingQueryProgress.fromJson(
        {
            "id": "3f5a1c34-5e9c-4a1c-9d3f-5a1c345e9c4a",
            "runId": "3f5a1c34-5e9c-4a1c-9d3f-5a1c345e9c4b",
            "name": "seen",
            "timestamp": "2024-01-01T00:00:00Z",
            "batchId": 3,
            "batchDuration": 1,
            "durationMs": {"addBatch": 1},
            "eventTime": {},
            "stateOperators": [],
            "sources": sources,
            "sink": {"description": "m", "numOutputRows": 1, "metrics": {}},
        }
    )
    query = SimpleNamespace(
        id="3f5a1c34", runId="4b", name="seen", isActive=True, status={"message": "waits"}, recentProgress=[progress]
    )
    assert Stream(query).look() == StreamState("running", batch=3, rows=42, since=3, doing="waits")


def test_the_first_line_of_an_error(spark: SparkSession) -> None:
    def fail(frame: DataFrame, number: int) -> None:
        raise ValueError("it broke <here>\nand there, with password=hunter2hunter2")

    query = spark.readStream.format("rate").load().writeStream.foreachBatch(fail).start()
    state = ended(stream := Stream(query))
    assert state.state == "failed"
    assert "\n" not in state.error and "hunter2" not in state.error
    assert "it broke" in state.error, state.error
    assert "<here>" not in StreamView(stream).still()


@pytest.mark.anywhere
def test_a_cell_that_waits_for_its_query(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = InteractiveShell()
    shown: list[StreamView] = []
    waiting = threading.Event()

    def show(view: StreamView) -> None:
        shown.append(view)
        # the user stops the cell when its query is seen
        assert waiting.wait(60)
        if len(shown) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    def wait_for_its_end() -> None:
        waiting.set()
        query.awaitTermination()

    monkeypatch.setattr(streams, "display", show)
    streams.StreamCells(shell, list)
    shell.events.trigger("pre_run_cell", None)
    query = spark.readStream.format("rate").load().writeStream.format("memory").queryName("waited").start()
    try:
        with pytest.raises(KeyboardInterrupt):
            wait_for_its_end()
        # as the value of the same cell it is not shown twice
        shell.display_formatter.format(query)
        shell.events.trigger("post_run_cell", None)
        assert [view.name for view in shown] == ["waited"] and query.isActive
        # an interrupt takes the active session from the thread
        assert str(query.runId) in {str(one.runId) for one in active_queries([])}
        assert spark.range(3).count() == 3
        shell.events.trigger("pre_run_cell", None)
        shell.events.trigger("post_run_cell", None)
        assert len(shown) == 1
        shell.events.trigger("pre_run_cell", None)
        shell.display_formatter.format(query)
        shell.events.trigger("post_run_cell", None)
        assert len(shown) == 2
    finally:
        query.stop()
