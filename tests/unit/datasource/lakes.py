"""A lake that the data source writes to as Spark makes it do, without a Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

import ducklake_lab as dl
from ducklake_lab.datasource.source import DuckLakeDataSource
from ducklake_lab.spark.types import from_spark
from tests.reference import connect

KINDS: Mapping[str, T.DataType] = {
    "int": T.IntegerType(),
    "bigint": T.LongType(),
    "string": T.StringType(),
    "date": T.DateType(),
    "double": T.DoubleType(),
    "timestamp": T.TimestampNTZType(),
}


def schema_of(text: str) -> T.StructType:
    """Reads a schema such as `id bigint, name string`."""
    fields = [part.split() for part in text.split(",")]
    return T.StructType([T.StructField(name, KINDS[kind]) for name, kind in fields])


@dataclass
class SourceLake:
    """The table `t` of a lake, and what the reference sees of it."""

    uri: str
    folder: Path

    @classmethod
    def new(cls, path: Path, *statements: str) -> SourceLake:
        lake = cls(f"ducklake:{path}/lake.ducklake", path / "data")
        with dl.connect(lake.uri, data_path=str(lake.folder), engine="duckdb"):
            pass
        lake.sql(*statements)
        return lake

    def writer(self, schema: str | T.StructType, mode: str, **options: str) -> Any:
        fields = schema_of(schema) if isinstance(schema, str) else schema
        source = DuckLakeDataSource({"path": self.uri, "table": "t", **options})
        return source.writer(fields, mode == "overwrite")

    def write(
        self, schema: str | T.StructType, rows: Sequence[tuple[Any, ...]], mode: str = "append", **options: str
    ) -> None:
        """Writes rows in two tasks."""
        writer = self.writer(schema, mode, **options)
        half = len(rows) // 2
        writer.commit([writer.write(iter(batches(schema, part))) for part in (rows[:half], rows[half:])])

    def read(self, query: str = "FROM l.t ORDER BY ALL") -> list[tuple[Any, ...]]:
        """Runs a query of the reference, which has the lake as `l`."""
        with connect() as connection:
            connection.execute(f"ATTACH '{self.uri}' AS l")
            return connection.execute(query).fetchall()

    def sql(self, *texts: str) -> None:
        with dl.connect(self.uri, alias="lake", engine="duckdb") as session:
            for text in texts:
                session.sql(text)

    def files(self) -> int:
        return len(list(self.folder.rglob("*.parquet")))

    def snapshot(self) -> int:
        found: int = self.read("SELECT max(snapshot_id) FROM ducklake_snapshots('l')")[0][0]
        return found


def batches(schema: str | T.StructType, rows: Sequence[tuple[Any, ...]]) -> list[pa.RecordBatch]:
    """Rows as Spark hands them to a writer."""
    fields = schema_of(schema) if isinstance(schema, str) else schema
    types = pa.schema([(field.name, from_spark(field.dataType).arrow()) for field in fields])
    table = pa.Table.from_pylist([dict(zip(types.names, row, strict=True)) for row in rows], types)
    found: list[pa.RecordBatch] = table.to_batches()
    return found
