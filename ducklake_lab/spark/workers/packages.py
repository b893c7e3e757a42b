"""Spark's Python workers on other machines: sends them this package, and checks once whether they lack others.

Workers of a local Spark run this process's Python, and need nothing.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ducklake_lab.errors import SparkError
from ducklake_lab.spark.errors import translate_error, worker_fault
from ducklake_lab.spark.runtime import scratch

#: Packages that workers need, by import name, with the versions in pyproject.toml.
NEEDED = {
    "duckdb": "duckdb>=1.5.2,<3",
    "pandas": "pandas>=2.2,<3",
    "pyarrow": "pyarrow>=19,<30",
    "sqlalchemy": "sqlalchemy>=2.0.36,<3",
}
#: Number of tasks that check the workers, so that each machine probably gets one.
_PROBES = 8

_sent: WeakSet[SparkSession] = WeakSet()
_faults: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()


def check(spark: SparkSession) -> None:
    """Prepares the workers to run functions of this package.

    Raises:
        SparkError: they cannot run them.
    """
    reason = fault(spark)
    if reason is not None:
        raise SparkError(reason)


def fault(spark: SparkSession) -> str | None:
    """Returns the reason why the workers cannot run functions of this package, or None; checks once per session.

    Raises:
        SparkError: the check failed.
    """
    if _is_local(spark):
        return None
    if spark not in _faults:
        send(spark)
        _faults[spark] = _ask(spark)
    return _faults[spark]


def send(spark: SparkSession) -> None:
    """Sends this package to the workers, where it has priority over an installed one."""
    if not _is_local(spark) and spark not in _sent:
        spark.addArtifacts(_archive(), pyfile=True)
        _sent.add(spark)


def _is_local(spark: SparkSession) -> bool:
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        # PySpark started the server in this process
        return "SPARK_LOCAL_REMOTE" in os.environ
    master = spark.sparkContext.master or ""
    return master.startswith("local") and not master.startswith("local-cluster")


@cache
def _archive() -> str:
    """Writes the modules of this package to a file that this process deletes at its end; returns its path."""
    root = Path(__file__).parents[2]
    path = scratch() / "ducklake_lab.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for module in sorted(root.rglob("*.py")):
            archive.write(module, f"ducklake_lab/{module.relative_to(root).as_posix()}")
    return str(path)


def _ask(spark: SparkSession) -> str | None:
    # a function without a module is pickled with its code, so that a worker without this package can run it
    probe = F.udf(FunctionType(_probe.__code__, {"__name__": "__main__"}), "string", useArrow=False)
    try:
        asked = spark.range(0, _PROBES, 1, _PROBES).select(probe(F.lit(" ".join(NEEDED))).alias("found"))
        answers = [json.loads(row.found) for row in asked.distinct().collect()]
    except PySparkException as error:
        unfit = worker_fault(error)
        if unfit is None:
            raise translate_error(error) or error from error
        return unfit
    return next(filter(None, map(_lack, answers)), None)


def _probe(names: str) -> str:
    """Returns a worker's state as JSON: its Python, and each package's version or import error."""
    import importlib
    import json
    import sys

    packages = {}
    for name in names.split():
        try:
            packages[name] = [importlib.import_module(name).__version__, None]
        except (ImportError, AttributeError, OSError) as error:
            packages[name] = [None, type(error).__name__ + ": " + str(error)]
    return json.dumps({"python": sys.executable, "packages": packages})


def _lack(answer: Mapping[str, Any]) -> str | None:
    """Returns a message on packages that a worker lacks; None if it lacks none."""
    wrong, install = [], []
    for name, (version, error) in answer["packages"].items():
        least, _, below = NEEDED[name].removeprefix(f"{name}>=").partition(",<")
        if version is None:
            missing = error.startswith("ModuleNotFoundError") and f"'{name}'" in error
            wrong.append(f"no {name}" if missing else f"a {name} that cannot be imported ({error})")
        elif not _numbers(least) <= _numbers(version) < _numbers(below):
            wrong.append(f"{name} {version}")
        else:
            continue
        install.append(f'"{NEEDED[name]}"')
    if not wrong:
        return None
    python = answer["python"]
    return f"Spark's workers have {' and '.join(wrong)}; install it there: {python} -m pip install {' '.join(install)}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
