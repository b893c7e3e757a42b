"""Deletions: delete files, and deletions in the catalog."""

from __future__ import annotations

from ducklake_lab.doctor import deletion_files, mending, probes
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import NEVER, Context, later, overlap, sooner
from ducklake_lab.model.quoting import quote_identifier

_OF = "data file {id}"
_BOTH = "write one delete file that has each deletion once, with its snapshot"


def _of_no_file(_: Context) -> str:
    return (
        "SELECT d.table_id AS table_id, d.delete_file_id AS id, d.data_file_id AS data_file_id, d.begin_snapshot AS since, "
        "d.end_snapshot AS until FROM ducklake_delete_file AS d "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file AS f WHERE f.data_file_id = d.data_file_id)"
    )


def _of_other_table(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, d.delete_file_id AS id, d.data_file_id AS data_file_id, d.table_id AS other_table, "
        f"{later('d.begin_snapshot', 'f.begin_snapshot')} AS since, {sooner('d.end_snapshot', 'f.end_snapshot')} AS until "
        "FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f ON f.data_file_id = d.data_file_id "
        "WHERE d.table_id <> f.table_id"
    )


def _overlapping(_: Context) -> str:
    since = later("a.begin_snapshot", later("b.begin_snapshot", "f.begin_snapshot"))
    until = sooner("f.end_snapshot", sooner("a.end_snapshot", "b.end_snapshot"))
    return (
        "SELECT table_id, id, min(first_one) AS first_one, max(other) AS other, min(since) AS since, "
        f"CASE WHEN max(coalesce(until, {NEVER})) = {NEVER} THEN NULL ELSE max(until) END AS until FROM ("
        f"SELECT f.table_id AS table_id, f.data_file_id AS id, a.delete_file_id AS first_one, b.delete_file_id AS other, "
        f"{since} AS since, {until} AS until FROM ducklake_delete_file AS a JOIN ducklake_delete_file AS b "
        "ON b.data_file_id = a.data_file_id AND b.delete_file_id > a.delete_file_id "
        "JOIN ducklake_data_file AS f ON f.data_file_id = a.data_file_id "
        f"WHERE {overlap('a', 'b')} AND f.table_id = a.table_id AND f.table_id = b.table_id"
        f") AS pairs WHERE since < coalesce(until, {NEVER}) GROUP BY table_id, id"
    )


def _ends_early(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, f.data_file_id AS id, d.delete_file_id AS delete_file_id, d.end_snapshot AS since, "
        "CASE WHEN min(b.begin_snapshot) IS NULL THEN f.end_snapshot ELSE min(b.begin_snapshot) END AS until "
        "FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f ON f.data_file_id = d.data_file_id "
        "AND f.table_id = d.table_id LEFT JOIN ducklake_delete_file AS b ON b.data_file_id = d.data_file_id "
        "AND b.begin_snapshot >= d.end_snapshot AND b.delete_file_id <> d.delete_file_id "
        f"WHERE d.end_snapshot IS NOT NULL AND d.begin_snapshot < d.end_snapshot "
        f"AND d.end_snapshot < coalesce(f.end_snapshot, {NEVER}) "
        "AND NOT EXISTS (SELECT 1 FROM ducklake_delete_file AS c WHERE c.data_file_id = d.data_file_id "
        "AND c.delete_file_id <> d.delete_file_id AND c.begin_snapshot <= d.end_snapshot "
        f"AND coalesce(c.end_snapshot, {NEVER}) > d.end_snapshot) "
        "GROUP BY f.table_id, f.data_file_id, f.end_snapshot, d.delete_file_id, d.end_snapshot"
    )


def _shrinks(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, f.data_file_id AS id, b.delete_file_id AS other, a.delete_count AS earlier, "
        "b.delete_count AS now, b.begin_snapshot AS since, b.end_snapshot AS until FROM ducklake_delete_file AS a "
        "JOIN ducklake_delete_file AS b ON b.data_file_id = a.data_file_id AND b.begin_snapshot = a.end_snapshot "
        "JOIN ducklake_data_file AS f ON f.data_file_id = a.data_file_id "
        f"WHERE b.delete_count < a.delete_count AND b.begin_snapshot < coalesce(f.end_snapshot, {NEVER})"
    )


def _too_many(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, f.data_file_id AS id, d.delete_file_id AS delete_file_id, d.delete_count AS deleted, "
        "f.record_count AS record_count, d.begin_snapshot AS since, d.end_snapshot AS until FROM ducklake_delete_file AS d "
        "JOIN ducklake_data_file AS f ON f.data_file_id = d.data_file_id "
        "WHERE d.delete_count > f.record_count OR d.delete_count < 0"
    )


def _unknown_format(_: Context) -> str:
    return (
        "SELECT d.table_id AS table_id, d.delete_file_id AS id, d.format AS format, d.begin_snapshot AS since, "
        "d.end_snapshot AS until FROM ducklake_delete_file AS d "
        "WHERE d.format IS NULL OR lower(d.format) NOT IN ('parquet', 'puffin')"
    )


def _marks(context: Context) -> str | None:
    """SELECT of all inlined deletions; None where there are no tables of them."""
    parts = [
        f"SELECT {table_id:d} AS of_table, file_id, row_id, begin_snapshot FROM {quote_identifier(name)}"
        for table_id, name in sorted(context.delete_tables.items())
    ]
    return " UNION ALL ".join(parts) or None


def _mark_twice(context: Context) -> str | None:
    marks = _marks(context)
    return marks and (
        "SELECT m.of_table AS table_id, m.file_id AS id, m.row_id AS position, count(*) AS times, "
        "max(m.begin_snapshot) AS since, min(f.end_snapshot) AS until "
        f"FROM ({marks}) AS m JOIN ducklake_data_file AS f ON f.data_file_id = m.file_id AND f.table_id = m.of_table "
        "GROUP BY m.of_table, m.file_id, m.row_id HAVING count(*) > 1"
    )


def _mark_of_no_file(context: Context) -> str | None:
    marks = _marks(context)
    return marks and (
        f"SELECT m.of_table AS table_id, count(*) AS deletions, NULL AS since, NULL AS until FROM ({marks}) AS m "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file AS f WHERE f.data_file_id = m.file_id) GROUP BY m.of_table"
    )


def _mark_of_other_table(context: Context) -> str | None:
    marks = _marks(context)
    return marks and (
        "SELECT m.of_table AS table_id, m.file_id AS id, f.table_id AS other_table, count(*) AS deletions, "
        f"min(m.begin_snapshot) AS since, min(f.end_snapshot) AS until FROM ({marks}) AS m "
        "JOIN ducklake_data_file AS f ON f.data_file_id = m.file_id WHERE f.table_id <> m.of_table "
        "GROUP BY m.of_table, m.file_id, f.table_id"
    )


def _mark_outside(context: Context) -> str | None:
    marks = _marks(context)
    return marks and (
        "SELECT m.of_table AS table_id, m.file_id AS id, m.row_id AS position, f.record_count AS record_count, "
        f"{later('m.begin_snapshot', 'f.begin_snapshot')} AS since, f.end_snapshot AS until FROM ({marks}) AS m "
        "JOIN ducklake_data_file AS f ON f.data_file_id = m.file_id AND f.table_id = m.of_table "
        "WHERE m.row_id < 0 OR m.row_id >= f.record_count OR m.row_id IS NULL"
    )


def _more_than_rows(context: Context) -> str | None:
    marks = _marks(context)
    return marks and (
        "SELECT f.table_id AS table_id, f.data_file_id AS id, f.record_count AS record_count, d.deleted AS deleted, "
        f"m.marks AS marks, {later('m.since', 'd.since')} AS since, f.end_snapshot AS until "
        f"FROM (SELECT of_table, file_id, count(*) AS marks, max(begin_snapshot) AS since FROM ({marks}) AS all_marks "
        "GROUP BY of_table, file_id) AS m "
        "JOIN (SELECT data_file_id, sum(delete_count) AS deleted, max(begin_snapshot) AS since FROM ducklake_delete_file "
        "WHERE end_snapshot IS NULL GROUP BY data_file_id) AS d ON d.data_file_id = m.file_id "
        "JOIN ducklake_data_file AS f ON f.data_file_id = m.file_id AND f.table_id = m.of_table "
        "WHERE m.marks + d.deleted > f.record_count AND f.end_snapshot IS NULL"
    )


CHECKS = (
    Check(
        "delete_file_of_no_file", "deletions", "warning", "none", "delete file {id}",
        "It deletes from data file {data_file_id}, which the catalog lacks.",
        query=_of_no_file,
        reason="it is needed if the data file's row comes back from a backup",
    ),
    Check(
        "delete_file_of_other_table", "deletions", "error", "wrong", "delete file {id}",
        "It says table {other_table}, and its data file {data_file_id} belongs to table {table_id}: deleted rows show.",
        query=_of_other_table,
        repair=Repair("give it the table of its data file, if it is in that table's folder", mending.move_delete_file),
    ),
    Check(
        "overlapping_delete_files", "deletions", "error", "wrong", _OF,
        "Delete files {first_one} and {other} both apply at one snapshot: readers join the file twice.",
        query=_overlapping,
        repair=Repair(_BOTH, deletion_files.merge_delete_files),
    ),
    Check(
        "deletions_end_early", "deletions", "error", "wrong", _OF,
        "Delete file {delete_file_id} ends, no other takes its place, and the data file goes on: deleted rows show again.",
        query=_ends_early, key=("table_id", "id", "delete_file_id"),
        repair=Repair(_BOTH, deletion_files.merge_delete_files),
    ),
    Check(
        "deletions_shrink", "deletions", "error", "wrong", _OF,
        "Delete file {other} has {now} deletions, the one before it had {earlier}: deleted rows show again.",
        query=_shrinks, key=("table_id", "id", "other"),
        repair=Repair(_BOTH, deletion_files.merge_delete_files),
    ),
    Check(
        "more_deletions_than_rows", "deletions", "error", "wrong", _OF,
        "Delete file {delete_file_id} is said to have {deleted} deletions of {record_count} rows: counts are negative.",
        query=_too_many, key=("table_id", "id", "delete_file_id"),
        repair=Repair("count the deletions in the delete file", deletion_files.recount),
    ),
    Check(
        "delete_format_unknown", "deletions", "error", "fails", "delete file {id}",
        'Its format is "{format}"; delete files are parquet or puffin.',
        query=_unknown_format,
        repair=Repair("name the format that the file has", deletion_files.name_format),
    ),
    Check(
        "inlined_deletion_twice", "deletions", "error", "wrong", _OF,
        "The catalog deletes position {position} {times} times: counts subtract it each time.",
        query=_mark_twice, key=("table_id", "id", "position"),
        repair=Repair("keep the first of these deletions", mending.keep_first_mark),
    ),
    Check(
        "inlined_deletions_of_no_file", "deletions", "info", "none", "inlined deletions",
        "{deletions} deletions are kept in the catalog, and their files have gone.",
        query=_mark_of_no_file, key=("table_id",),
        reason="they are needed if a data file's row comes back from a backup; flush_inlined_data lets go of them",
    ),
    Check(
        "inlined_deletion_of_other_table", "deletions", "error", "wrong", _OF,
        "{deletions} deletions from it are kept for this table, and it belongs to table {other_table}: deleted rows may show.",
        query=_mark_of_other_table,
        reason="the rows may be deleted or not; DELETE them again, or restore the catalog from a backup",
    ),
    Check(
        "inlined_deletion_outside", "deletions", "error", "wrong", _OF,
        "The catalog deletes position {position} of {record_count} rows: counts subtract a row that is not there.",
        query=_mark_outside, key=("table_id", "id", "position"),
        repair=Repair("remove the deletion, which deletes no row", mending.drop_outside_mark),
    ),
    Check(
        "deletions_exceed_rows", "deletions", "error", "wrong", _OF,
        "{deleted} deletions in files and {marks} in the catalog exceed its {record_count} rows: counts are negative.",
        query=_more_than_rows,
        repair=Repair("keep each deletion in one place", deletion_files.untangle),
    ),
    Check(
        "deletion_in_two_places", "deletions", "error", "wrong", _OF,
        "{doubled} rows are deleted by a delete file and by the catalog: counts are too low, and deleted rows may show.",
        probe=probes.doubled_deletions, depth="storage",
        repair=Repair("keep each deletion in one place", deletion_files.untangle),
    ),
    Check(
        "delete_file_missing", "deletions", "error", "fails", "delete file {id}",
        "The storage has no file {path}, which says which rows are deleted.",
        probe=probes.missing_delete_files, depth="storage",
        reason="without it deleted rows would come back; restore it from a backup",
    ),
    Check(
        "delete_file_size", "deletions", "error", "fails", "delete file {id}",
        "The file has {found} bytes, and {file_size_bytes} in the catalog.",
        probe=probes.delete_file_sizes, depth="storage",
        repair=Repair("take its size from the file, if it has all deletions", deletion_files.recount_id),
    ),
)  # fmt: skip
