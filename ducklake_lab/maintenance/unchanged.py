"""Rows that a restore would remove and bring back: equal row ids and values, in other places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.in_process import reader
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.engine.placement import Engines
from ducklake_lab.model.entries import Table
from ducklake_lab.model.positions import Positions
from ducklake_lab.scan.plan import ScanFile, ScanPlan

#: Types whose values are not compared.
_NOT_COMPARED = ("variant", "geometry")


@dataclass(frozen=True, slots=True)
class Places:
    """Rows of one state of a table.

    Attributes:
        plan: reads that state.
        in_files: by the id of a data file: the file in that state, and positions in it.
        inlined: ids of inlined rows.
    """

    plan: ScanPlan
    in_files: Mapping[int, tuple[ScanFile, Positions]]
    inlined: frozenset[int]

    @property
    def files(self) -> list[ScanFile]:
        return [file for file, positions in self.in_files.values() if len(positions)]

    def without(self, file_ids: Positions, positions: Positions, row_ids: frozenset[int]) -> Places:
        """Return the places without some rows.

        Args:
            file_ids, positions: of the rows in files.
            row_ids: of the inlined ones.
        """
        kept = {
            file_id: (file, np.setdiff1d(rows, positions[file_ids == file_id], assume_unique=True))
            for file_id, (file, rows) in self.in_files.items()
        }
        return replace(self, in_files=kept, inlined=self.inlined - row_ids)


def without_unchanged(come: Places, go: Places, table: Table, engines: Engines) -> tuple[Places, Places]:
    """Return the rows to add and to remove, without equal rows on both sides.

    Nothing is read where only one side has rows. All rows stay where too much has to be read for this process.

    Args:
        table: with the columns that both states have.
    """
    if not (come.files or come.inlined) or not (go.files or go.inlined):
        return come, go
    if any(part.type in _NOT_COMPARED for column in table.columns for part in column.walk()):
        return come, go
    if not engines.place(facts_of([*come.files, *go.files], purpose="change")).is_here:
        return come, go
    same = " AND ".join(
        f"a.c{at} IS NOT DISTINCT FROM b.c{at} AND a.c{at}::VARCHAR IS NOT DISTINCT FROM b.c{at}::VARCHAR"  # -0.0
        for at in range(len(table.columns))
    )
    pairs = evaluate(
        f"SELECT a.f AS fa, a.p AS pa, b.f AS fb, b.p AS pb, a.r AS r FROM a JOIN b ON a.r = b.r WHERE {same}",
        {"a": _rows(come, table), "b": _rows(go, table)},
    )
    pairs = pairs.filter(pa.array(_among(pairs, "fa", "pa", come) & _among(pairs, "fb", "pb", go)))
    return _without(come, pairs, "fa", "pa"), _without(go, pairs, "fb", "pb")


def _rows(places: Places, table: Table) -> pa.Table:
    """Values, file id, position and row id of the rows in the files of some places, and of inlined rows."""
    rows = reader.read(replace(places.plan, table=table, files=tuple(places.files)), virtual=True)
    return rows.rename_columns([*(f"c{at}" for at in range(len(table.columns))), "f", "p", "r", "s"])


def _among(pairs: pa.Table, file_id: str, position: str, places: Places) -> np.ndarray:
    """Mark the pairs that name rows among the places on one side."""
    files, positions = _numbers(pairs, file_id), _numbers(pairs, position)
    found = (files < 0) & np.isin(_numbers(pairs, "r"), list(places.inlined))
    for number, (_, rows) in places.in_files.items():
        found |= (files == number) & np.isin(positions, rows, assume_unique=False)
    return found


def _without(places: Places, pairs: pa.Table, file_id: str, position: str) -> Places:
    files, positions, row_ids = (_numbers(pairs, name) for name in (file_id, position, "r"))
    return places.without(files, positions, frozenset(row_ids[files < 0].tolist()))


def _numbers(pairs: pa.Table, name: str) -> Positions:
    """A column of ids; -1 for NULL."""
    found: Positions = pairs.column(name).fill_null(-1).to_numpy().astype(np.int64)
    return found
