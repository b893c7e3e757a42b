"""Keeps bounds true where a column changes its type: readers compare all of them as values of the newest type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.table_facts import TableColumnStats
from ducklake_lab.catalog.uri import Backend
from ducklake_lab.duckdb.bounds import respelled
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import ColumnStats, WrittenFile
from ducklake_lab.model.promotion import is_wider, keeps_bounds
from ducklake_lab.model.types import DataType
from ducklake_lab.transaction.facts import CommitFacts
from ducklake_lab.transaction.metadata import Metadata
from ducklake_lab.transaction.nul_bytes import without_nul

_BOUNDS = ("min_value", "max_value")
_NO_BOUNDS = dict.fromkeys((*_BOUNDS, "min_is_exact", "max_is_exact"))


def spelled_for(table: Table, file: WrittenFile, backend: Backend) -> WrittenFile:
    """The file, with its bounds spelled as values of the table's columns, without those that the catalog cannot keep."""
    columns = {part.column_id: part.data_type for column in table.columns for part in column.walk()}
    stats = tuple(without_nul(_spelled(stats, columns.get(stats.column_id)), backend) for stats in file.column_stats)
    return file if stats == file.column_stats else replace(file, column_stats=stats)


def _spelled(stats: ColumnStats, target: DataType | None) -> ColumnStats:
    source = stats.written_type
    if source is None or target is None or keeps_bounds(source, target):
        return stats
    bounds = [text for text in (stats.min_value, stats.max_value) if text is not None]
    texts = respelled(bounds, source, target) if bounds else {}
    low, high = (texts[text] if text is not None else None for text in (stats.min_value, stats.max_value))
    return replace(stats, min_value=low, max_value=high, written_type=target)


def retype_bounds(
    metadata: Metadata,
    facts: CommitFacts,
    table_id: int,
    old: Mapping[int, dict[str, Any]],
    new: Mapping[int, dict[str, Any]],
) -> None:
    """Changes the committed bounds of columns whose types change with this commit.

    Args:
        old: the rows of `ducklake_column` before, by column id.
        new: those after.
    """
    narrowed = []
    for column_id in old.keys() & new.keys():
        source, target = DataType(old[column_id]["column_type"]), DataType(new[column_id]["column_type"])
        if is_wider(target, source):
            narrowed.append(column_id)
        elif not keeps_bounds(source, target):
            _widen(metadata, facts, table_id, column_id, source, target, new[column_id]["initial_default"])
    if narrowed:
        # bounds may be beyond the type; without a row they are unknown, and stay so
        c = t.table_column_stats.c
        metadata.write(t.table_column_stats.delete().where(c.table_id == table_id, c.column_id.in_(narrowed)))
        facts.set_column_stats(table_id, dict.fromkeys(narrowed))


def _widen(
    metadata: Metadata,
    facts: CommitFacts,
    table_id: int,
    column_id: int,
    source: DataType,
    target: DataType,
    default: str | None,
) -> None:
    """Spells bounds as values of the wider type, or clears them where some values may have another type."""
    connection, c = metadata.connection, t.column.c
    types = sa.select(c.column_type).where(
        c.table_id == table_id, c.column_id == column_id, c.begin_snapshot < metadata.snapshot_id
    )
    was_another = {DataType(name) for name in connection.execute(types.distinct()).scalars()} != {source}
    unknown = was_another or (default is not None and not _is_same(default, source, target))
    for stats in (t.file_column_stats, t.table_column_stats):
        condition = sa.and_(stats.c.table_id == table_id, stats.c.column_id == column_id)
        query = sa.select(*(versions.column(connection, column) for column in stats.c)).where(condition)
        rows = [dict(row) for row in connection.execute(query).mappings()]
        bounds = [row[name] for row in rows for name in _BOUNDS if row[name] is not None]
        if not bounds:
            continue
        of_table = stats is t.table_column_stats
        texts = {} if unknown else respelled(bounds, source, target)
        for row in rows:
            row.update(_NO_BOUNDS if unknown else {name: row[name] and texts[row[name]] for name in _BOUNDS})
        # two statements for all files, which may be many
        metadata.expect(sa.select(sa.func.count()).select_from(stats).where(condition), len(rows))
        metadata.write(stats.delete().where(condition))
        # an INSERT would fill a row without bounds with bounds of its own rows
        kept = [] if unknown and of_table else rows
        metadata.insert_many(stats, kept)
        if of_table:
            names = TableColumnStats.__slots__
            known = TableColumnStats(*(kept[-1][name] for name in names)) if kept else None
            facts.set_column_stats(table_id, {column_id: known})


def _is_same(text: str, source: DataType, target: DataType) -> bool:
    """Returns whether a text means the same value in both types."""
    texts: Sequence[str] = [text]
    return respelled(texts, source, target)[text] == respelled(texts, target, target)[text]
