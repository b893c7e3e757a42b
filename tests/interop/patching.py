"""Lakes at one state, several times, to try patches on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

import ducklake_lab as dl
from tests.interop.comparing import detach
from tests.memory import FOLDER

#: Clients that run a patch.
CLIENTS = ("ours", "reference")
#: Names the catalog of a lake whose folder does not hold it.
_CATALOG = "catalog.txt"


def copied(folder: Path, name: str) -> Path:
    """A copy of a lake's folder, beside it."""
    copy = folder.parent / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return copy


@contextmanager
def lake_folder(catalog: str, new_catalog: Callable[..., str]) -> Iterator[Path]:
    """A folder for a new lake with a kind of catalog, which is removed at the end."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    try:
        if catalog == "sqlite":
            (folder / _CATALOG).write_text(f"ducklake:sqlite:{folder}/lake.db")
        elif catalog != "duckdb":
            (folder / _CATALOG).write_text(new_catalog(catalog))
        yield folder
    finally:
        shutil.rmtree(folder)


def _uri(folder: Path) -> str:
    named = folder / _CATALOG
    return named.read_text() if named.exists() else f"ducklake:{folder}/lake.ducklake"


def opened(folder: Path) -> dl.Session:
    """Our client on the lake of a folder."""
    return dl.connect(
        _uri(folder),
        alias="lake",
        data_path=f"{folder}/data/",
        override_data_path=True,
        engine="duckdb",
    )


def attach_copy(reference: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """The reference on the lake of a folder."""
    reference.execute(
        f"ATTACH '{_uri(folder)}' AS lake (DATA_PATH '{folder}/data/', OVERRIDE_DATA_PATH true); USE lake"
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
