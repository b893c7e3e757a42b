"""The record that an output keeps of its data: lakes, snapshots and tables, in the metadata of the notebook's output.

It holds no rows, no locations and no secrets, and is the same for each run at the same snapshots. Values of a condition are
recorded only where the source of the cell has the whole query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ducklake_lab.redaction import hide
from ducklake_lab.version import __version__

if TYPE_CHECKING:
    from ducklake_lab.model.entries import Table
    from ducklake_lab.model.reads import EntryRead, ReadPart
    from ducklake_lab.session.rows.read_parts import Parts
    from ducklake_lab.session.rows.result import Result

#: The key in an output's metadata, and the version of what is under it; the extension's `recorded.ts` has both.
KEY = "ducklake"
FORM = 1
#: Most names of other columns that a record keeps for a table.
_MOST_NAMES = 100

#: Whether outputs keep records.
wanted = True
#: Returns the source of the cell that runs; "" where it is not known.
source: Callable[[], str] = str


class Shown(Protocol):
    """A value whose output has a record."""

    @property
    def reads(self) -> Sequence[EntryRead]: ...
    def _repr_html_(self) -> str: ...


def metadata(
    reads: Sequence[EntryRead], *, engine: str | None = None, wrote: bool = False, parts: Parts | None = None
) -> dict[str, Any]:
    """Returns the metadata of an output; {} for one without tables of lakes, or if records are switched off.

    Args:
        parts: the parts of tables that were read, of those in which the newest state was read.
        engine: the engine of the rows: `catalog`, `process` or `spark`.
        wrote: whether the statements of the cell may have changed something.
    """
    if not wanted or not reads:
        return {}
    from ducklake_lab.duckdb.library import __version__ as duckdb_version

    record: dict[str, Any] = {"form": FORM, "ducklake_lab": __version__, "duckdb": duckdb_version}
    if engine is not None:
        record["engine"] = engine
    if wrote:
        record["wrote"] = True
    return {KEY: {**record, "reads": _by_state(reads, parts or {})}}


def record_of(result: Result) -> dict[str, Any]:
    """Returns the metadata of an output that shows a result."""
    if not wanted:
        return {}
    engine = result.info.placement.where if result.info.placement is not None else None
    text = result.text
    is_in_source = bool(text) and text in source() and hide(text) == text
    return metadata(
        result.reads,
        engine=engine or ("process" if result.in_process else "spark"),
        wrote=result.info.wrote,
        parts={
            key: (table, part if is_in_source else replace(part, predicate=None))
            for key, (table, part) in result.find_parts().items()
        },
    )


def bundle(shown: Shown) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a notebook's output: static HTML and text, and the record."""
    return {"text/plain": repr(shown), "text/html": shown._repr_html_()}, metadata(shown.reads)


def _by_state(reads: Sequence[EntryRead], parts: Parts) -> list[dict[str, Any]]:
    """Returns the states of lakes with their tables, in an order that does not depend on the plan."""
    states: dict[tuple[object, ...], dict[str, Any]] = {}
    for read in sorted(reads, key=_order):
        at = (read.alias, read.lake, read.snapshot_id, read.time, read.is_fixed, read.is_uncommitted)
        if at not in states:
            state: dict[str, Any] = {
                "lake": read.lake,
                "alias": read.alias,
                "snapshot": read.snapshot_id,
                "time": read.time,
            }
            state |= {"fixed": True} if read.is_fixed else {}
            state |= {"uncommitted": True} if read.is_uncommitted else {}
            states[at] = {**state, "tables": []}
        entry: dict[str, Any] = {"schema": list(read.schema), "name": read.name, "id": read.entry_id}
        entry |= {"uuid": read.uuid} if read.uuid else {}
        if read.kind == "table":
            is_newest = read.entry_id is not None and not read.is_fixed and not read.is_uncommitted
            part = parts.get((read.alias, read.entry_id or 0)) if is_newest else None
            entry |= _part(*part) if part is not None else {}
            states[at]["tables"].append(entry)
        else:
            states[at].setdefault("definitions", []).append({"kind": read.kind, **entry})
    return list(states.values())


def _part(table: Table, part: ReadPart) -> dict[str, Any]:
    from ducklake_lab.model.reads import ALL_COLUMNS
    from ducklake_lab.scan.predicate_forms import form_of

    members: dict[str, Any] = {"columns": ALL_COLUMNS}
    if part.columns is not None and len(part.names) <= _MOST_NAMES:
        members["columns"] = sorted(part.columns)
        members |= {"names": sorted(part.names)} if part.names else {}
    condition = form_of(table, part.predicate) if part.predicate is not None else None
    members |= {"where": condition} if condition is not None else {}
    members |= {"by_place": True} if part.by_place else {}
    return members


def _order(read: EntryRead) -> tuple[object, ...]:
    return (
        read.alias,
        read.lake,
        read.snapshot_id,
        read.is_fixed,
        read.is_uncommitted,
        read.kind,
        read.schema,
        read.name,
        read.uuid,
    )
