"""Derives a predicate from a condition in Spark SQL, where it means the same in every session of Spark.

Only a constant of a column's own kind counts: Spark converts others by rules that its settings change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.moments import Moment, MomentKind, parsed
from ducklake_lab.model.predicates import MIRRORED, And, Comparison, InList, NullTest, Or, Predicate
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.sql.prune.pushdown import OPERATORS

#: Integers that Spark has exactly.
_LONG = tuple(name for name in INTEGERS if not name.endswith("128"))
_DIGITS = re.compile(r"\d{1,38}(\.\d{1,38})?", re.ASCII)
_TIMES: dict[str, MomentKind] = {"date": "date", "timestamp": "timestamp"}
#: The beginning of a time that Spark reads, too: no infinity, and no year before 1.
_YEAR = re.compile(r"\d{4}-[^(]*$", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
#: Spark has a setting for the meaning of a backslash.
_ESCAPED = re.compile(r"\\")


class _Unsure(Exception):
    pass


def predicate_of(condition: str, columns: Sequence[Column]) -> Predicate | None:
    """Returns a predicate that a condition implies; None if there is no such predicate, or no such condition."""
    if '"' in condition:
        return None  # a text or a name, by a setting
    try:
        tree = parse_one(condition, dialect=Spark)
    except (SqlglotError, RecursionError):
        return None  # Spark says what is wrong with it
    known = {column.name.casefold(): column for column in columns}
    return _extract(tree, known)


def exact_predicate(condition: str, columns: Sequence[Column]) -> Predicate:
    """Returns a predicate that is true for the same rows as a condition; times may be texts in ISO form.

    Raises:
        UnsupportedFeatureError: there is none.
    """
    known = {column.name.casefold(): column for column in columns}
    try:
        if '"' in condition:
            raise _Unsure
        return _exact(parse_one(condition, dialect=Spark), known, texts=True)
    except (SqlglotError, RecursionError, _Unsure):
        raise UnsupportedFeatureError(
            f"The condition {condition} is not supported: compare columns with constants of their types, by "
            "=, <>, <, <=, >, >=, IN, BETWEEN and IS NULL, with AND and OR."
        ) from None


def _extract(tree: exp.Expr, known: dict[str, Column]) -> Predicate | None:
    node = tree.unnest()
    if isinstance(node, exp.And):
        found = [p for p in (_extract(side, known) for side in (node.this, node.expression)) if p is not None]
        return And(tuple(found)) if len(found) > 1 else next(iter(found), None)
    try:
        return _exact(node, known)
    except _Unsure:
        return None


def _exact(tree: exp.Expr, known: dict[str, Column], *, texts: bool = False) -> Predicate:
    """Returns a predicate that is true for the same rows.

    Args:
        texts: a text in ISO form is a time; Spark has a setting that compares such texts as texts.

    Raises:
        _Unsure: there is none.
    """
    node = tree.unnest()
    if isinstance(node, exp.And | exp.Or):
        sides = _exact(node.this, known, texts=texts), _exact(node.expression, known, texts=texts)
        return And(sides) if isinstance(node, exp.And) else Or(sides)
    op = OPERATORS.get(type(node))
    if op is not None:
        if isinstance(node.this.unnest(), exp.Column):
            column = _column(node.this, known)
            return Comparison((column.name,), op, _value(node.expression, column, texts))
        column = _column(node.expression, known)
        return Comparison((column.name,), MIRRORED[op], _value(node.this, column, texts))
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        column = _column(node.this, known)
        low, high = _value(node.args["low"], column, texts), _value(node.args["high"], column, texts)
        return And((Comparison((column.name,), ">=", low), Comparison((column.name,), "<=", high)))
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        column = _column(node.this, known)
        return InList((column.name,), tuple(_value(item, column, texts) for item in node.expressions))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return NullTest((_column(node.this, known).name,), True)
    if isinstance(node, exp.Not):
        inner = node.this.unnest()
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return NullTest((_column(inner.this, known).name,), False)
    raise _Unsure


def _column(tree: exp.Expr, known: dict[str, Column]) -> Column:
    node = tree.unnest()
    if not isinstance(node, exp.Column) or node.table or node.name.casefold() not in known:
        raise _Unsure
    return known[node.name.casefold()]


def _value(tree: exp.Expr, column: Column, texts: bool) -> object:
    """Returns a constant of the column's own kind."""
    node, kind = tree.unnest(), column.data_type
    if isinstance(node, exp.Neg):
        inner = node.this.unnest()
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return -_number(inner.name, kind)
    elif isinstance(node, exp.Literal) and not node.is_string:
        return _number(node.name, kind)
    elif isinstance(node, exp.Literal) and kind.name == "varchar" and not _ESCAPED.search(node.name):
        return node.name
    elif isinstance(node, exp.Literal) and texts and kind.name in _TIMES:
        found = parsed(node.name.replace("T", " "), _TIMES[kind.name])
        if found is not None and _YEAR.match(node.name):
            return found
    elif isinstance(node, exp.Boolean) and kind.name == "boolean":
        return bool(node.this)
    elif isinstance(node, exp.Cast) and kind.name == "date" and node.to.this is exp.DataType.Type.DATE:
        day = node.this.name if isinstance(node.this, exp.Literal) and node.this.is_string else ""
        if _DAY.fullmatch(day):
            try:
                return Moment.of(date.fromisoformat(day))
            except ValueError:
                raise _Unsure from None
    raise _Unsure


def _number(text: str, kind: DataType) -> int | Decimal:
    if not _DIGITS.fullmatch(text):
        raise _Unsure
    before, _, after = text.partition(".")
    precision, scale = kind.decimal or ((18, 0) if kind.name in _LONG else (0, 0))
    # Spark rounds a column whose digits, together with those of the constant, are more than 38
    if len(before) > precision - scale or len(after) > scale:
        raise _Unsure
    return Decimal(text) if after else int(before)
