"""Reads a ScanPlan in process with DuckDB into Arrow: for previews, profiles and small diffs, never for pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa

from ducklake_lab.catalog.casting import cast_sql
from ducklake_lab.errors import DataFileError, UnsupportedFeatureError
from ducklake_lab.model.entries import ROW_ID_FIELD, Column
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID, SNAPSHOT_ID, VIRTUAL_COLUMNS
from ducklake_lab.scan.plan import DeletedRows, ScanFile, ScanPlan

_SYSTEM = pa.schema([(name, pa.int64()) for name in VIRTUAL_COLUMNS])


def read(plan: ScanPlan, *, virtual: bool = False) -> pa.Table:
    """The rows of a plan under the table's columns, then the virtual ones if wanted.

    Raises:
        DataFileError: a file of the plan is missing or unreadable.
        UnsupportedFeatureError: a file or type of the plan cannot be read yet.
    """
    parts = []
    if plan.files:
        parts.append(_read_files(plan.columns, plan.files, [], virtual))
    if plan.inlined is not None:
        parts.append(_inlined(plan, virtual))
    schema = _schema(plan.columns, virtual)
    return pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()


def read_deleted(plan: ScanPlan, deleted: Sequence[DeletedRows]) -> pa.Table:
    """The rows that were deleted between two states of the files, virtual columns included."""
    schema = _schema(plan.columns, virtual=True)
    if not deleted:
        return schema.empty_table()
    parts = [
        _read_files(plan.columns, [replace(rows.after, snapshot_id=rows.snapshot_id)], [rows.before], virtual=True)
        for rows in deleted
    ]
    return pa.concat_tables(parts).cast(schema)


def _schema(columns: Sequence[Column], virtual: bool) -> pa.Schema:
    fields = [pa.field(column.name, column.data_type.arrow()) for column in columns]
    return pa.schema([*fields, *_SYSTEM]) if virtual else pa.schema(fields)


def _inlined(plan: ScanPlan, virtual: bool) -> pa.Table:
    assert plan.inlined is not None  # asked for only where there are rows
    rows = plan.inlined.rows
    table = rows.select([column.name for column in plan.columns])
    if virtual:
        nulls = pa.nulls(rows.num_rows, pa.int64())
        for name, values in (
            (FILE_ID, nulls),
            (POSITION, nulls),
            (ROW_ID, rows.column(ROW_ID)),
            (SNAPSHOT_ID, rows.column(SNAPSHOT_ID)),
        ):
            table = table.append_column(name, values)
    return table


def _read_files(
    columns: Sequence[Column], files: Sequence[ScanFile], before: Sequence[ScanFile], virtual: bool
) -> pa.Table:
    """Rows of files that are not deleted; with `before`, those deleted in `files` and not in `before`."""
    for file in (*files, *before):
        _check(file)
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("files", _file_table(files))
        deleting = any(file.has_deletes for file in files)
        if deleting:
            connection.execute(f"CREATE TEMP TABLE deleted AS {_deleted_sql(connection, files, 'inlined_now')}")
        condition = "NOT EXISTS (FROM deleted AS x WHERE x.file_id = f.file_id AND x.pos = r.file_row_number)"
        if before:
            connection.execute(f"CREATE TEMP TABLE earlier AS {_deleted_sql(connection, before, 'inlined_then')}")
            condition = (
                f"{condition.replace('NOT EXISTS', 'EXISTS')} AND "
                "NOT EXISTS (FROM earlier AS x WHERE x.file_id = f.file_id AND x.pos = r.file_row_number)"
            )
        where = f"WHERE {condition}" if deleting or before else ""
        system = (
            f", f.file_id AS {FILE_ID}, r.file_row_number AS {POSITION}, "
            f"coalesce(r.ducklake_row_id, f.row_id_start + r.file_row_number) AS {ROW_ID}, "
            f"f.snapshot_id AS {SNAPSHOT_ID}"
            if virtual
            else ""
        )
        selected = ", ".join(
            f"{cast_sql(f'r.c{index}', column.data_type)} AS c{index}" for index, column in enumerate(columns)
        )
        table = connection.execute(
            f"SELECT {selected}{system} FROM {_parquet(columns)} AS r JOIN files AS f ON r.filename = f.path {where}",
            [[file.path for file in files]],
        ).to_arrow_table()
    except duckdb.Error as error:
        raise DataFileError(_reason(error, files)) from error
    finally:
        connection.close()
    names = [column.name for column in columns]
    return table.rename_columns([*names, *VIRTUAL_COLUMNS] if virtual else names).cast(_schema(columns, virtual))


def _parquet(columns: Sequence[Column]) -> str:
    """A read_parquet that finds columns by field id, names them c0, c1, … and fills those a file lacks."""
    fields = [
        f"{column.column_id}: {{'name': 'c{index}', 'type': {_text(column.data_type.sql())}, "
        f"'default_value': {_text(column.initial_default)}}}"
        for index, column in enumerate(columns)
    ]
    fields.append(f"{ROW_ID_FIELD}: {{'name': 'ducklake_row_id', 'type': 'BIGINT', 'default_value': NULL}}")
    return f"read_parquet($1, schema = MAP {{{', '.join(fields)}}}, filename = true, file_row_number = true)"


def _text(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def _file_table(files: Iterable[ScanFile]) -> pa.Table:
    rows = [(file.path, file.data_file.data_file_id, file.data_file.row_id_start, file.snapshot_id) for file in files]
    types = {"path": pa.string(), "file_id": pa.int64(), "row_id_start": pa.int64(), "snapshot_id": pa.int64()}
    return pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(types.items())})


def _deleted_sql(connection: duckdb.DuckDBPyConnection, files: Sequence[ScanFile], name: str) -> str:
    """A query of (file_id, pos): positions deleted by delete files and by catalog rows."""
    pairs = [(file.data_file.data_file_id, position) for file in files for position in file.inlined_deletes]
    inlined = {
        "file_id": pa.array([file_id for file_id, _ in pairs], pa.int64()),
        "pos": pa.array([position for _, position in pairs], pa.int64()),
    }
    connection.register(name, pa.table(inlined))
    parts = [f"SELECT file_id, pos FROM {name}"]
    for file in files:
        if file.delete_path is None:
            continue
        up_to = file.deleted_up_to
        applies = f" WHERE _ducklake_internal_snapshot_id <= {up_to:d}" if up_to is not None else ""
        parts.append(
            f"SELECT {file.data_file.data_file_id:d} AS file_id, pos FROM read_parquet({_text(file.delete_path)}){applies}"
        )
    return " UNION ALL ".join(parts)


def _check(file: ScanFile) -> None:
    """Raises UnsupportedFeatureError for files that cannot be read yet."""
    data_file = file.data_file
    for present, feature in (
        (data_file.encryption_key, "encrypted data files"),
        (data_file.mapping_id is not None, "files added from outside, whose columns are mapped by name"),
        (data_file.partial_max is not None, "data files merged from several snapshots"),
        (file.delete_file is not None and file.delete_file.format != "parquet", "puffin deletion vectors"),
        ("://" in file.path, "reading object stores in process"),
    ):
        if present:
            raise UnsupportedFeatureError(f"Reading {file.path.rsplit('/', 1)[-1]} needs {feature}: not supported yet.")


def _reason(error: duckdb.Error, files: Sequence[ScanFile]) -> str:
    text = str(error).splitlines()[0]
    missing = next((file.path for file in files if file.path in text), None)
    if missing is not None and ("No files found" in text or "Cannot open file" in text or "No such file" in text):
        return f"The data file {missing} is missing; restore it from a backup, or DELETE its rows from the lake."
    return f"A data file cannot be read: {text}"
