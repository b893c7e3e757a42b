"""Recognises queries whose rows are rows of one table, and looks for one of these in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.errors import SqlError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.sql.bind.group_and_order import has_aggregate
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.operations import Query
from ducklake_lab.sql.parse.parser import parse_query
from ducklake_lab.sql.planning.planner import as_text

#: Parts of a SELECT that choose and order rows, and make none.
_PARTS = frozenset(("kind", "expressions", "from_", "where", "order", "limit", "offset", "operation_modifiers"))
#: Parts of a table in FROM.
_OF_TABLE = frozenset(("this", "db", "catalog", "alias", "when"))
_ROW_ID_IN_SQL = "rowid"
VIRTUAL_NAMES = (_ROW_ID_IN_SQL, "snapshot_id")


@dataclass(frozen=True, slots=True)
class OwnRows:
    """A query each row of which is a row of one table.

    Attributes:
        columns: the table's column that each output column shows, or ROW_ID; None for other values.
        table: the name that its text gives the table.
        condition: the text of its WHERE; None without one.
    """

    columns: tuple[str | None, ...]
    table: str
    condition: str | None

    def search(self, path: str, snapshot_id: int, texts: Mapping[str, str]) -> Query:
        """Returns a query for `row_id` and, as `c0`, `c1`, …, the shown columns of the rows that may be a shown one.

        Args:
            path: the quoted path of the table.
            texts: conditions that the row is known to fulfil, by column.
        """
        shown = [name for name in self.columns if name is not None and name != ROW_ID]
        listed = "".join(f", {quote_identifier(name)} AS c{i}" for i, name in enumerate(shown))
        conditions = [*([f"(\n{self.condition}\n)"] if self.condition is not None else []), *texts.values()]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return parse_query(
            f"SELECT {ROW_ID} AS row_id{listed} FROM {path} AT (VERSION => {snapshot_id:d}) "
            f"AS {quote_identifier(self.table)}{where}"
        )


def own_rows(query: Query, columns: Sequence[str]) -> OwnRows | None:
    """Returns what a query over one table shows of its rows; None where a row may stand for several, or for none.

    Args:
        columns: those of the table.
    """
    try:
        tree = parse_query(as_text(query)).tree
    except SqlError:
        return None
    if not isinstance(tree, exp.Select) or any(value for part, value in tree.args.items() if part not in _PARTS):
        return None
    source = tree.args["from_"].this if tree.args.get("from_") else None
    if not isinstance(source, exp.Table) or any(v for part, v in source.args.items() if part not in _OF_TABLE):
        return None
    alias = source.args.get("alias")
    if not isinstance(source.this, exp.Identifier) or (alias is not None and alias.columns):
        return None
    if any(has_aggregate(item) for item in tree.expressions):
        return None
    found: list[str | None] = []
    for item in tree.expressions:
        names = _shown(item, source.alias_or_name, columns)
        if names is None:
            return None
        found += names
    if not any(found):
        return None
    where = tree.args.get("where")
    if where is not None and not _names_columns(where, columns):
        return None
    text = where.this.sql(dialect=DuckLakeSql, normalize_functions=False, comments=False) if where else None
    return OwnRows(tuple(found), source.alias_or_name, text)


def _shown(item: exp.Expr, table: str, columns: Sequence[str]) -> Sequence[str | None] | None:
    """Returns the columns that an item of SELECT shows; None where it may be several, of which it is not clear which."""
    inner = item.unalias()
    star = inner.this if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star) else inner
    if isinstance(star, exp.Star):
        changed = any(value for part, value in star.args.items() if value)
        return None if changed or not _is_of(inner, table) else list(columns)
    if isinstance(inner, exp.Anonymous) and inner.name.casefold() == "columns":
        return None
    if not isinstance(inner, exp.Column) or not _is_of(inner, table):
        return [None]
    folded = inner.name.casefold()
    own = next((name for name in columns if name.casefold() == folded), None)
    return [own or (ROW_ID if folded == _ROW_ID_IN_SQL else None)]


def _names_columns(where: exp.Expr, columns: Sequence[str]) -> bool:
    """Returns whether all plain names in a condition are columns: others may be aliases of SELECT, which a search lacks."""
    known = {*(name.casefold() for name in columns), *VIRTUAL_NAMES}
    return all(len(column.parts) > 1 or column.name.casefold() in known for column in where.find_all(exp.Column))


def _is_of(column: exp.Expr, table: str) -> bool:
    """Returns whether a column has no qualifier, or the table's name alone."""
    if not isinstance(column, exp.Column):
        return True
    qualifiers = column.parts[:-1]
    return not qualifiers or (len(qualifiers) == 1 and qualifiers[0].name.casefold() == table.casefold())
