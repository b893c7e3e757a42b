"""Sort keys and expectations follow the columns that they name: by id, under other names of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ducklake_lab.duckdb import canonical
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import Column, SortKey, Table
from ducklake_lab.model.expectations import Expectation, changed_tags, expectations_of
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.sql.bind.expansion import columns_of, renamed


def sort_keys(table: Table, columns: Iterable[Column]) -> tuple[SortKey, ...]:
    """Returns the sort keys of a table with the names that its columns have among others; columns that are gone keep theirs."""
    keys = table.sort.keys if table.sort is not None else ()
    later = {column.column_id: column.name for column in columns}
    names = {
        column.name.casefold(): later[column.column_id]
        for column in table.columns
        if later.get(column.column_id, column.name) != column.name
    }

    def followed(key: SortKey) -> SortKey:
        if not any(name.casefold() in names for name in columns_of(key.expression)):
            return key
        return replace(key, expression=canonical.expression_text(renamed(key.expression, names)))

    return tuple(map(followed, keys)) if names else keys


def expectation_tags(table: Table, columns: Iterable[Column]) -> tuple[tuple[str, str], ...]:
    """Returns the expectations of a table, as tags, whose conditions have the names of columns among others."""
    later = {column.column_id: column.name for column in columns}

    def followed(expectation: Expectation) -> Expectation:
        named = tuple((later.get(number, name), number) for name, number in expectation.columns)
        if expectation.kind != "check" or named == expectation.columns:
            return expectation
        names = {old.casefold(): new for (old, _), (new, _) in zip(expectation.columns, named, strict=True)}
        return replace(expectation, sql=renamed(expectation.sql, names), columns=named)

    return changed_tags(table, followed)


def missing_columns(table: Table) -> Iterator[tuple[str, str, str]]:
    """Yields a key or expectation, a column that it names and the table lacks, and the way to drop the first."""
    for key in table.sort.keys if table.sort is not None else ():
        for name in columns_of(key.expression):
            if table.column(name) is None:
                yield f"sort key {key.expression}", name, "RESET SORTED BY"
    ids = {column.column_id for column in table.columns}
    try:
        expectations = expectations_of(table)
    except CatalogError:
        return  # of another version, which knows its columns
    for one in expectations:
        for name, number in one.columns:
            if number not in ids:
                yield f"expectation {one.name}", name, f"DROP EXPECTATION {quote_identifier(one.name)}"
