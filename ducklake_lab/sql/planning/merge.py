"""Plans MERGE INTO as one query that joins target and source, and returns an action for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from ducklake_lab.errors import BindError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.model.entries import Column
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.bind.star_expansion import refuse_columns
from ducklake_lab.sql.kinds import kind_of
from ducklake_lab.sql.notes import Output, Relation, notes
from ducklake_lab.sql.operations import Merge, MergeClause, Query
from ducklake_lab.sql.plan import JoinKey, QueryPlan, Resolver, Source
from ducklake_lab.sql.planning.planner import finish
from ducklake_lab.sql.planning.writes import assignments_of, column_of_place, is_default, unbound_default
from ducklake_lab.sql.prune.pushdown import is_key
from ducklake_lab.sql.types import to_sqlglot

#: Output column: the action for the row, e.g. `update`.
ACTION = "_ducklake_merge_action"
#: Output column: the text of ERROR.
MESSAGE = "_ducklake_merge_message"
#: Column of the source: always true, so NULL without a matching source row.
_HERE = "_ducklake_merge_here"

#: The subquery with each row's branch, and its column with the number of the applying clause.
_ROWS, _BRANCH = "_ducklake_merge_rows", "_ducklake_merge_branch"

#: Places of the two tables in FROM.
_TARGET, _SOURCE = 0, 1

_INTEGER, _VARCHAR = DataType("int32"), DataType("varchar")


def source_of(op: Merge) -> Query:
    """Returns the source of a MERGE as a query of its own."""
    return Query(op.source.copy())


def _with_source(op: Merge, registered: str) -> Merge:
    """Returns the MERGE with registered rows as its source, under the name that it has."""
    table = exp.Table(this=_quoted(registered), alias=exp.TableAlias(this=_quoted(_source_alias(op.source))))
    return replace(op, source=exp.Select(expressions=[exp.Star()]).from_(table, copy=False))


def plan_merge(op: Merge, columns: Sequence[Column], resolver: Resolver, registered: str = "") -> QueryPlan:
    """Plans the rows of a MERGE: the four virtual columns, `ACTION`, `MESSAGE`, and the new value of each column.

    The virtual columns are NULL for unmatched source rows; new values are NULL for deleted rows.

    Args:
        registered: the name of the rows that are the whole source; the table's source gets their join keys.

    Raises:
        BindError: a name does not exist, or there are too many or too few values.
    """
    target = op.alias or op.table.name
    qualifiers = _qualifiers(op, resolver)
    if registered:
        op = _with_source(op, registered)
    binder = QueryBinder(resolver)
    sources = binder.query(op.source.copy(), None, {})
    if sources is None:
        raise UnsupportedFeatureError("MERGE INTO from a source whose columns are not known before running.")
    binder = QueryBinder(resolver)
    names = [output.name for output in sources]
    alias = _source_alias(op.source)
    builder = _Values(op, target, names, columns)

    def case(value: Callable[[MergeClause], exp.Expr | None], kind: DataType) -> exp.Expr:
        """Returns an expression with a value for each row by its clause; NULL for clauses without one."""
        values = [(number, value(clause)) for number, clause in enumerate(op.clauses)]
        # Spark itself computes a CASE of conditions, and leaves one of values to DuckDB
        ifs = [
            exp.If(this=exp.EQ(this=_branch(), expression=_number(number)), true=_cast(value, kind))
            for number, value in values
            if value is not None
        ]
        return exp.Case(ifs=ifs) if ifs else _cast(exp.Null(), kind)

    items = [_aliased(builder.branch(), _BRANCH), _aliased(builder.here(), _HERE)]
    items += [column_of_place(name, _TARGET) for name in VIRTUAL_COLUMNS]
    items.append(_aliased(case(lambda clause: exp.Literal.string(clause.action), _VARCHAR), ACTION))
    items.append(
        _aliased(case(lambda clause: clause.message and builder.on_its_side(clause, clause.message), _VARCHAR), MESSAGE)
    )
    items += [
        _aliased(case(partial(builder.value, column=column), column.data_type), column.name) for column in columns
    ]
    tree = exp.Select(expressions=items).from_(_table(op), copy=False)
    source = _marked(op.source, alias)
    notes(source).qualifiers = qualifiers
    join = exp.Join(this=source, side=_side(op))
    if op.using:
        join.set("using", [exp.to_identifier(name) for name in op.using])
    else:
        join.set("on", op.condition.copy() if op.condition is not None else exp.true())
    tree.append("joins", join)
    binder.changed = tree
    outputs = binder.query(tree, None, {})
    if registered and _side(op) in (None, "RIGHT"):
        _note_keys(tree, op.using, binder.sources, registered)
    kinds = [*VIRTUAL_COLUMNS.values(), _VARCHAR, _VARCHAR, *(column.data_type for column in columns)]
    return finish(_branched_once(tree, op.using), outputs and outputs[2:], binder, kinds)


def _note_keys(tree: exp.Select, using: Sequence[str], sources: Sequence[Source], registered: str) -> None:
    """Notes the equalities of a bound MERGE with columns of registered rows: other rows of the table do not matter."""
    _, here, virtual, *_ = tree.expressions
    source, target = (notes(item.unalias()).relation for item in (here, virtual))
    rows = next((one for one in sources if one.name.name == registered), None)
    if not isinstance(source, Relation) or not isinstance(target, Relation) or target.source is None or rows is None:
        return
    (join,) = tree.args["joins"]
    condition = join.args.get("on")
    pairs = [(name, name) for name in using]
    for node in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        equality = node.unnest() if node is not None else None
        if isinstance(equality, exp.EQ):
            sides = {notes(side).relation: side for side in (equality.this, equality.expression)}
            if sides.keys() == {source, target}:
                pairs.append((sides[target].name, sides[source].name))
    for own, other in pairs:
        kind, other_kind = (relation.find(name) for relation, name in ((target, own), (source, other)))
        if kind is None or other_kind is None or kind.type is None or other_kind.type is None:
            continue
        if is_key(kind.type, other_kind.type):
            target.source.keys += (JoinKey((kind.name,), rows.view, (other_kind.name,)),)


def _branched_once(tree: exp.Select, using: Sequence[str]) -> exp.Select:
    """Returns the bound query with the branch computed once per row, because a condition may be volatile."""
    branch, here, *items = tree.expressions
    relations = [notes(column.unalias()).relation for column in (here, items[0])]
    # inner queries use the bare names of USING columns
    passed: dict[tuple[str, str], exp.Expr] = {(name, ""): _aliased(exp.column(_quoted(name)), name) for name in using}

    def is_own(column: exp.Column) -> bool:
        """Returns whether a column belongs to one of the two tables, not to an inner query."""
        if not column.table:
            return column.find_ancestor(exp.Query) is None
        return any(notes(column).relation is relation for relation in relations)

    def outside(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.table == _ROWS or not is_own(node):
            return node
        key = node.name, node.table
        if key not in passed:
            taken = {column.alias.casefold() for column in passed.values()}
            # errors name columns as the subquery does
            name = node.name if node.name.casefold() not in taken else f"_ducklake_merge_{len(passed)}"
            passed[key] = _aliased(node.copy(), name)
        return _of_rows(passed[key].alias, kind_of(node))

    outer = exp.Select(expressions=[item.transform(outside, copy=False) for item in items])
    columns = [*passed.values(), branch]
    tree.set("expressions", columns)
    notes(tree).outputs = tuple(Output(column.alias, kind_of(column.unalias())) for column in columns)
    outer.from_(exp.Subquery(this=tree, alias=exp.TableAlias(this=_quoted(_ROWS))), copy=False)
    outer.set("where", exp.Where(this=exp.Not(this=exp.Is(this=_branch(), expression=exp.Null()))))
    return outer


def _branch() -> exp.Column:
    return _of_rows(_BRANCH, _INTEGER)


def _of_rows(name: str, kind: DataType | None) -> exp.Column:
    """Returns a bound column of the subquery with the branch."""
    column = exp.column(_quoted(name), table=_quoted(_ROWS))
    notes(column).set_type(kind)
    notes(column).is_bound = True
    return column


def _number(number: int) -> exp.Expr:
    return exp.Literal.number(number)


def _cast(value: exp.Expr, kind: DataType) -> exp.Cast:
    return exp.Cast(this=value, to=to_sqlglot(kind))


def _aliased(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, name, quoted=True, copy=False)


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _table(op: Merge) -> exp.Table:
    first, *rest = map(_quoted, (*reversed(op.table.qualifiers), op.table.name))
    if len(rest) < 2:
        table = exp.Table(this=rest[0], db=first) if rest else exp.Table(this=first)
    else:
        table = exp.Table(this=exp.Dot.build(rest[1:]) if rest[2:] else rest[1], db=rest[0], catalog=first)
    if op.alias is not None:
        table.set("alias", exp.TableAlias(this=_quoted(op.alias)))
    return table


def _source_alias(source: exp.Select) -> str:
    """Returns the statement's name for its source."""
    item = source.args["from_"].this
    return item.alias_or_name or "unnamed_subquery"


def _qualifiers(op: Merge, resolver: Resolver) -> tuple[str, ...]:
    """Returns the schema and catalog names that may precede the name of the source, a table or view without an alias."""
    item = op.source.args["from_"].this
    if not isinstance(item, exp.Table) or item.alias:
        return ()
    source, target = op.source.copy(), exp.select(exp.Star()).from_(_table(op))
    for query in (source, target):
        QueryBinder(resolver).query(query, None, {})
    named, changed = (notes(query.expressions[0].unalias()).relation for query in (source, target))
    if named is None or changed is None:
        return ()
    # of a table that is merged into itself, each name is ambiguous
    return () if (named.name, named.qualifiers) == (changed.name, changed.qualifiers) else named.qualifiers


def _marked(source: exp.Select, alias: str) -> exp.Subquery:
    """Returns the source with an additional column that is always true."""
    inner = source.copy()
    inner.set("expressions", [exp.Star(), exp.alias_(exp.true(), _HERE, quoted=True)])
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=_quoted(alias)))


def _side(op: Merge) -> str | None:
    kinds = {clause.when for clause in op.clauses}
    keeps_target = "not matched by source" in kinds
    keeps_source = "not matched" in kinds
    if keeps_target and keeps_source:
        return "FULL"
    return "LEFT" if keeps_target else "RIGHT" if keeps_source else None


class _Values:
    """Conditions and new values of the clauses."""

    def __init__(self, op: Merge, target: str, names: Sequence[str], columns: Sequence[Column]) -> None:
        self.op = op
        self.target = target
        self.names = names
        self.columns = columns
        self._given: dict[int, dict[int, exp.Expr]] = {}

    def branch(self) -> exp.Expr:
        """Returns the number of the clause that applies to a row; NULL for none or DO NOTHING."""
        ifs = [
            exp.If(this=self._condition(clause), true=exp.Null() if clause.action == "nothing" else _number(number))
            for number, clause in enumerate(self.op.clauses)
        ]
        return _cast(exp.Case(ifs=ifs), _INTEGER)

    def here(self) -> exp.Column:
        return column_of_place(_HERE, _SOURCE)

    def _condition(self, clause: MergeClause) -> exp.Expr:
        in_target = exp.Is(this=column_of_place(ROW_ID, _TARGET), expression=exp.Null())
        in_source = exp.Is(this=column_of_place(_HERE, _SOURCE), expression=exp.Null())
        parts: list[exp.Expr] = []
        if clause.when == "matched":
            parts += [exp.Not(this=in_target), exp.Not(this=in_source)]
        else:
            parts.append(in_target if clause.when == "not matched" else in_source)
        if clause.condition is not None:
            parts.append(exp.Paren(this=self.on_its_side(clause, clause.condition)))
        return exp.and_(*parts, copy=False)

    def value(self, clause: MergeClause, column: Column) -> exp.Expr | None:
        """Returns a column's new value from a clause; None if the clause sets none."""
        if clause.action not in ("update", "insert"):
            return None
        given = self._given.setdefault(id(clause), {})
        if not given:
            given.update(self._updated(clause) if clause.action == "update" else self._inserted(clause))
        value = given.get(column.column_id)
        if value is None:
            return column_of_place(column.name, _TARGET) if clause.action == "update" else unbound_default(column)
        return unbound_default(column) if is_default(value) else self.on_its_side(clause, value)

    def on_its_side(self, clause: MergeClause, value: exp.Expr) -> exp.Expr:
        """Returns a copy of a clause's expression whose names mean columns of the only side with a row."""
        refuse_columns(value)
        copy = value.copy()
        if clause.when != "matched":
            notes(copy).only_of = _SOURCE if clause.when == "not matched" else _TARGET
        return copy

    def _updated(self, clause: MergeClause) -> dict[int, exp.Expr]:
        if clause.whole is not None:
            return self._whole(clause)
        return assignments_of(clause.assignments, self.target, self.op.table.name, self.columns)

    def _inserted(self, clause: MergeClause) -> dict[int, exp.Expr]:
        if clause.whole is not None:
            return self._whole(clause)
        if clause.columns == () and not clause.values:
            return {}  # DEFAULT VALUES
        chosen = list(self.columns) if clause.columns is None else [self._column(name) for name in clause.columns]
        if len(chosen) != len(clause.values):
            raise self._arity(len(chosen), len(clause.values))
        return {column.column_id: value for column, value in zip(chosen, clause.values, strict=True)}

    def _whole(self, clause: MergeClause) -> dict[int, exp.Expr]:
        if clause.whole == "position":
            if len(self.names) != len(self.columns):
                raise self._arity(len(self.columns), len(self.names))
            pairs = list(zip(self.columns, self.names, strict=True))
        else:
            pairs = [(self._column(name), name) for name in self.names]
        return {column.column_id: column_of_place(name, _SOURCE) for column, name in pairs}

    def _column(self, name: str) -> Column:
        folded = name.casefold()
        column = next((column for column in self.columns if column.name.casefold() == folded), None)
        if column is None:
            hint = did_you_mean(name, [column.name for column in self.columns])
            raise BindError(f'{self.op.table.name} has no column "{name}", which MERGE INTO names.{hint}')
        return column

    def _arity(self, wanted: int, got: int) -> BindError:
        return BindError(f"MERGE INTO {self.op.table.name} needs {wanted} values, but {got} were supplied.")
