"""Access to objects of S3: credentials and endpoints, each for the paths of its scope.

They are kept in memory alone, as long as their owner lives, and their texts are never shown.
"""

from __future__ import annotations

import configparser
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ducklake_lab.errors import UsageError

#: Options of a secret of type `s3`.
OPTIONS = (
    "key_id", "secret", "session_token", "region", "endpoint", "url_style", "use_ssl", "scope", "provider", "profile", "chain",
)  # fmt: skip
_ANYWHERE = "s3://"
_granted: dict[tuple[str, str], S3Access] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class S3Access:
    """Credentials and endpoint; None where the machine's own hold.

    Attributes:
        scope: URLs that begin so are reached by it.
        endpoint: `http://host:port` of a server that speaks S3; None for Amazon's.
        by_host: the bucket is a part of the host's name, rather than of the path.
    """

    scope: str = _ANYWHERE
    key_id: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None
    endpoint: str | None = None
    by_host: bool = False

    @property
    def is_explicit(self) -> bool:
        """Return whether it sets anything beyond the machine's own settings."""
        return any((self.key_id, self.region, self.endpoint))

    def arrow_options(self) -> dict[str, Any]:
        """The arguments of pyarrow's S3FileSystem."""
        options: dict[str, object] = {
            "access_key": self.key_id,
            "secret_key": self.secret,
            "session_token": self.session_token,
            "region": self.region,
            "force_virtual_addressing": self.by_host,
        }
        if self.endpoint is not None:
            address = urlsplit(self.endpoint)
            options |= {"endpoint_override": address.netloc, "scheme": address.scheme}
        return {key: value for key, value in options.items() if value is not None}

    def hadoop_options(self, bucket: str) -> dict[str, str]:
        """Settings of Hadoop's S3A for a bucket."""
        provider = "TemporaryAWSCredentialsProvider" if self.session_token else "SimpleAWSCredentialsProvider"
        options = {
            "access.key": self.key_id,
            "secret.key": self.secret,
            "session.token": self.session_token,
            "aws.credentials.provider": f"org.apache.hadoop.fs.s3a.{provider}" if self.key_id else None,
            "endpoint": self.endpoint,
            "endpoint.region": self.region or ("us-east-1" if self.endpoint else None),
            "path.style.access": "true" if self.endpoint and not self.by_host else None,
            "connection.ssl.enabled": "false" if self.endpoint and self.endpoint.startswith("http:") else None,
        }
        return {f"fs.s3a.bucket.{bucket}.{key}": value for key, value in options.items() if value is not None}


def access_of(options: Mapping[str, object]) -> S3Access:
    """Return the access that the options of a secret grant.

    Raises:
        UsageError: a profile is not there, or half of the credentials is missing.
    """

    def text(name: str) -> str | None:
        value = options.get(name)
        return None if value in (None, "") else str(value)

    key_id, secret, token, region = text("key_id"), text("secret"), text("session_token"), text("region")
    profile = text("profile")
    if profile is not None:
        key_id, secret, token = _profile(profile)
    if (key_id is None) != (secret is None):
        raise UsageError("A secret of type s3 needs both KEY_ID and SECRET, or neither.")
    endpoint = text("endpoint")
    if endpoint is not None and "://" not in endpoint:
        plain = str(options.get("use_ssl", "true")).casefold() in ("false", "0")
        endpoint = f"{'http' if plain else 'https'}://{endpoint}"
    elif endpoint is None:
        endpoint = _endpoint()
    scope = text("scope") or _ANYWHERE
    return S3Access(scope, key_id, secret, token, region, endpoint, (text("url_style") or "path").casefold() == "vhost")


def _endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _profile(name: str) -> tuple[str | None, str | None, str | None]:
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials"
    parser = configparser.RawConfigParser()
    parser.read(path)
    if not parser.has_section(name):
        raise UsageError(f'There is no profile "{name}" in {path}; add it, or name another.')
    section = parser[name]
    return tuple(section.get(f"aws_{key}") for key in ("access_key_id", "secret_access_key", "session_token"))  # type: ignore[return-value]


def grant(owner: str, name: str, access: S3Access) -> None:
    """Grant access to the paths of a scope."""
    with _lock:
        _granted[owner, name.casefold()] = access


def revoke(owner: str, name: str | None = None) -> None:
    """Forgets an owner's credentials under a name, or all of them."""
    with _lock:
        for key in [key for key in _granted if key[0] == owner and name in (None, key[1])]:
            del _granted[key]


def granted() -> tuple[S3Access, ...]:
    """Return all grants, and this machine's endpoint if it has one, for another process."""
    with _lock:
        grants = tuple(_granted.values())
    own = _of_the_machine()
    return grants if own.endpoint is None or any(access.scope == _ANYWHERE for access in grants) else (own, *grants)


def adopt(accesses: Iterable[S3Access]) -> None:
    """Adopt the grants of another process in this one, a worker of Spark's."""
    with _lock:
        _granted.update({("driver", access.scope): access for access in accesses})


def access_to(url: str) -> S3Access:
    """Return the access to an `s3://` URL: the grant of the longest scope that it begins with, else the machine's."""
    with _lock:
        grants = [access for access in _granted.values() if url.startswith(access.scope)]
    if grants:
        return max(grants, key=lambda access: len(access.scope))
    return _of_the_machine()


@dataclass(frozen=True, slots=True)
class Keys:
    """Holds the keys that requests are signed with."""

    key_id: str
    secret: str = field(repr=False)
    token: str | None = field(repr=False)


def keys_of(access: S3Access) -> Keys | None:
    """Return the keys of an access, else those of the environment or the machine's profile.

    None where others find them: a role of the machine, or single sign-on.
    """
    key_id, secret, token = access.key_id, access.secret, access.session_token
    if key_id is None:
        keys = [os.environ.get(f"AWS_{key}") for key in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")]
        key_id, secret, token = keys
    if not key_id:
        try:
            key_id, secret, token = _profile(os.environ.get("AWS_PROFILE") or "default")
        except (UsageError, configparser.Error):
            return None
    return Keys(key_id, secret, token or None) if key_id and secret else None


def _of_the_machine() -> S3Access:
    return S3Access(endpoint=_endpoint(), region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"))
