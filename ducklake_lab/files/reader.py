"""Reads rows of data files with DuckDB into Arrow, in process and in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from ducklake_lab.catalog.casting import carried_sql, cast_sql
from ducklake_lab.errors import ConstraintError, DataFileError, DuckLakeError, SqlError
from ducklake_lab.files.mapped import part_sql, value_sql
from ducklake_lab.files.parts import Parts, check_encrypted, renamed_parts, stored_type
from ducklake_lab.model.entries import ROW_ID_FIELD, SNAPSHOT_ID_FIELD, Column
from ducklake_lab.model.identifiers import quote_identifier
from ducklake_lab.model.mapping import NameMapping
from ducklake_lab.model.positions import Positions
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID, SNAPSHOT_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.encryption import encryption_sql
from ducklake_lab.scan.footers import with_columns_by_place
from ducklake_lab.scan.paths import path_values
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.storage import Storage

_BY_NAME = "filename = '_ducklake_path', file_row_number = true, union_by_name = true, hive_partitioning = false"
_SYSTEM = pa.schema([(name, pa.int64()) for name in VIRTUAL_COLUMNS])
_BATCH_ROWS = 100_000
_storage = Storage()


@dataclass(frozen=True, slots=True)
class RowQuery:
    """A query each row of whose result comes from one row of a table.

    Attributes:
        sql: in DuckDB's SQL.
        view: the name under which it sees the rows, virtual columns included.
        columns: names and types of its result.
        time_zone: in which texts and timestamps are turned into each other.
    """

    sql: str
    view: str
    columns: tuple[tuple[str, DataType], ...]
    time_zone: str

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
) -> pa.Table:
    """The rows of files at whose positions nothing is deleted, or with `keep_deleted` only those that are.

    Raises:
        DataFileError: a file is missing or unreadable.
    """
    tables = [
        batch
        for group, parts in _alike(columns, files)
        for batch in _read_group(columns, group, parts, positions, virtual, keep_deleted, whole=True)
    ]
    return pa.concat_tables(tables)


def stream_file(
    columns: Sequence[Column], file: ScanFile, positions: Positions | None, virtual: bool, keep_deleted: bool = False
) -> Iterator[pa.Table]:
    """The same of one file, some rows at a time and by one thread."""
    deleted = {} if positions is None else {file.path: positions}
    for group, parts in _alike(columns, [file]):
        yield from _read_group(columns, group, parts, deleted, virtual, keep_deleted, whole=False)


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
    for group, parts in _alike(columns, files):
        yield from _read_group(columns, group, parts, positions, True, False, whole=False, query=query, rows=rows)


def _alike(columns: Sequence[Column], files: Sequence[ScanFile]) -> Iterable[tuple[list[ScanFile], Parts]]:
    """The files by what their columns and the parts of these are called; encrypted ones singly, as each has its key."""
    groups: dict[object, tuple[list[ScanFile], Parts]] = {}
    files = with_columns_by_place(columns, files, _storage)
    renamed = renamed_parts(columns, files, _storage)
    for file in files:
        data_file, parts = file.data_file, renamed.get(file.path, ())
        groups.setdefault((data_file.mapping, parts, data_file.encryption_key), ([], parts))[0].append(file)
    return groups.values()


def _read_group(
    columns: Sequence[Column],
    files: Sequence[ScanFile],
    parts: Parts,
    positions: Mapping[str, Positions],
    virtual: bool,
    keep_deleted: bool,
    *,
    whole: bool,
    query: RowQuery | None = None,
    rows: tuple[int, int | None] | None = None,
) -> Iterator[pa.Table]:
    """The same for files that hold the same columns and parts, under the same names and with the same key."""
    with _storage.local_copies(file.path for file in files) as places:
        yield from _read_places(
            columns, files, parts, places, positions, virtual, keep_deleted, whole=whole, query=query, rows=rows
        )


def _read_places(
    columns: Sequence[Column],
    files: Sequence[ScanFile],
    parts: Parts,
    places: Mapping[str, str],
    positions: Mapping[str, Positions],
    virtual: bool,
    keep_deleted: bool,
    *,
    whole: bool,
    query: RowQuery | None,
    rows: tuple[int, int | None] | None,
) -> Iterator[pa.Table]:
    """The same, where each file is read at its place on this machine."""
    mapping, key = files[0].data_file.mapping, files[0].data_file.encryption_key
    connection = duckdb.connect(":memory:", config={} if whole else {"threads": 1})
    try:
        # without these, the rows are on the side of the joins that keeps the order they have in the file
        zone = _text("UTC" if query is None else query.time_zone)
        connection.execute(f"SET TimeZone = {zone}; SET disabled_optimizers = 'join_order,build_side_probe_side'")
        connection.register("files", _file_table(files, places))
        conditions = []
        if rows is not None and rows[0]:
            conditions.append(f"r.file_row_number >= {rows[0]}")
        if rows is not None and rows[1] is not None:
            conditions.append(f"r.file_row_number < {rows[1]}")
        if positions:
            connection.register("deleted", _position_table(files, positions))
            if keep_deleted:
                # row groups without any of them are not read
                first = min(int(found[0]) for found in positions.values() if len(found))
                last = max(int(found[-1]) for found in positions.values() if len(found))
                conditions.append(f"r.file_row_number BETWEEN {first} AND {last}")
            if not (keep_deleted and len(files) == 1 and _is_run(positions[files[0].path])):
                conditions.append(
                    f"{'' if keep_deleted else 'NOT '}EXISTS "
                    "(FROM deleted AS x WHERE x.file_id = f.file_id AND x.pos = r.file_row_number)"
                )
        if any(file.is_bounded for file in files):
            conditions.append("(f.rows_up_to IS NULL OR r.ducklake_snapshot_id <= f.rows_up_to)")
            conditions.append("(f.rows_from IS NULL OR r.ducklake_snapshot_id >= f.rows_from)")
            conditions.append("NOT coalesce(list_contains(f.rows_except, r.ducklake_snapshot_id), false)")
        row_id = "r.ducklake_row_id" if mapping is None else "NULL"
        snapshot = "r.ducklake_snapshot_id" if mapping is None else "NULL"
        system = (
            f", f.file_id AS {FILE_ID}, r.file_row_number AS {POSITION}, "
            f"coalesce({row_id}, f.row_id_start + r.file_row_number) AS {ROW_ID}, "
            f"coalesce(f.snapshot_id, {snapshot}) AS {SNAPSHOT_ID}"
            if virtual
            else ""
        )
        renamed = {entry.target_field_id: entry for entry in parts}
        values = [
            value_sql(column, mapping)
            if mapping is not None
            else part_sql(f"r.c{i}", column, renamed[column.column_id])
            if column.column_id in renamed
            else f"r.c{i}"
            for i, column in enumerate(columns)
        ]
        convert, names = cast_sql, [f"c{i}" for i in range(len(columns))]
        if query is not None:
            convert, names = _typed, [quote_identifier(column.name) for column in columns]
        selected = ", ".join(
            f"{convert(value, column.data_type)} AS {name}"
            for name, value, column in zip(names, values, columns, strict=True)
        )
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        # every row of one file is of that file: no names to compare
        path = "r.filename" if mapping is None else "r._ducklake_path"
        joined = f"JOIN files AS f ON {path} = f.path" if len(files) > 1 else "CROSS JOIN files AS f"
        config = "" if key is None else f", encryption_config = {encryption_sql(connection, key, files[0].path)}"
        if key is not None:
            stored = connection.execute(f"FROM read_parquet($1{config}) LIMIT 0", [places[files[0].path]])
            check_encrypted(columns, files[0], stored.to_arrow_table().schema)
        source = f"read_parquet($1, {_BY_NAME if mapping is not None else _by_id(columns, renamed)}{config})"
        sql, schema = f"SELECT {selected}{system} FROM {source} AS r {joined} {where}", schema_of(columns, virtual)
        if query is not None:
            sql, schema = query.over(sql), pa.schema([kind.field(name) for name, kind in query.columns])
        result = connection.execute(sql, [[places[file.path] for file in files]])
        batches = [result.to_arrow_table()] if whole else _batches(result)
        for batch in batches:
            yield batch.rename_columns(schema.names).cast(schema)
    except duckdb.Error as error:
        raise _failure(error, places, query) from (error if key is None else None)
    finally:
        connection.close()


def _typed(expression: str, data_type: DataType) -> str:
    return f"CAST({expression} AS {data_type.sql()})"


def _batches(result: duckdb.DuckDBPyConnection) -> Iterator[pa.Table]:
    for batch in result.to_arrow_reader(_BATCH_ROWS):
        yield pa.Table.from_batches([batch])


def _is_run(positions: Positions) -> bool:
    """Whether ascending positions leave none out between the first and the last."""
    return len(positions) > 0 and int(positions[-1]) - int(positions[0]) + 1 == len(positions)


def _by_id(columns: Sequence[Column], renamed: Mapping[int, NameMapping]) -> str:
    """The options of a read_parquet that finds columns by field id, names them c0, c1, … and fills those a file lacks.

    Parts of nested columns it finds by name: those in `renamed` by the names that the file has.

    `filename` and `file_row_number` come from the reader; asked for by option, they clash with columns of files.
    """

    def stored_sql(column: Column) -> str:
        entry = renamed.get(column.column_id)
        return (column.data_type if entry is None else stored_type(column, entry)).sql()

    fields = [
        f"{column.column_id}: {{'name': 'c{index}', 'type': {_text(stored_sql(column))}, "
        f"'default_value': {_text(column.initial_default)}}}"
        for index, column in enumerate(columns)
    ]
    for field, name in ((ROW_ID_FIELD, "ducklake_row_id"), (SNAPSHOT_ID_FIELD, "ducklake_snapshot_id")):
        fields.append(f"{field}: {{'name': '{name}', 'type': 'BIGINT', 'default_value': NULL}}")
    return f"schema = MAP {{{', '.join(fields)}}}"


def _text(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def _file_table(files: Iterable[ScanFile], places: Mapping[str, str]) -> pa.Table:
    rows = [
        (
            places[file.path],
            file.data_file.data_file_id,
            file.data_file.row_id_start,
            None if file.shows_own_snapshots else file.snapshot_id,
            file.rows_from,
            file.rows_up_to,
            list(file.rows_except),
            [(str(column), text) for column, text in path_values(file)],
        )
        for file in files
    ]
    names = ("path", "file_id", "row_id_start", "snapshot_id", "rows_from", "rows_up_to", "rows_except", "hive")
    types = (pa.string(), *([pa.int64()] * (len(names) - 3)), pa.list_(pa.int64()), pa.map_(pa.string(), pa.string()))
    return pa.table({name: pa.array([row[i] for row in rows], types[i]) for i, name in enumerate(names)})


def _position_table(files: Iterable[ScanFile], positions: Mapping[str, Positions]) -> pa.Table:
    """(file_id, pos) of all deleted positions."""
    ids, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for file in files:
        if file.path in positions:
            found.append(positions[file.path])
            ids.append(np.full(len(found[-1]), file.data_file.data_file_id, np.int64))
    return pa.table({"file_id": np.concatenate(ids), "pos": np.concatenate(found)})


def _failure(error: duckdb.Error, places: Mapping[str, str], query: RowQuery | None) -> DuckLakeError:
    """What a failed read means: something is wrong with a file, or with what a query makes of its rows."""
    text = str(error).splitlines()[0]
    if query is None or any(place in text for place in places.values()):
        return DataFileError(_reason(error, places))
    kind = ConstraintError if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException) else SqlError
    return kind(text.partition("Error: ")[2] or text)


def _reason(error: duckdb.Error, places: Mapping[str, str]) -> str:
    text = str(error).splitlines()[0]
    missing = next((path for path, place in places.items() if place in text), None)
    if missing is not None and ("No files found" in text or "Cannot open file" in text or "No such file" in text):
        return f"The data file {missing} is missing; restore it from a backup, or DELETE its rows from the lake."
    for path, place in places.items():
        text = text.replace(place, path)
    return f"A data file cannot be read: {text}"
