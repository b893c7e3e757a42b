"""The columns that each column of a statement comes from.

A value comes from all columns of its expression. Columns of conditions, joins, groups and orders decide which rows come; they are
listed apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.bind.expansion import normalised
from ducklake_lab.sql.bind.pivots import stored
from ducklake_lab.sql.operations import CreateTable, CreateView, Insert, Merge, MergeClause, Query, Update
from ducklake_lab.sql.plan import Resolver, Source

#: A column of a source, by the source's view.
Origin = tuple[str, str]
_Origins = frozenset[Origin]
_NONE: _Origins = frozenset()
#: Operations that write columns.
Writing = CreateTable | CreateView | Insert | Update | Merge


@dataclass(frozen=True, slots=True)
class Flow:
    """A column that a statement gives, the columns that its values come from, and its type, if known."""

    name: str
    origins: _Origins
    kind: DataType | None = None


@dataclass(frozen=True, slots=True)
class StatementLineage:
    """Tables that a statement reads, and the columns that it gives.

    Attributes:
        sources: the tables that it reads, by view.
        flows: its columns, in order; those of a table that it writes have the table's names.
        conditions: the columns that decide which rows come.
    """

    sources: Mapping[str, Source]
    flows: Sequence[Flow]
    conditions: _Origins = _NONE


def lineage_of(
    operation: Writing | Query, resolver: Resolver, columns: Sequence[str], lake_schema: tuple[str, str] | None = None
) -> StatementLineage:
    """Returns the lineage of a statement.

    Args:
        columns: the names of the columns of the table that it writes; empty for a new one.
        lake_schema: as in `plan_query`.

    Raises:
        BindError: a name does not exist or is ambiguous.
        UnsupportedFeatureError: names cannot be resolved, or its columns are not known.
    """
    match operation:
        case Query():
            return _of_query(operation.tree, resolver, lake_schema)
        case CreateView():
            found = _of_query(operation.query.tree, resolver, lake_schema)
            return _renamed(found, operation.columns)
        case CreateTable(query=Query() as query):
            return _of_query(query.tree, resolver, lake_schema)
        case Insert(query=exp.Query() as tree):
            return _of_insert(operation, tree, resolver, columns, lake_schema)
        case Update():
            return _of_update(operation, resolver, lake_schema)
        case Merge():
            return _of_merge(operation, resolver, columns, lake_schema)
    return StatementLineage({}, ())


def _of_query(tree: exp.Expr, resolver: Resolver, lake_schema: tuple[str, str] | None) -> StatementLineage:
    plain = normalised(stored(tree.copy()))
    binder = QueryBinder(resolver, lake_schema)
    outputs = binder.query(plain, None, {})
    if outputs is None:
        raise UnsupportedFeatureError("The columns of this query are not known before it runs.")
    tracer = _Tracer()
    found = tracer.query(plain, {}, {})
    flows = [Flow(output.name, origins, output.type) for output, (_, origins) in zip(outputs, found, strict=True)]
    return StatementLineage({source.view: source for source in binder.sources}, flows, frozenset(tracer.conditions))


def _renamed(found: StatementLineage, names: Sequence[str]) -> StatementLineage:
    flows = [replace(flow, name=names[i]) if i < len(names) else flow for i, flow in enumerate(found.flows)]
    return StatementLineage(found.sources, flows, found.conditions)


def _of_insert(
    operation: Insert, tree: exp.Query, resolver: Resolver, columns: Sequence[str], lake_schema: tuple[str, str] | None
) -> StatementLineage:
    if any(
        isinstance(column.this, exp.Identifier) and column.name.upper() == "DEFAULT"
        for column in tree.find_all(exp.Column)
    ):
        return StatementLineage({}, ())  # VALUES with DEFAULT name no columns
    found = _of_query(tree, resolver, lake_schema)
    if operation.by_name:
        named = {name.casefold(): name for name in columns}
        flows = [Flow(named.get(flow.name.casefold(), flow.name), flow.origins) for flow in found.flows]
        return StatementLineage(found.sources, flows, found.conditions)
    return _renamed(found, operation.columns if operation.columns is not None else columns)


def _of_update(operation: Update, resolver: Resolver, lake_schema: tuple[str, str] | None) -> StatementLineage:
    tree = operation.tree
    items = [_aliased(value, name) for name, value in _assigned(tree.expressions) if not _is_default(value)]
    select = exp.Select(expressions=items or [exp.Literal.number(1)]).from_(tree.this.copy(), copy=False)
    if tree.args.get("where"):
        select.set("where", tree.args["where"].copy())
    source = tree.args.get("from_")
    if source is not None:
        added = source.this.copy()
        joins = added.args.get("joins") or []
        added.set("joins", None)
        for join in (exp.Join(this=added), *joins):
            select.append("joins", join)
    if tree.args.get("with_"):
        select.set("with_", tree.args["with_"].copy())
    found = _of_query(select, resolver, lake_schema)
    return found if items else StatementLineage(found.sources, (), found.conditions)


def _assigned(assignments: Sequence[exp.Expr]) -> Iterator[tuple[str, exp.Expr]]:
    for assignment in assignments:
        left, right = assignment.this, assignment.expression
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            yield from ((one.name, value) for one, value in zip(left.expressions, right.expressions, strict=False))
        elif isinstance(left, exp.Column):
            yield left.name, right


def _aliased(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value.copy(), alias=exp.to_identifier(name, quoted=True))


def _is_default(value: exp.Expr) -> bool:
    return isinstance(value, exp.Column | exp.Var) and value.name.upper() == "DEFAULT" and not value.args.get("table")


def _of_merge(
    operation: Merge, resolver: Resolver, columns: Sequence[str], lake_schema: tuple[str, str] | None
) -> StatementLineage:
    own = _of_query(operation.source, resolver, lake_schema)
    sources, conditions = dict(own.sources), set(own.conditions)
    flows: dict[str, set[Origin]] = {}
    both = _merge_from(operation, with_target=True)
    condition = operation.condition or _same_names(operation)
    if condition is not None:
        asked = both.copy()
        asked.set("where", exp.Where(this=condition.copy()))
        _add(_of_query(_selecting(asked, []), resolver, lake_schema), sources, {}, conditions)
    for clause in operation.clauses:
        base = _merge_from(operation, with_target=clause.when != "not matched")
        if clause.condition is not None:
            asked = base.copy()
            asked.set("where", exp.Where(this=clause.condition.copy()))
            _add(_of_query(_selecting(asked, []), resolver, lake_schema), sources, {}, conditions)
        if clause.action not in ("update", "insert"):
            continue
        if clause.whole is not None:
            wanted = columns if clause.whole == "position" else [flow.name for flow in own.flows]
            for name, flow in zip(wanted, own.flows, strict=False):
                flows.setdefault(_spelled(name, columns), set()).update(flow.origins)
            continue
        items = [_aliased(value, name) for name, value in _values(clause, columns)]
        if items:
            _add(_of_query(_selecting(base.copy(), items), resolver, lake_schema), sources, flows, conditions)
    return StatementLineage(
        sources, [Flow(name, frozenset(origins)) for name, origins in flows.items()], frozenset(conditions)
    )


def _same_names(operation: Merge) -> exp.Expr | None:
    """Returns the condition of USING."""
    source = operation.source.args["from_"].this.alias_or_name
    target = operation.alias or operation.table.name
    if not source or not operation.using:
        return None
    names = (exp.to_identifier(name, quoted=True) for name in operation.using)
    return exp.and_(
        *(
            exp.EQ(
                this=exp.Column(this=name, table=exp.to_identifier(target, quoted=True)),
                expression=exp.Column(this=name.copy(), table=exp.to_identifier(source, quoted=True)),
            )
            for name in names
        )
    )


def _values(clause: MergeClause, columns: Sequence[str]) -> list[tuple[str, exp.Expr]]:
    if clause.action == "update":
        pairs = list(_assigned(clause.assignments))
    else:
        pairs = list(zip(clause.columns if clause.columns is not None else columns, clause.values, strict=False))
    return [(_spelled(name, columns), value) for name, value in pairs if not _is_default(value)]


def _spelled(name: str, columns: Sequence[str]) -> str:
    return next((known for known in columns if known.casefold() == name.casefold()), name)


def _merge_from(operation: Merge, *, with_target: bool) -> exp.Select:
    source = operation.source.copy()
    if with_target:
        parts = [part for part in (operation.table.catalog, operation.table.schema, operation.table.name) if part]
        names = [exp.to_identifier(part, quoted=True) for part in parts]
        alias = exp.TableAlias(this=exp.to_identifier(operation.alias or operation.table.name, quoted=True))
        fields = dict(zip(("this", "db", "catalog"), reversed(names), strict=False))
        source.append("joins", exp.Join(this=exp.Table(**fields, alias=alias)))
    return source


def _selecting(tree: exp.Select, items: list[exp.Expr]) -> exp.Select:
    tree.set("expressions", items or [exp.alias_(exp.Literal.number(1), "one", quoted=True)])
    return tree


def _add(
    found: StatementLineage, sources: dict[str, Source], flows: dict[str, set[Origin]], conditions: set[Origin]
) -> None:
    sources.update(found.sources)
    conditions |= found.conditions
    for flow in found.flows:
        if flow.origins:
            flows.setdefault(flow.name, set()).update(flow.origins)


#: The columns of a relation by folded name; of a query in order, with repeated names.
_Columns = Sequence[tuple[str, _Origins]]


@dataclass(slots=True)
class _Relation:
    """A relation of FROM.

    Attributes:
        view: the view of a table; its columns are its own origins.
        columns: of others.
        whole: origins of columns that are not listed.
    """

    view: str | None = None
    columns: Mapping[str, _Origins] = field(default_factory=dict)
    whole: _Origins = _NONE

    def of(self, name: str) -> _Origins:
        if self.view is not None:
            return frozenset([(self.view, name)])
        return self.columns.get(name.casefold(), self.whole)


class _Tracer:
    """Walks a bound tree, whose columns have the unique alias of their relation."""

    def __init__(self) -> None:
        self.conditions: set[Origin] = set()

    def query(self, node: exp.Expr, around: Mapping[str, _Relation], ctes: Mapping[str, _Columns]) -> _Columns:
        """Returns the columns of a query with their origins."""
        ctes = self._with(node, around, ctes)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, around, ctes)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, around, ctes)
        assert isinstance(node, exp.Select)  # the binder binds no other query
        relations = dict(around)
        merged: dict[str, _Origins] = {}
        start = node.args.get("from_")
        if start is not None:
            self._item(start.this, relations, merged, ctes)
        for join in node.args.get("joins") or ():
            self._join(join, relations, merged, ctes)
        windows = {window.name.casefold(): window for window in node.args.get("windows") or ()}

        def value(part: exp.Expr) -> _Origins:
            parts = [part, *_named_windows(part, windows)]
            return frozenset().union(*(self._value(one, relations, merged, ctes) for one in parts))

        found = [(item.alias_or_name, value(item)) for item in node.expressions]
        for name in ("where", "group", "having", "qualify", "distinct", "order", "limit", "offset"):
            clause = node.args.get(name)
            if clause is not None:
                self.conditions |= value(clause)
        return found

    def _with(
        self, node: exp.Expr, around: Mapping[str, _Relation], ctes: Mapping[str, _Columns]
    ) -> Mapping[str, _Columns]:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        known = dict(ctes)
        for cte in clause.expressions:
            names = [column.name for column in cte.args["alias"].columns] if cte.args.get("alias") else []
            folded, body = cte.alias.casefold(), cte.this
            if clause.args.get("recursive") and isinstance(body, exp.SetOperation):
                known[folded] = _named(self.query(body.this, around, known), names)
                while True:  # origins only grow
                    more = _united(known[folded], self.query(body.expression, around, known))
                    if list(more) == list(known[folded]):
                        break
                    known[folded] = more
            else:
                known[folded] = _named(self.query(body, around, known), names)
        return known

    def _set_operation(
        self, node: exp.SetOperation, around: Mapping[str, _Relation], ctes: Mapping[str, _Columns]
    ) -> _Columns:
        left, right = self.query(node.this, around, ctes), self.query(node.expression, around, ctes)
        if not isinstance(node, exp.Union):
            # rows of the right side only decide which rows of the left one come
            for _, origins in right:
                self.conditions |= origins
            return left
        if not node.args.get("by_name"):
            return _united(left, right)
        others = {name.casefold(): origins for name, origins in right}
        both = [(name, origins | others.pop(name.casefold(), _NONE)) for name, origins in left]
        return [*both, *((name, origins) for name, origins in right if name.casefold() in others)]

    def _join(
        self,
        join: exp.Join,
        relations: dict[str, _Relation],
        merged: dict[str, _Origins],
        ctes: Mapping[str, _Columns],
    ) -> None:
        before = list(relations.values())
        self._item(join.this, relations, merged, ctes)
        added = [relation for relation in relations.values() if relation not in before]
        condition = join.args.get("on")
        if condition is not None:
            self.conditions |= self._value(condition, relations, merged, ctes)
        side = (join.args.get("side") or "").upper()
        for column in join.args.get("using") or ():
            name = column.name
            right = _first(added, name)
            left = merged.get(name.casefold()) or _first(before, name)
            self.conditions |= left | right
            merged[name.casefold()] = left | right if side == "FULL" else right if side == "RIGHT" else left

    def _item(
        self,
        item: exp.Expr,
        relations: dict[str, _Relation],
        merged: dict[str, _Origins],
        ctes: Mapping[str, _Columns],
    ) -> None:
        """Adds an item of FROM, with the joins in it."""
        alias = item.alias_or_name
        names = (
            [column.name for column in item.args["alias"].columns]
            if isinstance(item.args.get("alias"), exp.TableAlias)
            else []
        )
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            columns = ctes.get(item.name.casefold())
            relation = _Relation(item.name) if columns is None else _Relation(columns=_by_name(_named(columns, names)))
        elif isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            columns = self.query(item, relations, ctes)
            relation = _Relation(columns=_by_name(_named(columns, names)))
        elif isinstance(item, exp.Subquery | exp.Paren):
            self._item(item.this, relations, merged, ctes)  # joins in parentheses
            relation = None
        else:
            # UNNEST, VALUES and other functions: all of their columns come from all columns that they name
            relation = _Relation(whole=self._value(item, relations, merged, ctes))
        if relation is not None and alias:
            relations[alias.casefold()] = relation
        for join in item.args.get("joins") or ():
            self._join(join, relations, merged, ctes)

    def _value(
        self,
        node: exp.Expr,
        relations: Mapping[str, _Relation],
        merged: Mapping[str, _Origins],
        ctes: Mapping[str, _Columns],
    ) -> _Origins:
        """Returns the origins of an expression."""
        if isinstance(node, exp.Column):
            return self._column(node, relations, merged)
        if isinstance(node, exp.Exists):
            for _, origins in self.query(node.this, relations, ctes):
                self.conditions |= origins
            return _NONE
        if isinstance(node, exp.Query):
            return frozenset().union(*(origins for _, origins in self.query(node, relations, ctes)))
        found: set[Origin] = set()
        for child in node.iter_expressions():
            if not isinstance(child, exp.TableAlias | exp.Identifier):
                found |= self._value(child, relations, merged, ctes)
        return frozenset(found)

    @staticmethod
    def _column(node: exp.Column, relations: Mapping[str, _Relation], merged: Mapping[str, _Origins]) -> _Origins:
        names = [part.name for part in node.parts]
        relation = relations.get(names[0].casefold()) if len(names) > 1 else None
        if relation is not None:
            return relation.of(names[1])
        return merged.get(names[0].casefold(), _NONE)


def _named_windows(node: exp.Expr, windows: Mapping[str, exp.Expr]) -> list[exp.Expr]:
    """Returns the windows of the WINDOW clause that the calls of an expression name, and those that these name."""
    if not windows:
        return []
    found: dict[str, exp.Expr] = {}
    parts = [node]
    while parts:
        for window in parts.pop().find_all(exp.Window):
            alias = window.args.get("alias")
            name = alias.name.casefold() if alias is not None else ""
            if name in windows and name not in found:
                found[name] = windows[name]
                parts.append(windows[name])
    return list(found.values())


def _named(columns: _Columns, names: Sequence[str]) -> _Columns:
    return [(names[i] if i < len(names) else name, origins) for i, (name, origins) in enumerate(columns)]


def _by_name(columns: _Columns) -> dict[str, _Origins]:
    found: dict[str, _Origins] = {}
    for name, origins in columns:
        folded, number = name.casefold(), 0
        while folded in found:  # DuckDB numbers repeated names so
            number += 1
            folded = f"{name.casefold()}_{number}"
        found[folded] = origins
    return found


def _united(left: _Columns, right: _Columns) -> _Columns:
    return [(name, one | other) for (name, one), (_, other) in zip(left, right, strict=True)]


def _first(relations: Sequence[_Relation], name: str) -> _Origins:
    for relation in relations:
        if relation.view is not None or name.casefold() in relation.columns:
            return relation.of(name)
    return _NONE
