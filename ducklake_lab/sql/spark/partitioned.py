"""Windows that DuckDB computes for each partition: any function, frame, order and collation of DuckDB.

A query with such windows becomes three. The innermost computes the inputs of the windows. The middle one collects
the rows of each partition; a worker returns them with the windows' values. The outermost computes the rest.
A partition must fit in a worker's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import NULL, argument, result_type
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import Output, notes
from ducklake_lab.sql.spark.comparing import check_collation, check_equal, is_collated
from ducklake_lab.sql.spark.nodes import as_column, call, columns_of, number, text, typed_column
from ducklake_lab.sql.spark.stability import is_volatile
from ducklake_lab.sql.spark.translating import Translating
from ducklake_lab.sql.spark.typing import aggregate, moment

#: The parts of a query that are evaluated after its windows.
_AFTER = ("order", "limit", "offset", "distinct", "with_", "windows")


def windows_of(node: exp.Expr) -> Iterator[exp.Window]:
    """Yields the windows of a query, without those of inner queries."""
    order = node.args.get("order")
    for part in [*node.expressions, *([order] if order is not None else [])]:
        yield from _windows(part)


def _windows(node: exp.Expr) -> Iterator[exp.Window]:
    if isinstance(node, exp.Window):
        yield node
    elif not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from _windows(child)


def write_out(node: exp.Expr) -> None:
    """Replaces named windows of a query by their definitions."""
    named = {window.name.casefold(): window for window in node.args.get("windows") or ()}
    for window in [*named.values(), *windows_of(node)] if named else ():
        _write_out(window, named)
    node.set("windows", None)


def _write_out(window: exp.Window, named: dict[str, exp.Window]) -> None:
    name = window.args.get("alias")
    if name is None:
        return
    found = named.get(name.name.casefold())
    if found is None:
        raise UnsupportedFeatureError(f'There is no window "{name.name}".')
    _write_out(found, named)
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        value = found.args.get(part)
        if value and not window.args.get(part):
            window.set(part, [one.copy() for one in value] if isinstance(value, list) else value.copy())
    window.set("over", "OVER")


@dataclass
class _Lifting:
    """Moves the inputs of windows into columns of the innermost query.

    Attributes:
        columns: (expression, name, type) of the inputs.
        of_windows: by a window that DuckDB computes, the column of its values.
    """

    translation: Translating
    foreign: Sequence[exp.Window]
    columns: list[tuple[exp.Expr, str, DataType]] = field(default_factory=list)
    of_windows: dict[exp.Window, tuple[exp.Column, exp.Window]] = field(default_factory=dict)

    def column(self, node: exp.Expr) -> exp.Column:
        """Returns the column of an expression without windows."""
        for other, name, kind in self.columns:
            if other == node:
                return typed_column(name, kind)
        kind = self.translation.argument_type(node)
        name = f"_ducklake_c{len(self.columns)}"
        self.columns.append((node.copy(), name, DataType("int32") if kind == NULL else kind))
        return typed_column(name, self.columns[-1][2])

    def item(self, node: exp.Expr) -> exp.Expr:
        """Returns a column of the query, or a key of its order."""
        return self.column(node) if next(_windows(node), None) is None else self.lift(node)

    def lift(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window):
            return self._window(node)
        if moment(node) is None and self.translation.is_argument(node):
            return self.column(node)
        return self._inside(node)

    def _inside(self, node: exp.Expr) -> exp.Expr:
        result = node.copy()
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                result.set(key, self.lift(value))
            elif isinstance(value, list):
                result.set(key, [self.lift(one) if isinstance(one, exp.Expr) else one for one in value])
        return result

    def _window(self, node: exp.Window) -> exp.Expr:
        known = self.of_windows.get(node)
        if known is not None:
            return known[0].copy()
        result = node.copy()
        result.set("this", self._function(node.this))
        keys = [part for key in node.args.get("partition_by") or () for part in _parts(key)]
        result.set("partition_by", [self.lift(key) if is_collated(key) else self.column(key) for key in keys])
        for part in ("order", "spec"):
            if node.args.get(part) is not None:
                result.set(part, self._inside(node.args[part]))
        if not any(node is one for one in self.foreign):
            return result
        kind = self.translation.argument_type(node)
        self._check(node, kind)
        column = typed_column(f"_ducklake_w{len(self.of_windows)}", kind)
        self.of_windows[node] = column, result
        return column.copy()

    def _function(self, node: exp.Expr) -> exp.Expr:
        """Lifts the arguments of a window's function; the function itself stays in place."""
        if isinstance(node, exp.Filter):
            return exp.Filter(this=self._function(node.this), expression=self._inside(node.expression))
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            return type(node)(this=self._function(node.this))
        return self._inside(node)

    def _check(self, node: exp.Window, kind: DataType) -> None:
        if is_volatile(node):
            raise UnsupportedFeatureError("A window over values that differ by evaluation is not supported on Spark.")
        core = aggregate(node.this)
        for value in core.expressions if core is not None else ():
            argument = value.this if isinstance(value, exp.Order) else value
            if argument is not None:  # as in `rank(ORDER BY x)`
                check_collation(argument, kind)


def _parts(key: exp.Expr) -> list[exp.Expr]:
    inner = key.unnest()
    return list(inner.expressions) if isinstance(inner, exp.Tuple) else [key]


def select(translation: Translating, node: exp.Select, foreign: Sequence[exp.Window]) -> exp.Expr:
    """Translates a query with windows that DuckDB computes.

    Raises:
        UnsupportedFeatureError: DuckDB cannot compute one, or its type does not exist on Spark.
    """
    shown = columns_of(node, "Such a window")
    if node.args.get("distinct") is not None:
        return translation.translate(_distinct(translation, node))
    lifting = _Lifting(translation, foreign)
    items: list[exp.Expr] = [as_column(lifting.item(value), name) for value, name in shown]
    outer = exp.Select(expressions=items)
    notes(outer).outputs = notes(node).outputs
    if (order := node.args.get("order")) is not None:
        order = order.copy()
        for key, written in zip(order.expressions, node.args["order"].expressions, strict=True):
            if not isinstance(written.this, exp.Literal):
                key.set("this", lifting.item(written.this))
    inner = node.copy()
    for part in _AFTER:
        inner.set(part, None)
    columns = lifting.columns or [(number(1), "_ducklake_c0", DataType("int32"))]
    inner.set("expressions", [as_column(value.copy(), name) for value, name, _ in columns])
    notes(inner).outputs = tuple(Output(name, kind) for _, name, kind in columns)
    rows = exp.Subquery(this=translation.translate(inner), alias=_alias("_ducklake_q"))
    fields = [(name, kind) for _, name, kind in columns]
    for keys, windows in _stages(lifting):
        rows = _stage(translation, rows, fields, keys, windows)
        fields += [(column.name, kind) for column, _ in windows if (kind := notes(column).type) is not None]
    notes(rows).is_translated = True
    outer = outer.from_(rows, copy=False)
    outer.set("order", order)
    for part in ("limit", "offset", "with_"):
        if node.args.get(part):
            outer.set(part, node.args[part].copy())
    return translation.translate(outer)


def _distinct(translation: Translating, node: exp.Select) -> exp.Select:
    """Returns DISTINCT as an outer query, which sorts by its own columns."""
    inner, outer = node.copy(), exp.Select()
    for part in ("distinct", "order", "limit", "offset", "with_"):
        inner.set(part, None)
        if node.args.get(part):
            outer.set(part, node.args[part].copy())
    shown = columns_of(node, "Such a window")
    names = [f"_ducklake_d{place}" for place in range(len(shown))]
    kinds = [translation.type_of(value) for value, _ in shown]
    called = zip(names, kinds, (name for _, name in shown), strict=True)
    outer.set("expressions", [as_column(typed_column(own, kind), name) for own, kind, name in called])
    inner.set("expressions", [as_column(value.copy(), own) for own, (value, _) in zip(names, shown, strict=True)])
    notes(inner).outputs = tuple(Output(name, kind) for name, kind in zip(names, kinds, strict=True))
    notes(outer).outputs = notes(node).outputs
    return outer.from_(exp.Subquery(this=inner, alias=_alias("_ducklake_d")), copy=False)


#: Windows with the same partition keys, and the columns of their values.
_Windows = list[tuple[exp.Column, exp.Window]]


def _stages(lifting: _Lifting) -> list[tuple[list[exp.Expr], _Windows]]:
    """Returns the windows, grouped by the keys with which Spark partitions rows."""
    found: list[tuple[list[exp.Expr], _Windows]] = []
    for column, window in lifting.of_windows.values():
        keys = sorted(filter(_is_key, window.args.get("partition_by") or ()), key=lambda key: key.name)
        same = next((windows for others, windows in found if others == keys), None)
        if same is None:
            found.append((keys, [(column, window)]))
        else:
            same.append((column, window))
    return found


def _is_key(key: exp.Expr) -> bool:
    """Returns whether Spark groups by a key as DuckDB does; DuckDB handles the other keys."""
    if not isinstance(key, exp.Column):
        return False
    try:
        check_equal(notes(key).type)
    except UnsupportedFeatureError:
        return False
    return True


def _stage(
    translation: Translating,
    rows: exp.Expr,
    fields: Sequence[tuple[str, DataType]],
    keys: Sequence[exp.Expr],
    windows: _Windows,
) -> exp.Subquery:
    kind = DataType("list", (("element", DataType("struct", tuple(fields))),))
    unpacked = ", ".join(f"u.{quote_identifier(name)} AS {quote_identifier(name)}" for name, _ in fields)
    values = [f"{quote_identifier(name)} := {quote_identifier(name)}" for name, _ in fields]
    values += [f"{quote_identifier(column.name)} := {_sql(window)}" for column, window in windows]
    sql = (
        f"(SELECT list(r) FROM (SELECT struct_pack({', '.join(values)}) AS r FROM "
        f'(SELECT {unpacked} FROM (SELECT unnest("{argument(0)}") AS u))))'
    )
    packed = [part for name, _ in fields for part in (text(name), typed_column(name, None))]
    collected = as_column(call("collect_list", call("named_struct", *packed)), "_ducklake_l")
    grouped = exp.select(collected).from_(rows)
    if keys:
        grouped = grouped.group_by(*(key.copy() for key in keys))
    result = result_type(sql, (kind,), translation.settings)
    made = translation.of_worker(sql, (kind,), result, [typed_column("_ducklake_l", None)])
    back = exp.select(call("inline", made)).from_(exp.Subquery(this=grouped, alias=_alias("_ducklake_g")))
    return exp.Subquery(this=back, alias=_alias("_ducklake_q"))


def _sql(window: exp.Window) -> str:
    return window.sql(dialect=DuckLakeSql, identify=True, normalize_functions=False, comments=False)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))
