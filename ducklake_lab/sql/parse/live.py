"""Parses statements on live tables."""

from __future__ import annotations

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.entries import query_with_text
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.tokens import Cursor


def live_statement(cursor: Cursor, binder: Binder) -> op.Operation | None:
    """Parses a statement on a live table; returns None for another one and reads nothing then."""
    start = cursor.index
    if cursor.take("CREATE"):
        replace = cursor.take("OR", "REPLACE")
        if cursor.take("LIVE", "TABLE"):
            return _create(cursor, binder, replace=replace)
    elif cursor.take("DROP", "LIVE", "TABLE"):
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.table()
        cursor.finish()
        return op.DropLiveTable(name, if_exists)
    elif cursor.take("REFRESH"):
        return op.Refresh(_name(cursor))
    elif cursor.take("EXPLAIN", "REFRESH"):
        return op.ExplainRefresh(_name(cursor))
    cursor.index = start
    return None


def _create(cursor: Cursor, binder: Binder, *, replace: bool) -> op.CreateLiveTable:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.table()
    if cursor.at("("):
        raise UnsupportedFeatureError("A live table takes its columns from its query; name them there with AS.")
    cursor.expect("AS")
    sql, query = query_with_text(cursor, cursor.rest(), binder)
    return op.CreateLiveTable(name, sql, query, replace, if_not_exists)


def _name(cursor: Cursor) -> op.TableName | None:
    if cursor.at("ALL") and cursor.word(1) != ".":
        cursor.take("ALL")
        cursor.finish()
        return None
    name = cursor.table()
    cursor.finish()
    return name
