"""Requests and seconds of scans and writes in an object store that takes 30 ms for each: `python -m benchmarks.object_store`.

`--files 10000` makes another number of files.

Spark reaches it by Hadoop's S3A, whose packages are fetched from Maven at the first run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ducklake_lab as dl
from ducklake_lab.spark import runtime
from tests.object_store import ObjectStore, object_store

LATENCY = 0.03
PACKAGE = "org.apache.hadoop:hadoop-aws:3.5.0"


def _measured(store: ObjectStore, name: str, run: Callable[[], object]) -> None:
    store.requests.clear()
    started = time.perf_counter()
    run()
    seconds = time.perf_counter() - started
    counted = ", ".join(f"{count} {method}" for method, count in sorted(store.requests.items()))
    print(f"| {name} | {seconds:.2f} s | {store.requests.total()} | {counted} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.object_store", description="Requests to a slow object store."
    )
    parser.add_argument("--files", type=int, default=400)
    count = parser.parse_args().files
    with object_store("lake") as store, tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as folder:
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": store.endpoint,
        }  # fmt: skip
        uri = f"ducklake:{Path(folder) / 'lake.ducklake'}"
        spark = runtime.start({"spark.jars.packages": PACKAGE})
        with dl.connect(uri, data_path="s3://lake/data/", engine="spark", spark=spark) as session:
            session.sql("CREATE TABLE t (i BIGINT, s VARCHAR)")
            frame = spark.range(count * 100).selectExpr("id AS i", "'x' AS s").repartition(count)
            spark.range(1).count()
            store.latency = LATENCY
            print("| what | time | requests | of which |\n|---|--:|--:|---|")
            _measured(store, f"write of {count:,} files", lambda: session.write(frame, "t"))
            table = session.table("t")
            for turn in ("first", "second"):
                _measured(store, f"DataFrame of {count:,} files, {turn}", table.spark)
            _measured(store, "rows of it, counted", lambda: table.spark().count())
            _measured(
                store, "DataFrame of one of them", lambda: session.sql("SELECT s FROM t WHERE i = 77", engine="spark")
            )
            _measured(store, "UPDATE of a row", lambda: session.sql("UPDATE t SET s = 'y' WHERE i = 77"))


if __name__ == "__main__":
    main()
