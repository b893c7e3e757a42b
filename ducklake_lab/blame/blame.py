"""Blame of cells: the newest snapshot at which each cell got the value that it has, and the value before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.blame.commits import COMMIT_COLUMNS, first_kept, read_commits
from ducklake_lab.blame.versions import Versions
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb.casting import differs_sql
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.entries import Table
from ducklake_lab.model.state import CatalogState
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
_LINE = pa.schema(
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


@dataclass(frozen=True, slots=True)
class Blamed:
    """Cells of rows with the snapshots that set them.

    Attributes:
        rows: one per cell, by row id and then in the order of the columns; see `BLAME_COLUMNS`. `snapshot_id` and what
            follows is NULL where it is unknown.
        unknown: the number of cells whose snapshot has expired.
        known_from: the snapshot from which on the history of all cells is known; None where it is all known.
    """

    rows: pa.Table
    unknown: int
    known_from: int | None


def blame(
    lake: Lake, state: CatalogState, table: Table, found: pa.Table, places: Sequence[int], time_zone: str
) -> Blamed:
    """Finds who set the cells of some rows of a table at a snapshot.

    A cell is set by the insert of its row, by each update that gives it a value distinct from the one before, and by the
    snapshot that adds its column. Values are compared in the type that the column has at the snapshot.

    Args:
        found: `row_id`, `file_id` and `position` of the rows; these two are NULL for inlined rows.
        places: of the columns.
        time_zone: for times as texts.
    """
    versions = Versions(lake, state, table)
    if not places or not found.num_rows:
        return _blamed(lake, versions, places, None)
    current = versions.here(found, places)
    for place in places:
        current = current.append_column(f"p{place}", pa.repeat(True, current.num_rows))
    lines: list[pa.Table] = []
    left = list(places)
    while current.num_rows:
        previous = versions.before(_unfinished(versions, current, left), left)
        explained, current = _round(versions, current, previous, left, time_zone)
        lines += explained
        left = [place for place in left if pc.any(current.column(f"p{place}")).as_py()]
    return _blamed(lake, versions, places, pa.concat_tables(lines) if lines else None)


def _unfinished(versions: Versions, current: pa.Table, places: Sequence[int]) -> pa.Table:
    """Returns the versions whose predecessors are needed."""
    needed = pa.repeat(False, current.num_rows)
    for place in places:
        needed = pc.or_(needed, pc.and_(current.column(f"p{place}"), _is_older(versions, current, place)))
    return current.select(["row_id", "began"]).filter(needed)


def _is_older(versions: Versions, current: pa.Table, place: int) -> pa.ChunkedArray:
    """Returns whether the column is older than each version."""
    return pc.greater(current.column("began"), versions.column_begins[place])


def _round(
    versions: Versions, current: pa.Table, previous: pa.Table, places: Sequence[int], time_zone: str
) -> tuple[list[pa.Table], pa.Table]:
    """Returns lines of the cells that the versions set, by column, and the earlier versions with the other cells.

    Args:
        current: versions, with the cells of the snapshot asked about and, as `p0`, `p1`, …, whether each is unexplained.
        previous: the versions that they replaced, as far as there are any.
    """
    found = engine.evaluate(
        f"SELECT r.n, e.began AS earlier{''.join(_cell_sql(versions, place) for place in places)} FROM rows AS r "
        "LEFT JOIN earlier AS e ON e.row_id = r.row_id",
        {"rows": current.append_column("n", pa.array(np.arange(current.num_rows))), "earlier": previous},
        time_zone,
    )
    found = found.take(pc.sort_indices(found.column("n")))
    lines, flags = [], []
    for place in places:
        is_set, older = found.column(f"s{place}"), _is_older(versions, current, place)
        line = {
            "row_id": current.column("row_id"),
            "place": pa.repeat(pa.scalar(place, pa.int32()), current.num_rows),
            "value": found.column(f"v{place}"),
            "previous": found.column(f"o{place}"),
            "snapshot": pc.if_else(older, current.column("began"), versions.column_begins[place]),
            "sure": pc.and_(older, pc.is_valid(found.column("earlier"))),
        }
        lines.append(pa.table(line, schema=_LINE).filter(is_set))
        flags.append(pc.and_(current.column(f"p{place}"), pc.invert(is_set)))
    kept = {"row_id": current.column("row_id"), "began": found.column("earlier")}
    kept |= {f"c{place}": current.column(f"c{place}") for place in places}
    fields = [current.schema.field(name) for name in kept]
    open_ones = pa.table(kept, schema=pa.schema(fields))
    any_open = pa.repeat(False, current.num_rows)
    for place, flag in zip(places, flags, strict=True):
        open_ones = open_ones.append_column(f"p{place}", flag)
        any_open = pc.or_(any_open, flag)
    return lines, open_ones.filter(any_open)


def _cell_sql(versions: Versions, place: int) -> str:
    """SQL of a cell: whether it is set here, its text, and that of the value before."""
    older = f"r.began > {versions.column_begins[place]:d}"
    differs = differs_sql(f"r.c{place}", f"e.c{place}", versions.columns[place].data_type)
    is_set = f"r.p{place} AND (NOT {older} OR e.row_id IS NULL OR {differs})"
    return (
        f", {is_set} AS s{place}, CASE WHEN {is_set} THEN CAST(r.c{place} AS VARCHAR) END AS v{place}"
        f", CASE WHEN {is_set} AND {older} AND e.row_id IS NOT NULL THEN CAST(e.c{place} AS VARCHAR) END AS o{place}"
    )


def _blamed(lake: Lake, versions: Versions, places: Sequence[int], lines: pa.Table | None) -> Blamed:
    schema = pa.schema([kind.field(name) for name, kind in BLAME_COLUMNS])
    if lines is None:
        return Blamed(schema.empty_table(), 0, None)
    lines = lines.combine_chunks()
    commits = read_commits(lake, pc.unique(lines.column("snapshot")).to_pylist())
    ids = commits.rows.column("snapshot_id").combine_chunks()
    # a version without a predecessor began with its snapshot if the one before is there, and would have kept it
    before = pc.is_in(pc.subtract(lines.column("snapshot"), 1), value_set=ids)
    known = pc.or_(lines.column("sure"), before)
    lines = lines.append_column("known", known)
    names = pa.array([column.name for column in versions.columns], pa.string())
    order = np.lexsort((lines.column("place").to_numpy(), lines.column("row_id").to_numpy()))
    parts = []
    for start in range(0, len(order), _AT_ONCE):
        part = lines.take(order[start : start + _AT_ONCE])
        snapshots = pc.if_else(part.column("known"), part.column("snapshot"), pa.scalar(None, pa.int64()))
        of_commit = commits.rows.drop_columns(["snapshot_id"]).take(pc.index_in(snapshots, value_set=ids))
        own = [part.column("row_id"), names.take(part.column("place")), part.column("value"), part.column("previous")]
        parts.append(pa.table([*own, snapshots, *of_commit.columns], schema=schema))
    unknown = lines.column("snapshot").filter(pc.invert(known))
    known_from = first_kept(lake, pc.max(unknown).as_py()) if len(unknown) else None
    return Blamed(pa.concat_tables(parts), len(unknown), known_from)
