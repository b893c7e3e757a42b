"""Tables of a catalog database as rows: metadata tables, inlined data, and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.backends import Flag, UtcTimestamp, Uuid
from ducklake_lab.catalog.below_sqlalchemy import raw_duckdb, run_text
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.quack import AWAITED
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.errors import CatalogError, EntryNotFoundError, did_you_mean
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType

Columns = Sequence[tuple[str, DataType]]


def metadata_columns(database: CatalogDatabase, connection: sa.Connection, name: str) -> Columns:
    """The columns of a table of the catalog database, typed as the reference shows them.

    Raises:
        EntryNotFoundError: there is no such table.
    """
    return [(column, kind) for column, kind, _ in _columns(database, connection, name)]


def read_metadata(database: CatalogDatabase, connection: sa.Connection, name: str) -> pa.Table:
    """All rows of a table of the catalog database.

    Raises:
        EntryNotFoundError: there is no such table.
    """
    columns = _columns(database, connection, name)
    schema = pa.schema([pa.field(column, kind.arrow()) for column, kind, _ in columns])
    if connection.dialect.name == "duckdb":
        selected = ", ".join(
            f"CAST({quote_identifier(column)} AS {kind.sql()}) AS {quote_identifier(column)}"
            for column, kind, _ in columns
        )
        fetched = arrow(raw_duckdb(connection), f"SELECT {selected} FROM {quote_identifier(name)}")
        return fetched.cast(schema)
    table = sa.table(name, *[sa.column(column, kind) for column, _, kind in columns])
    rows = connection.execute(sa.select(table)).all()
    values = [[_plain(row[index], field.type) for row in rows] for index, field in enumerate(schema)]
    return pa.table([pa.array(v, field.type) for v, field in zip(values, schema, strict=True)], schema=schema)


def run_on_metadata(database: CatalogDatabase, statement: str) -> tuple[pa.Table | None, int]:
    """Runs a statement in the catalog's database, in its own dialect, and commits it.

    Returns:
        The rows it returned, if any, and how many rows it changed.

    Raises:
        CatalogError: the database refuses it.
    """
    with database.connect() as connection:
        try:
            result = run_text(connection, statement, options=AWAITED)
        except sa.exc.DBAPIError as error:
            reason = str(error.orig).strip().splitlines()[0]
            raise CatalogError(f"The catalog {database.location.display} refused the statement: {reason}") from error
        rows = None
        count = result.rowcount
        if result.returns_rows:
            names, values = list(result.keys()), result.all()
            if names == ["Count"]:
                count = values[0][0] if values else 0
            else:
                rows = pa.table({name: [row[index] for row in values] for index, name in enumerate(names)})
        connection.commit()
        return rows, max(count, 0)


def _plain(value: object, kind: pa.DataType) -> Any:
    if value is not None and pa.types.is_string(kind) and not isinstance(value, str):
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return value


def _columns(database: CatalogDatabase, connection: sa.Connection, name: str) -> list[tuple[str, DataType, Any]]:
    """(name, type, SQLAlchemy type) of each column."""
    table = t.metadata.tables.get(name.casefold())
    declared = {column.name: column.type for column in table.columns} if table is not None else {}
    names = database.tables_with_prefix(connection, "")
    actual = next((table for table in names if table.casefold() == name.casefold()), None)
    if actual is None:
        raise EntryNotFoundError(f'The catalog has no table "{name}".{did_you_mean(name, names)}')
    if connection.dialect.name == "duckdb":
        described = raw_duckdb(connection).execute(f"DESCRIBE {quote_identifier(actual)}").fetchall()
        return [(row[0], _from_duckdb(row[1]), None) for row in described]
    typed_columns = []
    for column in sa.inspect(connection).get_columns(actual, schema=database.location.schema):
        kind = declared.get(column["name"], column["type"])
        # the reference shows SQLite's declared types, booleans and times included
        shown = column["type"] if connection.dialect.name == "sqlite" else kind
        typed_columns.append(
            (column["name"], _from_sqlalchemy(shown), sa.types.NullType() if shown is not kind else kind)
        )
    return typed_columns


def _from_sqlalchemy(kind: Any) -> DataType:
    for classes, name in (
        ((Flag, sa.Boolean), "boolean"),
        ((UtcTimestamp,), "timestamptz"),
        ((Uuid, sa.Uuid), "uuid"),
        ((sa.SmallInteger,), "int16"),
        ((sa.BigInteger,), "int64"),
        ((sa.Integer,), "int32"),
        ((sa.REAL,), "float32"),
        ((sa.Float,), "float64"),
        ((sa.LargeBinary,), "blob"),
        ((sa.Date,), "date"),
        ((sa.Time,), "time"),
    ):
        if isinstance(kind, classes):
            return DataType(name)
    if isinstance(kind, sa.DateTime):
        return DataType("timestamptz" if kind.timezone else "timestamp")
    return DataType("varchar")


_DUCKDB = {
    DataType(name).sql(): name
    for name in (
        "boolean int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 date time timestamp timestamptz "
        "timestamp_s timestamp_ms timestamp_ns varchar blob uuid"
    ).split()
}


def _from_duckdb(text: str) -> DataType:
    if text.startswith("DECIMAL(") and not text.endswith("]"):
        return DataType(text.lower())
    # nested and rarer types are shown as text
    return DataType(_DUCKDB.get(text, "varchar"))
