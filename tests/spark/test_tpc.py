"""The queries of TPC-H and TPC-DS, as DuckDB's extensions have them, give what DuckDB gives, in process and on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from tests import reference

pytestmark = pytest.mark.slow

BENCHMARKS = {"tpch": ("CALL dbgen(sf = 0.01)", 22), "tpcds": ("CALL dsdgen(sf = 0.01)", 99)}

Row = tuple[Any, ...]


class Benchmark:
    """A lake with a benchmark's tables, its queries, and their answers by DuckDB."""

    def __init__(self, name: str, folder: Path) -> None:
        self.uri = f"ducklake:{folder}/{name}.ducklake"
        generate, _ = BENCHMARKS[name]
        with reference.connect(name) as connection:
            connection.execute(generate)
            tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
            connection.execute(f"ATTACH '{self.uri}' AS lake (DATA_PATH '{folder}/{name}')")
            for (table,) in tables:
                connection.execute(f"CREATE TABLE lake.{table} AS FROM memory.{table}")
            queries = connection.execute(f"SELECT query_nr, query FROM {name}_queries()").fetchall()
            self.queries: dict[int, str] = dict(queries)
            self.answers: dict[int, tuple[list[str], list[Row]]] = {}
            for number, query in self.queries.items():
                found = connection.execute(query)
                self.answers[number] = [column[0] for column in found.description or ()], found.fetchall()


@pytest.fixture(scope="module")
def benchmarks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Benchmark]:
    folder = tmp_path_factory.mktemp("tpc")
    return {name: Benchmark(name, folder) for name in BENCHMARKS}


@pytest.fixture(scope="module")
def on_spark(benchmarks: dict[str, Benchmark], spark: Any) -> Iterator[dict[str, dl.Session]]:
    sessions = {name: dl.connect(benchmark.uri, spark=spark, engine="spark") for name, benchmark in benchmarks.items()}
    yield sessions
    for session in sessions.values():
        session.close()


def _comparable(value: object) -> object:
    """Numbers at the precision that sums keep whatever their order."""
    if isinstance(value, float | Decimal | int) and not isinstance(value, bool):
        return f"{float(value):.9g}"
    return value


def _rows(rows: Sequence[Row]) -> list[str]:
    return sorted(repr([_comparable(value) for value in row]) for row in rows)


def _check(session: dl.Session, benchmark: Benchmark, number: int) -> None:
    names, expected = benchmark.answers[number]
    result = session.sql(benchmark.queries[number])
    assert result.columns == names
    assert _rows(result.fetchall()) == _rows(expected)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_in_process(benchmarks: dict[str, Benchmark], name: str) -> None:
    benchmark = benchmarks[name]
    assert sorted(benchmark.queries) == list(range(1, BENCHMARKS[name][1] + 1))
    with dl.connect(benchmark.uri, engine="duckdb") as session:
        for number in benchmark.queries:
            _check(session, benchmark, number)


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, (_, count) in BENCHMARKS.items() for number in range(1, count + 1)]
)
def test_on_spark(benchmarks: dict[str, Benchmark], on_spark: dict[str, dl.Session], name: str, number: int) -> None:
    _check(on_spark[name], benchmarks[name], number)
