"""Python workers of Spark that lack something: on a cluster the package is sent to them, and errors say the cause."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from ducklake_lab.spark.errors import translate_error
from ducklake_lab.spark.workers import packages
from ducklake_lab.spark.workers.tasks import run_tasks
from tests.cluster import standalone_cluster

pytestmark = pytest.mark.sampled(5)

#: Hides packages of the worker's Python; ours is found in what the session sent, and nowhere else.
_HIDING = """
import sys
from importlib.machinery import PathFinder

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "ducklake_lab":
            sent = [place for place in sys.path if place.endswith("ducklake_lab.zip")]
            found = PathFinder.find_spec(name, sent)
            if found is not None:
                return found
        if name in {hidden!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
        return None

sys.meta_path.insert(0, Hidden())
"""

_SCRIPT = """
import json, sys
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.session import Session
from ducklake_lab.spark import runtime
from ducklake_lab.spark.workers import packages

config, folder = json.loads(sys.argv[1]), sys.argv[2]
spark = runtime.start(config)
found = {"fault": packages.fault(spark)}
with Session(spark=spark, engine="spark") as session:
    session.attach(f"ducklake:{folder}/l.ducklake", alias="l", data_path=f"{folder}/data")
    session.sql("USE l; CREATE TABLE t AS SELECT i FROM range(2000) r(i); CREATE TABLE u (k UUID, l INTEGER[])")
    found["explain"] = session.sql("EXPLAIN UPDATE t SET i = i + 1 WHERE i % 2 = 0").fetchall()[0][1]
    session.sql("UPDATE t SET i = i + 1 WHERE i % 2 = 0")
    found["updated"] = session.sql("SELECT count(*), sum(i) FROM t").fetchall()
    try:
        session.write(spark.range(5000).selectExpr("CAST(uuid() AS STRING) AS k", "array(CAST(id AS INT)) AS l"), "u")
        found["written"] = session.sql("SELECT count(*) FROM u", engine="duckdb").fetchall()
    except DuckLakeError as error:
        found["error"] = [type(error).__name__, str(error)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as settings:
        yield settings


def _run(cluster: dict[str, str], folder: Path, hidden: tuple[str, ...], **versions: str) -> dict[str, Any]:
    """Run a session where the workers' Python hides packages, or has other versions of them."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_HIDING.format(hidden=("ducklake_lab", *hidden)))
    for name, version in versions.items():
        (site / f"{name}.py").write_text(f"__version__ = {version!r}\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(cluster), str(folder)],
        env={**os.environ, "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_cluster_gets_the_package(cluster: dict[str, str], tmp_path: Path) -> None:
    found = _run(cluster, tmp_path, ())
    assert found["fault"] is None
    assert "runs in Spark's workers, by DuckDB" in found["explain"]
    assert found["updated"] == [[2000, 2000000]]
    assert found["written"] == [[5000]]


def test_what_workers_lack_is_said_and_sparks_reader_serves(cluster: dict[str, str], tmp_path: Path) -> None:
    found = _run(cluster, tmp_path, ("pandas",), duckdb="1.2.0")
    assert found["fault"].startswith("Spark's workers have duckdb 1.2.0 and no pandas; install it there: ")
    assert found["fault"].endswith(' -m pip install "duckdb>=1.5.2,<3" "pandas>=2.2,<3"')
    assert "runs on Spark · asked for:" in found["explain"]
    assert found["updated"] == [[2000, 2000000]]
    assert found["error"] == ["SparkError", found["fault"]]


def test_what_workers_need_is_what_the_package_needs() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(packages.NEEDED.values()) <= set(project["dependencies"])


def test_a_local_spark_is_not_asked(spark: Any, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--spark") == "cluster":
        pytest.skip("a cluster is asked")
    packages.send(spark)
    packages.check(spark)
    assert spark not in packages._faults
    assert spark not in packages._sent


def _no_package(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import no_such_package.part  # noqa: F401

    yield from batches


def _wrong(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError("not [like] this: 5\nmore") from error


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_no_package, "Spark's Python workers have no package no_such_package; install it there."),
        (
            _wrong,
            f"Line {_wrong.__code__.co_firstlineno + 4} of _wrong failed in a Python worker of Spark: "
            "ValueError: not [like] this: 5",
        ),
    ],
)
def test_errors_of_workers_say_the_cause(spark: Any, function: Any, said: str) -> None:
    # of no module, so that workers need not import this one
    function = type(function)(function.__code__, {"__name__": "__main__"})
    with pytest.raises(PySparkException) as raised:
        spark.range(3).mapInArrow(function, "id long").collect()
    assert str(translate_error(raised.value)) == said


def test_what_a_worker_loaded_is_left_out_of_garbage_collection(spark: Any) -> None:
    assert min(run_tasks(spark, lambda _: gc.get_freeze_count(), range(4))) > 10_000
