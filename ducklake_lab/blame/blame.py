"""Blame of cells: the newest snapshot at which each cell got the value that it has, and the value before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.blame.commits import Commits, first_kept, read_commits
from ducklake_lab.blame.lines import LINE, Inserted, Signing, empty, in_order
from ducklake_lab.blame.versions import Found, Versions
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb.casting import differs_sql
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.entries import Table
from ducklake_lab.model.state import CatalogState


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


def blame(lake: Lake, state: CatalogState, table: Table, found: Found, places: Sequence[int], time_zone: str) -> Blamed:
    """Finds who set the cells of some rows of a table at a snapshot.

    A cell is set by the insert of its row, by each update that gives it a value distinct from the one before, and by the
    snapshot that adds its column. Values are compared in the type that the column has at the snapshot.

    Args:
        places: of the columns.
        time_zone: for times as texts.
    """
    if not places or not found.rows.num_rows:
        return Blamed(empty(), 0, None)
    if found.files is None:
        versions = Versions(lake, state, table)
        lines = _follow(versions, versions.here(found, places), None, places, time_zone)
        return _signed(lake, versions, in_order(lines), read_commits(lake, _snapshots(lines)))
    # the catalog knows all about rows without earlier versions: one connection reads it
    with lake.connect():
        versions = Versions(lake, state, table)
        begins = [versions.column_begins[place] for place in places]
        rows = _by_row_id(found.rows.append_column("began", versions.began(found)))
        current = rows.select(["row_id", "began"])
        search = versions.search(current.filter(pc.greater(current.column("began"), min(begins))), places)
        every = Inserted(rows, places, begins)
        commits = read_commits(lake, every.snapshots())
    earlier = versions.read(search, places)
    if not earlier.num_rows:
        return _signed(lake, versions, every.lines(), commits)
    has_earlier = pc.is_in(rows.column("row_id"), value_set=earlier.column("row_id"))
    inserted = Inserted(rows.filter(pc.invert(has_earlier)), places, begins)
    changed = replace(found, rows=rows.filter(has_earlier))
    lines = [*inserted.lines(), *_follow(versions, versions.here(changed, places), earlier, places, time_zone)]
    return _signed(lake, versions, in_order(lines), read_commits(lake, _snapshots(lines)))


def _by_row_id(rows: pa.Table) -> pa.Table:
    row_ids = rows.column("row_id").to_numpy()
    if (row_ids[1:] >= row_ids[:-1]).all():
        return rows
    return rows.take(pa.array(np.argsort(row_ids, kind="stable")))


def _snapshots(lines: Sequence[pa.Table]) -> set[int]:
    """Returns the snapshots that lines name."""
    return {one for part in lines for one in pc.unique(part.column("snapshot")).to_pylist()}


def _follow(
    versions: Versions, current: pa.Table, previous: pa.Table | None, places: Sequence[int], time_zone: str
) -> list[pa.Table]:
    """Returns the lines of rows, from their versions at the snapshot back to those that set the last of their cells.

    Args:
        previous: the versions before, where they are known.
    """
    for place in places:
        current = current.append_column(f"p{place}", pa.repeat(True, current.num_rows))
    lines: list[pa.Table] = []
    left = list(places)
    while current.num_rows:
        if previous is None:
            previous = versions.before(_unfinished(versions, current, left), left)
        explained, current = _round(versions, current, previous, left, time_zone)
        lines += explained
        left = [place for place in left if pc.any(current.column(f"p{place}")).as_py()]
        previous = None
    return lines


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
        _round_sql(versions, places),
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
        lines.append(pa.table(line, schema=LINE).filter(is_set))
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


def _round_sql(versions: Versions, places: Sequence[int]) -> str:
    """SQL over `rows` and `earlier` for one cell: whether this version sets it, its text, and the text of the earlier value."""
    flags, values, texts = "", "", ""
    for place in places:
        older = f"r.began > {versions.column_begins[place]:d}"
        differs = differs_sql(f"r.c{place}", f"e.c{place}", versions.columns[place].data_type)
        flags += f", r.p{place} AND (NOT {older} OR e.row_id IS NULL OR {differs}) AS s{place}, {older} AS a{place}"
        values += f", r.c{place} AS c{place}, e.c{place} AS e{place}"
        texts += (
            f", s{place}, CASE WHEN s{place} THEN CAST(c{place} AS VARCHAR) END AS v{place}"
            f", CASE WHEN s{place} AND a{place} AND earlier IS NOT NULL THEN CAST(e{place} AS VARCHAR) END AS o{place}"
        )
    return (
        f"SELECT n, earlier{texts} FROM (SELECT r.n, e.began AS earlier{flags}{values} FROM rows AS r "
        "LEFT JOIN earlier AS e ON e.row_id = r.row_id)"
    )


def _signed(lake: Lake, versions: Versions, lines: Iterable[pa.Table], commits: Commits) -> Blamed:
    """Returns lines with their commits."""
    signing = Signing([column.name for column in versions.columns], commits)
    rows = pa.concat_tables([signing.sign(part) for part in lines])
    known_from = first_kept(lake, signing.last_unknown) if signing.last_unknown is not None else None
    return Blamed(rows, signing.unknown, known_from)
