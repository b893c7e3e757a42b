"""Starts Spark, or takes the session that is there, and sets what reading and writing lakes needs."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from ducklake_lab.errors import SparkError, UnsupportedFeatureError
from ducklake_lab.spark import class_archive
from ducklake_lab.spark.java import find_java

#: Settings of a running session that the reader and the writer rely on.
REQUIRED: Mapping[str, str] = {
    # columns are found in files by DuckLake's column id, not by name
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # a file without any field ids is an error, not NULLs
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # products of decimals keep all their digits, as in DuckDB, or are an error
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # an overflow or a bad cast is an error, not NULL
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # the paths are known; listing them as a Spark job takes seconds
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # a folder with its subfolders is one listing, whatever S3 is called
    "spark.sql.sources.useListFilesFileSystemList": "s3a,s3,s3n",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.timeType.enabled": "true",
    # a text like ${env:HOME} in a query is itself, not a variable
    "spark.sql.variable.substitute": "false",
    # constants of filters on their way to the reader: the other calendar has no place for days far from now
    "spark.sql.datetime.java8API.enabled": "true",
}

#: Rules of Spark's optimizer that fail: columns that one name has twice, and correlated subqueries, above a union.
_FAILING = tuple(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in ("RemoveRedundantAliases", "PushProjectionThroughUnion")
)
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_TIME_ZONE = "spark.sql.session.timeZone"
_start_lock = threading.Lock()


def start(config: Mapping[str, str] | None = None) -> SparkSession:
    """The session to work in: the active one, else a new one, local unless SPARK_REMOTE or `spark.master` says more.

    Args:
        config: settings for a new session, before ours; ignored where a session is active.

    Raises:
        JavaNotFoundError: a new local session needs Java and there is none.
        SparkError: Spark did not start.
    """
    with _start_lock:
        spark = active()
        if spark is None:
            try:
                remote = os.environ.get("SPARK_REMOTE")
                spark = _connect(remote, config or {}) if remote else _launch(config or {})
            except (PySparkException, RuntimeError, OSError) as error:
                first = next(iter(str(error).splitlines()), type(error).__name__)
                raise SparkError(f"Spark could not start: {first}") from error
        configure(spark)
        return spark


def active() -> SparkSession | None:
    """The session in use in this process, or None."""
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def configure(spark: SparkSession) -> None:
    """Sets what we rely on in a session handed in by the user; its other settings stay."""
    for key, value in REQUIRED.items():
        if spark.conf.get(key, None) != value:
            spark.conf.set(key, value)
    excluded = [rule.strip() for rule in (spark.conf.get(_EXCLUDED, None) or "").split(",") if rule.strip()]
    if missing := [rule for rule in _FAILING if rule not in excluded]:
        spark.conf.set(_EXCLUDED, ",".join([*excluded, *missing]))


def set_time_zone(spark: SparkSession, name: str) -> None:
    """Sets the zone in which queries that are made from now on read and show times.

    Raises:
        UnsupportedFeatureError: Spark does not know it.
    """
    if spark.conf.get(_TIME_ZONE, None) == name:
        return
    try:
        spark.conf.set(_TIME_ZONE, name)
    except PySparkException:
        raise UnsupportedFeatureError(
            f'Spark does not know the time zone "{name}"; SET TimeZone to another, such as UTC.'
        ) from None


def is_alive(spark: SparkSession) -> bool:
    """Whether the session still runs."""
    if is_connect(spark):
        return not bool(getattr(spark, "is_stopped", False))
    return active() is not None


def stop(spark: SparkSession) -> None:
    """Stops a session."""
    spark.stop()


def temporary_view(spark: SparkSession, name: str) -> DataFrame | None:
    """A temporary view by name; None where there is none."""
    quoted = f"`{name.replace('`', '``')}`"
    try:
        return spark.table(quoted) if spark.catalog.getTable(quoted).isTemporary else None
    except AnalysisException:
        return None


def scratch() -> Path:
    """A folder for what Spark is handed as files; this process deletes it when it ends."""
    return Path(_scratch().name)


@cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="ducklake-lab-")


def drop_view(spark: SparkSession, name: str) -> None:
    """Drops a temporary view; what was made of it stays as it is.

    The method of the catalog also lets go of what `persist` keeps of the view's DataFrame.
    """
    spark.sql(f"DROP VIEW IF EXISTS {name}")


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect client."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _connect(remote: str, config: Mapping[str, str]) -> SparkSession:
    # `local[…]` starts a server on this machine, which needs what a local Spark needs
    settings = {**_local(), **config} if remote.startswith("local") else config
    settings = {key: value for key, value in settings.items() if key != "spark.master"}
    with warnings.catch_warnings():
        # what the server was started with cannot be set again, as PySpark then tries
        warnings.filterwarnings("ignore", message="Failed to set spark", category=UserWarning)
        return _build(SparkSession.builder.remote(remote), settings)


def _launch(config: Mapping[str, str]) -> SparkSession:
    return _build(SparkSession.builder, {**_local(), **REQUIRED, **config})


def _build(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _local() -> Mapping[str, str]:
    """Readies this process to run a JVM; the settings it is started with."""
    java = find_java()
    os.environ["JAVA_HOME"] = java.launcher()
    # workers must be this Python, which has pyarrow
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # pyspark would print every failed query as JSON, beside the exception that it raises
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # and py4j the stack of a call that was interrupted
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # log4j2 takes a plain path as well as a URL, and the package is never inside an archive
    log4j = Path(str(files("ducklake_lab.spark") / "log4j2.properties")).resolve().as_uri()
    return {
        "spark.app.name": "ducklake-lab",
        "spark.master": "local[*]",
        # nothing outside this machine needs to reach a local Spark, and host names do not always resolve
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("DUCKLAKE_LAB_DRIVER_MEMORY", "2g"),
        "spark.driver.extraJavaOptions": " ".join(
            (f"-Dlog4j2.configurationFile={log4j}", *class_archive.options(java))
        ),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # a task per core; adaptive execution splits what is large
        "spark.sql.shuffle.partitions": str(max(2, 2 * (os.cpu_count() or 2))),
        "spark.sql.adaptive.enabled": "true",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.catalogImplementation": "in-memory",
        # else every function of a column looks for the line that called it, for messages that are ours to write
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
