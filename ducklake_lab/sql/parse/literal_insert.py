"""Recognises INSERT of literals by one regular expression, so that only DuckDB reads the values."""

from __future__ import annotations

import re

_NAME = r'(?:"(?:[^"]|"")++"|[A-Za-z_][A-Za-z0-9_]*+)'
_LITERAL = (
    r"(?:'[^']*+(?:''[^']*+)*+'"
    r"|[-+]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:E[-+]?+[0-9]++)?+"
    r"|NULL|TRUE|FALSE|DEFAULT"
    r"|(?:DATE|TIME|TIMESTAMP|TIMESTAMPTZ)\s++'[^']*+')"
)
_ROW = rf"\(\s*+{_LITERAL}(?:\s*+,\s*+{_LITERAL})*+\s*+\)"
_INSERT = re.compile(
    rf"\s*+(?P<head>INSERT\s++INTO\s++{_NAME}(?:\.{_NAME}){{0,2}}(?:\s*+\((?:[^()'\";]|\"[^\"]*\")*+\))?\s++)"
    rf"(?P<rows>VALUES\s*+{_ROW}(?:\s*+,\s*+{_ROW})*+)\s*+;?\s*+",
    re.IGNORECASE | re.ASCII,
)


def read_literal_insert(text: str) -> tuple[str, str] | None:
    """Splits one INSERT of literals into the text before VALUES, and VALUES with its rows; None for other text."""
    insert = _INSERT.fullmatch(text)
    return (text[: insert.end("head")], insert["rows"]) if insert is not None else None
