"""The data files of a table: sizes, rows, deletions, and value ranges of each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import basename
from typing import TYPE_CHECKING

from ducklake_lab.model.history import FileEntry
from ducklake_lab.model.statistics import null_count
from ducklake_lab.model.types import DataType
from ducklake_lab.widgets import ranges
from ducklake_lab.widgets.html import (
    DOT,
    cell,
    clip,
    count,
    counted,
    escape,
    heading,
    percent,
    scroll,
    size,
    table,
    view,
)

if TYPE_CHECKING:
    from ducklake_lab.session.listings import FileListing

#: Most files listed; totals and ranges cover all of them.
LIMIT = 200
#: Most files listed with the statistics of their columns.
_WITH_STATS = 40

_STYLE = """
.dlk .dlk-bar{display:inline-block;width:90px;height:8px;margin-left:9px;background:var(--dlk-tint);
border-radius:2px;overflow:hidden}
.dlk .dlk-bar i{display:block;height:8px;background:var(--dlk-accent)}
.dlk .dlk-bar i+i{background:var(--dlk-delete);margin-top:-8px}
.dlk .dlk-strip{display:flex;justify-content:space-between;gap:8px;white-space:nowrap}
"""


def render(files: FileListing) -> str:
    """Returns totals, one row per file with a bar for its size, and a strip of ranges per column."""
    entries, title = list(files), files.title
    total = sum(entry.data_file.file_size_bytes for entry in entries)
    rows = sum(entry.rows for entry in entries)
    deleted = sum(entry.deleted for entry in entries)
    facts = [f"snapshot {files.snapshot_id}", counted(len(entries), "data file"), size(total), counted(rows, "row")]
    if files.inlined_rows:
        facts.append(f"{counted(files.inlined_rows, 'more row')} in the catalog")
    if deleted:
        facts.append(f"{count(deleted)} deleted ({escape(percent(deleted / max(rows, 1)))})")
    delete_files = sum(entry.delete_path is not None for entry in entries)
    if delete_files:
        facts.append(f"{counted(delete_files, 'delete file')}, {size(sum(entry.delete_bytes for entry in entries))}")
    header = f'<p><span class="dlk-title">{escape(title)}</span> <span class="dlk-soft">{DOT.join(facts)}</span></p>'
    if not entries:
        return view(header, label=title)
    files.look_at([*entries[:_WITH_STATS], *ranges.sample(entries)])
    more = ""
    if len(entries) > LIMIT:
        more = f'<div class="dlk-foot">first {count(LIMIT)} of {counted(len(entries), "file")}</div>'
    body = header + scroll(_listing(entries, files.types), "Data files") + more + ranges.section(files)
    return view(body, style=_STYLE + ranges.STYLE, label=title)


def statistics(entry: FileEntry, types: Mapping[str, DataType]) -> str:
    """Returns the statistics of one file per column; `types` gives column types by name."""
    return view(scroll(_stats(entry, types), "Statistics"), label="Statistics of the file")


def _listing(entries: Sequence[FileEntry], types: Mapping[str, DataType]) -> str:
    largest = max(entry.data_file.file_size_bytes for entry in entries)
    partitioned = any(entry.partition for entry in entries)
    head = [
        heading("file"),
        heading("snapshot", right=True),
        heading("rows", right=True),
        heading("deleted", right=True),
        heading("size"),
        heading("min and max"),
    ]
    if partitioned:
        head.insert(1, heading("partition"))
    rows = (
        _row(entry, largest, partitioned, types if index < _WITH_STATS else None)
        for index, entry in enumerate(entries[:LIMIT])
    )
    return table(head, rows)


def _row(entry: FileEntry, largest: int, partitioned: bool, types: Mapping[str, DataType] | None) -> str:
    """Returns a row of the table; with `types`, it shows the file's statistics."""
    data = entry.data_file
    name = f'<span class="dlk-mono">{escape(_short(entry.path))}</span>'
    share = entry.deleted / entry.rows if entry.rows else 0.0
    deleted = f'{count(entry.deleted)} <span class="dlk-soft">{escape(percent(share))}</span>' if entry.deleted else "–"
    cells = [
        cell(name, title=entry.path),
        cell(str(data.begin_snapshot), right=True),
        cell(count(entry.rows), right=True),
        cell(deleted, right=True),
        cell(f"{size(data.file_size_bytes)}{_bar(data.file_size_bytes / max(largest, 1), share)}", right=True),
    ]
    if partitioned:
        pairs = ", ".join(f"{key} = {'NULL' if value is None else value}" for key, value in entry.partition)
        cells.insert(1, cell(escape(clip(pairs, 60)), title=pairs if len(pairs) > 60 else ""))
    if types is not None and entry.stats:
        cells.append(cell(f"<details><summary>statistics</summary>{_stats(entry, types)}</details>"))
    else:
        cells.append(cell(""))
    return f"<tr>{''.join(cells)}</tr>"


def _bar(share: float, deleted: float) -> str:
    """Returns a bar for the size, with its right end red for deleted rows."""
    width = share * 100
    red = ""
    if deleted:
        cut = max(width * deleted, 2)
        red = f'<i style="width:{cut:.1f}%;margin-left:{width - cut:.1f}%"></i>'
    return f'<span class="dlk-bar" aria-hidden="true"><i style="width:{width:.1f}%"></i>{red}</span>'


def _stats(entry: FileEntry, types: Mapping[str, DataType]) -> str:
    rows = []
    for name, stats in list(entry.stats.items())[:200]:
        nulls = null_count(stats, types[name])
        cells = (
            cell(escape(clip(name, 60))),
            cell(escape(clip(stats.min_value or "", 40)), title=stats.min_value or ""),
            cell(escape(clip(stats.max_value or "", 40)), title=stats.max_value or ""),
            cell('<span class="dlk-soft">unknown</span>' if nulls is None else count(nulls), right=True),
            cell("" if stats.column_size_bytes is None else size(stats.column_size_bytes), right=True),
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = (
        heading("column"),
        heading("min"),
        heading("max"),
        heading("nulls", right=True),
        heading("size", right=True),
    )
    return table(head, rows)


def _short(path: str) -> str:
    """Returns the file's name with its unique middle shortened: `ducklake-0199…f2a4.parquet`."""
    name = basename(path)
    stem, mark, ending = name.rpartition(".")
    if len(name) <= 34 or not mark:
        return clip(name, 34)
    return f"{stem[:14]}…{stem[-6:]}.{clip(ending, 12)}"
