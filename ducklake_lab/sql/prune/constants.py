"""Evaluates constant expressions of conditions to values that compare with bounds as in DuckDB.

Plain literals are read here; DuckDB computes all others and their types. Dates and times never become
Python's, which lack infinities and years outside 1 to 9999.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, time
from decimal import Decimal

from sqlglot import exp

from ducklake_lab.duckdb.casting import evaluate_typed
from ducklake_lab.errors import ConstraintError, DuckLakeError
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.model.values import MOMENTS, decode
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.parse.constants import NotConstant, literal_value
from ducklake_lab.sql.types import from_sqlglot

#: Nodes of constant expressions whose value is always the same.
_FOLDED = (
    exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.Cast, exp.Literal, exp.Interval, exp.IntervalSpan, exp.Var,
    exp.DataType, exp.DataTypeParam,
)  # fmt: skip
_ZONED = (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ, exp.DataType.Type.TIMETZ)
#: Digits of DuckDB's longest exact numbers.
_MOST_DIGITS = 38
#: Readers of DuckDB's text of a value, by type; other types are not constants. FLOAT is left out: it rounds the
#: columns that are compared with it.
_READ: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(INTEGERS, int),
    "float64": float,
    "boolean": lambda text: text == "true",
    "varchar": str,
    "uuid": str,
}


def folded_value(tree: exp.Expr) -> object:
    """Returns the value of a literal, or of casts, sums, differences and products: `DATE '…' + INTERVAL 1 DAY`.

    Returns:
        None for NULL; a bool, int, Decimal, str, bytes or Moment, or a float for a DOUBLE.

    Raises:
        NotConstant: the tree is no such expression, or its value depends on the time zone.
    """
    tree = tree.unnest()
    if isinstance(tree, exp.Cast) and not isinstance(tree, exp.TryCast):
        kind = _target(tree)
        if kind.name in MOMENTS and isinstance(inner := tree.this.unnest(), exp.Literal) and inner.is_string:
            return moment_value(inner.name, kind)
        is_plain = kind.name != "float64" and kind.name not in MOMENTS
    else:
        is_plain = True
    if is_plain:
        with suppress(NotConstant):
            return _exact(literal_value(tree))
    parts = list(tree.walk())
    if not all(isinstance(part, _FOLDED) and not isinstance(part, exp.TryCast) for part in parts):
        raise NotConstant
    if any(isinstance(part, exp.DataType) and part.this in _ZONED for part in parts):
        raise NotConstant
    return _evaluated(tree.sql(dialect=DuckLakeSql, normalize_functions=False, comments=False))


def _target(tree: exp.Cast) -> DataType:
    try:
        return from_sqlglot(tree.to)
    except DuckLakeError:
        raise NotConstant from None


def _exact(value: object) -> object:
    """Returns a literal's value; refuses numbers with more digits than DuckDB's exact types, which become DOUBLE."""
    if isinstance(value, date | time):
        raise NotConstant
    if isinstance(value, int | Decimal) and len(f"{abs(value):f}".replace(".", "").lstrip("0")) > _MOST_DIGITS:
        raise NotConstant
    return value


def moment_value(text: str, kind: DataType) -> Moment:
    """Returns the value of a text that is cast to a date or time type.

    Raises:
        NotConstant: the cast fails, or its value depends on the time zone.
    """
    found: object = decode(text, kind) if kind.name not in ("timestamp_s", "timestamp_ms") else None
    if found is None and kind.name != "timestamptz":
        # DuckDB reads more formats, and cuts digits that a type does not hold
        found = _evaluated(f"CAST({quote_text(text)} AS {kind.sql()})")
    if not isinstance(found, Moment):
        raise NotConstant
    return found


def _evaluated(sql: str) -> object:
    try:
        name, text = evaluate_typed(sql)
    except ConstraintError:
        raise NotConstant from None
    if text is None:
        return None
    kind = DataType(name)
    if name in MOMENTS and name != "timestamptz" and (moment := decode(text, kind)) is not None:
        return moment
    if kind.decimal is not None:
        return Decimal(text)
    if name not in _READ:
        raise NotConstant
    return _READ[name](text)
