"""All versions of one row: followed from those that the catalog knows, to the files begun where one ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ducklake_lab.blame.versions import Versions
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.files import DataFile
from ducklake_lab.scan.ended import FilesOfRow, seems_late
from ducklake_lab.scan.positions import read_deletions
from ducklake_lab.storage import Storage

_storage = Storage()


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of the row; `ended` is exclusive, and None for one that is there.

    Attributes:
        counted: its file counts row ids from the first, so that the row was inserted there.
        may_seem_late: it may have ended earlier; see `EndedFiles`.
    """

    began: int
    ended: int | None
    counted: bool = False
    may_seem_late: bool = False


def versions_of_row(versions: Versions, row_id: int) -> pa.Table:
    """Returns all versions of a row that begin up to the snapshot, oldest first: `ended`, then as other versions."""
    return _Lifetime(versions, row_id).read()


class _Lifetime:
    def __init__(self, versions: Versions, row_id: int) -> None:
        self._versions = versions
        self._row_id = row_id
        self._places = range(len(versions.columns))
        self._found: list[_Version] = []
        self._parts: list[pa.Table] = []

    def read(self) -> pa.Table:
        self._add_inlined()
        self._add(self._versions.anchors(self._row_id))
        searched: set[tuple[int, int]] = set()
        while (hole := next((hole for hole in self._holes() if hole not in searched), None)) is not None:
            first, last = hole
            # mostly the next version begins where the one before ended
            if (first, first) not in searched and self._search(first, first):
                continue
            searched |= {(first, first), hole}
            if first < last:
                self._search(first + 1, last)
        schema = self._versions.schema(self._places, ended=True)
        rows = pa.concat_tables(self._parts) if self._parts else schema.empty_table()
        # one version of a row ends where the next begins, at the latest
        return engine.evaluate(
            "SELECT * REPLACE (least(ended, lead(began) OVER (ORDER BY began)) AS ended) FROM ("
            "FROM rows QUALIFY row_number() OVER (PARTITION BY began ORDER BY ended NULLS FIRST) = 1) ORDER BY began",
            {"rows": rows},
        )

    def _holes(self) -> Iterator[tuple[int, int]]:
        """Yields the ranges of snapshots, both ends inclusive, at which no version is known and one could be."""
        found = sorted(self._found, key=lambda version: version.began)
        if not found:
            yield 0, self._versions.at
            return
        if found[0].began > 0 and not found[0].counted:
            yield 0, found[0].began - 1
        for version, after in zip(found, [*found[1:], None], strict=True):
            until = after.began - 1 if after is not None else self._versions.at
            ended = version.began + 1 if version.may_seem_late else version.ended
            if ended is not None and ended <= until:
                yield ended, until

    def _search(self, first: int, last: int) -> bool:
        """Adds versions from files that begin in a range of snapshots; whether there was one."""
        before = len(self._found)
        self._add(self._versions.begun(first, last))
        return len(self._found) > before

    def _add_inlined(self) -> None:
        rows = self._versions.inlined_of(self._row_id, self._places)
        if rows is not None:
            self._keep(rows)

    def _add(self, files: FilesOfRow) -> None:
        found = self._versions.positions_of(files.files, self._row_id)
        by_id = {file.data_file_id: file for file in files.files}
        placed = [(by_id[file_id], position, began) for file_id, position, began in zip(*_listed(found), strict=True)]
        ends = [self._end(file, position, files) for file, position, _ in placed]
        # a version that began with its end was in no snapshot
        seen = [end is None or began < end for (*_, began), end in zip(placed, ends, strict=True)]
        found = found.append_column("ended", pa.array(ends, pa.int64())).filter(pa.array(seen, pa.bool_()))
        if not found.num_rows:
            return
        held = {file.data_file_id for file in self._versions.with_row_ids(files.files)}
        counted = {began for file, _, began in placed if file.data_file_id not in held}
        cells = self._versions.cells(files.files, found, self._places)
        rows = engine.evaluate(
            "SELECT p.ended, c.* FROM cells AS c JOIN (SELECT began, any_value(ended) AS ended FROM found GROUP BY began) AS p "
            "ON p.began = c.began",
            {"cells": cells, "found": found},
        )
        late = {began for file, _, began in placed if any(map(seems_late, files.deletes.get(file.data_file_id, ())))}
        self._keep(rows, counted, late)

    def _keep(self, rows: pa.Table, counted: Collection[int] = (), late: Collection[int] = ()) -> None:
        for began, ended in zip(*(rows.column(name).to_pylist() for name in ("began", "ended")), strict=True):
            self._found.append(_Version(began, ended, began in counted, ended is not None and began in late))
        self._parts.append(rows.cast(self._versions.schema(self._places, ended=True)))

    def _end(self, file: DataFile, position: int, files: FilesOfRow) -> int | None:
        """Returns the snapshot that deleted a position of a file, or dropped the file; None for none."""
        ends = [] if file.end_snapshot is None else [file.end_snapshot]
        ends += [end for place, end in files.positions.get(file.data_file_id, ()) if place == position]
        for delete in files.deletes.get(file.data_file_id, ()):
            places, snapshots = read_deletions(self._versions.file_with(file, delete), _storage)
            at = np.flatnonzero(places == position)
            if len(at):
                ends.append(delete.begin_snapshot if snapshots is None else int(snapshots[at[0]]))
        return min(ends, default=None)


def _listed(found: pa.Table) -> list[list[int]]:
    return [found.column(name).to_pylist() for name in ("file_id", "position", "began")]
