"""Lakes with the tables of TPC-H and TPC-DS, their queries as DuckDB's extensions have them, and DuckDB's answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from tests import reference

#: How the tables are made, and how many queries there are.
BENCHMARKS = {"tpch": ("CALL dbgen(sf = {})", 22), "tpcds": ("CALL dsdgen(sf = {})", 99)}

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Answer:
    """Answer of DuckDB to a query over its own tables, and its time in seconds."""

    columns: list[str]
    rows: list[str]
    seconds: float


class Benchmark:
    """A lake with a benchmark's tables, its queries, and their answers by DuckDB."""

    def __init__(self, name: str, folder: Path, scale: float = 0.01) -> None:
        self.uri = f"ducklake:{folder}/{name}.ducklake"
        generate, _ = BENCHMARKS[name]
        with reference.connect(name) as connection:
            connection.execute(generate.format(scale))
            tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
            connection.execute(f"ATTACH '{self.uri}' AS lake (DATA_PATH '{folder}/{name}')")
            for (table,) in tables:
                connection.execute(f"CREATE TABLE lake.{table} AS FROM memory.{table}")
            queries = connection.execute(f"SELECT query_nr, query FROM {name}_queries()").fetchall()
            self.queries: dict[int, str] = dict(queries)
            self.answers: dict[int, Answer] = {}
            for number, query in self.queries.items():
                started = time.perf_counter()
                found = connection.execute(query)
                rows = found.fetchall()
                seconds = time.perf_counter() - started
                columns = [column[0] for column in found.description or ()]
                self.answers[number] = Answer(columns, _comparable(rows), seconds)

    def difference(self, session: dl.Session, number: int) -> str | None:
        """Describe how the session's answer differs from DuckDB's, in any order of rows; None where it does not."""
        expected = self.answers[number]
        result = session.sql(self.queries[number])
        if result.columns != expected.columns:
            return f"columns {result.columns}, not {expected.columns}"
        rows = _comparable(result.fetchall())
        pairs = zip(rows, expected.rows, strict=False)
        other = next((f"row {ours}, not {theirs}" for ours, theirs in pairs if ours != theirs), None)
        return other if len(rows) == len(expected.rows) else f"{len(rows)} rows, not {len(expected.rows)}"


def _comparable(rows: Sequence[Row]) -> list[str]:
    return sorted(repr([_rounded(value) for value in row]) for row in rows)


def _rounded(value: object) -> object:
    """Numbers at the precision that sums keep whatever their order."""
    if isinstance(value, float | Decimal | int) and not isinstance(value, bool):
        return f"{float(value):.9g}"
    return value
