"""Describes a table from the catalog alone: columns, value ranges, partitions. No data file is read.

Files that another catalog names too are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.history import FileEntry
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.statistics import counted
from ducklake_lab.model.types import FLOATS, DataType
from ducklake_lab.model.values import Scalar, bound
from ducklake_lab.scan.counts import TableCounts, table_counts
from ducklake_lab.scan.presence import check_table
from ducklake_lab.session.listings import FileListing, Listing


def describe(lake: Lake, state: CatalogState, table: Table) -> Listing:
    """Lists the columns of a table, nested fields below their parents, with the table's sizes in the note."""
    keys = {field.column_id: field.transform for field in table.partition.fields} if table.partition else {}
    rows = []
    for name, column in leaves_and_nodes(table.columns):
        default = None if column.default_value in (None, "NULL") else column.default_value
        key = keys.get(column.column_id)
        rows.append(
            (
                name,
                column.data_type.sql(),
                "" if column.nulls_allowed else "not null",
                default,
                "" if key is None else "partition" if key == "identity" else f"partition by {key}",
            )
        )
    with lake.connect() as connection:
        check_table(lake, state, table)
        counts = table_counts(lake, connection, state.snapshot.snapshot_id).get(table.table_id, TableCounts())
    note = f"{counts.rows:,} rows · {counts.bytes:,} bytes · snapshot {state.snapshot.snapshot_id}"
    if table.comment:
        note += f" · {table.comment}"
    return Listing(
        state.qualified_name(table),
        ("column", "type", "nulls", "default", "key"),
        rows,
        noun="column",
        total=len(table.columns),
        note=note,
    )


def leaves_and_nodes(columns: Iterable[Column], prefix: str = "") -> Iterable[tuple[str, Column]]:
    """Yields each column at any depth with its dotted name; elements of lists and maps have names of their own."""
    for column in columns:
        yield prefix + column.name, column
        yield from leaves_and_nodes(column.children, f"{prefix}{column.name}.")


def column_stats(
    title: str, snapshot_id: int, table: Table, files: Sequence[FileEntry], inlined_rows: int = 0
) -> Listing:
    """Sums the files' statistics per leaf column; the note counts the inlined rows."""
    rows = []
    for name, column in leaves_and_nodes(table.columns):
        if column.children:
            continue
        column_stats = [entry.stats[name] for entry in files if name in entry.stats]
        low, high = _bounds(column_stats, column)
        nulls, total = counted(column_stats, column.data_type)
        rows.append(
            (
                name,
                column.data_type.sql(),
                low,
                high,
                _share(nulls, total),
                any(stats.contains_nan for stats in column_stats) if column.type in ("float32", "float64") else None,
                sum(stats.column_size_bytes or 0 for stats in column_stats) or None,
            )
        )
    left_out = (
        f", {inlined_rows:,} row{'' if inlined_rows == 1 else 's'} in the catalog left out" if inlined_rows else ""
    )
    return Listing(
        f"Statistics of {title}",
        ("column", "type", "min", "max", "null share", "NaN", "bytes"),
        rows,
        noun="column",
        total=len(table.columns),
        note=f"of {len(files):,} data file{'' if len(files) == 1 else 's'}, rows deleted since included{left_out} "
        f"· snapshot {snapshot_id}",
        units={"null share": "share", "bytes": "bytes"},
    )


def _share(part: int, total: int) -> float | None:
    """Returns a rounded share; only an exact 0 or 1 is shown as such."""
    if not total:
        return None
    return part / total if part in (0, total) else min(max(round(part / total, 4), 0.0001), 0.9999)


def _bounds(column_stats: Sequence[ColumnStats], column: Column) -> tuple[str | None, str | None]:
    """Returns the smallest and largest value as text, NaN and infinities too.

    It is "≤ …" for an upper bound, and None where a file lacks statistics.
    """
    kind = column.data_type
    holding = [stats for stats in column_stats if stats.value_count != 0]
    if not holding or any(stats.is_inexact for stats in column_stats):
        return None, None
    low = _extreme([stats.min_value for stats in holding], kind, min)
    high = _extreme([stats.max_value for stats in holding], kind, max)
    if low is not None and not all(stats.has_least_value(kind) for stats in holding if stats.min_value == low):
        return None, None
    if kind.name == "boolean":
        # the catalog stores booleans as 0 and 1
        low, high = (None if text is None else str(bound(text, kind)).lower() for text in (low, high))
    elif kind.name in FLOATS:
        low, high = (_float_text(text, kind) for text in (low, high))
        if any(stats.contains_nan for stats in holding):
            high = "nan"  # larger than all others
        elif any(stats.contains_nan is None for stats in holding):
            high = None
    elif high is not None and not all(stats.has_largest_value(kind) for stats in holding if stats.max_value == high):
        high = f"≤ {high}"
    return low, high


def _extreme(texts: Sequence[str | None], kind: DataType, choose: Callable[..., Any]) -> str | None:
    """Returns the text of the smallest or largest bound; None where one is not known."""
    values = [(bound(text, kind), text) for text in texts]
    if any(value is None for value, _ in values):
        return None
    chosen: tuple[Scalar, str] = choose(values, key=lambda pair: pair[0])
    return chosen[1]


def _float_text(text: str | None, kind: DataType) -> str | None:
    """Returns the text of a bound; infinities as DuckDB writes them."""
    value = bound(text, kind)
    return str(float(value)) if isinstance(value, Decimal) and value.is_infinite() else text


def partitions(files: FileListing) -> Listing:
    """Lists files, rows, deleted rows and bytes by partition values, in order of the values."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[FileEntry]] = {}
    for entry in files:
        by_partition.setdefault(entry.partition, []).append(entry)
    rows = [
        (
            ", ".join(f"{key} = {'NULL' if value is None else value}" for key, value in keys) or "(none)",
            len(entries),
            sum(entry.rows for entry in entries),
            sum(entry.deleted for entry in entries),
            sum(entry.data_file.file_size_bytes for entry in entries),
        )
        for keys, entries in sorted(by_partition.items(), key=lambda item: _natural(item[0]))
    ]
    return Listing(
        f"Partitions of {files.title}",
        ("partition", "files", "rows", "deleted", "bytes"),
        rows,
        noun="partition",
        note=f"snapshot {files.snapshot_id}",
        units={"bytes": "bytes"},
    )


def _natural(keys: tuple[tuple[str, str | None], ...]) -> list[tuple[int, float, str]]:
    """Returns a sort key: numbers by value, then texts, NULL last."""
    order = []
    for _, value in keys:
        if value is None:
            order.append((2, 0.0, ""))
            continue
        try:
            order.append((0, float(value), ""))
        except ValueError:
            order.append((1, 0.0, value))
    return order
