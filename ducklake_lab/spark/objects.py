"""Gives Spark access to object stores through Hadoop's S3A, which must be on its class path."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import SparkSession

from ducklake_lab.object_access import access_to

_S3 = re.compile(r"s3[an]?://([^/]+)")
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def reach(spark: SparkSession, paths: Iterable[str]) -> None:
    """Sets the access to the buckets of some paths, for later reads and writes of this Spark session.

    Spark redacts these settings wherever it shows or logs them. Hadoop keeps the connection to a bucket:
    other credentials for the same bucket require another Spark.
    """
    buckets = {match[1]: match[0] for path in paths if (match := _S3.match(path)) is not None}
    for bucket, url in buckets.items():
        options = {"fs.s3.impl": _S3A, "fs.s3n.impl": _S3A}
        options |= access_to(f"s3://{url.partition('://')[2]}/").hadoop_options(bucket)
        for key, value in options.items():
            spark.conf.set(key, value)
