"""Writes the query for the places of a table's rows that fulfil a condition."""

from __future__ import annotations

from sqlglot import TokenType

from ducklake_lab.errors import SqlSyntaxError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.parser import parse_query
from ducklake_lab.sql.parse.tokens import split, syntax_error


def row_places(path: str, name: str, snapshot_id: int, where: str | None) -> op.Query:
    """Returns a query for `row_id`, `file_id` and `position` of rows at a snapshot; these two are NULL of inlined rows.

    Args:
        path: the quoted path of the table.
        name: its own name, which the condition may put before columns.
        where: a condition in DuckDB's SQL; None for all rows.

    Raises:
        SqlSyntaxError: the text is not one condition.
    """
    columns = ", ".join(
        f"{column} AS {alias}" for column, alias in ((ROW_ID, "row_id"), (FILE_ID, "file_id"), (POSITION, "position"))
    )
    text = f"SELECT {columns} FROM {path} AT (VERSION => {snapshot_id:d}) AS {quote_identifier(name)}"
    if where is None:
        return parse_query(text)
    _check(where)
    # a comment may end the condition
    return parse_query(f"{text} WHERE (\n{where}\n)")


def _check(where: str) -> None:
    """Raises SqlSyntaxError where a text is not one condition: parentheses around it would not hold it together."""
    statements = split(where)
    if len(statements) != 1:
        raise SqlSyntaxError("A condition was expected, such as carrier = 'UA'.")
    (tokens,) = statements
    open_ones = 0
    for token in tokens:
        open_ones += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if open_ones < 0:
            raise syntax_error(where, token)
    if open_ones:
        raise syntax_error(where, None, ")")
