"""Builds the demo lake, or finds it built."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import ducklake_lab as dl
from ducklake_lab.demo.places import Catalog, LakeLocation, place
from ducklake_lab.demo.steps import steps
from ducklake_lab.errors import UsageError


def build(
    folder: Path,
    catalog: Catalog = "duckdb",
    *,
    uri: str | None = None,
    force: bool = False,
    report: Callable[[str], None] = print,
) -> LakeLocation:
    """Builds the demo lake in a folder; keeps one that is complete, rebuilds one that is half built.

    Args:
        uri: of a PostgreSQL catalog on a server of yours, instead of `catalog`.
        force: rebuild a complete lake, or another one, too.
        report: takes lines of progress.

    Returns:
        Where the lake is.

    Raises:
        UsageError: there is another lake in the place, or the data is not installed.
    """
    where = place(folder, catalog, uri)
    messages = [step.message for step in steps()]
    present = _messages(where)
    if not force and present[: len(messages)] == messages:
        report(f"The demo lake is there: {where.uri}")
        return where
    if present and not force and messages[: len(present)] != present:
        raise UsageError(f"There is another lake at {where.uri}; --force replaces it.")
    if force or present or where.exists():
        where.clear()
    _run(where, report)
    return where


def _messages(where: LakeLocation) -> list[str]:
    """The commit messages of the lake in that place, oldest first, without that of its creation."""
    if not where.exists():
        return []
    try:
        session = dl.connect(where.uri, create_if_not_exists=False, read_only=True)
    except dl.CatalogNotFoundError:
        return []
    with session:
        return [entry.info.commit_message or "" for entry in session.snapshots() if entry.info.snapshot_id > 0]


def _run(where: LakeLocation, report: Callable[[str], None]) -> None:
    todo = steps()
    started = time.monotonic()
    report(f"Building the demo lake, {len(todo)} snapshots: {where.uri}")
    with dl.connect(where.uri, data_path=f"{where.data_path}/") as session:
        for number, step in enumerate(todo, start=1):
            with session.transaction(author=step.author, message=step.message):
                step.run(session)
            report(f"  {number:2d}/{len(todo)}  {time.monotonic() - started:5.1f} s  {step.message}")
