"""Lakes at one state, several times, to try patches on."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

import ducklake_lab as dl
from tests.interop.comparing import detach

#: Clients that run a patch.
CLIENTS = ("ours", "reference")


def copied(folder: Path, name: str) -> Path:
    """A copy of a lake's folder, beside it."""
    copy = folder.parent / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return copy


def opened(folder: Path) -> dl.Session:
    """Our client on the lake of a folder."""
    return dl.connect(
        f"ducklake:{folder}/lake.ducklake",
        alias="lake",
        data_path=f"{folder}/data/",
        override_data_path=True,
        engine="duckdb",
    )


def attach_copy(reference: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """The reference on the lake of a folder."""
    reference.execute(
        f"ATTACH 'ducklake:{folder}/lake.ducklake' AS lake (DATA_PATH '{folder}/data/', OVERRIDE_DATA_PATH true); USE lake"
    )


def contents(
    reference: duckdb.DuckDBPyConnection, folder: Path, table: str
) -> tuple[list[tuple[str, str]], list[tuple[str | None, ...]]]:
    """Return the reference's columns of a table, and its rows as texts in some order."""
    attach_copy(reference, folder)
    try:
        found = reference.execute(f"FROM {table}")
        columns = [(name, str(kind)) for name, kind, *_ in found.description]
        texts = reference.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {table} ORDER BY ALL").fetchall()
    finally:
        detach(reference)
    return columns, texts


def apply(by: str, reference: duckdb.DuckDBPyConnection, folder: Path, patch: str) -> None:
    """Runs a patch: by us, or by the reference."""
    if by == "ours":
        with opened(folder) as session:
            session.sql(patch)
        return
    attach_copy(reference, folder)
    try:
        reference.execute(patch)
    finally:
        detach(reference)
