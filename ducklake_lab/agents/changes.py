"""Checks statements that change a branch: each is taken apart, and its parts are checked as queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ducklake_lab.agents.trees import Known, check_expression, check_query, check_references, is_plain_name
from ducklake_lab.agents.words import Reader, refused
from ducklake_lab.model.entries import Column, Schema, Table, View


@dataclass(frozen=True, slots=True)
class _Change:
    reader: Reader
    known: Known

    def existing(self) -> list[str]:
        """Read the name of an entry of the lake, and check what a write to it evaluates."""
        parts = self.reader.name()
        entries = self.known.entries(parts)
        if not entries:
            raise refused(f"{'.'.join(parts)[:80]!r} is no table or view of the lake")
        for entry in entries:
            if isinstance(entry, Table):
                self._check_stored(entry)
        return parts

    def target(self) -> str:
        """Read the table whose rows change and its alias; return their text."""
        start = self.reader.index
        parts = self.existing()
        if any(isinstance(entry, View) for entry in self.known.entries(parts)):
            raise refused("it changes rows of a view")
        if self.reader.take("AS") or (
            not self.reader.is_done and self.reader.words[self.reader.index].upper not in _AFTER_TARGETS
        ):
            self.reader.name()
        return self.reader.slice(start, self.reader.index)

    def _check_stored(self, table: Table) -> None:
        """Check expressions that the catalog keeps for a table: a write evaluates them."""

        def check(column: Column) -> None:
            if column.default_value is not None and column.default_value_type != "literal":
                check_expression(column.default_value, self.known.inside(self.known.schema))
            for child in column.children:
                check(child)

        self._check_folder(table)
        self._check_folder(self.known.state.schema_of(table))
        for column in table.columns:
            check(column)
        for key in table.sort.keys if table.sort is not None else ():
            check_expression(key.expression, self.known.inside(self.known.schema))

    def _check_folder(self, entry: Table | Schema) -> None:
        """Check that files of an entry are written below the lake's own folder."""
        is_outside = self.known.is_branch and not entry.path_is_relative
        if is_outside or ".." in re.split(r"[/\\]", entry.path):
            raise refused(f"the catalog puts files of {entry.name[:80]!r} outside of the lake's folder")

    def new(self, kind: str) -> list[str]:
        """Read the name of an entry that is made."""
        parts = self.reader.name()
        alias = self.known.alias.casefold()
        schemas = parts[:-1]
        if len(schemas) == 2 or (schemas and schemas[0].casefold() == alias):
            if schemas[0].casefold() != alias:
                raise refused(f"{schemas[0][:80]!r} is another database")
            schemas = schemas[1:]
        if not all(map(is_plain_name, parts)) or (kind == "SCHEMA" and schemas):
            raise refused("a new entry needs a name of letters, digits, spaces, _, $ or -")
        schema = self.known.state.find_schema(schemas[0] if schemas else self.known.schema)
        if schema is None:
            raise refused(f"the lake has no schema {(schemas or [self.known.schema])[0][:80]!r}")
        self._check_folder(schema)
        return parts


_AFTER_TARGETS = frozenset(("SET", "USING", "WHERE", "(", ""))


def _insert(change: _Change) -> None:
    reader = change.reader
    reader.expect("INSERT", "INTO")
    parts = change.existing()
    if any(isinstance(entry, View) for entry in change.known.entries(parts)):
        raise refused("it changes rows of a view")
    if reader.is_at("("):
        reader.names()
    _ = reader.take("BY", "NAME") or reader.take("BY", "POSITION")
    check_query(reader.until(), change.known)


def _update(change: _Change) -> None:
    reader = change.reader
    reader.expect("UPDATE")
    target = change.target()
    reader.expect("SET")
    check_expression(reader.until("FROM", "WHERE"), change.known)
    _rest(change, target, "FROM")


def _delete(change: _Change) -> None:
    reader = change.reader
    reader.expect("DELETE", "FROM")
    _rest(change, change.target(), "USING")


def _rest(change: _Change, target: str, others: str) -> None:
    """Read the other tables and the condition of an UPDATE or a DELETE."""
    reader = change.reader
    source = f"SELECT 1 FROM {target}"
    if reader.take(others):
        check_query(f"SELECT 1 FROM {(other := reader.until('WHERE'))}", change.known)
        source = f"{source}, {other}"
    if reader.take("WHERE"):
        condition = reader.until()
        check_expression(condition, change.known)
        source = f"{source} WHERE {condition}"
    check_query(source, change.known)
    reader.finish()


def _merge(change: _Change) -> None:
    reader = change.reader
    reader.expect("MERGE", "INTO")
    change.target()
    reader.expect("USING")
    check_query(f"SELECT 1 FROM {reader.until('ON')}", change.known)
    reader.expect("ON")
    check_expression(reader.until("WHEN"), change.known)
    while not reader.is_done:
        reader.expect("WHEN")
        _ = reader.take("NOT")
        reader.expect("MATCHED")
        if reader.take("BY"):
            _ = reader.take("SOURCE") or reader.take("TARGET")
        if reader.take("AND"):
            check_expression(reader.until("THEN"), change.known)
        reader.expect("THEN")
        _merge_action(change)


def _merge_action(change: _Change) -> None:
    reader = change.reader
    if reader.take("DELETE") or reader.take("DO", "NOTHING"):
        return
    if reader.take("UPDATE"):
        if reader.take("SET"):
            check_expression(reader.until("WHEN"), change.known)
        return
    reader.expect("INSERT")
    _ = reader.take("BY", "NAME") or reader.take("*")
    if reader.is_at("("):
        reader.names()
    if reader.is_at("VALUES"):
        check_query(reader.until("WHEN"), change.known)


def _truncate(change: _Change) -> None:
    change.reader.expect("TRUNCATE")
    _ = change.reader.take("TABLE")
    change.existing()
    change.reader.finish()


def _create(change: _Change) -> None:
    reader = change.reader
    reader.expect("CREATE")
    replaces = reader.take("OR", "REPLACE")
    kind = next((kind for kind in ("TABLE", "VIEW", "SCHEMA") if reader.take(kind)), None)
    if kind is None or (kind == "SCHEMA" and replaces):
        raise refused("CREATE is allowed for TABLE, VIEW and SCHEMA of the lake")
    _ = reader.take("IF", "NOT", "EXISTS")
    change.new(kind)
    if kind == "TABLE" and reader.is_at("("):
        reader.expect("(")
        _column(change)
        while reader.take(","):
            _column(change)
        reader.expect(")")
    elif kind != "SCHEMA":
        if kind == "VIEW" and reader.is_at("("):
            reader.names()
        reader.expect("AS")
        check_query(reader.until(), change.known)
    reader.finish()


def _column(change: _Change) -> None:
    """Read the definition of a column: its name, its type, NOT NULL and a literal as its default."""
    reader = change.reader
    if len(reader.name()) > 1 and not reader.is_done:
        pass  # ADD COLUMN s.field
    _type(change, "NOT", "NULL", "DEFAULT", ",")
    while not reader.is_done and not reader.is_at(",") and not reader.is_at(")"):
        if reader.take("DEFAULT"):
            reader.constant()
        elif not (reader.take("NOT", "NULL") or reader.take("NULL")):
            raise refused("a column may have a type, NOT NULL and a literal as DEFAULT, and nothing else")


def _type(change: _Change, *ends: str) -> None:
    text = change.reader.until(*ends)
    check_expression(f"CAST(NULL AS {text})", change.known)


def _drop(change: _Change) -> None:
    reader = change.reader
    reader.expect("DROP")
    kind = next((kind for kind in ("TABLE", "VIEW", "SCHEMA") if reader.take(kind)), None)
    if kind is None:
        raise refused("DROP is allowed for TABLE, VIEW and SCHEMA of the lake")
    _ = reader.take("IF", "EXISTS")
    if kind == "SCHEMA":
        parts = change.new(kind)
        if change.known.state.find_schema(parts[-1]) is None:
            raise refused(f"the lake has no schema {parts[-1]!r}")
        _ = reader.take("CASCADE") or reader.take("RESTRICT")
    else:
        change.existing()
    reader.finish()


def _alter(change: _Change) -> None:
    reader = change.reader
    reader.expect("ALTER", "TABLE")
    _ = reader.take("IF", "EXISTS")
    change.existing()
    if reader.take("ADD"):
        _ = reader.take("COLUMN")
        _ = reader.take("IF", "NOT", "EXISTS")
        _column(change)
    elif reader.take("DROP"):
        _ = reader.take("COLUMN")
        _ = reader.take("IF", "EXISTS")
        reader.name()
    elif reader.take("RENAME", "TO"):
        change.new("TABLE")
    elif reader.take("RENAME"):
        _ = reader.take("COLUMN")
        reader.name()
        reader.expect("TO")
        reader.name()
    else:
        reader.expect("ALTER")
        _ = reader.take("COLUMN")
        reader.name()
        _alter_column(change)
    reader.finish()


def _alter_column(change: _Change) -> None:
    reader = change.reader
    if reader.take("SET", "NOT", "NULL") or reader.take("DROP", "NOT", "NULL") or reader.take("DROP", "DEFAULT"):
        return
    if reader.take("SET", "DEFAULT"):
        reader.constant()
        return
    if not reader.take("SET", "DATA", "TYPE"):
        _ = reader.take("SET")
        reader.expect("TYPE")
    _type(change, "USING")


def _comment(change: _Change) -> None:
    reader = change.reader
    reader.expect("COMMENT", "ON")
    if reader.take("COLUMN"):
        start = reader.index
        while not reader.is_done and not reader.is_at("IS"):
            reader.index += 1
        names = [word.name for word in reader.words[start : reader.index] if word.is_name]
        if not change.known.entries(names[:-1]):
            raise refused("the comment is on a column of no table of the lake")
    else:
        if not (reader.take("TABLE") or reader.take("VIEW")):
            raise refused("COMMENT is allowed on TABLE, VIEW and COLUMN")
        change.existing()
    reader.expect("IS")
    reader.constant()
    reader.finish()


#: The statements that change a lake, by their first word.
CHANGES: Mapping[str, Callable[[_Change], None]] = {
    "INSERT": _insert,
    "UPDATE": _update,
    "DELETE": _delete,
    "MERGE": _merge,
    "TRUNCATE": _truncate,
    "CREATE": _create,
    "DROP": _drop,
    "ALTER": _alter,
    "COMMENT": _comment,
}


def check_change(reader: Reader, known: Known) -> None:
    """Check one statement that changes the lake.

    Raises:
        UsageError: it does not pass.
    """
    verb = reader.words[0].upper if reader.words else ""
    if verb not in CHANGES:
        raise refused(f"it begins with {verb[:40] or 'a quote'!r}; allowed are {', '.join(CHANGES)}")
    CHANGES[verb](_Change(reader, known))
    reader.finish()
    if verb in ("INSERT", "UPDATE", "DELETE", "MERGE"):
        check_references(reader.text, known)
