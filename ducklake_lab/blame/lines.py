"""Lines of a blame: one for each cell, with the commit that set it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.blame.commits import COMMIT_COLUMNS, Commits
from ducklake_lab.model.types import DataType

_BIGINT, _VARCHAR = DataType("int64"), DataType("varchar")
#: Columns of a blame, with their types.
BLAME_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("row_id", _BIGINT),
    ("column", _VARCHAR),
    ("value", _VARCHAR),
    ("previous", _VARCHAR),
    ("snapshot_id", _BIGINT),
    *COMMIT_COLUMNS,
)
_SCHEMA = pa.schema([kind.field(name) for name, kind in BLAME_COLUMNS])
#: A cell that a snapshot set: `sure` where the version before it was found, so that no expired snapshot did it.
LINE = pa.schema(
    [
        ("row_id", pa.int64()),
        ("place", pa.int32()),
        ("value", pa.string()),
        ("previous", pa.string()),
        ("snapshot", pa.int64()),
        ("sure", pa.bool_()),
    ]
)
#: Cells that are put together at once: texts of one Arrow array take 2 GB at most.
_AT_ONCE = 100_000


def empty() -> pa.Table:
    """Returns a blame of no cells."""
    return _SCHEMA.empty_table()


@dataclass(frozen=True, slots=True)
class Inserted:
    """Rows with all their cells, which no snapshot has changed since it inserted the row or added the column.

    Attributes:
        rows: `row_id`, `began` and the texts `t0`, `t1`, … of the cells; by row id.
        places: of the columns, ascending.
        begins: since when the table has each of these columns.
    """

    rows: pa.Table
    places: Sequence[int]
    begins: Sequence[int]

    def snapshots(self) -> set[int]:
        """Returns the snapshots that set cells."""
        began = pc.unique(self.rows.column("began")).to_pylist()
        return {max(pair) for begin in self.begins for pair in ((one, begin) for one in began)}

    def lines(self) -> Iterator[pa.Table]:
        """Yields the lines in parts, by row id and then by place."""
        width = len(self.places)
        step = max(1, _AT_ONCE // width)
        began, row_ids = (self.rows.column(name).to_numpy() for name in ("began", "row_id"))
        # all parts except the last one share these arrays
        places = pa.array(np.tile(np.array(self.places, np.int32), min(step, len(row_ids))))
        nothing, unsure = pa.nulls(len(places), pa.string()), pa.repeat(False, len(places))
        for start in range(0, len(row_ids), step):
            part = self.rows.slice(start, step)
            count = part.num_rows
            texts = [part.column(f"t{place}").combine_chunks() for place in self.places]
            by_row = (np.arange(count)[:, None] + np.arange(width) * count).ravel()
            snapshots = np.maximum(began[start : start + count, None], np.array(self.begins)).ravel()
            cells = count * width
            columns = [
                pa.array(np.repeat(row_ids[start : start + count], width)),
                places.slice(0, cells),
                pa.concat_arrays(texts).take(pa.array(by_row)),
                nothing.slice(0, cells),
                pa.array(snapshots),
                unsure.slice(0, cells),
            ]
            yield pa.table(columns, schema=LINE)


def in_order(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yields lines by row id and then by place, in parts."""
    lines = pa.concat_tables(parts).combine_chunks()
    order = np.lexsort((lines.column("place").to_numpy(), lines.column("row_id").to_numpy()))
    for start in range(0, len(order), _AT_ONCE):
        yield lines.take(pa.array(order[start : start + _AT_ONCE]))


class Signing:
    """Puts the commits beside lines.

    Args:
        names: of the columns, by place.

    Attributes:
        unknown: the number of cells whose snapshot has expired.
        last_unknown: the newest snapshot of which it is unknown whether it set a cell; None for none.
    """

    def __init__(self, names: Sequence[str], commits: Commits) -> None:
        self.unknown = 0
        self.last_unknown: int | None = None
        self._names = pa.array(names, pa.string())
        self._ids = commits.rows.column("snapshot_id").combine_chunks()
        self._commits = commits.rows.drop_columns(["snapshot_id"]).combine_chunks()
        # a version without a predecessor began with its snapshot if the one before is there, and would have kept it
        self._after_kept_ids = pc.add(self._ids, 1)
        self._after_kept = frozenset(self._after_kept_ids.to_pylist())
        self._kept: dict[int, pa.Table] = {}
        self._last_named: tuple[pa.ChunkedArray | None, pa.ChunkedArray] = None, pa.chunked_array([], pa.string())

    def sign(self, lines: pa.Table) -> pa.Table:
        """Returns lines in the form of `BLAME_COLUMNS`."""
        snapshots, names = lines.column("snapshot"), self._named(lines.column("place"))
        extremes = pc.min_max(snapshots)
        one = extremes["min"].as_py() if extremes["min"] == extremes["max"] else None
        if one is not None and one in self._after_kept:
            # mostly rows that lie together were inserted together
            beside = self._of_one(one, len(snapshots))
        else:
            known = pc.or_(lines.column("sure"), pc.is_in(snapshots, value_set=self._after_kept_ids))
            if not pc.all(known).as_py():
                unknown = snapshots.filter(pc.invert(known))
                self.unknown += len(unknown)
                self.last_unknown = max(pc.max(unknown).as_py(), self.last_unknown or 0)
                snapshots = pc.if_else(known, snapshots, pa.scalar(None, pa.int64()))
            beside = self._commits.take(pc.index_in(snapshots, value_set=self._ids))
        own = [lines.column("row_id"), names, lines.column("value"), lines.column("previous"), snapshots]
        return pa.table([*own, *beside.columns], schema=_SCHEMA)

    def _named(self, places: pa.ChunkedArray) -> pa.ChunkedArray:
        """Returns the names of columns; parts with the columns of all rows share their memory."""
        known, names = self._last_named
        if known is None or not places.equals(known.slice(0, len(places))):
            known, names = self._last_named = places, self._names.take(places)
        return names.slice(0, len(places))

    def _of_one(self, snapshot: int, count: int) -> pa.Table:
        """Returns the commit of a snapshot for some lines, which share their memory with others."""
        kept = self._kept.get(snapshot)
        if kept is None or kept.num_rows < count:
            place = pc.index_in(pa.scalar(snapshot, pa.int64()), value_set=self._ids).as_py()
            values = [
                pa.scalar(None, column.type) if place is None else column[place] for column in self._commits.columns
            ]
            columns = [pa.repeat(value, count) for value in values]
            kept = self._kept[snapshot] = pa.table(columns, schema=self._commits.schema)
        return kept.slice(0, count)
