"""Parses DESCRIBE, DESC and SHOW, which mean the same: listings of entries, and columns of tables and queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.references import PIVOTS, QUERY_WORDS, matching, word
from ducklake_lab.sql.parse.tokens import Cursor, syntax_error

VERBS = ("DESCRIBE", "DESC", "SHOW")
#: DuckDB's pragmas that list entries.
_PRAGMAS: dict[str, op.Listing] = {
    "SHOW_TABLES": op.Listing(),
    "SHOW_TABLES_EXPANDED": op.Listing("all"),
    "SHOW_DATABASES": op.Listing("databases"),
    "DATABASE_LIST": op.Listing("places"),
}
_Kind = Literal["tables", "all", "databases", "schemas"]
_KINDS: dict[str, _Kind] = {"TABLES": "tables", "DATABASES": "databases", "SCHEMAS": "schemas"}
#: Listings of the session's own, which DuckDB makes.
_OWN = ("VARIABLES", "SETTINGS")


def read_listing(cursor: Cursor) -> op.Listing | None:
    """Reads a listing from the word after its verb, or of a PRAGMA; returns None and reads nothing otherwise.

    DuckDB stores SHOW TABLES in views as `DESCRIBE "tables"`, so that quotes do not matter.

    Raises:
        UnsupportedFeatureError: it lists what only DuckDB knows.
    """
    if cursor.at("PRAGMA"):
        return _PRAGMAS.get(cursor.word(1)) if len(cursor.tokens) == 2 else None
    lists_all = cursor.take("ALL")
    left = cursor.tokens[cursor.index :]
    if not left:
        return op.Listing("all")
    is_name = left[0].token_type is not TokenType.STRING and (len(left) == 1 or left[1].token_type is not TokenType.DOT)
    name = left[0].text.upper() if is_name else ""
    kind = _KINDS.get(name)
    if kind is not None and not (lists_all and kind != "tables"):
        cursor.index += 1
        return _listing("all" if lists_all else kind, cursor)
    if lists_all or (name in _OWN and len(left) == 1):
        raise UnsupportedFeatureError(f"SHOW {'ALL ' if lists_all else ''}{name} is not supported yet.")
    return None


def _listing(kind: _Kind, cursor: Cursor) -> op.Listing:
    source = None
    if kind == "tables" and cursor.take("FROM"):
        first = cursor.current
        source = tuple(cursor.names("a lake or schema"))
        if len(source) > 2:
            raise syntax_error(cursor.text, first, "catalog or catalog.schema")
    cursor.finish()
    return op.Listing(kind, source)


def described_parts(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yields the first and last token of each DESCRIBE or SHOW: a whole statement, or what parentheses hold."""
    end = -1
    for index, token in enumerate(tokens):
        if index <= end or word(token) not in VERBS:
            continue
        if index == 0:
            yield 0, len(tokens) - 1
            return
        if tokens[index - 1].token_type is TokenType.L_PAREN:
            end = matching(tokens, index - 1) - 1
            yield index, end


def described_query(text: str, tokens: Sequence[Token]) -> str:
    """Returns the query whose columns a DESCRIBE or SHOW lists, by its tokens without the verb."""
    written = text[tokens[0].start : tokens[-1].end + 1]
    return written if word(tokens[0]) in QUERY_WORDS | PIVOTS or tokens[0].text == "(" else f"FROM {written}"
