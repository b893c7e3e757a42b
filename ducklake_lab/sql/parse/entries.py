"""Parses statements on views, macros and comments from tokens.

The text of a query or expression is kept as written; the catalog stores DuckDB's own spelling of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from ducklake_lab.duckdb import canonical
from ducklake_lab.errors import SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import forget
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.references import PIVOTS, word
from ducklake_lab.sql.parse.statements import data_type, parse_query, parse_tokens
from ducklake_lab.sql.parse.tokens import Cursor, split, syntax_error, table_of

_MACRO_WORDS = ("MACRO", "FUNCTION")


def entry_statement(cursor: Cursor, binder: Binder) -> op.Operation | None:
    """Parses a statement on a view, macro or comment; returns None for another one and reads nothing then."""
    start = cursor.index
    if cursor.take("COMMENT"):
        return _comment(cursor)
    if cursor.take("ALTER", "VIEW"):
        return _alter_view(cursor)
    if cursor.take("DROP"):
        if cursor.take("VIEW"):
            return _drop_view(cursor)
        if cursor.word() in _MACRO_WORDS:
            return _drop_macro(cursor)
    if cursor.take("CREATE"):
        replace = cursor.take("OR", "REPLACE")
        temporary = cursor.take("TEMP") or cursor.take("TEMPORARY")
        if cursor.take("VIEW"):
            return _create_view(cursor, binder, replace, temporary)
        if temporary:
            cursor.index = start
            return None
        if cursor.word() in _MACRO_WORDS:
            return _create_macro(cursor, binder, replace)
    cursor.index = start
    return None


def _create_view(cursor: Cursor, binder: Binder, replace: bool, temporary: bool) -> op.CreateView:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.table()
    columns: list[str] = []
    if cursor.at("("):
        for item in cursor.parenthesised():
            part = Cursor(cursor.text, item)
            columns.append(part.name("a column"))
            part.finish()
    cursor.expect("AS")
    sql, query = query_with_text(cursor, cursor.rest(), binder)
    return op.CreateView(name, sql, query, tuple(columns), replace, if_not_exists, temporary)


def query_with_text(cursor: Cursor, tokens: Sequence[Token], binder: Binder) -> tuple[str, op.Query]:
    """Returns the text and the tree of a query; parameters are part of the text as literals.

    Raises:
        UnsupportedFeatureError: it is a PIVOT whose columns depend on the data.
    """
    if tokens and word(tokens[0]) in PIVOTS:
        sql = binder.text(cursor.text, tokens)
        # that statement as a query, which DuckDB prints
        printed = canonical.query_text(sql)
        query = parse_query(split(printed)[0], printed, Binder(None))
        for node in query.walk():
            forget(node)  # places in the printed text
        return sql, op.Query(query)
    before, for_text = binder.bound, binder.fork()
    tree = parse_query(tokens, cursor.text, binder)
    text = _text(cursor, tokens, tree, bound=binder.bound > before)
    return text, op.Query(tree, written=for_text.written(cursor.text, tokens))


def _text(cursor: Cursor, tokens: Sequence[Token], tree: exp.Expr, *, bound: bool) -> str:
    """Returns the text of tokens; if they had parameters, the text of the tree."""
    if bound:
        return tree.sql(dialect=DuckLakeSql)
    return cursor.text[tokens[0].start : tokens[-1].end + 1]


def _drop_view(cursor: Cursor) -> op.DropView:
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.table()
    _end_of_drop(cursor)
    return op.DropView(name, if_exists)


def _end_of_drop(cursor: Cursor) -> None:
    if cursor.take("CASCADE"):
        raise UnsupportedFeatureError("DROP … CASCADE is not supported; drop what depends on it first.")
    cursor.take("RESTRICT")
    cursor.finish()


def _alter_view(cursor: Cursor) -> op.RenameView:
    if_exists = cursor.take("IF", "EXISTS")
    view = cursor.table()
    cursor.expect("RENAME", "TO")
    new_name = cursor.name("the new name")
    cursor.finish()
    return op.RenameView(view, new_name, if_exists)


def _create_macro(cursor: Cursor, binder: Binder, replace: bool) -> op.CreateMacro:
    cursor.index += 1
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.table()
    overloads: list[op.MacroOverload] = []
    kinds: set[Literal["scalar", "table"]] = set()
    while True:
        parameters = tuple(_parameter(cursor, item, binder) for item in cursor.parenthesised())
        cursor.expect("AS")
        is_table = cursor.take("TABLE")
        kinds.add("table" if is_table else "scalar")
        body = _body(cursor, is_table)
        if is_table:
            sql, _ = query_with_text(cursor, body, binder)
        else:
            before = binder.bound
            tree = parse_tokens(exp.Expr, body, cursor.text, binder)
            sql = _text(cursor, body, tree, bound=binder.bound > before)
        overloads.append(op.MacroOverload(parameters, sql))
        if not cursor.take(","):
            break
    cursor.finish()
    if len(kinds) > 1:
        raise SqlSyntaxError("The overloads of a macro are all expressions or all tables (AS TABLE).")
    return op.CreateMacro(name, kinds.pop(), tuple(overloads), replace, if_not_exists)


def _parameter(cursor: Cursor, tokens: Sequence[Token], binder: Binder) -> op.MacroParameter:
    """Parses `name [type] [:= constant]`."""
    part = Cursor(cursor.text, tokens)
    name = part.name("a parameter")
    rest = part.rest()
    assign = next((i for i, token in enumerate(rest) if token.token_type == TokenType.COLON_EQ), len(rest))
    kind = data_type(rest[:assign], cursor.text, binder) if assign else None
    if kind is not None and kind.is_nested:
        raise UnsupportedFeatureError(
            f"A macro's parameter of type {kind.sql()} is not supported, as the catalog keeps no inner types; leave the type out."
        )
    if assign == len(rest):
        return op.MacroParameter(name, kind)
    value = parse_tokens(exp.Expr, rest[assign + 1 :], cursor.text, binder)
    return op.MacroParameter(name, kind, value.sql(dialect=DuckLakeSql))


def _body(cursor: Cursor, is_table: bool) -> Sequence[Token]:
    """Returns the tokens before the next overload, `, (…) AS …`; expressions have commas only in parentheses."""
    start, depth = cursor.index, 0
    while cursor.current is not None:
        kind = cursor.current.token_type
        if kind in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
            depth += 1
        elif kind in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE):
            depth -= 1
        elif kind == TokenType.COMMA and depth == 0 and (not is_table or _starts_overload(cursor)):
            break
        cursor.index += 1
    return cursor.tokens[start : cursor.index]


def _starts_overload(cursor: Cursor) -> bool:
    """Returns whether `(…) AS TABLE` follows the next comma."""
    if cursor.word(1) != "(":
        return False
    ahead = Cursor(cursor.text, cursor.tokens, cursor.index + 1)
    try:
        ahead.parenthesised()
    except SqlSyntaxError:
        return False
    return ahead.at("AS", "TABLE")


def _drop_macro(cursor: Cursor) -> op.DropMacro:
    cursor.index += 1
    is_table = cursor.take("TABLE")
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.table()
    _end_of_drop(cursor)
    return op.DropMacro(name, "table" if is_table else "scalar", if_exists)


def _comment(cursor: Cursor) -> op.Comment:
    cursor.expect("ON")
    what = cursor.word()
    if what not in ("TABLE", "VIEW", "COLUMN"):
        raise UnsupportedFeatureError(f"COMMENT ON {what} is not supported; tables, views and columns have comments.")
    cursor.index += 1
    first = cursor.current
    parts = cursor.names("a name")
    column = None
    if what == "COLUMN":
        if len(parts) < 2:
            raise syntax_error(cursor.text, first, "table.column")
        column = parts.pop()
    name = table_of(parts, cursor.text, first)
    cursor.expect("IS")
    text = None if cursor.take("NULL") else cursor.string()
    cursor.finish()
    kind: dict[str, Literal["table", "view", "column"]] = {"TABLE": "table", "VIEW": "view", "COLUMN": "column"}
    return op.Comment(kind[what], name, text, column)
