"""Attaches lakes; interprets the options of `attach` and of ATTACH."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import date
from typing import Any

from ducklake_lab.branches.making import branch_location
from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.branches.branch import is_name
from ducklake_lab.catalog.branches.location import could_be_branch
from ducklake_lab.catalog.branches.registry import own_branch
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.catalog.servers import QUACK, SERVERS
from ducklake_lab.catalog.uri import CatalogLocation, parse_uri
from ducklake_lab.duckdb.zones import instant
from ducklake_lab.errors import EntryExistsError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.secrets import Secrets, with_login
from ducklake_lab.sql import operations as op

#: The options of ATTACH in SQL.
OPTIONS = tuple(field.name for field in fields(AttachOptions) if field.name != "create_folders")


def attach(
    lakes: Lakes,
    secrets: Secrets,
    uri: str,
    alias: str | None,
    options: AttachOptions,
    replaced: Lake | None = None,
    login: Mapping[str, object] | None = None,
) -> Lake:
    """Attaches a lake to a session; raises the errors of `Session.attach`.

    Args:
        replaced: a lake that the new one replaces once it is open.
        login: the options META_TOKEN and META_DISABLE_SSL of ATTACH, for a server of quack.
    """
    with lakes.turn.taken():
        uri, stored = secrets.resolve(uri)
        uri, branch = split_branch(uri)
        location = _logged_in(secrets, parse_uri(uri), login or {})
        name = alias or location.default_alias
        if lakes.find(name) not in (None, replaced):
            raise EntryExistsError(f"A lake is attached as {name} already; choose another alias, or detach it first.")
        if options.metadata_catalog is not None and options.metadata_catalog.casefold() == name.casefold():
            raise EntryExistsError(
                f"The lake and its catalog database cannot both be {name}; choose another METADATA_CATALOG."
            )
        options = replace(
            options,
            data_path=stored.get("data_path") if options.data_path is None else options.data_path,
            encrypted=options.encrypted or bool(stored.get("encrypted")),
            metadata_catalog=options.metadata_catalog or stored.get("metadata_catalog"),
            metadata_schema=options.metadata_schema or stored.get("metadata_schema"),
        )
        if options.metadata_schema is not None:
            location = replace(location, schema=options.metadata_schema)
        if branch is not None:
            options = replace(options, create_if_not_exists=False)
            root = open_lake(location, name, options, lakes.options)
            location = branch_location(root, branch)
            root.database.dispose()
            options = replace(options, data_path=None, override_data_path=False)
        lake = attached_branch(open_lake(location, name, options, lakes.options))
        if replaced is not None:
            lakes.remove(replaced)
        lakes.add(lake)
        return lake


def _logged_in(secrets: Secrets, location: CatalogLocation, login: Mapping[str, object]) -> CatalogLocation:
    if login and location.server is not QUACK:
        raise UnsupportedFeatureError(f"The ATTACH option {next(iter(login)).upper()} is for servers of quack alone.")
    if "meta_token" in login:
        return with_login(location, login["meta_token"], login.get("meta_disable_ssl"))
    return secrets.logged_in(with_login(location, None, login.get("meta_disable_ssl")))


def split_branch(uri: str) -> tuple[str, str | None]:
    """Splits `ducklake:lake.ducklake#fix` into the lake's URI and the branch's name; None where it names none.

    A file whose own name has the `#` is the lake itself. In connection strings of servers the `#` is a word of its own.
    """
    head, mark, name = uri.rpartition("#")
    if not mark or not is_name(name):
        return uri, None
    is_url = "://" in head
    kind, colon, _ = head.removeprefix("ducklake:").partition(":")
    is_server = not is_url and colon and kind.casefold() in SERVERS
    if is_server and kind.casefold() != "quack" and not head.endswith(" "):
        return uri, None  # the end of a password
    path = None if is_url or is_server else parse_uri(uri).path
    return (uri, None) if path is not None and path.exists() else (head.rstrip(), name)


def attached_branch(lake: Lake) -> Lake:
    """Notes in a lake which branch it is, if it is one, and returns it."""
    if could_be_branch(lake.location):
        with lake.connect() as connection:
            own = own_branch(connection)
        lake.branch = own.name if own is not None else None
    return lake


def attach_statement(lakes: Lakes, secrets: Secrets, value: Callable[[object], Any], statement: op.Attach) -> None:
    """Runs ATTACH.

    Args:
        value: evaluates an option that is not a literal.
    """
    options = {key.casefold(): value(given) for key, given in statement.options.items()}
    options.pop("type", None)
    if "meta_storage_version" in options:
        options["storage_version"] = options.pop("meta_storage_version")
    login: dict[str, object] = {
        name: options.pop(name) for name in ("meta_token", "meta_disable_ssl") if name in options
    }
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
    alias = statement.alias or parse_uri(split_branch(secrets.resolve(statement.uri)[0])[0]).default_alias
    if isinstance(options.get("snapshot_time"), date | str):
        # the reference reads it in UTC too, in any session time zone
        options["snapshot_time"] = instant(options["snapshot_time"], "UTC")
    attached = lakes.find(alias)
    if attached is not None and statement.if_not_exists:
        return
    at_home = lakes.at_home
    replaced = attached if statement.replace else None
    attach(lakes, secrets, statement.uri, statement.alias, AttachOptions(**options), replaced, login)
    if at_home:
        # DuckDB's ATTACH does not change the current database either
        lakes.leave()


def _check_metadata_parameter(name: str, value: object) -> None:
    """Raises for unsupported options of the catalog database; its type and its wait times have no effect."""
    if name == "meta_type" and str(value).casefold() not in ("duckdb", "sqlite", "postgres", "mysql", "quack"):
        raise UsageError(f'"{value}" is not a type of catalog; use duckdb, sqlite, postgres, mysql or quack.')
    if name not in ("meta_type", "busy_timeout", "meta_busy_timeout"):
        raise UnsupportedFeatureError(f"The ATTACH option {name.upper()} is not supported; write it into the URI.")
