"""Puts rows into the tables of inlined rows, in the form that each catalog's database takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog.backends import takes_text
from ducklake_lab.catalog.below_sqlalchemy import raw_duckdb
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.postgresql import UNREAD
from ducklake_lab.duckdb import variants
from ducklake_lab.duckdb.casting import texts, typed_values_sql
from ducklake_lab.duckdb.spelling import spelled
from ducklake_lab.duckdb.unsliced import unsliced
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.model.types import DataType

#: Values up to which DuckDB takes them one by one: to show it an Arrow table takes a millisecond.
_FEW_VALUES = 512


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
        if not _insert_texts(raw_duckdb(connection), name, rows, types, snapshot_id):
            _insert_arrow(raw_duckdb(connection), name, rows, types, snapshot_id)
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
        execution_options=UNREAD,
    )


def _encode(database: CatalogDatabase, rows: pa.Table, types: dict[str, DataType]) -> list[tuple[object, ...]]:
    """Values as the driver of a catalog that lacks DuckDB's types takes them."""
    backend = database.location.backend
    by_text = {name: kind for name, kind in types.items() if takes_text(backend, kind) and kind.name != "varchar"}
    columns: dict[str, Sequence[object]] = dict(zip(by_text, zip(*texts(rows, by_text), strict=True), strict=True))
    for name in types.keys() - by_text.keys():
        values = rows.column(name).to_pylist()
        if types[name].name == "variant" and variants.kept_in(types[name], rows.column(name)) is not None:
            raise UnsupportedFeatureError(
                f"A value of {name} has a type that Parquet's variants lack, and only these are kept in the catalog."
            )
        if backend == "postgresql":
            values = [value.encode() if isinstance(value, str) else value for value in values]
        elif backend == "sqlite":
            values = [int(value) if isinstance(value, bool) else value for value in values]
        columns[name] = values
    return list(zip(*(columns[name] for name in types), strict=True))


def _insert_texts(raw: Any, name: str, rows: pa.Table, types: Mapping[str, DataType], snapshot_id: int) -> bool:
    """Inserts a few rows of plain values as the texts that DuckDB casts to them; False where they are not."""
    if rows.num_rows * len(types) > _FEW_VALUES:
        return False
    columns: list[Sequence[object]] = [rows.column(ROW_ID).to_pylist()]
    for column, data_type in types.items():
        values = spelled(rows.column(column), data_type)
        if values is None:
            return False
        columns.append(values)
    row = f"(?, {snapshot_id:d}, NULL{', ?' * len(types)})"
    values_sql = ", ".join([row] * rows.num_rows)
    raw.execute(f"INSERT INTO {quote_identifier(name)} VALUES {values_sql}", list(chain(*zip(*columns, strict=True))))
    return True


def _insert_arrow(raw: Any, name: str, rows: pa.Table, types: Mapping[str, DataType], snapshot_id: int) -> None:
    staged = rows.select([ROW_ID, *types]).rename_columns(["row_id", *(f"c{i}" for i in range(len(types)))])
    casts = "".join(
        f", {typed_values_sql(f'c{i}', data_type, rows.column(column))}"
        for i, (column, data_type) in enumerate(types.items())
    )
    raw.register("ducklake_lab_rows", unsliced(staged))
    try:
        raw.execute(
            f"INSERT INTO {quote_identifier(name)} SELECT row_id, {snapshot_id:d}, NULL{casts} FROM ducklake_lab_rows"
        )
    finally:
        raw.unregister("ducklake_lab_rows")
