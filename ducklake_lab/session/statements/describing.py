"""Runs SHOW TABLES and DESCRIBE, over lakes and the session's own database."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import BindError, EntryNotFoundError, SqlError, UnsupportedFeatureError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.session.names.system_tables import default_text
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query
from ducklake_lab.sql.plan import DESCRIPTION, Described


class Describing:
    """Runs statements that list the entries of a schema, or the columns of a table or query."""

    def __init__(self, sources: Sources, database: SessionDatabase) -> None:
        self._sources = sources
        self._database = database

    def show(self, listing: op.Listing) -> Result:
        """Lists entries.

        Raises:
            EntryNotFoundError: there is no database or schema of the name after FROM.
        """
        return self._sources.query(parse_query(self._sources.names.listing(listing)))

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
            return described((c.name, c.data_type.sql(), c.nulls_allowed, default_text(c)) for c in table.columns)
        query = statement.query or parse_query(f"FROM {_quoted(statement.table)}")
        plan = self._sources.plan(query)
        try:
            return described(self._sources.described(plan))
        except (SqlError, UnsupportedFeatureError):
            if isinstance(plan.refusal, BindError):
                raise plan.refusal from None
            result = self._sources.run(plan, describe=True)
            return described((name, kind, True, None) for name, kind in zip(result.columns, result.types, strict=True))

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


def described(columns: Iterable[Described]) -> Result:
    """Returns the rows of DESCRIBE for columns."""
    rows = list(columns)
    nulls = [None] * len(rows)
    values = (
        [row[0] for row in rows],
        [row[1] for row in rows],
        ["YES" if row[2] else "NO" for row in rows],
        nulls,
        [row[3] for row in rows],
        nulls,
    )
    return Result(
        InMemory(pa.table({name: pa.array(each, pa.string()) for name, each in zip(DESCRIPTION, values, strict=True)}))
    )


def _quoted(name: op.TableName | None) -> str:
    return ".".join(map(quote_identifier, (*reversed(name.qualifiers), name.name))) if name else ""
