"""Translates a bound DuckDB tree to Spark SQL with the same meaning (Spark 4, ANSI mode).

Queries are translated node by node. Spark computes the expressions with a form in `native.py`; all others become
calls of functions that DuckDB evaluates in Spark's workers. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from ducklake_lab.duckdb.evaluation import Evaluation, Settings, result_type
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.plan import SparkQuery
from ducklake_lab.sql.spark import deferring, partitioned, queries
from ducklake_lab.sql.spark.comparing import check_alike, check_collation, check_equal, is_collated, ordered
from ducklake_lab.sql.spark.conditions import asof, join_condition, on_columns, truth
from ducklake_lab.sql.spark.dialect import SparkSql
from ducklake_lab.sql.spark.failing import may_fail
from ducklake_lab.sql.spark.grouped import aggregated
from ducklake_lab.sql.spark.native import form_of
from ducklake_lab.sql.spark.nodes import call, case, number
from ducklake_lab.sql.spark.operands import NO_NANOSECONDS, carried, constant, has_nanoseconds, is_constant
from ducklake_lab.sql.spark.settings import check_settings
from ducklake_lab.sql.spark.stability import check_calls, check_same_for_all, is_volatile
from ducklake_lab.sql.spark.subqueries import among, among_all, check_subqueries
from ducklake_lab.sql.spark.typing import (
    Lifted,
    Typing,
    from_items,
    is_computed_before,
    is_over_list,
    lifted,
    moment,
    quantified,
    written,
)
from ducklake_lab.sql.spark.unions import bring_together
from ducklake_lab.sql.spark.windows import frame, window
from ducklake_lab.sql.types import to_sqlglot

#: Clauses whose parts are translated.
_CLAUSES: tuple[type[exp.Expr], ...] = (
    exp.Identifier, exp.Var, exp.Alias, exp.TableAlias, exp.Star, exp.With, exp.From, exp.Limit, exp.Offset,
    exp.Rollup, exp.Cube, exp.GroupingSets, exp.Order, exp.Distinct, exp.DataType,
)  # fmt: skip
#: Nodes with keys of GROUP BY; elsewhere a tuple is a value.
_GROUPINGS = (exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)
#: The parts of a query that are evaluated before its columns, in order.
_SOURCES = ("with_", "from_", "joins", "where", "group")
_MOMENTS = {
    "today": "current_date",
    "current_date": "current_date",
    "current_localtimestamp": "localtimestamp",
}


def spark_sql(tree: exp.Expr, settings: Settings) -> SparkQuery:
    """Translates a bound query to Spark SQL; consumes `tree`.

    Raises:
        UnsupportedFeatureError: neither Spark nor a worker can compute a part.
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
    """The translation of one query.

    Attributes:
        evaluations: expressions that workers evaluate, by name.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.typing = Typing(settings)
        self.type_of = self.typing.of
        self.evaluations: dict[str, Evaluation] = {}
        # computed GROUP BY keys, which the query refers to instead of computing them again
        self._keys: list[exp.Expr] = []
        # the relations of each query in translation, outermost first
        self._relations: list[set[str]] = []

    # -- queries -----------------------------------------------------------------------------------

    def translate(self, node: exp.Expr) -> exp.Expr:
        """Returns the Spark tree of a node, built from the node's own parts."""
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
        partitioned.write_out(node)
        if (foreign := self._foreign_windows(node)) and isinstance(node, exp.Select):
            return self._over_partitions(node, foreign)
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
            # ORDER BY before the columns, because it may name their positions
            for key in sorted((key for key in node.args if key not in _SOURCES), key=lambda key: key != "order"):
                self.part(node, key)
        finally:
            self._keys = around
            self._relations.pop()
        return node

    def _foreign_windows(self, node: exp.Expr) -> list[exp.Window]:
        """Returns the windows of a query that Spark does not compute."""
        windows = list(partitioned.windows_of(node))
        return [one for one in windows if not self._takes(one, node)]

    def _takes(self, one: exp.Window, node: exp.Expr) -> bool:
        known, keys = dict(self.evaluations), self._keys
        self._keys = self._grouped_by(node)
        try:
            window(self, one.copy())
        except UnsupportedFeatureError:
            return False
        finally:
            self.evaluations, self._keys = known, keys
        return True

    def _over_partitions(self, node: exp.Select, foreign: Sequence[exp.Window]) -> exp.Expr:
        keys, self._keys = self._keys, self._grouped_by(node)
        try:
            return partitioned.select(self, node, foreign)
        finally:
            self._keys = keys

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
        return truth(self, node)

    def join(self, node: exp.Join) -> exp.Expr:
        if node.args.get("method") and node.args.get("using"):
            on_columns(node, notes(node).joined_by)
        for columns in notes(node).joined_by if node.args.get("using") else ():
            check_alike(self, [self.type_of(column) for column in columns])
        if node.args.get("method"):
            asof(self, node)
        else:
            node.set("this", self.translate(node.this))
        if node.args.get("on") is not None:
            join_condition(self, node)
        return node

    def subquery(self, node: exp.Subquery) -> exp.Expr:
        return node if notes(node).is_translated else queries.subquery(node, self.children)

    def set_operation(self, node: exp.SetOperation) -> exp.Expr:
        if (limited := queries.limited_set(node, self.type_of)) is not None:
            return self.translate(limited)
        bring_together(node)
        if node.args.get("distinct") or isinstance(node, exp.Except | exp.Intersect):
            for output in notes(node).outputs or ():
                check_equal(output.type)
        return self.children(node)

    def limit(self, node: exp.Limit) -> exp.Expr:
        node.set("limit_options", None)
        check_same_for_all(node, "LIMIT")
        return self.children(node)

    def cte(self, node: exp.CTE) -> exp.Expr:
        node.set("materialized", None)  # Spark materializes one if necessary
        queries.check_recursion(node)
        return self.children(node)

    def values(self, node: exp.Values) -> exp.Expr:
        kinds = notes(node).value_types
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
        """Translates an expression, for Spark or a worker."""
        if isinstance(node, exp.Anonymous) and node.name.lower() == "unnest":
            return call("explode", self.scalar(node.expressions[0]))
        found = self.native(node)
        return self.evaluated(node) if found is None else found

    def native(self, node: exp.Expr) -> exp.Expr | None:
        """Returns a node in Spark's form; None if DuckDB must compute it."""
        if isinstance(node, exp.Paren):
            inner = self.native(node.this)
            return exp.Paren(this=inner) if inner is not None else None
        if self.is_argument(node):
            return self.argument(node)
        if is_collated(node) or is_over_list(node):
            return None
        if is_constant(node):
            kind = self.type_of(node)
            return constant(self, node, kind) if kind is not None else None
        form = form_of(node, self.settings)
        return form(self, node) if form is not None else None

    def is_argument(self, node: exp.Expr) -> bool:
        return is_computed_before(node) or any(node == key for key in self._keys)

    def argument(self, node: exp.Expr) -> exp.Expr:
        """Translates a node that is computed before its enclosing expression."""
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
                return exp.Paren(this=exp.Exists(this=self.translate(node.this.copy())))
            if isinstance(node, exp.Binary) and quantified(node) is not None:
                return among_all(self, node)
            if (name := moment(node)) is not None:
                return call(_MOMENTS.get(name, "current_timestamp"))
            return aggregated(self, node, lambda core: core, self.type_of(node))
        keys, self._keys = self._keys, []
        try:
            return self.scalar(node)
        finally:
            self._keys = keys

    def evaluated(self, node: exp.Expr) -> exp.Expr:
        """Returns a call for an expression that DuckDB evaluates in a worker."""
        kind = self.type_of(node)
        check_collation(node, kind)
        source = self.type_of(node.this) if isinstance(node, exp.Cast) else None
        if kind is not None and has_nanoseconds(kind) and (source is None or source.name not in ("date", *TIMESTAMPS)):
            raise UnsupportedFeatureError(NO_NANOSECONDS)
        deferred = not is_volatile(node) and may_fail(node, self.type_of)
        return self._called(lifted(node, self.is_argument), volatile=is_volatile(node), deferred=deferred)

    def _called(self, found: Lifted, *, volatile: bool, deferred: bool) -> exp.Expr:
        if any(part.name.lower() == "unnest" for part in found.sql_tree.find_all(exp.Anonymous)):
            raise UnsupportedFeatureError("unnest inside of an expression is not supported on Spark; use it in FROM.")
        kinds = tuple(self.argument_type(part) for part in found.arguments)
        self.check_scope(found)
        arguments = [self.argument(part) for part in found.arguments]
        if len(arguments) > 1:
            arguments = [_not_compared(part) if isinstance(part, exp.Query) else part for part in arguments]
        result = result_type(found.sql, kinds, self.settings)
        columns = tuple(part.name if isinstance(part, exp.Column) else "" for part in found.arguments)
        return self.of_worker(
            found.sql,
            kinds,
            result,
            arguments or [number(1)],
            volatile=volatile,
            deferred=deferred,
            columns=columns,
            written=tuple(map(written, found.arguments)),
        )

    def of_worker(
        self,
        sql: str,
        kinds: Sequence[DataType],
        result: DataType,
        arguments: Sequence[exp.Expr],
        *,
        volatile: bool = False,
        deferred: bool = True,
        columns: tuple[str, ...] = (),
        written: tuple[str, ...] = (),
    ) -> exp.Expr:
        """The value that a worker gives for arguments of some types; errors call them by `columns` and `written`."""
        carried(result)  # or it is refused
        deferred = deferred and deferring.is_fit(arguments)
        evaluation = Evaluation(sql, tuple(kinds), result, self.settings, volatile, deferred, columns, written)
        self.evaluations[evaluation.name] = evaluation
        made = call(evaluation.name, *arguments)
        return deferring.used(made) if deferred else made

    def argument_type(self, node: exp.Expr) -> DataType:
        kind = self.type_of(node)
        if kind is None:
            raise UnsupportedFeatureError(
                f"Computing with {node.sql(dialect='duckdb')}, whose type is not known, is not supported on Spark."
            )
        if has_nanoseconds(kind):
            raise UnsupportedFeatureError(
                "Computing with TIMESTAMP_NS is not supported on Spark, which has microseconds; cast it in a table."
            )
        return kind

    def check_scope(self, found: Lifted) -> None:
        columns = [part for part in found.arguments if isinstance(part, exp.Column)]
        tables = {column.table.casefold() for column in columns if column.table}
        if len(self._relations) > 1 and tables & self._relations[-1] and tables - self._relations[-1]:
            raise UnsupportedFeatureError(
                f"An expression over columns of a query and of the one around it is not supported on Spark: {found.sql}"
            )


def _not_compared(subquery: exp.Expr) -> exp.Expr:
    """Wraps a subquery next to other arguments: Spark compares deterministic arguments, which fails for queries."""
    return case(exp.GTE(this=call("spark_partition_id"), expression=number(0)), subquery)


_HANDLERS: dict[Any, Callable[[Translation, Any], exp.Expr]] = {
    exp.Select: Translation.select,
    exp.Union: Translation.set_operation,
    exp.Except: Translation.set_operation,
    exp.Intersect: Translation.set_operation,
    exp.Subquery: lambda self, node: self.subquery(node),
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
