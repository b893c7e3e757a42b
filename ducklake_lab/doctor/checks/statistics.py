"""Statistics by which readers skip files and rows."""

from __future__ import annotations

from ducklake_lab.doctor import bounds, deep
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import Context
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.statistics import COUNTED

#: Types whose bounds are compared as numbers, and as texts.
_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_TEXTS = ("varchar", "json")
_TIMES = ("date", "timestamp", "timestamp_s", "timestamp_ms")


#: SQL of groups of versions that says whether the last one holds today.
_LIVE = "sum(CASE WHEN end_snapshot IS NULL THEN 1 ELSE 0 END) > 0"


def _columns(types: tuple[str, ...], live: str = "") -> str:
    """SELECT of top-level columns that always had one of some types."""
    listed = ", ".join(f"'{name}'" for name in types)
    condition = f"column_type IN ({listed})" + (" OR column_type LIKE 'decimal(%'" if types is _NUMBERS else "")
    return (
        "SELECT table_id, column_id, max(column_name) AS column_name FROM ducklake_column GROUP BY table_id, column_id "
        f"HAVING max(parent_column) IS NULL AND sum(CASE WHEN {condition} THEN 0 ELSE 1 END) = 0{live}"
    )


def _above(context: Context, low: str, high: str, kind: str) -> str:
    """SQL that says whether one bound is certainly above another; databases compare both alike."""
    if kind == "number":
        return f"{context.number(low)} > {context.number(high)}"
    plain = f"{context.plain(low)} > {context.plain(high)}"
    if kind == "text":
        return plain
    return f"length({low}) = length({high}) AND {_is_in_order(low)} AND {_is_in_order(high)} AND {plain}"


def _is_in_order(text: str) -> str:
    """SQL that says whether texts of times like this one, of one length, are in the order of the times.

    Years have four digits, none is before Christ, and none has a zone.
    """
    return (
        f"({text} LIKE '____-__-__' OR {text} LIKE '____-__-__ %') AND {text} NOT LIKE '%(%' AND {text} NOT LIKE '%+%' "
        f"AND {text} >= '0' AND {text} < 'A'"
    )


#: SQL that says whether writers count the NULLs of a column.
_COUNTED = f"(column_type IN ({', '.join(map(quote_text, COUNTED))}) OR column_type LIKE 'decimal(%')"
_KINDS = ((_NUMBERS, "number"), (_TEXTS, "text"), (_TIMES, "time"))


def _reversed(context: Context) -> str:
    return " UNION ALL ".join(
        "SELECT s.table_id AS table_id, s.data_file_id AS id, s.column_id AS column_id, c.column_name AS column_name, "
        "s.min_value AS low, s.max_value AS high, f.begin_snapshot AS since, f.end_snapshot AS until "
        f"FROM ducklake_file_column_stats AS s JOIN ({_columns(types)}) AS c ON c.table_id = s.table_id AND c.column_id = s.column_id "
        "JOIN ducklake_data_file AS f ON f.data_file_id = s.data_file_id "
        f"WHERE s.min_value IS NOT NULL AND s.max_value IS NOT NULL AND {_above(context, 's.min_value', 's.max_value', kind)}"
        for types, kind in _KINDS
    )


def _outside(context: Context) -> str:
    parts = []
    for types, kind in _KINDS:
        for bound, above in (
            ("min_value", _above(context, "x.min_value", "s.min_value", kind)),
            ("max_value", _above(context, "s.max_value", "x.max_value", kind)),
        ):
            parts.append(
                "SELECT s.table_id AS table_id, s.column_id AS column_id, c.column_name AS column_name, "
                f"s.data_file_id AS data_file_id, x.{bound} AS of_table, s.{bound} AS of_file, f.begin_snapshot AS since, "
                "f.end_snapshot AS until FROM ducklake_file_column_stats AS s "
                f"JOIN ({_columns(types, f' AND {_LIVE}')}) AS c ON c.table_id = s.table_id AND c.column_id = s.column_id "
                "JOIN ducklake_table_column_stats AS x ON x.table_id = s.table_id AND x.column_id = s.column_id "
                "JOIN ducklake_data_file AS f ON f.data_file_id = s.data_file_id AND f.table_id = s.table_id "
                f"WHERE f.end_snapshot IS NULL AND {above}"
            )
    return (
        "SELECT table_id, column_id, max(column_name) AS column_name, min(data_file_id) AS data_file_id, "
        "min(of_table) AS of_table, min(of_file) AS of_file, min(since) AS since, NULL AS until "
        f"FROM ({' UNION ALL '.join(parts)}) AS found GROUP BY table_id, column_id"
    )


def _null_denied(_: Context) -> str:
    return (
        "SELECT s.table_id AS table_id, s.column_id AS column_id, min(s.data_file_id) AS data_file_id, "
        "sum(s.null_count) AS nulls, min(f.begin_snapshot) AS since, NULL AS until FROM ducklake_file_column_stats AS s "
        "JOIN ducklake_table_column_stats AS x ON x.table_id = s.table_id AND x.column_id = s.column_id "
        # the table's statistics of dropped columns stay as they are
        "JOIN ducklake_data_file AS f ON f.data_file_id = s.data_file_id AND f.table_id = s.table_id "
        f"JOIN (SELECT table_id, column_id FROM ducklake_column GROUP BY table_id, column_id HAVING {_LIVE}) AS c "
        "ON c.table_id = s.table_id AND c.column_id = s.column_id "
        "WHERE f.end_snapshot IS NULL AND s.null_count > 0 AND NOT x.contains_null GROUP BY s.table_id, s.column_id"
    )


def _counts(_: Context) -> str:
    return (
        "SELECT s.table_id AS table_id, s.data_file_id AS id, s.column_id AS column_id, s.value_count AS value_count, "
        "s.null_count AS null_count, f.record_count AS record_count, f.begin_snapshot AS since, f.end_snapshot AS until "
        "FROM ducklake_file_column_stats AS s "
        "JOIN ducklake_data_file AS f ON f.data_file_id = s.data_file_id AND f.table_id = s.table_id "
        "JOIN (SELECT table_id, column_id FROM ducklake_column GROUP BY table_id, column_id HAVING max(parent_column) IS NULL "
        f"AND min(CASE WHEN {_COUNTED} THEN 1 ELSE 0 END) = 1) AS c ON c.table_id = s.table_id AND c.column_id = s.column_id "
        "WHERE s.value_count + s.null_count <> f.record_count OR s.null_count < 0 OR s.value_count < 0"
    )


def _twice(_: Context) -> str:
    return (
        "SELECT s.table_id AS table_id, s.data_file_id AS id, s.column_id AS column_id, count(*) AS times, "
        "min(f.begin_snapshot) AS since, min(f.end_snapshot) AS until FROM ducklake_file_column_stats AS s "
        "JOIN ducklake_data_file AS f ON f.data_file_id = s.data_file_id "
        "GROUP BY s.table_id, s.data_file_id, s.column_id HAVING count(*) > 1"
    )


def _table_twice(_: Context) -> str:
    return (
        "SELECT table_id, column_id, count(*) AS times, NULL AS since, NULL AS until FROM ducklake_table_column_stats "
        "GROUP BY table_id, column_id HAVING count(*) > 1"
    )


def _of_other_table(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, s.data_file_id AS id, s.table_id AS other_table, count(*) AS columns, "
        "min(f.begin_snapshot) AS since, min(f.end_snapshot) AS until FROM ducklake_file_column_stats AS s "
        "JOIN ducklake_data_file AS f ON f.data_file_id = s.data_file_id WHERE s.table_id <> f.table_id "
        "GROUP BY f.table_id, s.data_file_id, s.table_id"
    )


def _of_no_file(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, count(*) AS statistics, NULL AS since, NULL AS until FROM ducklake_file_column_stats AS s "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file AS f WHERE f.data_file_id = s.data_file_id) HAVING count(*) > 0"
    )


_MEASURE = "take bounds and counts from the values in the file"

CHECKS = (
    Check(
        "bounds_reversed", "statistics", "error", "wrong", "data file {id}, column {column_name}",
        'The smallest value "{low}" is above the largest "{high}": readers skip rows that are there.',
        query=_reversed, key=("table_id", "id", "column_id"), repair=Repair(_MEASURE, bounds.measure_column),
    ),
    Check(
        "table_bounds_exclude_file", "statistics", "error", "wrong", "column {column_name}",
        'The table\'s bounds exclude values of data file {data_file_id}: "{of_table}" is its bound, and "{of_file}" the file\'s.',
        query=_outside, key=("table_id", "column_id"),
        repair=Repair("widen the table's bounds to those of its files", bounds.widen_table_bounds),
    ),
    Check(
        "nulls_denied", "statistics", "error", "wrong", "column {column_id}",
        "The table is said to have no NULL in it, and data file {data_file_id} has some, {nulls} in all files.",
        query=_null_denied, key=("table_id", "column_id"),
        repair=Repair("say that it contains NULL", bounds.admit_nulls),
    ),
    Check(
        "value_counts_differ", "statistics", "error", "wrong", "data file {id}, column {column_id}",
        "It has {value_count} values and {null_count} NULLs of {record_count} rows: readers skip rows that are there.",
        query=_counts, key=("table_id", "id", "column_id"),
        repair=Repair(_MEASURE, bounds.measure_column),
    ),
    Check(
        "file_stats_twice", "statistics", "error", "wrong", "data file {id}, column {column_id}",
        "It has {times} rows of statistics: readers that join them read the file as often.",
        query=_twice, key=("table_id", "id", "column_id"),
        repair=Repair("keep one row; where they differ, without bounds", bounds.keep_one_of_file),
    ),
    Check(
        "table_column_stats_twice", "statistics", "error", "later", "column {column_id}",
        "It has {times} rows in ducklake_table_column_stats.",
        query=_table_twice, key=("table_id", "column_id"),
        repair=Repair("keep one row; where they differ, without bounds", bounds.keep_one_of_table),
    ),
    Check(
        "file_stats_of_other_table", "statistics", "error", "wrong", "data file {id}",
        "Statistics of {columns} columns say table {other_table}: readers that look for them skip the file.",
        query=_of_other_table, key=("table_id", "id", "other_table"),
        repair=Repair("give them the table of their file", bounds.move_stats),
    ),
    Check(
        "stats_of_no_file", "statistics", "info", "none", "statistics",
        "{statistics} rows of statistics are left of files that have gone.",
        query=_of_no_file, key=(),
        repair=Repair("remove them", bounds.drop_dangling_stats),
    ),
    Check(
        "bounds_exclude_rows", "statistics", "error", "wrong", "data file {id}, column {column_name}",
        'Its bounds are "{low}" and "{high}", and {outside} of its values are outside, or NaN that they deny: readers skip rows.',
        probe=deep.rows_outside_bounds, key=("table_id", "id", "column_id"), depth="deep",
        repair=Repair(_MEASURE, bounds.measure_column),
    ),
    Check(
        "counts_exclude_rows", "statistics", "error", "wrong", "data file {id}, column {column_name}",
        "It is said to have {null_count} NULLs of {record_count} rows, and has {nulls}: readers skip rows that are there.",
        probe=deep.wrong_null_counts, key=("table_id", "id", "column_id"), depth="deep",
        repair=Repair(_MEASURE, bounds.measure_column),
    ),
)  # fmt: skip
