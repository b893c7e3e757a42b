"""Window functions in Spark SQL: partition and order keys, and frames with the same meaning as in DuckDB."""

from __future__ import annotations

from math import inf

from sqlglot import exp

from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql.spark import aggregates
from ducklake_lab.sql.spark.comparing import check_equal, named
from ducklake_lab.sql.spark.grouped import aggregated
from ducklake_lab.sql.spark.nodes import text
from ducklake_lab.sql.spark.translating import Translating
from ducklake_lab.sql.spark.typing import aggregate

#: Seconds of the time units that frames may use.
_SECONDS = {"DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}


def window(translation: Translating, node: exp.Window) -> exp.Expr:
    if node.this.name.lower() in aggregates.WINDOW_ONLY:
        node.set("spec", None)  # their frame has no effect, and Spark refuses it
    spec, around = node.args.get("spec"), node.find_ancestor(exp.Query)
    if node.args.get("exclude") or (spec is not None and spec.args.get("exclude")):
        raise UnsupportedFeatureError("EXCLUDE in a window is not supported on Spark.")
    if spec is not None and spec.text("kind").upper() == "GROUPS":
        raise UnsupportedFeatureError("GROUPS in a window is not supported on Spark.")
    if next(
        (one for one in node.find_all(exp.Window) if one is not node and one.find_ancestor(exp.Query) is around), None
    ):
        raise BindError("A window function takes no other one; compute that in a subquery.")
    _check_bounds(spec)
    function, written, node = node.this, node, node.copy()
    node.set("this", None)
    _check_range(translation, node, spec)
    for part in node.args.get("partition_by") or ():
        check_equal(translation.type_of(part))
    node.set("partition_by", [named(part) for part in node.args.get("partition_by") or ()])
    translation.children(node)
    if isinstance(function, exp.Identifier):
        node.set("this", function)
        return node
    core = aggregate(function)
    if core is None:
        raise aggregates.refuse_over(function.sql(dialect="duckdb"))
    if (
        core.name.lower() in (*aggregates.WINDOW_ONLY, "nth_value")
        and not node.args.get("order")
        and not node.args.get("alias")
    ):
        # Spark requires an order where DuckDB does not
        node.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Null(), nulls_first=True)]))

    def over(inner: exp.Expr) -> exp.Expr:
        result = node.copy()
        result.set("this", inner)
        return result

    return aggregated(translation, function, over, translation.type_of(written), over=True)


def frame(translation: Translating, node: exp.WindowSpec) -> exp.Expr:
    """Translates the frame of a window; `_check_range` has checked its intervals."""
    for side in ("start", "end"):
        bound = node.args.get(side)
        if isinstance(bound, exp.Interval):
            # Spark requires one type for both sides, and gives days and hours two types
            seconds = int(bound.this.name) * _SECONDS[_unit(bound)]
            node.set(side, exp.Interval(this=text(str(seconds)), unit=exp.var("SECOND")))
        else:
            translation.part(node, side)
    return node


def _check_range(translation: Translating, node: exp.Window, spec: exp.Expr | None) -> None:
    """Raises if RANGE has a distance with another meaning on Spark."""
    bounds = [spec.args.get("start"), spec.args.get("end")] if spec is not None else []
    if spec is None or spec.text("kind").upper() != "RANGE" or not any(isinstance(b, exp.Expr) for b in bounds):
        return
    order = node.args.get("order")
    kinds = [translation.type_of(item.this) for item in order.expressions] if order is not None else []
    name = kinds[0].name if len(kinds) == 1 and kinds[0] is not None else ""
    if not name.startswith("int") and not (name == "timestamp" and all(map(_is_amount, bounds))):
        raise UnsupportedFeatureError(
            "RANGE by a distance is supported on Spark for whole numbers, and times without a zone by days or less."
        )


def _check_bounds(spec: exp.Expr | None) -> None:
    """Raises if a frame may be empty, or has computed bounds, which Spark has not."""
    if spec is None:
        return
    places: list[float] = []
    for part, sign in (("start", -1), ("end", 1)):
        bound, side = spec.args.get(part), spec.text(f"{part}_side").upper()
        if not isinstance(bound, exp.Expr):
            places.append(0.0 if str(bound).upper() == "CURRENT ROW" else sign * inf)
            continue
        distance = bound.this if isinstance(bound, exp.Interval) else bound
        if not (isinstance(distance, exp.Literal) and distance.name.replace(".", "", 1).isdigit()):
            raise UnsupportedFeatureError("Computed bounds of a window are not supported on Spark.")
        places.append(float(distance.name) * (-1 if side == "PRECEDING" else 1))
    if places[0] > places[1]:
        raise UnsupportedFeatureError("A frame that ends before it begins is not supported on Spark.")


def _is_amount(bound: object) -> bool:
    """Returns whether a bound of a window has no distance, or a time distance with the same meaning on Spark."""
    if not isinstance(bound, exp.Interval):
        return not isinstance(bound, exp.Expr)
    whole = isinstance(bound.this, exp.Literal) and bound.this.name.isdigit()
    return whole and _unit(bound) in _SECONDS


def _unit(bound: exp.Interval) -> str:
    return bound.text("unit").upper().rstrip("S")
