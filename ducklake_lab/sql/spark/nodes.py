"""Small pieces of Spark SQL trees."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.notes import notes


class SparkCast(exp.Expression, exp.Func):
    """CAST to a type in Spark's spelling."""

    arg_types = {"this": True, "kind": True, "safe": False}


def call(name: str, *args: exp.Expr) -> exp.Anonymous:
    """Returns a Spark function call."""
    return exp.Anonymous(this=name, expressions=list(args))


def cast(node: exp.Expr, kind: str, safe: bool = False) -> exp.Expr:
    """Returns CAST, or TRY_CAST if `safe`, to a type in Spark's spelling."""
    return SparkCast(this=node, kind=kind, safe=safe)


def text(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def paren(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, exp.Column | exp.Literal | exp.Anonymous | exp.Paren) else exp.Paren(this=node)


def binary(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Returns `(left op right)`."""
    return exp.Paren(this=kind(this=paren(left), expression=paren(right)))


def case(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr | None = None) -> exp.Expr:
    """Returns CASE WHEN condition THEN then [ELSE otherwise] END."""
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def no_position(node: exp.Expr) -> exp.Expr:
    """Returns a computed number as a cast; a bare one in GROUP BY or ORDER BY is a position to Spark."""
    return cast(node, "INT") if isinstance(node, exp.Literal) and not node.is_string else node


def is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=paren(node), expression=exp.Null())


def typed_column(name: str, kind: DataType | None) -> exp.Column:
    """A column whose type is noted."""
    column = exp.column(exp.to_identifier(name, quoted=True))
    notes(column).set_type(kind)
    return column


def as_column(node: exp.Expr, name: str) -> exp.Alias:
    """Returns a column of a SELECT list."""
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def columns_of(node: exp.Expr, what: str) -> list[tuple[exp.Expr, str]]:
    """Returns (value, name) for the columns of a query.

    Args:
        what: the feature that needs the columns, for the error.

    Raises:
        UnsupportedFeatureError: the columns are unknown.
    """
    found: list[tuple[exp.Expr, str]] = []
    for item in node.expressions:
        if isinstance(item, exp.Alias):
            found.append((item.this, item.alias))
        elif isinstance(item, exp.Subquery) and item.alias:
            value = item.copy()
            value.set("alias", None)
            found.append((value, item.alias))
        else:
            raise UnsupportedFeatureError(f"{what} over columns that are not known is not supported on Spark.")
    return found
