"""Reads rows of data files with DuckDB into Arrow, in process and in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import carried_sql
from ducklake_lab.duckdb.file_access import connect
from ducklake_lab.duckdb.results import arrow, batches
from ducklake_lab.duckdb.unsliced import unsliced
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import ConstraintError, DuckLakeError, SqlError
from ducklake_lab.files.duckdb_query import DuckDbQuery, Group, Wanted, alike, rows_of, unreadable
from ducklake_lab.files.parts import check_encrypted
from ducklake_lab.model.entries import Column
from ducklake_lab.model.positions import Positions
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.encryption import encryption_sql
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.storage import Storage

_SYSTEM = pa.schema([kind.field(name) for name, kind in VIRTUAL_COLUMNS.items()])
_BATCH_ROWS = 100_000
_storage = Storage()


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Query over a table whose result rows each come from one row.

    Attributes:
        sql: in DuckDB's SQL.
        view: the name under which it sees the rows, virtual columns included.
        columns: names and types of its result.
        time_zone: in which texts and timestamps are turned into each other.
        tables: other tables that the query names.
    """

    sql: str
    view: str
    columns: tuple[tuple[str, DataType], ...]
    time_zone: str
    tables: tuple[tuple[str, pa.Table], ...] = ()

    def over(self, rows_sql: str) -> str:
        """SQL of its result, as Arrow carries it, of the rows of another query."""
        names = [f"c{i}" for i in range(len(self.columns))]
        carried = (carried_sql(name, kind) for name, (_, kind) in zip(names, self.columns, strict=True))
        return (
            f"WITH {quote_identifier(self.view)} AS NOT MATERIALIZED ({rows_sql}) "
            f"SELECT {', '.join(carried)} FROM ({self.sql}) AS q({', '.join(names)})"
        )


def schema_of(columns: Sequence[Column], virtual: bool) -> pa.Schema:
    """The fields of some columns, and of the virtual ones."""
    fields = [column.data_type.field(column.name) for column in columns]
    return pa.schema([*fields, *_SYSTEM] if virtual else fields)


def read_files(
    columns: Sequence[Column],
    files: Sequence[ScanFile],
    positions: Mapping[str, Positions],
    virtual: bool,
    keep_deleted: bool = False,
    *,
    time_zone: str,
) -> pa.Table:
    """The rows of files at whose positions nothing is deleted, or with `keep_deleted` only those that are.

    Args:
        time_zone: in which times without a zone are read where the column has one.

    Raises:
        DataFileError: a file is missing or unreadable.
    """
    tables = [
        batch
        for group in alike(columns, files)
        for batch in _read_group(
            columns, group, positions, _wanted(columns, virtual, keep_deleted), whole=True, time_zone=time_zone
        )
    ]
    return pa.concat_tables(tables)


def stream_file(
    columns: Sequence[Column],
    file: ScanFile,
    positions: Positions | None,
    virtual: bool,
    keep_deleted: bool,
    time_zone: str,
) -> Iterator[pa.Table]:
    """Read one file, some rows at a time and by one thread."""
    deleted = {} if positions is None else {file.path: positions}
    for group in alike(columns, [file]):
        wanted = _wanted(columns, virtual, keep_deleted)
        yield from _read_group(columns, group, deleted, wanted, whole=False, time_zone=time_zone)


def stream_query(
    query: RowQuery,
    columns: Sequence[Column],
    files: Sequence[ScanFile],
    positions: Mapping[str, Positions],
    rows: tuple[int, int | None],
) -> Iterator[pa.Table]:
    """The result of a query over rows of files, some at a time and by one thread.

    Args:
        positions: of deleted rows, which it does not see, by path.
        rows: in each file the position of the first of the rows, and that after the last; None for all to the end.

    Raises:
        DataFileError: a file is missing or unreadable.
        ConstraintError: a value does not fit a type.
        SqlError: anything else that DuckDB refuses.
    """
    wanted = Wanted([column.name for column in columns], virtual=True, rows=rows)
    for group in alike(columns, files):
        yield from _read_group(columns, group, positions, wanted, whole=False, query=query, time_zone=query.time_zone)


def _wanted(columns: Sequence[Column], virtual: bool, keep_deleted: bool) -> Wanted:
    # numbers instead of names: DuckDB folds case, the columns need not
    return Wanted([f"c{i}" for i in range(len(columns))], virtual, keep_deleted=keep_deleted)


def _read_group(
    columns: Sequence[Column],
    group: Group,
    positions: Mapping[str, Positions],
    wanted: Wanted,
    *,
    whole: bool,
    time_zone: str,
    query: RowQuery | None = None,
) -> Iterator[pa.Table]:
    """Read files that are alike."""
    first = group.files[0]
    key = first.data_file.encryption_key
    with (
        _storage.local_copies(file.path for file in group.files) as places,
        connect(parallel=whole) as connection,
    ):
        rows_query = None
        try:
            connection.execute(f"SET TimeZone = {quote_text(time_zone)}")
            encryption = None
            if key is not None:
                encryption = encryption_sql(connection, key, first.path)
                source = f"read_parquet($1, encryption_config = {encryption})"
                stored = arrow(connection, f"FROM {source} LIMIT 0", [places[first.path]])
                check_encrypted(columns, first, stored.schema)
            rows_query = rows_of("files", columns, group, positions, places, wanted, encryption)
            others = query.tables if query is not None else ()
            for name, rows in (*rows_query.tables.items(), *others):
                connection.register(name, unsliced(rows))
            schema = schema_of(columns, wanted.virtual)
            if query is not None:
                sql, schema = query.over(rows_query.sql), pa.schema([kind.field(name) for name, kind in query.columns])
            else:
                carried = (carried_sql(name, c.data_type) for name, c in zip(wanted.names, columns, strict=True))
                system = VIRTUAL_COLUMNS if wanted.virtual else ()
                sql = f"SELECT {', '.join((*carried, *system))} FROM ({rows_query.sql})"
            for batch in [arrow(connection, sql)] if whole else map(_table, batches(connection, sql, _BATCH_ROWS)):
                yield batch.rename_columns(schema.names).cast(schema)
        except duckdb.Error as error:
            raise _failure(error, rows_query, places, query, encrypted=key is not None) from (
                error if key is None else None
            )


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _failure(
    error: duckdb.Error,
    rows_query: DuckDbQuery | None,
    places: Mapping[str, str],
    query: RowQuery | None,
    *,
    encrypted: bool,
) -> DuckLakeError:
    """Return the error of a failed read: a file is damaged, or the query fails on its rows."""
    of_file = rows_query.failure(error) if rows_query is not None and not encrypted else None
    if encrypted and any(place in str(error) for place in places.values()):
        of_file = unreadable(error, places, encrypted=True)
    if of_file is not None or query is None:
        return of_file or unreadable(error, places, encrypted=encrypted)
    kind = ConstraintError if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException) else SqlError
    return kind(worded(error))
