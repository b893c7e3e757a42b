"""Causes of slow or large lakes, which make no answer wrong."""

from __future__ import annotations

from ducklake_lab.doctor import mending, probes
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import Context, dead_condition
from ducklake_lab.files.options import DEFAULT_TARGET_FILE_SIZE, parse_bytes
from ducklake_lab.model.quoting import quote_identifier

#: Small files of one table from which it is worth merging, and the share of the target size below which one is small.
MANY_SMALL, SMALL = 20, 0.25
#: Share of deleted rows of a table's files from which it is worth writing them again.
DELETED = 0.2
#: Snapshots from which a lake that never lets go of any is slow to read.
MANY_SNAPSHOTS = 10_000


def _small_files(context: Context) -> str:
    given = context.options.get("target_file_size")
    target = (parse_bytes(given) if given else None) or DEFAULT_TARGET_FILE_SIZE
    return (
        "SELECT f.table_id AS table_id, count(*) AS files, sum(f.file_size_bytes) AS bytes, NULL AS since, NULL AS until "
        f"FROM ducklake_data_file AS f WHERE f.end_snapshot IS NULL AND f.file_size_bytes < {round(target * SMALL):d} "
        f"GROUP BY f.table_id HAVING count(*) >= {MANY_SMALL:d}"
    )


def _many_deletions(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, sum(d.delete_count) AS deleted, sum(f.record_count) AS record_count, "
        "NULL AS since, NULL AS until FROM ducklake_data_file AS f JOIN ducklake_delete_file AS d "
        "ON d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL WHERE f.end_snapshot IS NULL "
        f"GROUP BY f.table_id HAVING sum(d.delete_count) >= {DELETED} * sum(f.record_count)"
    )


def _dead_rows(context: Context) -> str | None:
    condition = dead_condition(*context.inlined_columns)
    parts = [
        f"SELECT {table_id:d} AS table_id, '{name}' AS name, count(*) AS n, NULL AS since, NULL AS until "
        f"FROM {quote_identifier(name)} AS r WHERE {condition} HAVING count(*) > 0"
        for table_id, name in context.readable
    ]
    return " UNION ALL ".join(parts) or None


def _never_expired(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, count(*) AS snapshots, min(snapshot_time) AS oldest, NULL AS since, NULL AS until "
        "FROM ducklake_snapshot WHERE NOT EXISTS (SELECT 1 FROM ducklake_metadata AS m WHERE m.\"key\" = 'expire_older_than') "
        f"HAVING count(*) >= {MANY_SNAPSHOTS:d}"
    )


def _waiting(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, count(*) AS files, min(schedule_start) AS oldest, NULL AS since, NULL AS until "
        "FROM ducklake_files_scheduled_for_deletion HAVING count(*) > 0"
    )


def _unseen(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, count(*) AS files, sum(f.file_size_bytes) AS bytes, NULL AS since, NULL AS until "
        # a file that ends before it begins is damaged
        "FROM ducklake_data_file AS f WHERE f.end_snapshot >= f.begin_snapshot AND NOT EXISTS (SELECT 1 FROM ducklake_snapshot AS n "
        "WHERE n.snapshot_id >= f.begin_snapshot AND n.snapshot_id < f.end_snapshot) GROUP BY f.table_id"
    )


CHECKS = (
    Check(
        "small_files", "hygiene", "info", "none", "files",
        "{files} data files are smaller than a quarter of the target size, {bytes} bytes in all.",
        query=_small_files, key=("table_id",), reason="CALL merge_adjacent_files joins them",
    ),
    Check(
        "many_deletions", "hygiene", "info", "none", "files",
        "{deleted} of {record_count} rows in files with deletions are deleted.",
        query=_many_deletions, key=("table_id",), reason="CALL rewrite_data_files writes the files without them",
    ),
    Check(
        "dead_inlined_rows", "hygiene", "info", "none", "{name}",
        "{n} deleted rows are kept in the catalog that no snapshot sees.",
        query=_dead_rows, key=("table_id", "name"),
        repair=Repair("remove them", mending.drop_dead_rows),
    ),
    Check(
        "snapshots_never_expire", "hygiene", "info", "none", "snapshots",
        "The lake has {snapshots} snapshots, the oldest of {oldest}, and no option expire_older_than.",
        query=_never_expired, key=(), reason="CALL expire_snapshots lets go of old ones; which are needed is yours to say",
    ),
    Check(
        "files_wait_for_deletion", "hygiene", "info", "none", "files",
        "{files} files wait for their deletion, the first since {oldest}.",
        query=_waiting, key=(), reason="CALL cleanup_old_files deletes them",
    ),
    Check(
        "unseen_files", "hygiene", "info", "none", "files",
        "No snapshot sees {files} data files of {bytes} bytes, and the catalog still names them.",
        query=_unseen, key=("table_id",), reason="the next expire_snapshots schedules them for deletion",
    ),
    Check(
        "orphaned_files", "hygiene", "info", "none", "files",
        "{files} files below the data path are in no catalog row, {path} among them.",
        probe=probes.orphans, key=(), depth="storage",
        reason="a transaction may be about to commit them; CALL delete_orphaned_files deletes those that are old enough",
    ),
)  # fmt: skip
