"""Installs a catalog of Spark in Java, whose requests a function of this process answers (ADR 85).

The jar is built with the wheel; see `extensions/spark-catalog`. Its classes work in the driver; executors only read them
with the plans that tasks hold.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from py4j.java_collections import ListConverter  # type: ignore[import-untyped]
from py4j.java_gateway import JavaClass, JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError, UsageError
from ducklake_lab.spark.runtime import is_alive, is_connect

JAR = Path(__file__).with_name("ducklake-lab-spark.jar")
_CLASS = "ducklakelab.LakeCatalog"
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: Returns the kind and the text of an error for Java.
Describe = Callable[[BaseException, str], tuple[str, str]]


class Owner(Protocol):
    """Answers for the lakes of a session, as long as it lives."""

    def answer(
        self, alias: str, operation: str, request: dict[str, Any], frames: list[DataFrame], waiting: int | None
    ) -> object:
        """Answers a request: its name, its arguments and its rows. The answer is a DataFrame, a list of them, or JSON.

        Args:
            waiting: the thread that waits for Spark, if this one works for it.
        """


#: The owners of catalogs by key. A session that nobody holds lets its catalogs go.
_owners: WeakValueDictionary[str, Owner] = WeakValueDictionary()
#: The keys of catalogs by session and name.
_keys: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
#: Names of catalogs that a session has of the user's.
_shared: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
#: Threads of Python by those of Java that their calls run in.
_threads: dict[str, int] = {}


class _Callback:
    """Called by Java, in the thread that waits for Java if there is one."""

    def __init__(self, spark: SparkSession, alias: str, key: str, describe: Describe) -> None:
        self._spark = spark
        self._alias = alias
        self._key = key
        self._describe = describe

    def apply(self, operation: str, argument: Any) -> object:
        request = json.loads(argument[0])
        frames = [DataFrame(argument[place], self._spark) for place in range(1, len(argument))]
        try:
            owner = _owners.get(self._key)
            if owner is None:
                raise UsageError(f"The session of the catalog {self._alias} is closed; call dl.spark_catalog again.")
            answer = owner.answer(self._alias, operation, request, frames, _waiting(request))
        except BaseException as error:  # noqa: BLE001 - Java raises it again in the thread that asked
            kind, message = self._describe(error, operation)
            return json.dumps({"error": {"kind": kind, "message": message}})
        if isinstance(answer, list) and answer and isinstance(answer[0], DataFrame):
            client = self._spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
            return ListConverter().convert([frame._jdf for frame in answer], client)
        return answer._jdf if isinstance(answer, DataFrame) else json.dumps(answer)

    class Java:
        implements = ["java.util.function.BiFunction"]


def _waiting(request: dict[str, Any]) -> int | None:
    """Returns the thread of Python that waits for the thread of Java that asks; None if it is this one or unknown."""
    java = request.pop("thread", None)
    if request.pop("waits", False):
        _threads[java] = threading.get_ident()
        return None
    return _threads.get(java)


def fault(spark: SparkSession, name: str, owner: Owner) -> DuckLakeError | None:
    """Returns the error of a catalog that a session cannot have; None if it can."""
    reason = None
    if is_connect(spark):
        reason = "a Spark Connect client has no catalogs of its own; use the session's sql() and table()"
    elif not JAR.is_file():
        reason = "the jar is missing, as the wheel was built without a JDK; build it where javac 17 is"
    if reason is not None:
        return UnsupportedFeatureError(f"The Spark catalog {name} is not supported here: {reason}.")
    if name.casefold() == "spark_catalog" or not _NAME.fullmatch(name):
        return UsageError(f'"{name}" cannot name a catalog of Spark; attach the lake under an alias such as lake.')
    other = _owners.get(_keys.get(spark, {}).get(name, ""))
    if spark.conf.get(_setting(name), None) not in (None, _CLASS) or other not in (None, owner):
        return UsageError(f"Spark has a catalog {name} already; attach the lake under another alias.")
    return None


def install(spark: SparkSession, name: str, owner: Owner, describe: Describe) -> None:
    """Adds a catalog to a running session that can have it."""
    bridge = _classes(spark).ducklakelab.Bridge
    _give_to_executors(spark)
    gateway: Any = spark.sparkContext._gateway
    if gateway.__dict__.get("_callback_server") is None:
        bridge.watch(JavaObject("GATEWAY_SERVER", gateway._gateway_client))
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    # Spark keeps a catalog with its first settings
    key = _keys.setdefault(spark, {}).setdefault(name, uuid4().hex)
    _owners[key] = owner
    bridge.register(key, _Callback(spark, name, key, describe), spark._jsparkSession)
    bridge.install(spark._jsparkSession)
    spark.conf.set(_setting(name) + ".key", key)
    spark.conf.set(_setting(name), _CLASS)


def share(user: SparkSession, own: SparkSession) -> None:
    """Makes the catalogs of a session known to another one of the same Spark, which plans the user's rows anew."""
    shared = _shared.setdefault(own, set())
    names = [name for name in _keys.get(user, ()) if name not in shared and user.conf.get(_setting(name), None)]
    if not names:
        return
    _classes(user).ducklakelab.Bridge.install(own._jsparkSession)
    for name in names:
        own.conf.set(_setting(name) + ".key", _keys[user][name])
        own.conf.set(_setting(name), _CLASS)
    shared.update(names)


def forget(spark: SparkSession, name: str, owner: Owner) -> None:
    """Lets a catalog go, and takes its settings back; Spark keeps the catalog's name."""
    if not is_alive(spark):
        return
    key = _keys.get(spark, {}).get(name)
    if key is not None and _owners.get(key) is owner:
        del _owners[key]
        _classes(spark).ducklakelab.Bridge.forget(key)
        for setting in (_setting(name), _setting(name) + ".key"):
            spark.conf.unset(setting)


def _setting(name: str) -> str:
    return f"spark.sql.catalog.{name}"


def planned(frame: DataFrame, names: Sequence[str] | None = None) -> DataFrame:
    """Returns rows whose reads of lakes are planned now; on request under other names."""
    spark = frame.sparkSession
    rows = DataFrame(_classes(spark).ducklakelab.Bridge.planned(frame.select("*")._jdf), spark)
    return rows if names is None else rows.toDF(*names)


def reads_other_sources(frame: DataFrame) -> bool:
    """Returns whether rows come from a source that is no catalog of a lake, and that chooses by itself when it reads."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        kind = leaf.getClass().getSimpleName()
        if not kind.startswith("DataSourceV2"):
            continue
        table = leaf.relation().table() if kind == "DataSourceV2ScanRelation" else leaf.table()
        if table.getClass().getSimpleName() == "RowLevelOperationTable":
            table = table.table()  # the target of UPDATE, DELETE and MERGE
        if not table.getClass().getName().startswith("ducklakelab."):
            return True
    return False


def _give_to_executors(spark: SparkSession) -> None:
    """Sends the jar to the executors of a cluster: a task may hold the plan above it, which has nodes of these classes."""
    context: Any = spark.sparkContext
    is_here = re.fullmatch(r"local(\[.*\])?", context.master) is not None
    if not is_here and f"/{JAR.name}" not in context._jsc.sc().listJars().mkString(" "):
        context._jsc.addJar(JAR.as_uri())


def _classes(spark: SparkSession) -> Any:
    """Returns the JVM with the jar's classes loaded.

    Raises:
        UnsupportedFeatureError: the JVM takes no jars while it runs.
    """
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    url = jvm.java.io.File(str(JAR)).toURI().toURL()
    if not isinstance(jvm.ducklakelab.Bridge, JavaClass):
        try:
            loader.addURL(url)
        except Py4JError:
            raise UnsupportedFeatureError(
                f"This Spark takes no jars while it runs; start it with spark.driver.extraClassPath={JAR}."
            ) from None
    return jvm
