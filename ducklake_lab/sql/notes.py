"""Notes on nodes of syntax trees: types, relations, columns of queries, and places in the text.

sqlglot has one untyped dictionary for such facts, `meta`, and copies it with its node. Only this module uses it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field

from sqlglot import exp

from ducklake_lab.model.staged import FILE_INDEX, FILE_NAME, POSITION, ROW_ID, SNAPSHOT_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.plan import Source

#: Users' names of virtual columns; a table's own column has priority.
_USER_VIRTUAL = {"rowid": ROW_ID, "snapshot_id": SNAPSHOT_ID}
#: The user's name for a row's position in its file; for inlined rows the row id.
FILE_ROW_NUMBER = "file_row_number"
#: Users' names for a row's file, by name and by number.
_LOCATION = {"filename": FILE_NAME, "file_index": FILE_INDEX}

#: Key of the notes in a node's `meta`.
_NOTES = "ducklake_notes"


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a relation or of a query's result.

    Attributes:
        type: None if unknown.
        value: its expression; see `kinds`.
    """

    name: str
    type: DataType | None = None
    value: exp.Expr | None = field(default=None, compare=False, repr=False)

    def __deepcopy__(self, memo: object) -> Output:
        return self


#: The columns of a query; None if unknown.
Outputs = tuple[Output, ...] | None


@dataclass(eq=False, slots=True)
class Relation:
    """An item of a FROM clause.

    Attributes:
        alias: its unique name in the planned SQL.
        name: its name in the user's text.
        columns: None if unknown; then every name is accepted.
        qualifiers: schema and catalog names that may precede `name`, innermost first.
        source: its lake source, or None.
        nullable: an outer join may make all of its columns NULL.
        written: its alias in the text that DuckDB reads, in place of its name with qualifiers; "" if that name stays.
        title: its name in errors, if it has none in SQL.
    """

    alias: str
    name: str
    columns: tuple[Output, ...] | None
    qualifiers: tuple[str, ...] = ()
    source: Source | None = None
    nullable: bool = False
    written: str = ""
    title: str = ""

    def __deepcopy__(self, memo: object) -> Relation:
        # Copies of a syntax tree refer to the same relation.
        return self

    def find(self, name: str) -> Output | None:
        folded = name.casefold()
        return next((column for column in self.columns or () if column.name.casefold() == folded), None)

    def virtual(self, name: str) -> str | None:
        """Returns the virtual column with a user's name; None if there is none."""
        if self.source is None or not (self.source.kind == "table" or _is_row_feed(self.source)):
            return None
        folded = name.casefold()
        if folded == FILE_ROW_NUMBER and self.source.kind == "table":
            return POSITION
        if folded in _LOCATION and self.source.kind == "table":
            return _LOCATION[folded]
        return _USER_VIRTUAL.get(folded) or (folded if folded in VIRTUAL_COLUMNS else None)

    def matches(self, parts: list[str]) -> bool:
        """Returns whether `[catalog.][schema.]name`, or `catalog.name`, names this relation."""
        folded = [part.casefold() for part in parts]
        if folded[-1] != self.name.casefold():
            return False
        rest = list(reversed(folded[:-1]))
        qualifiers = [qualifier.casefold() for qualifier in self.qualifiers]
        return rest in (qualifiers[: len(rest)], qualifiers[1:])

    def column(self, output: Output) -> exp.Column:
        """Returns a reference to one of its columns."""
        names = [exp.to_identifier(name, quoted=True) for name in (output.name, self.alias)]
        node = exp.column(names[0], table=names[1], copy=False)
        notes(node).set_type(output.type)
        notes(node).relation = self
        return node


def _is_row_feed(source: Source) -> bool:
    """Returns whether a function returns rows of a table, with the same virtual columns."""
    return source.kind == "function" and source.name.name.casefold().removeprefix("ducklake_") in (
        "table_insertions",
        "table_deletions",
    )


@dataclass(init=False, eq=False)
class Notes:
    """Notes on one node; a default means that nothing is noted.

    Attributes:
        span: the start and the exclusive end, in its text, of an item of a SELECT list.
        null_order_is_written: NULLS FIRST or NULLS LAST is explicit.
        written_query: the SQL of a query in an expression, as written.
        written_name: a virtual column's name as written.
        type: the type of an expression; None if it has none, or is not known.
        is_typed: the type has been noted, if only as unknown.
        relation: the relation of a column.
        is_bound: the node is already bound, e.g. an argument of a macro.
        is_argument: the node replaces a parameter of a macro.
        aliases: the names of the SELECT list that such a node was written with.
        argument: the name that a macro's body gets for a column of an argument.
        is_bare: DuckDB's body gets the name of that column alone.
        outputs: the columns of a query.
        joined_by: the columns that a join's USING compares, by name.
        is_shadowed: tables before the last comma also have a column of a join's USING.
        only_of: the place in FROM, from 0, of the only relation whose columns an expression can use.
        qualifiers: the schema and catalog names that may precede a subquery's alias, innermost first.
        alias_position: the 1-based position of the output column whose alias an expression has.
        replaces_all: the keys replace GROUP BY ALL.
        is_lateral: a subquery in FROM uses columns of preceding relations.
        has_ordinality: a function in FROM also returns row numbers, from 1.
        local_view: the view on Spark for a table or function of the session's own database.
        value_types: the types of the columns of VALUES.
        asks_for_null: NULL and false differ at the position of an IN over a query.
        is_translated: a subquery is already in Spark SQL.
        is_totalled: another query adds the total of a query over no rows.
        worker_call: the worker's call behind a value.
        asked: the query for the value of LIMIT or OFFSET, with names as written.
    """

    span: tuple[int, int] | None = None
    null_order_is_written: bool = False
    written_query: str | None = None
    written_name: str | None = None
    type: DataType | None = None
    is_typed: bool = False
    relation: Relation | None = None
    is_bound: bool = False
    is_argument: bool = False
    aliases: tuple[exp.Identifier, ...] = ()
    argument: exp.Column | None = None
    is_bare: bool = False
    outputs: Outputs = None
    joined_by: tuple[tuple[exp.Column, ...], ...] = ()
    is_shadowed: bool = False
    only_of: int | None = None
    qualifiers: tuple[str, ...] = ()
    alias_position: int | None = None
    replaces_all: bool = False
    is_lateral: bool = False
    has_ordinality: bool = False
    local_view: str | None = None
    value_types: tuple[DataType | None, ...] = ()
    asks_for_null: bool = False
    is_translated: bool = False
    is_totalled: bool = False
    worker_call: exp.Expr | None = None
    asked: exp.Query | None = None

    def __copy__(self) -> Notes:
        # trees of thousands of nodes are copied: only what is noted costs time
        copied = Notes()
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: object) -> Notes:
        copied = copy(self)
        if self.joined_by:
            copied.joined_by = tuple(tuple(column.copy() for column in columns) for columns in self.joined_by)
        return copied

    def set_type(self, kind: DataType | None) -> None:
        """Notes a type; None if it is unknown."""
        self.type, self.is_typed = kind, True


def notes(node: exp.Expr) -> Notes:
    """Returns the notes on a node, to read and to write; a copy of the node has a copy of them."""
    noted: Notes | None = node.meta.get(_NOTES)
    if noted is None:
        noted = node.meta[_NOTES] = Notes()
    return noted


def pass_on(node: exp.Expr, other: exp.Expr) -> None:
    """Gives another node the notes and the place in the text of a node."""
    other.meta.update(node.meta)
    other.meta[_NOTES] = copy(notes(node))


def forget(node: exp.Expr) -> None:
    """Removes the notes and the place in the text from a node."""
    node.meta.clear()


def start_of(node: exp.Expr) -> int | None:
    """Returns the offset of an identifier or call in its text; None if the text does not contain it."""
    start: int | None = node.meta.get("start")
    return start


def last_of(node: exp.Expr) -> int | None:
    """Returns the offset of the last character of an identifier or call; None if the text does not contain it."""
    last: int | None = node.meta.get("end")
    return last


def line_and_column(node: exp.Expr) -> tuple[int | None, int | None]:
    """Returns the 1-based (line, column) of an identifier; (None, None) if the text does not contain it."""
    line, end, start, stop = (node.meta.get(key) for key in ("line", "col", "start", "end"))
    if isinstance(line, int) and isinstance(end, int) and isinstance(start, int) and isinstance(stop, int):
        return line, end - (stop - start)
    return None, None
