"""The queries of TPC-H and TPC-DS, as DuckDB's extensions have them, give what DuckDB gives, in process and on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from tests.tpc import BENCHMARKS, Benchmark

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def benchmarks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Benchmark]:
    folder = tmp_path_factory.mktemp("tpc")
    return {name: Benchmark(name, folder) for name in BENCHMARKS}


@pytest.fixture(scope="module")
def on_spark(benchmarks: dict[str, Benchmark], spark: Any) -> Iterator[dict[str, dl.Session]]:
    nothing_here = Limits(refused=-1)
    sessions = {
        name: dl.connect(benchmark.uri, spark=spark, engine="spark", limits=nothing_here)
        for name, benchmark in benchmarks.items()
    }
    yield sessions
    for session in sessions.values():
        session.close()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_in_process(benchmarks: dict[str, Benchmark], name: str) -> None:
    benchmark = benchmarks[name]
    assert sorted(benchmark.queries) == list(range(1, BENCHMARKS[name][1] + 1))
    with dl.connect(benchmark.uri, engine="duckdb") as session:
        differing = {number: benchmark.difference(session, number) for number in benchmark.queries}
    assert differing == dict.fromkeys(benchmark.queries)


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, (_, count) in BENCHMARKS.items() for number in range(1, count + 1)]
)
def test_on_spark(benchmarks: dict[str, Benchmark], on_spark: dict[str, dl.Session], name: str, number: int) -> None:
    assert benchmarks[name].difference(on_spark[name], number) is None
