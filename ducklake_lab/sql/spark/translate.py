"""A bound DuckDB tree as Spark SQL of the same meaning (Spark 4, ANSI mode).

Queries are translated node by node. Of their expressions Spark computes the forms of `native.py`; all others become calls
of functions that DuckDB evaluates in Spark's workers. What neither can do is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from ducklake_lab.duckdb.evaluation import Evaluation, Settings, result_type
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.sql.plan import SparkQuery
from ducklake_lab.sql.scope import JOINED_BY, OUTPUTS
from ducklake_lab.sql.spark import aggregates, queries
from ducklake_lab.sql.spark.comparing import check_alike, check_collation, check_equal, is_collated, named, ordered
from ducklake_lab.sql.spark.dialect import SparkSql
from ducklake_lab.sql.spark.native import form_of
from ducklake_lab.sql.spark.nodes import call, case, number, text
from ducklake_lab.sql.spark.operands import carried, constant, is_constant
from ducklake_lab.sql.spark.settings import check_settings
from ducklake_lab.sql.spark.stability import check_calls, check_same_for_all, is_volatile, volatile_call
from ducklake_lab.sql.spark.subqueries import among, check_subqueries
from ducklake_lab.sql.spark.typing import (
    TYPES,
    Lifted,
    Type,
    Typing,
    from_items,
    is_computed_before,
    lifted,
    moment,
)
from ducklake_lab.sql.spark.windows import frame, window
from ducklake_lab.sql.types import to_sqlglot

#: Clauses, whose parts are translated.
_CLAUSES: tuple[type[exp.Expr], ...] = (
    exp.Identifier, exp.Var, exp.Alias, exp.TableAlias, exp.Star, exp.With, exp.From, exp.Limit, exp.Offset,
    exp.Rollup, exp.Cube, exp.GroupingSets, exp.Order, exp.Distinct, exp.DataType,
)  # fmt: skip
#: What lists keys of GROUP BY; a tuple elsewhere is a value.
_GROUPINGS = (exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)
#: The parts of a query that are computed before its columns, in their order.
_SOURCES = ("with_", "from_", "joins", "where", "group")
_MOMENTS = {
    "today": "current_date",
    "current_date": "current_date",
    "current_localtimestamp": "localtimestamp",
}

_NO_NANOSECONDS = "Computing TIMESTAMP_NS is not supported on Spark, which has microseconds."


def spark_sql(tree: exp.Expr, settings: Settings) -> SparkQuery:
    """The Spark SQL of a bound query; `tree` is used up.

    Raises:
        UnsupportedFeatureError: neither Spark nor a worker can do what it asks for.
    """
    check_settings(settings)
    check_calls(tree)
    check_subqueries(tree)
    queries.order_joins(tree)
    translation = Translation(settings)
    try:
        translation.typing.query(tree)
        translated = translation.translate(tree)
    except BindError as error:
        raise UnsupportedFeatureError(f"This query cannot run on Spark: {error}") from error
    try:
        statement = translated.sql(
            dialect=SparkSql,
            identify=True,
            normalize_functions=False,
            unsupported_level=ErrorLevel.RAISE,
            comments=False,
        )
    except UnsupportedError as error:
        raise UnsupportedFeatureError(f"This query cannot run on Spark: {' '.join(str(error).split())}") from error
    if "${" in statement:
        raise UnsupportedFeatureError('A name with "${" in it cannot be used on Spark, which would replace it.')
    return SparkQuery(statement, tuple(translation.evaluations.values()))


class Translation:
    """One query on its way to Spark.

    Attributes:
        evaluations: by name, what workers have to evaluate.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.typing = Typing(settings)
        self.type_of = self.typing.of
        self.evaluations: dict[str, Evaluation] = {}
        # computed keys of GROUP BY, which its query may use and not compute again
        self._keys: list[exp.Expr] = []
        # the relations of each query that is being translated, from the outermost inwards
        self._relations: list[set[str]] = []

    # -- queries -----------------------------------------------------------------------------------

    def translate(self, node: exp.Expr) -> exp.Expr:
        """The Spark tree for a node; made from the node's own parts."""
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        if isinstance(node, _CLAUSES):
            return self.children(node)
        return self.scalar(node)

    def children(self, node: exp.Expr) -> exp.Expr:
        """Translates the children of a node in place."""
        for key in list(node.args):
            self.part(node, key)
        return node

    def part(self, node: exp.Expr, key: str) -> None:
        value = node.args.get(key)
        if isinstance(value, exp.Expr):
            node.set(key, self.translate(value))
        elif isinstance(value, list):
            node.set(key, [self.translate(item) if isinstance(item, exp.Expr) else item for item in value])

    def select(self, node: exp.Select) -> exp.Expr:
        return queries.select(node, self.select_parts, self.type_of)

    def select_parts(self, node: exp.Expr) -> exp.Expr:
        if node.args.get("distinct") is not None:
            for item in node.expressions:
                check_equal(self.type_of(item))
        keys = self._grouped_by(node)
        around, self._keys = self._keys, []
        self._relations.append({item.alias_or_name.casefold() for item in from_items(node)})
        try:
            for key in _SOURCES:
                self.part(node, key)
            self._keys = keys
            # ORDER BY before the columns, whose positions it may name
            for key in sorted((key for key in node.args if key not in _SOURCES), key=lambda key: key != "order"):
                self.part(node, key)
        finally:
            self._keys = around
            self._relations.pop()
        return node

    def _grouped_by(self, node: exp.Expr) -> list[exp.Expr]:
        group = node.args.get("group")
        found: list[exp.Expr] = []
        for item in group.find_all(exp.Expr) if group is not None else ():
            if isinstance(item.parent, exp.Group | exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple | exp.Paren):
                place = int(item.name) if isinstance(item, exp.Literal) and item.name.isdigit() else 0
                key = node.expressions[place - 1] if 0 < place <= len(node.expressions) else item
                if isinstance(key, exp.Tuple | exp.Paren | exp.Rollup | exp.Cube | exp.GroupingSets):
                    continue
                check_equal(self.type_of(key))
                key = key.unalias().unnest()
                if not isinstance(key, exp.Column | exp.Literal):
                    found.append(key.copy())
        return found

    def condition(self, node: exp.Where | exp.Having) -> exp.Expr:
        node.set("this", self.truth(node.this))
        return node

    def truth(self, node: exp.Expr) -> exp.Expr:
        """A condition, each part of an AND on its own: what Spark computes stays a filter of its own."""
        if isinstance(node, exp.And):
            return exp.And(this=self.truth(node.this), expression=self.truth(node.expression))
        if isinstance(node, exp.Paren):
            return exp.Paren(this=self.truth(node.this))
        kind = self.type_of(node)
        if kind is not None and kind.name != "boolean":
            node = exp.Cast(this=node.copy(), to=to_sqlglot(DataType("boolean")))
        found = self.scalar(node)
        return exp.Paren(this=found) if isinstance(found, exp.Or) else found

    def join(self, node: exp.Join) -> exp.Expr:
        for columns in node.meta.get(JOINED_BY, ()):
            check_alike(self, [self.type_of(column) for column in columns])
        node.set("this", self.translate(node.this))
        condition = node.args.get("on")
        if condition is not None:
            check_same_for_all(condition, "the condition of a join")
            outer = node.side or node.kind.upper() in ("SEMI", "ANTI")
            node.set("on", self.truth(condition))
            for found in node.args["on"].find_all(exp.Anonymous) if outer else ():
                if found.name in self.evaluations and len({c.table for c in found.find_all(exp.Column)}) > 1:
                    raise UnsupportedFeatureError(
                        f"This condition of a {node.side or node.kind} JOIN is not supported on Spark: "
                        f"{self.evaluations[found.name].sql} uses both sides."
                    )
        return node

    def set_operation(self, node: exp.SetOperation) -> exp.Expr:
        queries.bring_together(node)
        if node.args.get("distinct") or isinstance(node, exp.Except | exp.Intersect):
            for output in node.meta.get(OUTPUTS) or ():
                check_equal(output.type)
        return self.children(node)

    def limit(self, node: exp.Limit) -> exp.Expr:
        options = node.args.get("limit_options")
        if options is not None and options.args.get("percent"):
            raise UnsupportedFeatureError("LIMIT in percent is not supported on Spark.")
        node.set("limit_options", None)
        check_same_for_all(node, "LIMIT")
        return self.children(node)

    def cte(self, node: exp.CTE) -> exp.Expr:
        node.set("materialized", None)  # Spark computes one once where that matters
        return self.children(node)

    def values(self, node: exp.Values) -> exp.Expr:
        kinds = node.meta.get(TYPES, ())
        rows = [
            [
                cell if kind is None or self.type_of(cell) == kind else exp.Cast(this=cell.copy(), to=to_sqlglot(kind))
                for cell, kind in zip(row.expressions, kinds, strict=True)
            ]
            for row in node.expressions
        ]
        found = [[self.native(cell) for cell in row] for row in rows]
        if any(cell is None or cell.find(exp.Query, exp.Column) for row in found for cell in row):
            return queries.rows_of_list(node, self.scalar(queries.as_list(rows)))
        for row, cells in zip(node.expressions, found, strict=True):
            row.set("expressions", cells)
        return node

    # -- expressions -------------------------------------------------------------------------------

    def scalar(self, node: exp.Expr) -> exp.Expr:
        """An expression, by Spark or by a worker."""
        if isinstance(node, exp.Anonymous) and node.name.lower() == "unnest":
            return call("explode", self.scalar(node.expressions[0]))
        found = self.native(node)
        return self.evaluated(node) if found is None else found

    def native(self, node: exp.Expr) -> exp.Expr | None:
        """A node as Spark computes it; None where DuckDB has to."""
        if isinstance(node, exp.Paren):
            inner = self.native(node.this)
            return exp.Paren(this=inner) if inner is not None else None
        if self._is_argument(node):
            return self.argument(node)
        if is_collated(node):
            return None
        if is_constant(node):
            kind = self.type_of(node)
            return constant(self, node, kind) if kind is not None else None
        form = form_of(node, self.settings)
        return form(self, node) if form is not None else None

    def _is_argument(self, node: exp.Expr) -> bool:
        return is_computed_before(node) or any(node == key for key in self._keys)

    def argument(self, node: exp.Expr) -> exp.Expr:
        """What is computed before the expressions it stands in."""
        if isinstance(node, exp.Column):
            return node.copy()
        if is_computed_before(node):
            if isinstance(node, exp.Window):
                return window(self, node)
            if isinstance(node, exp.In):
                return among(self, node)
            if isinstance(node, exp.Query):
                return self.translate(node.copy())
            if isinstance(node, exp.Exists):
                return exp.Exists(this=self.translate(node.this.copy()))
            if (name := moment(node)) is not None:
                return call(_MOMENTS.get(name, "current_timestamp"))
            return self.aggregated(node, lambda core: core, self.type_of(node))
        keys, self._keys = self._keys, []
        try:
            return self.scalar(node)
        finally:
            self._keys = keys

    def evaluated(self, node: exp.Expr) -> exp.Expr:
        """A call of what DuckDB evaluates in a worker."""
        kind = self.type_of(node)
        check_collation(node, kind)
        source = self.type_of(node.this) if isinstance(node, exp.Cast) else None
        if kind is not None and _has_nanoseconds(kind) and (source is None or source.name not in ("date", *TIMESTAMPS)):
            raise UnsupportedFeatureError(_NO_NANOSECONDS)
        return self._called(lifted(node, self._is_argument), volatile=is_volatile(node))

    def _called(self, found: Lifted, *, volatile: bool = False) -> exp.Expr:
        if any(part.name.lower() == "unnest" for part in found.sql_tree.find_all(exp.Anonymous)):
            raise UnsupportedFeatureError("unnest inside of an expression is not supported on Spark; use it in FROM.")
        kinds = [self._argument_type(part) for part in found.arguments]
        result = result_type(found.sql, tuple(kinds), self.settings)
        evaluation = Evaluation(found.sql, tuple(kinds), result, self.settings, volatile)
        carried(result)  # or it is refused
        self._check_scope(found)
        self.evaluations[evaluation.name] = evaluation
        arguments = [self.argument(part) for part in found.arguments]
        if len(arguments) > 1:
            arguments = [_not_compared(part) if isinstance(part, exp.Query) else part for part in arguments]
        return call(evaluation.name, *(arguments or [number(1)]))

    def _argument_type(self, node: exp.Expr) -> DataType:
        kind = self.type_of(node)
        if kind is None:
            raise UnsupportedFeatureError(
                f"Computing with {node.sql(dialect='duckdb')}, whose type is not known, is not supported on Spark."
            )
        if _has_nanoseconds(kind):
            raise UnsupportedFeatureError(
                "Computing with TIMESTAMP_NS is not supported on Spark, which has microseconds; cast it in a table."
            )
        return kind

    def _check_scope(self, found: Lifted) -> None:
        columns = [part for part in found.arguments if isinstance(part, exp.Column)]
        tables = {column.table.casefold() for column in columns if column.table}
        if len(self._relations) > 1 and tables & self._relations[-1] and tables - self._relations[-1]:
            raise UnsupportedFeatureError(
                f"An expression over columns of a query and of the one around it is not supported on Spark: {found.sql}"
            )

    # -- aggregates --------------------------------------------------------------------------------

    def aggregated(self, node: exp.Expr, wrap: aggregates.Wrap, result: Type, *, over: bool = False) -> exp.Expr:
        """An aggregate or window function; `wrap` surrounds its core."""
        whole = node
        core, nulls, condition = node, None, None
        while not isinstance(core, exp.Anonymous):
            if isinstance(core, exp.Filter):
                check_same_for_all(core.expression, "FILTER")
                condition = self.truth(core.expression.this.copy())
            else:
                nulls = type(core)
            core = core.this
        written = [part.copy() for part in core.expressions]
        if written and isinstance(written[-1], exp.IgnoreNulls | exp.RespectNulls):
            nulls, written[-1] = type(written[-1]), written[-1].this
        order = written[-1] if written and isinstance(written[-1], exp.Order) else None
        if order is not None:
            written[-1] = order.this

        def around(inner: exp.Expr) -> exp.Expr:
            inner = nulls(this=inner) if nulls is not None else inner
            if condition is not None:
                inner = exp.Filter(this=inner, expression=exp.Where(this=condition.copy()))
            return wrap(inner)

        values = [
            value for part in written for value in (part.expressions if isinstance(part, exp.Distinct) else [part])
        ]
        types = [None if isinstance(value, exp.Star) else self.type_of(value) for value in values]
        for value, kind in zip(values, types, strict=True):
            check_collation(value, kind)
        name = core.name.lower()
        if name in aggregates.FORMS and (over or volatile_call(core) is None):
            args = [
                exp.Distinct(expressions=[self.scalar(named(v.copy())) for v in part.expressions])
                if isinstance(part, exp.Distinct)
                else part
                if isinstance(part, exp.Star)
                else self.scalar(part)
                for part in written
            ]
            found = aggregates.native(
                aggregates.Aggregate(name, args, types, result, around, over, self._digits(values)),
                order,
                by_nulls=nulls is not None,
            )
            if found is not None:
                return found
        if over:
            raise aggregates.refuse_over(name)
        return self._by_group(core, around, whole)

    def _digits(self, values: Sequence[exp.Expr]) -> int:
        """Digits of the decimals that a function's first argument adds up: those of the values, where it is their sum.

        However the rows are grouped, their sums add up to no more than the rows.
        """
        value = values[0] if values else exp.Star()
        summed = value.expressions[0] if isinstance(value, exp.Anonymous) and value.name.lower() == "sum" else value
        for part in (summed, value):
            kind = None if isinstance(part, exp.Star | exp.Distinct) else self.type_of(part)
            if kind is not None and kind.decimal is not None:
                return kind.decimal[0]
        return 0

    def _by_group(self, node: exp.Anonymous, around: aggregates.Wrap, whole: exp.Expr) -> exp.Expr:
        """An aggregate that DuckDB computes of the values of each group."""
        own = iter(range(1))
        found = lifted(node, lambda part: is_computed_before(part) and next(own, None) is None)
        self._check_scope(found)
        kinds = [self._argument_type(part) for part in found.arguments]
        fields = tuple((f"_ducklake_{i}", kind) for i, kind in enumerate(kinds)) or (("one", DataType("int32")),)
        rows = DataType("list", (("element", DataType("struct", fields)),))
        shown = ", ".join(f"u.{quote_identifier(name)} AS {quote_identifier(name)}" for name, _ in fields)
        sql = f'(SELECT {found.sql} FROM (SELECT {shown} FROM (SELECT unnest("_ducklake_0") AS u)))'
        result = result_type(sql, (rows,), self.settings)
        if node.name.lower() in aggregates.NEVER_NULL:
            sql = f"coalesce({sql}, CAST(0 AS {result.sql()}))"
        if _has_nanoseconds(result):
            raise UnsupportedFeatureError(_NO_NANOSECONDS)
        carried(result)
        evaluation = Evaluation(sql, (rows,), result, self.settings)
        self.evaluations[evaluation.name] = evaluation
        packed: list[exp.Expr] = []
        for (name, _), part in zip(fields, found.arguments or (exp.Literal.number(1),), strict=True):
            packed += [text(name), self.argument(part) if found.arguments else part]
        return call(evaluation.name, around(call("collect_list", call("named_struct", *packed))))


def _not_compared(subquery: exp.Expr) -> exp.Expr:
    """A subquery that may be an argument beside others: Spark compares those that are deterministic, which fails of queries."""
    return case(exp.GTE(this=call("spark_partition_id"), expression=number(0)), subquery)


def _has_nanoseconds(kind: DataType) -> bool:
    return any(part.name == "timestamp_ns" for part in kind.walk())


_HANDLERS: dict[Any, Callable[[Translation, Any], exp.Expr]] = {
    exp.Select: Translation.select,
    exp.Union: Translation.set_operation,
    exp.Except: Translation.set_operation,
    exp.Intersect: Translation.set_operation,
    exp.Subquery: lambda self, node: queries.subquery(node, self.children),
    exp.Table: lambda self, node: queries.table(node, self.translate, self.children, self.type_of),
    exp.Unnest: lambda self, node: queries.unnest(node, self.translate),
    exp.Where: Translation.condition,
    exp.Having: Translation.condition,
    exp.Join: Translation.join,
    exp.Ordered: ordered,
    exp.Limit: Translation.limit,
    exp.Fetch: lambda self, node: self.limit(exp.Limit(expression=node.args.get("count") or number(1))),
    exp.CTE: Translation.cte,
    exp.Values: Translation.values,
    exp.WindowSpec: lambda self, node: frame(self, node),
    exp.Window: lambda self, node: window(self, node) if isinstance(node.this, exp.Identifier) else self.scalar(node),
    exp.Group: lambda self, node: queries.group(node, self.translate, self.part),
    exp.Tuple: lambda self, node: self.children(node) if isinstance(node.parent, _GROUPINGS) else self.scalar(node),
}
