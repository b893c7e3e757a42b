"""Files added from outside, read by Spark and in process."""

from __future__ import annotations

from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.duckdb.handing import python_rows
from ducklake_lab.spark.frames import to_arrow_table
from tests.interop.test_adding_files import STATEMENTS, TABLES, data

__all__ = ["data"]


def test_both_readers_give_equal_rows(
    data: Path, tmp_path: Path, spark: SparkSession, reference: duckdb.DuckDBPyConnection
) -> None:
    with dl.connect(
        f"ducklake:{tmp_path}/l.ducklake", alias="lake", data_path=f"{tmp_path}/l", spark=spark, engine="spark"
    ) as session:
        for statement in STATEMENTS:
            session.sql(statement.replace("{data}", str(data)))
        for name in TABLES:
            table = session.table(name)
            found, local = (sorted(map(repr, python_rows(r))) for r in (to_arrow_table(table.spark()), table.arrow()))
            assert found == local, name
            assert found, name
