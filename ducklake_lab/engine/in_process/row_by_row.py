"""Recognises queries that can run on parts of the rows: each result row comes from exactly one row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ducklake_lab.duckdb import library as duckdb

#: Classes of parsed expressions that depend on one row, if their functions do.
_CLASSES = frozenset(
    "BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION LAMBDA OPERATOR TYPE".split()
)
#: Functions that depend on the session, although DuckDB marks them as functions of their arguments.
_OF_SESSION = frozenset(("current_setting", "getvariable"))


def is_row_by_row(connection: duckdb.DuckDBPyConnection, sql: str, view: str) -> bool:
    """Returns whether a query selects rows of the view alone, by functions of each row, without grouping, order or limits.

    Args:
        connection: a connection to look up functions; macros and the user's own functions do not qualify.
        sql: a query with qualified columns; an unqualified one could be `current_date`.
    """
    ((serialized,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    parsed = json.loads(serialized)
    if parsed["error"] or len(parsed["statements"]) != 1:
        return False
    node = parsed["statements"][0]["node"]
    source = node.get("from_table") or {}
    others = ("modifiers", "group_expressions", "having", "qualify", "sample")
    if node["type"] != "SELECT_NODE" or any(node[key] for key in others) or node["cte_map"]["map"]:
        return False
    if source.get("type") != "BASE_TABLE" or source["table_name"] != view or source["sample"] or source["at_clause"]:
        return False
    expressions = list(_expressions([*node["select_list"], node["where_clause"]]))
    if any(expression["class"] not in _CLASSES for expression in expressions):
        return False
    lambdas = [expression["lhs"] for expression in expressions if expression["class"] == "LAMBDA"]
    parameters = {tuple(e["column_names"]) for e in _expressions(lambdas) if e["class"] == "COLUMN_REF"}
    columns = {tuple(e["column_names"]) for e in expressions if e["class"] == "COLUMN_REF"}
    if any(len(column) == 1 for column in columns - parameters):
        return False
    names = {e["function_name"].casefold() for e in expressions if e["class"] == "FUNCTION"}
    return not names & _OF_SESSION and _are_of_arguments(connection, names)


def _expressions(tree: object) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from _expressions(part)


def _are_of_arguments(connection: duckdb.DuckDBPyConnection, names: set[str]) -> bool:
    """Returns whether all names are DuckDB's own functions whose values depend only on their arguments."""
    functions = connection.execute(
        # some also depend on the session's time zone, which workers know
        "SELECT lower(function_name), bool_and(internal AND function_type = 'scalar' AND stability <> 'VOLATILE') "
        "AND bool_or(stability = 'CONSISTENT') "
        "FROM duckdb_functions() WHERE list_contains($1, lower(function_name)) GROUP BY ALL",
        [sorted(names)],
    ).fetchall()
    return len(functions) == len(names) and all(known for _, known in functions)
