"""Options of a lake: global, per schema, per table (spec: ducklake_metadata, usage/configuration)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.errors import CatalogError

#: Rows of one INSERT, and deletions per file of one DELETE, up to which they are kept in the catalog.
DEFAULT_INLINING_ROW_LIMIT = 10


@dataclass(frozen=True, slots=True)
class Options:
    """The options set in a lake: (scope, scope id, key) -> value; the global scope is (None, None)."""

    values: Mapping[tuple[str | None, int | None, str], str] = field(default_factory=dict)

    def get(self, key: str, *, schema_id: int | None = None, table_id: int | None = None) -> str | None:
        """The value that applies to a table: its own, else its schema's, else the lake's."""
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


def read_options(connection: sa.Connection) -> Options:
    """All options of a lake, in one query."""
    m = t.lake_metadata
    rows = connection.execute(sa.select(m.c.scope, m.c.scope_id, m.c.key, m.c.value)).all()
    return Options({(scope, scope_id, key): value for scope, scope_id, key, value in rows})
