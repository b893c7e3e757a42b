"""Listings that notebooks display: the history of a lake, the files of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, overload

import pyarrow as pa

from ducklake_lab.hooks import hook
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.history import FileEntry, HistoryEntry
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.details import FileDetails

Item = TypeVar("Item")
#: Units of numbers in a listing.
Unit = Literal["share", "bytes", "seconds"]


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

    def arrow(self) -> pa.Table:
        """Returns the snapshots as an Arrow table, one row each."""
        return pa.table(
            {
                "snapshot_id": pa.array([entry.info.snapshot_id for entry in self], pa.int64()),
                "snapshot_time": pa.array([entry.info.snapshot_time for entry in self], pa.timestamp("us", tz="UTC")),
                "kind": pa.array([entry.kind for entry in self], pa.string()),
                "rows_added": pa.array([entry.rows_added for entry in self], pa.int64()),
                "rows_removed": pa.array([entry.rows_removed for entry in self], pa.int64()),
                "changes": pa.array([list(entry.changes) for entry in self], pa.list_(pa.string())),
                "commit_message": pa.array([entry.info.commit_message for entry in self], pa.string()),
                "author": pa.array([entry.info.author for entry in self], pa.string()),
                "tags": pa.array([list(entry.tags) for entry in self], pa.list_(pa.string())),
                "bytes_added": pa.array([entry.bytes_added for entry in self], pa.int64()),
                "bytes_removed": pa.array([entry.bytes_removed for entry in self], pa.int64()),
                "at_most": pa.array([entry.at_most for entry in self], pa.bool_()),
            }
        )

    def plot(self) -> Any:
        """The history as a plotly figure."""
        return hook("history.plot")(self)


class Listing(_Listing[dict[str, object]]):
    """Rows of named values; each row is a dict.

    Attributes:
        title: the text above the rows.
        columns: the column names, in order.
        noun: the word for one counted item, e.g. `table`.
        total: the number of items; fewer than the rows if some rows are parts of others.
        note: the text below the rows, or "".
        units: units of columns with shares of 1, bytes or seconds: a view writes 0.25 as 25%, 1,000,000 as 1 MB and 90 as
            1 min 30 s.
    """

    _view = "listing.html"

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        noun: str = "row",
        total: int | None = None,
        note: str = "",
        units: Mapping[str, Unit] | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.units = dict(units or {})
        self.rows = tuple(tuple(row) for row in rows)
        self.noun = noun
        self.total = len(self.rows) if total is None else total
        self.note = note
        super().__init__(title, [dict(zip(self.columns, row, strict=True)) for row in self.rows])

    def pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns))

    def __repr__(self) -> str:
        lines = ["  ".join(f"{name}={value}" for name, value in row.items()) for row in self]
        parts = ([self.title] if self.title else []) + lines or [f"No {self.noun}s."]
        return "\n".join([*parts, self.note] if self.note else parts)


class FileListing(_Listing[FileEntry]):
    """Data files of a table at a snapshot.

    Attributes:
        inlined_rows: rows of the table in the catalog database.
        types: types of the columns that have statistics, by name.
        reads: the table, with its snapshot.
    """

    _view = "files.html"

    def __init__(
        self,
        title: str,
        snapshot_id: int,
        entries: Sequence[FileEntry],
        details: FileDetails | None = None,
        inlined_rows: int = 0,
        types: Mapping[str, DataType] | None = None,
    ) -> None:
        super().__init__(title, entries)
        self.inlined_rows = inlined_rows
        self.snapshot_id = snapshot_id
        self.reads: Sequence[EntryRead] = ()
        self.types: Mapping[str, DataType] = details.types if details is not None else types or {}
        self._details = details

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return hook("output")(self)

    def look_at(self, entries: Sequence[FileEntry]) -> None:
        """Reads the statistics of several files with one query."""
        if self._details is not None and entries:
            self._details.look_at([entry.data_file.data_file_id for entry in entries])

    def times(self, entries: Sequence[FileEntry]) -> Mapping[int, datetime]:
        """Returns known commit times, by the snapshot that added the file."""
        if self._details is None or not entries:
            return {}
        return self._details.times([entry.data_file.begin_snapshot for entry in entries])

    def of_column(self, name: str) -> list[ColumnStats]:
        """Returns one column's statistics, in file order, for the files that have them; reads no others."""
        if self._details is None:
            return [entry.stats[name] for entry in self if name in entry.stats]
        by_file = self._details.of_column(name)
        return [by_file[file_id] for entry in self if (file_id := entry.data_file.data_file_id) in by_file]

    def __repr__(self) -> str:
        size = sum(entry.data_file.file_size_bytes for entry in self)
        return f"<{len(self)} files of {self.title} at snapshot {self.snapshot_id}: {size:,} bytes>"

    def plot(self) -> Any:
        """The files as a plotly figure."""
        return hook("files.plot")(self)
