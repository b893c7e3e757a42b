"""Whether a table much larger than the driver's heap can be written, changed and read: `python -m benchmarks.memory`.

On a standalone cluster of two workers, whose heaps are as small. Incompressible numbers, so that files are as large as
the rows. Prints the time of each step, and the most memory that this process, the driver's Python, has had.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from ducklake_lab.spark import runtime
from tests.cluster import standalone_cluster

#: Bytes of a row: five BIGINTs.
_ROW = 40


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--heap", type=int, default=512, metavar="MB", help="of the driver and of each executor (512)")
    parser.add_argument("--times", type=float, default=10, help="size of the table in heaps (10)")
    options = parser.parse_args()
    rows = int(options.heap * options.times * (1 << 20) / _ROW)
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-memory-") as name:
        folder = Path(name)
        with standalone_cluster(folder, f"{options.heap}m") as settings:
            spark = runtime.start({**settings, "spark.driver.memory": f"{options.heap}m"})
            try:
                with dl.connect(f"ducklake:{folder}/lake.ducklake", spark=spark, engine="spark") as session:
                    _run(session, rows)
            finally:
                runtime.stop(spark)
    scale = 1 if sys.platform == "darwin" else 1 << 10
    print(f"driver's Python: at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / (1 << 20):,.0f} MiB")


def _run(session: dl.Session, rows: int) -> None:
    columns = [f"xxhash64(id, {i}) AS c{i}" for i in range(4)]
    made = session.spark.range(rows).selectExpr("id", *columns)
    _step("write", lambda: session.write(made, "t", mode="create"))
    (table,) = session.tables()
    print(f"  {table.record_count:,} rows, {table.file_size_bytes / (1 << 30):.2f} GiB in files")
    found = _step(
        "read", lambda: session.sql("SELECT count(c0), count(DISTINCT id // 1000), max(c3) FROM t").fetchone()
    )
    assert found[0] == rows and found[1] == -(-rows // 1000), found
    _step("delete 1 %", lambda: session.sql("DELETE FROM t WHERE id % 100 = 7"))
    _step("update 1 %", lambda: session.sql("UPDATE t SET c1 = 0 WHERE id % 100 = 8"))
    left = rows - len(range(7, rows, 100))
    assert _step("read again", lambda: session.sql("SELECT count(c1) FROM t").fetchone()) == (left,)
    assert session.sql("SELECT count(*) FROM t WHERE c1 = 0").fetchone() == (len(range(8, rows, 100)),)


def _step(name: str, action: Callable[[], Any]) -> Any:
    started = time.monotonic()
    result = action()
    print(f"{name:12} {time.monotonic() - started:7.1f} s", flush=True)
    return result


if __name__ == "__main__":
    main()
