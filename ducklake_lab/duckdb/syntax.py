"""Trees of queries, from DuckDB's own parser."""

from __future__ import annotations

import json
from typing import Any

import duckdb

from ducklake_lab.duckdb.connections import of_thread


def tree_of(query: str) -> list[Any] | None:
    """Return the trees of the queries in a text as `json_serialize_sql` gives them.

    Returns:
        One tree for each query; None where the text is wrong, or a statement is not a query.

    Raises:
        RecursionError: the text is nested too deeply.
    """
    connection = of_thread("syntax")
    try:
        row = connection.execute(
            "SELECT json_serialize_sql(?::VARCHAR, skip_null := true, skip_empty := true)", [query]
        ).fetchone()
    except duckdb.Error:
        return None
    tree: dict[str, Any] = json.loads(row[0]) if row is not None and row[0] is not None else {}
    return None if tree.get("error", True) else list(tree.get("statements", ()))
