"""Parses MERGE INTO from tokens; the general parser knows only about half of its forms."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.references import matching
from ducklake_lab.sql.parse.statements import parse_tokens
from ducklake_lab.sql.parse.tokens import Cursor, from_parse_error, syntax_error


def is_merge(cursor: Cursor) -> bool:
    """Returns whether a statement is MERGE, or WITH … MERGE."""
    if not cursor.at("WITH"):
        return cursor.at("MERGE")
    ahead = Cursor(cursor.text, cursor.tokens)
    _until(ahead, ("MERGE", "SELECT", "FROM", "VALUES", "INSERT", "UPDATE", "DELETE"))
    return ahead.at("MERGE", "INTO")


def read_merge(cursor: Cursor, binder: Binder) -> op.Merge:
    """Parses `[WITH …] MERGE INTO target USING source ON … WHEN …`.

    Raises:
        SqlSyntaxError: the statement has another form.
        UnsupportedFeatureError: RETURNING.
    """
    with_: Sequence[Token] = ()
    if cursor.at("WITH"):
        start = cursor.index
        while not cursor.at("MERGE"):
            cursor.index = matching(cursor.tokens, cursor.index) + 1 if cursor.at("(") else cursor.index + 1
        with_ = cursor.tokens[start : cursor.index]
    cursor.expect("MERGE", "INTO")
    table = cursor.table()
    alias = None
    if cursor.take("AS") or not cursor.at("USING"):
        alias = cursor.name("an alias, or USING")
    cursor.expect("USING")
    source = _source(with_, _until(cursor, ("ON", "USING")), cursor, binder)
    using: tuple[str, ...] = ()
    condition = None
    if cursor.take("USING"):
        using = tuple(Cursor(cursor.text, item).name("a column") for item in cursor.parenthesised())
    else:
        cursor.expect("ON")
        condition = parse_tokens(exp.Expr, _until(cursor, ("WHEN",)), cursor.text, binder)
    clauses: list[op.MergeClause] = []
    while cursor.take("WHEN"):
        clauses.append(_clause(cursor, binder))
    if cursor.at("RETURNING"):
        raise UnsupportedFeatureError("MERGE INTO … RETURNING is not supported: lakes return no rows from writes.")
    cursor.finish()
    if not clauses:
        raise syntax_error(cursor.text, None, "WHEN MATCHED or WHEN NOT MATCHED")
    _check(clauses, cursor)
    return op.Merge(table, alias, source, condition, using, tuple(clauses))


def _source(with_: Sequence[Token], source: Sequence[Token], cursor: Cursor, binder: Binder) -> exp.Select:
    """Returns the source as `SELECT * FROM source`, with the statement's WITH."""
    if not source:
        raise syntax_error(cursor.text, cursor.current, "the source")
    text = cursor.text[source[0].start : source[-1].end + 1]
    before = cursor.text[with_[0].start : with_[-1].end + 1] if with_ else ""
    whole = f"{before} SELECT * FROM {text}"
    tokens = DuckLakeSql().tokenize(whole)
    tree = parse_tokens(exp.Select, tokens, whole, binder)
    return tree


def _until(cursor: Cursor, words: Sequence[str]) -> list[Token]:
    """Returns the tokens before the first of these words outside of parentheses and CASE."""
    tokens: list[Token] = []
    cases = 0
    while cursor.current is not None:
        if cases == 0 and cursor.word() in words:
            break
        if cursor.current.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
            close = matching(cursor.tokens, cursor.index)
            tokens += cursor.tokens[cursor.index : close + 1]
            cursor.index = close + 1
            continue
        cases += (cursor.word() == "CASE") - (cursor.word() == "END")
        tokens.append(cursor.current)
        cursor.index += 1
    return tokens


def _clause(cursor: Cursor, binder: Binder) -> op.MergeClause:
    kind: op.MergeWhen = "matched"
    if cursor.take("NOT"):
        kind = "not matched"
        cursor.expect("MATCHED")
        if cursor.take("BY"):
            if cursor.take("SOURCE"):
                kind = "not matched by source"
            else:
                cursor.expect("TARGET")
    else:
        cursor.expect("MATCHED")
    condition = None
    if cursor.take("AND"):
        condition = parse_tokens(exp.Expr, _until(cursor, ("THEN",)), cursor.text, binder)
    cursor.expect("THEN")
    action = Cursor(cursor.text, _until(cursor, ("WHEN", "RETURNING")))
    clause = _action(action, binder, kind, condition)
    action.finish()
    return clause


def _action(action: Cursor, binder: Binder, kind: op.MergeWhen, condition: exp.Expr | None) -> op.MergeClause:
    first = action.current
    if action.take("DO", "NOTHING"):
        return op.MergeClause(kind, condition, "nothing")
    if action.take("ERROR"):
        left = action.rest()
        message = parse_tokens(exp.Expr, left, action.text, binder) if left else None
        return op.MergeClause(kind, condition, "error", message=message)
    if action.take("DELETE") and kind != "not matched":
        return op.MergeClause(kind, condition, "delete")
    if action.take("UPDATE") and kind != "not matched":
        if action.current is None or action.take("BY", "POSITION") or action.take("SET", "*"):
            return op.MergeClause(kind, condition, "update", whole="position")
        if action.take("BY", "NAME"):
            return op.MergeClause(kind, condition, "update", whole="name")
        action.expect("SET")
        left = action.rest()
        whole = "UPDATE t SET " + action.text[left[0].start : left[-1].end + 1] if left else ""
        return op.MergeClause(kind, condition, "update", assignments=_assignments(whole, action, binder))
    if action.take("INSERT") and kind == "not matched":
        return _insert(action, binder, kind, condition)
    raise syntax_error(action.text, first, _EXPECTED[kind])


_EXPECTED = {
    "matched": "UPDATE, DELETE, DO NOTHING or ERROR",
    "not matched": "INSERT, DO NOTHING or ERROR",
    "not matched by source": "UPDATE, DELETE, DO NOTHING or ERROR",
}


def _assignments(text: str, action: Cursor, binder: Binder) -> tuple[exp.Expr, ...]:
    if not text:
        raise syntax_error(action.text, None, "an assignment")
    try:
        update = DuckLakeSql().parse(text)[0]
    except ParseError as error:
        raise from_parse_error(text, DuckLakeSql().tokenize(text), error) from error
    assert update is not None  # the clause begins with a word
    update = binder.bind(update)
    if not isinstance(update, exp.Update) or any(update.args.get(part) for part in ("from_", "where", "returning")):
        raise SqlSyntaxError("UPDATE in MERGE takes assignments only; put conditions after WHEN … AND.")
    return tuple(update.expressions)


def _insert(action: Cursor, binder: Binder, kind: op.MergeWhen, condition: exp.Expr | None) -> op.MergeClause:
    if action.current is None or action.take("*") or action.take("BY", "POSITION"):
        return op.MergeClause(kind, condition, "insert", whole="position")
    if action.take("BY", "NAME"):
        return op.MergeClause(kind, condition, "insert", whole="name")
    if action.take("DEFAULT", "VALUES"):
        return op.MergeClause(kind, condition, "insert", columns=(), values=())
    columns: tuple[str, ...] | None = None
    if action.at("("):
        columns = tuple(Cursor(action.text, item).name("a column") for item in action.parenthesised())
    action.expect("VALUES")
    values = tuple(parse_tokens(exp.Expr, item, action.text, binder) for item in action.parenthesised())
    return op.MergeClause(kind, condition, "insert", columns=columns, values=values)


def _check(clauses: Sequence[op.MergeClause], cursor: Cursor) -> None:
    """Refuses an unreachable clause: one after an unconditional clause of its kind."""
    closed: set[str] = set()
    for clause in clauses:
        if clause.when in closed:
            raise SqlSyntaxError(
                f"A WHEN {clause.when.upper()} without AND comes before another one; only the last may have no condition."
            )
        if clause.condition is None:
            closed.add(clause.when)
