"""SHOW TABLES and DESCRIBE, over lakes and the session's own database."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import BindError, EntryNotFoundError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import quote_identifier, quote_text, schema_path
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.system_tables import default_text
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query

_ALL_TABLES = """
SELECT database_name AS database, schema_name AS schema, table_name AS name,
    list(column_name ORDER BY column_index) AS column_names, list(data_type ORDER BY column_index) AS column_types,
    any_value(database_name) = 'temp' AS temporary
FROM duckdb_columns() WHERE NOT internal GROUP BY database_name, schema_name, schema_oid, table_name
UNION ALL SELECT database_name, schema_name, view_name, CAST([] AS VARCHAR[]), CAST([] AS VARCHAR[]), temporary
FROM duckdb_views() WHERE NOT internal AND column_count = 0 ORDER BY 1, 2, 3
"""


class Describing:
    """Runs statements that list the entries of a schema, or the columns of a table or query."""

    def __init__(self, lakes: Lakes, sources: Sources, database: SessionDatabase) -> None:
        self._lakes = lakes
        self._sources = sources
        self._database = database

    def show_tables(self, statement: op.ShowTables) -> Result:
        if statement.databases:
            return self._sources.query(
                parse_query("SELECT database_name FROM duckdb_databases() WHERE NOT internal ORDER BY 1")
            )
        if statement.all_schemas:
            return self._sources.query(parse_query(_ALL_TABLES))
        catalog, schema = self._shown(statement.source)
        where = f"database_name = {quote_text(catalog)} AND {self._of_schema(catalog, schema)}"
        if statement.source is None:
            where = f"({where} OR temporary)"
        names = f"SELECT table_name AS name FROM duckdb_tables() WHERE NOT internal AND {where}"
        views = f"SELECT view_name FROM duckdb_views() WHERE NOT internal AND {where}"
        return self._sources.query(parse_query(f"{names} UNION ALL {views} ORDER BY 1"))

    def _of_schema(self, catalog: str, schema: str) -> str:
        lake = self._lakes.find(catalog)
        if lake is None:
            return f"schema_name = {quote_text(schema)}"
        return f"schema_oid = {self._sources.names.system.schema_oid(lake, schema)}"

    def _shown(self, source: tuple[str, ...] | None) -> tuple[str, str]:
        """Returns the (database, schema) to list."""
        if source is None:
            return ("memory", "main") if self._lakes.at_home else (self._lakes.get().alias, self._lakes.current_schema)
        if self._lakes.find(source[0]) is None and self._database.is_attached(source[0]):
            return source[0], source[1] if len(source) == 2 else "main"
        if len(source) == 2:
            lake = self._lakes.get(source[0])
            return lake.alias, self._lakes.state(lake).schema(schema_path(source[1:])).name
        other = self._lakes.find(source[0])
        if other is not None:
            return other.alias, "main"
        lake = self._lakes.get()
        return lake.alias, self._lakes.state(lake).schema(schema_path(source)).name

    def describe(self, statement: op.Describe) -> Result:
        """Describes a table or a query; SHOW of a setting returns its value.

        Raises:
            EntryNotFoundError, BindError: it does not exist.
        """
        if not statement.or_setting or statement.table is None:
            return self._describe(statement)
        try:
            return self._describe(statement)
        except (BindError, EntryNotFoundError):
            name = statement.table.name
            value = f"SELECT value AS {quote_identifier(name)} FROM duckdb_settings()"
            setting = self._database.run(f"{value} WHERE lower(name) = {quote_text(name.casefold())}")
            if not setting.table.num_rows:
                raise
            return Result(InMemory(setting.table), types=setting.types)

    def _describe(self, statement: op.Describe) -> Result:
        table = self._table(statement.table) if statement.table is not None else None
        if table is not None:
            rows = [(c.name, c.data_type.sql(), c.nulls_allowed, default_text(c)) for c in table.columns]
        else:
            query = statement.query or parse_query(f"FROM {_quoted(statement.table)}")
            plan = self._sources.plan(query)
            if isinstance(plan.refusal, BindError):
                raise plan.refusal
            columns = self._sources.columns(plan)
            if columns is None:
                result = self._sources.run(plan, describe=True)
                columns = list(zip(result.columns, result.types, strict=True))
            rows = [(name, str(kind), True, None) for name, kind in columns]
        return described(rows)

    def _table(self, name: op.TableName) -> Table | None:
        """Returns the lake table with that name; None if the name means something else."""
        names = self._sources.names
        if names.handed_in(name) or names.temporary_view(name) or names.owns(name) or names.is_metadata_table(name):
            return None
        entry = names.entry(name)
        if entry.find() is None and (
            entry.state.find_view(entry.schema, entry.name) is not None or names.replacement(name) is not None
        ):
            return None
        return entry.table()


def described(columns: Iterable[tuple[str, str, bool, str | None]]) -> Result:
    """Returns the rows of DESCRIBE for columns: name, type, whether NULLs are allowed, default."""
    rows = list(columns)
    nulls = pa.nulls(len(rows), pa.string())
    return Result(
        InMemory(
            pa.table(
                {
                    "column_name": [row[0] for row in rows],
                    "column_type": [row[1] for row in rows],
                    "null": ["YES" if row[2] else "NO" for row in rows],
                    "key": nulls,
                    "default": pa.array([row[3] for row in rows], pa.string()),
                    "extra": nulls,
                }
            )
        )
    )


def _quoted(name: op.TableName | None) -> str:
    return ".".join(map(quote_identifier, (*reversed(name.qualifiers), name.name))) if name else ""
