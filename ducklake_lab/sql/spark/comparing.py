"""Types that Spark compares as DuckDB does, for grouping, joining and sorting."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import NULL
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.spark.operands import Context, fit_one_decimal, is_ordered, operands
from ducklake_lab.sql.spark.settings import order_of
from ducklake_lab.sql.spark.stability import is_volatile
from ducklake_lab.sql.spark.translating import Translating
from ducklake_lab.sql.spark.typing import Type, is_computed_before


def check_equal(kind: Type) -> None:
    """Raises if Spark's equality differs from DuckDB's for values of a type."""
    if not _is_comparable(kind):
        name = kind.sql() if kind is not None else "a value of no known type"
        raise UnsupportedFeatureError(f"Grouping or joining by {name} is not supported on Spark; use parts of it.")


def check_alike(c: Context, kinds: Sequence[Type]) -> None:
    """Raises if Spark would compare values of some types in another type than DuckDB."""
    known = [kind for kind in kinds if kind is not None]
    columns = [_typed_column(kind) for kind in known]
    if len(known) < len(kinds) or operands(c, *columns) is None or not fit_one_decimal(known):
        shown = " and ".join(kind.sql() for kind in known)
        raise UnsupportedFeatureError(f"Joining {shown} is not supported on Spark; cast one of them.")


def named(node: exp.Expr) -> exp.Expr:
    """Returns a value for comparisons only: the parts of a tuple get the names that Spark needs."""
    if not isinstance(node, exp.Tuple):
        return node
    parts = (
        exp.PropertyEQ(this=exp.to_identifier(f"col{place}", quoted=True), expression=part.copy())
        for place, part in enumerate(node.expressions)
    )
    return exp.Struct(expressions=list(parts))


def is_collated(node: exp.Expr) -> bool:
    """Returns whether an expression contains COLLATE, outside of arguments computed before it."""
    return any(isinstance(part, exp.Collate) for part in node.walk(prune=is_computed_before))


def check_collation(node: exp.Expr, kind: Type) -> None:
    """Raises if a text result has a collation, which Spark would ignore in comparisons."""
    if is_collated(node) and (kind is None or any(part.name == "varchar" for part in kind.walk())):
        raise UnsupportedFeatureError(
            "COLLATE is not supported on Spark outside of a comparison such as a = b COLLATE …"
        )


#: Functions whose values DuckDB sorts by; its sort keys of these types have another order.
_COMPARABLE = {"timetz": "timetz_byte_comparable", "interval": "normalized_interval"}


def ordered(translation: Translating, node: exp.Ordered) -> exp.Expr:
    """Returns a key of ORDER BY; DuckDB makes a sortable text if Spark's order differs."""
    if node.args.get("with_fill"):
        raise UnsupportedFeatureError("WITH FILL is not supported.")
    descending, nulls_first = order_of(
        node.args.get("desc"), node.args.get("nulls_first"), notes(node).null_order_is_written, translation.settings
    )
    key, query = node.this, node.parent.parent if node.parent is not None else None
    kind = translation.type_of(key)
    if isinstance(key.unnest(), exp.Collate) and kind == DataType("varchar"):
        key = _by_collation(key.unnest())
    check_collation(key, kind)
    if isinstance(key, exp.Literal) and isinstance(query, exp.Query):
        outputs = notes(query).outputs or ()
        place = int(key.name) if key.name.isdigit() else 0
        kind = outputs[place - 1].type if 0 < place <= len(outputs) else kind
        if not is_ordered(kind) and kind != NULL and isinstance(query, exp.Select) and not query.args.get("distinct"):
            key = query.expressions[place - 1].unalias()
            if is_volatile(key) or any(call.name.lower() == "unnest" for call in key.find_all(exp.Anonymous)):
                raise UnsupportedFeatureError(
                    "Sorting by random values or unnest(…) of lists is not supported on Spark."
                )
    if is_ordered(kind) or kind == NULL or (isinstance(key, exp.Null)):
        value = key if isinstance(key, exp.Literal) else translation.scalar(key)
        return exp.Ordered(this=value, desc=descending, nulls_first=nulls_first)
    if kind is None or isinstance(key, exp.Literal):
        raise UnsupportedFeatureError("Sorting these values is not supported on Spark; use parts of them.")
    value = key.copy()
    if kind.name in _COMPARABLE:
        value = exp.Anonymous(this=_COMPARABLE[kind.name], expressions=[value])
    order = f"{'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
    bytes_ = exp.Anonymous(this="create_sort_key", expressions=[value, exp.Literal.string(order)])
    return exp.Ordered(this=translation.scalar(bytes_), desc=False, nulls_first=False)


def _by_collation(key: exp.Expr) -> exp.Expr:
    """Returns the expression that DuckDB sorts by for a collated text: functions of its parts, the language last."""
    collation = (
        key.expression.sql(dialect="duckdb") if not isinstance(key.expression, exp.Literal) else key.expression.name
    )
    parts = [part.strip('"').lower() for part in collation.split(".")]
    value: exp.Expr = key.this
    for part in sorted(parts, key=lambda part: part not in _COMBINED):
        value = exp.Anonymous(this=_COMBINED.get(part, f"icu_collate_{part}"), expressions=[value.copy()])
    return value


#: Functions of collations that combine with others.
_COMBINED = {"nocase": "lower", "noaccent": "strip_accents", "nfc": "nfc_normalize"}


def _typed_column(kind: DataType) -> exp.Column:
    column = exp.column("_")
    notes(column).set_type(kind)
    return column


def _is_comparable(kind: Type) -> bool:
    """Returns whether Spark's equality matches DuckDB's for a type, including nested types."""
    if kind is None:
        return False
    if kind.name in ("list", "struct"):
        return all(_is_comparable(child) for _, child in kind.children)
    return is_ordered(kind) or kind == NULL or kind.name == "json"
