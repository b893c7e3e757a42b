"""Indexes that make large catalogs quicker; no client needs them, and all keep them right.

They are for catalogs in servers and in SQLite, whose databases otherwise read the rows of all tables to find those of
one. A DuckDB file is scanned quickly without, and its indexes would be in the way of later migrations.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import UnsupportedFeatureError

#: Tables with many rows in a lake of many tables, read by table id.
_OFFERED: Mapping[sa.Table, tuple[str, ...]] = {
    t.data_file: ("table_id",),
    t.delete_file: ("table_id", "data_file_id"),
    t.file_column_stats: ("table_id", "column_id", "data_file_id"),
    t.file_partition_value: ("table_id", "data_file_id"),
    t.table_column_stats: ("table_id",),
}


def offered(database: CatalogDatabase) -> list[sa.Index]:
    """The indexes that a catalog may have, none in DuckDB; they are not those of `tables.metadata`."""
    if database.backend == "duckdb":
        return []
    indexes = []
    for table, columns in _OFFERED.items():
        copy = table.to_metadata(sa.MetaData())
        indexes.append(sa.Index(f"{table.name}_by_{'_'.join(columns)}", *(copy.c[name] for name in columns)))
    return indexes


def statement(index: sa.Index, database: CatalogDatabase) -> str:
    """Return the CREATE INDEX of an index, for users to run."""
    dialect = sa.make_url(database.location.url).get_dialect()()
    return str(CreateIndex(index).compile(dialect=dialect))


def existing(connection: sa.Connection, database: CatalogDatabase) -> set[str]:
    """Names of the offered indexes that the catalog has."""
    inspector = sa.inspect(connection)
    existing_names: set[str] = set()
    for index in offered(database):
        assert index.table is not None
        names = {present["name"] for present in inspector.get_indexes(index.table.name)}
        existing_names |= {str(index.name)} & names
    return existing_names


def create(lake: Lake, connection: sa.Connection) -> list[str]:
    """Makes the indexes that are missing, and commits; gives their names.

    Raises:
        UnsupportedFeatureError: the catalog is in DuckDB.
        TransactionError, CatalogVersionError: the lake can only be read.
    """
    return _change(lake, connection, there=False)


def drop(lake: Lake, connection: sa.Connection) -> list[str]:
    """Drops the indexes that are there, and commits; gives their names. Errors as in `create`."""
    return _change(lake, connection, there=True)


def _change(lake: Lake, connection: sa.Connection, *, there: bool) -> list[str]:
    if lake.location.backend == "duckdb":
        raise UnsupportedFeatureError(
            f"{lake.location.display} is a database of DuckDB, which is quick without indexes; none are made in it."
        )
    lake.check_writable()
    existing_names = existing(connection, lake.database)
    chosen = [index for index in offered(lake.database) if (str(index.name) in existing_names) == there]
    for index in chosen:
        (index.drop if there else index.create)(connection)
    connection.commit()
    return [str(index.name) for index in chosen]
