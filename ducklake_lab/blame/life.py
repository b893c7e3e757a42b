"""The life of a row: one line for each snapshot that changed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.blame.commits import COMMIT_COLUMNS, first_kept, read_commits
from ducklake_lab.blame.lifetime import versions_of_row
from ducklake_lab.blame.versions import Versions
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb.casting import differs_sql
from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import EntryNotFoundError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType

_VARCHAR = DataType("varchar")
_CHANGE = DataType("struct", (("column", _VARCHAR), ("before", _VARCHAR), ("after", _VARCHAR)))
#: Columns of a life, with their types.
LIFE_COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("snapshot_id", DataType("int64")),
    ("kind", _VARCHAR),
    *COMMIT_COLUMNS,
    ("changes", DataType("list", (("element", _CHANGE),))),
)


@dataclass(frozen=True, slots=True)
class Life:
    """The changes of a row.

    Attributes:
        rows: one per snapshot that changed it, oldest first; see `LIFE_COLUMNS`.
        known_from: the snapshot from which on the life is known; None where it is all known.
    """

    rows: pa.Table
    known_from: int | None


def life(lake: Lake, state: CatalogState, table: Table, row_id: int, time_zone: str) -> Life:
    """Finds the snapshots that inserted, updated and deleted a row, up to that of a state, or added a column to it.

    An update that left all values as they were is no change.

    Args:
        time_zone: for times as texts.

    Raises:
        EntryNotFoundError: no snapshot that is left has had the row.
    """
    versions = Versions(lake, state, table)
    found = versions_of_row(versions, row_id)
    if not found.num_rows:
        raise EntryNotFoundError(
            f"{table.name} has never had a row {row_id} up to snapshot {versions.at}, unless in snapshots that have expired."
        )
    lines = engine.evaluate(_lines_sql(versions), {"versions": found}, time_zone)
    commits = read_commits(lake, pc.unique(lines.column("snapshot")).to_pylist())
    # a row that is there after an expired snapshot may have been there before, and one that is gone may have come back
    known = engine.evaluate(
        "SELECT l.*, CASE l.kind WHEN 'insert' THEN b.snapshot_id IS NOT NULL WHEN 'delete' THEN k.snapshot_id IS NOT NULL "
        "ELSE true END AS known FROM lines AS l LEFT JOIN kept AS k ON k.snapshot_id = l.snapshot "
        "LEFT JOIN kept AS b ON b.snapshot_id = l.snapshot - 1",
        {"lines": lines, "kept": commits.ids},
    )
    members = ", ".join(f"m.{name}" for name, _ in COMMIT_COLUMNS)
    rows = engine.evaluate(
        f"SELECT l.snapshot AS snapshot_id, l.kind, {members}, l.changes FROM lines AS l "
        "LEFT JOIN commits AS m ON m.snapshot_id = l.snapshot WHERE l.known ORDER BY l.snapshot",
        {"lines": known, "commits": commits.rows},
    )
    unknown = known.filter(pc.invert(known.column("known"))).column("snapshot")
    schema = pa.schema([kind.field(name) for name, kind in LIFE_COLUMNS])
    return Life(rows.cast(schema), first_kept(lake, pc.max(unknown).as_py()) if len(unknown) else None)


def _lines_sql(versions: Versions) -> str:
    """SQL over `versions`: snapshot, kind and changes of each change."""
    places = range(len(versions.columns))
    listed = 'STRUCT("column" VARCHAR, "before" VARCHAR, "after" VARCHAR)[]'

    def changes(cells: Sequence[str]) -> str:
        return f"list_filter(CAST([{', '.join(cells)}] AS {listed}), lambda x: x IS NOT NULL)"

    def cell(place: int, before: str, after: str, condition: str) -> str:
        name = quote_text(versions.columns[place].name)
        return f"CASE WHEN {condition} THEN row({name}, {before}, {after}) END"

    def text(side: str, place: int) -> str:
        return f"CAST({side}.c{place} AS VARCHAR)"

    begun, gone = [], []
    for place in places:
        since = versions.column_begins[place]
        differs = differs_sql(f"p.c{place}", f"v.c{place}", versions.columns[place].data_type)
        before = f"CASE WHEN v.began > {since} THEN {text('p', place)} END"
        changed = f"v.began = {since} OR v.began > {since} AND (p.began IS NULL OR {differs})"
        begun.append(cell(place, before, text("v", place), changed))
        gone.append(cell(place, text("v", place), "NULL", f"v.ended > {since}"))
    parts = [
        "SELECT v.began AS snapshot, CASE WHEN p.began IS NULL THEN 'insert' ELSE 'update' END AS kind, "
        f"{changes(begun)} AS changes FROM versions AS v LEFT JOIN versions AS p ON p.ended = v.began",
        f"SELECT v.ended, 'delete', {changes(gone)} FROM versions AS v LEFT JOIN versions AS n ON n.began = v.ended "
        f"WHERE v.ended <= {versions.at} AND n.began IS NULL",
    ]
    added: dict[int, list[int]] = {}
    for place in places:
        added.setdefault(versions.column_begins[place], []).append(place)
    for since, own in added.items():
        cells = [cell(place, "NULL", text("v", place), "true") for place in own]
        parts.append(
            f"SELECT {since}, 'alter', {changes(cells)} FROM versions AS v "
            f"WHERE v.began < {since} AND (v.ended IS NULL OR v.ended > {since})"
        )
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) WHERE kind <> 'update' OR len(changes) > 0"
