"""Rows and deletions kept in the catalog (spec: ducklake_inlined_data_tables, advanced_features/data_inlining)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.backends import inlined_type
from ducklake_lab.catalog.casting import cast_columns, cast_sql, constant_column, quote_identifier, texts
from ducklake_lab.catalog.database import CatalogDatabase, raw_duckdb
from ducklake_lab.catalog.reader import read_columns
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID
from ducklake_lab.model.types import DataType

SystemColumn = Literal["begin_snapshot", "end_snapshot"]


def data_table_name(table_id: int, schema_version: int) -> str:
    return f"ducklake_inlined_data_{table_id}_{schema_version}"


def delete_table_name(table_id: int) -> str:
    return f"ducklake_inlined_delete_{table_id}"


def delete_tables(connection: sa.Connection, database: CatalogDatabase) -> dict[int, str]:
    """The inlined delete tables there are, by table id."""
    prefix = "ducklake_inlined_delete_"
    names = database.tables_with_prefix(connection, prefix)
    return {int(name[len(prefix) :]): name for name in names if name[len(prefix) :].isdigit()}


def inlined_tables(connection: sa.Connection, table_id: int) -> list[tuple[str, int]]:
    """(name, schema version) of a table's inlined data tables, oldest first."""
    i = t.inlined_data_tables
    query = sa.select(i.c.table_name, i.c.schema_version).where(i.c.table_id == table_id).order_by(i.c.schema_version)
    return [(name, version) for name, version in connection.execute(query)]


def run_text(connection: sa.Connection, statement: str) -> sa.CursorResult[Any]:
    """Runs a statement as it stands; psycopg would take a `%` in a quoted name for a parameter."""
    return connection.exec_driver_sql(statement.replace("%", "%%") if _formats(connection) else statement)


def _formats(connection: sa.Connection) -> bool:
    return connection.dialect.name == "postgresql"


def live_at(snapshot_id: int) -> str:
    """Condition: rows visible at the snapshot."""
    return f"begin_snapshot <= {snapshot_id:d} AND (end_snapshot IS NULL OR end_snapshot > {snapshot_id:d})"


def read_rows(
    connection: sa.Connection,
    database: CatalogDatabase,
    table_id: int,
    columns: Sequence[Column],
    condition: str,
    snapshot: SystemColumn = "begin_snapshot",
) -> pa.Table | None:
    """The inlined rows for which a condition on begin_snapshot and end_snapshot holds, in row id order.

    Returns:
        `_ducklake_row_id`, `_ducklake_snapshot_id` (from the column named by `snapshot`), then `columns`;
        None where there are no such rows.
    """
    parts = []
    for name, version in inlined_tables(connection, table_id):
        count = run_text(connection, f"SELECT 1 FROM {quote_identifier(name)} WHERE {condition} LIMIT 1").first()
        if count is None:
            continue
        stored = _columns_of_version(connection, table_id, version)
        rows = _read_table(connection, database, name, stored, condition, snapshot)
        parts.append(project(rows, stored, columns))
    if not parts:
        return None
    return pa.concat_tables(parts).sort_by(ROW_ID)


def _columns_of_version(connection: sa.Connection, table_id: int, version: int) -> tuple[Column, ...]:
    v = t.schema_versions
    begin = connection.scalar(
        sa.select(sa.func.max(v.c.begin_snapshot)).where(v.c.table_id == table_id, v.c.schema_version == version)
    )
    if begin is None:
        raise CatalogError(f"ducklake_schema_versions has no row for table {table_id}, schema version {version}.")
    return read_columns(connection, table_id, begin)


def _read_table(
    connection: sa.Connection,
    database: CatalogDatabase,
    name: str,
    columns: Sequence[Column],
    condition: str,
    snapshot: SystemColumn,
) -> pa.Table:
    types = {column.name: column.data_type for column in columns}
    source = f"FROM {quote_identifier(name)} WHERE {condition}"
    system = pa.schema([(ROW_ID, pa.int64()), (SNAPSHOT_ID, pa.int64())])
    if database.backend == "duckdb":
        casts = "".join(
            f", {cast_sql(quote_identifier(column), data_type)} AS c{i}"
            for i, (column, data_type) in enumerate(types.items())
        )
        raw = raw_duckdb(connection)
        table: pa.Table = raw.execute(f"SELECT row_id, {snapshot}{casts} {source}").to_arrow_table()
        schema = pa.schema([*system, *(pa.field(column, data_type.arrow()) for column, data_type in types.items())])
        return table.rename_columns(schema.names).cast(schema)
    selected = "".join(f", {quote_identifier(column)}" for column in types)
    rows = run_text(connection, f"SELECT row_id, {snapshot}{selected} {source}").all()
    data = pa.table(
        {
            column: pa.array([_from_driver(row[i + 2], data_type.name) for row in rows])
            for i, (column, data_type) in enumerate(types.items())
        }
    )
    values = cast_columns(_untyped_nulls_as_text(data), types)
    ids = [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)]
    return pa.table([*ids, *values.columns], names=[*system.names, *types])


def _from_driver(value: object, type_name: str) -> object:
    """A driver's value in a form that DuckDB casts to the column's type: itself for bytes and numbers, else text."""
    if isinstance(value, bytes | memoryview):
        return bytes(value) if type_name == "blob" else bytes(value).decode()
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _untyped_nulls_as_text(table: pa.Table) -> pa.Table:
    fields = [pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(fields))


def project(rows: pa.Table, stored: Sequence[Column], columns: Sequence[Column]) -> pa.Table:
    """Rows written under one set of columns as rows under another: matched by id, cast, new ones by default.

    Columns of `rows` that are neither (row and snapshot ids) are kept, first.
    """
    names = {column.column_id: column.name for column in stored}
    stored_names = set(names.values())
    arrays: list[pa.ChunkedArray | pa.Array] = []
    target: list[str] = []
    for name in rows.column_names:
        if name not in stored_names:
            arrays.append(rows.column(name))
            target.append(name)
    by_id = {column.column_id: column for column in stored}
    for column in columns:
        old = by_id.get(column.column_id)
        if old is None:
            arrays.append(constant_column(column.initial_default, column.data_type, rows.num_rows))
        else:
            arrays.append(_converted(rows.column(names[column.column_id]), old, column))
        target.append(column.name)
    return pa.table(arrays, names=target)


def _converted(values: pa.ChunkedArray, old: Column, new: Column) -> pa.ChunkedArray:
    """Values of one version of a column as another's: the fields of structs matched by id, as columns are."""
    if old.data_type == new.data_type:
        return values
    if old.type == "struct" and new.type == "struct":
        array = values.combine_chunks()
        fields = pa.table(
            [pc.struct_field(array, [index]) for index in range(len(old.children))],
            names=[child.name for child in old.children],
        )
        projected = project(fields, old.children, new.children)
        parts = [column.combine_chunks() for column in projected.columns]
        names = [child.name for child in new.children]
        return pa.chunked_array([pa.StructArray.from_arrays(parts, names, mask=array.is_null())])
    return cast_columns(pa.table({"v": values}), {"v": new.data_type}).column("v")


def read_deletes(
    connection: sa.Connection, database: CatalogDatabase, table_id: int, up_to: int
) -> dict[int, list[tuple[int, int]]]:
    """Inlined deletions from data files by snapshots up to and including one: file id -> [(position, snapshot id)], sorted."""
    name = delete_table_name(table_id)
    if not database.has_table(connection, name):
        return {}
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    rows = connection.execute(
        sa.text(
            f"SELECT file_id, row_id, begin_snapshot FROM {quote_identifier(name)} "
            "WHERE begin_snapshot <= :up_to ORDER BY file_id, row_id"
        ),
        {"up_to": up_to},
    )
    for file_id, position, begin in rows:
        found[file_id].append((position, begin))
    return dict(found)


def create_data_table(
    connection: sa.Connection, database: CatalogDatabase, table_id: int, schema_version: int, columns: Sequence[Column]
) -> None:
    """Creates and registers the table that takes inlined rows from this schema version on."""
    name = data_table_name(table_id, schema_version)
    backend = database.location.backend
    definitions = "".join(
        f", {quote_identifier(column.name)} {inlined_type(backend, column.data_type)}" for column in columns
    )
    run_text(
        connection,
        f"CREATE TABLE {quote_identifier(name)} "
        f"(row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT{definitions})",
    )
    connection.execute(
        t.inlined_data_tables.insert(), {"table_id": table_id, "table_name": name, "schema_version": schema_version}
    )


def insert_rows(
    connection: sa.Connection,
    database: CatalogDatabase,
    name: str,
    columns: Sequence[Column],
    rows: pa.Table,
    snapshot_id: int,
) -> None:
    """Adds rows (`_ducklake_row_id`, then `columns`) to an inlined data table, as of a snapshot."""
    types = {column.name: column.data_type for column in columns}
    if database.backend == "duckdb":
        raw = raw_duckdb(connection)
        staged = rows.select([ROW_ID, *types]).rename_columns(["row_id", *(f"c{i}" for i in range(len(types)))])
        casts = "".join(f", CAST(c{i} AS {data_type.sql()})" for i, data_type in enumerate(types.values()))
        raw.register("ducklake_lab_rows", staged)
        try:
            raw.execute(
                f"INSERT INTO {quote_identifier(name)} SELECT row_id, {snapshot_id:d}, NULL{casts} "
                "FROM ducklake_lab_rows"
            )
        finally:
            raw.unregister("ducklake_lab_rows")
        return
    encoded = _encode(database, rows, types)
    ids = rows.column(ROW_ID).to_pylist()
    placeholders = ", ".join(f":v{i}" for i in range(len(types)))
    connection.execute(
        sa.text(f"INSERT INTO {quote_identifier(name)} VALUES (:row_id, :begin, NULL, {placeholders})"),
        [
            {"row_id": row_id, "begin": snapshot_id, **{f"v{i}": value for i, value in enumerate(row)}}
            for row_id, row in zip(ids, encoded, strict=True)
        ],
    )


def _encode(database: CatalogDatabase, rows: pa.Table, types: dict[str, DataType]) -> list[tuple[object, ...]]:
    """Values as the driver of a catalog that lacks DuckDB's types takes them."""
    backend = database.location.backend
    as_text = texts(rows, types)
    natives = {name: rows.column(name).to_pylist() for name in types}
    encoded = []
    for index, row in enumerate(as_text):
        values: list[object] = []
        for (name, data_type), text in zip(types.items(), row, strict=True):
            stored_as = inlined_type(backend, data_type)
            native = natives[name][index]
            if native is None or text is None:
                values.append(None)
            elif stored_as == "BYTEA" and not isinstance(native, bytes):
                values.append(text.encode())
            elif stored_as in ("VARCHAR", "TEXT"):
                values.append(text)
            elif stored_as in ("BOOLEAN", "BIGINT", "INTEGER", "SMALLINT", "DOUBLE PRECISION", "REAL", "BLOB", "BYTEA"):
                values.append(int(native) if backend == "sqlite" and isinstance(native, bool) else native)
            else:
                values.append(text)
        encoded.append(tuple(values))
    return encoded


def end_rows(connection: sa.Connection, name: str, row_ids: Sequence[int], snapshot_id: int) -> int:
    """Marks live rows of an inlined data table as deleted by a snapshot; how many there were."""
    listed = ", ".join(f"{row_id:d}" for row_id in row_ids)
    result = run_text(
        connection,
        f"UPDATE {quote_identifier(name)} SET end_snapshot = {snapshot_id:d} "
        f"WHERE end_snapshot IS NULL AND begin_snapshot < {snapshot_id:d} AND row_id IN ({listed})",
    )
    return result.rowcount


def insert_deletes(
    connection: sa.Connection,
    database: CatalogDatabase,
    table_id: int,
    deletes: Sequence[tuple[int, Sequence[int]]],
    snapshot_id: int,
) -> None:
    """Records deletions (file id, positions) in the table's inlined delete table, creating it when needed."""
    name = quote_identifier(delete_table_name(table_id))
    if not database.has_table(connection, delete_table_name(table_id)):
        connection.exec_driver_sql(f"CREATE TABLE {name} (file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)")
    connection.execute(
        sa.text(f"INSERT INTO {name} VALUES (:file, :position, :snapshot)"),
        [
            {"file": file_id, "position": position, "snapshot": snapshot_id}
            for file_id, positions in deletes
            for position in positions
        ],
    )
