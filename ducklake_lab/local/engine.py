"""DuckDB in process, for what needs no Spark: constants, metadata, small results."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import duckdb
import pyarrow as pa

from ducklake_lab.errors import BindError, ConstraintError, DuckLakeError, SqlError, UnsupportedFeatureError

_local = threading.local()


def evaluate(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Runs a query over Arrow tables; nothing else is in reach of it, no files and no network.

    Args:
        sql: one SELECT in DuckDB SQL.
        tables: rows by the name under which the query sees them.

    Raises:
        BindError: the query names what does not exist.
        ConstraintError: a value does not fit a type.
        SqlError: anything else that DuckDB refuses.
    """
    cursor = _sealed().cursor()
    try:
        for name, table in tables.items():
            cursor.register(name, table)
        return _plain(cursor.execute(sql).to_arrow_table())
    except duckdb.Error as error:
        raise _translated(error) from error
    finally:
        cursor.close()


def _sealed() -> duckdb.DuckDBPyConnection:
    """This thread's connection, without access to anything outside of it."""
    connection: duckdb.DuckDBPyConnection | None = getattr(_local, "connection", None)
    if connection is None:
        connection = duckdb.connect(":memory:")
        connection.execute("SET TimeZone = 'UTC'; SET enable_external_access = false; SET lock_configuration = true")
        _local.connection = connection
    return connection


def _plain(table: pa.Table) -> pa.Table:
    """Arrow's own types in the place of DuckDB's extension types (UUID, JSON, HUGEINT, …)."""
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if isinstance(field.type, pa.ExtensionType):
            column = _unwrapped(column)
            field = pa.field(field.name, column.type)
        columns.append(column)
        fields.append(field)
    return pa.table(columns, schema=pa.schema(fields))


def _unwrapped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    name = column.type.extension_name
    if name == "arrow.uuid":
        return pa.chunked_array([pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())])
    if name == "arrow.json":
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    raise UnsupportedFeatureError(f"Results of the type {name.rsplit('.', 1)[-1]} are not supported yet; cast them.")


def _translated(error: duckdb.Error) -> DuckLakeError:
    text = str(error).strip().split("\n\nLINE ")[0].splitlines()
    message = " ".join(line.strip() for line in text if line.strip())
    _, _, rest = message.partition("Error: ")
    message = rest or message
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        return BindError(message)
    if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException | duckdb.ConstraintException):
        return ConstraintError(message)
    if isinstance(error, duckdb.NotImplementedException):
        return UnsupportedFeatureError(message)
    return SqlError(message)
