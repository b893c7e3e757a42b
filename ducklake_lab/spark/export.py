"""COPY … TO on Spark: writes rows to Parquet, CSV or JSON files outside of lakes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.file_paths import is_local
from ducklake_lab.spark.frames import of_session
from ducklake_lab.spark.objects import reach

#: DuckDB's options -> Spark's names, by format.
_OPTIONS = {
    "parquet": {"compression": "compression", "codec": "compression"},
    "csv": {
        "header": "header",
        "delimiter": "sep",
        "delim": "sep",
        "sep": "sep",
        "quote": "quote",
        "escape": "escape",
        "nullstr": "nullValue",
        "null": "nullValue",
        "dateformat": "dateFormat",
        "timestampformat": "timestampFormat",
        "compression": "compression",
    },
    "json": {"compression": "compression", "dateformat": "dateFormat", "timestampformat": "timestampFormat"},
}


def export(
    spark: SparkSession,
    frame: DataFrame,
    path: str,
    kind: str,
    partition_by: Sequence[str],
    options: Mapping[str, str],
) -> int:
    """Writes one file, or a folder of files with `partition_by` or `per_thread_output`; returns the number of rows.

    Raises:
        UnsupportedFeatureError: the format or an option is not supported.
    """
    options_of_format = _OPTIONS.get(kind)
    if options_of_format is None:
        raise UnsupportedFeatureError(f"COPY to the format {kind} is not supported; use parquet, csv or json.")
    given = dict(options)
    many = given.pop("per_thread_output", "false").casefold() == "true"
    overwrite = given.pop("overwrite", given.pop("overwrite_or_ignore", "false")).casefold() == "true"
    chosen = {"header": "true"} if kind == "csv" else {}
    for name, value in given.items():
        if name not in options_of_format:
            raise UnsupportedFeatureError(f"The COPY option {name.upper()} is not supported on Spark.")
        chosen[options_of_format[name]] = value
    reach(spark, [path])
    frame = of_session(spark, frame).persist()
    try:
        count = frame.count()
        mode = "overwrite" if overwrite else "errorifexists"
        if partition_by or many:
            frame.write.format(kind).options(**chosen).partitionBy(*partition_by).mode(mode).save(path)
        else:
            _one_file(frame, path, kind, chosen)
    finally:
        frame.unpersist()
    return count


def _one_file(frame: DataFrame, path: str, kind: str, options: Mapping[str, str]) -> None:
    if not is_local(path):
        raise UnsupportedFeatureError("COPY of many rows to one remote file is not supported; use PER_THREAD_OUTPUT.")
    import os
    import shutil

    folder = f"{path}.{uuid.uuid4().hex}"
    try:
        frame.coalesce(1).write.format(kind).options(**options).save(folder)
        part = next(name for name in os.listdir(folder) if name.startswith("part-"))
        os.replace(os.path.join(folder, part), path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
