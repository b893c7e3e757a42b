"""Formats nested values as indented text like JSON, to read and copy; numbers keep all digits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ducklake_lab.model.types import DataType

#: Most characters of a value in one line.
_WIDTH = 72
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


class Raw(str):
    """A number as written, shown without quotes."""


class Fields(list[tuple[str, object]]):
    """The fields of a struct or an object, or the entries of a map, in order."""


def of_parts(value: object, kind: DataType) -> object:
    """Converts a value from `duckdb.handing.parts` to the form for `outline`."""
    if value is None:
        return None
    if kind.name == "struct":
        assert isinstance(value, dict)
        return Fields((name, of_parts(value[name], child)) for name, child in kind.children)
    if kind.name == "list":
        assert isinstance(value, list)
        return [of_parts(one, kind.children[0][1]) for one in value]
    if kind.name == "map":
        assert isinstance(value, list)
        (_, key), (_, held) = kind.children
        return Fields((_key(of_parts(one, key)), of_parts(entry, held)) for one, entry in value)
    text = str(value)
    if kind.name == "boolean" or (kind.is_numeric and _NUMBER.fullmatch(text)):
        return Raw(text)
    return text


def of_json(text: str) -> str:
    """Formats JSON by `outline`; returns other text, or too deeply nested JSON, unchanged."""
    try:
        return outline(json.loads(text, parse_int=Raw, parse_float=Raw, parse_constant=Raw, object_pairs_hook=Fields))
    except (ValueError, RecursionError):
        return text


def outline(node: object) -> str:
    """Returns indented text; a short list or struct is in one line."""
    return "".join(_pieces(node, ""))


def _pieces(node: object, indent: str) -> Iterator[str]:
    if not isinstance(node, list) or _is_short(node, _WIDTH - len(indent)):
        yield from _line(node)
        return
    inner = indent + "  "
    first, last = "{}" if isinstance(node, Fields) else "[]"
    yield first
    for place, entry in enumerate(node):
        yield (",\n" if place else "\n") + inner
        if isinstance(node, Fields):
            name, entry = entry
            yield f"{_quoted(name)}: "
        yield from _pieces(entry, inner)
    yield f"\n{indent}{last}"


def _is_short(node: object, room: int) -> bool:
    """Returns whether a node fits into the room; stops as soon as it does not."""
    return all((room := room - len(piece)) >= 0 for piece in _line(node))


def _line(node: object) -> Iterator[str]:
    if node is None or isinstance(node, bool):
        yield json.dumps(node)
    elif isinstance(node, Raw):
        yield node
    elif isinstance(node, list):
        first, last = "{}" if isinstance(node, Fields) else "[]"
        yield first
        for place, entry in enumerate(node):
            if place:
                yield ", "
            if isinstance(node, Fields):
                name, entry = entry
                yield f"{_quoted(name)}: "
            yield from _line(entry)
        yield last
    else:
        yield _quoted(str(node))


def _key(node: object) -> str:
    return node if isinstance(node, str) else "".join(_line(node))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
