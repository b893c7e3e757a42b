"""Options of writing data files: those of a lake that concern Parquet (spec: usage/configuration)."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass

from ducklake_lab.catalog.attach_options import PLAIN_VECTORS
from ducklake_lab.catalog.options import UNASKED, VECTORS, Options
from ducklake_lab.catalog.versions.version import Version
from ducklake_lab.duckdb.file_access import connect, load_encryption
from ducklake_lab.errors import CatalogError, UnsupportedFeatureError
from ducklake_lab.model.entries import Table

#: Bytes of a data file that inserts and merges aim at.
DEFAULT_TARGET_FILE_SIZE = 512_000_000

_UNITS = {
    "": 1,
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{unit + suffix: 1000**i for i, unit in enumerate("kmgt", 1) for suffix in ("", "b")},
    **{unit + "ib": 1024**i for i, unit in enumerate("kmgt", 1)},
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of data files; None where DuckDB's own choice is taken.

    Attributes:
        compression: Parquet codec.
        compression_level: of codecs that have levels.
        row_group_size: rows.
        row_group_size_bytes: bytes.
        hive_file_pattern: files of partitioned tables lie in folders `key=value`.
        time_zone: in which partition keys are computed of times that have one.
        target_file_size: bytes; a file of new rows that has reached it is followed by another.
        version: of Parquet, `v1` or `v2`.
        encrypted: each file is encrypted with a key of its own.
        per_thread_output: each task of an insert writes files of its own; None where the lake does not say.
    """

    compression: str = "snappy"
    compression_level: int | None = None
    row_group_size: int | None = None
    row_group_size_bytes: int | None = None
    version: str | None = None
    hive_file_pattern: bool = True
    time_zone: str = "UTC"
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE
    encrypted: bool = False
    per_thread_output: bool | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of keeping deletions.

    Attributes:
        inline_limit: of a committed file with at most this many newly deleted rows, the positions go into the catalog.
        vectors: delete files are deletion vectors, where these can hold all that is needed.
        vectors_by_snapshot: these can hold the snapshot of each deletion.
        encrypted: as of WriteOptions; vectors hold positions only and are as they are.
    """

    inline_limit: int
    vectors: bool = False
    vectors_by_snapshot: bool = False
    encrypted: bool = False


def delete_options(options: Options, table: Table, version: Version) -> DeleteOptions:
    """The options that apply to a table.

    Raises:
        CatalogError: a stored option has an impossible value.
        UnsupportedFeatureError: an encrypted lake would write plain deletion vectors, and nobody asked for these.
    """
    scope = {"schema_id": table.schema_id, "table_id": table.table_id}
    wanted = options.get(VECTORS, **scope)
    if wanted == UNASKED:
        raise UnsupportedFeatureError(PLAIN_VECTORS)
    vectors = wanted in ("true", "plain")
    limit = options.inlining_row_limit(**scope)
    return DeleteOptions(limit, vectors, version.vectors_by_snapshot, _is_encrypted(options))


def _is_encrypted(options: Options) -> bool:
    """Returns whether the lake's files are encrypted; a writer loads what encrypts them."""
    return (options.get("encrypted") or "").casefold() == "true"


def check_encrypts(options: WriteOptions | DeleteOptions) -> None:
    """Checks that files can be written, before work begins elsewhere.

    Raises:
        UnsupportedFeatureError: they are to be encrypted, and nothing that does is installed.
    """
    if options.encrypted:
        with closing(connect()) as connection:
            load_encryption(connection)


def target_file_size(options: Options, table: Table) -> int:
    """Bytes.

    Raises:
        CatalogError: the stored option is no size.
    """
    text = options.get("target_file_size", schema_id=table.schema_id, table_id=table.table_id)
    size = DEFAULT_TARGET_FILE_SIZE if text is None else parse_bytes(text)
    if size is None:
        raise CatalogError(
            f'The option target_file_size of {table.name} is "{text}", which is not a size such as 512MB.'
        )
    return size


def parse_bytes(text: str) -> int | None:
    """The number that a size such as `512MB` or `1.5 GiB` stands for; None where the text is no size.

    Units of 1000, those with an i of 1024.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.casefold())
    if match is None or match[2] not in _UNITS:
        return None
    return int(float(match[1]) * _UNITS[match[2]])


def write_options(options: Options, table: Table) -> WriteOptions:
    """The options that apply to a table.

    Raises:
        CatalogError: a stored option has an impossible value.
    """

    def text(key: str) -> str | None:
        return options.get(key, schema_id=table.schema_id, table_id=table.table_id)

    def number(key: str) -> int | None:
        value = text(key)
        if value is None or value.isdigit():
            return int(value) if value is not None else None
        raise CatalogError(f'The option {key} is "{value}", which is not a number.')

    encrypted = _is_encrypted(options)
    version = text("parquet_version")
    return WriteOptions(
        compression=text("parquet_compression") or "snappy",
        compression_level=number("parquet_compression_level"),
        row_group_size=number("parquet_row_group_size"),
        row_group_size_bytes=number("parquet_row_group_size_bytes"),
        # values of encrypted files are not to be read in their paths
        hive_file_pattern=(text("hive_file_pattern") or str(not encrypted).casefold()) != "false",
        time_zone=options.time_zone,
        encrypted=encrypted,
        per_thread_output=None if text("per_thread_output") is None else text("per_thread_output") == "true",
        target_file_size=target_file_size(options, table),
        version=None if version is None else f"v{version.removeprefix('v').removeprefix('V')}",
    )
