"""Binds a query to tables and columns: resolves, qualifies and checks each name, and expands stars.

The bound tree keeps DuckDB's dialect and meaning; it names lake tables by their views. It says what a query reads, and
Spark runs it. DuckDB runs the text that the binder's `frame` has.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import is_aggregate
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql.bind import from_clause, group_and_order
from ducklake_lab.sql.bind.aliases import alias_value
from ducklake_lab.sql.bind.arguments import captured
from ducklake_lab.sql.bind.entries import EntryBinder
from ducklake_lab.sql.bind.expansion import dotted_column, rows_as_list
from ducklake_lab.sql.bind.item_names import aliased, name_columns, note_written, output_name
from ducklake_lab.sql.bind.lambdas import with_columns, without_comprehension
from ducklake_lab.sql.bind.star_expansion import expand_condition, fields_of_row, gives_fields, has_star
from ducklake_lab.sql.bind.unpivots import expand
from ducklake_lab.sql.kinds import kind_of_cast
from ducklake_lab.sql.notes import Output, Outputs, notes
from ducklake_lab.sql.operations import TableName
from ducklake_lab.sql.prune import pushdown
from ducklake_lab.sql.scope import Ctes, Scope, ancestors, column_of, resolve

#: Schemas of DuckDB's built-in functions; DuckDB prints a list as `main.list_value(…)`.
_BUILT_IN = (["main"], ["system"], ["system", "main"], ["pg_catalog"])

#: Functions that no expression has on Spark, and why.
_REFUSED = {
    "alias": "Function alias is not supported on Spark.",  # it would see aliases
    "columns": "COLUMNS(…) is supported on Spark in SELECT, WHERE and ORDER BY alone.",
}


class QueryBinder(EntryBinder):
    """Binds one statement."""

    # -- queries ---------------------------------------------------------------------------------

    def query(self, node: exp.Expr, parent: Scope | None, ctes: Ctes) -> Outputs:
        """Binds a query in place; returns its output columns, None if they are unknown."""
        ctes = self._with(node, parent, ctes)
        if isinstance(node, exp.Select):
            outputs = self._select(node, parent, ctes)
        elif isinstance(node, exp.SetOperation):
            outputs = self._set_operation(node, parent, ctes)
        elif isinstance(node, exp.Subquery):
            group_and_order.into_parentheses(node)
            outputs = self.query(node.this, parent, ctes)
            group_and_order.bind_order_of_names(self, node, outputs, parent, ctes)
        else:
            raise UnsupportedFeatureError(f"{type(node).__name__} is not supported as a query yet.")
        notes(node).outputs = outputs
        return outputs

    def _with(self, node: exp.Expr, parent: Scope | None, ctes: Ctes) -> Ctes:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        ctes_so_far = dict(ctes)
        for cte in clause.expressions:
            names = [column.name for column in cte.args["alias"].columns] if cte.args.get("alias") else []
            body = cte.this
            folded = cte.alias.casefold()
            if clause.args.get("recursive") and isinstance(body, exp.SetOperation) and _refers(body.expression, folded):
                if not isinstance(body, exp.Union):
                    raise BindError(f"{cte.alias} reads itself in {body.key.upper()}; UNION alone makes a recursion.")
                anchor = self.query(body.this, parent, ctes_so_far)
                ctes_so_far[folded] = name_columns(anchor, names, cte.alias)
                self.query(body.expression, parent, ctes_so_far)
                notes(body).outputs = anchor
                outputs = anchor
            else:
                outputs = self.query(body, parent, ctes_so_far)
            ctes_so_far[folded] = name_columns(outputs, names, cte.alias)
        return ctes_so_far

    def _set_operation(self, node: exp.SetOperation, parent: Scope | None, ctes: Ctes) -> Outputs:
        left = self.query(node.this, parent, ctes)
        right = self.query(node.expression, parent, ctes)
        outputs: Outputs
        if left is None or right is None:
            outputs = left
        elif node.args.get("by_name"):
            _check_names(node, left, right)
            left_names = {output.name.casefold() for output in left}
            outputs = (*left, *(output for output in right if output.name.casefold() not in left_names))
        else:
            if len(left) != len(right):
                raise BindError(
                    f"{node.key.upper()} needs as many columns on both sides: {len(left)} and {len(right)}."
                )
            outputs = tuple(
                Output(a.name, a.type if a.type == b.type else None) for a, b in zip(left, right, strict=True)
            )
        group_and_order.bind_order_of_names(self, node, outputs, parent, ctes)
        return outputs

    def _select(self, node: exp.Select, parent: Scope | None, ctes: Ctes) -> Outputs:
        from_clause.refuse_sample(node)
        for part in ("laterals", "pivots", "connect", "match", "into"):
            if node.args.get(part):
                raise UnsupportedFeatureError(f"{part.upper().rstrip('S')} in SELECT is not supported yet.")
        scope = Scope(parent, frame=self.frame)
        from_clause.bind_from(self, node, scope, ctes)
        projections = [item for written in node.expressions for item in expand(written, scope)]
        if not projections:
            raise BindError("The SELECT list is empty: its stars leave no column.")
        as_written = {id(item) for item in node.expressions}
        complete = not any(has_star(item) for item in projections)
        aliases = scope.aliases
        bound: list[exp.Expr] = []
        outputs: list[Output] = []
        for item in projections:
            name = notes(item).written_name or output_name(item, self.frame.written(item))
            value = self._projection(item, scope, ctes, aliases)
            if id(item) in as_written:
                self.frame.keep_name(item, name)
            if isinstance(value, exp.Column) and not isinstance(item, exp.Alias):
                # DuckDB names an output column in the table's spelling.
                name = notes(value).written_name or value.name
            if fields := fields_of_row(value):
                bound += [aliased(field, name) for name, field in fields]
                outputs += [Output(name, notes(field).type) for name, field in fields]
                continue
            complete = complete and not gives_fields(value)
            bound.append(aliased(value, name) if not has_star(value) else value)
            outputs.append(Output(name, notes(value).type, value))
            if isinstance(item, exp.Alias):
                notes(value).alias_position = len(bound)
                aliases[name.casefold()] = value  # the last of several columns with the same name
        node.set("expressions", bound)

        condition = node.args.get("where")
        if condition is not None:
            condition.set("this", expand_condition(condition.this, scope))
            condition.set("this", self.expression(condition.this, scope, ctes, aliases))
            for relation in scope.relations:
                if not relation.nullable:
                    pushdown.restrict(relation, condition.this)
        group_and_order.bind_group(self, node, scope, ctes, aliases)
        group_and_order.bind_having(self, node, scope, ctes, aliases)
        group_and_order.bind_qualify(self, node, scope, ctes, aliases)
        for window in node.args.get("windows") or []:
            self.children(window, scope, ctes, aliases)
        shown = tuple(outputs) if complete else None
        group_and_order.bind_distinct(self, node, scope, ctes, aliases, shown)
        group_and_order.bind_order(self, node, scope, ctes, aliases, shown)
        group_and_order.bind_limit(self, node, ctes)
        return shown

    def _projection(self, item: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
        if not isinstance(item, exp.Alias):
            # the caller replaces all items at once: replacing one item walks the whole list
            item.parent = None
        return self.expression(item.this if isinstance(item, exp.Alias) else item, scope, ctes, aliases)

    # -- expressions -----------------------------------------------------------------------------

    def expression(
        self, node: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None = None
    ) -> exp.Expr:
        """Binds an expression in place and notes its types; returns its replacement."""
        for name, anew in captured(node, scope):
            self.frame.certain = False  # the text of the body does not have the argument
            for part in node.walk():
                notes(part).is_bound = False
            name.replace(anew)
            node = anew if name is node else node
        if notes(node).is_bound:
            return node
        if (seen := scope.seen_by(node)) is not scope:
            scope, aliases = seen, None
        if aliases and _is_aggregate(node):
            aliases = None  # DuckDB knows them in window functions only
        if isinstance(node, exp.Column):
            bound = self._column(node, scope, aliases or {})
        elif (column := column_of(node, scope)) is not None:
            bound = self._column(column, scope, {})
        elif isinstance(node, exp.Anonymous) and (
            expanded := self.scalar_macro(TableName(None, None, node.name), node, scope, ctes, aliases)
        ):
            bound = expanded
        elif (rows := rows_as_list(node)) is not None:
            bound = self.expression(rows, scope, ctes, aliases)
        elif isinstance(node, exp.Dot):
            bound = self._dot(node, scope, ctes, aliases)
        elif isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            note_written(node)
            outputs = self.query(node, scope, ctes)
            notes(node).set_type(outputs[0].type if outputs and len(outputs) == 1 else None)
            return node
        elif isinstance(node, exp.DataType):
            return node
        elif isinstance(node, exp.Anonymous) and (refused := _REFUSED.get(node.name.casefold())):
            raise UnsupportedFeatureError(refused)
        else:
            if isinstance(node, exp.Array) and len(node.expressions) == 1:
                node = without_comprehension(node)
            self.children(node, scope, ctes, aliases)
            if isinstance(node, exp.Window):
                _check_window(node, scope)
            notes(node).set_type(kind_of_cast(node))
            return node
        if bound is not node and node.parent is not None:
            node.replace(bound)
        return bound

    def children(self, node: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None = None) -> None:
        for child in list(node.iter_expressions()):
            if not isinstance(child, exp.Identifier | exp.Var):
                self.expression(child, scope, ctes, aliases)

    def _column(self, node: exp.Column, scope: Scope, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
        if notes(node).is_typed or isinstance(node.this, exp.Star):
            return node
        parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
        name = parts[0].name.casefold()
        # columns of FROM and its rows come first; a dotted name never means an alias
        is_alias = len(parts) == 1 and name in aliases
        if is_alias and not any(r.find(name) or r.name.casefold() == name for r in scope.relations):
            return alias_value(node, aliases[name])
        try:
            bound = resolve(parts, scope)
        except BindError:
            around = [level for level in scope.around() if level is not scope]
            if len(parts) == 1 and any(name in level.aliases for level in around) and not _is_in_aggregate(node):
                raise UnsupportedFeatureError(
                    f'"{parts[0].name}", a name of the SELECT list around, is not supported in a query on Spark.'
                ) from None
            raise
        return node if bound is None else bound

    def _dot(self, node: exp.Dot, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None) -> exp.Expr:
        """Binds `expression.field`, a longer dotted name, or `expression.function(…)`."""
        if isinstance(node.expression, exp.Anonymous):
            call = node.expression.copy()
            subject: exp.Expr = node.this
            parts = dotted(subject) or []
            qualifiers = [part.name for part in parts]
            if qualifiers:
                name = TableName.of([*qualifiers, call.name])
                expanded = self.scalar_macro(name, call, scope, ctes, aliases, parts[0])
                if expanded is not None:
                    return expanded
                if [qualifier.casefold() for qualifier in qualifiers] in _BUILT_IN and not _names_column(
                    qualifiers, scope
                ):
                    return self.expression(call, scope, ctes, aliases)
                if len(qualifiers) > 2:
                    self.frame.certain = False  # DuckDB parses no longer names of functions
            call.set("expressions", [with_columns(subject), *call.expressions])
            return self.expression(call, scope, ctes, aliases)
        names = dotted(node)
        if names is not None and len(names) > 1:
            column = dotted_column(names, scope)
            if column is not None:
                return column
        self.children(node, scope, ctes, aliases)
        notes(node).set_type(kind_of_cast(node))
        return node


def _check_names(node: exp.SetOperation, *sides: tuple[Output, ...]) -> None:
    """Raises BindError if a side of a set operation BY NAME has a name twice."""
    for outputs in sides:
        names = [output.name.casefold() for output in outputs]
        for output in outputs:
            if names.count(output.name.casefold()) > 1:
                raise BindError(f'{node.key.upper()} BY NAME takes each name once; a side has "{output.name}" twice.')


def dotted(node: exp.Expr) -> list[exp.Identifier] | None:
    """Returns the parts of a column's name, or of a Dot over one or over a bare name; None for other nodes."""
    if isinstance(node, exp.Identifier):
        return [node]
    if isinstance(node, exp.Column):
        return [part for part in node.parts if isinstance(part, exp.Identifier)]
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        inner = dotted(node.this)
        return [*inner, node.expression] if inner is not None else None
    return None


def _is_aggregate(node: exp.Expr) -> bool:
    """Returns whether a node is an aggregate that is no window function."""
    if not isinstance(node, exp.Anonymous | exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        return False
    call, outer = node, node
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    while isinstance(outer.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        outer = outer.parent
    is_over = isinstance(outer.parent, exp.Window) and outer.arg_key == "this"
    return isinstance(call, exp.Anonymous) and not is_over and is_aggregate(call.name)


def _check_window(window: exp.Window, scope: Scope) -> None:
    """Raises BindError for a column of a query around in a window function."""
    around = [relation for level in scope.around() if level is not scope for relation in level.relations]
    for column in window.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(column, exp.Column) and any(notes(column).relation is relation for relation in around):
            raise BindError(f'A window function takes no column of the query around: "{column.name}".')


def _is_in_aggregate(column: exp.Column) -> bool:
    """Returns whether a column is in an aggregate of its own query, which sees no names of the SELECT list."""
    inside = takewhile(lambda node: not isinstance(node, exp.Query), ancestors(column))
    return any(map(_is_aggregate, inside))


def _names_column(names: list[str], scope: Scope) -> bool:
    return any(relation.find(names[0]) is not None for level in scope.around() for relation in level.relations)


def _refers(tree: exp.Expr, folded: str) -> bool:
    return any(
        table.name.casefold() == folded and table.db.casefold() in ("", "recurring")
        for table in tree.find_all(exp.Table)
    )
