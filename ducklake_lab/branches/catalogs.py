"""Makes and removes the places of branches' catalogs: files, schemas and databases."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog.below_sqlalchemy import run_text
from ducklake_lab.catalog.branches.points import OWN
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.errors import CatalogError, EntryExistsError
from ducklake_lab.model.quoting import quote_identifier, quote_text

#: Ends of the names of files that databases keep beside a catalog's.
_BESIDE = ("", ".wal", "-journal", "-wal", "-shm")


def make_place(connection: sa.Connection, location: CatalogLocation) -> None:
    """Makes the folder of a branch's catalog file, or its database; a schema comes with the first connection.

    Args:
        connection: a connection to the database of the lake's catalog.

    Raises:
        CatalogError: it cannot be made.
    """
    try:
        if location.path is not None:
            location.path.parent.mkdir(exist_ok=True)
        elif location.backend == "mysql":
            run_text(connection, f"CREATE DATABASE IF NOT EXISTS {quote_identifier(location.url.database or '')}")
    except OSError as error:
        raise CatalogError(f"The folder of branches {location.path} cannot be made: {error.strerror}.") from None


def remove_catalog(connection: sa.Connection, location: CatalogLocation) -> None:
    """Removes a branch's catalog; one that is not there is no error.

    Raises:
        EntryExistsError: something else has the place of the catalog; it stays.
        CatalogError: a file cannot be deleted.
    """
    if location.path is not None:
        try:
            for end in _BESIDE:
                location.path.with_name(location.path.name + end).unlink(missing_ok=True)
        except OSError as error:
            raise CatalogError(f"The catalog {location.path} cannot be deleted: {error.strerror}.") from None
        return
    place = (location.url.database if location.backend == "mysql" else location.schema) or ""
    listed = f"SELECT table_name FROM information_schema.tables WHERE table_schema = {quote_text(place)}"
    names = [str(name) for (name,) in run_text(connection, listed)]
    kind = "DATABASE" if location.backend == "mysql" else "SCHEMA"
    if any(not name.startswith("ducklake_") for name in names) or not _is_unfinished_or_branch(
        connection, place, names
    ):
        raise EntryExistsError(f"The {kind.lower()} {place} holds something else; give the branch another name.")
    cascade = " CASCADE" if kind == "SCHEMA" else ""
    run_text(connection, f"DROP {kind} IF EXISTS {quote_identifier(place)}{cascade}")


def _is_unfinished_or_branch(connection: sa.Connection, place: str, names: list[str]) -> bool:
    """Whether the catalog in a schema or database is a branch's, or has no options yet."""
    if "ducklake_metadata" not in names:
        return True
    keys = f'SELECT "key" FROM {quote_identifier(place)}.ducklake_metadata'
    found = {str(key) for (key,) in run_text(connection, keys)}
    return not found or OWN in found
