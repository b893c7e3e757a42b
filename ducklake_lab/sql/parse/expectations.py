"""Parses statements about expectations: ALTER TABLE … EXPECT, DROP EXPECTATION, CHECK; and stored conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokens import Token

from ducklake_lab.duckdb.evaluation import is_aggregate, stabilities
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.row_columns import columns_in
from ducklake_lab.sql.parse.statements import parse_query, parse_tokens
from ducklake_lab.sql.parse.tokens import Cursor, split, syntax_error

_VIOLATIONS: dict[str, object] = {"FAIL": "fail", "WARN": "warn", "DROP": "drop", "QUARANTINE": "quarantine"}
#: Functions whose values depend on the session.
_OF_SESSIONS = frozenset(
    "getvariable getenv current_setting current_schema current_schemas current_catalog current_database current_query "
    "current_user current_role session_user user txid_current".split()
)
#: Functions that return several rows or columns.
_OF_ROWS = frozenset(("columns", "unnest", "generate_subscripts", "regexp_split_to_table", "json_each", "json_tree"))
_KINDS = "CHECK, NOT NULL, UNIQUE, REFERENCES, FRESH WITHIN or QUERY"


def expect(cursor: Cursor, binder: Binder, table: op.TableName, if_exists: bool) -> op.Expect:
    """Parses what follows EXPECT."""
    name = cursor.name("the name of the expectation")
    found = _kind(cursor, binder, op.Expect(table, name, "check", if_exists=if_exists))
    on: object = "fail"
    if cursor.take("ON", "VIOLATION"):
        on = _VIOLATIONS.get(cursor.word())
        if on is None:
            raise syntax_error(cursor.text, cursor.current, "FAIL, WARN, DROP or QUARANTINE")
        cursor.index += 1
    cursor.finish()
    if found.kind in ("fresh", "query") and on in ("drop", "quarantine"):
        word = found.kind.upper()
        raise UnsupportedFeatureError(
            f"ON VIOLATION {str(on).upper()} is not supported for {word}, which names no row of {table.name}; use FAIL or WARN."
        )
    return _replaced(found, on=on)


def _replaced(found: op.Expect, **changes: object) -> op.Expect:
    return replace(found, **changes)  # type: ignore[arg-type]


def _kind(cursor: Cursor, binder: Binder, base: op.Expect) -> op.Expect:
    if cursor.take("CHECK"):
        sql, columns = condition(_inner(cursor, "a condition"), cursor.text, binder)
        return _replaced(base, sql=sql, columns=columns)
    if cursor.take("UNIQUE"):
        return _replaced(base, kind="unique", columns=_columns(cursor))
    if _take_not_null(cursor):
        return _replaced(base, kind="not_null", columns=_columns(cursor))
    if cursor.take("QUERY"):
        tokens = _inner(cursor, "a query")
        before = binder.bound
        tree = parse_query(tokens, cursor.text, binder)
        text = cursor.text[tokens[0].start : tokens[-1].end + 1]
        return _replaced(base, kind="query", sql=tree.sql(dialect=DuckLakeSql) if binder.bound > before else text)
    if cursor.take("FRESH"):
        return _replaced(base, kind="fresh", sql=_interval(cursor))
    if cursor.take("REFERENCES"):
        return _references(cursor, _replaced(base, kind="references"), ())
    cursor.take("FOREIGN KEY")
    if not cursor.at("(") and (cursor.word(1) in ("", "CHECK", "UNIQUE") or cursor.current is None):
        raise syntax_error(cursor.text, cursor.current, _KINDS)
    columns = _columns(cursor) if cursor.at("(") else (cursor.name("a column"),)
    if _take_not_null(cursor):
        return _replaced(base, kind="not_null", columns=columns)
    if cursor.take("UNIQUE"):
        return _replaced(base, kind="unique", columns=columns)
    if cursor.take("REFERENCES"):
        return _references(cursor, _replaced(base, kind="references"), columns)
    raise syntax_error(cursor.text, cursor.current, _KINDS)


def _take_not_null(cursor: Cursor) -> bool:
    return cursor.take("NOT", "NULL") or cursor.take("NOT NULL")


def _references(cursor: Cursor, base: op.Expect, columns: tuple[str, ...]) -> op.Expect:
    target = cursor.table()
    others = _columns(cursor) if cursor.at("(") else ()
    if not columns and not others:
        raise syntax_error(cursor.text, cursor.current, "the referenced columns in parentheses")
    if columns and others and len(columns) != len(others):
        raise BindError(f"{len(columns)} columns cannot reference {len(others)} columns of {target.name}.")
    return _replaced(base, target=target, columns=columns or others, target_columns=others or columns)


def _inner(cursor: Cursor, expected: str) -> Sequence[Token]:
    """Returns the tokens within parentheses."""
    start = cursor.index + 1
    if not cursor.parenthesised():
        raise syntax_error(cursor.text, cursor.current, expected)
    return cursor.tokens[start : cursor.index - 1]


def _columns(cursor: Cursor) -> tuple[str, ...]:
    names = []
    for item in cursor.parenthesised():
        part = Cursor(cursor.text, item)
        names.append(part.name("a column"))
        part.finish()
    if not names:
        raise syntax_error(cursor.text, cursor.current, "a column")
    if len({name.casefold() for name in names}) < len(names):
        raise BindError(f"A column is listed twice: {', '.join(names)}.")
    return tuple(names)


def _interval(cursor: Cursor) -> str:
    """Reads `WITHIN INTERVAL …`; returns the text of the interval."""
    cursor.expect("WITHIN")
    cursor.expect("INTERVAL")
    start, end = cursor.index, cursor.index
    while end < len(cursor.tokens) and cursor.tokens[end].text.upper() != "ON":
        end += 1
    words = [token.text for token in cursor.tokens[start:end] if token.text not in ("(", ")")]
    if not words:
        raise syntax_error(cursor.text, cursor.current, "a length of time, such as '1 day' or 6 HOUR")
    cursor.index = end
    return " ".join(words)


def condition(tokens: Sequence[Token], text: str, binder: Binder, what: str = "CHECK") -> tuple[str, tuple[str, ...]]:
    """Returns the text of a condition on one row, as DuckDB spells it, and the columns that it names.

    Args:
        what: its name in errors.

    Raises:
        UnsupportedFeatureError: it depends on other rows.
        BindError: a column is qualified.
    """
    tree = parse_tokens(exp.Expr, tokens, text, binder)
    holder = exp.Paren(this=tree)
    named = (call.name for call in holder.find_all(exp.Anonymous))
    if any(holder.find_all(exp.Query, exp.Subquery, exp.AggFunc, exp.Window)) or any(map(is_aggregate, named)):
        hint = "; use QUERY (SELECT …)" if what == "CHECK" else ""
        raise UnsupportedFeatureError(
            f"A {what} with a subquery, an aggregate or a window is not supported, as it depends on other rows{hint}."
        )
    if any(holder.find_all(exp.Star, exp.Columns, exp.Unnest, exp.Explode)) or any(
        call.name.casefold() in _OF_ROWS for call in holder.find_all(exp.Anonymous)
    ):
        raise UnsupportedFeatureError(
            f"A {what} with *, COLUMNS or a function that returns rows, such as unnest, is not supported; name each column."
        )
    for call in holder.find_all(exp.Anonymous):
        name = call.name.casefold()
        if name in _OF_SESSIONS or stabilities().get(name) == "VOLATILE":
            raise UnsupportedFeatureError(
                f"A {what} with {name}() is not supported, as two clients would not agree on it."
            )
    columns = dict.fromkeys(name.name for name, _ in columns_in(holder.this))
    return str(holder.this.sql(dialect=DuckLakeSql, normalize_functions=False)), tuple(columns)


@lru_cache(maxsize=256)
def stored_condition(sql: str, what: str = "CHECK") -> str:
    """Returns a condition of the catalog, which may be anybody's text, as the text of one condition on one row.

    Raises:
        SqlSyntaxError, UnsupportedFeatureError: it is none.
    """
    statements = split(sql)
    return condition(statements[0] if len(statements) == 1 else (), sql, Binder(None), what)[0]


def drop_expectation(cursor: Cursor, table: op.TableName, if_exists: bool) -> op.DropExpectation:
    """Parses what follows DROP EXPECTATION."""
    if_expectation_exists = cursor.take("IF", "EXISTS")
    return op.DropExpectation(table, cursor.name("the name of the expectation"), if_exists, if_expectation_exists)


def check_statement(cursor: Cursor, binder: Binder) -> op.Check | None:
    """Parses `CHECK orders [SINCE 12]`; returns None for another statement and reads nothing then."""
    if not cursor.take("CHECK"):
        return None
    cursor.take("TABLE")
    table = cursor.table()
    since = cursor.number() if cursor.take("SINCE") else None
    cursor.finish()
    return op.Check(table, since)


def table_function(query: op.Query) -> str | None:
    """Returns a table function that a query calls, which may read files or have effects; None for a query over names alone."""
    for table in query.tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            return str(table.this.sql(dialect=DuckLakeSql)).partition("(")[0].lower()
    return None
