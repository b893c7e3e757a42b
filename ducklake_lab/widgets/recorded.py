"""The record that an output keeps of its data: lakes, snapshots and tables, in the metadata of the notebook's output.

It holds no rows, no locations and no secrets, and is the same for each run at the same snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ducklake_lab.version import __version__

if TYPE_CHECKING:
    from ducklake_lab.model.reads import EntryRead
    from ducklake_lab.session.rows.result import Result

#: The key in an output's metadata, and the version of what is under it; the extension's `recorded.ts` has both.
KEY = "ducklake"
FORM = 1

#: Whether outputs keep records.
wanted = True


class Shown(Protocol):
    """A value whose output has a record."""

    @property
    def reads(self) -> Sequence[EntryRead]: ...
    def _repr_html_(self) -> str: ...


def metadata(reads: Sequence[EntryRead], *, engine: str | None = None, wrote: bool = False) -> dict[str, Any]:
    """Returns the metadata of an output; {} for one without tables of lakes, or if records are switched off.

    Args:
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
    return {KEY: {**record, "reads": _by_state(reads)}}


def record_of(result: Result) -> dict[str, Any]:
    """Returns the metadata of an output that shows a result."""
    engine = result.info.placement.where if result.info.placement is not None else None
    return metadata(
        result.reads, engine=engine or ("process" if result.in_process else "spark"), wrote=result.info.wrote
    )


def bundle(shown: Shown) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a notebook's output: static HTML and text, and the record."""
    return {"text/plain": repr(shown), "text/html": shown._repr_html_()}, metadata(shown.reads)


def _by_state(reads: Sequence[EntryRead]) -> list[dict[str, Any]]:
    """Returns the states of lakes with their tables, in an order that does not depend on the plan."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for read in sorted(reads, key=_order):
        at = (read.alias, read.lake, read.snapshot_id, read.time, read.is_fixed, read.is_uncommitted)
        if at not in found:
            state: dict[str, Any] = {
                "lake": read.lake,
                "alias": read.alias,
                "snapshot": read.snapshot_id,
                "time": read.time,
            }
            state |= {"fixed": True} if read.is_fixed else {}
            state |= {"uncommitted": True} if read.is_uncommitted else {}
            found[at] = {**state, "tables": []}
        entry: dict[str, Any] = {"schema": list(read.schema), "name": read.name, "id": read.entry_id}
        entry |= {"uuid": read.uuid} if read.uuid else {}
        if read.kind == "table":
            found[at]["tables"].append(entry)
        else:
            found[at].setdefault("definitions", []).append({"kind": read.kind, **entry})
    return list(found.values())


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
