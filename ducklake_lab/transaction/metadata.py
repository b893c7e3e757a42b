"""Statements on the metadata tables inside one committing database transaction, and the ids it hands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.backends import Flag, UtcTimestamp
from ducklake_lab.catalog.below_sqlalchemy import raw_duckdb
from ducklake_lab.catalog.postgresql import UNREAD, insert_arrays
from ducklake_lab.model.entries import LOCAL_ID_START, Snapshot
from ducklake_lab.model.quoting import quote_identifier

#: Rows above which DuckDB takes them as one Arrow table, and PostgreSQL as arrays, rather than one by one.
_BULK = 8
#: Rows that PostgreSQL takes in one statement.
_MOST = 10_000


class Ids:
    """Ids allocated by a commit, counting on from the newest snapshot.

    Attributes:
        next_catalog_id, next_file_id, schema_version: values of the new snapshot.
    """

    def __init__(self, latest: Snapshot) -> None:
        self.next_catalog_id = latest.next_catalog_id
        self.next_file_id = latest.next_file_id
        self.schema_version = latest.schema_version
        self._committed: dict[int, int] = {}

    def catalog(self, local_id: int) -> int:
        """The committed id of an entry, allocated when it is local and first seen."""
        if local_id < LOCAL_ID_START:
            return local_id
        if local_id not in self._committed:
            self._committed[local_id] = self.next_catalog_id
            self.next_catalog_id += 1
        return self._committed[local_id]

    def known(self, local_id: int) -> int:
        """Return the committed id of an entry that was allocated, or committed, before."""
        return self._committed.get(local_id, local_id)

    def file(self, local_id: int | None = None) -> int:
        """The id of a new file, remembered for the local one."""
        self.next_file_id += 1
        if local_id is not None:
            self._committed[local_id] = self.next_file_id - 1
        return self.next_file_id - 1


class Metadata:
    """Writes rows that begin or end with one snapshot.

    Inserted rows are held until another statement needs the connection, or `flush`: rows of one table, such as the
    statistics of many files, are one statement then.
    """

    def __init__(self, connection: sa.Connection, snapshot_id: int) -> None:
        self._connection = connection
        self.snapshot_id = snapshot_id
        self._tables = versions.tables(versions.of(connection)).tables
        self._held: dict[tuple[sa.Table, frozenset[str]], list[dict[str, object]]] = {}

    @property
    def connection(self) -> sa.Connection:
        """The connection, on which all rows are inserted."""
        self.flush()
        return self._connection

    def end(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> None:
        """Ends the live rows for which the condition holds, of a table that the catalog's version has."""
        if table.name not in self._tables:
            return
        self.write(
            table.update().where(condition, table.c.end_snapshot.is_(None)).values(end_snapshot=self.snapshot_id)
        )

    def write(
        self, statement: sa.Executable, values: dict[str, object] | Sequence[dict[str, object]] | None = None
    ) -> None:
        """Run a statement without a result, with one row of values or with many."""
        self.connection.execute(statement, values, execution_options=UNREAD)

    def known(self, table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
        """The row without columns that the catalog's version lacks."""
        columns = self._tables[table.name].c
        lacking = row.keys() - columns.keys()
        return {name: value for name, value in row.items() if name not in lacking} if lacking else row

    def insert(self, table: sa.Table, **values: object) -> None:
        self.insert_many(table, [values])

    def insert_many(self, table: sa.Table, rows: Sequence[dict[str, object]]) -> None:
        """Inserts rows of the same columns; columns that the catalog's version lacks are left out."""
        if rows:
            rows = [self.known(table, row) for row in rows]
            self._held.setdefault((table, frozenset(rows[0])), []).extend(rows)

    def flush(self, *, last: bool = False) -> None:
        """Inserts the rows that are held; `last`: nothing is written after them, so that errors of all come up now."""
        held, self._held = self._held, {}
        for number, ((table, _), rows) in enumerate(held.items(), 1):
            options = {} if last and number == len(held) else UNREAD
            backend = self._connection.dialect.name
            if backend == "duckdb" and len(rows) > _BULK:
                self._insert_bulk(table, rows)
            elif backend == "postgresql" and len(rows) > _BULK:
                self._insert_arrays(table, rows, options)
            else:
                self._connection.execute(_insert(table), rows, execution_options=options)

    def _insert_bulk(self, table: sa.Table, rows: Sequence[dict[str, object]]) -> None:
        """Inserts rows into a DuckDB catalog as one Arrow table: row by row, each takes a millisecond."""
        fields = [pa.field(name, _arrow_type(table.c[name])) for name in rows[0]]
        batch = pa.Table.from_pylist(list(rows), pa.schema(fields))
        raw = raw_duckdb(self._connection)
        raw.register("ducklake_lab_rows", batch)
        try:
            raw.execute(f"INSERT INTO {quote_identifier(table.name)} BY NAME SELECT * FROM ducklake_lab_rows")
        finally:
            raw.unregister("ducklake_lab_rows")

    def _insert_arrays(self, table: sa.Table, rows: Sequence[dict[str, object]], options: Mapping[str, object]) -> None:
        """Inserts rows into a PostgreSQL catalog as an array for each column."""
        names = tuple(rows[0])
        statement = insert_arrays(table, names)
        for start in range(0, len(rows), _MOST):
            part = rows[start : start + _MOST]
            arrays = {f"c{index}": [row[name] for row in part] for index, name in enumerate(names)}
            self._connection.execute(statement, arrays, execution_options=options)


@cache
def _insert(table: sa.Table) -> sa.Insert:
    """Return the statement, made once: making it takes as long as running it."""
    return table.insert()


def schedule_deletion(metadata: Metadata, data_path: str, files: Sequence[tuple[int, str]]) -> None:
    """Notes files, (id, absolute path), that no snapshot needs any more; cleanup_old_files deletes them."""
    now = datetime.now(UTC)
    rows = []
    for file_id, path in files:
        relative = path.startswith(data_path)
        stored = path[len(data_path) :] if relative else path
        rows.append({"data_file_id": file_id, "path": stored, "path_is_relative": relative, "schedule_start": now})
    if rows:
        metadata.write(t.files_scheduled_for_deletion.insert(), rows)


def _arrow_type(column: sa.Column[Any]) -> pa.DataType:
    if isinstance(column.type, sa.BigInteger):
        return pa.int64()
    if isinstance(column.type, UtcTimestamp):
        return pa.timestamp("us", tz="UTC")
    return pa.bool_() if isinstance(column.type, Flag) else pa.string()
