"""Reads a ScanPlan in process with DuckDB into Arrow: for previews, profiles and small diffs, never for pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.casting import cast_sql
from ducklake_lab.errors import DataFileError, UnsupportedFeatureError
from ducklake_lab.local.mapped import value_sql
from ducklake_lab.model.entries import ROW_ID_FIELD, SNAPSHOT_ID_FIELD, Column
from ducklake_lab.model.mapping import ColumnMapping
from ducklake_lab.model.staged import (
    FILE_ID,
    FILE_INDEX,
    FILE_NAME,
    POSITION,
    ROW_ID,
    SNAPSHOT_ID,
    VIRTUAL_COLUMNS,
)
from ducklake_lab.scan.paths import path_values
from ducklake_lab.scan.plan import DeletedRows, ScanFile, ScanPlan
from ducklake_lab.scan.positions import (
    Positions,
    check_files,
    deleted_positions,
    distinct_files,
    distinct_paths,
    newly_deleted_positions,
)
from ducklake_lab.storage import Storage

_storage = Storage()
_BY_NAME = "read_parquet($1, filename = '_ducklake_path', file_row_number = true, union_by_name = true, hive_partitioning = false)"
_SYSTEM = pa.schema([(name, pa.int64()) for name in VIRTUAL_COLUMNS])
_LOCATION = pa.schema([(FILE_NAME, pa.string()), (FILE_INDEX, pa.uint64())])


def read(plan: ScanPlan, *, virtual: bool = False, located: bool = False) -> pa.Table:
    """The rows of a plan under the table's columns, then the virtual ones if wanted, and then where they are.

    Raises:
        DataFileError: a file of the plan is missing or unreadable.
        UnsupportedFeatureError: a file or type of the plan cannot be read yet.
    """
    if located:
        return _located(plan)
    parts = []
    if plan.files:
        check_files(plan.files)
        parts += [
            _read_files(plan.columns, files, deleted_positions(files, _storage), virtual)
            for files in distinct_paths(plan.files)
        ]
    if plan.inlined is not None:
        parts.append(_inlined(plan, virtual))
    schema = _schema(plan.columns, virtual)
    return pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()


def _located(plan: ScanPlan) -> pa.Table:
    rows = read(plan, virtual=True)
    in_files = rows.num_rows - (plan.inlined.rows.num_rows if plan.inlined is not None else 0)
    ids = pa.array([file.data_file.data_file_id for file in plan.files], pa.int64())
    indices = pc.index_in(rows.column(FILE_ID).slice(0, in_files).combine_chunks(), ids)
    names = [pa.array([file.path for file in plan.files], pa.string()).take(indices)]
    places = [indices.cast(pa.uint64())]
    if plan.inlined is not None:
        names.append(plan.inlined.rows.column(FILE_NAME).combine_chunks())
        places.append(plan.inlined.places(len(plan.files)))
    columns = [*rows.columns, pa.chunked_array(names, pa.string()), pa.chunked_array(places, pa.uint64())]
    return pa.table(columns, schema=pa.schema([*rows.schema, *_LOCATION]))


def read_deleted(plan: ScanPlan, deleted: Sequence[DeletedRows]) -> pa.Table:
    """The rows that were deleted between two states of the files, virtual columns included."""
    schema = _schema(plan.columns, virtual=True)
    parts = []
    for group in distinct_files(deleted):
        positions = newly_deleted_positions(group, _storage)
        files = [replace(rows.after, snapshot_id=rows.snapshot_id) for rows in group if len(positions[rows.after.path])]
        if files:
            parts.append(_read_files(plan.columns, files, positions, virtual=True, keep_deleted=True))
    return pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()


def _schema(columns: Sequence[Column], virtual: bool) -> pa.Schema:
    fields = [column.data_type.field(column.name) for column in columns]
    return pa.schema([*fields, *_SYSTEM] if virtual else fields)


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
    columns: Sequence[Column],
    files: Sequence[ScanFile],
    positions: Mapping[str, Positions],
    virtual: bool,
    keep_deleted: bool = False,
) -> pa.Table:
    """The rows of files at whose positions nothing is deleted, or with `keep_deleted` only those that are."""
    _check(files)
    parts = [
        _read_group(columns, group, mapping, positions, virtual, keep_deleted)
        for mapping, group in _by_mapping(files).items()
    ]
    return pa.concat_tables(parts)


def _by_mapping(files: Sequence[ScanFile]) -> dict[ColumnMapping | None, list[ScanFile]]:
    groups: dict[ColumnMapping | None, list[ScanFile]] = {}
    for file in files:
        groups.setdefault(file.data_file.mapping, []).append(file)
    return groups


def _read_group(
    columns: Sequence[Column],
    files: Sequence[ScanFile],
    mapping: ColumnMapping | None,
    positions: Mapping[str, Positions],
    virtual: bool,
    keep_deleted: bool,
) -> pa.Table:
    """The same for files with the same columns."""
    connection = duckdb.connect(":memory:")
    try:
        # without these, the rows are on the side of the joins that keeps the order they have in the file
        connection.execute("SET TimeZone = 'UTC'; SET disabled_optimizers = 'join_order,build_side_probe_side'")
        connection.register("files", _file_table(files))
        conditions = []
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
        stored = "r.ducklake_row_id" if mapping is None else "NULL"
        snapshot = "r.ducklake_snapshot_id" if mapping is None else "NULL"
        system = (
            f", f.file_id AS {FILE_ID}, r.file_row_number AS {POSITION}, "
            f"coalesce({stored}, f.row_id_start + r.file_row_number) AS {ROW_ID}, "
            f"coalesce(f.snapshot_id, {snapshot}) AS {SNAPSHOT_ID}"
            if virtual
            else ""
        )
        values = [f"r.c{i}" if mapping is None else value_sql(column, mapping) for i, column in enumerate(columns)]
        selected = ", ".join(
            f"{cast_sql(value, column.data_type)} AS c{index}"
            for index, (value, column) in enumerate(zip(values, columns, strict=True))
        )
        # every row of one file is of that file: no names to compare
        path = "r.filename" if mapping is None else "r._ducklake_path"
        source = f"JOIN files AS f ON {path} = f.path" if len(files) > 1 else "CROSS JOIN files AS f"
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        table = connection.execute(
            f"SELECT {selected}{system} FROM {_parquet(columns) if mapping is None else _BY_NAME} AS r {source} {where}",
            [[file.path for file in files]],
        ).to_arrow_table()
    except duckdb.Error as error:
        raise DataFileError(_reason(error, files)) from error
    finally:
        connection.close()
    names = [column.name for column in columns]
    return table.rename_columns([*names, *VIRTUAL_COLUMNS] if virtual else names).cast(_schema(columns, virtual))


def _is_run(positions: Positions) -> bool:
    """Whether ascending positions leave none out between the first and the last."""
    return len(positions) > 0 and int(positions[-1]) - int(positions[0]) + 1 == len(positions)


def _parquet(columns: Sequence[Column]) -> str:
    """A read_parquet that finds columns by field id, names them c0, c1, … and fills those a file lacks.

    `filename` and `file_row_number` come from the reader; asked for by option, they clash with columns of files.
    """
    fields = [
        f"{column.column_id}: {{'name': 'c{index}', 'type': {_text(column.data_type.sql())}, "
        f"'default_value': {_text(column.initial_default)}}}"
        for index, column in enumerate(columns)
    ]
    for field, name in ((ROW_ID_FIELD, "ducklake_row_id"), (SNAPSHOT_ID_FIELD, "ducklake_snapshot_id")):
        fields.append(f"{field}: {{'name': '{name}', 'type': 'BIGINT', 'default_value': NULL}}")
    return f"read_parquet($1, schema = MAP {{{', '.join(fields)}}})"


def _text(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def _file_table(files: Iterable[ScanFile]) -> pa.Table:
    rows = [
        (
            file.path,
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


def _check(files: Iterable[ScanFile]) -> None:
    """Raises UnsupportedFeatureError for files that are out of DuckDB's reach."""
    for file in files:
        if "://" in file.path:
            raise UnsupportedFeatureError(
                f"Reading {file.path.rsplit('/', 1)[-1]} needs reading object stores in process: not supported yet."
            )


def _reason(error: duckdb.Error, files: Sequence[ScanFile]) -> str:
    text = str(error).splitlines()[0]
    missing = next((file.path for file in files if file.path in text), None)
    if missing is not None and ("No files found" in text or "Cannot open file" in text or "No such file" in text):
        return f"The data file {missing} is missing; restore it from a backup, or DELETE its rows from the lake."
    return f"A data file cannot be read: {text}"
