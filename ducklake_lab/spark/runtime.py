"""Starts Spark, or uses the active session, and opens a session with the settings for reading and writing lakes."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from ducklake_lab.errors import SparkError, UnsupportedFeatureError
from ducklake_lab.spark import class_archive
from ducklake_lab.spark.java import find_java

#: Session settings that the reader and the writer require.
REQUIRED: Mapping[str, str] = {
    # columns are found in files by DuckLake's column id, not by name
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # a file without any field ids is an error, not NULLs
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # products of decimals keep all digits, as in DuckDB, or raise an error
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # an overflow or a bad cast is an error, not NULL
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # the paths are known; a Spark job to list them takes seconds
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # one listing covers a folder with its subfolders, for any name of the S3 scheme
    "spark.sql.sources.useListFilesFileSystemList": "s3a,s3,s3n",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.timeType.enabled": "true",
    # a text such as ${env:HOME} in a query is not a variable
    "spark.sql.variable.substitute": "false",
    # constants of filters for the reader: the older API's calendar cannot hold distant days
    "spark.sql.datetime.java8API.enabled": "true",
    # a recursive query ends when it finds no more rows, as in DuckDB
    "spark.sql.cteRecursionLevelLimit": "-1",
    "spark.sql.cteRecursionRowLimit": "-1",
}

#: Failing rules of Spark's optimizer: for duplicate column names, and for correlated subqueries above a union.
_FAILING = tuple(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in ("RemoveRedundantAliases", "PushProjectionThroughUnion")
)
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_TIME_ZONE = "spark.sql.session.timeZone"
_start_lock = threading.Lock()


@dataclass(slots=True)
class _Claim:
    """The settings of a user's session that queries run in.

    Attributes:
        count: engines that use it.
        before: the former values of changed settings; None for those that were not set.
    """

    count: int = 0
    before: Mapping[str, str | None] = field(default_factory=dict)


_claims: WeakKeyDictionary[SparkSession, _Claim] = WeakKeyDictionary()


def start(config: Mapping[str, str] | None = None) -> SparkSession:
    """Returns the active session, or starts one: local, unless SPARK_REMOTE or `spark.master` is set.

    Args:
        config: settings for a new session, before the package's own; ignored if a session is active.

    Raises:
        JavaNotFoundError: a new local session needs Java, and none is installed.
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
        return spark


def active() -> SparkSession | None:
    """Returns the active session of this process, or None."""
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def own_session(spark: SparkSession) -> SparkSession:
    """Returns a session for this package's own queries beside the user's, with the required settings.

    Both share the jobs, tables and cached rows of one Spark. Views, functions and settings of each are its own; the new
    one begins with the settings of the user's. A plan keeps the settings it was analyzed with, and its files those of
    the session that reads them, so a DataFrame of this session gives the same rows in the user's.

    Spark Connect analyzes a plan anew for each use. There, it is the user's session, with the required settings until
    `give_back` was called as often.
    """
    if is_connect(spark):
        claim = _claims.setdefault(spark, _Claim())
        claim.count += 1
        claim.before = {**configure(spark), **claim.before}
        return spark
    own = spark.newSession()
    before = own.conf.getAll
    for key, value in spark.conf.getAll.items():
        if before.get(key) != value and own.conf.isModifiable(key):
            own.conf.set(key, value)
    configure(own)
    return own


def give_back(own: SparkSession) -> None:
    """Gives up a session of `own_session`; the last one of a Spark Connect client restores the user's settings."""
    claim = _claims.get(own)
    if claim is None:
        return
    claim.count -= 1
    if claim.count or not is_alive(own):
        return
    del _claims[own]
    for key, value in claim.before.items():
        if value is None:
            own.conf.unset(key)
        else:
            own.conf.set(key, value)


def configure(spark: SparkSession) -> Mapping[str, str | None]:
    """Makes the required settings; keeps the other settings. Returns the former values of what it changed."""
    excluded = [rule.strip() for rule in (spark.conf.get(_EXCLUDED, None) or "").split(",") if rule.strip()]
    excluded += [rule for rule in _FAILING if rule not in excluded]
    return _change(spark, {**REQUIRED, _EXCLUDED: ",".join(excluded)})


def _change(spark: SparkSession, settings: Mapping[str, str]) -> Mapping[str, str | None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    changed = {key: value for key, value in before.items() if value != settings[key]}
    for key in changed:
        spark.conf.set(key, settings[key])
    return changed


def set_time_zone(own: SparkSession, name: str) -> None:
    """Sets the time zone in which later queries of an own session read and show times.

    Raises:
        UnsupportedFeatureError: Spark does not know the zone.
    """
    try:
        changed = _change(own, {_TIME_ZONE: name})
    except PySparkException:
        raise UnsupportedFeatureError(
            f'Spark does not know the time zone "{name}"; SET TimeZone to another, such as UTC.'
        ) from None
    if changed and (claim := _claims.get(own)) is not None:
        claim.before = {**changed, **claim.before}


@contextmanager
def acting(spark: SparkSession) -> Iterator[None]:
    """Makes a session the active one of this thread in the block: Spark reads its settings where it makes expressions."""
    if is_connect(spark):
        yield
        return
    assert spark._jvm is not None
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession
    before, known = sessions.getActiveSession(), SparkSession._activeSession
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        SparkSession._activeSession = known  # PySpark's createDataFrame replaces it
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def is_alive(spark: SparkSession) -> bool:
    """Whether the session still runs."""
    if is_connect(spark):
        return not bool(getattr(spark, "is_stopped", False))
    return active() is not None


def stop(spark: SparkSession) -> None:
    """Stops a session."""
    spark.stop()


def temporary_view(spark: SparkSession, name: str) -> DataFrame | None:
    """Returns a temporary view by name; None if there is none.

    Raises:
        SparkError: Spark cannot read it any more, as one of a lake that was detached.
    """
    quoted = f"`{name.replace('`', '``')}`"
    try:
        return spark.table(quoted) if spark.catalog.getTable(quoted).isTemporary else None
    except AnalysisException:
        return None
    except PySparkException as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise SparkError(f"The temporary view {name} of Spark cannot be read: {reason}.") from error


def scratch() -> Path:
    """Returns a folder for files that Spark receives; this process deletes it at its end."""
    return Path(_scratch().name)


@cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="ducklake-lab-")


def drop_view(spark: SparkSession, name: str) -> None:
    """Drops a temporary view; DataFrames made from it stay valid.

    The catalog's own method would also unpersist the view's DataFrame.
    """
    spark.sql(f"DROP VIEW IF EXISTS {name}")


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect client."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _connect(remote: str, config: Mapping[str, str]) -> SparkSession:
    # `local[…]` starts a server on this machine, with the needs of a local Spark
    settings = {**_local(), **config} if remote.startswith("local") else config
    settings = {key: value for key, value in settings.items() if key != "spark.master"}
    with warnings.catch_warnings():
        # PySpark also tries to set the server's start options, which fails
        warnings.filterwarnings("ignore", message="Failed to set spark", category=UserWarning)
        return _build(SparkSession.builder.remote(remote), settings)


def _launch(config: Mapping[str, str]) -> SparkSession:
    return _build(SparkSession.builder, {**_local(), **config})


def _build(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _local() -> Mapping[str, str]:
    """Prepares this process to run a JVM; returns the settings for its start."""
    java = find_java()
    os.environ["JAVA_HOME"] = java.launcher()
    # workers must use this Python, which has pyarrow
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # pyspark would print each failed query as JSON, besides the exception
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # py4j would print the stack of an interrupted call
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # log4j2 accepts a plain path too, and the package is never inside an archive
    log4j = Path(str(files("ducklake_lab.spark") / "log4j2.properties")).resolve().as_uri()
    return {
        "spark.app.name": "ducklake-lab",
        "spark.master": "local[*]",
        # no other machine needs to reach a local Spark, and host names do not always resolve
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("DUCKLAKE_LAB_DRIVER_MEMORY", "2g"),
        "spark.driver.extraJavaOptions": " ".join(
            (f"-Dlog4j2.configurationFile={log4j}", *class_archive.options(java))
        ),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # two tasks per core; adaptive execution splits large partitions
        "spark.sql.shuffle.partitions": str(max(2, 2 * (os.cpu_count() or 2))),
        "spark.sql.adaptive.enabled": "true",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.catalogImplementation": "in-memory",
        # otherwise each column function searches its caller's line, for messages that this package words itself
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
