"""Browsers for the current lake: the views of the magics, and tabs of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from ducklake_lab.widgets.file_browser import FileBrowser
from ducklake_lab.widgets.schema import of_catalog
from ducklake_lab.widgets.schema_browser import SchemaBrowser
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from ducklake_lab.widgets.table_view import TableBrowser
from ducklake_lab.widgets.tables import TableListing

if TYPE_CHECKING:
    from ducklake_lab.catalog.lake import Lake
    from ducklake_lab.model.entries import Snapshot
    from ducklake_lab.model.history import HistoryEntry
    from ducklake_lab.model.state import CatalogState
    from ducklake_lab.scan.counts import TableCounts
    from ducklake_lab.session.names.system_tables import ViewComments
    from ducklake_lab.session.overview import TableInfo

At = int | datetime | str | None


class Looking(Protocol):
    """The parts of a session that the browsers use."""

    @property
    def current_lake(self) -> Lake: ...
    def current_snapshot(self) -> Snapshot: ...
    def reading(self) -> AbstractContextManager[None]: ...
    def table(self, name: str, at: At = None) -> Any: ...
    def tables(self, at: At = None) -> Sequence[TableInfo]: ...
    def catalog(self, at: At = None) -> tuple[CatalogState, Mapping[int, TableCounts], ViewComments]: ...
    def history(self, table: str | None = None) -> Sequence[HistoryEntry]: ...
    def lineage(self, name: str | None = None, *, at: At = None) -> Any: ...
    def health(self, table: str | None = None) -> Any: ...


def schema(session: Looking, at: At = None) -> SchemaBrowser:
    """Returns a browser for schemas, tables, columns, views and macros."""

    def lineage(name: str) -> tuple[Sequence[dict[str, object]], Sequence[str]]:
        traced = session.lineage(name, at=at)
        return traced.arrow().to_pylist(), traced.info.remarks

    return SchemaBrowser(of_catalog(session.current_lake.alias, *session.catalog(at)), lineage)


def rows(session: Looking, table: str, at: At = None) -> TableBrowser:
    """Returns a browser for the rows of a table."""
    return TableBrowser(session.table(table, at=at).view())


def files(session: Looking, table: str, at: At = None) -> FileBrowser:
    """Returns a browser for the data files of a table, with maintenance calls."""
    with session.reading():
        listing = session.table(table, at=at).files()
        # An older state is history and needs no maintenance.
        health = session.health(table) if at is None else None
    return FileBrowser(listing, health, can_mend=not session.current_lake.read_only)


def snapshots(session: Looking, table: str | None = None) -> SnapshotBrowser:
    """Returns a browser for the history of the lake or a table, with diffs, and the lake at each snapshot."""

    def diff(name: str, start: int, end: int) -> str:
        html: str = session.table(name).diff(start, end)._repr_html_()
        return html

    def lake(snapshot: int) -> str:
        return TableListing(tuple(session.tables(snapshot)))._repr_html_()

    title = f"Snapshots of {table}" if table else "Snapshots"
    return SnapshotBrowser(session.history(table), title=title, diff=diff, lake=lake)
