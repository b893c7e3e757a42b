"""Attaching a lake: what the options of a call or of ATTACH mean together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from ducklake_lab.catalog.lake import Lake, open_lake
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.catalog.zones import instant
from ducklake_lab.errors import EntryExistsError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.secrets import Secrets
from ducklake_lab.sql import operations as op

OPTIONS = (
    "data_path",
    "read_only",
    "snapshot_version",
    "snapshot_time",
    "encrypted",
    "create_if_not_exists",
    "automatic_migration",
    "override_data_path",
    "metadata_catalog",
    "metadata_schema",
    "data_inlining_row_limit",
    "write_deletion_vectors",
)


def attach(
    lakes: Lakes,
    secrets: Secrets,
    uri: str,
    alias: str | None = None,
    data_path: str | None = None,
    *,
    read_only: bool = False,
    snapshot_version: int | None = None,
    snapshot_time: datetime | str | None = None,
    encrypted: bool = False,
    create_if_not_exists: bool = True,
    create_folders: bool = False,
    automatic_migration: bool = False,
    override_data_path: bool = False,
    metadata_catalog: str | None = None,
    metadata_schema: str | None = None,
    data_inlining_row_limit: int | None = None,
    write_deletion_vectors: bool | None = None,
    replaced: Lake | None = None,
) -> Lake:
    """Attaches a lake to a session's lakes; the arguments and errors are those of `Session.attach`.

    Args:
        replaced: a lake whose place it takes, once it is open.
    """
    uri, stored = secrets.resolve(uri)
    location = parse_uri(uri)
    name = alias or location.default_alias
    if lakes.find(name) not in (None, replaced):
        raise EntryExistsError(f"A lake is attached as {name} already; choose another alias, or detach it first.")
    if metadata_catalog is not None and metadata_catalog.casefold() == name.casefold():
        raise EntryExistsError(
            f"The lake and its catalog database cannot both be {name}; choose another METADATA_CATALOG."
        )
    if snapshot_version is not None and snapshot_time is not None:
        raise UsageError("Give snapshot_version or snapshot_time, not both.")
    metadata_schema = metadata_schema or stored.get("metadata_schema")
    if metadata_schema is not None:
        location = replace(location, schema=metadata_schema)
    given = {"data_inlining_row_limit": data_inlining_row_limit, "write_deletion_vectors": write_deletion_vectors}
    lake = open_lake(
        location,
        name,
        data_path=stored.get("data_path") if data_path is None else data_path,
        read_only=read_only,
        at=snapshot_version if snapshot_version is not None else snapshot_time,
        encrypted=encrypted or bool(stored.get("encrypted")),
        create_if_not_exists=create_if_not_exists,
        create_folders=create_folders,
        automatic_migration=automatic_migration,
        override_data_path=override_data_path,
        metadata_name=metadata_catalog or stored.get("metadata_catalog"),
        options={key: str(value).casefold() for key, value in given.items() if value is not None},
        session=lakes.options,
    )
    if replaced is not None:
        lakes.remove(replaced)
    lakes.add(lake)
    return lake


def attach_statement(lakes: Lakes, secrets: Secrets, value: Callable[[object], Any], statement: op.Attach) -> None:
    """Runs ATTACH.

    Args:
        value: gives the value of an option that is more than a literal.
    """
    options = {key.casefold(): value(given) for key, given in statement.options.items()}
    options.pop("type", None)
    for name in list(options):
        if name.startswith("meta_") or name in ("metadata_parameters", "busy_timeout"):
            _check_metadata_parameter(name, options.pop(name))
    if "readonly" in options:
        options["read_only"] = options.pop("readonly")
    if options.pop("read_write", False):
        if "snapshot_version" in options or "snapshot_time" in options:
            raise UsageError("A lake attached at a snapshot can only be read; leave READ_WRITE out.")
        options["read_only"] = False
    for key in options:
        if key not in OPTIONS:
            raise UnsupportedFeatureError(
                f"The ATTACH option {key.upper()} is not supported.{did_you_mean(key, OPTIONS)}"
            )
    alias = statement.alias or parse_uri(secrets.resolve(statement.uri)[0]).default_alias
    if isinstance(options.get("snapshot_time"), date | str):
        # as in the reference, whatever the session's time zone is
        options["snapshot_time"] = instant(options["snapshot_time"], "UTC")
    attached = lakes.find(alias)
    if attached is not None and statement.if_not_exists:
        return
    at_home = lakes.at_home
    attach(lakes, secrets, statement.uri, statement.alias, **options, replaced=attached if statement.replace else None)
    if at_home:
        # as in DuckDB, ATTACH leaves it to USE to choose a lake
        lakes.leave()


def _check_metadata_parameter(name: str, value: object) -> None:
    """Options for the database of the catalog: its type is in the URI already, and waiting has a fixed limit."""
    if name == "meta_type" and str(value).casefold() not in ("duckdb", "sqlite", "postgres", "mysql"):
        raise UsageError(f'"{value}" is not a type of catalog; use duckdb, sqlite, postgres or mysql.')
    if name not in ("meta_type", "busy_timeout", "meta_busy_timeout"):
        raise UnsupportedFeatureError(f"The ATTACH option {name.upper()} is not supported; write it into the URI.")
