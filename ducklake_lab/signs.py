"""Signs for characters that would break, hide or reorder the line they stand in, as a terminal or a page shows it."""

from __future__ import annotations

import re

#: Control characters, and format characters that would reorder or hide the text around them.
_CONTROLS = re.compile("[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_READABLE = {"\n": "⏎", "\r": "␍", "\t": "⇥"}


def visible(text: str) -> str:
    """The text with a sign for each character that would break, hide or reorder a line."""
    return _CONTROLS.sub(lambda match: _READABLE.get(match[0], f"⟨U+{ord(match[0]):04X}⟩"), text)


def readable(text: str) -> str:
    """Make a text visible as `visible` does, for places with lines and tabs of their own."""
    return "".join(part if part in ("\n", "\t") else visible(part) for part in re.split("([\n\t])", text))
