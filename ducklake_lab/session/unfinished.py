"""Tokens of incomplete SQL: the tables it names, and the candidates at a position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|$))|(?P<text>'(?:[^']|'')*'?|\$\$.*?(?:\$\$|$))"""
    r"""|(?P<quoted>"(?:[^"]|"")*"?)|(?P<word>[^\W\d]\w*)|(?P<other>=>|\d[\w.]*|.)""",
    re.DOTALL,
)
_TABLE_WORDS = frozenset("FROM JOIN INTO UPDATE TABLE DESCRIBE DESC SUMMARIZE USING TRUNCATE".split())
_END_OF_FROM = frozenset(
    "WHERE GROUP ORDER HAVING LIMIT QUALIFY WINDOW UNION EXCEPT INTERSECT SELECT SET ON USING VALUES".split()
)
NO_ALIAS = (
    _END_OF_FROM
    | _TABLE_WORDS
    | frozenset("AS AT INNER LEFT RIGHT FULL CROSS NATURAL ASOF OUTER SEMI ANTI WHEN THEN".split())
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")

    @property
    def name(self) -> str:
        return self.text.strip('"').replace('""', '"') if self.kind == "quoted" else self.text


def statement(text: str, cursor: int) -> list[Token]:
    """Returns the tokens of the statement around the cursor."""
    unfinished: list[Token] = []
    for match in _TOKEN.finditer(text):
        token = Token(match.lastgroup or "other", match[0], match.start())
        if token.text == ";":
            if token.start >= cursor:
                break
            unfinished = []
            continue
        unfinished.append(token)
    return unfinished


def is_open(token: Token, cursor: int) -> bool:
    """Returns whether the cursor is in a string or a comment."""
    end = token.start + len(token.text)
    if not token.start < cursor <= end:
        return False
    if token.kind == "text":
        closing = "$$" if token.text.startswith("$$") else "'"
        return cursor < end or len(token.text) < 2 * len(closing) or not token.text.endswith(closing)
    if token.kind != "space" or token.text[0].isspace():
        return False
    return cursor < end or not token.text.endswith("*/")


def is_parameter(before: Sequence[Token], start: int) -> bool:
    """Returns whether a `:` or `$` directly before that position begins a parameter."""
    if not before or before[-1].text not in (":", "$") or before[-1].start + 1 != start:
        return False
    # in `x::INTEGER`, `{'a':b}` and `l[1:n]` a colon begins no parameter
    last = before[-2] if len(before) > 1 else None
    return before[-1].text == "$" or last is None or not (last.kind == "text" or last.text[0] in ":0123456789")


def wants_table(before: Sequence[Token]) -> bool:
    """Returns whether a table name follows: after FROM and similar words, or after a comma in FROM."""
    if not before:
        return False
    last = before[-1]
    if last.kind == "word" and last.word in _TABLE_WORDS:
        # EXISTS, IF NOT EXISTS and the column list of USING ( have no table name
        return True
    if last.text != ",":
        return False
    depth = 0
    for token in reversed(before):
        depth += {")": 1, "(": -1}.get(token.text, 0)
        if depth < 0:
            return False
        if depth == 0 and token.kind == "word":
            if token.word == "FROM":
                return True
            if token.word in _END_OF_FROM:
                return False
    return False


def names_option(before: Sequence[Token]) -> bool:
    """Returns whether an option's name follows, in `ALTER TABLE … SET (` and `RESET (`."""
    opened = next((at for at in reversed(range(len(before))) if before[at].text in ("(", ")")), 0)
    if not before or before[opened].text != "(" or before[-1].text not in ("(", ","):
        return False
    return before[0].word == "ALTER" and before[opened - 1].word in ("SET", "RESET")


def table_references(tokens: Sequence[Token]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Yields (name parts, alias) of each table after FROM, JOIN, UPDATE, INTO and commas."""
    at = 0
    in_from = False
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.kind == "word" and token.word in _TABLE_WORDS:
            in_from = token.word == "FROM"
        elif not (token.text == "," and in_from):
            if token.kind == "word" and token.word in _END_OF_FROM:
                in_from = False
            continue
        parts: list[str] = []
        while at < len(tokens) and tokens[at].is_name and tokens[at].word not in NO_ALIAS:
            parts.append(tokens[at].name)
            at += 1
            if at < len(tokens) and tokens[at].text == ".":
                at += 1
            else:
                break
        if not parts or (at < len(tokens) and tokens[at].text == "("):
            continue
        at = _skip_at(tokens, at)
        if at < len(tokens) and tokens[at].word == "AS":
            at += 1
        alias = None
        if at < len(tokens) and tokens[at].is_name and tokens[at].word not in NO_ALIAS:
            alias = tokens[at].name
            at += 1
        yield tuple(parts), alias


def _skip_at(tokens: Sequence[Token], at: int) -> int:
    """Returns the position after `AT ( … )`, if it is there."""
    if at + 1 >= len(tokens) or tokens[at].word != "AT" or tokens[at + 1].text != "(":
        return at
    depth = 0
    for index in range(at + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return index + 1
    return len(tokens)


def common_tables(tokens: Sequence[Token]) -> Iterator[str]:
    """Yields the names that WITH defines."""
    for name, word, bracket in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if name.is_name and word.word == "AS" and bracket.text == "(":
            yield name.name
