"""Binds the FROM clause: tables, functions, subqueries, VALUES, UNNEST and joins become relations of a scope."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.bind.binding import Binding
from ducklake_lab.sql.bind.item_names import alias_of, name_columns, repeated, set_alias
from ducklake_lab.sql.bind.using import merge_using, natural_columns
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import Output, Relation, line_and_column, notes, start_of
from ducklake_lab.sql.operations import At, TableName
from ducklake_lab.sql.parse.statements import call_arguments
from ducklake_lab.sql.plan import DESCRIBERS, Source, StoredView
from ducklake_lab.sql.prune import pushdown
from ducklake_lab.sql.scope import Ctes, Scope, bind_error, where

_BIGINT = DataType("int64")


def bind_from(binder: Binding, node: exp.Select, scope: Scope, ctes: Ctes) -> None:
    """Adds the relations of a SELECT to its scope, and binds its join conditions."""
    clause = node.args.get("from_")
    if clause is None:
        return
    clause.set("this", _item(binder, clause.this, scope, ctes))
    _joins(binder, node, scope, ctes, [])


def _joins(binder: Binding, node: exp.Expr, scope: Scope, ctes: Ctes, outside: list[Relation]) -> None:
    """Binds the joins of an item of FROM; a comma begins another item with joins of its own.

    Args:
        outside: relations of the scope outside the item.
    """
    for join in node.args.get("joins") or []:
        if is_comma(join):
            outside = list(scope.relations)
        _join(binder, join, scope, ctes, outside)


def is_comma(join: exp.Join) -> bool:
    """Returns whether a join is a comma in FROM."""
    return not any(join.args.get(part) for part in ("method", "side", "kind", "using", "on"))


def _join(binder: Binding, join: exp.Join, scope: Scope, ctes: Ctes, outside: list[Relation]) -> None:
    method = join.args.get("method") or ""
    kind, side = join.kind.upper(), join.side.upper()
    is_asof = method.upper() == "ASOF"
    if (method and not is_asof and method.upper() != "NATURAL") or kind in ("POSITIONAL", "STRAIGHT"):
        raise UnsupportedFeatureError(f"{method.upper() or kind} JOIN is not supported yet.")
    if join.args.get("nearest"):
        raise UnsupportedFeatureError("NEAREST JOIN is not supported yet.")
    here = list(scope.relations)
    before = [relation for relation in here if relation not in outside]
    join.set("this", _item(binder, join.this, scope, ctes))
    added = [relation for relation in scope.relations if relation not in here]
    using = list(join.args.get("using") or [])
    if is_asof and using and side not in ("", "LEFT"):
        raise UnsupportedFeatureError(f"ASOF {side} JOIN with USING is not supported on Spark; use ON.")
    if method and not is_asof:
        using = natural_columns(before, added)
        join.set("method", None)
    if using:
        names, condition = merge_using(using, before, added, scope, side=side, is_asof=is_asof)
        join.set("using", names)
        notes(join).is_shadowed = any(one.columns is None or one.find(name.name) for one in outside for name in using)
        notes(join).joined_by = tuple(
            tuple(
                relation.column(output)
                for relation in (*before, *added)
                if (output := relation.find(name.name)) is not None
                and relation in scope.merged[name.name.casefold()].members
            )
            for name in using
        )
        for name in using if not is_asof else ():
            # the column is the first non-NULL one of the relations that have it
            holders = [relation for relation in (*before, *added) if relation.find(name.name) is not None]
            for relation in _restricted(side, kind, before, added) if len(holders) == 2 else ():
                pushdown.restrict_by(relation, name.name, holders)
        if condition is not None and not is_asof:
            join.set("using", None)
            join.set("on", condition)
    condition = join.args.get("on")
    if condition is not None:
        join.set("on", binder.expression(condition, scope, ctes))
        if not is_asof:
            _restrict(join.args["on"], side, kind, before, added)
    if side in ("LEFT", "FULL") and kind not in ("SEMI", "ANTI"):
        for relation in added:
            relation.nullable = True
    if side in ("RIGHT", "FULL"):
        for relation in before:
            relation.nullable = True
    if kind in ("SEMI", "ANTI"):
        # Conditions may use the right side, but its columns are not part of the result.
        scope.relations = here


def _restrict(condition: exp.Expr, side: str, kind: str, before: list[Relation], added: list[Relation]) -> None:
    """Notes the restriction that a join condition implies for its relations."""
    for relation in _restricted(side, kind, before, added):
        pushdown.restrict(relation, condition)


def _restricted(side: str, kind: str, before: list[Relation], added: list[Relation]) -> list[Relation]:
    """Returns the relations whose rows only count if they fulfil the join condition."""
    relations: list[Relation] = []
    if kind == "ANTI" or side == "LEFT":
        relations = added if kind != "SEMI" else [*before, *added]
    elif side == "RIGHT":
        relations = before
    elif side != "FULL":
        relations = [*before, *added]
    return [relation for relation in relations if not relation.nullable]


def refuse_sample(node: exp.Expr) -> None:
    """Refuses samples: DuckDB samples in its own scan order, with or without a seed."""
    if node.args.get("sample"):
        raise UnsupportedFeatureError(
            "TABLESAMPLE and USING SAMPLE are not supported on Spark, which would draw other rows; use engine='duckdb'."
        )


def _item(binder: Binding, node: exp.Expr, scope: Scope, ctes: Ctes) -> exp.Expr:
    """Binds one item of FROM, adds its relations, and returns its replacement."""
    outside = list(scope.relations)
    node = _without_lateral(node)
    refuse_sample(node)
    for part, word in (("pivots", "PIVOT"), ("laterals", "LATERAL VIEW")):
        if node.args.get(part):
            raise UnsupportedFeatureError(f"{word} is not supported yet.")
    if isinstance(node, exp.Table):
        result = _table(binder, node, scope, ctes)
    elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query) and not is_join(node):
        result = _subquery(binder, node, scope, ctes)
    elif isinstance(node, exp.Subquery) and _is_named(node):
        # A join in parentheses under a name, by which alone its columns are called.
        node.set("this", exp.select(exp.Star(), copy=False).from_(node.this, copy=False))
        result = _subquery(binder, node, scope, ctes)
    elif isinstance(node, exp.Subquery):
        # A join in parentheses.
        node.set("alias", None)
        node.set("this", _item(binder, node.this, scope, ctes))
        result = node
    elif isinstance(node, exp.Values):
        result = _values(binder, node, scope, ctes)
    elif isinstance(node, exp.Unnest):
        result = _unnest(binder, node, scope, ctes)
    elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
        inner = node.this
        if node.args.get("alias") and not inner.args.get("alias"):
            inner.set("alias", node.args["alias"])
        result = _subquery(binder, inner, scope, ctes)
        notes(result).is_lateral = True
    else:
        raise UnsupportedFeatureError(f"{type(node).__name__} in FROM is not supported yet.")
    _joins(binder, node, scope, ctes, outside)
    return result


def _without_lateral(node: exp.Expr) -> exp.Expr:
    """Returns a function in FROM without a preceding LATERAL, which has no effect."""
    inner = node.this if isinstance(node, exp.Lateral) else None
    if isinstance(inner, exp.Anonymous):
        inner = exp.Table(this=inner, ordinality=node.args.get("ordinality"))
    elif not isinstance(inner, exp.Unnest):
        return node
    for part in ("alias", "joins"):
        inner.set(part, node.args.get(part))
    return inner


def is_join(node: exp.Expr) -> bool:
    """Returns whether parentheses contain a join that begins with a subquery, instead of a query."""
    inner = node.this
    return isinstance(inner, exp.Subquery) and bool(inner.args.get("joins") or inner.args.get("alias"))


def _is_named(node: exp.Subquery) -> bool:
    """Returns whether a join in parentheses goes by its alias; DuckDB drops the alias if the last condition is USING."""
    joins = node.this.args.get("joins") or []
    return bool(node.args.get("alias")) and not (joins and joins[-1].args.get("using"))


def _table(binder: Binding, node: exp.Table, scope: Scope, ctes: Ctes) -> exp.Expr:
    alias, names = alias_of(node)
    parts = node.parts
    if isinstance(parts[-1], exp.Anonymous):
        return _function(binder, node, parts[-1], scope, ctes)
    if len(parts) == 1 and node.name.upper() == "SHOW" and not node.this.args.get("quoted"):
        raise UnsupportedFeatureError("SHOW in FROM is not supported on Spark.")
    if len(parts) == 2 and node.db.casefold() == "recurring" and node.name.casefold() in ctes:
        raise UnsupportedFeatureError(f"recurring.{node.name}, all rows of a recursion, is not supported on Spark.")
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise UnsupportedFeatureError(f"{type(node.this).__name__} in FROM is not supported yet.")
    moment = node.args.get("when")
    folded = node.name.casefold()
    if len(parts) == 1 and moment is None and folded in ctes:
        relation = Relation(alias or node.name, alias or node.name, name_columns(ctes[folded], names, alias))
        scope.add(relation)
        set_alias(node, relation, names or repeated(ctes[folded]))
        return node
    name = TableName.of([part.name for part in parts], *line_and_column(parts[0]))
    if moment is None and binder.owns(name):
        return _local(binder, node, scope, alias or name.name, names, name)
    start = start_of(parts[0])
    table_or_view = binder.frame.copied(start) or binder.table(name, _at(moment))
    if isinstance(table_or_view, StoredView):
        tree, outputs, text = binder.view(table_or_view, _at(moment))
        unnamed = bool(alias) or table_or_view.temporary
        qualifiers: tuple[str, ...] = (
            () if unnamed else TableName(table_or_view.lake, table_or_view.schema, name.name).qualifiers
        )
        relation = Relation(alias or name.name, alias or name.name, name_columns(outputs, names, alias), qualifiers)
        scope.add(relation)
        _splice(binder, node, f"({text})", relation, scope)
        return _expanded(node, tree, relation, [*table_or_view.columns, *names] or repeated(outputs))
    source, columns = table_or_view
    qualifiers = () if alias or source.rows is None else source.rows.qualifiers
    relation = Relation(alias or name.name, alias or name.name, name_columns(columns, names, alias), qualifiers, source)
    scope.add(relation)
    _splice(binder, node, quote_identifier(source.view), relation, scope)
    binder.frame.sources[start] = source
    # Column aliases would have to count the virtual columns too, so a renaming subquery replaces the table.
    result: exp.Expr = exp.Table(this=exp.to_identifier(source.view, quoted=True))
    if names:
        result = exp.Subquery(this=_renaming(source, columns, relation))
        relation.source = None
    set_alias(result, relation, [])
    result.set("joins", node.args.get("joins"))
    return result


def _splice(binder: Binding, node: exp.Table, sql: str, relation: Relation, scope: Scope) -> None:
    """Replaces the name of a relation in the text by `sql`."""
    same = any(one is not relation and one.name.casefold() == relation.name.casefold() for one in scope.relations)
    relation.written = relation.alias if same else relation.name
    binder.frame.table(node, sql, relation.written)


def _expanded(node: exp.Table, tree: exp.Expr, relation: Relation, names: list[str]) -> exp.Expr:
    """Returns the query of a view or macro as a replacement for its name."""
    result = exp.Subquery(this=tree.this if isinstance(tree, exp.Subquery) and not _has_modifiers(tree) else tree)
    set_alias(result, relation, names)
    result.set("joins", node.args.get("joins"))
    return result


def _has_modifiers(tree: exp.Subquery) -> bool:
    return any(tree.args.get(part) for part in ("order", "limit", "offset", "with_"))


def _renaming(source: Source, columns: tuple[Output, ...], relation: Relation) -> exp.Select:
    items = []
    for old, new in zip(columns, relation.columns or (), strict=True):
        column = exp.column(exp.to_identifier(old.name, quoted=True))
        notes(column).set_type(old.type)
        items.append(exp.alias_(column, new.name, quoted=True))
    return exp.select(*items).from_(exp.Table(this=exp.to_identifier(source.view, quoted=True)))


def _at(moment: exp.Expr | None) -> At | None:
    if moment is None:
        return None
    column = moment.expression.find(exp.Column)
    if column is not None:
        raise bind_error(f'AT needs a constant, not column "{column.name}"', column.this)
    constant = moment.expression.sql(dialect=DuckLakeSql)
    return At(version_sql=constant) if moment.text("kind").upper() == "VERSION" else At(timestamp_sql=constant)


def _function(binder: Binding, node: exp.Table, call: exp.Anonymous, scope: Scope, ctes: Ctes) -> exp.Expr:
    alias, names = alias_of(node)
    shown = alias or call.name
    name = TableName.of([part.name for part in node.parts], *line_and_column(call))
    if name.schema is None and call.name.lower() in ("range", "generate_series"):
        binder.children(call, scope, ctes)
        columns = _counted_on(node, Output(call.name.lower(), value=_unnested(call)), bool(node.args.get("ordinality")))
        relation = Relation(shown, shown, name_columns(columns, names, alias))
        scope.add(relation)
        set_alias(node, relation, names or [column.name for column in columns])
        return node
    if node.args.get("ordinality"):
        raise UnsupportedFeatureError(f"WITH ORDINALITY of {call.name} is not supported on Spark; use row_number().")
    macro = binder.find_macro(name, "table")
    if macro is not None:
        tree, outputs, own_name = binder.table_macro(macro, call, scope, ctes)
        relation = Relation(shown, shown, name_columns(outputs, names, alias))
        lateral = any(notes(column).relation is not None for column in call.find_all(exp.Column))
        scope.add(relation)
        binder.frame.table(node, own_name, relation.alias, keeps_arguments=True)
        result = _expanded(node, tree, relation, names or repeated(outputs))
        notes(result).is_lateral = lateral
        return result
    try:
        args, kwargs = call_arguments(call)
    except BindError:
        _refuse_tables(binder, name)
        raise
    given = binder.resolver.function(name, args, kwargs)
    if given is None:
        return _local(binder, node, scope, shown, names, name)
    source = Source(
        binder.view_name(), "function", name, args=tuple(args), kwargs=kwargs, stored=bool(binder.expanding)
    )
    binder.sources.append(source)
    outputs = name_columns(tuple(Output(column, kind) for column, kind in given), names, alias)
    relation = Relation(shown, shown, outputs, (), source)
    scope.add(relation)
    _splice(binder, node, quote_identifier(source.view), relation, scope)
    binder.frame.sources[start_of(node.parts[0])] = source
    result = exp.Table(this=exp.to_identifier(source.view, quoted=True))
    set_alias(result, relation, names)
    return result


def _counted_on(node: exp.Expr, column: Output, ordinality: bool) -> tuple[Output, ...]:
    """Returns the columns of a function in FROM, with the row number if requested."""
    notes(node).has_ordinality = ordinality
    return (column, Output("ordinality", _BIGINT)) if ordinality else (column,)


def _unnested(rows: exp.Expr) -> exp.Expr:
    """Returns an element of a list."""
    return exp.Anonymous(this="unnest", expressions=[rows.copy()])


def _local(binder: Binding, node: exp.Table, scope: Scope, shown: str, names: list[str], name: TableName) -> exp.Expr:
    """Binds a table, file or function that DuckDB resolves itself."""
    bare = node.copy()
    for part in ("alias", "joins"):
        bare.set(part, None)
    query = f"SELECT * FROM {bare.sql(dialect=DuckLakeSql, identify=True, normalize_functions=False)}"
    columns = binder.resolver.describe(query)
    if columns is None and isinstance(node.this, exp.Anonymous) and node.this.find(exp.Query) is not None:
        raise UnsupportedFeatureError(
            f"A query as an argument of {name} in FROM is not supported on Spark, and in views and macros of lakes."
        )
    if columns is None and isinstance(node.this, exp.Anonymous):
        _refuse_tables(binder, name)
    if columns is None and not isinstance(node.this, exp.Anonymous):
        message = f'There is no table "{name}"{where(node.this)}.{binder.hint(name)}'
        raise BindError(message, line=name.line, column=name.column)
    outputs = tuple(Output(column, kind) for column, kind in columns) if columns is not None else None
    relation = Relation(shown, shown, name_columns(outputs, names, shown))
    scope.add(relation)
    source = Source(binder.view_name(), "local", name, query=query)
    binder.sources.append(source)
    notes(node).local_view = source.view
    set_alias(node, relation, names)
    return node


def _refuse_tables(binder: Binding, name: TableName) -> None:
    """Refuses a function of DuckDB whose arguments name tables."""
    if name.name.casefold() in DESCRIBERS or binder.resolver.table_parameters(name):
        raise UnsupportedFeatureError(
            f"{name.name} of lakes' tables is not supported on Spark, and in views and macros of lakes; name them in FROM."
        )


def _subquery(binder: Binding, node: exp.Subquery, scope: Scope, ctes: Ctes) -> exp.Expr:
    alias, names = alias_of(node)
    around = Scope(scope.parent, list(scope.relations), dict(scope.merged))
    outputs = binder.query(node.this, around, ctes)
    if around.touched:
        notes(node).is_lateral = True
    shown, number = alias or "unnamed_subquery", 2
    while not alias and any(relation.name == shown for relation in scope.relations):
        shown, number = f"unnamed_subquery{number}", number + 1
    relation = Relation(shown, shown, name_columns(outputs, names, alias), notes(node).qualifiers)
    scope.add(relation)
    set_alias(node, relation, names or repeated(outputs))
    return node


def _values(binder: Binding, node: exp.Values, scope: Scope, ctes: Ctes) -> exp.Expr:
    alias, names = alias_of(node)
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row.unnest()] for row in node.expressions]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise BindError("All rows of VALUES must have the same number of values.")
    binder.children(node, scope, ctes)
    node.set(
        "expressions",
        [row if isinstance(row, exp.Tuple) else exp.Tuple(expressions=[row.unnest()]) for row in node.expressions],
    )
    outputs = name_columns(tuple(Output(f"col{index}") for index in range(width)), names, alias)
    shown = alias or "valueslist"
    relation = Relation(shown, shown, outputs)
    scope.add(relation)
    set_alias(node, relation, names or ["col0"])
    return node


def _unnest(binder: Binding, node: exp.Unnest, scope: Scope, ctes: Ctes) -> exp.Expr:
    alias, names = alias_of(node)
    if len(node.expressions) != 1:
        raise UnsupportedFeatureError("UNNEST of several lists is not supported yet.")
    offset = node.args.get("offset")
    if isinstance(offset, exp.Identifier):
        names.append(offset.name)  # sqlglot parses the last name of the alias as the offset
        node.set("offset", True)
    binder.children(node, scope, ctes)
    columns = _counted_on(node, Output("unnest", value=_unnested(node.expressions[0])), bool(offset))
    shown = alias or "unnest"
    relation = Relation(shown, shown, name_columns(columns, names, alias))
    scope.add(relation)
    set_alias(node, relation, names or [column.name for column in columns])
    return node
