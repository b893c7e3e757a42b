"""Rows in the order of a table's sort keys (spec: ducklake_sort_info, advanced_features/sorted_tables)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import typed_sql
from ducklake_lab.duckdb.file_access import connect
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.duckdb.unsliced import unsliced
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import BindError
from ducklake_lab.model.entries import Column, SortSpec, Table
from ducklake_lab.model.quoting import quote_identifier


def sort_rows(rows: pa.Table, table: Table, stored: Sequence[Column], ties: Sequence[str]) -> pa.Table:
    """The rows in the order of the table's sort keys, then of some of their own columns, ascending, then as they come.

    Args:
        rows: begin with columns `stored`, by position; columns of the table that are not among them count as NULL.

    Raises:
        BindError: a sort key cannot be evaluated here.
    """
    keys = sort_sql(table.sort)
    if not keys and not ties:
        return rows
    if not keys:
        return rows.sort_by([(name, "ascending") for name in ties])
    names = [f"c{i}" for i in range(len(stored))]
    numbered = rows.select(range(len(stored))).rename_columns(names)
    for i, tie in enumerate(ties):
        numbered = numbered.append_column(f"t{i}", rows.column(tie))
    numbered = numbered.append_column("n", pa.array(range(rows.num_rows), pa.int64()))
    places = {column.column_id: i for i, column in enumerate(stored)}
    visible = [
        (typed_sql(f"c{places[c.column_id]}", c.data_type) if c.column_id in places else f"NULL::{c.data_type.sql()}")
        + f" AS {quote_identifier(c.name)}"
        for c in table.columns
    ]
    order = ", ".join([*keys, *(f"ducklake_t{i}" for i in range(len(ties))), "ducklake_n"])
    hidden = ", ".join([*(f"t{i} AS ducklake_t{i}" for i in range(len(ties))), "n AS ducklake_n"])
    connection = connect()
    try:
        connection.register("source", unsliced(numbered))
        order = arrow(
            connection, f"SELECT ducklake_n FROM (SELECT {', '.join(visible)}, {hidden} FROM source) ORDER BY {order}"
        )
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise BindError(f"The sort keys of {table.name} cannot be evaluated here: {worded(error)}") from None
    finally:
        connection.close()
    return rows.take(order.column(0))


def sort_sql(sort: SortSpec | None) -> list[str]:
    """The keys as ORDER BY takes them; those in another dialect than DuckDB's do not count."""
    if sort is None:
        return []
    return [
        f"{key.expression} {key.direction} {key.null_order.replace('_', ' ')}"
        for key in sort.keys
        if key.dialect == "duckdb"
    ]
