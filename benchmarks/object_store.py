"""Requests and seconds of scans and writes in an object store that takes 30 ms for each: `python -m benchmarks.object_store`.

Spark reaches it by Hadoop's S3A, whose packages are fetched from Maven at the first run. `--files 10000` reads more files.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import boto3
import duckdb

import ducklake_lab as dl
from benchmarks.maintenance import build
from ducklake_lab.spark import runtime
from tests.object_store import ObjectStore, object_store

LATENCY = 0.03
#: Files that are written.
WRITTEN = 400
PACKAGE = "org.apache.hadoop:hadoop-aws:3.5.0"


def _measured(store: ObjectStore, name: str, run: Callable[[], object]) -> None:
    store.requests.clear()
    started = time.perf_counter()
    run()
    seconds = time.perf_counter() - started
    counted = ", ".join(f"{count} {method}" for method, count in sorted(store.requests.items()))
    print(f"| {name} | {seconds:.2f} s | {store.requests.total()} | {counted} |", flush=True)


def _filled(folder: Path, store: ObjectStore, files: int) -> str:
    """The URI of a lake whose table t has so many files of 50 rows in the store."""
    build(folder / "many", files)
    client = boto3.client("s3", endpoint_url=store.endpoint)
    for file in (folder / "many" / "data" / "main" / "t").iterdir():
        client.upload_file(str(file), "lake", f"many/main/t/{file.name}")
    with duckdb.connect(f"{folder}/many/lake.ducklake") as catalog:
        catalog.execute("UPDATE ducklake_metadata SET value = 's3://lake/many/' WHERE key = 'data_path'")
    return f"ducklake:{folder}/many/lake.ducklake"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.object_store", description="Requests to a slow store.")
    parser.add_argument("--files", type=int, default=400, help="that are read")
    files = parser.parse_args().files
    with object_store("lake") as store, tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as folder:
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": store.endpoint,
        }  # fmt: skip
        many = _filled(Path(folder), store, files)
        spark = runtime.start({"spark.jars.packages": PACKAGE})
        spark.range(1).count()
        store.latency = LATENCY
        print("| what | time | requests | of which |\n|---|--:|--:|---|")
        with dl.connect(many, alias="lake", engine="spark", spark=spark) as session:
            table = session.table("t")
            for turn in ("first", "second"):
                _measured(store, f"DataFrame of {files:,} files, {turn}", table.spark)
        uri = f"ducklake:{Path(folder) / 'lake.ducklake'}"
        with dl.connect(uri, alias="lake", data_path="s3://lake/data/", engine="spark", spark=spark) as session:
            session.sql("CREATE TABLE t (i BIGINT, s VARCHAR)")
            frame = spark.range(WRITTEN * 100).selectExpr("id AS i", "'x' AS s").repartition(WRITTEN)
            _measured(store, f"write of {WRITTEN} files", lambda: session.write(frame, "t"))
            _measured(store, "rows of them, counted", lambda: session.table("t").spark().count())
            _measured(store, "UPDATE of a row", lambda: session.sql("UPDATE t SET s = 'y' WHERE i = 77"))


if __name__ == "__main__":
    main()
