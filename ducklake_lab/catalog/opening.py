"""Opens lakes: finds, makes or migrates their catalogs, and checks their data path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

from ducklake_lab.catalog import as_of, paths, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.creating import absolute, create, folder
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.duckdb_files import checked_storage_version
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.migrating import migrate
from ducklake_lab.catalog.options import SessionOptions
from ducklake_lab.catalog.servers import QUACK
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.catalog.versions.version import Version
from ducklake_lab.errors import (
    CatalogError,
    CatalogNotFoundError,
    CatalogVersionError,
    UnsupportedFeatureError,
    UsageError,
)
from ducklake_lab.model.snapshot_names import named_snapshot
from ducklake_lab.storage import Storage

_storage = Storage()


def open_lake(
    location: CatalogLocation, alias: str, options: AttachOptions | None = None, session: SessionOptions | None = None
) -> Lake:
    """Opens a lake, creating it where there is none and that is wanted.

    Args:
        session: options of the session it is attached to.

    Raises:
        CatalogNotFoundError: there is no lake, and none is to be created; or its folder does not exist.
        CatalogVersionError: the lake's spec version is not supported.
        UsageError: the given data path is not the lake's, or it is to be encrypted and is not.
        CatalogError: the migration that `automatic_migration` asked for failed; nothing was changed.
    """
    options, session = options or AttachOptions(), session or SessionOptions()
    held = as_of.wanted(alias, location.default_alias) if options.at is None else None
    if held is not None:  # nothing is to change
        options = replace(options, create_if_not_exists=False, automatic_migration=False)
    wanted = options.ducklake_version or session.versions.get("ducklake_version")
    if location.backend == "duckdb" and location.path is not None:
        asked = options.storage_version or session.versions.get("storage_version")
        location = replace(location, storage_version=asked and checked_storage_version(asked))
    elif options.storage_version is not None:
        raise UnsupportedFeatureError(f"Catalogs in {location.type} have no storage version; leave it out.")
    elif options.exclusive:
        raise UnsupportedFeatureError(
            f"EXCLUSIVE is for catalogs in DuckDB files; those in {location.type} open at no cost, so leave it out."
        )
    database = CatalogDatabase(location)
    if location.path is not None and options.creates:
        _check_folder(location.path.parent, create=options.create_folders)
    with database.connect(create=options.creates) as connection:
        exists = _is_initialised(connection, database)
        if exists:
            _settle_version(connection, database, options, wanted)
            stored = _check(connection, location, encrypted=options.encrypted)
        elif options.creates:
            stored = create(connection, database, options, wanted)
        else:
            raise CatalogNotFoundError(f"{location.display} holds no DuckLake catalog; check the path.")
        chosen = _chosen_data_path(connection, location, stored, options.data_path, override=options.override_data_path)
        lake = Lake(alias, database, chosen, options, session, created=not exists)
        lake.snapshot(connection)  # a lake without one cannot be used
        if held is not None:
            as_of.record(alias, lake.hold(connection, named_snapshot(held)).snapshot_id)
        if options.exclusive:
            database.hold()
        return lake


def _check_folder(folder: Path, *, create: bool) -> None:
    """Raises where a new file cannot be made in a folder; makes the folder if that is wanted."""
    if not create and not folder.is_dir():
        raise CatalogNotFoundError(
            f"The folder {folder} does not exist; check the path, or attach with create_folders to make it."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogNotFoundError(f"The folder {folder} cannot be made: {error.strerror}.") from None


def _is_initialised(connection: sa.Connection, database: CatalogDatabase) -> bool:
    if not database.has_table(connection, "ducklake_metadata"):
        return False
    return database.backend != "mysql" or versions.read_version(connection) is not None


def _settle_version(
    connection: sa.Connection, database: CatalogDatabase, options: AttachOptions, wanted: str | None
) -> None:
    """Migrates an older catalog where that is wanted; makes it readable as its version is."""
    display = database.location.display
    version = versions.readable(versions.read_version(connection), display)
    target = _target(version, wanted, migrate=options.automatic_migration)
    steps = versions.path(version, target)
    if options.automatic_migration:
        migrate(database, connection, version, target)
        version = target if steps else version
    if wanted is not None and version is not target:
        how = "there is no way back" if not steps else "attach it with automatic_migration=True, or without a version"
        if options.ducklake_version is None:
            how = "RESET ducklake_default_version, which asks for it" + (f", or {how}" if steps else f"; {how}")
        raise CatalogVersionError(f"{display} is of version {version.name}, not {target.name}; {how}.")
    database.version = version
    versions.begin(connection, version)


def _target(version: Version, wanted: str | None, *, migrate: bool) -> Version:
    """The version that a catalog is to have: the one asked for, else a migration's, else the first that is written.

    A migration ends where the reference's ends: at the version that new lakes have with the installed DuckDB.
    """
    if wanted is not None:
        return versions.written(wanted)
    if migrate and versions.path(version, versions.DEFAULT):
        return versions.DEFAULT
    if version.is_written:
        return version
    return next(known for known in versions.VERSIONS if known.is_written and versions.path(version, known))


def _check(connection: sa.Connection, location: CatalogLocation, *, encrypted: bool) -> str:
    """Checks that the lake can be read and gives the stored data path."""
    m = t.lake_metadata
    rows = dict(connection.execute(sa.select(m.c.key, m.c.value).where(m.c.scope.is_(None))).all())
    if encrypted and rows.get("encrypted", "false").casefold() != "true":
        raise UsageError(f"The lake {location.display} was made without encryption; attach it without ENCRYPTED.")
    stored: str | None = rows.get("data_path")
    if stored is None:
        raise CatalogError(f"{location.display} has no data_path in ducklake_metadata.")
    return stored


def _chosen_data_path(
    connection: sa.Connection, location: CatalogLocation, stored: str, given: str | None, *, override: bool
) -> str:
    """The folder of the data: a relative one is below the working directory, as in the reference.

    Where it is not there, and the lake has files, it is looked for beside the catalog: both may have been moved.
    """
    if given is not None and override:
        return absolute(given)
    if given is not None and location.server is QUACK and not paths.is_absolute(stored):
        return absolute(given)  # the stored one is below a folder of the server
    resolved = absolute(stored)
    if location.path is not None and not paths.is_absolute(stored) and not _storage.exists(resolved):
        beside = absolute(str(location.path.parent / stored))
        if _storage.exists(beside) and connection.scalar(sa.select(sa.exists().where(t.data_file.c.path.is_not(None)))):
            resolved = beside
    if given is not None and folder(given) != stored and absolute(given) != resolved:
        raise UsageError(
            f"The lake keeps its data in {stored}, not in {given}; leave data_path out to use it as it is, "
            "or attach with override_data_path."
        )
    return resolved
