"""All that differs between catalog databases: column types, inlined types, text forms."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from ducklake_lab.catalog.uri import Backend
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.types import DataType

#: MySQL compares it by code points; its TEXT would end after 64 kB.
_MYSQL_TEXT = mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin")


class Text(TypeDecorator[str]):
    """VARCHAR of any length."""

    impl = sa.String()
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(_MYSQL_TEXT if dialect.name == "mysql" else sa.String())


class UtcTimestamp(TypeDecorator[datetime]):
    """TIMESTAMP WITH TIME ZONE; text in SQLite, as DuckDB casts it; DATETIME in UTC in MySQL. Python side: aware, in UTC."""

    impl = sa.TIMESTAMP(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        types: dict[str, TypeEngine[Any]] = {"sqlite": sa.VARCHAR(), "mysql": mysql.DATETIME(fsp=6)}
        return dialect.type_descriptor(types.get(dialect.name, sa.TIMESTAMP(timezone=True)))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> object:
        if value is None:
            return None
        utc = value.astimezone(UTC)
        if dialect.name == "mysql":
            return utc.replace(tzinfo=None)
        return timestamptz_text(utc) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: object, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if isinstance(value, datetime):
            return value.astimezone(UTC) if value.tzinfo is not None else value.replace(tzinfo=UTC)
        text = str(value)
        try:
            moment = datetime.fromisoformat(text + ":00" if text[-3:-2] in ("+", "-") else text)
        except ValueError:
            raise CatalogError(
                f"The catalog is damaged: {text[:40]!r} is not a time; restore it from a backup."
            ) from None
        # some clients write UTC and leave the offset out
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class Uuid(TypeDecorator[str]):
    """UUID as text on the Python side; VARCHAR in SQLite and MySQL."""

    impl = sa.Uuid()
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        native = dialect.name not in ("sqlite", "mysql")
        return dialect.type_descriptor(sa.Uuid(as_uuid=False) if native else sa.VARCHAR(36))

    def process_result_value(self, value: object, dialect: Dialect) -> str | None:
        return None if value is None else str(value)


class Flag(TypeDecorator[bool]):
    """BOOLEAN; BIGINT 0 or 1 in SQLite, where the reference declares it so."""

    impl = sa.Boolean()
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(sa.BigInteger() if dialect.name == "sqlite" else sa.Boolean())

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> object:
        return int(value) if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: object, dialect: Dialect) -> bool | None:
        return None if value is None else bool(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], bool | None] | None:
        # the driver gives bools already; a call for each of tens of thousands of rows would be slow
        native = dialect.name in ("duckdb", "postgresql")
        return None if native else super().result_processor(dialect, coltype)


def timestamptz_text(value: datetime) -> str:
    """The text DuckDB casts a TIMESTAMPTZ in UTC to: `2024-01-15 12:30:00.5+00`."""
    utc = value.astimezone(UTC)
    fraction = f".{utc.microsecond:06d}".rstrip("0") if utc.microsecond else ""
    return f"{utc:%Y-%m-%d %H:%M:%S}{fraction}+00"


_SQLITE_NATIVE = {
    "boolean": "BIGINT",
    "int8": "BIGINT",
    "int16": "BIGINT",
    "int32": "BIGINT",
    "int64": "BIGINT",
    "uint8": "BIGINT",
    "uint16": "BIGINT",
    "uint32": "BIGINT",
    "blob": "BLOB",
    "variant": "BLOB",
    "null": "BIGINT",
}
_POSTGRES_NATIVE = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "INTEGER",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "float32": "REAL",
    "float64": "DOUBLE PRECISION",
    "blob": "BYTEA",
    "variant": "BYTEA",
    "null": "INTEGER",
    "varchar": "BYTEA",
    "json": "BYTEA",
}


_MYSQL_NATIVE = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "SMALLINT",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "blob": "LONGBLOB",
    "variant": "LONGBLOB",
    "null": "INTEGER",
}
_NATIVE = {"sqlite": _SQLITE_NATIVE, "postgresql": _POSTGRES_NATIVE, "mysql": _MYSQL_NATIVE}
#: Types that PostgreSQL has too, and takes as text.
_POSTGRES_BY_TEXT = ("uuid", "time", "timetz", "interval")


def inlined_type(backend: Backend, data_type: DataType) -> str:
    """The column type that holds values of `data_type` in an inlined data table of the backend."""
    if backend == "duckdb":
        return data_type.sql()
    if backend == "postgresql" and (data_type.decimal is not None or data_type.name in _POSTGRES_BY_TEXT):
        return data_type.sql()
    text = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" if backend == "mysql" else "VARCHAR"
    return _NATIVE[backend].get(data_type.name, text)


#: Columns of one table, and bytes of a row that cannot be moved elsewhere.
_MOST_COLUMNS = {"sqlite": 2000, "postgresql": 1600, "mysql": 1017}
_ROW_BYTES = {"postgresql": 8160, "mysql": 8126}
#: Bytes of a value in a row: exact for types of one length, the most for others, whose rest is stored elsewhere.
_FIXED = {
    "BOOLEAN": 1,
    "SMALLINT": 2,
    "INTEGER": 4,
    "BIGINT": 8,
    "REAL": 4,
    "DOUBLE PRECISION": 8,
    "UUID": 16,
    "TIME": 8,
}
_MOVED = {"postgresql": 24, "mysql": 41}
#: Columns that each table of PostgreSQL has.
_POSTGRES_SYSTEM = frozenset(("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"))


def holds_columns(backend: Backend, columns: Mapping[str, DataType], own: int) -> bool:
    """Returns whether a table of the backend can have columns of these types, and hold any row of them.

    PostgreSQL cuts names after 63 bytes; like the reference we keep such rows in files.

    Args:
        own: columns of eight bytes that it has as well.
    """
    if len(columns) + own > _MOST_COLUMNS.get(backend, len(columns) + own):
        return False
    if backend == "postgresql" and any(len(name.encode()) > 63 or name in _POSTGRES_SYSTEM for name in columns):
        return False
    if backend == "mysql" and any(len(name) > 64 or name.endswith(" ") for name in columns):
        return False
    most = _ROW_BYTES.get(backend)
    if most is None:
        return True
    sizes = (_FIXED.get(inlined_type(backend, kind), _MOVED[backend]) for kind in columns.values())
    return sum(sizes) + own * 8 + len(columns) // 8 + 32 <= most


def takes_text(backend: Backend, data_type: DataType) -> bool:
    """Returns whether an inlined data table of the backend holds values of `data_type` as DuckDB's text."""
    return data_type.name not in _NATIVE[backend]


def new_uuid() -> str:
    """A fresh UUID (version 7, so that it sorts by time) as text."""
    millis = int(datetime.now(UTC).timestamp() * 1000)
    random = uuid.uuid4().int
    value = (millis << 80) | (0x7 << 76) | ((random >> 64 & 0xFFF) << 64) | (0b10 << 62) | (random & ((1 << 62) - 1))
    return str(uuid.UUID(int=value))
