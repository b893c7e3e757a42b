"""Parses CREATE SECRET and DROP SECRET for lakes, catalog servers and file stores."""

from __future__ import annotations

from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.statements import option
from ducklake_lab.sql.parse.tokens import Cursor

#: Kinds of secrets handled here; all others are DuckDB's.
KINDS = ("ducklake", "postgres", "mysql", "quack", "s3")


def read_secret(cursor: Cursor, binder: Binder) -> op.CreateSecret | op.DropSecret | None:
    """Parses a statement on a secret; returns None for another statement or another kind of secret."""
    start = cursor.index
    creates = cursor.take("CREATE")
    if not creates and not cursor.take("DROP"):
        return None
    replace = creates and cursor.take("OR", "REPLACE")
    persistent = cursor.take("PERSISTENT")
    if not persistent:
        cursor.take("TEMPORARY")
    if not cursor.take("SECRET"):
        cursor.index = start
        return None
    operation = _create(cursor, binder, replace, persistent) if creates else _drop(cursor)
    if operation is None:
        cursor.index = start
    return operation


def _create(cursor: Cursor, binder: Binder, replace: bool, persistent: bool) -> op.CreateSecret | None:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = None if cursor.at("(") else cursor.name("the secret's name")
    options: dict[str, object] = {}
    for item in cursor.parenthesised():
        part = Cursor(cursor.text, item)
        key = part.name("an option").lower()
        part.take("=")
        options[key] = option(part.rest(), cursor.text, binder)
    kind = str(options.pop("type", "")).casefold().replace("postgresql", "postgres")
    if kind not in KINDS:
        return None
    cursor.finish()
    return op.CreateSecret(name, kind, options, replace, if_not_exists, persistent)


def _drop(cursor: Cursor) -> op.DropSecret:
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.name("the secret's name")
    cursor.finish()
    return op.DropSecret(name, if_exists)
