"""SQL that reads files added from outside: their columns by name, those of their path as constants."""

from __future__ import annotations

from collections.abc import Sequence

from ducklake_lab.model.entries import Column
from ducklake_lab.model.mapping import ColumnMapping, NameMapping
from ducklake_lab.model.quoting import quote_identifier, quote_text


def value_sql(column: Column, mapping: ColumnMapping, text: str) -> str:
    """Write the value of a table's column in a file `r`, in the column's type; `text` is the value in its path."""
    entry = mapping.by_target().get(column.column_id)
    if entry is None:
        return _default(column)
    if entry.is_partition:
        return f"CAST({text} AS {column.data_type.sql()})"
    return part_sql(f"r.{quote_identifier(entry.source_name)}", column, entry)


def part_sql(source: str, column: Column, entry: NameMapping) -> str:
    """Write a value in a column's type from one with a file's names."""
    return f"CAST({_value(source, column, entry)} AS {column.data_type.sql()})"


def _value(source: str, column: Column, entry: NameMapping) -> str:
    """A nested value put together from the parts that the mapping names."""
    if not column.children:
        return source
    each = f"x{len(source)}"
    if column.type == "list":
        made = f"list_transform({source}, lambda {each}: {_value(each, column.children[0], entry.children[0])})"
    elif column.type == "map":
        by_target = {child.target_field_id: child for child in entry.children}
        parts = [
            f"list_transform({part}({source}), lambda {each}: {_value(each, child, by_target[child.column_id])})"
            for part, child in zip(("map_keys", "map_values"), column.children, strict=True)
        ]
        made = f"map({parts[0]}, {parts[1]})"
    else:
        made = f"struct_pack({', '.join(_fields(source, column.children, entry.children))})"
    return f"CASE WHEN {source} IS NOT NULL THEN {made} END"


def _fields(source: str, columns: Sequence[Column], entries: Sequence[NameMapping]) -> list[str]:
    by_target = {entry.target_field_id: entry for entry in entries}
    fields = []
    for column in columns:
        entry = by_target.get(column.column_id)
        value = (
            _default(column)
            if entry is None
            else _value(f"{source}.{quote_identifier(entry.source_name)}", column, entry)
        )
        fields.append(f"{quote_identifier(column.name)} := {value}")
    return fields


def _default(column: Column) -> str:
    text = quote_text(column.initial_default)
    return f"CAST({text} AS {column.data_type.sql()})"
