"""Settings of the magics in `[tool.ducklake_lab]` of pyproject.toml, and the file of connections."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ducklake_lab.errors import UsageError, did_you_mean

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


def project_settings(folder: Path, known: Iterable[str]) -> dict[str, Any]:
    """Returns `[tool.ducklake_lab]` from the nearest pyproject.toml in the folder or above it; {} without one.

    A relative path in `connections` is relative to that file.

    Raises:
        UsageError: the file is not valid TOML, or has an unknown setting.
    """
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            break
    else:
        return {}
    settings: dict[str, object] = _read(path).get("tool", {}).get("ducklake_lab", {})
    known = list(known)
    for name in settings:
        if name not in known:
            raise UsageError(f"[tool.ducklake_lab] in {path} has no setting {name}.{did_you_mean(name, known)}")
    if "connections" in settings:
        settings["connections"] = str(path.parent / Path(str(settings["connections"])).expanduser())
    return settings


def read_connections(path: Path) -> dict[str, dict[str, Any]]:
    """Returns the connections in a file by name, as written: `[name]` with `uri` and attach options; {} for no file.

    Raises:
        UsageError: the file is not valid TOML, or a connection has no uri.
    """
    if not path.is_file():
        return {}
    by_name = _read(path)
    for name, connection in by_name.items():
        if not isinstance(connection, dict) or not isinstance(connection.get("uri"), str):
            raise UsageError(f'The connection {name} in {path} needs a uri, e.g. uri = "ducklake:lake.ducklake".')
    return by_name


def expand(connection: Mapping[str, object], environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Replaces `${NAME}` and `${NAME:-default}` in a connection by environment variables.

    Raises:
        UsageError: a variable without default is not set; values are never shown.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] in environment:
            return environment[match[1]]
        if match[2] is not None:
            return match[2]
        raise UsageError(f"The connection needs the environment variable {match[1]}, which is not set.")

    return {key: _VARIABLE.sub(value, text) if isinstance(text, str) else text for key, text in connection.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
