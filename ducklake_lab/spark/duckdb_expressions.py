"""Registers expressions that DuckDB evaluates in Spark's Python workers as functions for Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.evaluation import ERROR, NULL, VALUE, Evaluation, connection, forgiving, rows_sql, value_sql
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.spark.arrow_writer import from_spark_sql
from ducklake_lab.spark.frames import for_spark_sql, with_variants
from ducklake_lab.spark.row_errors import error_of, with_errors
from ducklake_lab.spark.types import arrow_type, spark_type
from ducklake_lab.spark.workers import packages
from ducklake_lab.spark.workers.start import begin_task


def register(spark: SparkSession, evaluations: Iterable[Evaluation]) -> None:
    """Registers the functions that a query calls.

    Raises:
        SparkError: the workers cannot run them.
        UnsupportedFeatureError: this Spark has no Arrow functions.
    """
    known = _known(spark)
    for evaluation in evaluations:
        if evaluation.name in known:
            continue
        packages.check(spark)
        if not hasattr(F, "arrow_udf"):
            raise UnsupportedFeatureError(
                f"DuckDB evaluates this in workers, which needs Spark 4.1 or newer: {evaluation.sql}"
            )
        function = F.arrow_udf(_task(evaluation), _returned(evaluation))
        if evaluation.volatile:
            function = function.asNondeterministic()
        spark.udf.register(evaluation.name, function)
        known.add(evaluation.name)


def _known(spark: SparkSession) -> set[str]:
    """Returns the names of the functions that a session has."""
    names: set[str] = spark.__dict__.setdefault("_ducklake_evaluations", set())
    return names


def _result(evaluation: Evaluation) -> DataType:
    return DataType("int32") if evaluation.result == NULL else evaluation.result


def _returned(evaluation: Evaluation) -> T.DataType:
    """Returns the result type of a function: values, or values with the errors of failed rows."""
    kind = spark_type(_result(evaluation))
    return (
        T.StructType([T.StructField(VALUE, kind), T.StructField(ERROR, T.StringType())])
        if evaluation.deferred
        else kind
    )


def _task(evaluation: Evaluation) -> Callable[..., pa.Array]:
    kind = _result(evaluation)
    arguments = [
        from_spark_sql(f'"a{i}"', DataType("int32") if argument == NULL else argument)
        for i, argument in enumerate(evaluation.arguments)
    ]
    value = value_sql(evaluation)
    sql = f"SELECT {for_spark_sql('v', kind)} AS v FROM ({rows_sql(f'{value} AS v', arguments)})"
    whole = for_spark_sql(f"({value})", kind)
    tried = rows_sql(f"TRY({whole}) AS v, TRY(({whole}) IS NULL) IS NULL AS failed", arguments)
    arrow = arrow_type(spark_type(kind))
    settings = evaluation.settings

    def values(batch: pa.Table) -> pa.Array:
        computed = connection(settings).from_arrow(batch).query("batch", sql).to_arrow_table().column("v")
        return with_variants(computed, kind).cast(arrow)

    def tried_values(batch: pa.Table) -> tuple[pa.Array, pa.Array]:
        computed = forgiving(settings).from_arrow(batch).query("batch", tried).to_arrow_table()
        return with_variants(computed.column("v"), kind).cast(arrow), computed.column("failed").combine_chunks()

    def run(*columns: pa.Array) -> pa.Array:
        begin_task()
        batch = pa.table(list(columns), names=[f"a{i}" for i in range(len(columns))])
        if evaluation.deferred:
            computed, errors = with_errors(batch, evaluation, values, tried_values, arrow)
            return pa.StructArray.from_arrays([computed, errors], [VALUE, ERROR])
        try:
            return values(batch)
        except duckdb.Error as error:
            raise error_of(error, evaluation) from None

    return run
