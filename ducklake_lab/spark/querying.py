"""Queries in Spark's SQL over DataFrames, under names that nothing else sees.

Spark Connect takes DataFrames with a query. Classic Spark looks names up among the views of its session, once, when it
is given the query: each query makes its views and drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ducklake_lab.duckdb.evaluation import Evaluation
from ducklake_lab.errors import SparkError, UnsupportedFeatureError
from ducklake_lab.spark import evaluating
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
    """The lazy DataFrame of a query, which is checked.

    Args:
        evaluations: the functions that it calls and DuckDB evaluates.
        frames: DataFrames by the names that the query has for them.
        views: those of views that stay, see `keep`, likewise.
        params: values of its parameters.

    Raises:
        UnsupportedFeatureError: Spark has no plan for it.
    """
    evaluating.register(spark, evaluations)
    text, args = sql, dict(params) if params else None
    for name, view in (views or {}).items():
        text = text.replace(f"`{name}`", f"`{view}`")
    try:
        return _analyzed(spark, text, frames, args)
    except AnalysisException as error:
        if type(translate_error(error)) is not SparkError:
            raise
        # the query is bound already: what it means is clear, and Spark cannot do it
        raise UnsupportedFeatureError(f"This query cannot run on Spark: {message_of(error)}") from error


def _analyzed(
    spark: SparkSession, text: str, frames: Mapping[str, DataFrame], args: dict[str, object] | None
) -> DataFrame:
    if is_connect(spark):
        text = text.replace("{", "{{").replace("}", "}}")
        for name in frames:
            text = text.replace(f"`{name}`", f"{{{name}}}")
        # the server makes views of them and drops these, and with a view what is persisted of just its DataFrame
        frame = spark.sql(text, args, **{name: frame.where("true") for name, frame in frames.items()})
        frame.schema  # noqa: B018 - nothing is checked before this
        return frame
    with _views(frames):
        return spark.sql(text, args) if args else spark.sql(text)


def keep(frame: DataFrame) -> str | None:
    """The name of a view of a DataFrame that stays until `drop_view`; None where queries take DataFrames with them."""
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
