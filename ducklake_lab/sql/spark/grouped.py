"""Translates aggregates and window functions: Spark's own forms, or DuckDB's over the values of each group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import result_type
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.spark import aggregates, deferring
from ducklake_lab.sql.spark.comparing import check_collation, named
from ducklake_lab.sql.spark.failing import may_fail
from ducklake_lab.sql.spark.nodes import call, text
from ducklake_lab.sql.spark.operands import NO_NANOSECONDS, has_nanoseconds
from ducklake_lab.sql.spark.stability import check_same_for_all, volatile_call
from ducklake_lab.sql.spark.translating import Translating
from ducklake_lab.sql.spark.typing import Type, is_computed_before, lifted
from ducklake_lab.sql.types import to_sqlglot


def aggregated(
    translation: Translating, node: exp.Expr, wrap: aggregates.Wrap, result: Type, *, over: bool = False
) -> exp.Expr:
    """Translates an aggregate or window function; `wrap` adds FILTER and OVER."""
    whole = node
    core, nulls, condition = node, None, None
    while not isinstance(core, exp.Anonymous):
        if isinstance(core, exp.Filter):
            check_same_for_all(core.expression, "FILTER")
            condition = _filter(translation, core)
        else:
            nulls = type(core)
        core = core.this
    written = [part.copy() for part in core.expressions]
    if written and isinstance(written[-1], exp.IgnoreNulls | exp.RespectNulls):
        nulls, written[-1] = type(written[-1]), written[-1].this
    order = written[-1] if written and isinstance(written[-1], exp.Order) else None
    if order is not None:
        # `rank(ORDER BY x)` has only an order
        written[-1:] = [order.this] if order.this is not None else []

    def around(inner: exp.Expr) -> exp.Expr:
        inner = nulls(this=inner) if nulls is not None else inner
        if condition is not None:
            inner = exp.Filter(this=inner, expression=exp.Where(this=condition.copy()))
        return wrap(inner)

    values = [value for part in written for value in (part.expressions if isinstance(part, exp.Distinct) else [part])]
    types = [None if isinstance(value, exp.Star) else translation.type_of(value) for value in values]
    for value, kind in zip(values, types, strict=True):
        check_collation(value, kind)
    name = core.name.lower()
    if name in aggregates.FORMS and (over or volatile_call(core) is None):
        args = [
            exp.Distinct(expressions=[translation.scalar(named(v.copy())) for v in part.expressions])
            if isinstance(part, exp.Distinct)
            else part
            if isinstance(part, exp.Star)
            else translation.scalar(part)
            for part in written
        ]
        found = aggregates.native(
            aggregates.Aggregate(name, args, types, result, around, over, _digits(translation, values)),
            order,
            by_nulls=nulls is not None,
        )
        if found is not None:
            return found
    if over:
        raise aggregates.refuse_over(name)
    return _by_group(translation, core, around, whole)


def _filter(translation: Translating, node: exp.Filter) -> exp.Expr:
    """Translates the condition of FILTER; DuckDB computes it and the aggregate's arguments for all rows."""
    condition: exp.Expr = node.expression.this
    if not may_fail(condition, translation.type_of):
        found = translation.truth(condition.copy())
    else:
        found = translation.scalar(exp.Cast(this=condition.copy(), to=to_sqlglot(DataType("boolean"))))
    inner = node.this
    while not isinstance(inner, exp.Anonymous):
        inner = inner.this
    for value in _values(inner.expressions):
        if may_fail(value, translation.type_of):
            check = deferring.raised(translation.scalar(value.copy()))
            found = exp.And(this=check, expression=exp.Paren(this=found)) if check is not None else found
    return found


def _values(arguments: Iterable[exp.Expr | None]) -> Iterator[exp.Expr]:
    """The values that an aggregate reads, those that it sorts by among them."""
    for part in arguments:
        if isinstance(part, exp.Distinct):
            yield from _values(part.expressions)
        elif isinstance(part, exp.Order):
            yield from _values([part.this, *(key.this for key in part.expressions)])
        elif isinstance(part, exp.IgnoreNulls | exp.RespectNulls):
            yield from _values([part.this])
        elif part is not None and not isinstance(part, exp.Star):
            yield part


def _digits(translation: Translating, values: Sequence[exp.Expr]) -> int:
    """Returns the digits of the decimals that a function's first argument sums; for a nested sum, those of its values.

    The sum over all groups never has more digits than the sum over all rows.
    """
    value = values[0] if values else exp.Star()
    summed = value.expressions[0] if isinstance(value, exp.Anonymous) and value.name.lower() == "sum" else value
    for part in (summed, value):
        kind = None if isinstance(part, exp.Star | exp.Distinct) else translation.type_of(part)
        if kind is not None and kind.decimal is not None:
            return kind.decimal[0]
    return 0


def _by_group(translation: Translating, node: exp.Anonymous, around: aggregates.Wrap, whole: exp.Expr) -> exp.Expr:
    """Translates an aggregate that DuckDB computes from the values of each group."""
    own = iter(range(1))
    found = lifted(node, lambda part: is_computed_before(part) and next(own, None) is None)
    translation.check_scope(found)
    kinds = [translation.argument_type(part) for part in found.arguments]
    fields = tuple((f"_ducklake_{i}", kind) for i, kind in enumerate(kinds)) or (("one", DataType("int32")),)
    rows = DataType("list", (("element", DataType("struct", fields)),))
    shown = ", ".join(f"u.{quote_identifier(name)} AS {quote_identifier(name)}" for name, _ in fields)
    sql = f'(SELECT {found.sql} FROM (SELECT {shown} FROM (SELECT unnest("_ducklake_0") AS u)))'
    result = result_type(sql, (rows,), translation.settings)
    if node.name.lower() in aggregates.NEVER_NULL:
        sql = f"coalesce({sql}, CAST(0 AS {result.sql()}))"
    if has_nanoseconds(result):
        raise UnsupportedFeatureError(NO_NANOSECONDS)
    packed: list[exp.Expr] = []
    for (name, _), part in zip(fields, found.arguments or (exp.Literal.number(1),), strict=True):
        packed += [text(name), translation.argument(part) if found.arguments else part]
    whole_group = around(call("collect_list", call("named_struct", *packed)))
    columns = tuple(part.name if isinstance(part, exp.Column) else "" for part in found.arguments)
    return translation.of_worker(sql, (rows,), result, [whole_group], columns=columns)
