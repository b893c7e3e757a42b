"""The text of a query while its tree is bound: DuckDB reads other names in place of names of lakes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from sqlglot import exp

from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.sql.notes import Output, last_of, notes, start_of
from ducklake_lab.sql.operations import Written
from ducklake_lab.sql.parse.references import read_reference, word
from ducklake_lab.sql.plan import Source


class Frame:
    """One text: a query, or the text of a view or macro in it.

    Attributes:
        certain: each name of a lake has its replacement; if not, the text cannot run.
        sources: sources by the offset of their name. A tree may hold copies of a name, which share its source.
    """

    def __init__(self, written: Written | None) -> None:
        self.certain = written is not None
        self.sources: dict[object, Source] = {}
        self._calls: dict[object, Sequence[Source]] = {}
        self._written = written
        self._parts: list[tuple[int, int, str]] = []

    @cached_property
    def _indexes(self) -> dict[int, int]:
        """Indexes of tokens by their offset."""
        assert self._written is not None
        return {token.start: index for index, token in enumerate(self._written.tokens)}

    def text(self) -> str | None:
        """Returns the text with all replacements; None if it cannot run, or needs hidden columns of a source."""
        if self._written is None or not self.certain or any(source.virtual for source in self.sources.values()):
            return None
        return self._written.whole(self._parts)

    def copied(self, start: object) -> tuple[Source, tuple[Output, ...]] | None:
        """Returns the source of a name of a table that a copy of its node has been bound for; None for a new name."""
        source = self.sources.get(start) if self._written is not None else None
        if source is None or source.rows is None:
            return None
        source.share()
        return source, tuple(Output(column, kind) for column, kind in source.rows.columns)

    def called(self, start: object, sources: Sequence[Source]) -> None:
        """Notes the sources in the body of a called macro."""
        for source in self._calls.setdefault(start, sources):
            if sources is not self._calls[start]:
                source.share()

    def replace(self, start: object, last: object, new: str) -> None:
        """Replaces the text between two offsets, the last one included."""
        if isinstance(start, int) and isinstance(last, int):
            self._parts.append((start, last + 1, new))
        else:
            self.certain = False

    def table(self, node: exp.Table, sql: str, name: str, *, keeps_arguments: bool = False) -> None:
        """Replaces a table, its AT clause and arguments.

        Args:
            name: its alias, if none is written.
            keeps_arguments: only the name of a table macro is replaced.
        """
        if self._written is None:
            return
        text, tokens = self._written.text, self._written.tokens
        offset = start_of(node.parts[0])
        index = self._indexes.get(offset) if offset is not None else None
        reference = read_reference(text, tokens, index) if index is not None else None
        if index is None or reference is None:
            self.certain = False
            return
        start, end, alias = tokens[index].start, tokens[reference.last].end, node.args.get("alias")
        following = tokens[reference.last + 1].start if reference.last + 1 < len(tokens) else None
        added = "" if alias is None or following != start_of(alias.this) else " AS"
        if alias is None:
            added = f" AS {quote_identifier(name)}"
            if index and word(tokens[index - 1]) == "TABLE":
                start, sql = tokens[index - 1].start, f"FROM {sql}"
        if reference.moment is not None:
            first, last = reference.moment
            self.replace(tokens[first].start, tokens[last].end, "")
        if keeps_arguments:
            self.replace(start, last_of(node.parts[-1]), sql)
            self.replace(end + 1, end, added)
        else:
            self.replace(start, end, sql + added)

    def qualify(self, parts: Sequence[exp.Identifier], alias: str | None) -> None:
        """Replaces the qualifiers of a column by an alias; None if no alias is certain."""
        if self._written is None:
            return
        if alias is None:
            self.certain = False
            return
        self.replace(start_of(parts[0]), last_of(parts[-1]), quote_identifier(alias))

    def keep_name(self, item: exp.Expr, name: str) -> None:
        """Gives an item of a SELECT list the name that it has as written, if a part of it is replaced."""
        start, end = notes(item).span or (0, 0)
        if any(start <= first < end for first, _, _ in self._parts):
            self._parts.append((end, end, f" AS {quote_identifier(name)}"))

    def written(self, item: exp.Expr) -> str | None:
        """Returns the text of an item of a SELECT list; None if it is unknown."""
        span = notes(item).span
        return self._written.part(*span) if span is not None and self._written is not None else None
