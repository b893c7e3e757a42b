"""Copies the table t of a lake to another lake by a stream, and is killed with SIGKILL on the way.

`python -m tests.spark.killed_stream SOURCE TARGET CHECKPOINT STEP`; the step is `none`, or one at which it dies:
`plan` (the batch is in the checkpoint), `write`, `ask` (before the catalog commits) or `commit` (the checkpoint does not
know yet).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import sqlalchemy as sa
from pyspark.sql import SparkSession

from ducklake_lab.datasource import DuckLakeDataSource
from ducklake_lab.datasource.stream import TableStreamReader
from ducklake_lab.datasource.stream_writer import TableStreamWriter
from ducklake_lab.spark import class_archive
from ducklake_lab.spark.java import find_java

#: Names the step, and the group of the processes that die: Python's workers are in another one.
_STEP, _GROUP = "KILLED_STREAM_STEP", "KILLED_STREAM_GROUP"


def _die(step: str, *_: Any) -> None:
    if os.environ[_STEP] == step:
        os.killpg(int(os.environ[_GROUP]), signal.SIGKILL)
        time.sleep(60)
        os._exit(1)


class _Reader(TableStreamReader):
    def partitions(self, start: Any, end: Any) -> Any:
        _die("plan")
        return super().partitions(start, end)


class _Writer(TableStreamWriter):
    def write(self, iterator: Any) -> Any:
        written = super().write(iterator)
        _die("write")
        return written

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803 - Spark's name
        sa.event.listen(sa.Engine, "commit", lambda connection: _die("ask"))
        super().commit(messages, batchId)
        _die("commit")


class _Source(DuckLakeDataSource):
    def streamReader(self, schema: Any) -> Any:
        return _Reader(self._target, schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return _Writer(self._target, schema, overwrite)


def main(source: str, target: str, checkpoint: str, step: str) -> None:
    os.environ[_STEP], os.environ[_GROUP] = step, str(os.getpgid(0))
    java = find_java()
    os.environ["JAVA_HOME"] = java.launcher()
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": " ".join(class_archive.options(java)),
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.dataSource.register(_Source)
    frame = spark.readStream.format("ducklake").option("table", "t").load(source)
    stream = frame.writeStream.format("ducklake").options(table="t", path=target, checkpointLocation=checkpoint)
    query = stream.trigger(availableNow=True).start()
    query.awaitTermination()
    print([(progress.batchId, progress.numInputRows) for progress in query.recentProgress])


if __name__ == "__main__":
    main(*sys.argv[1:5])
