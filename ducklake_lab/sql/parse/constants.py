"""Converts constant expressions: literals to Python values, larger expressions to SQL text."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

from sqlglot import exp

from ducklake_lab.errors import BindError, DuckLakeError
from ducklake_lab.model.types import INTEGERS, TIMESTAMPS, DataType
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.operations import SqlConstant
from ducklake_lab.sql.types import from_sqlglot


class NotConstant(Exception):
    """Raised inside this package for a tree that is not a literal."""


def literal_value(tree: exp.Expr) -> object:
    """Returns the Python value of a literal, also negated or cast (`DATE '2013-01-01'`); TIMESTAMPTZ values are aware.

    Raises:
        NotConstant: the tree is no literal.
    """
    tree = tree.unnest()
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Literal):
        return tree.name if tree.is_string else _number(tree.name)
    if isinstance(tree, exp.RawString):
        return tree.name
    if isinstance(tree, exp.Neg):
        value = literal_value(tree.this)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return -value
    if isinstance(tree, exp.Anonymous) and tree.name == "+":
        value = literal_value(tree.expressions[0])
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return value
    if isinstance(tree, exp.Array):
        return [literal_value(item) for item in tree.expressions]
    if isinstance(tree, exp.Cast) and not isinstance(tree, exp.TryCast):
        return _cast(literal_value(tree.this), tree.to)
    raise NotConstant


def constant(tree: exp.Expr) -> object:
    """Returns the Python value of a literal, or a SqlConstant for a larger expression.

    Raises:
        BindError: the expression names a column.
    """
    try:
        return literal_value(tree)
    except NotConstant:
        column = tree.find(exp.Column)
        if column is not None:
            raise BindError(
                f"\"{column.name}\" is not a constant; put text in single quotes: '{column.name}'."
            ) from None
        return SqlConstant(tree.sql(dialect=DuckLakeSql))


def _number(text: str) -> int | float | Decimal:
    text = text.replace("_", "")
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _cast(value: object, kind: exp.DataType) -> object:
    try:
        target = from_sqlglot(kind)
    except DuckLakeError:
        raise NotConstant from None
    if value is None:
        return None
    try:
        return _converted(value, target)
    except (ValueError, ArithmeticError):
        raise NotConstant from None


def _converted(value: object, target: DataType) -> object:
    name = target.name
    if isinstance(value, str):
        if name == "varchar":
            return value
        if name == "date":
            return date.fromisoformat(value)
        if name == "time":
            return time.fromisoformat(value)
        if name in TIMESTAMPS:
            moment = datetime.fromisoformat(value)
            # A TIMESTAMPTZ without a zone is in the session's zone, which is unknown here.
            if (name == "timestamptz") == (moment.tzinfo is not None):
                return moment
        if name == "blob" and value.startswith("\\x"):
            return bytes.fromhex(value.replace("\\x", ""))
        if name == "uuid":
            return str(UUID(value))
        if name == "float64":
            return float(value)
    if isinstance(value, int) and name in INTEGERS:
        return value
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        if name == "float64":
            return float(value)
        if target.decimal is not None and not isinstance(value, float):
            exact = Decimal(value)
            if exact == round(exact, target.decimal[1]):
                return exact
    raise NotConstant
