"""Runs streams and statements on Spark, and dies on the way where a file says so.

`python -m tests.spark.killed_work FOLDER SOURCE TARGET WHERE` reads requests as lines of JSON: `["copy", file]` and others of `Work`.
It prints a line of JSON for each, with the error of one that failed. The file `die` in the folder has a step and a scope: `worker` kills
the process of Python that comes to the step, `all` Spark as a whole.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.datasource import DuckLakeDataSource
from ducklake_lab.datasource.stream import FeedStreamReader, TableStreamReader
from ducklake_lab.datasource.stream_writer import TableStreamWriter
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.spark import runtime
from tests.spark.versions import SPARK

#: Steps of a stream: its source plans a batch and reads it, its sink writes, commits, and has committed.
STREAM_STEPS = ("offset", "plan", "read", "write", "ask", "commit")
#: Steps of a statement of Spark SQL; only one that writes new versions of rows comes to the first two.
STATEMENT_STEPS = ("sql begin", "sql write", "sql ask", "sql commit")
#: Names the file, and the group of the processes that die: Python's workers are in another one.
_FILE, _GROUP = "KILLED_WORK_FILE", "KILLED_WORK_GROUP"


def _die(step: str) -> None:
    path = Path(os.environ[_FILE])
    try:
        wanted, scope = path.read_text().split("|")
        if wanted != step:
            return
        path.unlink()
    except FileNotFoundError:  # nobody is to die, or another task was first
        return
    if scope == "all":
        os.killpg(int(os.environ[_GROUP]), signal.SIGKILL)
        time.sleep(60)
    os.kill(os.getpid(), signal.SIGKILL)


class _Dying:
    """Steps of the reader of a stream."""

    def latestOffset(self, *arguments: Any) -> Any:
        found = super().latestOffset(*arguments)  # type: ignore[misc]
        _die("offset")
        return found

    def partitions(self, start: Any, end: Any) -> Any:
        found = super().partitions(start, end)  # type: ignore[misc]
        _die("plan")
        return found

    def read(self, partition: Any) -> Iterator[Any]:
        for batch in super().read(partition):  # type: ignore[misc]
            yield batch
            _die("read")


class _Reader(_Dying, TableStreamReader):
    pass


class _FeedReader(_Dying, FeedStreamReader):
    pass


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
        return (_FeedReader if self._target.change_feed else _Reader)(self._target, schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return _Writer(self._target, schema, overwrite)


class Work:
    """Runs requests on one Spark: `copy`, `feed`, `named` (a stream by names of tables), `sql`."""

    def __init__(self, folder: str, source: str, target: str, where: str) -> None:
        self._folder, self._source, self._target = folder, source, target
        self._spark: SparkSession = runtime.start(
            {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
        )
        self._sessions = []
        if where == "classic":
            self._sessions = [dl.spark_catalog(self._spark, name, uri) for name, uri in (("a", source), ("b", target))]
            assert all(session.spark is not None for session in self._sessions)  # which makes the format known
            self._watch_statements()
        self._spark.dataSource.register(_Source)

    def copy(self) -> None:
        """Streams the rows of t in the source to t in the target."""
        frame = self._read(table="t", **_limits())
        self._wait(self._write(frame, "t").start())

    def feed(self) -> None:
        """Streams the changes of c in the source to a table of the target."""
        self._wait(self._write(self._read(table="c", readChangeFeed="true", startingVersion="2"), "feed").start())

    def named(self) -> None:
        """Streams t by the names of tables in catalogs of Spark."""
        frame = self._spark.readStream.table("a.main.t")
        self._wait(self._checkpointed(frame, "named").toTable("b.main.named"))

    def sql(self, text: str) -> None:
        """Runs a statement of Spark SQL."""
        self._spark.sql(text).collect()
        _die("sql commit")

    def _read(self, **options: str) -> Any:
        return self._spark.readStream.format("ducklake").options(**options).load(self._source)

    def _checkpointed(self, frame: Any, name: str) -> Any:
        return frame.writeStream.option("checkpointLocation", f"{self._folder}/{name}").trigger(availableNow=True)

    def _write(self, frame: Any, name: str) -> Any:
        return self._checkpointed(frame, name).format("ducklake").options(table=name, path=self._target)

    @staticmethod
    def _wait(query: Any) -> None:
        query.awaitTermination()

    @staticmethod
    def _watch_statements() -> None:
        write = Dml.append_new_versions

        def append(self: Dml, *arguments: Any) -> None:
            _die("sql begin")
            write(self, *arguments)
            _die("sql write")

        Dml.append_new_versions = append  # type: ignore[method-assign]
        sa.event.listen(sa.Engine, "commit", lambda connection: _die("sql ask"))


def _limits() -> dict[str, str]:
    """Two files in each batch, where this PySpark gives sources limits."""
    return {} if SPARK < (4, 2) else {"maxFilesPerTrigger": "2"}


def main(folder: str, source: str, target: str, where: str) -> None:
    os.environ[_FILE], os.environ[_GROUP] = f"{folder}/die", str(os.getpgid(0))
    if where == "connect":
        os.environ["SPARK_REMOTE"] = "local[2]"
    work = Work(folder, source, target, where)
    print("@" + json.dumps("started"), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        run: Callable[..., None] = getattr(work, name)
        try:
            run(*arguments)
            answer = None
        except Exception as error:  # noqa: BLE001 - the harness says which errors are expected
            answer = str(error)[:2000] or type(error).__name__
        print("@" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
