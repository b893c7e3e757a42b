"""Rows of DataFrames: their columns fit a table, and few rows go into the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.model.entries import Column

COLUMNS = (Column(1, 0, "id", "int64"), Column(2, 1, "state", "varchar", default_value="new"))
UTC = (("TimeZone", "UTC"),)


@pytest.fixture
def session(tmp_path: Path, spark: Any) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data", spark=spark) as session:
        yield session


@pytest.mark.parametrize(
    ("schema", "rows", "expected"),
    [
        ("STATE STRING, id BIGINT", [("a", 1)], [{"id": 1, "state": "a"}]),
        ("id STRING, state INT", [("1", 2)], [{"id": 1, "state": "2"}]),
        ("id INT", [(1,)], [{"id": 1, "state": "new"}]),
    ],
)
def test_columns_fit_by_name(
    spark: Any, schema: str, rows: list[tuple[object, ...]], expected: list[dict[str, object]]
) -> None:
    found = OnSpark(spark.createDataFrame(rows, schema)).fit(COLUMNS, UTC)
    assert [field.dataType.simpleString() for field in found.data.schema] == ["bigint", "string"]
    assert found.arrow().to_pylist() == expected


def test_few_rows_of_the_program_are_fetched_and_others_stay(spark: Any) -> None:
    local = OnSpark(spark.createDataFrame(pd.DataFrame({"id": range(5)})))
    if not local.data.isLocal():
        pytest.skip("this Spark keeps no local relations of pandas DataFrames")
    assert local.near(5).arrow().num_rows == 5
    assert local.near(4) is local
    computed = OnSpark(spark.range(3))
    assert computed.near(10) is computed


@pytest.mark.parametrize("rows", [3, 30])
def test_dataframes_are_appended(session: dl.Session, rows: int) -> None:
    session.sql("CREATE TABLE t (id BIGINT, state VARCHAR DEFAULT 'new')")
    for frame in (session.spark.createDataFrame(pd.DataFrame({"id": range(rows)})), session.spark.range(rows)):
        assert session.write(frame, "t").fetchall() == [(rows,)]
    assert session.sql("SELECT count(*), sum(id), min(state) FROM t").fetchall() == [
        (2 * rows, rows * (rows - 1), "new")
    ]
    assert rows > 10 or not list(session.table("t").files())


def test_an_error_of_a_dataframe_is_one_line_and_leaves_nothing(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t (id BIGINT)")
    frame = session.spark.range(30).selectExpr("if(id = 29, 'x', string(id)) AS id")
    with pytest.raises(dl.ConstraintError, match=r"'x' is no BIGINT") as caught:
        session.write(frame, "t")
    assert "\n" not in str(caught.value)
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(0,)]
    assert not list(tmp_path.rglob("*.parquet"))
