"""A medallion pipeline that names nothing but its catalog: bronze by a stream, silver by MERGE, gold by a query."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.spark import medallion
from tests.spark.catalogs import SparkLake, spark_lake
from tests.spark.medallion import Medallion
from tests.spark.versions import writes_streams

pytestmark = [writes_streams, pytest.mark.sampled(3, "pipelines")]

#: Numbers of a customer's columns in this test.
Version = tuple[str, str, Decimal, str]


@pytest.fixture
def lake(spark: Any, spark_jar: None, new_catalog: Callable[..., str]) -> Iterator[SparkLake]:
    with spark_lake(spark, new_catalog()) as found:
        yield found


class Landing:
    """Files that land, and the versions of customers that silver has to have afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.rows = 0
        self.versions: defaultdict[int, list[Version]] = defaultdict(list)
        self._random = random.Random(42)

    def drop(self, day: int, customers: range) -> None:
        """A file of a day: each customer up to twice, some as they were, some late."""
        newest: dict[int, Version] = {}
        lines = []
        for customer in customers:
            for _ in range(self._random.choice((1, 1, 2))):
                late = self._random.random() < 0.1
                at = f"2026-{1 if late else 2:02}-{day:02} 00:{len(lines) // 60 % 60:02}:{len(lines) % 60:02}"
                known = self.versions[customer]
                if known and self._random.random() < 0.3:
                    city, tier, spent = known[-1][:3]
                else:
                    city, tier = self._random.choice(("Rome", "O'slo", "Köln")), self._random.choice(("a", "b"))
                    spent = Decimal(self._random.randrange(10_000)) / 100
                lines.append({"id": customer, "city": city, "tier": tier, "spent": str(spent), "changed_at": at})
                if customer not in newest or newest[customer][3] < at:
                    newest[customer] = (city, tier, spent, at)
        for customer, version in newest.items():
            known = self.versions[customer]
            if not known or (version[3] > known[-1][3] and version[:3] != known[-1][:3]):
                known.append(version)
        self.rows += len(lines)
        text = "\n".join(json.dumps(line) for line in lines)
        (self.folder / f"{day}.json").write_text(text, encoding="utf-8")

    def silver(self) -> list[tuple[object, ...]]:
        """The rows of the silver table, in the order of customer and time."""
        found: list[tuple[object, ...]] = []
        for customer, versions in sorted(self.versions.items()):
            ends = [*(version[3] for version in versions[1:]), None]
            found += [
                (customer, *version[:3], version[3], end, end is None)
                for version, end in zip(versions, ends, strict=True)
            ]
        return found


_SILVER = (
    "SELECT id, city, tier, spent, CAST(valid_from AS VARCHAR(19)), CAST(valid_to AS VARCHAR(19)), is_current "
    "FROM {}.customers ORDER BY id, valid_from"
)


def test_bronze_silver_and_gold(lake: SparkLake, tmp_path: Path) -> None:
    spark = lake.spark
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        landing = Landing(tmp_path / "landing")
        pipeline = Medallion(spark, "lake", landing.folder, tmp_path / "checkpoints")
        pipeline.create()
        for day, customers in ((1, range(300)), (2, range(200, 500)), (3, range(0, 600, 2))):
            landing.drop(day, customers)
            pipeline.bronze()
            assert len(pipeline.silver()) == 1
            pipeline.gold()
        expected = landing.silver()
        assert len(expected) > 700
        assert lake.sql(_SILVER.format("lake.silver")) == expected
        # a batch that Spark runs again changes nothing
        before = lake.snapshot()
        for name in ("2", ".2.crc"):
            (tmp_path / "checkpoints" / "silver" / "commits" / name).unlink(missing_ok=True)
        pipeline.silver()
        assert lake.sql(_SILVER.format("lake.silver")) == expected
        assert lake.snapshot() == before
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert lake.reference("SELECT count(*) FROM bronze.customers") == [(landing.rows,)]
    current: defaultdict[tuple[object, object], list[Any]] = defaultdict(list)
    for row in expected:
        if row[6]:
            current[row[1], row[2]].append(row[3])
    gold = sorted((*place, len(spent), sum(spent)) for place, spent in current.items())
    assert lake.reference("SELECT city, tier, customers, spent FROM gold.cities ORDER BY ALL") == gold


def test_the_pipeline_names_no_format() -> None:
    text = Path(medallion.__file__).read_text(encoding="utf-8").casefold()
    assert not any(word in text for word in ("ducklake", "iceberg", "delta", "using parquet", '.format("'))
