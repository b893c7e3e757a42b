"""Meaning of names inside one SELECT: the relations of its FROM, and the enclosing scopes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from ducklake_lab.errors import BindError, UnknownColumnError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.model.staged import LOCATION_COLUMNS, POSITION, ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.notes import FILE_ROW_NUMBER, Output, Outputs, Relation, line_and_column, notes

#: The columns of the queries that WITH names, by folded name.
Ctes = Mapping[str, Outputs]


@dataclass(frozen=True, slots=True)
class Merged:
    """A column of USING.

    Attributes:
        column: a reference by its bare name.
        apart: a reference by the names of its relations.
        members: the relations with the column.
    """

    column: exp.Expr
    apart: exp.Expr
    members: tuple[Relation, ...]


class Qualifiers(Protocol):
    """Takes qualifiers of columns."""

    def qualify(self, parts: Sequence[exp.Identifier], alias: str | None) -> None:
        """Replaces the qualifiers of a column by an alias; None if no alias is certain."""


@dataclass(eq=False, slots=True)
class Scope:
    """The relations of one SELECT, and the enclosing scope.

    Attributes:
        merged: columns of USING by folded name, which `*` shows once.
        touched: an inner query uses a name of this scope, and so is correlated.
        aliases: the values of the SELECT list by their folded names.
        frame: takes the qualifiers of columns that the text cannot keep.
    """

    parent: Scope | None = None
    relations: list[Relation] = field(default_factory=list)
    merged: dict[str, Merged] = field(default_factory=dict)
    touched: bool = False
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    frame: Qualifiers | None = None

    @property
    def open(self) -> bool:
        """Returns whether a relation has unknown columns."""
        return any(relation.columns is None for relation in self.relations)

    def around(self) -> Iterator[Scope]:
        """Yields this scope and the enclosing scopes, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def seen_by(self, node: exp.Expr) -> Scope:
        """Returns this scope, or one with only the relation in the node's `only_of`."""
        place = notes(node).only_of
        return self if place is None else Scope(self.parent, [self.relations[place]])

    def merged_value(self, name: str) -> exp.Expr | None:
        """Returns a reference to the column of USING with a name; None if there is none."""
        merged = self.merged.get(name.casefold())
        if merged is None:
            return None
        # Spark finds its bare name ambiguous if another relation has the name too
        is_alone = all(one in merged.members for one in self.relations if one.find(name) is not None)
        return (merged.column if is_alone else merged.apart).copy()

    def star(self) -> list[exp.Expr] | None:
        """Returns the columns of `*` in DuckDB's order; None if some are unknown."""
        if self.open:
            return None
        columns: list[exp.Expr] = []
        shown: set[str] = set()
        for relation in self.relations:
            for output in relation.columns or ():
                folded = output.name.casefold()
                if folded in self.merged and relation in self.merged[folded].members:
                    if folded not in shown and (merged := self.merged_value(folded)) is not None:
                        notes(merged).relation = None
                        if not isinstance(merged, exp.Column):
                            notes(merged).written_name = output.name
                            merged = exp.alias_(merged, output.name, quoted=True)
                        columns.append(merged)
                    shown.add(folded)
                else:
                    columns.append(relation.column(output))
        return columns

    def candidates(self) -> list[str]:
        return [column.name for relation in self.relations for column in relation.columns or ()]

    def add(self, relation: Relation) -> None:
        """Adds a relation under a unique alias.

        Raises:
            BindError: two relations have the same name and qualifiers.
        """
        for other in self.relations:
            if other.name.casefold() == relation.name.casefold() and other.qualifiers == relation.qualifiers:
                raise BindError(f'"{relation.name}" is used twice in FROM; give one of them another name with AS.')
        taken = {other.alias.casefold() for scope in self.around() for other in scope.relations}
        alias, number = relation.alias, 2
        while alias.casefold() in taken:
            alias, number = f"{relation.alias}_{number}", number + 1
        relation.alias = alias
        self.relations.append(relation)


def merged_column(output: Output) -> exp.Column:
    """Returns a reference to a USING column, which belongs to no single relation."""
    node = exp.column(exp.to_identifier(output.name, quoted=True))
    notes(node).set_type(output.type)
    return node


#: Words that are functions unless a column of FROM has their name.
WORDS: Mapping[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentTime: "current_time",
    exp.Localtime: "localtime",
    exp.Localtimestamp: "localtimestamp",
}


def column_of(node: exp.Expr, scope: Scope) -> exp.Column | None:
    """Returns the column for `#1`, or for a word such as `current_date`; None if it is none."""
    if isinstance(node, exp.PositionalColumn):
        return _column_at(node, scope)
    word = WORDS.get(type(node))
    if word is None or node.args.get("this") is not None:
        return None
    is_column = any(relation.find(word) for level in scope.around() for relation in level.relations)
    return exp.column(exp.to_identifier(word, quoted=True)) if is_column else None


def _column_at(node: exp.PositionalColumn, scope: Scope) -> exp.Column | None:
    """Returns the column of FROM for `#1`; None if columns are unknown."""
    before = 0
    for relation in scope.relations:
        if relation.columns is None:
            return None
        if int(node.name) <= before + len(relation.columns):
            return relation.column(relation.columns[int(node.name) - before - 1])
        before += len(relation.columns)
    raise BindError(f"There is no column #{node.name}; FROM has {before}.")


def where(node: exp.Expr) -> str:
    line, column = line_and_column(node)
    return f" (line {line}, column {column})" if line is not None else ""


def bind_error(message: str, node: exp.Expr, hint: str = "", kind: type[BindError] = BindError) -> BindError:
    """Returns the error `message (line 1, column 2). hint`."""
    line, column = line_and_column(node)
    return kind(f"{message}{where(node)}.{hint}", line=line, column=column)


def resolve(parts: Sequence[exp.Identifier], scope: Scope) -> exp.Expr | None:
    """Resolves a dotted name to a column or struct field; None if unknown columns prevent that.

    Raises:
        BindError: nothing has that name, or several columns have it.
    """
    names = [part.name for part in parts]
    for level in scope.around():
        column = in_scope(names, parts, level) or _row(names, level)
        if column is not None:
            _unqualify(parts, scope, level)
            if level is not scope:
                for inner in scope.around():
                    inner.touched = inner.touched or inner is not scope
                    if inner is level:
                        break
            return column
        if len(names) == 1 and any(names[0].casefold() == relation.name.casefold() for relation in level.relations):
            raise _unknown(names, parts, level)  # rows of that relation come before outer columns
    if any(level.open for level in scope.around()):
        return None
    raise _unknown(names, parts, scope)


def _unqualify(parts: Sequence[exp.Identifier], scope: Scope, level: Scope) -> None:
    """Notes the qualifiers of a resolved column of `level` that the text cannot keep."""
    names = [part.name for part in parts]
    for length in range(len(names) - 1, 1, -1):
        for relation in level.relations:
            if relation.matches(names[:length]):
                replace_qualifiers(parts[:length], relation, scope, level)
                return


def replace_qualifiers(parts: Sequence[exp.Identifier], relation: Relation, scope: Scope, level: Scope) -> None:
    """Replaces the qualifiers of a relation of `level` in the text, if its name is replaced there."""
    if scope.frame is None or not relation.written:
        return
    hidden = False
    for around in scope.around():
        others = (one.written or one.name for one in around.relations if one is not relation)
        hidden = hidden or relation.written.casefold() in (name.casefold() for name in others)
        if around is level:
            break
    scope.frame.qualify(parts, None if hidden else relation.written)


def _has_outer(names: list[str], length: int, scope: Scope) -> bool:
    """Returns whether an outer query has a table of this name with such a column."""
    outer = (relation for level in scope.around() if level is not scope for relation in level.relations)
    return any(relation.matches(names[:length]) and relation.find(names[length]) is not None for relation in outer)


def _row(names: list[str], scope: Scope) -> exp.Expr | None:
    """Returns a relation's row as a struct, for its bare name; None if the columns are unknown."""
    if len(names) > 1:
        return None
    relation = next((one for one in scope.relations if one.name.casefold() == names[0].casefold()), None)
    if relation is None or relation.columns is None:
        return None
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(output.name, quoted=True), expression=relation.column(output))
        for output in relation.columns
    ]
    row = exp.Struct(expressions=fields)
    kinds = tuple((output.name, output.type) for output in relation.columns if output.type is not None)
    notes(row).set_type(DataType("struct", kinds) if len(kinds) == len(fields) else None)
    return row


def in_scope(names: list[str], parts: Sequence[exp.Identifier], scope: Scope) -> exp.Expr | None:
    """Returns the column or struct field that a dotted name means in one scope; None if it means none there.

    Raises:
        BindError: several columns have the name, or a table lacks it.
    """
    for length in range(len(names) - 1, 0, -1):
        tables = [relation for relation in scope.relations if relation.matches(names[:length])]
        if len(tables) > 1:
            raise bind_error(f'"{".".join(names[:length])}" is ambiguous: several tables are called so', parts[0])
        if tables:
            column = _of_relation(names[length], tables[0])
            if column is not None:
                return _fields(column, parts[length + 1 :])
            if tables[0].columns is not None and not _plain(names[0], scope) and not _has_outer(names, length, scope):
                raise bind_error(
                    f'{tables[0].name} has no column "{names[length]}"',
                    parts[length],
                    did_you_mean(names[length], [column.name for column in tables[0].columns]),
                )
    column = _plain_column(names[0], parts[0], scope)
    return _fields(column, parts[1:]) if column is not None else None


def _plain(name: str, scope: Scope) -> bool:
    return any(relation.find(name) is not None for relation in scope.relations)


def _plain_column(name: str, part: exp.Identifier, scope: Scope) -> exp.Expr | None:
    if (merged := scope.merged_value(name)) is not None:
        return merged
    holders = [relation for relation in scope.relations if relation.find(name) is not None]
    if len(holders) > 1:
        choices = " or ".join(f"{relation.name}.{name}" for relation in holders)
        raise bind_error(f'Column "{name}" is ambiguous', part, f" Use {choices}.")
    if holders:
        return _of_relation(name, holders[0])
    offered = [relation for relation in scope.relations if relation.virtual(name) is not None]
    if len(offered) > 1:
        choices = " or ".join(f"{relation.name}.{name}" for relation in offered)
        raise bind_error(f'Column "{name}" is ambiguous', part, f" Use {choices}.")
    return _of_relation(name, offered[0]) if offered else None


def _of_relation(name: str, relation: Relation) -> exp.Expr | None:
    output = relation.find(name)
    if output is not None:
        return relation.column(output)
    virtual = relation.virtual(name)
    if virtual is None or relation.source is None:
        return None
    relation.source.virtual = True
    relation.source.located = relation.source.located or virtual in LOCATION_COLUMNS
    column = relation.column(Output(virtual, LOCATION_COLUMNS.get(virtual) or VIRTUAL_COLUMNS[virtual]))
    if virtual == POSITION and name.casefold() == FILE_ROW_NUMBER:
        number = exp.Anonymous(
            this="coalesce", expressions=[column, relation.column(Output(ROW_ID, VIRTUAL_COLUMNS[ROW_ID]))]
        )
        notes(number).set_type(VIRTUAL_COLUMNS[ROW_ID])
        return number
    notes(column).written_name = name
    return column


def _fields(column: exp.Expr, fields: Sequence[exp.Identifier]) -> exp.Expr:
    """Returns `column.a.b`, checked against the struct's fields if its type is known."""
    node = column
    for part in fields:
        kind = notes(node).type
        child: DataType | None = None
        name = part.name
        if kind is not None:
            if kind.name != "struct":
                if kind.name in ("json", "variant"):
                    raise UnsupportedFeatureError(
                        f'The field "{part.name}" of {kind.sql()} is not supported on Spark{where(part)}.'
                    )
                raise bind_error(f'{kind.sql()} has no field "{part.name}"', part)
            match = next(((n, t) for n, t in kind.children if n.casefold() == part.name.casefold()), None)
            if match is None:
                raise bind_error(
                    f'{column.name} has no field "{part.name}"',
                    part,
                    did_you_mean(part.name, [n for n, _ in kind.children]),
                )
            name, child = match
        node = exp.Dot(this=node, expression=exp.to_identifier(name, quoted=True))
        notes(node).set_type(child)
    return node


def _unknown(names: list[str], parts: Sequence[exp.Identifier], scope: Scope) -> BindError:
    candidates = [name for level in scope.around() for name in level.candidates()]
    if len(names) > 1:
        tables = [relation.name for level in scope.around() for relation in level.relations]
        return bind_error(
            f'Nothing in FROM is called "{names[0]}"', parts[0], did_you_mean(names[0], [*tables, *candidates])
        )
    if not scope.relations:
        return bind_error(f'There is no FROM to take column "{names[0]}" from', parts[0], kind=UnknownColumnError)
    hint = did_you_mean(names[0], candidates)
    return bind_error(without_column(names[0], scope.relations), parts[0], hint, UnknownColumnError)


def without_column(name: str, relations: Sequence[Relation]) -> str:
    """Returns the message that no relation has a column with a name."""
    first, *others = [relation.title or relation.name for relation in relations]
    if not others:
        return f'{first[:1].upper() + first[1:] if relations[0].title else first} has no column "{name}"'
    return f'Neither {" nor ".join((first, *others))} has a column "{name}"'


def ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the nodes above a node, its parent first."""
    while node.parent is not None:
        node = node.parent
        yield node
