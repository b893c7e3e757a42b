"""The grammar of `ducklake_snapshot_changes.changes_made` (spec: ducklake_snapshot_changes).

A comma-separated list of `kind:value`; a value is an id, or one or two names in double quotes joined by a dot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ducklake_lab.errors import CatalogError
from ducklake_lab.model.quoting import quote_identifier

#: In the order in which the reference writes them.
KINDS = (
    "dropped_schema",
    "dropped_table",
    "dropped_view",
    "created_schema",
    "created_table",
    "created_view",
    "created_scalar_macro",
    "created_table_macro",
    "dropped_scalar_macro",
    "dropped_table_macro",
    "inserted_into_table",
    "deleted_from_table",
    "altered_table",
    "altered_view",
    "inlined_insert",
    "inlined_delete",
    "inline_flush",
    "flushed_inlined",
    "compacted_table",
    "merge_adjacent",
    "rewrite_delete",
)
#: Changes that insert rows into a table, that delete rows of it, and either.
INSERTS = frozenset(("inserted_into_table", "inlined_insert"))
DELETES = frozenset(("deleted_from_table", "inlined_delete"))
OF_ROWS = INSERTS | DELETES
#: Changes that write the rows of files to others, and inlined rows and deletions to files.
REWRITES = frozenset(("compacted_table", "merge_adjacent", "rewrite_delete"))
FLUSHES = frozenset(("inline_flush", "flushed_inlined"))
#: Changes after which a table has the same rows and columns.
MAINTENANCE = REWRITES | FLUSHES

_RANKS = {kind: rank for rank, kind in enumerate(KINDS)} | {"created_view": KINDS.index("created_table")}


@dataclass(frozen=True, slots=True)
class Change:
    """One entry: `value` is an id, or a tuple of names."""

    kind: str
    value: int | tuple[str, ...]

    def __str__(self) -> str:
        if isinstance(self.value, int):
            return f"{self.kind}:{self.value}"
        return f"{self.kind}:" + ".".join(map(quote_identifier, self.value))


def format_changes(changes: Iterable[Change]) -> str:
    """Write the text in the reference's order of kinds, new tables and views as one; then by id, names as given."""
    return ",".join(map(str, sorted(changes, key=_rank)))


def _rank(change: Change) -> tuple[int, int]:
    return _RANKS[change.kind], change.value if isinstance(change.value, int) else 0


def parse_changes(text: str | None) -> list[Change]:
    """The entries of a `changes_made` text.

    Raises:
        CatalogError: the text does not follow the grammar.
    """
    changes = []
    for part in _split(text or "", ","):
        kind, separator, value = part.partition(":")
        if not separator:
            raise CatalogError(f'"{part}" in changes_made is not of the form kind:value.')
        kind = kind.strip().casefold()
        if value.isdigit():
            changes.append(Change(kind, int(value)))
        else:
            changes.append(Change(kind, tuple(_unquote(name) for name in _split(value, "."))))
    return changes


def rewritten_tables(changes: Iterable[Change]) -> frozenset[int]:
    """The tables whose files a snapshot wrote anew without changing a row."""
    return frozenset(
        change.value
        for change in changes
        if change.kind in ("rewrite_delete", "compacted_table") and isinstance(change.value, int)
    )


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if len(name) >= 2 and name[0] == name[-1] == '"' else name


def _split(text: str, separator: str) -> Iterator[str]:
    """Splits outside double quotes; a doubled quote inside flips twice and so does no harm."""
    if '"' not in text:
        yield from text.split(separator) if text else ()
        return
    start, quoted = 0, False
    for index, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == separator and not quoted:
            yield text[start:index]
            start = index + 1
    if text:
        yield text[start:]
