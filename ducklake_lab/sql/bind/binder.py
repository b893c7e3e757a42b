"""Binds a query to tables and columns: resolves, qualifies and checks each name, and expands stars.

The bound tree keeps DuckDB's dialect and meaning; it names lake tables by their views.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from sqlglot import exp

from ducklake_lab.errors import BindError, EntryNotFoundError, UnsupportedFeatureError
from ducklake_lab.model.entries import MacroImplementation
from ducklake_lab.model.quoting import path_parts, schema_path
from ducklake_lab.sql.bind import from_clause, group_and_order
from ducklake_lab.sql.bind.aliases import ALIAS_POSITION, alias_value
from ducklake_lab.sql.bind.column_names import aliased, output_name
from ducklake_lab.sql.bind.expansion import (
    Allowance,
    choose,
    dotted_column,
    macro_expression,
    macro_query,
    rows_as_list,
    view_query,
)
from ducklake_lab.sql.bind.inference import infer
from ducklake_lab.sql.bind.item_names import name_columns, note_written
from ducklake_lab.sql.bind.lambdas import with_columns, without_comprehension
from ducklake_lab.sql.bind.star_expansion import fields_of_row, gives_fields, has_star
from ducklake_lab.sql.bind.unpivots import expand
from ducklake_lab.sql.operations import At, TableName
from ducklake_lab.sql.plan import SOURCE_PREFIX, Resolver, Source, StoredMacro, StoredView
from ducklake_lab.sql.prune import pushdown
from ducklake_lab.sql.scope import BOUND, OUTPUTS, TYPE, WRITTEN, Ctes, Output, Outputs, Scope, column_of, resolve

#: Schemas of DuckDB's built-in functions; DuckDB prints a list as `main.list_value(…)`.
_BUILT_IN = (["main"], ["system"], ["system", "main"], ["pg_catalog"])


class QueryBinder:
    """Binds one statement; `sources` collects its sources."""

    def __init__(self, resolver: Resolver, place: tuple[str, str] | None = None) -> None:
        self.resolver = resolver
        self.sources: list[Source] = []
        self._token = secrets.token_hex(4)
        # inside a view or macro: its schema, its snapshot, and the views and macros being expanded
        self._place = place
        self._at: At | None = None
        self.expanding: tuple[tuple[object, ...], ...] = ()
        # stored views and macros cannot read objects of this session
        self._is_own = place is None
        self._macros: dict[tuple[str, str] | None, Mapping[tuple[str, str], StoredMacro]] = {}
        self._allowance = Allowance(resolver.most_expansions)
        self._outermost = ""

    # -- sources ---------------------------------------------------------------------------------

    def view_name(self) -> str:
        return f"{SOURCE_PREFIX}{self._token}_{len(self.sources) + 1}"

    def table(self, name: TableName, at: At | None) -> tuple[Source, tuple[Output, ...]] | StoredView:
        """Returns a lake table as a new source, or the view with that name.

        Raises:
            BindError: the table or view does not exist.
        """
        own = self._is_own and at is None
        handed_in = self.resolver.handed_in(name) if own else None
        if handed_in is not None:
            return self._source(handed_in, None)
        temporary = self.resolver.temporary_view(name) if self._is_own else None
        if temporary is not None and self._key(temporary) not in self.expanding:
            return temporary
        at = at or self._at
        missing: EntryNotFoundError | None = None
        for candidate in self._candidates(name):
            try:
                return self._source(candidate, at)
            except EntryNotFoundError as error:
                view = self.resolver.view(candidate, at)
                if view is not None:
                    return view
                missing = missing or error
        replacement = self.resolver.replacement(name) if own else None
        if replacement is not None:
            return self._source(replacement, None)
        raise BindError(_placed(str(missing), name) + self.hint(name), line=name.line, column=name.column) from missing

    def hint(self, name: TableName) -> str:
        """Returns a hint for the message of a missing table."""
        return self.resolver.hint(name) if self._is_own else ""

    def _source(self, name: TableName, at: At | None) -> tuple[Source, tuple[Output, ...]]:
        rows = self.resolver.table(name, at)
        source = Source(self.view_name(), "table", name, at, rows)
        self.sources.append(source)
        return source, tuple(Output(column, kind) for column, kind in rows.columns)

    def owns(self, name: TableName) -> bool:
        """Whether a name belongs to the session's own database; inside a view, its lake comes first."""
        inside = self._candidates(name)[:-1]
        return not any(self._exists(candidate) for candidate in inside) and self.resolver.owns(name)

    def _exists(self, name: TableName) -> bool:
        try:
            self.resolver.table(name, self._at)
        except EntryNotFoundError:
            return self.resolver.view(name, self._at) is not None
        return True

    def _candidates(self, name: TableName) -> list[TableName]:
        """Returns the possible meanings of a name; inside a view or macro, its own schema comes first."""
        if self._place is None:
            return [name]
        lake, schema = self._place
        if name.catalog is not None and name.catalog.casefold() == lake.casefold():
            return [name]
        if name.catalog is not None:
            nested = schema_path((name.catalog, *path_parts(name.schema or "main")))
            return [TableName(lake, nested, name.name, name.line, name.column), name]
        return [TableName(lake, name.schema or schema, name.name, name.line, name.column), name]

    # -- views and macros ------------------------------------------------------------------------

    def view(self, view: StoredView, at: At | None) -> tuple[exp.Expr, Outputs]:
        """The bound query of a view, and its columns under their names."""
        tree = view_query(view.sql)
        with self._inside("view", view, at or self._at):
            outputs = self.query(tree, None, {})
        return tree, name_columns(outputs, list(view.columns), view.name)

    @staticmethod
    def _key(entry: StoredView | StoredMacro) -> tuple[object, ...]:
        return type(entry), getattr(entry, "temporary", False), entry.lake, entry.schema, entry.name

    @contextmanager
    def _inside(self, kind: str, entry: StoredView | StoredMacro, at: At | None = None) -> Iterator[None]:
        key, temporary = self._key(entry), isinstance(entry, StoredView) and entry.temporary
        title = entry.name if temporary else f"{entry.schema}.{entry.name}"
        if key in self.expanding:
            raise BindError(f"The {kind} {title} refers to itself; infinite recursion detected.")
        if self.expanding:
            self._allowance.expand(self._outermost)
        else:
            self._outermost = f"{kind} {title}"
        before = self._place, self._at, self.expanding, self._is_own
        self._place = (entry.lake, entry.schema) if entry.lake is not None and entry.schema is not None else None
        self._at, self.expanding = at, (*self.expanding, key)
        self._is_own = self._is_own and temporary
        try:
            yield
        except BindError as error:
            # a position in the stored text means nothing to the query's author
            message = re.sub(r" \(line \d+, column \d+\)", "", str(error))
            inside = message if message.startswith("In the ") else f"In the {kind} {title}: {message}"
            raise BindError(inside) from error
        finally:
            self._place, self._at, self.expanding, self._is_own = before

    def find_macro(self, name: TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        """Returns the macro that a call names."""
        if name.schema is not None:
            return self.resolver.macro(name, kind)
        places = (self._place, None) if self._place is not None else (None,)
        for place in places:
            if place not in self._macros:
                self._macros[place] = self.resolver.macros(place)
            found = self._macros[place].get((kind, name.name.casefold()))
            if found is not None:
                return found
        return None

    def _scalar_macro(
        self,
        name: TableName,
        call: exp.Anonymous,
        scope: Scope,
        ctes: Ctes,
        aliases: Mapping[str, exp.Expr] | None,
    ) -> exp.Expr | None:
        """Returns the expanded call of a scalar macro; None if it calls none."""
        macro = self.find_macro(name, "scalar")
        if macro is None:
            return None
        impl, arguments = self.macro_arguments(macro, call, scope, ctes, aliases)
        holder = exp.Paren(this=macro_expression(macro, impl, arguments, self._allowance))
        with self._inside("macro", macro):
            self.children(holder, scope, {})
        holder.meta[TYPE] = holder.this.meta.get(TYPE)
        return holder

    def macro_arguments(
        self,
        macro: StoredMacro,
        call: exp.Anonymous,
        scope: Scope,
        ctes: Ctes,
        aliases: Mapping[str, exp.Expr] | None = None,
    ) -> tuple[MacroImplementation, dict[str, exp.Expr]]:
        """Returns the called overload and its arguments, bound in the scope of the call."""
        for argument in list(call.expressions):
            named = isinstance(argument, exp.Kwarg | exp.PropertyEQ)
            self.expression(argument.expression if named else argument, scope, ctes, aliases)
        impl, arguments = choose(macro, call)
        for value in arguments.values():
            value.meta[BOUND] = TYPE in value.meta
        return impl, arguments

    def table_macro(
        self, macro: StoredMacro, call: exp.Anonymous, scope: Scope, ctes: Ctes
    ) -> tuple[exp.Expr, Outputs]:
        """Returns the bound query of a table macro's call, and its columns."""
        impl, arguments = self.macro_arguments(macro, call, scope, ctes)
        tree = macro_query(macro, impl, arguments, self._allowance)
        with self._inside("macro", macro):
            return tree, self.query(tree, None, {})

    # -- queries ---------------------------------------------------------------------------------

    def query(self, node: exp.Expr, parent: Scope | None, ctes: Ctes) -> Outputs:
        """Binds a query in place; returns its output columns, None if they are unknown."""
        ctes = self._with(node, parent, ctes)
        if isinstance(node, exp.Select):
            outputs = self._select(node, parent, ctes)
        elif isinstance(node, exp.SetOperation):
            outputs = self._set_operation(node, parent, ctes)
        elif isinstance(node, exp.Subquery):
            outputs = self.query(node.this, parent, ctes)
            group_and_order.bind_order_of_names(self, node, outputs, parent, ctes)
        else:
            raise UnsupportedFeatureError(f"{type(node).__name__} is not supported as a query yet.")
        node.meta[OUTPUTS] = outputs
        return outputs

    def _with(self, node: exp.Expr, parent: Scope | None, ctes: Ctes) -> Ctes:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        known = dict(ctes)
        for cte in clause.expressions:
            names = [column.name for column in cte.args["alias"].columns] if cte.args.get("alias") else []
            body = cte.this
            folded = cte.alias.casefold()
            if clause.args.get("recursive") and isinstance(body, exp.SetOperation) and _refers(body.expression, folded):
                anchor = self.query(body.this, parent, known)
                known[folded] = name_columns(anchor, names, cte.alias)
                self.query(body.expression, parent, known)
                body.meta[OUTPUTS] = anchor
                outputs = anchor
            else:
                outputs = self.query(body, parent, known)
            known[folded] = name_columns(outputs, names, cte.alias)
        return known

    def _set_operation(self, node: exp.SetOperation, parent: Scope | None, ctes: Ctes) -> Outputs:
        left = self.query(node.this, parent, ctes)
        right = self.query(node.expression, parent, ctes)
        outputs: Outputs
        if left is None or right is None:
            outputs = left
        elif node.args.get("by_name"):
            known = {output.name.casefold() for output in left}
            outputs = (*left, *(output for output in right if output.name.casefold() not in known))
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
        scope = Scope(parent)
        from_clause.bind_from(self, node, scope, ctes)
        projections = [item for written in node.expressions for item in expand(written, scope)]
        complete = not any(has_star(item) for item in projections)
        aliases: dict[str, exp.Expr] = {}
        bound: list[exp.Expr] = []
        outputs: list[Output] = []
        for item in projections:
            name = item.meta.get(WRITTEN) or output_name(item)
            value = self._projection(item, scope, ctes, aliases)
            if isinstance(value, exp.Column) and not isinstance(item, exp.Alias):
                # DuckDB names an output column in the table's spelling.
                name = value.meta.get(WRITTEN) or value.name
            if fields := fields_of_row(value):
                bound += [aliased(field, name) for name, field in fields]
                outputs += [Output(name, field.meta.get(TYPE)) for name, field in fields]
                continue
            complete = complete and not gives_fields(value)
            bound.append(aliased(value, name) if not has_star(value) else value)
            outputs.append(Output(name, value.meta.get(TYPE)))
            if isinstance(item, exp.Alias):
                value.meta[ALIAS_POSITION] = len(bound)
                aliases[name.casefold()] = value  # the last of several columns with the same name
        node.set("expressions", bound)

        condition = node.args.get("where")
        if condition is not None:
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
        for part in ("limit", "offset"):
            if node.args.get(part):
                self.expression(node.args[part], scope, ctes)
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
        if node.meta.get(BOUND):
            return node
        if (seen := scope.seen_by(node)) is not scope:
            scope, aliases = seen, None
        if isinstance(node, exp.Column):
            bound = self._column(node, scope, aliases or {})
        elif (column := column_of(node, scope)) is not None:
            bound = self._column(column, scope, {})
        elif isinstance(node, exp.Anonymous) and (
            expanded := self._scalar_macro(TableName(None, None, node.name), node, scope, ctes, aliases)
        ):
            bound = expanded
        elif (rows := rows_as_list(node)) is not None:
            bound = self.expression(rows, scope, ctes, aliases)
        elif isinstance(node, exp.Dot):
            bound = self._dot(node, scope, ctes, aliases)
        elif isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            note_written(node)
            outputs = self.query(node, scope, ctes)
            node.meta[TYPE] = outputs[0].type if outputs and len(outputs) == 1 else None
            return node
        elif isinstance(node, exp.DataType):
            return node
        elif isinstance(node, exp.Anonymous) and node.name.casefold() == "alias":
            raise UnsupportedFeatureError("Function alias is not supported on Spark.")  # it would see aliases
        else:
            if isinstance(node, exp.Array) and len(node.expressions) == 1:
                node = without_comprehension(node)
            self.children(node, scope, ctes, aliases)
            node.meta[TYPE] = infer(node)
            return node
        if bound is not node and node.parent is not None:
            node.replace(bound)
        return bound

    def children(self, node: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None = None) -> None:
        for child in list(node.iter_expressions()):
            if not isinstance(child, exp.Identifier | exp.Var):
                self.expression(child, scope, ctes, aliases)

    def _column(self, node: exp.Column, scope: Scope, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
        if TYPE in node.meta or isinstance(node.this, exp.Star):
            return node
        parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
        name = parts[0].name.casefold()
        # columns of FROM and its rows come first; a dotted name never means an alias
        is_alias = len(parts) == 1 and name in aliases
        if is_alias and not any(r.find(name) or r.name.casefold() == name for r in scope.relations):
            return alias_value(node, aliases[name])
        found = resolve(parts, scope)
        return node if found is None else found

    def _dot(self, node: exp.Dot, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None) -> exp.Expr:
        """Binds `expression.field`, a longer dotted name, or `expression.function(…)`."""
        if isinstance(node.expression, exp.Anonymous):
            call = node.expression.copy()
            subject: exp.Expr = node.this
            qualifiers = [part.name for part in dotted(subject) or ()]
            if qualifiers:
                name = TableName.of([*qualifiers, call.name])
                expanded = self._scalar_macro(name, call, scope, ctes, aliases)
                if expanded is not None:
                    return expanded
                if [qualifier.casefold() for qualifier in qualifiers] in _BUILT_IN and not _names_column(
                    qualifiers, scope
                ):
                    return self.expression(call, scope, ctes, aliases)
            call.set("expressions", [with_columns(subject), *call.expressions])
            return self.expression(call, scope, ctes, aliases)
        parts = dotted(node)
        if parts is not None and len(parts) > 1:
            found = dotted_column(parts, scope)
            if found is not None:
                return found
        self.children(node, scope, ctes, aliases)
        node.meta[TYPE] = infer(node)
        return node


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


def _names_column(names: list[str], scope: Scope) -> bool:
    return any(relation.find(names[0]) is not None for level in scope.around() for relation in level.relations)


def _refers(tree: exp.Expr, folded: str) -> bool:
    return any(table.name.casefold() == folded and not table.db for table in tree.find_all(exp.Table))


def _placed(message: str, name: TableName) -> str:
    """Returns an error's text with the position in its first sentence."""
    if name.line is None:
        return message
    spot = f" (line {name.line}, column {name.column})"
    head, separator, tail = message.partition(". ")
    if separator:
        return f"{head}{spot}. {tail}"
    return f"{message.removesuffix('.')}{spot}."
