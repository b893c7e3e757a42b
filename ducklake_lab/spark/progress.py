"""What Spark is doing while a query runs, and how to stop it. Public APIs only, classic and Connect."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import SparkSession

from ducklake_lab.spark.runtime import is_connect

if TYPE_CHECKING:
    from pyspark.sql.connect.shell.progress import ProgressHandler

_INTERVAL = 0.2


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the jobs of a query are.

    Attributes:
        stages: those known so far; more may follow.
        elapsed: seconds since the query started.
    """

    stages_done: int
    stages: int
    tasks_done: int
    tasks: int
    elapsed: float


OnProgress = Callable[[Progress], None]


@contextmanager
def running(spark: SparkSession, on_progress: OnProgress | None = None) -> Iterator[None]:
    """Watches the jobs that this thread starts inside the block.

    `on_progress` is called now and then, from another thread. If the block is left by KeyboardInterrupt, or by any
    other exception, its jobs are cancelled and the exception goes on.
    """
    name = f"ducklake-lab-{uuid.uuid4()}"
    with _connect(spark, name, on_progress) if is_connect(spark) else _classic(spark, name, on_progress):
        yield


@contextmanager
def _classic(spark: SparkSession, name: str, on_progress: OnProgress | None) -> Iterator[None]:
    context = spark.sparkContext
    before = [context.getLocalProperty(key) for key in ("spark.jobGroup.id", "spark.job.description")]
    context.setJobGroup(name, before[1] or "", interruptOnCancel=False)
    done = threading.Event()
    watcher = None
    if on_progress is not None:
        watcher = threading.Thread(target=_watch, args=(spark, name, on_progress, done), daemon=True)
        watcher.start()
    try:
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


def _watch(spark: SparkSession, group: str, on_progress: OnProgress, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    start = time.monotonic()
    last: tuple[int, ...] | None = None
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
        if ids and counts != last:
            last = counts
            on_progress(Progress(*counts, elapsed=time.monotonic() - start))


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
                )
            )

    handler = cast("ProgressHandler", handle)  # an abstract class, though any callable will do
    spark.addTag(name)
    spark.registerProgressHandler(handler)
    try:
        yield
    except BaseException:
        spark.interruptTag(name)
        raise
    finally:
        spark.removeProgressHandler(handler)
        spark.removeTag(name)
