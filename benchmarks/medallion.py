"""Batches of the medallion pipeline of `tests/spark/medallion.py`, in several catalogs of one Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.spark.medallion import LANDED, Medallion

#: Customers of the first batch, and rows of each batch after it.
CUSTOMERS, BATCH = 1_000_000, 44_000


def run(spark: Any, folder: Path, catalogs: Sequence[str], rounds: int) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Seconds of the silver batches in each catalog: that of all customers, and the later ones.

    Args:
        folder: for the files that land, and checkpoints.
        rounds: later batches.
    """
    landing = folder / "landing"
    pipelines = {catalog: Medallion(spark, catalog, landing, folder / f"checkpoints-{catalog}") for catalog in catalogs}
    for pipeline in pipelines.values():
        pipeline.create()
    first: dict[str, list[float]] = {}
    later: dict[str, list[float]] = {catalog: [] for catalog in catalogs}
    order = list(catalogs)
    # the first later batch warms up
    for number in range(rounds + 2):
        _land(spark, landing, number)
        for catalog in order:
            pipelines[catalog].bronze()
            seconds = pipelines[catalog].silver()
            pipelines[catalog].gold()
            if number == 0:
                first[catalog] = seconds
            elif number > 1:
                later[catalog] += seconds
        order.append(order.pop(0))
    answers = [
        spark.sql(f"SELECT count(*), sum(customers), sum(spent) FROM {catalog}.gold.cities").first()
        for catalog in catalogs
    ]
    assert all(answer == answers[0] for answer in answers), answers
    yield f"silver: first batch, {CUSTOMERS:,} customers", first
    yield f"silver: batch of {BATCH:,} rows", later


def _land(spark: Any, landing: Path, number: int) -> None:
    """Lets rows land: all customers first, then changes of one in 25 and some new customers."""
    count, step, offset = (CUSTOMERS, 1, 0) if number == 0 else (BATCH, CUSTOMERS // 40_000, number)
    rows = spark.range(count).selectExpr(
        f"id * {step} + {offset} AS id",
        f"concat('city ', (id * 7 + {number}) % 500) AS city",
        f"concat('tier ', (id + {number}) % 4) AS tier",
        f"CAST((id * 31 + {number}) % 100000 AS DECIMAL(12,2)) / 100 AS spent",
        f"timestamp_seconds(1767225600 + {number} * 86400 + id % 3600) AS changed_at",
    )
    names = [column.split()[0] for column in LANDED.split(", ")]
    rows.selectExpr(*names).coalesce(2).write.mode("append").json(str(landing))
