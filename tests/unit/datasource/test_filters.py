"""Files that the filters of a query skip."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import datasource as ds

from ducklake_lab.datasource.options import Target
from ducklake_lab.spark.types import table_schema
from tests.unit.datasource.lakes import SourceLake

if not hasattr(ds, "Filter"):
    pytest.skip("PySpark before 4.1 hands on no filters", allow_module_level=True)

from ducklake_lab.datasource.filtering import FilteringReader


def _rows(lake: SourceLake, *filters: ds.Filter) -> list[str]:
    """The rows of the files that filters do not skip; Spark filters them again."""
    target = Target.of({"path": lake.uri, "table": "t"})
    with target.open() as open_lake, open_lake.connect() as connection:
        columns = open_lake.state(connection, open_lake.snapshot(connection)).table("main", "t").columns
    reader = FilteringReader(target, table_schema(columns))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return sorted(
        str(value)
        for part in reader.partitions()
        for batch in reader.read(part)
        for value in batch.column(0).to_pylist()
    )


@pytest.mark.parametrize(
    ("kind", "values", "found", "skips"),
    [
        ("INTEGER", "(1), (2)", ds.GreaterThan(("i",), 5), True),
        ("VARCHAR", "('a'), ('b')", ds.EqualTo(("i",), "c"), True),
        ("DOUBLE", "(1), (2)", ds.EqualTo(("i",), float("nan")), False),
        # Spark has the nearest DOUBLE of the FLOAT
        ("FLOAT", "(0.1), (0.2)", ds.In(("i",), (0.20000000298023224, 7.0)), False),
        ("UUID", "('00000000-0000-0000-0000-000000000001')", ds.GreaterThan(("i",), "F"), False),
        ("INTEGER", "(1), (2)", ds.EqualTo(("i",), "5"), False),
    ],
)
def test_files_are_skipped_where_spark_compares_as_duckdb_does(
    tmp_path: Path, kind: str, values: str, found: ds.Filter, skips: bool
) -> None:
    lake = SourceLake.new(tmp_path, "CALL lake.set_option('data_inlining_row_limit', 0)")
    lake.sql(f"CREATE TABLE t (i {kind})", f"INSERT INTO t VALUES {values}")
    assert bool(_rows(lake)) and bool(_rows(lake, found)) != skips
