"""Expressions that DuckDB evaluates in Spark's Python workers, as functions that Spark SQL calls by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import REFUSALS
from ducklake_lab.duckdb.evaluation import NULL, Evaluation, connection, rows_sql
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import ConstraintError, DuckLakeError, SqlError, UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.spark import workers
from ducklake_lab.spark.arrow_writer import from_spark_sql
from ducklake_lab.spark.begin_task import begin_task
from ducklake_lab.spark.errors import marked
from ducklake_lab.spark.frames import for_spark_sql, with_variants
from ducklake_lab.spark.types import arrow_type, spark_type


def register(spark: SparkSession, evaluations: Iterable[Evaluation]) -> None:
    """Makes the functions that a query calls known to Spark.

    Raises:
        SparkError: the workers cannot run them.
        UnsupportedFeatureError: this Spark has no Arrow functions.
    """
    known = _known(spark)
    for evaluation in evaluations:
        if evaluation.name in known:
            continue
        workers.check(spark)
        if not hasattr(F, "arrow_udf"):
            raise UnsupportedFeatureError(
                f"DuckDB evaluates this in workers, which needs Spark 4.1 or newer: {evaluation.sql}"
            )
        function = F.arrow_udf(_task(evaluation), spark_type(_result(evaluation)))
        if evaluation.volatile:
            function = function.asNondeterministic()
        spark.udf.register(evaluation.name, function)
        known.add(evaluation.name)


def _known(spark: SparkSession) -> set[str]:
    """The names of the functions that a session has."""
    names: set[str] = spark.__dict__.setdefault("_ducklake_evaluations", set())
    return names


def _result(evaluation: Evaluation) -> DataType:
    return DataType("int32") if evaluation.result == NULL else evaluation.result


def _task(evaluation: Evaluation) -> Callable[..., pa.Array]:
    kind = _result(evaluation)
    arguments = [
        from_spark_sql(f'"a{i}"', DataType("int32") if argument == NULL else argument)
        for i, argument in enumerate(evaluation.arguments)
    ]
    sql = f"SELECT {for_spark_sql('v', kind)} AS v FROM ({rows_sql(evaluation, arguments)})"
    arrow = arrow_type(spark_type(kind))

    def run(*columns: pa.Array) -> pa.Array:
        begin_task()
        batch = pa.table(list(columns), names=[f"a{i}" for i in range(len(columns))])
        database = connection(evaluation.settings)
        try:
            values = database.from_arrow(batch).query("batch", sql).to_arrow_table().column("v")
        except duckdb.Error as error:
            raise marked(_error(error, worded(error))) from None
        return with_variants(values, kind).cast(arrow)

    return run


def _error(error: duckdb.Error, message: str) -> DuckLakeError:
    if message in REFUSALS:
        return UnsupportedFeatureError(message)
    does_not_fit = isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException)
    return ConstraintError(message) if does_not_fit else SqlError(message)
