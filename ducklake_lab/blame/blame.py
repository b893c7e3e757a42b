"""Blame of cells: the newest snapshot at which each cell got the value that it has, and the value before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
_LINE = "STRUCT(place INTEGER, value VARCHAR, previous VARCHAR, snapshot BIGINT, sure BOOLEAN)"


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
    flags = "".join(f", true AS p{place}" for place in places)
    current = engine.evaluate(f"SELECT *{flags} FROM rows", {"rows": current})
    lines = []
    left = list(places)
    while current.num_rows:
        previous = versions.before(_unfinished(versions, current, left), left)
        lines.append(_lines(versions, current, previous, left, time_zone))
        current = _earlier(versions, current, previous, left)
        left = [place for place in left if pc.any(current.column(f"p{place}")).as_py()]
    return _blamed(lake, versions, places, pa.concat_tables(lines) if lines else None)


def _is_younger(versions: Versions, place: int) -> str:
    """SQL: the column is no older than the version."""
    return f"r.began <= {versions.column_begins[place]:d}"


def _unfinished(versions: Versions, current: pa.Table, places: Sequence[int]) -> pa.Table:
    """Returns the versions whose predecessors are needed."""
    needed = pa.repeat(False, current.num_rows)
    for place in places:
        older = pc.greater(current.column("began"), versions.column_begins[place])
        needed = pc.or_(needed, pc.and_(current.column(f"p{place}"), older))
    return current.select(["row_id", "began"]).filter(needed)


def _is_set(versions: Versions, place: int) -> str:
    """SQL: the version, or its column's snapshot, set the cell."""
    kind = versions.columns[place].data_type
    differs = differs_sql(f"r.c{place}", f"e.c{place}", kind)
    return f"(r.p{place} AND ({_is_younger(versions, place)} OR e.row_id IS NULL OR {differs}))"


def _lines(
    versions: Versions, current: pa.Table, previous: pa.Table, places: Sequence[int], time_zone: str
) -> pa.Table:
    """Returns a line for each cell that the versions set."""
    cells = []
    for place in places:
        younger, begin = _is_younger(versions, place), versions.column_begins[place]
        old = f"CASE WHEN NOT {younger} AND e.row_id IS NOT NULL THEN CAST(e.c{place} AS VARCHAR) END"
        cells.append(
            f"CASE WHEN {_is_set(versions, place)} THEN CAST(row({place}, CAST(r.c{place} AS VARCHAR), {old}, "
            f"CASE WHEN {younger} THEN {begin} ELSE r.began END, NOT {younger} AND e.row_id IS NOT NULL) AS {_LINE}) END"
        )
    return engine.evaluate(
        f"SELECT row_id, cell.* FROM (SELECT r.row_id, unnest([{', '.join(cells)}]) AS cell FROM rows AS r "
        "LEFT JOIN earlier AS e ON e.row_id = r.row_id) WHERE cell IS NOT NULL",
        {"rows": current, "earlier": previous},
        time_zone,
    )


def _earlier(versions: Versions, current: pa.Table, previous: pa.Table, places: Sequence[int]) -> pa.Table:
    """Returns the cells not yet explained, with the begin of the earlier version."""
    values = "".join(f", r.c{place}" for place in places)
    flags = [f"r.p{place} AND NOT {_is_set(versions, place)}" for place in places]
    listed = "".join(f", {flag} AS p{place}" for place, flag in zip(places, flags, strict=True))
    return engine.evaluate(
        f"SELECT r.row_id, e.began{values}{listed} FROM rows AS r JOIN earlier AS e ON e.row_id = r.row_id "
        f"WHERE {' OR '.join(flags)}",
        {"rows": current, "earlier": previous},
    )


def _blamed(lake: Lake, versions: Versions, places: Sequence[int], lines: pa.Table | None) -> Blamed:
    schema = pa.schema([kind.field(name) for name, kind in BLAME_COLUMNS])
    if lines is None:
        return Blamed(schema.empty_table(), 0, None)
    commits = read_commits(lake, pc.unique(lines.column("snapshot")).to_pylist())
    names = pa.table(
        {
            "place": pa.array(places, pa.int32()),
            "name": pa.array([versions.columns[place].name for place in places], pa.string()),
        }
    )
    # a snapshot before which there is none says nothing about values that were there already
    found = engine.evaluate(
        "SELECT l.* EXCLUDE (sure), sure OR k.snapshot_id IS NOT NULL AS known FROM lines AS l "
        "LEFT JOIN kept AS k ON k.snapshot_id = l.snapshot - 1",
        {"lines": lines, "kept": commits.ids},
    )
    unknown = found.filter(pc.invert(found.column("known")))
    members = ", ".join(f"m.{name}" for name, _ in COMMIT_COLUMNS)
    rows = engine.evaluate(
        'SELECT f.row_id, n.name AS "column", f.value, f.previous, CASE WHEN known THEN f.snapshot END AS snapshot_id, '
        f"{members} FROM found AS f JOIN names AS n ON n.place = f.place "
        "LEFT JOIN commits AS m ON f.known AND m.snapshot_id = f.snapshot ORDER BY f.row_id, f.place",
        {"found": found, "names": names, "commits": commits.rows},
    ).cast(schema)
    return Blamed(rows, unknown.num_rows, _known_from(lake, unknown.column("snapshot")))


def _known_from(lake: Lake, unknown: pa.ChunkedArray) -> int | None:
    """Returns the oldest kept snapshot that shows all cells of unknown origin; None where there are none."""
    return first_kept(lake, pc.max(unknown).as_py()) if len(unknown) else None
