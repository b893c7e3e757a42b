"""SET and RESET: the reference's settings for lakes; all other settings are DuckDB's own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ducklake_lab.catalog import versions
from ducklake_lab.catalog.duckdb_files import checked_storage_version
from ducklake_lab.catalog.options import SessionOptions
from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.files.options import parse_bytes
from ducklake_lab.session.names.attached_lakes import Lakes

_STATEMENT = re.compile(
    r'(?P<verb>SET|RESET|PRAGMA)\s+(?:(?:GLOBAL|SESSION|LOCAL)\s+)?(?P<quote>"?)(?P<name>\w+)(?P=quote)'
    r"(?:\s*(?:=|\bTO\b)\s*(?P<value>.*))?",
    re.IGNORECASE | re.DOTALL,
)

#: Settings for the retry of commits that conflict.
_RETRY = ("ducklake_max_retry_count", "ducklake_retry_wait_ms", "ducklake_retry_backoff")
#: Settings that apply if the lake has no value.
_DEFAULTS = {
    "ducklake_default_data_inlining_row_limit": "data_inlining_row_limit",
    "ducklake_write_deletion_vectors": "write_deletion_vectors",
}
#: Settings that override the lake's value.
_FORCED = {"ducklake_target_file_size": "target_file_size"}
#: The default lake version for ATTACH: of new lakes, and required of existing ones.
_VERSION = "ducklake_default_version"
#: The storage version of new catalog files; also a setting of DuckDB itself.
_STORAGE = "storage_compatibility_version"
_KNOWN = (*_RETRY, *_DEFAULTS, *_FORCED, _VERSION)


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of SET, RESET or `PRAGMA name = value`; `value` is SQL, None for RESET."""

    name: str
    value: str | None


def read_setting(text: str) -> Setting | None:
    """Returns the setting of SET, RESET or `PRAGMA name = value`; None for other text."""
    match = _STATEMENT.fullmatch(text.strip())
    if match is None or (match["verb"].upper() == "RESET") == (match["value"] is not None):
        return None
    return Setting(match["name"].casefold(), match["value"])


def is_lake_setting(setting: Setting) -> bool:
    return setting.name.startswith("ducklake_") or is_duckdb_setting(setting)


def is_duckdb_setting(setting: Setting) -> bool:
    """Returns whether a setting for lakes is also a setting of DuckDB."""
    return setting.name == _STORAGE


def apply(setting: Setting, value: object, lakes: Lakes) -> None:
    """Sets a setting for lakes; None resets it.

    Raises:
        UsageError: the setting does not exist, or the value does not fit it.
    """
    options: SessionOptions = lakes.options
    name = setting.name
    if name in _RETRY:
        _put(options.retry, name.removeprefix("ducklake_"), None if value is None else _number(name, value))
    elif name in _DEFAULTS:
        text = None if value is None else str(value).casefold()
        if text is not None and name.endswith("row_limit"):
            text = str(int(_number(name, value)))
        _put(options.defaults, _DEFAULTS[name], text)
    elif name == _VERSION:
        text = None if value is None else versions.written(str(value)).name
        _put(options.versions, "ducklake_version", text)
    elif name == _STORAGE:
        _put(options.versions, "storage_version", None if value is None else checked_storage_version(str(value)))
    elif name in _FORCED:
        text = None if value is None or value == "" else str(_bytes(name, value))
        _put(options.forced, _FORCED[name], text)
    else:
        raise UsageError(f'There is no setting "{name}".{did_you_mean(name, _KNOWN)}')


def _put(values: dict[str, object] | dict[str, str] | dict[str, float], key: str, value: object) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value  # type: ignore[assignment]


def _number(name: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1
    if number < 0:
        raise UsageError(f"{name} is a number that is not negative, not {value!r}.")
    return number


def _bytes(name: str, value: object) -> int:
    size = parse_bytes(str(value))
    if not size:
        raise UsageError(f"{name} is a size such as 512MB, not {value!r}.")
    return size
