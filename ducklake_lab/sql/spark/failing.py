"""Recognises expressions that never fail: functions and operators that accept all values of their types."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ducklake_lab.sql.spark.typing import Type, is_computed_before, is_over_list

#: Functions of texts and integers that never fail.
_TOTAL = frozenset(
    "upper lower ucase lcase trim ltrim rtrim reverse length len strlen char_length substr substring left right contains "
    "prefix starts_with suffix ends_with strpos instr replace concat concat_ws coalesce ifnull nullif md5 strip_accents "
    "nfc_normalize year month day split_part string_split starts_with ascii unicode greatest least isnan isinf isfinite".split()
)
#: Functions that never fail if their second argument is a constant, which is checked during planning.
_OF_PATTERNS = frozenset("regexp_matches regexp_full_match regexp_replace regexp_extract".split())
_PARTS = (
    exp.Paren,
    exp.And,
    exp.Or,
    exp.Not,
    exp.Is,
    exp.Case,
    exp.If,
    exp.Null,
    exp.Boolean,
    exp.DPipe,
    exp.Like,
    exp.ILike,
)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_PLAIN = ("varchar", "boolean", "date", "float32", "float64", "int8", "int16", "int32", "int64", "list")


def may_fail(node: exp.Expr, type_of: Callable[[exp.Expr], Type]) -> bool:
    """Returns whether an expression may fail for some row."""
    if is_computed_before(node):
        return False
    if isinstance(node, exp.Literal):
        return False
    if is_over_list(node):
        return True
    if isinstance(node, exp.Cast):
        kind = type_of(node)
        is_total = isinstance(node, exp.TryCast) or (kind is not None and kind.name == "varchar")
        return not is_total or may_fail(node.this, type_of)
    if isinstance(node, exp.Anonymous):
        parts = node.expressions
        total = node.name.lower() in _TOTAL or (
            node.name.lower() in _OF_PATTERNS and all(isinstance(part, exp.Literal) for part in parts[1:])
        )
        return not (total and _are_plain(parts, type_of)) or any(may_fail(part, type_of) for part in parts)
    if isinstance(node, _COMPARISONS):
        sides = (node.this, node.expression)
        same = type_of(sides[0]) == type_of(sides[1]) and _are_plain(sides, type_of)
        return not same or any(may_fail(side, type_of) for side in sides)
    if not isinstance(node, _PARTS) or node.args.get("escape"):
        return True
    if isinstance(node, exp.Case) and node.this is not None:
        return True
    return any(may_fail(part, type_of) for part in node.iter_expressions())


def _are_plain(parts: list[exp.Expr] | tuple[exp.Expr, ...], type_of: Callable[[exp.Expr], Type]) -> bool:
    """Returns whether DuckDB casts no argument to a type that cannot hold all its values."""
    kinds = [type_of(part) for part in parts]
    return all(kind is not None and kind.name in _PLAIN for kind in kinds)
