"""Eight Sparks write to one table at once, each to a partition of its own: none is aborted, and every row counts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl
from tests.installed import ROOT

pytestmark = pytest.mark.sampled(3, "pipelines")

WRITERS, ROUNDS = 8, 2
_WRITER = """
import sys
from ducklake_lab.spark import runtime
import ducklake_lab as dl

uri, own, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
spark = runtime.start({"spark.master": "local[1]", "spark.sql.shuffle.partitions": "1", "spark.driver.memory": "512m",
    "spark.sql.sources.partitionOverwriteMode": "dynamic"})
with dl.spark_catalog(spark, "lake", uri):
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(rounds):
        rows = spark.range(50).selectExpr(f"{own} AS p", "id AS k", f"{n}L AS n")
        rows.writeTo("lake.main.t").overwritePartitions()
        spark.sql(f"UPDATE lake.main.t SET n = n + 100 WHERE p = {own} AND k % 2 = 0")
        spark.sql(
            f"MERGE INTO lake.main.t AS t USING (SELECT id AS k FROM range(10, 12)) AS s ON t.p = {own} AND t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET n = -1"
        )
"""


@pytest.mark.timeout(900)
def test_writers_of_partitions_of_their_own(spark_jar: None, new_catalog: Callable[..., str], tmp_path: Path) -> None:
    uri = new_catalog("postgres")
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (p INTEGER, k BIGINT, n BIGINT)")
        session.sql("ALTER TABLE t SET PARTITIONED BY (p)")
    command = [sys.executable, "-c", _WRITER, uri]
    writers = [
        subprocess.Popen(
            [*command, str(own), str(ROUNDS)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for own in range(WRITERS)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None and writer.stdin is not None
            while (line := writer.stdout.readline()) and line != "ready\n":
                pass
        for writer in writers:
            writer.stdin.write("go\n")  # type: ignore[union-attr]
            writer.stdin.flush()  # type: ignore[union-attr]
        ended = [writer.communicate() for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
    assert [writer.returncode for writer in writers] == [0] * WRITERS, "\n".join(err[-1500:] for _, err in ended)
    last = ROUNDS - 1
    own = [(k, -1 if k in (10, 11) else last + (100 if k % 2 == 0 else 0)) for k in range(50)]
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        rows = session.sql("SELECT p, k, n FROM t ORDER BY ALL").fetchall()
        assert rows == [(p, k, n) for p in range(WRITERS) for k, n in own]
        assert len(session.snapshots()) >= 3 + WRITERS * ROUNDS * 3
