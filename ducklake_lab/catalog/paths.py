"""Paths of a lake: schema below data path, table below schema, file below table (spec: usage/paths)."""

from __future__ import annotations

import re
from urllib.parse import quote

from ducklake_lab.model.entries import Schema, Table


def is_absolute(path: str) -> bool:
    return path.startswith("/") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|[A-Za-z]:[\\/]", path) is not None


def resolve(base: str, path: str, relative: bool) -> str:
    """An absolute path or URL; `base` ends in `/`."""
    return base + path if relative else path


def folder_name(name: str, uuid: str) -> str:
    """The folder, ending in `/`, of a new schema or table: its name if that is a plain one, else its UUID.

    File systems take names of up to 255 bytes.
    """
    return f"{name if re.fullmatch(r'[A-Za-z0-9_-]{1,255}', name) else uuid}/"


def schema_folder(data_path: str, schema: Schema) -> str:
    return resolve(data_path, schema.path, schema.path_is_relative)


def table_folder(data_path: str, schema: Schema, table: Table) -> str:
    return resolve(schema_folder(data_path, schema), table.path, table.path_is_relative)


def hive_segment(key: str, value: str | None) -> str:
    """`key=value` with everything but unreserved characters percent-encoded, as Hive names folders."""
    text = "__HIVE_DEFAULT_PARTITION__" if value is None else value
    return f"{quote(key, safe='')}={quote(text, safe=' ')}"
