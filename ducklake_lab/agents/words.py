"""Words of one statement in a small subset of SQL's spelling, in which no two parsers differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ducklake_lab.errors import UsageError
from ducklake_lab.sql.parse.tokens import split

#: Longest statement, in characters, and deepest nesting of parentheses.
LONGEST, DEEPEST = 100_000, 60
_PIECES = re.compile(
    r"""(?P<space>[ \t\r\n]+|--[^\n]*(?:\n|\Z)|/\*(?:(?!/\*|\*/).)*\*/)
    |(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<number>(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w']))
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>[-+*/%<>=!~^&|:@.,()\[\]{}])""",
    re.DOTALL | re.VERBOSE,
)
#: Words before a text that give its letters another meaning.
_PREFIXES = re.compile(r"(?:^|[^\w])(?:e|x|b|n|r|u|f|u&)\Z", re.IGNORECASE)
#: Signs that end a text for some parsers, or begin a template: they are no letters of a name.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of a statement: a word, number, sign, text or quoted name.

    Attributes:
        kind: space, text, quoted, number, word or sign.
        upper: a plain word or sign in upper case; "" for the rest.
        depth: the number of open parentheses around it.
    """

    kind: str
    text: str
    start: int
    depth: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind in ("word", "sign") else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")

    @property
    def name(self) -> str:
        return self.text[1:-1].replace('""', '"') if self.kind == "quoted" else self.text


def refused(why: str) -> UsageError:
    """Return the error of a statement that does not pass."""
    return UsageError(f"This door refuses the statement: {why}.")


def plain_text(text: str) -> str:
    """Return one statement without comments and the semicolon at its end.

    Raises:
        UsageError: it is spelled in a way that is not understood for certain, or there are several statements.
    """
    if len(text) > LONGEST:
        raise refused(f"it is longer than {LONGEST:,} characters")
    if _CONTROL.search(text):
        raise refused("it holds invisible characters")
    parts, at = [], 0
    body = text.strip(" \t\r\n")
    body = body[:-1] if body.endswith(";") else body
    while at < len(body):
        piece = _PIECES.match(body, at)
        if piece is None:
            raise refused(_why(body[at]))
        parts.append(" " if piece.lastgroup == "space" and piece[0][0] in "-/" else piece[0])
        at = piece.end()
    return "".join(parts).strip(" \t\r\n")


def _why(sign: str) -> str:
    if sign == ";":
        return "one statement at a time"
    if sign in "'\"":
        return "a quote does not end"
    return f"the character {sign!a} is not allowed outside quotes"


def read_words(text: str) -> list[Word]:
    """Return the words of a text from `plain_text`.

    Raises:
        UsageError: our own parser reads other words, parentheses do not match, or they are nested too deeply.
    """
    words: list[Word] = []
    opened: list[str] = []
    at = 0
    while at < len(text):
        match = _PIECES.match(text, at)
        if match is None or match.lastgroup is None:
            raise refused("it is spelled in a way that is not understood")
        kind, piece = match.lastgroup, match[0]
        if kind == "text" and _PREFIXES.search(text[max(0, at - 3) : at]):
            raise refused("texts with a prefix such as E'…' are not allowed")
        if kind == "sign" and piece in _OPEN:
            opened.append(piece)
        if kind == "sign" and piece in _CLOSE and (not opened or _OPEN.index(opened.pop()) != _CLOSE.index(piece)):
            raise refused("its parentheses do not match")
        if len(opened) > DEEPEST:
            raise refused(f"its parentheses are nested more than {DEEPEST} deep")
        if kind != "space":
            is_opening = kind == "sign" and piece in _OPEN
            words.append(Word(kind, piece, at, len(opened) - is_opening))
        at = match.end()
    if opened:
        raise refused("its parentheses do not match")
    _check_same(text, words)
    return words


def _check_same(text: str, words: Sequence[Word]) -> None:
    """Check that texts and quoted names are the same for the parser that finds tables."""
    statements = split(text)
    if len(statements) != 1:
        raise refused("one statement at a time" if statements else "it is empty")
    theirs = [(t.start, t.end + 1) for t in statements[0] if text[t.start] in "'\""]
    ours = [(w.start, w.end) for w in words if w.kind in ("text", "quoted")]
    if theirs != ours:
        raise refused("its quotes can be read in two ways")


class Reader:
    """Reads the words of a statement from left to right."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self.words = words
        self.index = 0

    def is_at(self, *words: str) -> bool:
        following = [word.upper for word in self.words[self.index : self.index + len(words)]]
        return following == list(words)

    def take(self, *words: str) -> bool:
        """Step over these words if they are next; return whether it did."""
        if not self.is_at(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise refused(f"{' '.join(words)} is expected {self._where()}")

    def name(self) -> list[str]:
        """Read a name of up to three parts."""
        parts = [self._part()]
        while self.take("."):
            parts.append(self._part())
        if len(parts) > 3:
            raise refused(f"a name has too many parts {self._where()}")
        return parts

    def _part(self) -> str:
        if self.is_done or not self.words[self.index].is_name:
            raise refused(f"a name is expected {self._where()}")
        self.index += 1
        return self.words[self.index - 1].name

    def names(self) -> None:
        """Read names in parentheses."""
        self.expect("(")
        self._part()
        while self.take(","):
            self._part()
        self.expect(")")

    @property
    def is_done(self) -> bool:
        return self.index >= len(self.words)

    def finish(self) -> None:
        if not self.is_done:
            raise refused(f"the statement should end {self._where()}")

    def until(self, *ends: str) -> str:
        """Read up to one of these words at this depth, or the end of the parentheses; return the text before it."""
        start = self.index
        depth = self.words[start].depth if start < len(self.words) else 0
        while not self.is_done:
            word = self.words[self.index]
            if word.depth < depth or (word.depth == depth and word.upper in ends):
                break
            self.index += 1
        return self.slice(start, self.index)

    def slice(self, start: int, end: int) -> str:
        if start >= end:
            raise refused(f"something is missing {self._where()}")
        return self.text[self.words[start].start : self.words[end - 1].end]

    def constant(self) -> None:
        """Read a literal: a number with or without a sign, a text, NULL, TRUE or FALSE."""
        signed = self.take("-") or self.take("+")
        if self.is_done:
            raise refused("a literal is expected at the end")
        word = self.words[self.index]
        plain = word.kind == "text" or word.upper in ("NULL", "TRUE", "FALSE")
        if not (word.kind == "number" or (plain and not signed)):
            raise refused(f"only a literal is allowed {self._where()}")
        self.index += 1

    def _where(self) -> str:
        return "at the end" if self.is_done else f"at {self.words[self.index].text[:40]!r}"
