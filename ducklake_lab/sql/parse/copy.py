"""Parses the three forms of COPY from tokens."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.references import matching
from ducklake_lab.sql.parse.tokens import Cursor, syntax_error


def read_copy(cursor: Cursor, binder: Binder) -> op.Operation:
    """Parses COPY … TO, COPY … FROM or COPY FROM DATABASE … TO.

    Raises:
        SqlSyntaxError: the statement has none of these forms.
    """
    cursor.expect("COPY")
    if cursor.take("FROM", "DATABASE"):
        return _database(cursor)
    first = cursor.index
    if cursor.at("("):
        close = matching(cursor.tokens, first)
        query = binder.text(cursor.text, cursor.tokens[first + 1 : close])
        cursor.index = close + 1
        cursor.expect("TO")
        return _to(cursor, query)
    table = cursor.table()
    name = _text(cursor, cursor.tokens[first : cursor.index])
    columns: tuple[str, ...] | None = None
    selected = "*"
    if cursor.at("("):
        opening = cursor.index
        columns = tuple(Cursor(cursor.text, item).name("a column") for item in cursor.parenthesised())
        selected = _text(cursor, cursor.tokens[opening + 1 : cursor.index - 1])
    if cursor.take("TO"):
        return _to(cursor, f"SELECT {selected} FROM {name}")
    cursor.expect("FROM")
    path = cursor.string()
    options, _ = _options(cursor)
    return op.CopyFrom(table, columns, path, options)


def _database(cursor: Cursor) -> op.CopyDatabase:
    source = cursor.name("a database")
    cursor.expect("TO")
    target = cursor.name("a database")
    entries = rows = True
    if cursor.at("("):
        words = {Cursor(cursor.text, item).word() for item in cursor.parenthesised()}
        entries, rows = words != {"DATA"}, words != {"SCHEMA"}
    cursor.finish()
    return op.CopyDatabase(source, target, entries, rows)


def _to(cursor: Cursor, query: str) -> op.CopyTo:
    path = cursor.string()
    options, words = _options(cursor)
    return op.CopyTo(query, path, options, words)


def _options(cursor: Cursor) -> tuple[str, tuple[tuple[str, str], ...]]:
    cursor.take("WITH")
    if cursor.current is None:
        return "", ()
    opening = cursor.index
    if not cursor.at("("):
        raise syntax_error(cursor.text, cursor.current, "( with options")
    words = []
    for item in cursor.parenthesised():
        value = item[1:]
        if value and value[0].token_type is TokenType.EQ:
            value = value[1:]
        words.append((item[0].text.casefold(), _text(cursor, value) if value else "true"))
    text = _text(cursor, cursor.tokens[opening : cursor.index])
    cursor.finish()
    return text, tuple(words)


def _text(cursor: Cursor, tokens: Sequence[Token]) -> str:
    return cursor.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""
