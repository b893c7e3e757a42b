"""Listings that draw themselves in a notebook: a history, the files of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from ducklake_lab.hooks import hook
from ducklake_lab.model.history import FileEntry, HistoryEntry

Item = TypeVar("Item")


class _Listing(Sequence[Item], Generic[Item]):
    _view = ""

    def __init__(self, title: str, entries: Sequence[Item]) -> None:
        self.title = title
        self._entries = tuple(entries)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._entries)

    def _repr_html_(self) -> str:
        html: str = hook(self._view)(self)
        return html


class History(_Listing[HistoryEntry]):
    """Snapshots, oldest first."""

    _view = "history.html"

    def __repr__(self) -> str:
        return f"<History of {self.title}: {len(self)} snapshots>"

    def plot(self) -> Any:
        """The history as a plotly figure."""
        return hook("history.plot")(self)


class FileListing(_Listing[FileEntry]):
    """Data files of a table at a snapshot."""

    _view = "files.html"

    def __init__(self, title: str, snapshot_id: int, entries: Sequence[FileEntry]) -> None:
        super().__init__(title, entries)
        self.snapshot_id = snapshot_id

    def __repr__(self) -> str:
        size = sum(entry.data_file.file_size_bytes for entry in self)
        return f"<{len(self)} files of {self.title} at snapshot {self.snapshot_id}: {size:,} bytes>"

    def plot(self) -> Any:
        """The files as a plotly figure."""
        return hook("files.plot")(self)
