"""Runs independent pieces of work, one task each: maintenance of files that are too large for this process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from ducklake_lab.object_access import granted
from ducklake_lab.spark.errors import marking
from ducklake_lab.spark.workers import packages
from ducklake_lab.spark.workers.start import begin_task

Item = TypeVar("Item")
Found = TypeVar("Found")


def run_tasks(spark: SparkSession, function: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """Returns the function's result for each item, computed by executors; function, items and results are pickled."""
    packages.check(spark)
    accesses = granted()

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(accesses)
        for batch in batches:
            numbers, pieces = batch.column(0).to_pylist(), batch.column(1).to_pylist()
            with marking():
                results = [pickle.dumps(function(pickle.loads(piece))) for piece in pieces]
            yield pa.record_batch([pa.array(numbers, pa.int64()), pa.array(results, pa.binary())], names=["n", "data"])

    pieces = pa.table({"n": pa.array(range(len(items)), pa.int64()), "data": [pickle.dumps(item) for item in items]})
    frame = spark.createDataFrame(pieces).repartitionByRange(max(len(items), 1), "n")
    answer = frame.mapInArrow(work, "n bigint, data binary").toArrow().sort_by("n")
    return [pickle.loads(data) for data in answer.column("data").to_pylist()]
