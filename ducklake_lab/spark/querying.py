"""Runs queries in Spark SQL over DataFrames, under names that nothing else uses.

Spark Connect accepts DataFrames with a query. Classic Spark resolves names among its session's views, once, when it
analyzes the query: each query creates its views and drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ducklake_lab.duckdb.evaluation import Evaluation
from ducklake_lab.errors import SparkError, UnsupportedFeatureError
from ducklake_lab.spark import duckdb_expressions, unreadable
from ducklake_lab.spark.errors import message_of, translate_error
from ducklake_lab.spark.runtime import drop_view, is_connect

_numbers = count(1)


def run(
    spark: SparkSession,
    sql: str,
    evaluations: Iterable[Evaluation],
    frames: Mapping[str, DataFrame],
    views: Mapping[str, str] | None = None,
    params: Mapping[str, object] | None = None,
) -> DataFrame:
    """Returns the lazy, checked DataFrame of a query.

    Args:
        evaluations: the functions that the query calls.
        frames: DataFrames by their names in the query.
        views: kept views, see `keep`, by their names in the query.
        params: values of the query's parameters.

    Raises:
        UnsupportedFeatureError: Spark cannot plan the query, or cannot read a column of it.
    """
    duckdb_expressions.register(spark, evaluations)
    text, args = sql, dict(params) if params else None
    for name, view in (views or {}).items():
        text = text.replace(f"`{name}`", f"`{view}`")
    try:
        frame = _analyzed(spark, text, frames, args)
        unreadable.check(lambda: str(_analyzed(spark, f"EXPLAIN {text}", frames, args).collect()[0][0]))
        return frame
    except AnalysisException as error:
        if type(translate_error(error)) is not SparkError:
            raise
        # the query is already bound, so its meaning is clear: Spark cannot run it
        raise UnsupportedFeatureError(f"This query cannot run on Spark: {message_of(error)}") from error


def _analyzed(
    spark: SparkSession, text: str, frames: Mapping[str, DataFrame], args: dict[str, object] | None
) -> DataFrame:
    if is_connect(spark):
        text = text.replace("{", "{{").replace("}", "}}")
        for name in frames:
            text = text.replace(f"`{name}`", f"{{{name}}}")
        # the server makes views of them and drops these, which would also unpersist a plain DataFrame
        frame = spark.sql(text, args, **{name: frame.where("true") for name, frame in frames.items()})
        frame.schema  # noqa: B018 - nothing is checked before this
        return frame
    with _views(frames):
        return spark.sql(text, args) if args else spark.sql(text)


def keep(frame: DataFrame) -> str | None:
    """Makes a view of a DataFrame that stays until `drop_view`; returns its name, or None on Spark Connect."""
    if is_connect(frame.sparkSession):
        return None
    name = f"ducklake_kept_{next(_numbers)}"
    frame.createOrReplaceTempView(name)
    return name


@contextmanager
def _views(frames: Mapping[str, DataFrame]) -> Iterator[None]:
    made: list[tuple[SparkSession, str]] = []
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
            made.append((frame.sparkSession, name))
        yield
    finally:
        for spark, name in made:
            drop_view(spark, name)
