"""Options of a lake: global, per schema, per table (spec: ducklake_metadata, usage/configuration)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.duckdb.zones import process_time_zone
from ducklake_lab.errors import CatalogError

#: Rows of one INSERT, and deletions per file of one DELETE, up to which they are kept in the catalog.
DEFAULT_INLINING_ROW_LIMIT = 10


#: The option for deletion vectors, and its value where an encrypted lake would write them and nobody asked for plain ones.
VECTORS, UNASKED = "write_deletion_vectors", "unasked"
#: Scope of an option: ("table" or "schema", its id), or (None, None) for the lake.
Scope = tuple[str | None, int | None]
#: Scopes as options() names them.
SCOPES = {None: "GLOBAL", "schema": "SCHEMA", "table": "TABLE"}


@dataclass(frozen=True, slots=True)
class Options:
    """The options set in a lake: (scope, scope id, key) -> value; the global scope is (None, None).

    Attributes:
        forced: values of the session that come before those of the lake.
        time_zone: the session's.
    """

    values: Mapping[tuple[str | None, int | None, str], str] = field(default_factory=dict)
    forced: Mapping[str, str] = field(default_factory=dict)
    time_zone: str = "UTC"

    def get(self, key: str, *, schema_id: int | None = None, table_id: int | None = None) -> str | None:
        """The value that applies to a table: its own, else its schema's, else the lake's."""
        if key in self.forced:
            return self.forced[key]
        for scope in (("table", table_id), ("schema", schema_id), (None, None)):
            value = self.values.get((*scope, key))
            if value is not None:
                return value
        return None

    def inlining_row_limit(self, *, schema_id: int | None = None, table_id: int | None = None) -> int:
        """Rows up to which an insert is inlined; 0 switches inlining off."""
        text = self.get("data_inlining_row_limit", schema_id=schema_id, table_id=table_id)
        if text is None:
            return DEFAULT_INLINING_ROW_LIMIT
        if not text.isdigit():
            raise CatalogError(f'The option data_inlining_row_limit is "{text}", which is not a number of rows.')
        return int(text)


@dataclass(slots=True)
class SessionOptions:
    """Options that a session gives to its lakes, and that are not stored in them.

    Attributes:
        defaults: for lakes that have no value of their own.
        forced: for all lakes, whatever value they have.
        versions: `ducklake_version` of lakes that are attached and `storage_version` of files that are created, as far as
            they were set.
        retry: `max_retry_count`, `retry_wait_ms` and `retry_backoff` of commits, as far as they were set.
        time_zone: gives the zone in which times without one are read, and times are shown.
        report: called after each query to a catalog with the lake's name, the query, and its seconds.
    """

    defaults: dict[str, str] = field(default_factory=dict)
    forced: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    retry: dict[str, float] = field(default_factory=dict)
    time_zone: Callable[[], str] = process_time_zone
    report: Callable[[str, str, float], None] | None = None


#: Scope, id of its schema or table, key, value.
OptionRow = tuple[str | None, int | None, str, str]
OPTIONS = sa.select(t.lake_metadata.c.scope, t.lake_metadata.c.scope_id, t.lake_metadata.c.key, t.lake_metadata.c.value)


def read_options(connection: sa.Connection) -> Sequence[OptionRow]:
    """All options that are set in a lake, of all scopes, in one query."""
    return [(scope, scope_id, key, value) for scope, scope_id, key, value in connection.execute(OPTIONS)]


def options_of(rows: Sequence[OptionRow], session: SessionOptions, attached: Mapping[str, str]) -> Options:
    """All options of a lake.

    Args:
        rows: those that are set in it.
        session: the session's own.
        attached: options of ATTACH, which the lake's own come before.
    """
    defaults = {**session.defaults, **attached}
    encrypted = any(scope is None and key == "encrypted" and value == "true" for scope, _, key, value in rows)
    if encrypted and defaults.get(VECTORS) == "true":
        defaults[VECTORS] = UNASKED
    values: dict[tuple[str | None, int | None, str], str] = {
        (None, None, key): value for key, value in defaults.items()
    }
    values.update({(scope, scope_id, key): value for scope, scope_id, key, value in rows})
    return Options(values, dict(session.forced), session.time_zone())


def write_option(connection: sa.Connection, scope: Scope, key: str, value: str | None) -> None:
    """Store an option, or remove it with None; the caller commits."""
    m = t.lake_metadata
    kind, scope_id = scope
    where = sa.and_(m.c.key == key, m.c.scope.is_(None))
    if kind is not None:
        where = sa.and_(m.c.key == key, m.c.scope == kind, m.c.scope_id == scope_id)
    connection.execute(m.delete().where(where))
    if value is not None:
        connection.execute(m.insert(), {"key": key, "value": value, "scope": kind, "scope_id": scope_id})
