"""Watches and cancels Spark's jobs during a query. Uses only public APIs, of classic Spark and Connect."""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import SparkSession

from ducklake_lab.duckdb.stopping import on_interrupt
from ducklake_lab.spark.runtime import is_connect

if TYPE_CHECKING:
    from pyspark.sql.connect.shell.progress import ProgressHandler

_INTERVAL = 0.2
#: Seconds between requests to Spark's UI, and the timeout of a request.
_ASK_EVERY, _ANSWER = 1.0, 20.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a query's jobs.

    Attributes:
        stages: number of stages so far; more may follow.
        elapsed: seconds since the query started.
        bytes_read: bytes of files read by finished tasks; None if unknown, as for a local Spark without a UI.
    """

    stages_done: int
    stages: int
    tasks_done: int
    tasks: int
    elapsed: float
    bytes_read: int | None = None


OnProgress = Callable[[Progress], None]


@contextmanager
def running(spark: SparkSession, on_progress: OnProgress | None = None) -> Iterator[None]:
    """Watches the jobs that this thread starts in the block.

    `on_progress` is called repeatedly, from another thread. If an exception leaves the block, KeyboardInterrupt
    included, its jobs are cancelled and the exception continues.
    """
    name = f"ducklake-lab-{uuid.uuid4()}"
    handled = sys.exception()
    try:
        with _connect(spark, name, on_progress) if is_connect(spark) else _classic(spark, name, on_progress):
            yield
    except Exception as error:
        if _follows_interrupt(error, handled):
            raise KeyboardInterrupt from error
        raise


def _follows_interrupt(error: BaseException, handled: BaseException | None) -> bool:
    """Whether an exception is PySpark's reaction to an interrupt, on a connection that the interrupt had closed.

    Args:
        handled: the exception that is already being handled outside; an earlier interrupt does not count.
    """
    earlier = error.__context__
    if earlier is None or earlier is handled:
        return False
    return isinstance(earlier, KeyboardInterrupt) or _follows_interrupt(earlier, handled)


@contextmanager
def _classic(spark: SparkSession, name: str, on_progress: OnProgress | None) -> Iterator[None]:
    context = spark.sparkContext
    before = [context.getLocalProperty(key) for key in ("spark.jobGroup.id", "spark.job.description")]
    context.setJobGroup(name, before[1] or "", interruptOnCancel=False)
    # a thread's only connection to Java is busy; PySpark raises the interrupt once the jobs have ended
    cancel = threading.Thread(target=context.cancelJobGroup, args=(name,), daemon=True)
    done = threading.Event()
    watcher = None
    if on_progress is not None:
        watcher = threading.Thread(target=_watch, args=(spark, name, on_progress, done), daemon=True)
        watcher.start()
    try:
        with on_interrupt(_once(cancel)):
            yield
    except BaseException:
        context.cancelJobGroup(name)
        raise
    finally:
        done.set()
        if watcher is not None:
            watcher.join()
        for key, value in zip(("spark.jobGroup.id", "spark.job.description"), before, strict=True):
            # None removes the property
            context.setLocalProperty(key, value)  # type: ignore[arg-type]


def _once(thread: threading.Thread) -> Callable[[], None]:
    """Returns a function that starts a thread on its first call."""
    return lambda: None if thread.ident is not None else thread.start()


def _watch(spark: SparkSession, group: str, on_progress: OnProgress, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    start = time.monotonic()
    inputs = StageInputs(spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId)
    last: tuple[int | None, ...] | None = None
    while not done.wait(_INTERVAL):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        ids = {stage for job in jobs if job is not None for stage in job.stageIds}
        infos = [info for info in (tracker.getStageInfo(stage) for stage in ids) if info is not None]
        counts = (
            sum(1 for info in infos if info.numTasks and info.numCompletedTasks == info.numTasks),
            len(ids),
            sum(info.numCompletedTasks for info in infos),
            sum(info.numTasks for info in infos),
        )
        if not ids:
            continue
        read = inputs.bytes(ids)
        if (*counts, read) != last:
            last = (*counts, read)
            on_progress(Progress(*counts, elapsed=time.monotonic() - start, bytes_read=read))


class StageInputs:
    """Bytes that stages have read, from the REST API of Spark's UI; no other public API has them.

    Args:
        address: the address of the UI; None without one.
    """

    def __init__(self, address: str | None, application: str) -> None:
        self._stages = f"{address}/api/v1/applications/{application}/stages" if address else None
        self._latest: int | None = None
        self._asked = 0.0
        self._asking: threading.Thread | None = None

    def bytes(self, stages: Iterable[int]) -> int | None:
        """Returns the latest known sum of bytes that some stages have read; None before the first answer.

        It never waits: a thread asks, since the UI takes seconds for its first answer.
        """
        idle = self._asking is None or not self._asking.is_alive()
        if self._stages is not None and idle and time.monotonic() - self._asked > _ASK_EVERY:
            self._asked = time.monotonic()
            self._asking = threading.Thread(target=self._ask, args=(self._stages, tuple(stages)), daemon=True)
            self._asking.start()
        return self._latest

    def _ask(self, address: str, stages: tuple[int, ...]) -> None:
        try:
            self._latest = sum(_input_bytes(f"{address}/{stage}") for stage in stages)
        except TimeoutError:
            return  # a later request may succeed
        except (OSError, ValueError, KeyError):  # a UI behind a login or a proxy
            self._stages = None


def _input_bytes(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=_ANSWER) as answer:
            return sum(int(attempt["inputBytes"]) for attempt in json.load(answer))
    except urllib.error.HTTPError as error:
        if error.code == 404:  # the stage has not begun
            return 0
        raise


@contextmanager
def _connect(spark: SparkSession, name: str, on_progress: OnProgress | None) -> Iterator[None]:
    start = time.monotonic()

    def handle(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        known = list(stages or ())
        if on_progress is not None and known:
            on_progress(
                Progress(
                    stages_done=sum(1 for stage in known if stage.done),
                    stages=len(known),
                    tasks_done=sum(stage.num_completed_tasks for stage in known),
                    tasks=sum(stage.num_tasks for stage in known),
                    elapsed=time.monotonic() - start,
                    bytes_read=sum(stage.num_bytes_read for stage in known),
                )
            )

    handler = cast("ProgressHandler", handle)  # an abstract class, although any callable works
    cancel = threading.Thread(target=spark.interruptTag, args=(name,), daemon=True)
    spark.addTag(name)
    spark.registerProgressHandler(handler)
    try:
        with on_interrupt(_once(cancel)):
            yield
    except BaseException:
        spark.interruptTag(name)
        raise
    finally:
        spark.removeProgressHandler(handler)
        spark.removeTag(name)
