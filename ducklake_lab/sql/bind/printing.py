"""Prints bound trees as DuckDB SQL, for statements without a text: changes of rows, and virtual columns."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ducklake_lab.sql.dialect import DuckLakeSql

#: Words that DuckDB would read as columns with their names, and the equal functions.
_WORDS: Mapping[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "now",
    exp.CurrentTime: "get_current_time",
    exp.Localtime: "current_localtime",
    exp.Localtimestamp: "current_localtimestamp",
}


def duckdb_sql(tree: exp.Expr) -> str:
    """Returns a bound tree as DuckDB SQL."""
    if tree.find(*_WORDS) is not None:
        tree = tree.transform(lambda node: exp.Anonymous(this=_WORDS[type(node)]) if type(node) in _WORDS else node)
    return tree.sql(dialect=DuckLakeSql, identify=True, normalize_functions=False, comments=False)
