"""Expands `*`, `t.*` and COLUMNS(…) to columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import names_like
from ducklake_lab.errors import BindError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.kinds import kind_of
from ducklake_lab.sql.notes import Relation, notes
from ducklake_lab.sql.scope import Scope, bind_error, replace_qualifiers, resolve, without_column


def expand(item: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """Expands a projection: `*`, `t.*` and COLUMNS(…) become columns; others stay. All columns of a star get its alias."""
    if isinstance(item, exp.Alias) and has_star(item.this):
        return [exp.alias_(column.unalias(), item.alias, quoted=True) for column in expand(item.this, scope)]
    inner = item.this if isinstance(item, exp.Alias) else item
    if isinstance(inner, exp.Star):
        columns = scope.star()
        if columns is None:
            return [item]
        if not scope.relations:
            raise BindError("SELECT * needs a FROM clause.")
        return _starred(inner, columns, scope)
    if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
        fields = _fields_of(inner, scope)
        if fields:
            return _starred(inner.this, fields, scope)
        relation = _qualified_star(inner, scope)
        if relation.columns is None:
            return [item]
        return _starred(inner.this, [relation.column(output) for output in relation.columns], scope)
    _check_stars_inside(item)
    calls = _columns_calls(item)
    if not calls:
        return [item]
    columns = scope.star()
    if columns is None:
        raise UnsupportedFeatureError("COLUMNS(…) over columns that are not known is not supported.")
    if not scope.relations:
        raise BindError("COLUMNS(…) needs a FROM clause.")
    return _columns_call(item, calls, columns, scope)


def expand_condition(condition: exp.Expr, scope: Scope) -> exp.Expr:
    """Expands COLUMNS(…) in WHERE: each operand of its ANDs holds for all columns that it chooses."""
    if not _columns_calls(condition):
        return condition
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        for side in ("this", "expression"):
            inner.set(side, expand_condition(inner.args[side], scope))
        return condition
    return exp.and_(*(one.unalias() for one in expand(condition, scope)), copy=False)


def refuse_columns(node: exp.Expr | None) -> None:
    """Raises BindError for COLUMNS(…) in a part of a statement where DuckDB has none."""
    if node is not None and _columns_calls(node):
        raise BindError("COLUMNS(…) stands in queries alone; name the columns.")


def _columns_calls(item: exp.Expr) -> list[exp.Anonymous]:
    """Returns the calls of COLUMNS in an expression, without those in its queries."""
    nodes = item.walk(prune=lambda node: isinstance(node, exp.Query))
    return [node for node in nodes if isinstance(node, exp.Anonymous) and str(node.this).lower() == "columns"]


def _check_stars_inside(item: exp.Expr) -> None:
    """Raises UnsupportedFeatureError for a star inside an expression, except `count(*)` and `COLUMNS(*)`."""
    for star in item.find_all(exp.Star):
        holder = star.parent.parent if isinstance(star.parent, exp.Column) else star.parent
        if isinstance(holder, exp.Select | exp.Alias):
            continue  # a query inside the expression
        if not isinstance(holder, exp.Anonymous) or holder.name.lower() not in ("count", "columns"):
            raise UnsupportedFeatureError("A star inside of an expression, such as * LIKE 'a%', is not supported.")
    if any(call.name.lower() == "unpack" for call in item.find_all(exp.Anonymous)):
        raise UnsupportedFeatureError("*COLUMNS(…), which stands for several arguments, is not supported.")


def _starred(star: exp.Expr, columns: Sequence[exp.Expr], scope: Scope) -> list[exp.Expr]:
    if star.args.get("ilike") is not None:
        raise UnsupportedFeatureError("* ILIKE is not supported; use COLUMNS with a pattern.")
    by_name = {column.alias_or_name.casefold(): column for column in columns}

    def folded_name(node: exp.Expr) -> str:
        if node.name.casefold() not in by_name:
            identifier = node.this if isinstance(node.this, exp.Identifier) else node
            message = without_column(node.name, scope.relations)
            raise bind_error(message, identifier, did_you_mean(node.name, by_name))
        return node.name.casefold()

    excluded = [(folded_name(node), _tables(node)) for node in star.args.get("except_") or []]
    replaced = {folded_name(node.args["alias"]): node for node in star.args.get("replace") or []}
    renamed = [(folded_name(node.this), _tables(node.this), node.alias) for node in star.args.get("rename") or []]
    if scope.frame is not None and any(len(tables) > 1 for _, tables, *_ in (*excluded, *renamed)):
        scope.frame.qualify((), None)
    _check_changes(star, columns)
    gone: set[str] = set()
    result: list[exp.Expr] = []
    for column in columns:
        folded = column.alias_or_name.casefold()
        if folded in gone or any(folded == name and _is_of(column, tables) for name, tables in excluded):
            continue
        new_names = [new for name, tables, new in renamed if folded == name and _is_of(column, tables)]
        if folded in replaced:
            result.append(exp.alias_(replaced[folded].this.copy(), replaced[folded].alias, quoted=True))
            gone.add(folded)  # DuckDB omits later columns with that name
        elif new_names:
            result.append(exp.alias_(column.unalias(), new_names[0], quoted=True))
        else:
            result.append(column)
    return result


def _check_changes(star: exp.Expr, columns: Sequence[exp.Expr]) -> None:
    """Raises BindError if a list of a star repeats a column, or names one that the table lacks."""
    excluded = [(node, node.name) for node in star.args.get("except_") or []]
    replaced = [(node.args["alias"], node.alias) for node in star.args.get("replace") or []]
    seen: set[str] = set()
    for node, name in (*excluded, *replaced):
        folded = name.casefold()
        tables = _tables(node)
        if tables and not any(
            column.alias_or_name.casefold() == folded and _is_of(column, tables) for column in columns
        ):
            raise BindError(f'No table "{tables[-1]}" of FROM has a column "{name}"; EXCLUDE names it.')
        if folded in seen and not tables:
            raise BindError(f'"{name}" stands twice in the EXCLUDE and REPLACE of *; name it once.')
        seen.add(folded)


def _tables(node: exp.Expr) -> list[str]:
    """Returns the qualifiers of a column: catalog, schema and table."""
    return [part.name for part in node.parts[:-1]] if isinstance(node, exp.Column) else []


def _is_of(column: exp.Expr, names: list[str]) -> bool:
    """Returns whether the column belongs to the table with those qualifiers; without qualifiers, to any.

    Raises:
        UnsupportedFeatureError: the column belongs to several tables.
    """
    if not names:
        return True
    relation = notes(column).relation
    if relation is None:
        raise UnsupportedFeatureError(
            f'"{names[-1]}.{column.alias_or_name}" cannot be left out of a join that USING merges.'
        )
    return relation.matches(names)


def _columns_call(item: exp.Expr, calls: list[exp.Anonymous], columns: list[exp.Expr], scope: Scope) -> list[exp.Expr]:
    chosen: Sequence[exp.Expr] | None = None
    for call in calls:
        argument = call.expressions[0] if len(call.expressions) == 1 else None
        if isinstance(argument, exp.Star):
            some: Sequence[exp.Expr] = _starred(argument, columns, scope)
        elif isinstance(argument, exp.Literal) and argument.is_string:
            matching = names_like([column.alias_or_name for column in columns], argument.name)
            some = [column for column in columns if column.alias_or_name in matching]
        elif isinstance(argument, exp.Array) and all(one.is_string for one in argument.expressions):
            some = _listed(argument, columns, scope)
        else:
            raise UnsupportedFeatureError("COLUMNS with anything but *, a pattern or a list is not supported yet.")
        if chosen is not None and [c.alias_or_name for c in some] != [c.alias_or_name for c in chosen]:
            raise BindError("All COLUMNS(…) in one expression must choose the same columns.")
        chosen = some
    if not chosen:
        raise BindError("COLUMNS(…) matches no column.")
    if isinstance(item, exp.Alias) and "\\" in item.alias:
        raise UnsupportedFeatureError("COLUMNS(…) under names that a pattern makes is not supported.")
    result: list[exp.Expr] = []
    for column in chosen:
        value, copy = column.unalias(), item.copy()
        is_inside = False
        for call in _columns_calls(copy):
            if call is copy:
                copy = value.copy()
            else:
                is_inside = not isinstance(value, exp.Column) and notes(value).written_name is None
                call.replace(exp.Paren(this=value.copy()) if is_inside else value.copy())
        # DuckDB names each copy by its column, even inside an expression, but names a REPLACE value by its text.
        named = isinstance(copy, exp.Alias) or is_inside
        result.append(copy if named else exp.alias_(copy, column.alias_or_name, quoted=True))
    return result


def _listed(names: exp.Array, columns: list[exp.Expr], scope: Scope) -> list[exp.Expr]:
    """Returns the columns of a list of names, in their own order."""
    wanted = {element.name.casefold() for element in names.expressions}
    listed = [column for column in columns if column.alias_or_name.casefold() in wanted]
    found = {column.alias_or_name.casefold() for column in listed}
    for element in names.expressions:
        if element.name.casefold() not in found:
            raise BindError(f"{without_column(element.name, scope.relations)}, which COLUMNS([…]) names.")
    return listed


def gives_fields(value: exp.Expr) -> bool:
    """Returns whether a bound item of the SELECT list unnests a struct, which returns a column for each field."""
    if not isinstance(value, exp.Anonymous) or value.name.lower() != "unnest" or not value.expressions:
        return False
    kind = kind_of(value.expressions[0])
    return len(value.expressions) > 1 or (isinstance(kind, DataType) and kind.name == "struct")


def fields_of_row(value: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """Returns (name, value) for the fields of a struct that a bound item of the SELECT list unnests.

    Returns none for other items, or if the struct would be computed once per field.
    """
    if not gives_fields(value) or len(value.expressions) != 1:
        return []
    struct = value.expressions[0]
    kind = kind_of(struct)
    if kind is None or struct.find(exp.Anonymous, exp.Query) is not None or not all(name for name, _ in kind.children):
        return []
    fields: list[tuple[str, exp.Expr]] = []
    for name, child in kind.children:
        whole = struct.copy() if isinstance(struct, exp.Column | exp.Dot) else exp.Paren(this=struct.copy())
        field = exp.Dot(this=whole, expression=exp.to_identifier(name, quoted=True))
        notes(field).set_type(child)
        fields.append((name, field))
    return fields


def has_star(node: exp.Expr) -> bool:
    """Returns whether a projection is a star that could not be expanded."""
    inner = node.this if isinstance(node, exp.Alias) else node
    return isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star))


def _fields_of(column: exp.Column, scope: Scope) -> list[exp.Expr]:
    """Expands `s.*` to struct fields, if `s` is a column of FROM and no table."""
    parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
    names = [part.name for part in parts]
    if any(relation.matches(names) for relation in scope.relations):
        return []
    if len(parts) > 1 or not any(relation.find(names[0]) for relation in scope.relations):
        return []
    struct = resolve(parts, scope)
    kind = kind_of(struct)
    if not isinstance(kind, DataType) or kind.name != "struct":
        return []
    fields = (resolve([*parts, exp.to_identifier(name, quoted=True)], scope) for name, _ in kind.children)
    return [field for field in fields if field is not None]


def _qualified_star(column: exp.Column, scope: Scope) -> Relation:
    parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
    names = [part.name for part in parts]
    for relation in scope.relations:
        if relation.matches(names):
            if len(names) > 1:
                replace_qualifiers(parts, relation, scope, scope)
            return relation
    raise bind_error(
        f'Nothing in FROM is called "{".".join(names)}"',
        parts[0],
        did_you_mean(names[-1], [relation.name for relation in scope.relations]),
    )
