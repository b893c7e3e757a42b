"""Statistics and ages of a table's files; only those that are shown are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_times
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import ColumnStats

#: Columns whose statistics are kept.
_KEPT = 8


class FileDetails:
    """Details of the data files of a table that are visible at a snapshot.

    Attributes:
        types: those of the leaf columns by name, dotted for nested ones.
    """

    def __init__(self, lake: Lake, table: Table, snapshot_id: int) -> None:
        self._lake = lake
        self._table_id = table.table_id
        self._snapshot_id = snapshot_id
        leaves = list(_leaves(table.columns))
        self._names = {column.column_id: name for name, column in leaves}
        self._known: dict[int, dict[str, ColumnStats]] = {}
        self._columns: dict[str, dict[int, ColumnStats]] = {}
        self._times: dict[int, datetime] = {}
        self.types = {name: column.data_type for name, column in leaves}

    def of_column(self, name: str) -> dict[int, ColumnStats]:
        """Return a column's statistics by data file id; the columns asked for last are kept."""
        if name not in self._columns:
            ids = [column_id for column_id, own_name in self._names.items() if own_name == name]
            stats_of = self._read(ids)
            if len(self._columns) == _KEPT:
                del self._columns[next(iter(self._columns))]
            self._columns[name] = {file_id: column for file_id, stats in stats_of.items() for column in stats.values()}
        return self._columns[name]

    def look_at(self, file_ids: Collection[int] | None) -> None:
        """Read the statistics of some files (None: of all) ahead."""
        stats_of = self._read(None, file_ids)
        for file_id in stats_of if file_ids is None else file_ids:
            self._known[file_id] = {
                self._names[column_id]: column
                for column_id, column in stats_of.get(file_id, {}).items()
                if column_id in self._names
            }

    def of_file(self, file_id: int) -> Mapping[str, ColumnStats]:
        """The statistics of a file; those of all files are read if they are not at hand."""
        return _StatisticsOfFile(self, file_id)

    def times(self, snapshot_ids: Collection[int]) -> dict[int, datetime]:
        """Return the times of snapshots; those that have expired are left out."""
        missing = set(snapshot_ids) - self._times.keys()
        if missing:
            with self._lake.connect() as connection:
                times = read_times(connection, missing)
            self._times |= {number: self._lake.local(moment) for number, moment in times.items()}
        return {snapshot_id: self._times[snapshot_id] for snapshot_id in snapshot_ids if snapshot_id in self._times}

    def _of_file(self, file_id: int) -> dict[str, ColumnStats]:
        if file_id not in self._known:
            self.look_at(None)
        return self._known.setdefault(file_id, {})

    def _read(
        self, column_ids: Collection[int] | None, file_ids: Collection[int] | None = None
    ) -> dict[int, dict[int, ColumnStats]]:
        with self._lake.connect() as connection:
            return read_column_stats(connection, self._table_id, column_ids, self._snapshot_id, file_ids)


class _StatisticsOfFile(Mapping[str, ColumnStats]):
    """Statistics of a file by column name; read on first use."""

    __slots__ = ("_file_id", "_source")

    def __init__(self, source: FileDetails, file_id: int) -> None:
        self._source = source
        self._file_id = file_id

    def __getitem__(self, name: str) -> ColumnStats:
        return self._source._of_file(self._file_id)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._source._of_file(self._file_id))

    def __len__(self) -> int:
        return len(self._source._of_file(self._file_id))

    def __repr__(self) -> str:
        return repr(self._source._of_file(self._file_id))


def _leaves(columns: Iterable[Column], prefix: str = "") -> Iterable[tuple[str, Column]]:
    for column in columns:
        if column.children:
            yield from _leaves(column.children, f"{prefix}{column.name}.")
        else:
            yield prefix + column.name, column
