"""Parses DuckLake's own statements from tokens: ATTACH, USE, transactions, CALL, SHOW, ALTER TABLE.

They come before the general parser, which misreads several of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.parse.constants import constant
from ducklake_lab.sql.parse.copy import read_copy
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.tokens import Cursor, from_parse_error, position, syntax_error
from ducklake_lab.sql.types import from_sqlglot

_DIALECT = DuckLakeSql()
_Tree = TypeVar("_Tree", bound=exp.Expr)

#: Transaction options without an effect here.
_TRANSACTION_WORDS = ("TRANSACTION", "WORK")


def parse_tokens(kind: type[_Tree], tokens: Sequence[Token], text: str, binder: Binder) -> _Tree:
    """Parses some tokens of `text` to a syntax tree, with parameters bound.

    Raises:
        SqlSyntaxError: the tokens are no `kind`.
    """
    if not tokens:
        raise syntax_error(text, None)
    try:
        trees = _DIALECT.parser().parse_into(kind, list(tokens), text)
    except ParseError as error:
        raise from_parse_error(text, tokens, error) from error
    if not trees or trees[0] is None:
        raise syntax_error(text, tokens[0])
    tree = binder.bind(trees[0])
    return tree  # type: ignore[return-value]


def parse_query(tokens: Sequence[Token], text: str, binder: Binder) -> exp.Query:
    """Parses a query to a syntax tree, with parameters bound.

    Raises:
        SqlSyntaxError: the tokens are no query.
    """
    try:
        trees = _DIALECT.parser().parse(list(tokens), text)
    except ParseError as error:
        raise from_parse_error(text, tokens, error) from error
    tree = binder.bind(trees[0]) if trees and trees[0] is not None else None
    if isinstance(tree, exp.Values):
        tree = exp.select(exp.Star()).from_(tree)
    if not isinstance(tree, exp.Query):
        raise syntax_error(text, tokens[0] if tokens else None, "a query")
    return tree


def data_type(tokens: Sequence[Token], text: str, binder: Binder) -> DataType:
    """Parses a type from some tokens of `text`."""
    return from_sqlglot(parse_tokens(exp.DataType, tokens, text, binder))


def own_statement(cursor: Cursor, binder: Binder) -> op.Operation | None:
    """Parses one of DuckLake's own statements; returns None for another one and reads nothing then."""
    first = cursor.word()
    reader = _READERS.get(first)
    if reader is not None:
        return reader(cursor, binder)
    return None


def _attach(cursor: Cursor, binder: Binder) -> op.Attach:
    cursor.expect("ATTACH")
    replace = cursor.take("OR", "REPLACE")
    cursor.take("DATABASE")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    end = cursor.index
    while end < len(cursor.tokens) and cursor.tokens[end].text.upper() not in ("AS", "("):
        end += 1
    path_tokens = cursor.tokens[cursor.index : end]
    if not path_tokens:
        raise syntax_error(cursor.text, cursor.current, "the quoted path of a lake")
    path = parse_tokens(exp.Expr, path_tokens, cursor.text, binder)
    if not (isinstance(path, exp.Literal) and path.is_string) and not isinstance(path, exp.RawString):
        raise syntax_error(cursor.text, path_tokens[0], "the quoted path of a lake")
    cursor.index = end
    alias = cursor.name("the name of the lake") if cursor.take("AS") else None
    options: dict[str, object] = {}
    if cursor.at("("):
        for item in cursor.parenthesised():
            part = Cursor(cursor.text, item)
            name = part.name("an option").lower()
            part.take("=")
            left = part.rest()
            options[name] = option(left, cursor.text, binder) if left else True
    cursor.finish()
    return op.Attach(path.name, alias, options, if_not_exists, replace)


def option(tokens: Sequence[Token], text: str, binder: Binder) -> object:
    """Returns an option's value; a bare word such as `sqlite` is text, except `true` and `false`."""
    tree = parse_tokens(exp.Expr, tokens, text, binder)
    if isinstance(tree, exp.Column) and not tree.table:
        return tree.name
    if isinstance(tree, exp.Var):
        return tree.name
    return constant(tree)


def _detach(cursor: Cursor, binder: Binder) -> op.Detach:
    cursor.expect("DETACH")
    cursor.take("DATABASE")
    if_exists = cursor.take("IF", "EXISTS")
    alias = cursor.name("the name of a lake")
    cursor.finish()
    return op.Detach(alias, if_exists)


def _use(cursor: Cursor, binder: Binder) -> op.Use:
    cursor.expect("USE")
    first = cursor.current
    parts = cursor.names("the name of a lake or schema")
    if len(parts) > 2:
        raise syntax_error(cursor.text, first, "catalog or catalog.schema")
    cursor.finish()
    return op.Use(tuple(parts))


def _transaction(operation: op.Operation) -> Callable[[Cursor, Binder], op.Operation]:
    def read(cursor: Cursor, binder: Binder) -> op.Operation:
        cursor.index += 1
        for word in _TRANSACTION_WORDS:
            if cursor.take(word):
                break
        if isinstance(operation, op.Begin) and cursor.at("READ"):
            raise UnsupportedFeatureError("BEGIN TRANSACTION READ ONLY or READ WRITE is not supported yet.")
        cursor.finish()
        return operation

    return read


def _call(cursor: Cursor, binder: Binder) -> op.Call:
    cursor.expect("CALL")
    first = cursor.current
    tree = parse_tokens(exp.Table, cursor.rest(), cursor.text, binder)
    function = tree.this
    if not isinstance(function, exp.Anonymous):
        raise syntax_error(cursor.text, first, "a function call")
    line, column = position(cursor.text, first.start if first else 0)
    name = op.TableName(tree.catalog or None, tree.db or None, function.name, line, column)
    args, kwargs = call_arguments(function)
    return op.Call(name, tuple(args), kwargs)


def call_arguments(call: exp.Anonymous) -> tuple[list[object], dict[str, object]]:
    """Returns the constant arguments of a call: positional ones, and named ones by lower-case name."""
    args: list[object] = []
    kwargs: dict[str, object] = {}
    for argument in call.expressions:
        named = isinstance(argument, exp.EQ) and isinstance(argument.this, exp.Column) and not argument.this.table
        if named or isinstance(argument, exp.Kwarg | exp.PropertyEQ):
            kwargs[argument.this.name.lower()] = constant(argument.expression)
        else:
            args.append(constant(argument))
    return args, kwargs


def prepared(cursor: Cursor) -> op.Prepare | None:
    """Parses PREPARE, whose parameters have no values yet; None for another statement."""
    if not cursor.take("PREPARE"):
        return None
    name = cursor.name("the name of the prepared statement")
    if cursor.at("("):
        cursor.parenthesised()  # parameter types, which follow from the values
    cursor.expect("AS")
    left = cursor.rest()
    if not left:
        raise syntax_error(cursor.text, None, "a statement")
    return op.Prepare(name, cursor.text[left[0].start : left[-1].end + 1])


def _execute(cursor: Cursor, binder: Binder) -> op.Operation:
    cursor.expect("EXECUTE")
    name = cursor.name("the name of a prepared statement")
    args, kwargs = read_arguments(cursor.parenthesised() if cursor.at("(") else [], cursor.text, binder)
    cursor.finish()
    return op.Execute(name, tuple(args), kwargs)


def read_arguments(
    items: Sequence[Sequence[Token]], text: str, binder: Binder | None = None
) -> tuple[list[object], dict[str, object]]:
    """Returns the constant arguments of a call from its tokens; named ones by lower-case name."""
    binder = binder or Binder(None)
    args: list[object] = []
    kwargs: dict[str, object] = {}
    for item in items:
        argument = Cursor(text, item)
        if argument.word(1) in (":=", "=>", "="):
            key = argument.name().lower()
            argument.index += 1
            kwargs[key] = constant(parse_tokens(exp.Expr, argument.rest(), text, binder))
        else:
            args.append(constant(parse_tokens(exp.Expr, item, text, binder)))
    return args, kwargs


def _deallocate(cursor: Cursor, binder: Binder) -> op.Operation:
    cursor.expect("DEALLOCATE")
    cursor.take("PREPARE")
    name = cursor.name("the name of a prepared statement")
    cursor.finish()
    return op.Deallocate(name)


def _checkpoint(cursor: Cursor, binder: Binder) -> op.Checkpoint:
    cursor.take("FORCE")
    cursor.expect("CHECKPOINT")
    lake = cursor.name("the name of a lake") if cursor.current is not None else None
    cursor.finish()
    return op.Checkpoint(lake)


_READERS: dict[str, Callable[[Cursor, Binder], op.Operation]] = {
    "ATTACH": _attach,
    "DETACH": _detach,
    "USE": _use,
    "BEGIN": _transaction(op.Begin()),
    "START": _transaction(op.Begin()),
    "COMMIT": _transaction(op.Commit()),
    "END": _transaction(op.Commit()),
    "ROLLBACK": _transaction(op.Rollback()),
    "ABORT": _transaction(op.Rollback()),
    "CALL": _call,
    "CHECKPOINT": _checkpoint,
    "FORCE": _checkpoint,
    "COPY": read_copy,
    "EXECUTE": _execute,
    "DEALLOCATE": _deallocate,
}
