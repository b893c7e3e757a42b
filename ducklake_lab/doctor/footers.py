"""Counts and sizes that the files themselves have."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lab.doctor.context import Context
from ducklake_lab.doctor.plan import NoRepairError
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.file_access import connect
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.errors import DataFileError
from ducklake_lab.scan.encryption import encryption_sql

#: Bytes at the end of a Parquet file: the length of its footer, and a mark.
_END = 8
_UNREADABLE = (pa.ArrowException, duckdb.Error, DataFileError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class Footer:
    """Facts of a Parquet file: its rows, its bytes, and the bytes of its footer."""

    rows: int
    bytes: int
    size: int


def read_footer(context: Context, path: str, key: object) -> Footer:
    """Read the footer of a Parquet file.

    Raises:
        NoRepairError: the file is missing, or cannot be read.
    """
    try:
        return footer_of(context, path, key)
    except _UNREADABLE as error:
        raise NoRepairError(_reason(error, f"{path} cannot be read")) from None


def footer_of(context: Context, path: str, key: object) -> Footer:
    """Read the footer of a Parquet file; errors of readers pass."""
    with context.storage.open_input(path) as source:
        size = int(source.size())
        source.seek(max(0, size - _END))
        end = source.read(_END)
        if key is None:
            source.seek(0)
            rows = int(pq.read_metadata(source).num_rows)
    if key is not None:
        rows = int(_query(context, path, key, "SELECT count(*) AS n").column(0)[0].as_py())
    return Footer(rows, size, int.from_bytes(end[:4], "little"))


def check_whole(context: Context, path: str, key: object) -> None:
    """Check that all values of a file can be read.

    Raises:
        NoRepairError: some cannot.
    """
    try:
        _query(context, path, key, "SELECT count(COLUMNS(*))")
    except _UNREADABLE as error:
        raise NoRepairError(_reason(error, f"not all of {path} can be read")) from None


def _query(context: Context, path: str, key: object, select: str) -> pa.Table:
    with context.storage.local_copy(path) as local, connect() as connection:
        config = f", encryption_config = {encryption_sql(connection, str(key), path)}" if key is not None else ""
        return arrow(connection, f"{select} FROM read_parquet($1{config})", [local])


def _reason(error: Exception, otherwise: str) -> str:
    """Return the first line of an error, which names the file where the error is one of ours."""
    line = str(error).strip().partition("\n")[0]
    return line if isinstance(error, DataFileError) else f"{otherwise}: {line}"
