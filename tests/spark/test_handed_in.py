"""DataFrames of Spark read by name: they stay on Spark, and Spark's temporary views are tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import BindError
from ducklake_lab.spark.runtime import is_connect

pytestmark = pytest.mark.sampled(4)

MERGE = """MERGE INTO orders USING updates ON orders.id = updates.id
    WHEN MATCHED THEN UPDATE SET state = updates.state WHEN NOT MATCHED THEN INSERT BY NAME"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Iterator[dl.Session]:
    folder = tmp_path_factory.mktemp("lake")
    with dl.connect(f"ducklake:{folder}/lake.ducklake", data_path=f"{folder}/data", spark=spark) as session:
        session.sql("CREATE TABLE orders AS SELECT i AS id, 'new' AS state FROM range(100) r(i)")
        yield session


@pytest.mark.parametrize("engine", [None, "spark", "duckdb"])
def test_they_join_tables_of_lakes(engine: Any, session: dl.Session) -> None:
    spark_rows = session.spark.createDataFrame([(5, "s"), (500, "t")], "id BIGINT, more STRING")
    here = pd.DataFrame({"id": [5, 6], "here": [0.5, float("nan")]})
    text = "SELECT id, more, here, state FROM spark_rows JOIN here USING (id) JOIN orders USING (id)"
    for given in ({"spark_rows": spark_rows, "here": here}, {"variables": {"spark_rows": spark_rows, "here": here}}):
        result = session.sql(text, engine=engine, **given)  # type: ignore[arg-type]
        assert result.types == ["BIGINT", "VARCHAR", "DOUBLE", "VARCHAR"]
        assert result.info.placement is not None
        assert result.info.placement.is_here == (engine == "duckdb")
        assert result.fetchall() == [(5, "s", 0.5, "new")]
    kept = session.sql(text, engine="spark", spark_rows=spark_rows, here=here).spark()
    assert kept.count() == 1


def test_temporary_views_of_spark_are_tables(session: dl.Session) -> None:
    session.spark.range(3).selectExpr("id", "id * 2 AS twice").createOrReplaceTempView("Spark_view")
    assert session.sql("SELECT sum(twice) FROM spark_VIEW JOIN orders USING (id)").fetchall() == [(6,)]
    session.spark.range(3).createOrReplaceTempView("orders")
    assert session.sql("SELECT count(*) FROM orders").fetchall() == [(100,)]
    with pytest.raises(BindError, match='no table "spark_views"'):
        session.sql("FROM spark_views")
    session.spark.catalog.dropTempView("orders")


def test_a_temporary_view_of_a_lake_is_read_on_spark(session: dl.Session) -> None:
    session.sql("CREATE TEMP VIEW few AS SELECT id, upper(state) AS state FROM orders WHERE id < 3")
    assert session.sql("SELECT count(*), min(state) FROM few", engine="spark").fetchall() == [(3, "NEW")]
    assert session.sql("SELECT count(*) AS n FROM few", dialect="spark").fetchall() == [(3,)]


def test_sparks_own_sql_reads_them(session: dl.Session) -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": ["a", "b"]})
    text = "SELECT name, state FROM frame JOIN orders USING (id) ORDER BY name"
    assert session.sql(text, dialect="spark", frame=frame).fetchall() == [("a", "new"), ("b", "new")]


def test_a_batch_of_a_stream_is_merged(session: dl.Session, tmp_path: Path) -> None:
    if is_connect(session.spark):
        pytest.skip("Spark Connect runs foreachBatch on the server, where there is no session")
    source = tmp_path / "in"
    session.spark.createDataFrame([(7, "paid"), (700, "new")], "id BIGINT, state STRING").write.json(str(source))

    def merge(batch: Any, number: int) -> None:
        session.sql(MERGE, updates=batch)
        session.write(batch.selectExpr("id + 1000 AS id", "'copied' AS state"), "main.orders")

    stream = session.spark.readStream.schema("id BIGINT, state STRING").json(str(source))
    query = stream.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "marks"))
    query.trigger(availableNow=True).start().awaitTermination()
    found = session.sql("SELECT id, state FROM orders WHERE id IN (7, 8, 700, 1007) ORDER BY id").fetchall()
    assert found == [(7, "paid"), (8, "new"), (700, "new"), (1007, "copied")]
