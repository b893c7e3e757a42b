"""Writes the queries that SHOW TABLES and its like stand for."""

from __future__ import annotations

from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.model.quoting import quote_text, schema_path
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.system_tables import SystemTables
from ducklake_lab.sql import operations as op

_ALL_TABLES = """
SELECT database_name AS database, schema_name AS schema, table_name AS name,
    list(column_name ORDER BY column_index) AS column_names, list(data_type ORDER BY column_index) AS column_types,
    any_value(database_name) = 'temp' AS temporary
FROM duckdb_columns() WHERE NOT internal GROUP BY database_name, schema_name, schema_oid, table_name
UNION ALL SELECT database_name, schema_name, view_name, CAST([] AS VARCHAR[]), CAST([] AS VARCHAR[]), temporary
FROM duckdb_views() WHERE NOT internal AND column_count = 0 ORDER BY 1, 2, 3
"""


def listing_query(listing: op.Listing, lakes: Lakes, database: SessionDatabase, system: SystemTables) -> str:
    """Returns the query of a listing, over DuckDB's functions that list entries.

    Raises:
        EntryNotFoundError: there is no database or schema of the name after FROM.
    """

    def is_in(catalog: str, schema: str | None, oid: str = "schema_oid") -> str:
        found = f"database_name = {quote_text(catalog)}"
        if schema is None:
            return found
        lake = lakes.find(catalog)
        if lake is None:
            return f"{found} AND schema_name = {quote_text(schema)}"
        return f"{found} AND {oid} = {system.schema_oid(lake, schema)}"

    match listing.kind:
        case "all":
            return _ALL_TABLES
        case "databases":
            return "SELECT database_name FROM duckdb_databases() WHERE NOT internal ORDER BY 1"
        case "places":
            return "SELECT * FROM pragma_database_list"
        case "schemas":
            current = is_in(*_place(None, lakes, database), "oid")
            return (
                f'SELECT database_name, schema_name, {current} AS "current" FROM duckdb_schemas() '
                "WHERE database_name NOT IN ('system', 'temp') AND schema_name NOT IN ('information_schema', 'pg_catalog') "
                "ORDER BY 1, 2"
            )
    catalog, schema = _place(listing.source, lakes, database)
    where = is_in(catalog, schema)
    if listing.source is None:  # all that an unqualified name may mean
        where = f"({where} OR ({is_in(catalog, 'main')}) OR temporary)"
    names = f"SELECT table_name AS name FROM duckdb_tables() WHERE NOT internal AND {where}"
    views = f"SELECT view_name FROM duckdb_views() WHERE NOT internal AND {where}"
    return f"{names} UNION ALL {views} ORDER BY 1"


def _place(source: tuple[str, ...] | None, lakes: Lakes, database: SessionDatabase) -> tuple[str, str | None]:
    """Returns the database and the schema that a listing covers; None for all schemas."""
    if source is None:
        return ("memory", "main") if lakes.at_home else (lakes.get().alias, lakes.current_schema)
    if lakes.find(source[0]) is None and database.is_attached(source[0]):
        return source[0], source[1] if len(source) == 2 else None
    if len(source) == 2:
        lake = lakes.get(source[0])
        return lake.alias, lakes.state(lake).schema(schema_path(source[1:])).name
    other = lakes.find(source[0])
    if other is not None:
        return other.alias, None
    lake = lakes.get()
    return lake.alias, lakes.state(lake).schema(schema_path(source)).name
