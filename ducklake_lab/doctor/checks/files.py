"""Data files: rows of `ducklake_data_file`, and the storage."""

from __future__ import annotations

from ducklake_lab.doctor import mending, probes
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import Context, later, overlap, sooner
from ducklake_lab.model.quoting import quote_text

_FILE = "data file {id}"
_ALL = (
    "f.table_id AS table_id, f.data_file_id AS id, f.path AS path, f.begin_snapshot AS since, f.end_snapshot AS until"
)
_ONLY_COPY = "the file may be the only copy of its rows; restore it from a backup, or DELETE its rows from the lake"


def _of_no_table(_: Context) -> str:
    return (
        f"SELECT {_ALL} FROM ducklake_data_file AS f "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_table AS x WHERE x.table_id = f.table_id)"
    )


def _in_two_tables(context: Context) -> str:
    return (
        "SELECT min(table_id) AS table_id, min(id) AS id, max(id) AS other, max(table_id) AS other_table, place AS path, "
        f"max(begin_snapshot) AS since, NULL AS until FROM ({context.places}) AS p "
        "GROUP BY place HAVING count(DISTINCT table_id) > 1"
    )


def _twice(_: Context) -> str:
    return (
        f"SELECT a.table_id AS table_id, a.data_file_id AS id, b.data_file_id AS other, a.path AS path, "
        f"{later('a.begin_snapshot', 'b.begin_snapshot')} AS since, {sooner('a.end_snapshot', 'b.end_snapshot')} AS until "
        "FROM ducklake_data_file AS a JOIN (SELECT table_id, path FROM ducklake_data_file GROUP BY table_id, path "
        "HAVING count(*) > 1) AS many ON many.table_id = a.table_id AND many.path = a.path "
        "JOIN ducklake_data_file AS b ON b.table_id = a.table_id AND b.path = a.path AND b.data_file_id > a.data_file_id "
        f"WHERE a.path_is_relative = b.path_is_relative AND {overlap('a', 'b')}"
    )


def _impossible(_: Context) -> str:
    return (
        f"SELECT {_ALL}, f.record_count AS record_count, f.file_size_bytes AS file_size_bytes, f.footer_size AS footer_size "
        "FROM ducklake_data_file AS f WHERE f.record_count < 0 OR f.record_count > 281474976710656 OR f.file_size_bytes < 0 "
        "OR f.footer_size < 0 OR f.footer_size > f.file_size_bytes"
    )


def _scheduled(context: Context) -> str:
    place = context.inside("d", quote_text(context.lake.data_path))
    seen = "SELECT 1 FROM ducklake_snapshot AS n WHERE n.snapshot_id >= p.begin_snapshot AND "
    seen += "(p.end_snapshot IS NULL OR n.snapshot_id < p.end_snapshot)"
    return (
        "SELECT p.table_id AS table_id, p.id AS id, p.kind AS kind, p.place AS path, d.path AS scheduled, "
        "d.data_file_id AS scheduled_id, p.begin_snapshot AS since, p.end_snapshot AS until "
        f"FROM ducklake_files_scheduled_for_deletion AS d JOIN ({context.places}) AS p ON p.place = {place} "
        f"WHERE EXISTS ({seen})"
    )


def _without_mapping(_: Context) -> str:
    return (
        f"SELECT {_ALL}, f.mapping_id AS mapping_id FROM ducklake_data_file AS f WHERE f.mapping_id IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM ducklake_column_mapping AS m WHERE m.mapping_id = f.mapping_id)"
    )


def _partition_values(_: Context) -> str:
    return (
        f"SELECT {_ALL}, f.partition_id AS partition_id, coalesce(v.n, 0) AS there, coalesce(k.n, 0) AS wanted "
        "FROM ducklake_data_file AS f "
        "LEFT JOIN (SELECT data_file_id, count(*) AS n FROM ducklake_file_partition_value GROUP BY data_file_id) AS v "
        "ON v.data_file_id = f.data_file_id "
        "LEFT JOIN (SELECT partition_id, table_id, count(*) AS n FROM ducklake_partition_column GROUP BY partition_id, table_id) "
        "AS k ON k.partition_id = f.partition_id AND k.table_id = f.table_id "
        "WHERE f.partition_id IS NOT NULL AND coalesce(v.n, 0) <> coalesce(k.n, 0)"
    )


def _other_format(_: Context) -> str:
    return (
        f"SELECT {_ALL}, f.file_format AS file_format FROM ducklake_data_file AS f "
        "WHERE f.file_format IS NOT NULL AND lower(f.file_format) <> 'parquet'"
    )


CHECKS = (
    Check(
        "file_of_no_table", "files", "warning", "none", _FILE,
        "It belongs to table {table_id}, which the catalog lacks, so that nobody can read its rows.",
        query=_of_no_table,
        reason="its rows are in no table, and it may be the only copy; restore the table's rows of the catalog from a backup",
    ),
    Check(
        "file_in_two_tables", "files", "warning", "later", "file {path}",
        "Tables {table_id} and {other_table} both name it: dropping one and cleaning up deletes the rows of the other.",
        query=_in_two_tables, key=("table_id", "path"),
        reason="both tables need its rows; CREATE TABLE … AS makes a copy for one of them",
    ),
    Check(
        "file_twice", "files", "warning", "wrong", _FILE,
        "Data file {other} is the same file, so that its rows are there twice.",
        query=_twice, key=("table_id", "id", "other"),
        repair=Repair("forget data file {other} if both give their rows the same ids", mending.forget_doubled_file),
    ),
    Check(
        "impossible_counts", "files", "error", "fails", _FILE,
        "Counts make no sense: {record_count} rows, {file_size_bytes} bytes, a footer of {footer_size} bytes.",
        query=_impossible,
        repair=Repair("take counts and sizes from the file, if all of it can be read", mending.measure_data_file),
    ),
    Check(
        "live_file_scheduled_for_deletion", "files", "error", "later", "{kind} {id}",
        "It is read, and it is on the list of files to delete: the next clean-up deletes it.",
        query=_scheduled, key=("table_id", "kind", "id"),
        repair=Repair("take it off the list", mending.unschedule),
    ),
    Check(
        "mapping_missing", "files", "error", "fails", _FILE,
        "The mapping of its columns, {mapping_id}, is missing.",
        query=_without_mapping,
        reason="names of the file's columns are known to the mapping alone; restore its rows from a backup",
    ),
    Check(
        "partition_values_differ", "files", "error", "wrong", _FILE,
        "It has {there} partition values; partition {partition_id} has {wanted} keys.",
        query=_partition_values,
        reason="a file that lacks values may hold rows of several partitions; write its rows again with UPDATE",
    ),
    Check(
        "file_format_unknown", "files", "error", "fails", _FILE,
        'Its format is "{file_format}"; data files are Parquet.',
        query=_other_format,
        repair=Repair("call it Parquet, if all of it can be read so", mending.measure_data_file),
    ),
    Check(
        "data_file_missing", "files", "error", "fails", _FILE,
        "The storage has no file {path}.",
        probe=probes.missing_data_files, depth="storage", reason=_ONLY_COPY,
    ),
    Check(
        "data_file_size", "files", "error", "fails", _FILE,
        "The file has {found} bytes, and {file_size_bytes} in the catalog.",
        probe=probes.data_file_sizes, depth="storage",
        repair=Repair("take sizes from the file, if it has all rows and all can be read", mending.measure_data_file),
    ),
)  # fmt: skip
