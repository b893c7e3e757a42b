"""A summary of a lake in one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ducklake_lab.widgets.html import DOT, counted, escape, size, view, visible

if TYPE_CHECKING:
    from ducklake_lab.session.overview import TableInfo
    from ducklake_lab.widgets.browsers import Looking


@dataclass(frozen=True, slots=True)
class LakeSummary:
    """A summary: `flights.ducklake · snapshot 17 · 1 schema · 5 tables · 336,776 rows · 31 MB`.

    Attributes:
        rows: rows of all tables, if the catalog knows them.
        bytes: size of all data files.
        created: whether this session created the lake.
        pinned: the name of the snapshot it is pinned at, or None.
    """

    name: str
    snapshot_id: int
    schemas: int
    tables: int
    rows: int
    bytes: int
    created: bool = False
    pinned: str | None = None

    def facts(self) -> str:
        """The line without the name."""
        sizes = (counted(self.schemas, "schema"), counted(self.tables, "table"), counted(self.rows, "row"))
        made = ("created",) if self.created else ()
        read = f"snapshot {self.snapshot_id}" if self.pinned is None else f"pinned at {visible(self.pinned)}"
        return DOT.join((*made, read, *sizes, size(self.bytes)))

    def __repr__(self) -> str:
        return f"{self.name}{DOT}{self.facts()}"

    def _repr_html_(self) -> str:
        return view(
            f'<p><b>{escape(self.name)}</b>{DOT}<span class="dlk-soft">{escape(self.facts())}</span></p>',
            label=self.name,
        )


def of_session(session: Looking, name: str | None = None) -> LakeSummary:
    """Summarises the current lake, under the name of its catalog file or the given name."""
    lake = session.current_lake
    path = lake.location.path
    shown = name or (path.name if path is not None and lake.branch is None else lake.title)
    return summarize(
        shown,
        session.current_snapshot().snapshot_id,
        lake.alias,
        session.tables(),
        created=name is None and lake.created,
        pinned=lake.pinned,
    )


def summarize(
    name: str,
    snapshot_id: int,
    lake: str,
    tables: Iterable[TableInfo],
    *,
    created: bool = False,
    pinned: str | None = None,
) -> LakeSummary:
    """Summarises one lake from a session's table listing."""
    own = [info for info in tables if info.lake == lake]
    return LakeSummary(
        name=name,
        snapshot_id=snapshot_id,
        # A lake always has the schema main, even without tables.
        schemas=max(1, len({info.schema for info in own})),
        tables=len(own),
        rows=sum(info.record_count or 0 for info in own),
        bytes=sum(info.file_size_bytes or 0 for info in own),
        created=created,
        pinned=pinned,
    )
