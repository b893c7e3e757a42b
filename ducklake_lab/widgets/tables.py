"""A list of the tables in the attached lakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ducklake_lab.widgets.html import cell, clip, count, counted, escape, heading, size, table, view

if TYPE_CHECKING:
    from ducklake_lab.session.overview import TableInfo

#: Most tables shown.
LIMIT = 500


@dataclass(frozen=True, slots=True)
class TableListing:
    """A listing of tables with rows and sizes, which notebooks display."""

    tables: tuple[TableInfo, ...]

    def __repr__(self) -> str:
        return "\n".join(f"{info.lake}.{info.schema}.{info.table.name}" for info in self.tables) or "No tables."

    def _repr_html_(self) -> str:
        lakes = len({info.lake for info in self.tables}) > 1
        head = [
            heading("schema"),
            heading("table"),
            heading("rows", right=True),
            heading("columns", right=True),
            heading("size", right=True),
        ]
        if lakes:
            head.insert(0, heading("lake"))
        body = (_row(info, lakes) for info in self.tables[:LIMIT])
        shown = f"first {count(LIMIT)} of " if len(self.tables) > LIMIT else ""
        foot = f'<div class="dlk-foot">{shown}{counted(len(self.tables), "table")}</div>'
        return view((table(head, body) if self.tables else "") + foot, label="Tables")


def _row(info: TableInfo, lakes: bool) -> str:
    cells = [
        cell(escape(clip(info.schema, 80))),
        cell(f"<b>{escape(clip(info.table.name, 120))}</b>"),
        cell("" if info.record_count is None else count(info.record_count), right=True),
        cell(count(len(info.table.columns)), right=True),
        cell("" if info.file_size_bytes is None else size(info.file_size_bytes), right=True),
    ]
    if lakes:
        cells.insert(0, cell(escape(clip(info.lake, 80))))
    return f"<tr>{''.join(cells)}</tr>"
