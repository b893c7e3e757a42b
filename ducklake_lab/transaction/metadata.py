"""Rows of the metadata tables that one commit writes, and the ids it hands out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.model.entries import LOCAL_ID_START, Snapshot


class Ids:
    """Ids allocated by a commit, counting on from the newest snapshot.

    Attributes:
        next_catalog_id, next_file_id, schema_version: values of the new snapshot.
    """

    def __init__(self, latest: Snapshot) -> None:
        self.next_catalog_id = latest.next_catalog_id
        self.next_file_id = latest.next_file_id
        self.schema_version = latest.schema_version
        self._committed: dict[int, int] = {}

    def catalog(self, local_id: int) -> int:
        """The committed id of an entry, allocated when it is local and first seen."""
        if local_id < LOCAL_ID_START:
            return local_id
        if local_id not in self._committed:
            self._committed[local_id] = self.next_catalog_id
            self.next_catalog_id += 1
        return self._committed[local_id]

    def known(self, local_id: int) -> int:
        """Return the committed id of an entry that was allocated, or committed, before."""
        return self._committed.get(local_id, local_id)

    def file(self, local_id: int | None = None) -> int:
        """The id of a new file, remembered for the local one."""
        self.next_file_id += 1
        if local_id is not None:
            self._committed[local_id] = self.next_file_id - 1
        return self.next_file_id - 1


class Metadata(Writes):
    """Writes rows that begin or end with one snapshot."""

    def __init__(self, connection: sa.Connection, snapshot_id: int) -> None:
        super().__init__(connection)
        self.snapshot_id = snapshot_id

    def end(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> None:
        """Ends the live rows for which the condition holds, of a table that the catalog's version has.

        A row does not begin and end with one snapshot, so that none that is held is concerned.
        """
        if self.has(table):
            live = sa.and_(condition, table.c.end_snapshot.is_(None))
            self.write_to_earlier(table.update().where(live).values(end_snapshot=self.snapshot_id))


def schedule_deletion(writes: Writes, data_path: str, files: Sequence[tuple[int, str]]) -> None:
    """Notes files, (id, absolute path), that no snapshot needs any more; cleanup_old_files deletes them."""
    now = datetime.now(UTC)
    rows: list[dict[str, object]] = []
    for file_id, path in files:
        relative = path.startswith(data_path)
        stored = path[len(data_path) :] if relative else path
        rows.append({"data_file_id": file_id, "path": stored, "path_is_relative": relative, "schedule_start": now})
    writes.insert_many(t.files_scheduled_for_deletion, rows)
