"""Types of a bound query's expressions. DuckDB itself determines each type from arguments with known types.

Nodes that are computed before an expression are its arguments, see `lifted`: columns, subqueries, aggregates
and window functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import NULL, Settings, argument, is_aggregate, result_type
from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.bind.from_clause import is_join
from ducklake_lab.sql.bind.star_expansion import gives_fields
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.kinds import kind_of
from ducklake_lab.sql.notes import Output, notes

Type = DataType | None
#: Types of columns by folded name, by the folded name of their relation; "" for columns without a relation.
Scopes = Mapping[str, Mapping[str, Type]]
Ctes = Mapping[str, Sequence[Output]]

_TIMESTAMPTZ = DataType("timestamptz")
#: Functions of the current time, and their types.
MOMENTS = {
    "now": _TIMESTAMPTZ,
    "get_current_timestamp": _TIMESTAMPTZ,
    "transaction_timestamp": _TIMESTAMPTZ,
    "current_timestamp": _TIMESTAMPTZ,
    "today": DataType("date"),
    "current_date": DataType("date"),
    "current_localtimestamp": DataType("timestamp"),
}


def moment(node: exp.Expr) -> str | None:
    """Returns the current-time function that a node is; None for other nodes."""
    if isinstance(node, exp.CurrentTimestamp):
        return "now"
    if isinstance(node, exp.CurrentDate):
        return "today"
    if isinstance(node, exp.Localtimestamp):
        return "current_localtimestamp"
    name = node.name.lower() if isinstance(node, exp.Anonymous) and not node.expressions else ""
    return name if name in MOMENTS else None


def aggregate(node: exp.Expr) -> exp.Anonymous | None:
    """Returns the call of an aggregate without FILTER and NULLS modifiers; None for other nodes."""
    while isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node if isinstance(node, exp.Anonymous) and is_aggregate(node.name) else None


def quantified(node: exp.Expr | None) -> exp.Expr | None:
    """Returns the ANY or ALL over a query in a comparison; None for other nodes."""
    right = node.expression if isinstance(node, exp.Binary) else None
    return right if isinstance(right, exp.Any | exp.All) and isinstance(right.this.unnest(), exp.Query) else None


def is_over_list(node: exp.Expr | None) -> bool:
    """Returns whether a node compares with ANY or ALL over a list, which DuckDB alone computes."""
    right = node.expression if isinstance(node, exp.Binary) else None
    is_call = isinstance(right, exp.Anonymous) and right.name.casefold() in ("any", "all", "some")
    return is_call or (isinstance(right, exp.Any | exp.All) and quantified(node) is None)


def is_computed_before(node: exp.Expr) -> bool:
    """Returns whether a node's value is an argument of its enclosing expression."""
    if isinstance(node, exp.Column | exp.Query | exp.Exists | exp.Window):
        return True
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if quantified(node) is not None:
        return True
    return moment(node) is not None or aggregate(node) is not None


def written(argument: exp.Expr) -> str:
    """Returns the SQL of an argument for errors: queries as written, columns by their bare names; "" if unknown."""

    def shown(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Query):
            return exp.Var(this=notes(part).written_query or "")
        return exp.column(part.this.copy()) if isinstance(part, exp.Column) else part

    queries = [part for part in argument.find_all(exp.Query) if part.find_ancestor(exp.Query) is None]
    if any(notes(part).written_query is None for part in queries):
        return ""
    return argument.transform(shown).sql(dialect=DuckLakeSql, normalize_functions=False, comments=False)


@dataclass(frozen=True)
class Lifted:
    """An expression over arguments.

    Attributes:
        sql_tree: the expression; its nodes are not shared.
        arguments: the arguments, as in the original tree.
    """

    sql_tree: exp.Expr
    arguments: tuple[exp.Expr, ...]

    @cached_property
    def sql(self) -> str:
        """The expression in DuckDB's SQL."""
        return self.sql_tree.sql(
            dialect=DuckLakeSql, copy=False, identify=True, normalize_functions=False, comments=False
        )


def lifted(node: exp.Expr, is_argument: Callable[[exp.Expr], bool] = is_computed_before) -> Lifted:
    """Returns the expression of a node over its arguments."""
    found: list[exp.Expr] = []

    def replaced(part: exp.Expr) -> exp.Expr:
        if not is_argument(part):
            return part
        place = next((i for i, other in enumerate(found) if other == part), len(found))
        if place == len(found):
            found.append(part)
        return exp.column(exp.to_identifier(argument(place), quoted=True))

    return Lifted(node.transform(replaced), tuple(found))


class Typing:
    """Notes the types of all columns of a bound query, from the innermost query outwards."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def of(self, node: exp.Expr) -> Type:
        """Returns the type of an expression whose columns have noted types; None if a column's type is unknown.

        Raises:
            BindError: DuckDB does not know a function, or refuses its arguments.
            UnsupportedFeatureError: lakes have no such type.
        """
        if isinstance(node, exp.Paren | exp.Alias):
            return self.of(node.this)
        if isinstance(node, exp.Column):
            return kind_of(node)
        if isinstance(node, exp.Query):
            outputs = notes(node).outputs
            return outputs[0].type if outputs and len(outputs) == 1 else None
        if (
            isinstance(node, exp.Exists | exp.In | exp.Boolean | exp.Not | exp.Connector)
            or quantified(node) is not None
        ):
            return DataType("boolean")
        if (name := moment(node)) is not None:
            return MOMENTS[name]
        if isinstance(node, exp.Window):
            return self._aggregated(node)
        if (call := aggregate(node)) is not None:
            if call.name.lower() in ("grouping", "grouping_id"):
                return DataType("int64")
            return self._aggregated(node)
        found = lifted(node)
        return self._asked(found.sql, [self.of(part) for part in found.arguments])

    def _aggregated(self, node: exp.Expr) -> Type:
        """Returns the type of an aggregate or window function from its own arguments."""
        shell = exp.Window(this=node.this.copy(), over="OVER") if isinstance(node, exp.Window) else node
        own, part = 1, shell
        while isinstance(part, exp.Window | exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            own, part = own + 1, part.this
        calls = iter(range(own))
        found = lifted(shell, lambda part: is_computed_before(part) and next(calls, None) is None)
        return self._asked(found.sql, [self.of(part) for part in found.arguments])

    def _asked(self, sql: str, kinds: Sequence[Type]) -> Type:
        known = tuple(kind for kind in kinds if kind is not None)
        return result_type(sql, known, self.settings) if len(known) == len(kinds) else None

    # Queries

    def query(self, node: exp.Expr, scopes: Scopes | None = None, ctes: Ctes | None = None) -> Sequence[Output]:
        """Notes the types of a query's columns; returns its outputs."""
        scopes = scopes or {}
        ctes = self._with(node, scopes, ctes or {})
        if isinstance(node, exp.Subquery):
            outputs = self.query(node.this, scopes, ctes)
            self._expressions(node, {**scopes, "": _by_name(outputs)}, ctes)
        elif isinstance(node, exp.SetOperation):
            sides = [self.query(side, scopes, ctes) for side in (node.this, node.expression)]
            outputs = self._united(node, sides)
            self._expressions(node, {**scopes, "": _by_name(outputs)}, ctes)
        else:
            outputs = self._select(node, scopes, ctes)
        notes(node).outputs = tuple(outputs)
        return outputs

    def _with(self, node: exp.Expr, scopes: Scopes, ctes: Ctes) -> Ctes:
        clause = node.args.get("with_")
        known = dict(ctes)
        if clause is None:
            return known
        for cte in clause.expressions:
            body, folded = cte.this, cte.alias.casefold()
            if clause.args.get("recursive") and isinstance(body, exp.SetOperation):
                anchor = self.query(body.this, scopes, known)
                known[folded] = _renamed(anchor, cte)
                self.query(body.expression, scopes, known)
                notes(body).outputs = tuple(anchor)
            else:
                known[folded] = _renamed(self.query(body, scopes, known), cte)
        return known

    def _united(self, node: exp.SetOperation, sides: Sequence[Sequence[Output]]) -> Sequence[Output]:
        left, right = sides
        if node.args.get("by_name"):
            others = _by_name(right)
            own = {output.name.casefold() for output in left}
            both = [
                replace(one, type=self._common(one.type, others.get(one.name.casefold(), one.type))) for one in left
            ]
            return [*both, *(output for output in right if output.name.casefold() not in own)]
        return [replace(one, type=self._common(one.type, other.type)) for one, other in zip(left, right, strict=False)]

    def _common(self, one: Type, other: Type) -> Type:
        if one is None or other is None or one == other:
            return one if one == other else None
        if NULL in (one, other):
            return other if one == NULL else one
        union = f'SELECT "{argument(0)}" AS v UNION ALL SELECT "{argument(1)}"'
        try:
            return result_type(union, (one, other), self.settings)
        except DuckLakeError as error:
            raise UnsupportedFeatureError(f"Rows of {one.sql()} and {other.sql()} do not meet on Spark.") from error

    def _select(self, node: exp.Expr, scopes: Scopes, ctes: Ctes) -> Sequence[Output]:
        inner = dict(scopes)
        merged: dict[str, Type] = {}
        items = from_items(node)
        for item in items:
            found = self._item(item, inner, ctes)
            if found is not None:
                inner[item.alias_or_name.casefold()] = _by_name(found)
            join = item.parent if isinstance(item.parent, exp.Join) else exp.Join()
            for columns in notes(join).joined_by:
                for column in columns:
                    self._note(column, inner, ctes)
                name, first, last = columns[0].name.casefold(), self.of(columns[0]), self.of(columns[-1])
                if join.side.upper() == "RIGHT":
                    merged[name] = last
                elif join.side.upper() == "FULL":
                    merged[name] = self._common(merged.get(name, first), last)
                else:
                    merged.setdefault(name, first)
        inner[""] = merged
        for item in items:
            for join in item.args.get("joins") or ():
                self._note(join.args.get("on"), inner, ctes)
        self._expressions(node, inner, ctes)
        if any(gives_fields(item.unalias()) for item in node.expressions):
            raise UnsupportedFeatureError("unnest of a struct is not supported on Spark; select its fields: s.*.")
        written = notes(node).outputs or ()
        if len(written) != len(node.expressions):
            return written
        return [replace(output, type=self.of(item)) for output, item in zip(written, node.expressions, strict=True)]

    def _item(self, item: exp.Expr, scopes: Scopes, ctes: Ctes) -> Sequence[Output] | None:
        """Returns the columns of a subquery, CTE, VALUES or UNNEST in FROM; None for a source, which has them."""
        if isinstance(item, exp.Subquery):
            return _renamed(self.query(item, scopes, ctes), item)
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier) and not item.db:
            found = ctes.get(item.name.casefold())
            return None if found is None else _renamed(found, item)
        self._expressions(item, scopes, ctes)
        if isinstance(item, exp.Values):
            kinds = tuple(self._column(item, index) for index in range(len(item.expressions[0].expressions)))
            notes(item).value_types = kinds
            return _renamed([Output(f"col{i}", kind) for i, kind in enumerate(kinds)], item)
        if isinstance(item, exp.Unnest):
            kind = self.of(item.expressions[0])
            element = kind.children[0][1] if kind is not None and kind.name == "list" else None
            counted = [Output("ordinality", DataType("int64"))] if notes(item).has_ordinality else []
            return _renamed([Output("unnest", element), *counted], item)
        return None

    def _column(self, values: exp.Values, index: int) -> Type:
        cells = [row.expressions[index].unnest() for row in values.expressions]
        # texts get the type of the other values
        others = [cell for cell in cells if not cell.is_string and not isinstance(cell, exp.Null)]
        return self._of_all(others or cells)

    def _of_all(self, nodes: Iterable[exp.Expr]) -> Type:
        """Returns the common type of several values."""
        kind: Type = NULL
        for node in nodes:
            kind = self._common(kind, self.of(node))
        return kind

    def _expressions(self, node: exp.Expr, scopes: Scopes, ctes: Ctes) -> None:
        """Notes the column types in a query's own expressions and in their subqueries."""
        for part in node.iter_expressions():
            if isinstance(part, exp.With | exp.From) or (part.arg_key in ("this", "expression") and _is_side(node)):
                continue
            if isinstance(part, exp.Join):
                self._note(part.args.get("on"), scopes, ctes)
            elif isinstance(part, exp.Expr):
                self._note(part, scopes, ctes)

    def _note(self, node: exp.Expr | None, scopes: Scopes, ctes: Ctes) -> None:
        if node is None:
            return
        if isinstance(node, exp.Query):
            self.query(node, scopes, ctes)
            return
        if isinstance(node, exp.Column):
            columns = scopes.get(node.table.casefold())
            if columns is not None and node.name.casefold() in columns:
                notes(node).set_type(columns[node.name.casefold()])
            return
        for part in node.iter_expressions():
            self._note(part, scopes, ctes)


def from_items(node: exp.Expr) -> list[exp.Expr]:
    """Returns the tables, subqueries and functions in FROM, or in parentheses there, in order."""
    clause = node.args.get("from_")
    written = [clause.this] if clause is not None else []
    written += [join.this for join in node.args.get("joins") or ()]
    found: list[exp.Expr] = []
    for item in written:
        while isinstance(item, exp.Subquery | exp.Paren) and (isinstance(item.this, exp.Table) or is_join(item)):
            item = item.this
        found += [item, *from_items(item)]
    return found


def _is_side(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery | exp.SetOperation)


def _by_name(outputs: Sequence[Output]) -> dict[str, Type]:
    # a column of NULLs has an integer type
    return {o.name.casefold(): DataType("int32") if o.type == NULL else o.type for o in outputs}


def _renamed(outputs: Sequence[Output], item: exp.Expr) -> Sequence[Output]:
    """Returns columns with the names that an alias gives to the first of them."""
    alias = item.args.get("alias")
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return [replace(output, name=name) for output, name in zip(outputs, names, strict=False)] + list(
        outputs[len(names) :]
    )
