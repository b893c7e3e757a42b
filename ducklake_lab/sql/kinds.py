"""Types of bound expressions, which DuckDB determines from the types of columns."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import NULL, argument, result_type
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import Output, notes
from ducklake_lab.sql.types import from_sqlglot


def kind_of(node: exp.Expr | None) -> DataType | None:
    """Returns the type of a bound expression; None if a column's type is unknown, or lakes have no such type."""
    if node is None:
        return None
    if isinstance(node, exp.Paren | exp.Alias):
        return kind_of(node.this)
    noted = notes(node).type
    if isinstance(noted, DataType):
        return noted
    if isinstance(node, exp.Column):
        relation = notes(node).relation
        return kind_of_output(relation.find(node.name)) if relation is not None else None
    if isinstance(node, exp.Query):
        outputs = notes(node).outputs
        return kind_of_output(outputs[0]) if outputs and len(outputs) == 1 else None
    notes(node).set_type(_asked(node))
    return kind_of(node) if notes(node).type is not None else None


def kind_of_output(output: Output | None) -> DataType | None:
    """Returns the type of a column of a query, as `kind_of`."""
    return (output.type or kind_of(output.value)) if output is not None else None


def kind_of_cast(node: exp.Expr) -> DataType | None:
    """Returns the type that a cast names; None for other expressions."""
    try:
        return from_sqlglot(node.to) if isinstance(node, exp.Cast) else None
    except DuckLakeError:
        return None


def _asked(node: exp.Expr) -> DataType | None:
    arguments: list[exp.Expr] = []

    def lifted(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column | exp.Query):
            return part
        arguments.append(part)
        return exp.column(exp.to_identifier(argument(len(arguments) - 1), quoted=True))

    sql = node.transform(lifted).sql(dialect=DuckLakeSql, identify=True, normalize_functions=False, comments=False)
    kinds = tuple(kind for part in arguments if (kind := kind_of(part)) is not None)
    try:
        kind = result_type(sql, kinds, ()) if len(kinds) == len(arguments) else NULL
    except DuckLakeError:
        return None
    return kind if kind != NULL else None
