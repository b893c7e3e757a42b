"""Writes the query for the places of a table's rows that fulfil a condition, and for the texts of their cells."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import TokenType

from ducklake_lab.errors import SqlSyntaxError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID, SNAPSHOT_ID
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.parser import parse_query
from ducklake_lab.sql.parse.tokens import split, syntax_error


def row_places(
    path: str, name: str, snapshot_id: int | None, where: str | None, texts: Sequence[str] | None = None
) -> op.Query:
    """Returns a query for `row_id`, `file_id` and `position` of rows at a snapshot; these two are NULL of inlined rows.

    Args:
        path: the quoted path of the table.
        name: its own name, which the condition may put before columns.
        snapshot_id: the snapshot; None for the one that the statement reads.
        where: a condition in DuckDB's SQL; None for all rows.
        texts: the columns whose values follow as texts, after the snapshot that a row names, under names that the
            condition cannot read; None for neither.

    Raises:
        SqlSyntaxError: the text is not one condition.
    """
    columns = [
        f"{column} AS {alias}" for column, alias in ((ROW_ID, "row_id"), (FILE_ID, "file_id"), (POSITION, "position"))
    ]
    if texts is not None:
        columns += [SNAPSHOT_ID, *(f"CAST({quote_identifier(column)} AS VARCHAR)" for column in texts)]
    at = "" if snapshot_id is None else f" AT (VERSION => {snapshot_id:d})"
    text = f"SELECT {', '.join(columns)} FROM {path}{at} AS {quote_identifier(name)}"
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
