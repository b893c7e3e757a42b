"""Checks of NOT NULL for written or added rows: by statistics of files, else by values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.duckdb.wording import worded_of_file
from ducklake_lab.errors import ConstraintError, DataFileError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import ColumnStats, WrittenFile
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.statistics import kept, null_count


def uncounted(table: Table) -> list[Column]:
    """Return the NOT NULL columns whose NULLs no file counts."""
    return [column for column in table.columns if not column.nulls_allowed and not kept(column.data_type).nulls]


def broken(table: Table, column: Column) -> str:
    """Describe a missing value of a column that is NOT NULL."""
    return f"{table.name}.{column.name} is NOT NULL; a row has no value for it."


def required_sql(expression: str, table: Table, column: Column) -> str:
    """Write SQL of DuckDB for a value of a NOT NULL column; a NULL raises the text of `broken`."""
    return f"coalesce({expression}, error({quote_text(broken(table, column))}))"


def check_statistics(table: Table, files: Iterable[Sequence[ColumnStats]]) -> None:
    """Raises where the statistics of files count NULLs of a column that is NOT NULL.

    `uncounted` columns are not checked.

    Raises:
        ConstraintError: a row has NULL, or nobody counted.
    """
    required = {
        column.column_id: column
        for column in table.columns
        if not column.nulls_allowed and kept(column.data_type).nulls
    }
    for stats in (entry for file in files for entry in file if entry.column_id in required):
        column = required[stats.column_id]
        if null_count(stats, column.data_type) != 0:
            raise ConstraintError(broken(table, column))


def check_added(connection: duckdb.DuckDBPyConnection, table: Table, file: WrittenFile) -> None:
    """Raises where a file that others wrote has NULL in a column that is NOT NULL; columns without counts are read.

    Args:
        file: has a mapping.

    Raises:
        ConstraintError: a row has NULL, or the file lacks the column and there is no default.
        DataFileError: the file cannot be read.
    """
    assert file.mapping is not None  # files of others have one
    entries = file.mapping.by_target()
    stats = {entry.column_id: entry for entry in file.column_stats}
    for column in table.columns:
        if column.nulls_allowed:
            continue
        entry, column_stats = entries.get(column.column_id), stats.get(column.column_id)
        nulls = null_count(column_stats, column.data_type) if column_stats is not None else None
        if entry is None:
            has_null = column.initial_default is None
        elif entry.is_partition:
            has_null = column_stats is None or column_stats.null_count != 0
        elif nulls is not None:
            has_null = nulls != 0
        else:
            has_null = _has_null(connection, file.path, entry.source_name)
        if has_null:
            raise ConstraintError(
                f"{table.name}.{column.name} is NOT NULL; a row of {file.path} has no value for it. Nothing was added."
            )


def _has_null(connection: duckdb.DuckDBPyConnection, path: str, name: str) -> bool:
    # patterns in names of files, and columns in names of folders, are none here
    source = f"read_parquet([{quote_text(path)}], hive_partitioning = false)"
    try:
        nulls = arrow(connection, f"SELECT 1 FROM {source} WHERE {quote_identifier(name)} IS NULL LIMIT 1")
    except duckdb.Error as error:
        raise DataFileError(worded_of_file(error, path, "file")) from None
    return bool(nulls.num_rows)


def check_rows(table: Table, rows: pa.Table) -> None:
    """Raises where rows in memory have NULL in a column that is NOT NULL.

    Raises:
        ConstraintError: one has.
    """
    for column in table.columns:
        if not column.nulls_allowed and rows.column(column.name).null_count:
            raise ConstraintError(broken(table, column))
