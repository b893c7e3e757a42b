"""All queries of TPC-H or TPC-DS, with their answers compared to DuckDB's: `python -m benchmarks.tpc tpcds --scale 1`."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from tests.tpc import BENCHMARKS, Benchmark


def main() -> int:
    """Prints each query's seconds beside DuckDB's over its own tables; returns how many answers differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpc", description=__doc__)
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--engine", choices=("spark", "duckdb"), default="spark")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as folder:
        benchmark = Benchmark(options.name, Path(folder), options.scale)
        # what Spark cannot run is an error, however small the files
        with dl.connect(benchmark.uri, engine=options.engine, limits=Limits(refused=-1)) as session:
            return _run(session, benchmark)


def _run(session: dl.Session, benchmark: Benchmark) -> int:
    seconds, differing = 0.0, 0
    for number in sorted(benchmark.queries):
        started = time.perf_counter()
        difference = benchmark.difference(session, number)
        taken = time.perf_counter() - started
        seconds += taken
        differing += difference is not None
        answer = benchmark.answers[number]
        verdict = difference or f"{len(answer.rows)} rows, equal"
        print(f"{number:3}  {taken:7.2f} s  DuckDB {answer.seconds:6.2f} s  {verdict}", flush=True)
    theirs = sum(answer.seconds for answer in benchmark.answers.values())
    print(f"{len(benchmark.queries)} queries: {seconds:.0f} s, DuckDB {theirs:.0f} s; {differing} differ")
    return differing


if __name__ == "__main__":
    raise SystemExit(main())
