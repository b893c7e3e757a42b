"""The columns of an UNPIVOT, found while its source is bound: as the table spells them, and by patterns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql.bind import star_expansion
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.pivot_syntax import Unpivoted
from ducklake_lab.sql.scope import Scope, resolve

#: Names of the columns of an UNPIVOT: the cells of a row, and the fields of each.
CELL, NAME, VALUE = "_ducklake_cell", "n", "v"


def expand(item: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """Expands a projection: `*`, `t.*`, COLUMNS(…) and an UNPIVOT become columns; others stay.

    Raises:
        BindError: an UNPIVOT has columns for another number of names, or something else than columns.
        UnsupportedFeatureError: its columns are not known, or have a form that is not written out here.
    """
    return _unpivoted(item, scope) if isinstance(item, Unpivoted) else star_expansion.expand(item, scope)


def parts_of(node: exp.Expr) -> list[exp.Expr]:
    """Returns the parts of a row in parentheses, or the node alone; DuckDB prints `main."row"(a, b)` for `(a, b)`."""
    call = node.expression if isinstance(node, exp.Dot) else node
    if isinstance(call, exp.Anonymous) and call.name.casefold() == "row":
        return list(call.expressions)
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node.unnest()]


def _unpivoted(node: Unpivoted, scope: Scope) -> list[exp.Expr]:
    every = scope.star()
    if every is None:
        raise UnsupportedFeatureError("UNPIVOT of columns that are not known is not supported on Spark.")
    used: set[tuple[str, str]] = set()
    cells: list[exp.Expr] = []
    for item in node.expressions:
        is_named = isinstance(item, exp.PivotAlias | exp.Alias)
        for read in _rows(item.this if is_named else item, scope):
            if len(read) != node.args["width"]:
                raise BindError(f"UNPIVOT puts {len(read)} columns into {node.args['width']}; give as many names.")
            columns = [_only_column(part, scope) for part in read]
            used |= {_key(column) for column in columns}
            names = [part.alias or column.name for part, column in zip(read, columns, strict=True)]
            shown = item.args["alias"].name if is_named else "_".join(names)
            cells.append(_cell(shown, [part.unalias() for part in read]))
    unnested = exp.Anonymous(this="unnest", expressions=[exp.Array(expressions=cells)])
    kept = [one for one in every if not (isinstance(one, exp.Column) and _key(one) in used)]
    return [*kept, exp.Alias(this=unnested, alias=exp.to_identifier(CELL, quoted=True))]


def _rows(written: exp.Expr, scope: Scope) -> Iterator[Sequence[exp.Expr]]:
    """The rows of values that an item stands for; a pattern stands for several."""
    parts = [_as_column(part) for part in parts_of(written)]
    expanded = [star_expansion.expand(part, scope) for part in parts]
    if len(parts) == 1:
        yield from ([one] for one in expanded[0])
    elif any(len(one) != 1 for one in expanded):
        raise UnsupportedFeatureError("UNPIVOT of several columns by a pattern is not supported on Spark.")
    else:
        yield [one for (one,) in expanded]


def _as_column(node: exp.Expr) -> exp.Expr:
    """A column of UNPIVOT, which may be written as a text."""
    is_text = isinstance(node, exp.Literal) and node.is_string
    return exp.column(exp.to_identifier(node.name, quoted=True)) if is_text else node


def _only_column(value: exp.Expr, scope: Scope) -> exp.Column:
    """The column of a value, in the table's spelling."""
    columns = [one for one in value.find_all(exp.Column) if not isinstance(one.this, exp.Star)]
    if len({one.name.casefold() for one in columns}) != 1 or value.find(exp.Query) is not None:
        shown = value.unalias().sql(dialect="duckdb")
        raise BindError(f"UNPIVOT takes columns, and expressions of one column each, not {shown}.")
    column = resolve([part for part in columns[0].parts if isinstance(part, exp.Identifier)], scope)
    if not isinstance(column, exp.Column) or (notes(column).relation or scope.relations[0]) not in scope.relations:
        raise UnsupportedFeatureError(f"UNPIVOT of {columns[0].sql(dialect='duckdb')} is not supported on Spark.")
    return column


def _key(column: exp.Column) -> tuple[str, str]:
    return column.table.casefold(), column.name.casefold()


def _cell(name: str, values: Sequence[exp.Expr]) -> exp.Expr:
    parts: list[tuple[str, exp.Expr]] = [(NAME, exp.Literal.string(name))]
    parts += [(f"{VALUE}{number}", value.copy()) for number, value in enumerate(values)]
    fields = [exp.PropertyEQ(this=exp.to_identifier(key, quoted=True), expression=part) for key, part in parts]
    return exp.Anonymous(this="struct_pack", expressions=fields)
