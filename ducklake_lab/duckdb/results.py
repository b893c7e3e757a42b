"""Rows of queries as Arrow, from DuckDB 1.5 and from 2.0.

Since 2.0 `execute` streams its result row by row, so a relation gives Arrow; 1.5 would bind a relation once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from ducklake_lab.version import SINCE_DUCKDB_2


def arrow(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> pa.Table:
    """All rows of a query."""
    return _of_query(connection, sql, parameters).to_arrow_table()


def batches(connection: duckdb.DuckDBPyConnection, sql: str, rows: int) -> pa.RecordBatchReader:
    """The rows of a query, by that many; the connection serves nothing else until they are read."""
    return _of_query(connection, sql, ()).to_arrow_reader(rows)


def complete(connection: duckdb.DuckDBPyConnection) -> None:
    """Ends a result that was read in part, which keeps a connection of 2.0 from other work."""
    if SINCE_DUCKDB_2:
        connection.complete()  # type: ignore[attr-defined, unused-ignore]


def _of_query(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object]) -> Any:
    if not SINCE_DUCKDB_2:
        return connection.execute(sql, list(parameters))
    relation = connection.sql(sql, params=list(parameters)) if parameters else connection.sql(sql)
    assert relation is not None  # a query
    return relation
