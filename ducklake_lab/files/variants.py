"""Statistics of variant columns: those of fields that a file stores in separate columns for all its rows.

Parquet stores a variant in a column `value`, and fields of one type throughout in `typed_value` beside it. Only where
no row keeps the field in `value` do the bounds of `typed_value` hold for the file (spec: ducklake_file_variant_stats).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import from_duckdb
from ducklake_lab.model.extra_stats import variant_text
from ducklake_lab.model.files import ColumnStats, VariantStats
from ducklake_lab.model.quoting import quote_identifier

_Path = tuple[str, ...]


def variant_statistics(column_id: int, reports: Mapping[_Path, Mapping[str, str]]) -> ColumnStats:
    """The statistics of a variant column, from the reports on the columns it is stored in, by their path below it."""
    metadata = reports[("metadata",)]
    values, nulls = int(metadata["num_values"]), int(metadata["null_count"])
    fields = sorted(_fields(column_id, reports, metadata), key=lambda field: field.path)
    return ColumnStats(
        column_id=column_id,
        column_size_bytes=sum(int(report.get("column_size_bytes", 0)) for report in reports.values()),
        value_count=values - nulls,
        null_count=nulls,
        min_value=None,
        max_value=None,
        extra_stats=variant_text([_entry(field) for field in fields]),
        variant_stats=tuple(fields),
    )


def _fields(
    column_id: int, reports: Mapping[_Path, Mapping[str, str]], metadata: Mapping[str, str]
) -> list[VariantStats]:
    statistics = []
    stored = _parse(metadata["variant_type"]) if "variant_type" in metadata else None
    for path, report in reports.items():
        if path[-1] != "typed_value" or stored is None:
            continue
        untyped = reports.get((*path[:-1], "value"))
        if untyped is None or not _all_typed(untyped):
            continue
        place = _place(stored, path)
        if place is None:
            continue
        name, kind = place
        values, nulls = int(report["num_values"]), int(report["null_count"])
        stats = ColumnStats(
            column_id=column_id,
            column_size_bytes=int(report.get("column_size_bytes", 0)),
            value_count=values - nulls,
            null_count=nulls,
            min_value=report.get("min"),
            max_value=report.get("max"),
            contains_nan=report["has_nan"] == "true" if "has_nan" in report else None,
        )
        statistics.append(VariantStats(name, kind, stats))
    return statistics


def _all_typed(untyped: Mapping[str, str]) -> bool:
    """Returns whether no row keeps the field as bytes; 00 is a variant's NULL."""
    nothing = untyped.get("null_count") is not None and untyped.get("null_count") == untyped.get("num_values")
    return nothing or untyped.get("min") == untyped.get("max") == "00"


def _parse(text: str) -> object | None:
    """Returns the type of what a file stores; None if a field has no name, which DuckDB prints without quotes."""
    try:
        return duckdb.sqltype(text)
    except duckdb.InvalidInputException:
        return None


def _place(stored: object, path: _Path) -> tuple[str, str] | None:
    """(the field's path as the specification writes it, its type's name) of a `typed_value`."""
    names: list[str] = []
    kind = _child(stored, "typed_value")
    for step in path[1::2]:
        if kind.id == "list":
            names.append("element")
            kind = _child(dict(kind.children)["child"], "typed_value")
        else:
            names.append(quote_identifier(step))
            kind = _child(_child(kind, step), "typed_value")
    data_type = from_duckdb(kind)
    return (".".join(names) or "root", data_type.name) if data_type is not None else None


def _child(kind: Any, name: str) -> Any:
    return dict(kind.children)[name]


def _entry(field: VariantStats) -> dict[str, object]:
    stats = field.stats
    entry: dict[str, object] = {"field_name": field.path, "shredded_type": field.shredded_type}
    entry["null_count"] = stats.null_count
    if stats.min_value is not None:
        entry["min"] = stats.min_value
    if stats.max_value is not None:
        entry["max"] = stats.max_value
    entry["num_values"] = (stats.value_count or 0) + (stats.null_count or 0)
    if stats.contains_nan is not None:
        entry["contains_nan"] = stats.contains_nan
    entry["column_size_bytes"] = stats.column_size_bytes
    entry["any_valid"] = True
    return entry
