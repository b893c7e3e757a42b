"""Secrets with the location of a lake, the login of its catalog server, or the login of its file store.

They live as long as the session. They are never stored, and their contents are never shown.
"""

from __future__ import annotations

import re
import shlex
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any

from ducklake_lab.catalog.servers import QUACK
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.errors import EntryExistsError, EntryNotFoundError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.object_access import OPTIONS, access_of, grant, revoke
from ducklake_lab.sql import operations as op

#: Types of catalogs that METADATA_PARAMETERS accepts.
CATALOG_TYPES = ("duckdb", "sqlite", "postgres", "postgresql", "mysql", "quack")

_NAME = re.compile(r"\w*", re.ASCII)
_LAKE_OPTIONS = (
    "metadata_path",
    "data_path",
    "metadata_schema",
    "metadata_catalog",
    "metadata_parameters",
    "encrypted",
)
_QUACK_OPTIONS = ("token", "disable_ssl")
#: Options of a server's secret -> keywords of the connection string.
_SERVER_OPTIONS = {
    "postgres": {
        "host": "host", "hostaddr": "hostaddr", "port": "port", "database": "dbname", "dbname": "dbname",
        "user": "user", "password": "password", "passfile": "passfile", "sslmode": "sslmode",
    },
    "mysql": {
        "host": "host", "port": "port", "database": "database", "db": "database", "user": "user",
        "password": "password", "socket": "socket",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret's kind and options."""

    name: str
    kind: str
    options: Mapping[str, object] = field(repr=False)


class Secrets:
    """The secrets of a session, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Secret] = {}
        self._owner = token_hex(8)
        weakref.finalize(self, revoke, self._owner)

    def create(self, statement: op.CreateSecret, options: Mapping[str, object]) -> None:
        """Creates a secret.

        Raises:
            EntryExistsError: a secret has that name already.
            UsageError: an option does not exist for this kind of secret.
            UnsupportedFeatureError: the secret is PERSISTENT.
        """
        if statement.persistent:
            raise UnsupportedFeatureError(
                "Persistent secrets are not supported; leave PERSISTENT out, and create the secret in each session."
            )
        name = statement.name or _default_name(statement.kind)
        allowed = _allowed(statement.kind)
        for key in options:
            if key not in allowed and key not in ("provider", "scope"):
                # after a missing quote, this option name may be part of the secret itself
                hint = did_you_mean(key, allowed) or f" It has {', '.join(allowed)}."
                raise UsageError(f"A secret of type {statement.kind} has no such option.{hint}")
        if name.casefold() in self._by_name and not statement.replace:
            if statement.if_not_exists:
                return
            raise EntryExistsError(f'There is a secret "{name}" already; use CREATE OR REPLACE SECRET.')
        if statement.kind == "s3":
            grant(self._owner, name, access_of(options))
        self._by_name[name.casefold()] = Secret(name, statement.kind, dict(options))

    def logged_in(self, location: CatalogLocation) -> CatalogLocation:
        """The location with the token of its server of quack, by the secret with the longest scope that has its address."""
        if location.server is not QUACK or location.url.password:
            return location

        def scope(secret: Secret) -> str:
            return str(secret.options.get("scope") or "quack:")

        quack_secrets = [secret for secret in self._by_name.values() if secret.kind == "quack"]
        fitting = [secret for secret in quack_secrets if _is_within(location.address, scope(secret))]
        if not fitting:
            return location
        options = max(fitting, key=lambda secret: len(scope(secret))).options
        return with_login(location, options.get("token"), options.get("disable_ssl"))

    def close(self) -> None:
        """Drops all secrets."""
        revoke(self._owner)
        self._by_name.clear()

    def drop(self, statement: op.DropSecret) -> None:
        """Drops a secret."""
        revoke(self._owner, statement.name.casefold())
        if self._by_name.pop(statement.name.casefold(), None) is None and not statement.if_exists:
            raise EntryNotFoundError(f'There is no secret "{statement.name}".{self._hint(statement.name)}')

    def resolve(self, uri: str) -> tuple[str, dict[str, Any]]:
        """Resolves a URI that may name a secret, `ducklake:my_secret`, to the lake's URI and options.

        Raises:
            EntryNotFoundError: the secret does not exist.
        """
        text = uri.removeprefix("ducklake:")
        if text == uri or not _NAME.fullmatch(text):
            return uri, {}
        secret = self._get(text, "ducklake")
        options = {key: value for key, value in secret.options.items() if key in _LAKE_OPTIONS and value is not None}
        path = str(options.pop("metadata_path", ""))
        parameters = {key.casefold(): value for key, value in _pairs(options.pop("metadata_parameters", {}))}
        kind = str(parameters.get("type", "")).casefold()
        if kind and kind not in CATALOG_TYPES:
            raise UsageError(
                f'The secret "{secret.name}" has the catalog type "{kind}"; it is one of {", ".join(CATALOG_TYPES)}.'
            )
        if kind:
            path = path.removeprefix(f"{kind}:")
            if kind == "quack" and "secret" in parameters:
                raise UnsupportedFeatureError(
                    "A SECRET for a server of quack is found by its SCOPE; leave it out of METADATA_PARAMETERS."
                )
            if kind in _SERVER_OPTIONS:
                path = " ".join(filter(None, [path, self._login(kind, parameters.get("secret"))]))
            path = f"{kind}:{path}"
        elif _NAME.fullmatch(path):
            path = f"duckdb:{path}"
        return f"ducklake:{path}", options

    def _login(self, kind: str, name: str | None) -> str:
        if name is None and _default_name(kind) not in self._by_name:
            return ""
        words = _SERVER_OPTIONS[kind]
        options = self._get(name or "", kind).options
        return " ".join(shlex.quote(f"{words[key]}={value}") for key, value in options.items() if key in words)

    def _get(self, name: str, kind: str) -> Secret:
        secret = self._by_name.get((name or _default_name(kind)).casefold())
        if secret is None or secret.kind != kind:
            if not name:
                raise EntryNotFoundError(f"There is no default secret of type {kind}; create one, or name a file.")
            what = f"; for a file of that name write ducklake:duckdb:{name}" if kind == "ducklake" else ""
            raise EntryNotFoundError(f'There is no secret "{name}" of type {kind}{what}.{self._hint(name)}')
        return secret

    def _hint(self, name: str) -> str:
        return did_you_mean(name, (secret.name for secret in self._by_name.values()))


def with_login(location: CatalogLocation, token: object, plain: object) -> CatalogLocation:
    """The location of a server of quack with a token.

    Args:
        plain: true for HTTP.
    """
    url = location.url.set(password=str(token)) if token else location.url
    if str(plain).casefold() in ("true", "1"):
        url = url.update_query_dict({"disable_ssl": "true"})
    return replace(location, url=url)


def _is_within(address: str, scope: str) -> bool:
    """Returns whether a scope has an address: `quack:`, or the host, with or without the port."""
    return scope == "quack:" or address == scope or address.startswith(f"{scope.rstrip(':')}:")


def _allowed(kind: str) -> tuple[str, ...]:
    if kind == "ducklake":
        return _LAKE_OPTIONS
    return _QUACK_OPTIONS if kind == "quack" else tuple(_SERVER_OPTIONS.get(kind, OPTIONS))


def _default_name(kind: str) -> str:
    return f"__default_{kind}"


def _pairs(value: Any) -> list[tuple[str, Any]]:
    """Returns the pairs of a MAP in Arrow's form, or of a dictionary."""
    return list(value.items()) if isinstance(value, Mapping) else list(value)
