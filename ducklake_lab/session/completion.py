"""Completes names in SQL from the catalog: in milliseconds, without Spark, in incomplete statements too."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Literal

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshot_tags import read_tags
from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.engine.in_process import engine as local_engine
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.entries import Column, Schema, SnapshotInfo, Table
from ducklake_lab.model.quoting import quote_identifier, quote_text, schema_path
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.functions import FUNCTIONS
from ducklake_lab.session.functions.options import OF_TABLES
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.unfinished import (
    NO_ALIAS,
    Token,
    common_tables,
    is_open,
    is_parameter,
    names_option,
    statement,
    table_references,
    wants_table,
)

Kind = Literal["lake", "schema", "table", "view", "column", "function", "snapshot", "keyword", "variable"]

#: Seconds for which the entries of a catalog are kept: about as long as a user types.
_FRESH = 2.0
_SNAPSHOTS = 100
#: The most candidates; a longer list helps nobody.
LIMIT = 300

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
    """A candidate that replaces the text from `start` to the cursor."""

    text: str
    start: int
    kind: Kind


class SqlCompleter:
    """Completes names for one session. It keeps the entries of catalogs for a moment."""

    def __init__(self, lakes: Lakes) -> None:
        self._lakes = lakes
        self._states: dict[str, tuple[float, CatalogState]] = {}
        self._histories: dict[str, tuple[float, list[SnapshotInfo], Mapping[str, int]]] = {}

    def complete(
        self, text: str, cursor: int, variables: Iterable[str] = (), tables: Iterable[str] = ()
    ) -> list[Completion]:
        """Returns the candidates at the cursor, best first, at most LIMIT.

        Args:
            text: one or more statements, possibly unfinished.
            cursor: 0-based position in the text.
            variables: names of possible parameters, `:name` or `$name`.
            tables: names of variables that hold tables.
        """
        tokens = statement(text, cursor)
        before = [token for token in tokens if token.start + len(token.text) <= cursor and token.kind != "space"]
        inside = next((token for token in tokens if token.start < cursor < token.start + len(token.text)), None)
        if any(is_open(token, cursor) for token in tokens):
            return []  # in a string or a comment
        fragment, start = "", cursor
        if inside is not None and inside.is_name:
            fragment, start = text[inside.start : cursor], inside.start
        elif before and before[-1].is_name and before[-1].start + len(before[-1].text) == cursor:
            last = before.pop()
            fragment, start = last.text, last.start
        if is_parameter(before, start):
            return _matching(((name, "variable") for name in variables), fragment, start)
        path: list[str] = []
        while len(before) >= 2 and before[-1].text == "." and before[-2].is_name:
            before.pop()
            path.insert(0, before.pop().name)
        visible = [token for token in tokens if token.kind != "space" and token.start != start]
        candidates = self._candidates(path, before, visible)
        if not path and wants_table(before):
            candidates = chain(candidates, ((name, "variable") for name in tables))
        return _matching(candidates, fragment, start)

    # Candidates by kind of place

    def _candidates(
        self, path: Sequence[str], before: Sequence[Token], tokens: Sequence[Token]
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
                yield from ((name, "function") for name in FUNCTIONS if FUNCTIONS[name].effects != "none")
            else:
                yield from self._places(path, calling=words[-1] == "CALL")
            return
        if wants_table(before):
            yield from self._tables(path, tokens)
            return
        if names_option(before):
            yield from ((name, "keyword") for name in OF_TABLES)
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
        """Yields the columns of an alias, or the fields of a column."""
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

    def _tables(self, path: Sequence[str], tokens: Sequence[Token]) -> Iterator[tuple[str, Kind]]:
        if not self._any():
            return
        if not path:
            yield from ((name, "table") for name in common_tables(tokens))
            lake = self._lakes.get()
            state = self._state(lake)
            if state is not None:
                current = state.find_schema(self._lakes.current_schema)
                if current is not None:
                    yield from _entries(state, current)
                    yield from _schemas(state, current)
                yield from _schemas(state, None)
            yield from ((other.alias, "lake") for other in self._lakes)
            return
        for state, schema in self._named(path):
            if schema is not None:
                yield from _entries(state, schema)
                yield from _schemas(state, schema)
        if len(path) == 1 and (named := self._lakes.find(path[0])) is not None and (state := self._state(named)):
            yield from _schemas(state, None)
            yield from ((f"{name}(", "function") for name, function in FUNCTIONS.items() if function.effects == "none")

    def _named(self, path: Sequence[str]) -> Iterator[tuple[CatalogState, Schema | None]]:
        """Yields the schemas and lakes that a qualifier may name."""
        state = self._state(self._lakes.get())
        schema = state.find_schema(schema_path(path) if path else self._lakes.current_schema) if state else None
        if state is not None and schema is not None:
            yield state, schema
        named = self._lakes.find(path[0]) if path else None
        if named is not None and (state := self._state(named)) is not None:
            yield state, state.find_schema(schema_path(path[1:]) if len(path) > 1 else "main")

    def _places(self, path: Sequence[str], *, calling: bool) -> Iterator[tuple[str, Kind]]:
        """Yields lakes and schemas after USE and CALL, which take no nested schemas."""
        if not path:
            yield from ((lake.alias, "lake") for lake in self._lakes)
            if calling or not self._any():
                return
        lake = self._lakes.find(path[0]) if path else self._lakes.get()
        state = self._state(lake) if lake is not None and len(path) < 2 else None
        if state is not None:
            yield from _schemas(state, None)

    def _snapshots(self, *, timestamps: bool) -> Iterator[tuple[str, Kind]]:
        if not self._any():
            return
        lake = self._lakes.get()
        history = self._histories.get(lake.alias)
        if history is None or time.monotonic() - history[0] > _FRESH:
            try:
                with lake.connect() as connection:
                    history = (time.monotonic(), read_history(connection, _SNAPSHOTS), read_tags(connection))
            except DuckLakeError:
                return  # another client holds the catalog
            self._histories[lake.alias] = history
        if not timestamps:
            yield from ((quote_text(tag), "snapshot") for tag in history[2])
        for info in reversed(history[1]):
            moment = lake.local(info.snapshot_time).isoformat(" ")
            yield (f"TIMESTAMPTZ '{moment}'" if timestamps else str(info.snapshot_id)), "snapshot"

    def _scope(self, tokens: Sequence[Token]) -> Iterator[tuple[str, Table]]:
        """Yields (alias, table) for the lake tables in a statement."""
        for parts, alias in table_references(tokens):
            table = self._find(parts)
            if table is not None:
                yield alias or parts[-1], table

    def _find(self, parts: Sequence[str]) -> Table | None:
        if not self._any():
            return None
        for state, schema in self._named(parts[:-1]):
            if schema is not None and (table := state.find_table(schema.name, parts[-1])) is not None:
                return table
        return None

    def _any(self) -> bool:
        return any(True for _ in self._lakes)

    def _state(self, lake: Lake) -> CatalogState | None:
        """Returns the entries of a lake; the last read ones if the catalog cannot be opened."""
        transaction = self._lakes.transaction
        if transaction is not None and transaction.lake is lake:
            return transaction.state
        kept = self._states.get(lake.alias)
        if kept is not None and time.monotonic() - kept[0] < _FRESH:
            return kept[1]
        try:
            state = self._lakes.state(lake)
        except DuckLakeError:
            return kept[1] if kept is not None else None
        self._states[lake.alias] = (time.monotonic(), state)
        return state


def _entries(state: CatalogState, schema: Schema) -> Iterator[tuple[str, Kind]]:
    where = schema.schema_id
    yield from sorted((name, "table") for schema_id, name in state.tables.names.values() if schema_id == where)
    yield from sorted((view.name, "view") for view in state.views.values() if view.schema_id == where)


def _schemas(state: CatalogState, parent: Schema | None) -> Iterator[tuple[str, Kind]]:
    """Yields the direct child schemas of a schema, or the top schemas of the lake."""
    where = parent.schema_id if parent is not None else None
    yield from ((schema.parts[-1], "schema") for schema in state.schemas.values() if schema.parent_id == where)


def _fields(columns: Iterable[Column], path: Sequence[str]) -> Iterator[str]:
    """Yields the names of the columns at a path of struct fields."""
    if not path:
        yield from (column.name for column in columns)
        return
    folded = path[0].casefold()
    for column in columns:
        if column.name.casefold() == folded and column.type == "struct":
            yield from _fields(column.children, path[1:])


def _matching(candidates: Iterable[tuple[str, Kind]], fragment: str, start: int) -> list[Completion]:
    wanted = fragment.strip('"').casefold()
    quoted = fragment.startswith('"')
    result: dict[str, Completion] = {}
    for name, kind in candidates:
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
    return bool(re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.IGNORECASE)) and name.upper() not in NO_ALIAS


@cache
def _functions() -> tuple[str, ...]:
    """Returns DuckDB's functions, each with its opening bracket, without operators and internal functions."""
    rows = local_engine.evaluate(
        "SELECT DISTINCT function_name AS name FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate') "
        "AND regexp_full_match(function_name, '[a-z][a-z0-9_]*') AND NOT starts_with(function_name, 'pg_') ORDER BY 1",
        {},
    )
    return tuple(f"{name}(" for name in rows.column("name").to_pylist())
