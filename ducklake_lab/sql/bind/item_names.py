"""Names of the items of FROM, of their columns, of items of a SELECT list, and of queries in expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sqlglot import exp

from ducklake_lab.duckdb.canonical import item_name
from ducklake_lab.errors import BindError
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import Outputs, Relation, notes


def alias_of(node: exp.Expr) -> tuple[str, list[str]]:
    """Returns the alias of an item, and its column names."""
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return "", []
    return alias.name, [column.name for column in alias.columns]


def name_columns(outputs: Outputs, names: list[str], alias: str) -> Outputs:
    """Names the columns of an item of FROM: by the alias's column list, then by their own names.

    A repeated name gets a number, as in DuckDB: `a`, `a_1`.
    """
    if outputs is None:
        return None
    if len(names) > len(outputs):
        raise BindError(f'"{alias}" names {len(names)} columns, but there are {len(outputs)}.')
    called = [*names, *(output.name for output in outputs[len(names) :])]
    return tuple(replace(output, name=name) for output, name in zip(outputs, _apart(called), strict=True))


def _apart(names: Iterable[str]) -> Iterator[str]:
    """Yields the names, numbered where an earlier one is equal; ignores case."""
    numbers: dict[str, int] = {}
    for name in names:
        folded, unique = name.casefold(), name
        while unique.casefold() in numbers:
            unique = f"{name}_{numbers[folded]}"
            numbers[folded] += 1
        numbers[unique.casefold()] = 1
        yield unique


def repeated(outputs: Outputs) -> list[str]:
    """Returns the column names if two are equal; else none."""
    names = [output.name for output in outputs or ()]
    return names if len({name.casefold() for name in names}) < len(names) else []


def note_written(query: exp.Expr) -> None:
    """Notes the SQL of a query that is not bound yet, for errors."""
    notes(query).written_query = query.sql(dialect=DuckLakeSql, normalize_functions=False, comments=False)


def set_alias(node: exp.Expr, relation: Relation, names: list[str]) -> None:
    """Gives an item of FROM its alias, with a column list if `names` has entries."""
    columns = []
    if names and relation.columns is not None:
        columns = [exp.to_identifier(output.name, quoted=True) for output in relation.columns]
    elif names:
        columns = [exp.to_identifier(name, quoted=True) for name in names]
    node.set("alias", exp.TableAlias(this=exp.to_identifier(relation.alias, quoted=True), columns=columns))


def aliased(value: exp.Expr, name: str) -> exp.Expr:
    """Returns a value with an alias; copies it only if its node type has an alias of its own."""
    if "alias" in value.arg_types:
        return exp.alias_(value, name, quoted=True)
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def output_name(item: exp.Expr, written: str | None = None) -> str:
    """Returns DuckDB's name of an item of a SELECT list: its alias, its column's name, or its text.

    Args:
        written: its text as it is written.
    """
    if isinstance(item, exp.Alias):
        return item.alias
    bare = item.unnest()
    if isinstance(bare, exp.Column):
        return bare.name
    if _is_path(bare):
        return str(bare.expression.name)
    text = written or _printed(item)
    select = item.find_ancestor(exp.Select)
    windows = select.args.get("windows") if select is not None else None
    if windows and any(window.args.get("alias") for window in item.find_all(exp.Window)):
        text = f"{text} WINDOW {', '.join(map(_defined, windows))}"
    return item_name(text) or text


def _is_path(node: exp.Expr) -> bool:
    """Returns whether a node is a column with struct fields, `a.b.c`."""
    inner = node.this if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier) else None
    return isinstance(inner, exp.Column | exp.Identifier) or (inner is not None and _is_path(inner))


def _printed(node: exp.Expr) -> str:
    return node.sql(dialect=DuckLakeSql, normalize_functions=False, comments=False)


def _defined(window: exp.Expr) -> str:
    """Returns the text of a window in the WINDOW clause."""
    window = window.copy()
    window.set("over", "AS")
    return _printed(window)
