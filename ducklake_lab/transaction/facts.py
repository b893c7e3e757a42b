"""Facts of the tables that a commit adds rows to, with what the commit itself changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from ducklake_lab.catalog.inlined import NewestTable
from ducklake_lab.catalog.table_facts import TableColumnStats, TableFacts, read_table_facts
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.transaction.metadata import Metadata
from ducklake_lab.transaction.transaction import Transaction


class CommitFacts:
    """Facts of tables as the catalog will have them when the entries of a commit are written.

    Its reads show the catalog as it was before, so that what the commit changes is noted here.
    """

    def __init__(self, transaction: Transaction, metadata: Metadata, latest: Snapshot) -> None:
        self._metadata = metadata
        self._kept = transaction.lake.cache.by_newest(latest)
        self._altered: dict[int, int] = {}
        self._newest: dict[int, NewestTable] = {}
        self._columns: dict[int, dict[int, TableColumnStats | None]] = defaultdict(dict)

    def alter(self, table_id: int, schema_version: int) -> None:
        """Note that a table is altered in a schema version."""
        self._altered[table_id] = schema_version

    def give_inlined_table(self, table_id: int, name: str, schema_version: int) -> None:
        """Note that a table gets an inlined data table for its columns from a schema version on."""
        self._newest[table_id] = NewestTable(name, schema_version, schema_version)

    def set_column_stats(self, table_id: int, columns: Mapping[int, TableColumnStats | None]) -> None:
        """Note other statistics of columns of a table, or with None that they are gone."""
        self._columns[table_id].update(columns)

    def of(self, table_id: int) -> TableFacts:
        """Return the facts of a table."""
        if table_id not in self._altered:
            kept = self._kept.tables.get(table_id) if self._kept is not None else None
            return kept or read_table_facts(self._metadata.connection, table_id)
        facts = read_table_facts(self._metadata.connection, table_id)
        newest = self._newest.get(table_id)
        if newest is None and facts.newest_table is not None:
            newest = replace(facts.newest_table, altered=self._altered[table_id])
        columns = {**facts.columns, **self._columns[table_id]}
        known = {column_id: stats for column_id, stats in columns.items() if stats is not None}
        return replace(facts, newest_table=newest, columns=known)
