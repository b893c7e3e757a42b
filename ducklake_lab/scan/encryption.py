"""Keys of encrypted files: one for each file, kept in the catalog as Base64 (spec: advanced_features/encryption).

Files are encrypted as DuckDB does it, which no other Parquet reader understands. DuckDB has the key in a variable, so
that it is in no query, and in no error or plan that shows one.
"""

from __future__ import annotations

import base64
import binascii
import os

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.errors import DataFileError

_KEY_BYTES = 16


def new_key() -> str:
    """A key for a new file, as the catalog keeps it."""
    return base64.b64encode(os.urandom(_KEY_BYTES)).decode()


def key_bytes(key: str, path: str) -> bytes:
    """The key of a file.

    Raises:
        DataFileError: the catalog has something else in its place.
    """
    try:
        decoded = base64.b64decode(key, validate=True)
    except binascii.Error:
        decoded = b""
    if len(decoded) not in (16, 24, 32):
        raise DataFileError(f"The catalog holds no valid encryption key of {path}; restore it from a backup.")
    return decoded


def encryption_sql(connection: duckdb.DuckDBPyConnection, key: str, path: str) -> str:
    """Return the value of DuckDB's option `encryption_config` for a file; valid until the next call.

    Raises:
        DataFileError: as for `key_bytes`.
    """
    connection.execute("SET VARIABLE ducklake_key = $1", [key_bytes(key, path)])
    return "{footer_key_value: getvariable('ducklake_key')}"
