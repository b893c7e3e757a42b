"""Commits as columns beside the changes that they made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_first_since, read_infos
from ducklake_lab.model.commit_notes import CommitNote, read
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.ended import Connection

_VARCHAR = DataType("varchar")
#: Columns that say who made a snapshot; statement, notebook and cell are those that the commit notes.
COMMIT_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("time", DataType("timestamptz")),
    ("author", _VARCHAR),
    ("message", _VARCHAR),
    ("statement", _VARCHAR),
    ("notebook", _VARCHAR),
    ("cell", DataType("int64")),
)


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits of some snapshots and of those right before them; expired ones are missing.

    Attributes:
        rows: `snapshot_id`, then `COMMIT_COLUMNS`.
        infos: by snapshot id.
    """

    rows: pa.Table
    infos: Mapping[int, SnapshotInfo]

    @property
    def ids(self) -> pa.Table:
        """The ids of the snapshots that have not expired, as `snapshot_id`."""
        return self.rows.select(["snapshot_id"])


def read_commits(lake: Lake, snapshots: Collection[int]) -> Commits:
    """Reads the commits of some snapshots, and of those right before them."""
    wanted = frozenset(each for one in snapshots for each in (one - 1, one))
    with lake.connect() as connection:
        return lake.answer(connection, ("commits", wanted), lambda: _read_commits(connection, wanted))


def _read_commits(connection: Connection, snapshots: Collection[int]) -> Commits:
    infos = read_infos(connection, snapshots)
    rows = []
    for info in infos.values():
        note = read(info.commit_extra_info) or CommitNote()
        rows.append(
            {
                "snapshot_id": info.snapshot_id,
                "time": info.snapshot_time,
                "author": info.author,
                "message": info.commit_message,
                "statement": note.statement,
                "notebook": note.notebook,
                "cell": note.cell,
            }
        )
    fields = [pa.field("snapshot_id", pa.int64()), *(kind.field(name) for name, kind in COMMIT_COLUMNS)]
    return Commits(pa.Table.from_pylist(rows, pa.schema(fields)), infos)


def first_kept(lake: Lake, snapshot_id: int) -> int | None:
    """Returns the oldest snapshot that has not expired and is not older than one; None where there is none."""
    with lake.connect() as connection:
        return read_first_since(connection, snapshot_id)
