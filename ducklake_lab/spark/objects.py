"""Lets Spark reach what an object store holds, by Hadoop's S3A, which has to be on its class path."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import SparkSession

from ducklake_lab.object_access import access_to

_S3 = re.compile(r"s3[an]?://([^/]+)")
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def reach(spark: SparkSession, paths: Iterable[str]) -> None:
    """Sets how the buckets of some paths are reached, for what this session of Spark reads and writes from now on.

    Spark redacts these settings wherever it shows or logs them. Hadoop keeps the connection to a bucket that it once
    made: other credentials for the same bucket need another Spark.
    """
    buckets = {match[1]: match[0] for path in paths if (match := _S3.match(path)) is not None}
    for bucket, url in buckets.items():
        options = {"fs.s3.impl": _S3A, "fs.s3n.impl": _S3A}
        options |= access_to(f"s3://{url.partition('://')[2]}/").hadoop_options(bucket)
        for key, value in options.items():
            spark.conf.set(key, value)
