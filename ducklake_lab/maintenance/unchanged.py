"""Rows that a restore would remove and bring back: equal row ids and values, in other places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ducklake_lab.duckdb.casting import differs_sql
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


def without_unchanged(
    come: Places, go: Places, table: Table, engines: Engines, unwritten: int
) -> tuple[Places, Places, bool]:
    """Return the rows to add and to remove without equal rows on both sides, and whether none is left unseen.

    Row ids and snapshots are read first: most rows that both sides have are known by these. Values are read of files of
    the others, where that is for this process.

    Args:
        table: with the columns that both states have.
        unwritten: as in `RestorePlan`.
    """
    if not (come.files or come.inlined) or not (go.files or go.inlined):
        return come, go, True
    if not _is_read_here(come, go, engines):
        return come, go, False
    pairs = _shared(come, go, table)
    same = _same_version(pairs, unwritten)
    come, go = _without_both(come, go, pairs.filter(pa.array(same)))
    rest = pairs.filter(pa.array(~same))
    if not rest.num_rows:
        return come, go, True
    here, there = _of_pairs(come, rest, "a"), _of_pairs(go, rest, "b")
    if any(part.type in _NOT_COMPARED for column in table.columns for part in column.walk()):
        return come, go, False
    if not engines.placing.place(facts_of([*here.files, *there.files], purpose="change")).is_here:
        return come, go, False
    differs = [differs_sql(f"a.c{at}", f"b.c{at}", column.data_type) for at, column in enumerate(table.columns)]
    unchanged = evaluate(
        f"SELECT rest.* FROM rest JOIN a ON {_at('a')} JOIN b ON {_at('b')} WHERE NOT ({' OR '.join(differs)})",
        {"rest": rest, "a": _rows(here, table), "b": _rows(there, table)},
    )
    return (*_without_both(come, go, unchanged), True)


def _at(side: str) -> str:
    """SQL that finds the row of a pair on one side."""
    names = (("f", "af"), ("p", "ap")) if side == "a" else (("f", "bf"), ("p", "bp"))
    places = " AND ".join(f"{side}.{name} IS NOT DISTINCT FROM rest.{pair}" for name, pair in names)
    return f"{side}.r = rest.r AND {places}"


def _is_read_here(come: Places, go: Places, engines: Engines) -> bool:
    """Return whether the row ids of all files are for this process; no other column of local files is read."""
    files = [*come.files, *go.files]
    rows = sum(file.data_file.record_count for file in files)
    return engines.placing.compares_row_ids_here(facts_of(files, purpose="change"), rows)


def _shared(come: Places, go: Places, table: Table) -> pa.Table:
    """Row ids that both sides have once, with the file id, position and snapshot on each side; NULL of inlined rows."""
    narrow = replace(table, columns=())
    shared = evaluate(
        'SELECT a.r, a.f AS af, a.p AS ap, a.s AS "as", b.f AS bf, b.p AS bp, b.s AS bs FROM a JOIN b ON a.r = b.r '
        "QUALIFY count(*) OVER (PARTITION BY a.r) = 1",
        {"a": _moved(come, narrow), "b": _moved(go, narrow)},
    )
    return shared


def _moved(places: Places, table: Table) -> pa.Table:
    rows = _rows(places, table)
    return rows.filter(pa.array(_among(rows, places)))


def _same_version(pairs: pa.Table, unwritten: int) -> np.ndarray:
    """Mark the rows that one snapshot wrote on both sides."""
    then, now = _numbers(pairs, "as"), _numbers(pairs, "bs")
    is_same: np.ndarray = (then == now) | (now <= unwritten)
    return is_same


def _of_pairs(places: Places, pairs: pa.Table, side: str) -> Places:
    """Places of the rows that are in the pairs."""
    files, positions, row_ids = (_numbers(pairs, name) for name in (f"{side}f", f"{side}p", "r"))
    kept = {
        file_id: (file, np.intersect1d(rows, positions[files == file_id], assume_unique=True))
        for file_id, (file, rows) in places.in_files.items()
    }
    return replace(places, in_files=kept, inlined=frozenset(row_ids[files < 0].tolist()))


def _rows(places: Places, table: Table) -> pa.Table:
    """Values, file id, position, row id and snapshot of the rows in the files of some places, and of inlined rows.

    A file that a restore copied begins with that, and may name earlier snapshots.
    """
    rows = reader.read(replace(places.plan, table=table, files=tuple(places.files)), virtual=True)
    rows = rows.rename_columns([*(f"c{at}" for at in range(len(table.columns))), "f", "p", "r", "s"])
    begun = {file.data_file.data_file_id: file.data_file.begin_snapshot for file in places.files}
    files, snapshots = _numbers(rows, "f"), _numbers(rows, "s")
    for file_id, begin in begun.items():
        np.maximum(snapshots, begin, out=snapshots, where=files == file_id)
    return rows.set_column(rows.num_columns - 1, "s", pa.array(snapshots))


def _among(rows: pa.Table, places: Places) -> np.ndarray:
    """Mark the rows that are among some places."""
    files, positions = _numbers(rows, "f"), _numbers(rows, "p")
    marks = (files < 0) & np.isin(_numbers(rows, "r"), list(places.inlined))
    for number, (_, wanted) in places.in_files.items():
        marks |= (files == number) & np.isin(positions, wanted)
    return marks


def _without_both(come: Places, go: Places, pairs: pa.Table) -> tuple[Places, Places]:
    return _without(come, pairs, "af", "ap"), _without(go, pairs, "bf", "bp")


def _without(places: Places, pairs: pa.Table, file_id: str, position: str) -> Places:
    files, positions, row_ids = (_numbers(pairs, name) for name in (file_id, position, "r"))
    return places.without(files, positions, frozenset(row_ids[files < 0].tolist()))


def _numbers(pairs: pa.Table, name: str) -> Positions:
    """A column of ids; -1 for NULL."""
    ids: Positions = pairs.column(name).fill_null(-1).to_numpy().astype(np.int64, copy=True)
    return ids
