"""DuckDB's report of a file it wrote -> the statistics the catalog records (spec: ducklake_file_column_stats)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ducklake_lab.files.variants import variant_statistics
from ducklake_lab.model.entries import Column
from ducklake_lab.model.extra_stats import geometry_text
from ducklake_lab.model.files import CUT_TYPES, ColumnStats, counts

#: The report on one leaf column of a file: `min`, `null_count`, …, all as text.
Report: TypeAlias = Mapping[str, str]
#: Bytes from which a bound of DuckDB's may be cut: at 256, or before a character that ends after them.
_LONG = 253
Path: TypeAlias = tuple[str, ...]


def column_statistics(columns: Sequence[Column], reports: Mapping[str, Report]) -> tuple[ColumnStats, ...]:
    """The statistics of a file's leaf columns, those of the table, in their order.

    Args:
        reports: by quoted path (`"st"."x"`), as `COPY … (RETURN_STATS)` gives them.
    """
    by_path: dict[Path, Report] = {_path(name): report for name, report in reports.items()}
    statistics = []
    for path, column in _leaves(columns, ()):
        if column.type == "variant":
            inner = dict(_below(by_path, path))
            if inner:
                statistics.append(variant_statistics(column.column_id, inner))
        elif path in by_path:
            statistics.append(_statistics(column, by_path[path]))
    return tuple(statistics)


def _path(name: str) -> Path:
    return tuple(part.replace('""', '"') for part in re.findall(r'"((?:[^"]|"")*)"', name))


def _leaves(columns: Sequence[Column], above: Path) -> Iterator[tuple[Path, Column]]:
    for column in columns:
        path = (*above, column.name)
        if column.children:
            yield from _leaves(column.children, path)
        else:
            yield path, column


def _below(reports: Mapping[Path, Report], path: Path) -> Iterator[tuple[Path, Report]]:
    for other, report in reports.items():
        if other[: len(path)] == path and len(other) > len(path):
            yield other[len(path) :], report


def _statistics(column: Column, report: Report) -> ColumnStats:
    value_count, null_count = counts(number(report, "num_values"), number(report, "null_count"))
    return ColumnStats(
        column_id=column.column_id,
        column_size_bytes=number(report, "column_size_bytes"),
        value_count=value_count,
        null_count=null_count,
        min_value=report.get("min"),
        max_value=report.get("max"),
        contains_nan=report["has_nan"] == "true" if "has_nan" in report else None,
        extra_stats=_bounding_box(report) if column.type == "geometry" else None,
        min_is_exact=_is_exact(column, report, "min"),
        max_is_exact=_is_exact(column, report, "max"),
        written_type=column.data_type,
    )


def _is_exact(column: Column, report: Report, name: str) -> bool | None:
    """Returns whether a bound is a value of the file; None where that is not known.

    DuckDB 2.0 reports it. From 1.5 a long bound may be cut, and any maximum may be what a cut left of it.
    """
    if name not in report:
        return None
    if f"{name}_is_exact" in report:
        return report[f"{name}_is_exact"] == "true"
    kind = column.data_type.name
    if kind not in CUT_TYPES:
        return True
    if len(report[name].encode()) // (2 if kind == "blob" else 1) >= _LONG:
        return False
    return True if name == "min" else None


def number(report: Report, name: str) -> int | None:
    """A count of a report; None where it has none."""
    return int(report[name]) if name in report else None


def _bounding_box(report: Report) -> str:
    bounds = {
        axis + end: float(report[f"bbox_{axis}{end}"]) if f"bbox_{axis}{end}" in report else None
        for axis in "xyzm"
        for end in ("min", "max")
    }
    kinds = [kind.strip() for kind in report.get("geo_types", "[]").strip("[]").split(",") if kind.strip()]
    return geometry_text(bounds, kinds)
