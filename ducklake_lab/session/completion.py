"""Completes names in SQL from the catalog: in milliseconds, without Spark, in text that does not parse yet."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_history
from ducklake_lab.engine.in_process import engine as local_engine
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.entries import Column, SnapshotInfo, Table
from ducklake_lab.model.quoting import path_title, quote_identifier
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.functions import FUNCTIONS
from ducklake_lab.session.names.attached_lakes import Lakes

Kind = Literal["lake", "schema", "table", "view", "column", "function", "snapshot", "keyword", "variable"]

#: How long what was read of a catalog serves, in seconds: while somebody types, not longer.
_FRESH = 2.0
_SNAPSHOTS = 100
#: More candidates than this help nobody.
LIMIT = 300

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|$))|(?P<text>'(?:[^']|'')*'?|\$\$.*?(?:\$\$|$))"""
    r"""|(?P<quoted>"(?:[^"]|"")*"?)|(?P<word>[^\W\d]\w*)|(?P<other>=>|\d[\w.]*|.)""",
    re.DOTALL,
)
_TABLE_WORDS = frozenset("FROM JOIN INTO UPDATE TABLE DESCRIBE DESC SUMMARIZE USING TRUNCATE".split())
_END_OF_FROM = frozenset(
    "WHERE GROUP ORDER HAVING LIMIT QUALIFY WINDOW UNION EXCEPT INTERSECT SELECT SET ON USING VALUES".split()
)
_NO_ALIAS = (
    _END_OF_FROM
    | _TABLE_WORDS
    | frozenset("AS AT INNER LEFT RIGHT FULL CROSS NATURAL ASOF OUTER SEMI ANTI WHEN THEN".split())
)
_KEYWORDS = (
    "SELECT FROM WHERE GROUP BY|ORDER BY|HAVING|QUALIFY|LIMIT|JOIN|LEFT JOIN|ON|USING|AS|AT|AND|OR|NOT|IN|IS NULL|"
    "IS NOT NULL|BETWEEN|LIKE|ILIKE|CASE|WHEN|THEN|ELSE|END|DISTINCT|EXCLUDE|REPLACE|UNION ALL|EXCEPT|INTERSECT|"
    "WITH|VALUES|INSERT INTO|UPDATE|SET|DELETE FROM|MERGE INTO|CREATE TABLE|CREATE SCHEMA|CREATE VIEW|ALTER TABLE|"
    "DROP TABLE|TRUNCATE|CALL|BEGIN|COMMIT|ROLLBACK|DESCRIBE|SHOW TABLES|USE|ATTACH|DETACH|CHECKPOINT|EXPLAIN"
)
_WORDS = tuple(
    dict.fromkeys(
        word for part in _KEYWORDS.split("|") for word in ([part] if "FROM WHERE" not in part else part.split())
    )
)


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that replaces `start` up to the cursor."""

    text: str
    start: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class _Token:
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


class SqlCompleter:
    """Completes for one session; keeps what it read of the catalogs for a moment."""

    def __init__(self, lakes: Lakes) -> None:
        self._lakes = lakes
        self._states: dict[str, tuple[float, CatalogState]] = {}
        self._histories: dict[str, tuple[float, list[SnapshotInfo]]] = {}

    def complete(self, text: str, cursor: int, variables: Iterable[str] = ()) -> list[Completion]:
        """What may stand at the cursor, best first, at most LIMIT.

        Args:
            text: one or more statements, which may be unfinished.
            cursor: 0-based place in it.
            variables: what a parameter, `:name` or `$name`, may be called.
        """
        tokens = _statement(text, cursor)
        before = [token for token in tokens if token.start + len(token.text) <= cursor and token.kind != "space"]
        inside = next((token for token in tokens if token.start < cursor < token.start + len(token.text)), None)
        if any(_is_open(token, cursor) for token in tokens):
            return []  # in a text or a comment
        fragment, start = "", cursor
        if inside is not None and inside.is_name:
            fragment, start = text[inside.start : cursor], inside.start
        elif before and before[-1].is_name and before[-1].start + len(before[-1].text) == cursor:
            last = before.pop()
            fragment, start = last.text, last.start
        if _is_parameter(before, start):
            return _matching(((name, "variable") for name in variables), fragment, start)
        path: list[str] = []
        while len(before) >= 2 and before[-1].text == "." and before[-2].is_name:
            before.pop()
            path.insert(0, before.pop().name)
        visible = [token for token in tokens if token.kind != "space" and token.start != start]
        found = self._candidates(path, before, visible)
        return _matching(found, fragment, start)

    # What may stand there

    def _candidates(
        self, path: Sequence[str], before: Sequence[_Token], tokens: Sequence[_Token]
    ) -> Iterator[tuple[str, Kind]]:
        words = [token.word for token in before[-6:]]
        if words[-1:] == ["("] and words[-2:-1] == ["AT"]:
            yield from (("VERSION => ", "keyword"), ("TIMESTAMP => ", "keyword"))
            return
        if words[-1:] == ["=>"] and words[-2:-1] in (["VERSION"], ["TIMESTAMP"]):
            yield from self._snapshots(timestamps=words[-2] == "TIMESTAMP")
            return
        if words[-1:] in (["CALL"], ["USE"]):
            if words[-1] == "CALL" and path:
                yield from ((name, "function") for name in FUNCTIONS if FUNCTIONS[name].changes_lake)
            else:
                yield from self._places(path, calling=words[-1] == "CALL")
            return
        if _wants_table(before):
            yield from self._tables(path, tokens)
            return
        scope = list(self._scope(tokens))
        if path:
            yield from self._members(path, scope)
            return
        seen = set()
        for _, table in scope:
            for column in table.columns:
                if column.name not in seen:
                    seen.add(column.name)
                    yield column.name, "column"
        yield from ((alias, "table") for alias, _ in scope)
        yield from ((word, "keyword") for word in _WORDS)
        yield from ((name, "function") for name in _functions())

    def _members(self, path: Sequence[str], scope: Sequence[tuple[str, Table]]) -> Iterator[tuple[str, Kind]]:
        """Columns of an alias, fields of a column."""
        folded = [part.casefold() for part in path]
        for alias, table in scope:
            if alias.casefold() == folded[0]:
                yield from ((name, "column") for name in _fields(table.columns, path[1:]))
                return
        for _, table in scope:
            fields = list(_fields(table.columns, path))
            if fields:
                yield from ((name, "column") for name in fields)
                return
        yield from self._tables(path, ())

    def _tables(self, path: Sequence[str], tokens: Sequence[_Token]) -> Iterator[tuple[str, Kind]]:
        if not self._any():
            return
        if not path:
            yield from ((name, "table") for name in _common_tables(tokens))
            lake = self._lakes.get()
            state = self._state(lake)
            if state is not None:
                current = state.find_schema(self._lakes.current_schema)
                if current is not None:
                    yield from _entries(state, current.schema_id)
                yield from ((path_title(schema.name), "schema") for schema in state.schemas.values())
            yield from ((other.alias, "lake") for other in self._lakes)
            return
        lake_named = self._lakes.find(path[0])
        if len(path) == 1:
            state = self._state(self._lakes.get())
            schema = state.find_schema(path[0]) if state is not None else None
            if state is not None and schema is not None:
                yield from _entries(state, schema.schema_id)
        if lake_named is None:
            return
        state = self._state(lake_named)
        if state is None:
            return
        if len(path) == 1:
            main = state.find_schema("main")
            if main is not None:
                yield from _entries(state, main.schema_id)
            yield from ((path_title(schema.name), "schema") for schema in state.schemas.values())
            yield from ((f"{name}(", "function") for name, function in FUNCTIONS.items() if not function.changes_lake)
        elif (schema := state.find_schema(path[1])) is not None:
            yield from _entries(state, schema.schema_id)

    def _places(self, path: Sequence[str], *, calling: bool) -> Iterator[tuple[str, Kind]]:
        if not path:
            yield from ((lake.alias, "lake") for lake in self._lakes)
            if calling or not self._any():
                return
        lake = self._lakes.find(path[0]) if path else self._lakes.get()
        state = self._state(lake) if lake is not None else None
        if state is not None:
            yield from ((path_title(schema.name), "schema") for schema in state.schemas.values())

    def _snapshots(self, *, timestamps: bool) -> Iterator[tuple[str, Kind]]:
        if not self._any():
            return
        lake = self._lakes.get()
        known = self._histories.get(lake.alias)
        if known is None or time.monotonic() - known[0] > _FRESH:
            try:
                with lake.connect() as connection:
                    known = (time.monotonic(), read_history(connection, _SNAPSHOTS))
            except DuckLakeError:
                return  # held by another client just now
            self._histories[lake.alias] = known
        for info in reversed(known[1]):
            moment = lake.local(info.snapshot_time).isoformat(" ")
            yield (f"TIMESTAMPTZ '{moment}'" if timestamps else str(info.snapshot_id)), "snapshot"

    def _scope(self, tokens: Sequence[_Token]) -> Iterator[tuple[str, Table]]:
        """(alias, table) of the lake tables that the statement names."""
        for parts, alias in table_references(tokens):
            table = self._find(parts)
            if table is not None:
                yield alias or parts[-1], table

    def _find(self, parts: Sequence[str]) -> Table | None:
        if not self._any():
            return None
        lake, schema = self._lakes.get(), self._lakes.current_schema
        if len(parts) == 3:
            named = self._lakes.find(parts[0])
            if named is None:
                return None
            lake, schema = named, parts[1]
        elif len(parts) == 2:
            state = self._state(lake)
            if (state is None or state.find_schema(parts[0]) is None) and (named := self._lakes.find(parts[0])):
                lake, schema = named, "main"
            else:
                schema = parts[0]
        state = self._state(lake)
        return state.find_table(schema, parts[-1]) if state is not None else None

    def _any(self) -> bool:
        return any(True for _ in self._lakes)

    def _state(self, lake: Lake) -> CatalogState | None:
        """The entries of a lake; those known last where the catalog cannot be opened just now."""
        transaction = self._lakes.transaction
        if transaction is not None and transaction.lake is lake:
            return transaction.state
        known = self._states.get(lake.alias)
        if known is not None and time.monotonic() - known[0] < _FRESH:
            return known[1]
        try:
            state = self._lakes.state(lake)
        except DuckLakeError:
            return known[1] if known is not None else None
        self._states[lake.alias] = (time.monotonic(), state)
        return state


def _entries(state: CatalogState, schema_id: int) -> Iterator[tuple[str, Kind]]:
    yield from sorted((table.name, "table") for table in state.tables.values() if table.schema_id == schema_id)
    yield from sorted((view.name, "view") for view in state.views.values() if view.schema_id == schema_id)


def _fields(columns: Iterable[Column], path: Sequence[str]) -> Iterator[str]:
    """Names of the columns at a path of struct fields."""
    if not path:
        yield from (column.name for column in columns)
        return
    folded = path[0].casefold()
    for column in columns:
        if column.name.casefold() == folded and column.type == "struct":
            yield from _fields(column.children, path[1:])


def _statement(text: str, cursor: int) -> list[_Token]:
    """The tokens of the statement around the cursor."""
    found: list[_Token] = []
    for match in _TOKEN.finditer(text):
        token = _Token(match.lastgroup or "other", match[0], match.start())
        if token.text == ";":
            if token.start >= cursor:
                break
            found = []
            continue
        found.append(token)
    return found


def _is_open(token: _Token, cursor: int) -> bool:
    """Whether the cursor is in a text or a comment."""
    end = token.start + len(token.text)
    if not token.start < cursor <= end:
        return False
    if token.kind == "text":
        closing = "$$" if token.text.startswith("$$") else "'"
        return cursor < end or len(token.text) < 2 * len(closing) or not token.text.endswith(closing)
    if token.kind != "space" or token.text[0].isspace():
        return False
    return cursor < end or not token.text.endswith("*/")


def _is_parameter(before: Sequence[_Token], start: int) -> bool:
    """Whether a name that starts there is that of a parameter, as `:` or `$` directly before it says."""
    if not before or before[-1].text not in (":", "$") or before[-1].start + 1 != start:
        return False
    # in `x::INTEGER`, `{'a':b}` and `l[1:n]` a colon is just a colon
    last = before[-2] if len(before) > 1 else None
    return before[-1].text == "$" or last is None or not (last.kind == "text" or last.text[0] in ":0123456789")


def _wants_table(before: Sequence[_Token]) -> bool:
    """Whether a table's name comes next: after FROM and the like, or after a comma in FROM."""
    if not before:
        return False
    last = before[-1]
    if last.kind == "word" and last.word in _TABLE_WORDS:
        # EXISTS, IF NOT EXISTS and the column list of USING ( come elsewhere
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


def table_references(tokens: Sequence[_Token]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """(name parts, alias) of every table that a statement names after FROM, JOIN, UPDATE, INTO and commas."""
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
        while at < len(tokens) and tokens[at].is_name and tokens[at].word not in _NO_ALIAS:
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
        if at < len(tokens) and tokens[at].is_name and tokens[at].word not in _NO_ALIAS:
            alias = tokens[at].name
            at += 1
        yield tuple(parts), alias


def _skip_at(tokens: Sequence[_Token], at: int) -> int:
    """Past `AT ( … )`, if it is there."""
    if at + 1 >= len(tokens) or tokens[at].word != "AT" or tokens[at + 1].text != "(":
        return at
    depth = 0
    for index in range(at + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return index + 1
    return len(tokens)


def _common_tables(tokens: Sequence[_Token]) -> Iterator[str]:
    """Names that WITH defines."""
    for name, word, bracket in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if name.is_name and word.word == "AS" and bracket.text == "(":
            yield name.name


def _matching(found: Iterable[tuple[str, Kind]], fragment: str, start: int) -> list[Completion]:
    wanted = fragment.strip('"').casefold()
    quoted = fragment.startswith('"')
    result: dict[str, Completion] = {}
    for name, kind in found:
        if not name.casefold().startswith(wanted):
            continue
        text = name
        if kind in ("column", "table", "view", "schema", "lake") and (quoted or not _plain(name)):
            text = quote_identifier(name)
        elif kind == "keyword" and fragment.islower():
            text = name.lower()
        result.setdefault(text, Completion(text, start, kind))
        if len(result) >= LIMIT:
            break
    return list(result.values())


def _plain(name: str) -> bool:
    return bool(re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.IGNORECASE)) and name.upper() not in _NO_ALIAS


@cache
def _functions() -> tuple[str, ...]:
    """Functions of DuckDB's SQL, each with its bracket; operators and internal ones left out."""
    rows = local_engine.evaluate(
        "SELECT DISTINCT function_name AS name FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate') "
        "AND regexp_full_match(function_name, '[a-z][a-z0-9_]*') AND NOT starts_with(function_name, 'pg_') ORDER BY 1",
        {},
    )
    return tuple(f"{name}(" for name in rows.column("name").to_pylist())
