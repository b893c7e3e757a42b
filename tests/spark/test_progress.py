from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ducklake_lab.spark.progress import Progress, running

pytestmark = pytest.mark.sampled(4)


def test_progress_is_reported(spark: SparkSession) -> None:
    seen: list[Progress] = []
    with running(spark, seen.append):
        spark.range(0, 300_000_000, 1, 6).selectExpr("sum(sqrt(id) * sin(id))").collect()
    assert seen
    assert all(p.tasks_done <= p.tasks and p.stages_done <= p.stages for p in seen)
    assert seen[-1].tasks >= 6 and seen[-1].elapsed > 0


def test_an_interrupt_cancels_the_jobs(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt), running(spark):
        spark.range(0, 1_000_000_000_000, 1, 4).selectExpr("sum(sqrt(id))").collect()
    for _ in range(50):
        if not tracker.getActiveJobsIds():
            break
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()
    assert spark.range(3).count() == 3


def test_an_interrupt_stays_one_when_cleaning_up_fails(spark: SparkSession) -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            spark.range(1).selectExpr("no_such_column")

    with pytest.raises(KeyboardInterrupt), running(spark):
        interrupted()
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(AnalysisException), running(spark):
            spark.range(1).selectExpr("no_such_column")


def test_the_caller_s_job_group_comes_back(spark: SparkSession) -> None:
    spark.sparkContext.setJobGroup("mine", "my job")
    with running(spark):
        assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") != "mine"
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
