"""Tokens of a text: splits it into statements, and reads one statement with a cursor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import SqlSyntaxError
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.operations import TableName

_DIALECT = DuckLakeSql()
#: Longest text, in characters, whose tokens are cached: a statement is split several times.
_KEPT_LENGTH = 20_000


def position(text: str, offset: int) -> tuple[int, int]:
    """Returns the 1-based (line, column) of a character of `text`."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def split(text: str) -> list[list[Token]]:
    """Returns the tokens of each statement of `text`, without semicolons and empty statements.

    Raises:
        SqlSyntaxError: a quote or comment does not end, or a quoted name is empty.
    """
    try:
        tokens = _kept_tokens(text) if len(text) <= _KEPT_LENGTH else _DIALECT.tokenize(text)
    except TokenError as error:
        raise _unclosed(text) from error
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        elif token.token_type == TokenType.IDENTIFIER and not token.text:
            raise syntax_error(text, token, "a name between the quotes")
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


@lru_cache(maxsize=8)
def _kept_tokens(text: str) -> Sequence[Token]:
    return tuple(_DIALECT.tokenize(text))


#: Complete quotes and comments, and beginnings of incomplete ones.
_CLOSED = re.compile(
    r"--[^\n]*|/\*.*?\*/|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$", re.DOTALL
)
_OPENING = re.compile(r"'|\"|/\*|\$\w*\$")
_KINDS = {"'": "text", '"': "name", "/*": "comment"}


def _unclosed(text: str) -> SqlSyntaxError:
    """Returns the error for a quote or comment that does not end, at its beginning."""
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        # a complete piece may contain the letters of an opening
        closed = next((end for end in _CLOSED.finditer(text, at) if end.end() > opening.start()), None)
        if closed is None or closed.start() > opening.start():
            break
        at = closed.end()
    if opening is None:
        line, column = position(text, len(text))
        what = "A quoted text, name or comment does not end"
    else:
        line, column = position(text, opening.start())
        mark = opening[0]
        end = "*/" if mark == "/*" else mark
        what = f"The {_KINDS.get(mark, 'text')} that begins here does not end; close it with {end}"
    return SqlSyntaxError(f"{what} (line {line}, column {column}).", line=line, column=column)


def spans(text: str) -> list[tuple[int, int]]:
    """Returns the start and the exclusive end of each token of one statement."""
    return [(token.start, token.end + 1) for token in _kept_tokens(text)]


def without_at(text: str) -> str:
    """Returns a statement without the AT (…) clauses of its tables."""
    tokens = _kept_tokens(text)
    parts, end, index = [], 0, 0
    while index + 1 < len(tokens):
        is_at = tokens[index].token_type is not TokenType.IDENTIFIER and tokens[index].text.upper() == "AT"
        if not is_at or tokens[index + 1].token_type is not TokenType.L_PAREN:
            index += 1
            continue
        stop = next(
            (i for i in range(index, len(tokens)) if tokens[i].token_type is TokenType.R_PAREN), len(tokens) - 1
        )
        parts.append(text[end : tokens[index].start])
        end, index = tokens[stop].end + 1, stop + 1
    return "".join([*parts, text[end:]])


def one_line(text: str, limit: int = 60) -> str:
    """Returns `text` on one line, cut to `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def syntax_error(text: str, token: Token | None, expected: str | None = None) -> SqlSyntaxError:
    """Returns the error for a statement that is wrong at `token` (None: at its end)."""
    offset = token.start if token is not None else len(text.rstrip().rstrip(";").rstrip())
    line, column = position(text, offset)
    spot = f'at "{one_line(text[token.start : token.end + 1], 40)}"' if token is not None else "at the end"
    hint = f"; expected {expected}" if expected else ""
    return SqlSyntaxError(f"Syntax error {spot} (line {line}, column {column}){hint}.", line=line, column=column)


def from_parse_error(text: str, tokens: Sequence[Token], error: ParseError) -> SqlSyntaxError:
    """Returns the one-line form of the parser's error."""
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    token = None
    if line is not None and column is not None:
        token = next((t for t in tokens if t.line == line and t.col == column), None)
    return syntax_error(text, token)


def as_identifier(token: Token) -> Token:
    """Returns a word token as a quoted identifier."""
    if token.token_type in (TokenType.STRING, TokenType.NUMBER) or not token.text.replace("_", "a").isalnum():
        return token
    return Token(TokenType.IDENTIFIER, token.text, token.line, token.col, token.start, token.end, token.comments)


def table_of(parts: Sequence[str], text: str, first: Token | None) -> TableName:
    """Returns a table name from its dotted parts; `first` is their first token."""
    if first is None:
        raise syntax_error(text, first, "catalog.schema.table")
    return TableName.of(parts, *position(text, first.start))


@dataclass(slots=True)
class Cursor:
    """Reads the tokens of one statement from left to right."""

    text: str
    tokens: Sequence[Token]
    index: int = 0

    @property
    def current(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """Returns the token `ahead` of the current one in upper case; "" for a quoted one or past the end.

        Some pairs of keywords are one token: `PARTITIONED BY`, `PRIMARY KEY`.
        """
        place = self.index + ahead
        if place >= len(self.tokens):
            return ""
        token = self.tokens[place]
        if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            return ""
        return " ".join(token.text.upper().split())

    def at(self, *words: str) -> bool:
        return all(self.word(ahead) == word for ahead, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Steps over these words if they are next; returns whether it did."""
        if self.at(*words):
            self.index += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise syntax_error(self.text, self.current, word)

    def finish(self) -> None:
        if self.current is not None:
            raise syntax_error(self.text, self.current, "the end of the statement")

    def name(self, expected: str = "a name") -> str:
        """Reads an identifier, quoted or not."""
        token = self.current
        if token is None or (
            token.token_type != TokenType.IDENTIFIER and not token.text.replace("_", "a").replace("$", "a").isalnum()
        ):
            raise syntax_error(self.text, token, expected)
        if token.token_type in (TokenType.STRING, TokenType.NUMBER):
            raise syntax_error(self.text, token, expected)
        self.index += 1
        return token.text

    def names(self, expected: str = "a name") -> list[str]:
        """Reads a dotted name."""
        parts = [self.name(expected)]
        while self.take("."):
            parts.append(self.name(expected))
        return parts

    def table(self) -> TableName:
        first = self.current
        return table_of(self.names("a table name"), self.text, first)

    def string(self) -> str:
        token = self.current
        if token is None or token.token_type not in (
            TokenType.STRING,
            TokenType.HEREDOC_STRING,
            TokenType.RAW_STRING,
        ):
            raise syntax_error(self.text, token, "a quoted text")
        self.index += 1
        return token.text

    def number(self) -> int:
        token = self.current
        if token is None or token.token_type != TokenType.NUMBER or not token.text.isdigit():
            raise syntax_error(self.text, token, "a whole number")
        self.index += 1
        return int(token.text)

    def rest(self) -> Sequence[Token]:
        """Reads all remaining tokens."""
        left = self.tokens[self.index :]
        self.index = len(self.tokens)
        return left

    def parenthesised(self) -> list[list[Token]]:
        """Reads `( … )`; returns the tokens of each comma-separated item."""
        self.expect("(")
        items: list[list[Token]] = [[]]
        depth = 0
        while True:
            token = self.current
            if token is None:
                raise syntax_error(self.text, None, ")")
            self.index += 1
            kind = token.token_type
            if kind == TokenType.R_PAREN and depth == 0:
                return [item for item in items if item]
            if kind in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
                depth += 1
            elif kind in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE):
                depth -= 1
            if kind == TokenType.COMMA and depth == 0:
                items.append([])
            else:
                items[-1].append(token)
