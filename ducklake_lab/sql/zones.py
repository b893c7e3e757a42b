"""Times with a time zone, on Spark as in DuckDB: casts that depend on the zone are written out, in forms that agree.

They differ where a local time comes twice, as clocks go back: DuckDB takes the later of the two, Spark the earlier.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.sql.inference import TIMESTAMPTZ, type_of
from ducklake_lab.sql.scope import OUTPUTS
from ducklake_lab.sql.spark_nodes import binary, call, case, cast, text
from ducklake_lab.sql.types import to_sqlglot

NTZ, LTZ = "TIMESTAMP_NTZ", "TIMESTAMP"
_DAY = exp.Literal.number("86400000000")
#: The end of a text that names its time zone: a clock time, then an offset or a name.
_ZONED = r":[0-9.]+ *[-+A-Za-z]"
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
#: Functions whose arguments are brought to one type, and how many come before these.
_ALIKE = {"coalesce": 0, "ifnull": 0, "nullif": 0, "greatest": 0, "least": 0, "list_value": 0, "list_pack": 0}
_ALIKE |= {"date_diff": 1, "datediff": 1}


def from_local(value: exp.Expr) -> exp.Expr:
    """The instant of a local time, a TIMESTAMP_NTZ: the later one where there are two."""
    local = cast(value, NTZ)
    first = cast(local, LTZ)
    # by how much the clocks differ a day later: if they were put back within it, the time may come again
    day_later = cast(call("timestamp_micros", binary(exp.Add, call("unix_micros", first), _DAY.copy())), NTZ)
    moved = binary(exp.Sub, binary(exp.Sub, day_later, cast(first, NTZ)), _hours(24))
    again = binary(exp.Sub, first, moved)
    return case(binary(exp.EQ, cast(again, NTZ), local), again, first).copy()


def _hours(count: int) -> exp.Expr:
    return exp.Interval(this=text(str(count)), unit=exp.var("HOUR"))


def from_text(value: exp.Expr, safe: bool) -> exp.Expr:
    """The instant that a text names, local where it names no zone."""
    local = from_local(cast(value.copy(), NTZ, safe))
    if isinstance(value, exp.Literal):
        return cast(value, LTZ, safe) if re.search(_ZONED, value.name) else local
    return case(call("rlike", value, text(_ZONED)), cast(value.copy(), LTZ, safe), local)


def write_casts(tree: exp.Expr) -> None:
    """Makes casts of what DuckDB casts to TIMESTAMPTZ where it meets one, in a bound query.

    Raises:
        UnsupportedFeatureError: rows of two queries meet so, or a difference of such times is asked for.
    """
    for node in list(tree.walk()):
        if isinstance(node, _COMPARISONS):
            _bring([node.this, node.expression])
        elif isinstance(node, exp.Between):
            _bring([node.this, node.args["low"], node.args["high"]])
        elif isinstance(node, exp.In):
            query = node.args.get("query")
            if query is not None:
                _check_alike([type_of(node.this), *(output.type for output in query.meta.get(OUTPUTS) or ())])
            _bring([node.this, *node.expressions])
        elif isinstance(node, exp.Case):
            default = node.args.get("default")
            _bring([*(branch.args["true"] for branch in node.args["ifs"]), *([default] if default is not None else [])])
        elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
            _bring([part for part in (node.args.get("true"), node.args.get("false")) if part is not None])
        elif isinstance(node, exp.Array):
            _bring(node.expressions)
        elif isinstance(node, exp.Anonymous) and node.name.lower() in _ALIKE:
            _bring(node.expressions[_ALIKE[node.name.lower()] :])
        elif isinstance(node, exp.SetOperation):
            left, right = (side.meta.get(OUTPUTS) or () for side in (node.this, node.expression))
            for one, other in zip(left, right, strict=False):
                _check_alike([one.type, other.type])


def _bring(nodes: Sequence[exp.Expr]) -> None:
    kinds = [type_of(node) for node in nodes]
    if TIMESTAMPTZ not in kinds:
        return
    for node, kind in zip(nodes, kinds, strict=True):
        if kind is not None and (_is_local(kind) or kind.name == "varchar"):
            outer = exp.Cast(to=to_sqlglot(TIMESTAMPTZ))
            node.replace(outer)
            outer.set("this", node)


def _check_alike(kinds: Sequence[DataType | None]) -> None:
    if TIMESTAMPTZ in kinds and any(kind is not None and _is_local(kind) for kind in kinds):
        raise UnsupportedFeatureError(
            "Rows of two queries whose times are TIMESTAMP and TIMESTAMPTZ do not meet on Spark; cast one of them."
        )


def _is_local(kind: DataType) -> bool:
    return kind.name == "date" or (kind.name in TIMESTAMPS and kind != TIMESTAMPTZ)


#: Microseconds of the units that DuckDB adds as an amount of time; the others move the calendar.
_SIZES = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}


def added(kind: type[exp.Add] | type[exp.Sub], moment: exp.Expr, written: exp.Expr, interval: exp.Expr) -> exp.Expr:
    """`moment ± interval`, of a TIMESTAMPTZ.

    Args:
        written: the interval as it was in the DuckDB tree.
        interval: the same on Spark.

    Raises:
        UnsupportedFeatureError: it is not known what the interval is made of.
    """
    written = written.unnest()
    if not isinstance(written, exp.Interval):
        raise UnsupportedFeatureError(
            "Adding a computed INTERVAL to a TIMESTAMPTZ is not supported on Spark; write INTERVAL 1 DAY."
        )
    size = _SIZES.get(written.text("unit").upper().rstrip("S"))
    if size is None:
        return binary(kind, moment, interval)
    # a literal, or make_dt_interval(…, count)
    count = interval.this if isinstance(interval, exp.Interval) else interval.expressions[-1]
    amount = binary(exp.Mul, cast(count, "BIGINT"), exp.Literal.number(str(size)))
    return call("timestamp_micros", binary(kind, call("unix_micros", moment), amount))
