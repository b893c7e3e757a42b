"""Plans INSERT, DELETE and UPDATE: queries for the rows that they write.

A delete queries the virtual columns of the matching rows; an update also queries the
new value of each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ducklake_lab.errors import BindError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.model.entries import Column
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.types import ON_SPARK, DataType
from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.bind.expansion import normalised
from ducklake_lab.sql.bind.item_names import aliased
from ducklake_lab.sql.bind.star_expansion import refuse_columns
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.kinds import kind_of_output
from ducklake_lab.sql.notes import Output, notes
from ducklake_lab.sql.operations import Delete, Insert, TableName, Update
from ducklake_lab.sql.plan import QueryPlan, Resolver
from ducklake_lab.sql.planning.limits import note_queries
from ducklake_lab.sql.planning.planner import finish
from ducklake_lab.sql.scope import Scope, bind_error
from ducklake_lab.sql.types import to_sqlglot

_ROWS = "_ducklake_rows"


def carrier(kind: DataType) -> DataType:
    """Returns the type of Spark's columns for a type that Spark lacks."""
    if ON_SPARK.get(kind.name) == "STRING" and kind.name not in ("json", "uuid"):
        return DataType("varchar")
    if kind.name == "geometry":
        return DataType("blob")
    return DataType(kind.name, tuple((name, carrier(child)) for name, child in kind.children))


def plan_insert(op: Insert, columns: Sequence[Column], resolver: Resolver) -> QueryPlan:
    """Plans the rows of an INSERT: all table columns in order, cast to their types, with defaults.

    Raises:
        BindError: a column does not exist, or there are too many or too few values.
    """
    binder = QueryBinder(resolver)
    given = targets(op, columns)
    if op.query is None:
        tree = exp.Select(expressions=[_named(_default(column, binder), column) for column in columns])
        return finish(tree, _outputs(columns), binder)
    query = normalised(op.query)
    note_queries(query)
    values = _plain_values(query)
    if values is not None and not op.by_name:
        _cast_values(values, op, given)
    outputs = binder.query(query, None, {})
    if outputs is None:
        raise UnsupportedFeatureError(
            "INSERT from a query whose columns are not known before running is not supported."
        )
    if op.by_name:
        given = matched_by_name(op.table, [output.name for output in outputs], columns)
    elif len(outputs) != len(given):
        raise _arity(op, len(given), len(outputs))
    if values is not None and not op.by_name and not binder.sources and list(given) == list(columns):
        # unchanged, except for casts of its values
        query.set("expressions", [_named(i.unalias(), c) for i, c in zip(query.expressions, columns, strict=True)])
        return finish(query, _outputs(columns), binder)
    places = {column.column_id: index for index, column in enumerate(given)}
    names = [column.name for column in given]
    if len({name.casefold() for name in names}) < len(names):
        names = [f"c{index}" for index in range(len(names))]  # DuckDB ignores case; the table's columns do not
    items: list[exp.Expr] = []
    for column in columns:
        index = places.get(column.column_id)
        if index is None:
            items.append(_named(_default(column, binder), column))
            continue
        value = exp.column(_quoted(names[index]), table=_quoted(_ROWS), copy=False)
        # Values of VALUES are cast in place.
        notes(value).set_type(column.data_type if values is not None and not op.by_name else outputs[index].type)
        # Spark carries these types as text or bytes, and the writer converts them
        carried = carrier(column.data_type)
        later = carried != column.data_type and kind_of_output(outputs[index]) == carried
        items.append(_named(value if later else _converted(value, column.data_type), column))
    alias = exp.TableAlias(this=_quoted(_ROWS), columns=[_quoted(name) for name in names])
    tree = exp.Select(expressions=items).from_(exp.Subquery(this=query, alias=alias), copy=False)
    return finish(tree, _outputs(columns), binder)


def plan_delete(op: Delete, resolver: Resolver) -> QueryPlan:
    """Plans the four virtual columns of the rows that a DELETE matches."""
    binder = QueryBinder(resolver)
    tree = exp.select(*_virtual()).from_(op.tree.this.copy())
    condition = op.tree.args.get("where")
    for other in op.tree.args.get("using") or ():
        _add_to_from(tree, other)
        # A row is deleted once, even if it matches several rows of the other tables.
        tree.set("distinct", exp.Distinct())
    if condition is not None:
        refuse_columns(condition)
        tree.set("where", condition.copy())
    _take_over_with(op.tree, tree)
    binder.changed = tree
    outputs = binder.query(tree, None, {})
    _check_sources(tree)
    return finish(tree, outputs, binder, tuple(VIRTUAL_COLUMNS.values()))


def plan_update(op: Update, columns: Sequence[Column], resolver: Resolver) -> QueryPlan:
    """Plans the four virtual columns of the rows that an UPDATE matches, and each column's new value, cast.

    Raises:
        BindError: it sets a column that does not exist, or sets one twice.
    """
    binder = QueryBinder(resolver)
    table = op.tree.this
    target = table.alias_or_name
    assigned = assignments_of(op.tree.expressions, target, op.table.name, columns)
    for part in (*assigned.values(), op.tree.args.get("where")):
        refuse_columns(part)
        if part is not None and any(one.find_ancestor(exp.Query) is None for one in part.find_all(exp.Window)):
            raise BindError("UPDATE takes no window functions; compute them in a subquery.")
    items: list[exp.Expr] = _virtual()
    for column in columns:
        value = assigned.get(column.column_id)
        if value is None:
            items.append(_named(column_of_place(column.name, 0), column))
        elif is_default(value):
            items.append(_named(_default(column, binder), column))
        else:
            items.append(_named(exp.Cast(this=value.copy(), to=to_sqlglot(column.data_type)), column))
    tree = exp.Select(expressions=items).from_(table.copy(), copy=False)
    if op.tree.args.get("where"):
        tree.set("where", op.tree.args["where"].copy())
    source = op.tree.args.get("from_")
    if source is not None:
        _add_to_from(tree, source.this)
        # A row that matches several rows of the other tables is updated once, with any of them.
        row = column_of_place(ROW_ID, 0)
        first = exp.Window(this=exp.Anonymous(this="row_number"), partition_by=[row], over="OVER")
        tree.set("qualify", exp.Qualify(this=exp.EQ(this=first, expression=exp.Literal.number(1))))
    _take_over_with(op.tree, tree)
    binder.changed = tree
    outputs = binder.query(tree, None, {})
    _check_sources(tree)
    return finish(tree, outputs, binder, [*VIRTUAL_COLUMNS.values(), *(column.data_type for column in columns)])


def _add_to_from(tree: exp.Select, item: exp.Expr) -> None:
    """Adds an item with its joins to FROM."""
    added = item.copy()
    joins = added.args.get("joins") or []
    added.set("joins", None)
    for join in (exp.Join(this=added), *joins):
        tree.append("joins", join)


def _check_sources(tree: exp.Select) -> None:
    """Raises BindError if one of the other tables of a bound UPDATE or DELETE names a column of the changed table."""
    target = notes(tree.expressions[0].unalias()).relation
    for join in tree.args.get("joins") or ():
        for column in join.find_all(exp.Column):
            if notes(column).relation is target:
                message = (
                    f'"{column.name}" of {column.table}, which changes, is not seen by the other tables; use WHERE.'
                )
                raise BindError(message)


def _take_over_with(statement: exp.Expr, tree: exp.Select) -> None:
    """Moves a statement's common table expressions to its query.

    Raises:
        UnsupportedFeatureError: one has the name of the changed table, and would hide it.
    """
    given = statement.args.get("with_")
    if given is None:
        return
    target = statement.this
    if not target.db and any(each.alias.casefold() == target.name.casefold() for each in given.expressions):
        raise UnsupportedFeatureError(f"{target.name} in WITH is called like the table that changes; rename it.")
    tree.set("with_", given.copy())


# -- parts ----------------------------------------------------------------------------------------


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _named(value: exp.Expr, column: Column) -> exp.Expr:
    return aliased(value, column.name)


def _outputs(columns: Sequence[Column]) -> tuple[Output, ...]:
    return tuple(Output(column.name, column.data_type) for column in columns)


def _virtual() -> list[exp.Expr]:
    """Returns the virtual columns of the changed table, which is the first in FROM."""
    return [column_of_place(name, 0) for name in VIRTUAL_COLUMNS]


def column_of_place(name: str, place: int) -> exp.Column:
    """Returns a column of the relation at a place in FROM, whatever the other ones are called."""
    column = exp.column(_quoted(name), copy=False)
    notes(column).only_of = place
    return column


def _converted(value: exp.Expr, kind: DataType) -> exp.Expr:
    node = exp.Cast(this=value, to=to_sqlglot(kind))
    notes(node).set_type(kind)
    return node


def _default(column: Column, binder: QueryBinder) -> exp.Expr:
    """Returns the default value of a column, bound and cast to its type."""
    return binder.expression(unbound_default(column), Scope(), {})


def _literal(text: str, kind: DataType) -> exp.Expr:
    if kind.is_numeric:
        try:
            value = Decimal(text)
        except InvalidOperation:
            return exp.Literal.string(text)
        if value.is_finite():
            number = exp.Literal.number(format(abs(value), "f"))
            return exp.Neg(this=number) if value < 0 else number
    return exp.Literal.string(text)


def is_default(value: exp.Expr) -> bool:
    """Returns whether a value is the word DEFAULT, which the parser reads as a variable or a column."""
    if isinstance(value, exp.Var):
        return value.name.upper() == "DEFAULT"
    if not isinstance(value, exp.Column) or value.table or not isinstance(value.this, exp.Identifier):
        return False
    return value.name.upper() == "DEFAULT" and not value.this.args.get("quoted")


def targets(op: Insert, columns: Sequence[Column]) -> list[Column]:
    """Returns the columns that an INSERT names, or all.

    Raises:
        BindError: a column does not exist, or is named twice.
    """
    if op.columns is None:
        return list(columns)
    if op.by_name:
        raise BindError("INSERT … BY NAME takes no column list; the query's names are the list.")
    by_name = {column.name.casefold(): column for column in columns}
    chosen: list[Column] = []
    for index, name in enumerate(op.columns):
        line, column_number = op.column_positions[index] if index < len(op.column_positions) else (None, None)
        spot = f" (line {line}, column {column_number})" if line is not None else ""
        column = by_name.get(name.casefold())
        if column is None:
            hint = did_you_mean(name, [column.name for column in columns])
            raise BindError(f'{op.table.name} has no column "{name}"{spot}.{hint}', line=line, column=column_number)
        if column in chosen:
            raise BindError(f'Column "{name}" is given twice{spot}.', line=line, column=column_number)
        chosen.append(column)
    return chosen


def matched_by_name(table: TableName, names: Sequence[str], columns: Sequence[Column]) -> list[Column]:
    """Returns the columns with the names of given rows, in their order.

    Raises:
        BindError: a column does not exist, or is given twice.
    """
    by_name = {column.name.casefold(): column for column in columns}
    chosen: list[Column] = []
    for name in names:
        column = by_name.get(name.casefold())
        if column is None:
            hint = did_you_mean(name, [column.name for column in columns])
            raise BindError(
                f'{table.name} has no column "{name}", which INSERT BY NAME got.{hint}',
                line=table.line,
                column=table.column,
            )
        if column in chosen:
            raise BindError(f'INSERT BY NAME got column "{name}" twice.')
        chosen.append(column)
    return chosen


def _arity(op: Insert, wanted: int, got: int) -> BindError:
    where = f" (line {op.table.line}, column {op.table.column})" if op.table.line is not None else ""
    target = f"table {op.table.name} has {wanted} column{'s' if wanted != 1 else ''}"
    if op.columns is not None:
        target = f"INSERT INTO {op.table.name} names {wanted} column{'s' if wanted != 1 else ''}"
    return BindError(
        f"{target} but {got} value{'s were' if got != 1 else ' was'} supplied{where}.",
        line=op.table.line,
        column=op.table.column,
    )


def _plain_values(query: exp.Expr) -> exp.Values | None:
    """Returns the VALUES of a query that consists of nothing else."""
    if not isinstance(query, exp.Select) or not query.args.get("from_"):
        return None
    values = query.args["from_"].this
    others = any(query.args.get(part) for part in ("joins", "where", "group", "order", "limit", "offset"))
    if not isinstance(values, exp.Values) or others or len(query.expressions) != 1:
        return None
    return values if isinstance(query.expressions[0], exp.Star) else None


def _cast_values(values: exp.Values, op: Insert, given: Sequence[Column]) -> None:
    """Casts each value of VALUES to its column's type, and replaces DEFAULT by the default."""
    for row in values.expressions:
        items = row.expressions if isinstance(row, exp.Tuple) else [row.unnest()]
        if len(items) != len(given):
            raise _arity(op, len(given), len(items))
        cast: list[exp.Expr] = [
            unbound_default(column) if is_default(item) else exp.Cast(this=item.copy(), to=to_sqlglot(column.data_type))
            for item, column in zip(items, given, strict=True)
        ]
        if isinstance(row, exp.Tuple):
            # all at once: replacing one item walks the whole list
            row.set("expressions", cast)
        else:
            items[0].replace(cast[0])


def unbound_default(column: Column) -> exp.Expr:
    """Returns the default value of a column, cast to its type.

    Raises:
        UnsupportedFeatureError: the default is an expression that cannot be parsed.
    """
    kind = to_sqlglot(column.data_type)
    text = column.default_value
    if text is None or text.upper() == "NULL":
        return exp.Cast(this=exp.Null(), to=kind)
    if column.default_value_type != "expression":
        return exp.Cast(this=_literal(text, column.data_type), to=kind)
    try:
        return exp.Cast(this=sqlglot.parse_one(text, read=DuckLakeSql), to=kind)
    except SqlglotError as error:
        raise UnsupportedFeatureError(f'The default of column "{column.name}" cannot be read: {text}.') from error


def assignments_of(
    assignments: Sequence[exp.Expr], alias: str, table: str, columns: Sequence[Column]
) -> dict[int, exp.Expr]:
    """Returns the value from SET by column id.

    Args:
        alias: the statement's name for the table.
    """
    by_name = {column.name.casefold(): column for column in columns}
    target = alias.casefold()
    result: dict[int, exp.Expr] = {}
    for assignment in assignments:
        for column_node, value in _pairs(assignment):
            if not isinstance(column_node, exp.Column):
                raise UnsupportedFeatureError("UPDATE … SET of anything but columns is not supported yet.")
            if column_node.table and column_node.table.casefold() != target:
                raise UnsupportedFeatureError("UPDATE … SET of a struct field is not supported yet.")
            column = by_name.get(column_node.name.casefold())
            if column is None:
                hint = did_you_mean(column_node.name, [column.name for column in columns])
                raise bind_error(f'{table} has no column "{column_node.name}"', column_node.this, hint)
            if column.column_id in result:
                raise bind_error(f'Column "{column_node.name}" is set twice', column_node.this)
            result[column.column_id] = value
    return result


def _pairs(assignment: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Returns the columns and values of `a = 1`, `(a, b) = (1, 2)` or `(a, b) = 1`, which sets both to 1.

    Raises:
        BindError: a row has too many or too few values.
    """
    value = assignment.expression
    if not isinstance(assignment.this, exp.Tuple | exp.Paren):
        return [(assignment.this, value)]
    columns = assignment.this.expressions or [assignment.this.this]
    is_row = isinstance(value, exp.Tuple) or (isinstance(value, exp.Anonymous) and value.name.casefold() == "row")
    values = value.expressions if is_row else [value] * len(columns)
    if len(values) != len(columns):
        names = ", ".join(column.name for column in columns)
        raise BindError(f"SET ({names}) needs {len(columns)} values, but {len(values)} were given.")
    return list(zip(columns, values, strict=True))
