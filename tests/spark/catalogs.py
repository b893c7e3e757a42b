"""A lake as a catalog of Spark, and what the reference sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ducklake_lab as dl
from tests.reference import connect


@dataclass
class SparkLake:
    """A lake that a SparkSession has as the catalog `lake`."""

    spark: Any
    session: dl.Session
    uri: str

    def sql(self, *texts: str) -> list[tuple[object, ...]]:
        """Runs statements of Spark SQL; the rows of the last."""
        rows: list[Any] = []
        for text in texts:
            rows = self.spark.sql(text).collect()
        return [tuple(row) for row in rows]

    def reference(self, text: str) -> list[tuple[object, ...]]:
        """Runs a query of the reference, which has the lake as `l`."""
        with connect() as connection:
            connection.execute(f"ATTACH '{self.uri}' AS l")
            connection.execute("USE l")
            rows: list[tuple[object, ...]] = connection.execute(text).fetchall()
            connection.execute("USE memory; DETACH l")
            return rows

    def snapshot(self) -> int:
        """The id of the newest snapshot."""
        return self.session.current_snapshot().snapshot_id


@contextmanager
def spark_lake(spark: Any, uri: str, name: str = "lake") -> Iterator[SparkLake]:
    """Has a lake as a catalog in the block."""
    with dl.spark_catalog(spark, name, uri) as session:
        yield SparkLake(spark, session, uri)
