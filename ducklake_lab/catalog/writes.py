"""Statements that change a catalog: held while a commit reads, and run together at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any, Concatenate, ParamSpec

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog import quack, versions
from ducklake_lab.catalog.backends import Flag, UtcTimestamp
from ducklake_lab.catalog.below_sqlalchemy import raw_duckdb, run_text
from ducklake_lab.catalog.postgresql import UNREAD, insert_arrays
from ducklake_lab.model.quoting import quote_identifier

#: Rows above which DuckDB takes them as one Arrow table, and PostgreSQL as arrays, rather than one by one.
_BULK = 8
#: Rows that PostgreSQL takes in one statement.
_MOST = 10_000

P = ParamSpec("P")
Values = dict[str, object] | Sequence[dict[str, object]] | None


class Writes:
    """Changes of a catalog that one database transaction makes.

    Nothing runs before `flush`, so that reads see the catalog as it was before. They are the same on each kind of
    catalog, and a served one gets all changes as one text.

    Attributes:
        connection: for reads.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        #: Each takes the execution options of its statement.
        self._steps: list[Callable[[Mapping[str, object]], object]] = []
        #: Rows that more of the same table and columns may join; they go after the statements.
        self._rows: dict[tuple[sa.Table, frozenset[str]], list[dict[str, object]]] = {}

    @cached_property
    def _tables(self) -> Mapping[str, sa.Table]:
        """The metadata tables of the catalog's version, by name."""
        return versions.tables(versions.of(self.connection)).tables

    # Hold

    def write(self, statement: sa.Update | sa.Delete, values: Values = None) -> None:
        """Hold a statement, with one row of values or with many; rows of its table that are held come before it."""
        for key in [key for key in self._rows if key[0] is statement.table]:
            self._steps.append(partial(self._insert, key[0], self._rows.pop(key)))
        self.write_to_earlier(statement, values)

    def write_to_earlier(self, statement: sa.Insert | sa.Update | sa.Delete, values: Values = None) -> None:
        """Hold a statement that concerns no row that is held."""
        self._steps.append(lambda options: self.connection.execute(statement, values, execution_options=options))

    def text(self, statement: str) -> None:
        """Hold a statement as it is written, on tables without held rows."""
        self.then(run_text, statement, UNREAD)

    def then(
        self, run: Callable[Concatenate[sa.Connection, P], object], *arguments: P.args, **options: P.kwargs
    ) -> None:
        """Hold a function that reads nothing, and writes only to tables without held rows."""
        self._steps.append(lambda _: run(self.connection, *arguments, **options))

    def insert(self, table: sa.Table, **values: object) -> None:
        self.insert_many(table, [values])

    def insert_many(self, table: sa.Table, rows: Sequence[dict[str, object]]) -> None:
        """Hold rows of the same columns; columns that the catalog's version lacks are left out."""
        if rows:
            rows = [self.known(table, row) for row in rows]
            self._rows.setdefault((table, frozenset(rows[0])), []).extend(rows)

    def expect(self, query: sa.Select[Any], value: int) -> None:
        """Have all changes refused, as by a quicker commit, unless a query still gives a value that was read.

        Only a served catalog has to ask: elsewhere reads and changes are one database transaction.
        """
        quack.expect(self.connection, query, value)

    def has(self, table: sa.Table) -> bool:
        """Return whether the catalog's version has a metadata table."""
        return table.name in self._tables

    def known(self, table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
        """The row without columns that the catalog's version lacks."""
        columns = self._tables[table.name].c
        lacking = row.keys() - columns.keys()
        return {name: value for name, value in row.items() if name not in lacking} if lacking else row

    # Run

    def flush(self) -> None:
        """Run all that is held; nothing is written after it, so that errors of all come up now."""
        steps, self._steps = self._steps, []
        steps += [partial(self._insert, table, rows) for (table, _), rows in self._rows.items()]
        self._rows = {}
        for number, step in enumerate(steps, 1):
            step({} if number == len(steps) else UNREAD)

    def _insert(self, table: sa.Table, rows: Sequence[dict[str, object]], options: Mapping[str, object]) -> None:
        backend = self.connection.dialect.name
        if backend == "duckdb" and len(rows) > _BULK:
            self._insert_bulk(table, rows)
        elif backend == "postgresql" and len(rows) > _BULK:
            self._insert_arrays(table, rows, options)
        else:
            self.connection.execute(_insert(table), rows, execution_options=options)

    def _insert_bulk(self, table: sa.Table, rows: Sequence[dict[str, object]]) -> None:
        """Inserts rows into a DuckDB catalog as one Arrow table: row by row, each takes a millisecond."""
        fields = [pa.field(name, _arrow_type(table.c[name])) for name in rows[0]]
        batch = pa.Table.from_pylist(list(rows), pa.schema(fields))
        raw = raw_duckdb(self.connection)
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
            self.connection.execute(statement, arrays, execution_options=options)


@cache
def _insert(table: sa.Table) -> sa.Insert:
    """Return the statement, made once: making it takes as long as running it."""
    return table.insert()


def _arrow_type(column: sa.Column[Any]) -> pa.DataType:
    if isinstance(column.type, sa.BigInteger):
        return pa.int64()
    if isinstance(column.type, UtcTimestamp):
        return pa.timestamp("us", tz="UTC")
    return pa.bool_() if isinstance(column.type, Flag) else pa.string()
