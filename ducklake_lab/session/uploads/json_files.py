"""JSON files with numbers that DuckDB's reader would round: passes such numbers to it as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ducklake_lab.model.quoting import quote_text
from ducklake_lab.session.uploads.guessing import Ask

#: Texts of numbers that may lose digits; a fast test with false positives.
_MANY = r"[0-9][0-9.]{15}|[eE][+-]?[0-9]{2}"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?', re.DOTALL)
#: Types that may lose digits of the file, outside of quoted names.
_LOSSY = re.compile(r'("(?:[^"]|"")*")|\b(?:DOUBLE|HUGEINT|UHUGEINT|UBIGINT)\b')


def kept(ask: Ask, paths: Sequence[str], folder: Path, digits_kept: Callable[[Sequence[str]], list[bool]]) -> list[str]:
    """Returns the files, or copies in which numbers that no DOUBLE holds are text.

    Args:
        folder: a folder for copies.
        digits_kept: returns whether DOUBLE holds the numbers in some texts.
    """
    readable = []
    for number, path in enumerate(paths):
        objects = f"(SELECT json::VARCHAR AS j FROM read_json_objects({path}))"
        ((many,),) = ask(f"SELECT coalesce(bool_or(regexp_matches(j, {quote_text(_MANY)})), false) FROM {objects}")
        if not many:
            readable.append(path)
            continue
        texts = [str(text) for (text,) in ask(f"SELECT j FROM {objects}")]
        tokens = sorted({token for text in texts for token in _TOKEN.findall(text) if _may_lose(token)})
        lossy = {token for token, is_kept in zip(tokens, digits_kept(tokens), strict=True) if not is_kept}
        if not lossy:
            readable.append(path)
            continue
        copy = folder / f"{number}.json"
        copy.write_text("".join(_quoted(text, lossy) for text in texts), encoding="utf-8")
        readable.append(quote_text(str(copy)))
    return readable


def _quoted(text: str, lossy: set[str]) -> str:
    """Returns a record as one line, with some of its numbers as text."""
    parts = _TOKEN.sub(lambda match: f'"{match[0]}"' if match[0] in lossy else match[0], text)
    return re.sub(r"[\r\n]+", " ", parts) + "\n"


def _may_lose(token: str) -> bool:
    return not token.startswith('"') and (len(token) > 15 or "e" in token.lower())


def as_texts(kind: str) -> str:
    """Returns a type with text in place of numbers."""
    return _LOSSY.sub(lambda match: match[1] or "VARCHAR", kind)
