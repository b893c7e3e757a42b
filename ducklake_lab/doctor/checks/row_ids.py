"""Row ids, and the counters that give them."""

from __future__ import annotations

from ducklake_lab.doctor import mending
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import NEVER, Context, later, overlap, sooner
from ducklake_lab.model.quoting import quote_identifier

_RANGE = "{0}.row_id_start IS NOT NULL AND {0}.record_count > 0"


def _same_start(context: Context) -> str:
    # a restore brings rows back in a file that begins with deletions of all its other rows: then no more rows than the longer
    # file has are left of both. Which ones they are, the files alone show: see row_id_twice
    at = later("a.begin_snapshot", "b.begin_snapshot")
    of_a, of_b = (_deleted(context, file, at) for file in "ab")
    longer = later("a.record_count", "b.record_count")
    return (
        "SELECT a.table_id AS table_id, a.data_file_id AS id, b.data_file_id AS other, a.row_id_start AS row_id, "
        f"{at} AS since, {sooner('a.end_snapshot', 'b.end_snapshot')} AS until "
        "FROM ducklake_data_file AS a JOIN ducklake_data_file AS b ON b.table_id = a.table_id "
        "AND b.row_id_start = a.row_id_start AND b.data_file_id > a.data_file_id "
        f"WHERE {_RANGE.format('a')} AND {_RANGE.format('b')} AND {overlap('a', 'b')} "
        "AND a.partial_max IS NULL AND b.partial_max IS NULL AND "
        f"(a.record_count + b.record_count - {of_a} - {of_b} > {longer} OR ({of_b} = 0 AND a.record_count > {of_a}))"
    )


def _deleted(context: Context, file: str, at: str) -> str:
    """SQL of the number of rows of a file that are deleted at a snapshot: those of its delete files, also if later, and inlined."""
    parts = [
        "SELECT data_file_id AS file_id, delete_count AS gone, begin_snapshot, end_snapshot FROM ducklake_delete_file"
    ]
    parts += [
        f"SELECT file_id, 1, begin_snapshot, NULL FROM {quote_identifier(name)}"
        for _, name in sorted(context.delete_tables.items())
    ]
    return (
        f"coalesce((SELECT sum(d.gone) FROM ({' UNION ALL '.join(parts)}) AS d WHERE d.file_id = {file}.data_file_id "
        f"AND d.begin_snapshot <= {at} AND coalesce(d.end_snapshot, {NEVER}) > {at}), 0)"
    )


def _next_too_small(context: Context) -> str:
    row_id = context.inlined_columns[0]
    parts = [
        "SELECT table_id, max(row_id_start + record_count) AS wanted, min(begin_snapshot) AS since FROM ducklake_data_file "
        "WHERE row_id_start IS NOT NULL AND begin_snapshot >= 0 AND partial_max IS NULL GROUP BY table_id"
    ]
    parts += [
        f"SELECT {table_id:d}, max({row_id}) + 1, NULL FROM {quote_identifier(name)}"
        for table_id, name in context.readable
    ]
    return (
        "SELECT w.table_id AS table_id, max(s.next_row_id) AS next_row_id, max(w.wanted) AS wanted, NULL AS since, NULL AS until "
        f"FROM ({' UNION ALL '.join(parts)}) AS w JOIN ducklake_table_stats AS s ON s.table_id = w.table_id "
        "WHERE w.wanted > coalesce(s.next_row_id, 0) GROUP BY w.table_id"
    )


def _inlined_twice(context: Context) -> str | None:
    row_id, begin, end = context.inlined_columns
    parts = [
        f"SELECT {table_id:d} AS table_id, {row_id} AS row_id, {begin} AS begin_snapshot, {end} AS end_snapshot "
        f"FROM {quote_identifier(name)}"
        for table_id, name in context.readable
    ]
    if not parts:
        return None
    rows = " UNION ALL ".join(parts)
    # versions of one row follow one another, so that their spans add up to that from the first to the last
    return (
        "SELECT table_id, row_id, count(*) AS times, max(begin_snapshot) AS since, "
        f"CASE WHEN max(coalesce(end_snapshot, {NEVER})) = {NEVER} THEN NULL ELSE max(end_snapshot) END AS until FROM ({rows}) AS r "
        "GROUP BY table_id, row_id HAVING count(*) > 1 AND (sum(CASE WHEN end_snapshot IS NULL THEN 1 ELSE 0 END) > 1 "
        "OR count(DISTINCT begin_snapshot) < count(*))"
    )


def _no_stats(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, count(*) AS files, min(f.begin_snapshot) AS since, NULL AS until "
        "FROM ducklake_data_file AS f JOIN (SELECT DISTINCT table_id FROM ducklake_table) AS x ON x.table_id = f.table_id "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_table_stats AS s WHERE s.table_id = f.table_id) GROUP BY f.table_id"
    )


def _stats_twice(_: Context) -> str:
    return (
        "SELECT table_id, count(*) AS times, max(next_row_id) AS next_row_id, NULL AS since, NULL AS until "
        "FROM ducklake_table_stats GROUP BY table_id HAVING count(*) > 1"
    )


def _stats_of_no_table(_: Context) -> str:
    return (
        "SELECT DISTINCT s.table_id AS id, NULL AS table_id, NULL AS since, NULL AS until FROM ducklake_table_stats AS s "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_table AS x WHERE x.table_id = s.table_id)"
    )


CHECKS = (
    Check(
        "row_ids_twice", "row ids", "error", "wrong", "data file {id}",
        "Its row ids begin with {row_id}, as do those of data file {other}: changes of one row would hit both.",
        query=_same_start, key=("table_id", "id", "other"),
        reason="both files may hold rows of their own; compare them, and DELETE those that are there twice",
    ),
    Check(
        "next_row_id_too_small", "row ids", "error", "later", "row ids",
        "The next row id is {next_row_id}, and rows have ids up to {wanted}: new rows would take ids that are in use.",
        query=_next_too_small, key=("table_id",),
        repair=Repair("count on from {wanted}", mending.raise_next_row_id),
    ),
    Check(
        "inlined_row_twice", "row ids", "error", "wrong", "inlined row {row_id}",
        "The catalog has {times} rows with this id at one snapshot.",
        query=_inlined_twice, key=("table_id", "row_id"),
        reason="each may be the right one; compare them, and DELETE the row before you insert it again",
    ),
    Check(
        "table_stats_missing", "row ids", "error", "later", "statistics",
        "The table has {files} data files and no row in ducklake_table_stats: new rows would take ids that are in use.",
        query=_no_stats, key=("table_id",),
        repair=Repair("count rows, bytes and the next row id from the files", mending.make_table_stats),
    ),
    Check(
        "table_stats_twice", "row ids", "error", "later", "statistics",
        "The table has {times} rows in ducklake_table_stats: clients count on from any of them.",
        query=_stats_twice, key=("table_id",),
        repair=Repair("keep the largest counts", mending.join_table_stats),
    ),
    Check(
        "table_stats_of_no_table", "row ids", "error", "fails", "statistics of {id}",
        "ducklake_table_stats has a row of {id}, which is no table: clients fail as they look for it.",
        query=_stats_of_no_table, key=("id",),
        repair=Repair("remove the row, which counts no table's rows", mending.drop_table_stats),
    ),
)  # fmt: skip
