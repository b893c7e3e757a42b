"""Eight writers of one table, each with a partition of its own: none of them fails, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.datasource import register
from ducklake_lab.spark import runtime
from tests.reference import connect

pytestmark = pytest.mark.sampled(4)

WRITERS, ROUNDS = 8, 3


@pytest.fixture(params=["sqlite", "postgres"])
def table(request: pytest.FixtureRequest, new_catalog: Callable[..., str], tmp_path: Path) -> str:
    """The URI of a lake with the table t, which has a partition for each writer and one more."""
    uri = new_catalog(request.param)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (p INTEGER, k BIGINT, n BIGINT); ALTER TABLE t SET PARTITIONED BY (p)")
        session.sql(f"INSERT INTO t SELECT range % {WRITERS + 1}, range, 0 FROM range({100 * (WRITERS + 1)})")
    return uri


def at_once(spark: Any, write: Callable[[int], None]) -> None:
    """Runs all writers at once; raises the first error."""
    failed: list[BaseException] = []
    barrier = threading.Barrier(WRITERS)

    def run(number: int) -> None:
        try:
            barrier.wait(60)
            with runtime.acting(spark):
                write(number)
        except BaseException as error:  # noqa: BLE001 - the test raises it
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def rows(uri: str) -> list[tuple[Any, ...]]:
    with connect() as connection:
        connection.execute(f"ATTACH '{uri}' AS l")
        return connection.execute("SELECT p, count(*), sum(k), sum(n) FROM l.t GROUP BY p ORDER BY p").fetchall()


def test_statements_of_spark(spark: Any, spark_jar: None, table: str) -> None:
    with ExitStack() as stack:
        for number in range(WRITERS):
            stack.enter_context(dl.spark_catalog(spark, f"w{number}", table))

        def write(number: int) -> None:
            name = f"w{number}.main.t"
            for turn in range(ROUNDS):
                frame = spark.range(30).selectExpr(f"{number} AS p", f"id + {100 * turn} AS k", "0L AS n")
                frame.writeTo(name).overwritePartitions()
                spark.sql(f"UPDATE {name} SET n = n + 1 WHERE p = {number} AND k % 2 = 0")
                spark.sql(f"DELETE FROM {name} WHERE p = {number} AND k % 10 = 9")
                spark.sql(f"INSERT INTO {name} VALUES ({number}, {1000 + turn}, 7)")

        at_once(spark, write)
    first = 100 * (ROUNDS - 1)
    kept = [k for k in range(first, first + 30) if k % 10 != 9]
    expected = len(kept) + 1, sum(kept) + 1000 + ROUNDS - 1, sum(k % 2 == 0 for k in kept) + 7
    untouched = [k for k in range(100 * (WRITERS + 1)) if k % (WRITERS + 1) == WRITERS]
    assert rows(table) == [*((p, *expected) for p in range(WRITERS)), (WRITERS, 100, sum(untouched), 0)]


def test_the_format(spark: Any, table: str) -> None:
    register(spark)

    def write(number: int) -> None:
        for turn in range(ROUNDS):
            frame = spark.range(30).selectExpr(f"{number} AS p", f"id + {100 * turn} AS k", "1L AS n").coalesce(1)
            writer = frame.write.format("ducklake").option("table", "t")
            writer.option("partitionOverwriteMode", "dynamic").mode("overwrite").save(table)
            writer.mode("append").save(table)

    at_once(spark, write)
    first = 100 * (ROUNDS - 1)
    total = 2 * sum(range(first, first + 30))
    untouched = [k for k in range(100 * (WRITERS + 1)) if k % (WRITERS + 1) == WRITERS]
    assert rows(table) == [*((p, 60, total, 60) for p in range(WRITERS)), (WRITERS, 100, sum(untouched), 0)]
