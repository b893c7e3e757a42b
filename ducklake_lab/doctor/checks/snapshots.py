"""Snapshots, counters of ids, and versions of the schema."""

from __future__ import annotations

from ducklake_lab.doctor import catalog_mending
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import NEWEST, Context

_LAST = f"(SELECT * FROM ducklake_snapshot WHERE snapshot_id = {NEWEST})"


def _twice(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, snapshot_id AS id, count(*) AS times, snapshot_id AS since, snapshot_id + 1 AS until "
        "FROM ducklake_snapshot GROUP BY snapshot_id HAVING count(*) > 1"
    )


def _changes_twice(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, snapshot_id AS id, count(*) AS times, snapshot_id AS since, snapshot_id + 1 AS until "
        "FROM ducklake_snapshot_changes GROUP BY snapshot_id HAVING count(*) > 1"
    )


def _changes_missing(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, n.snapshot_id AS id, n.snapshot_id AS since, n.snapshot_id + 1 AS until "
        "FROM ducklake_snapshot AS n "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_snapshot_changes AS c WHERE c.snapshot_id = n.snapshot_id)"
    )


def _changes_of_none(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, c.snapshot_id AS id, NULL AS since, NULL AS until FROM ducklake_snapshot_changes AS c "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_snapshot AS n WHERE n.snapshot_id = c.snapshot_id) "
        f"AND c.snapshot_id > {NEWEST}"
    )


def _next_file(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, n.next_file_id AS next_file_id, u.used AS used, NULL AS since, NULL AS until "
        f"FROM {_LAST} AS n CROSS JOIN (SELECT max(used) AS used FROM (SELECT max(data_file_id) AS used FROM ducklake_data_file "
        "UNION ALL SELECT max(delete_file_id) FROM ducklake_delete_file) AS m) AS u WHERE u.used >= n.next_file_id"
    )


def _next_catalog(_: Context) -> str:
    used = " UNION ALL ".join(
        f"SELECT max({key}) AS used FROM {table}"
        for table, key in (
            ("ducklake_schema", "schema_id"),
            ("ducklake_table", "table_id"),
            ("ducklake_view", "view_id"),
            ("ducklake_macro", "macro_id"),
            ("ducklake_partition_info", "partition_id"),
        )
    )
    return (
        "SELECT NULL AS table_id, n.next_catalog_id AS next_catalog_id, u.used AS used, NULL AS since, NULL AS until "
        f"FROM {_LAST} AS n CROSS JOIN (SELECT max(used) AS used FROM ({used}) AS m) AS u WHERE u.used >= n.next_catalog_id"
    )


def _pairs(condition: str, columns: str) -> str:
    return (
        f"SELECT NULL AS table_id, b.snapshot_id AS id, a.snapshot_id AS earlier, {columns}, b.snapshot_id AS since, "
        "NULL AS until FROM ducklake_snapshot AS b JOIN (SELECT snapshot_id, "
        "lag(snapshot_id) OVER (ORDER BY snapshot_id) AS before_it FROM ducklake_snapshot) AS o ON o.snapshot_id = b.snapshot_id "
        f"JOIN ducklake_snapshot AS a ON a.snapshot_id = o.before_it WHERE {condition}"
    )


def _time_back(_: Context) -> str:
    return _pairs("b.snapshot_time < a.snapshot_time", "b.snapshot_time AS made, a.snapshot_time AS made_before")


def _version_back(_: Context) -> str:
    return _pairs("b.schema_version < a.schema_version", "b.schema_version AS now, a.schema_version AS was")


def _ids_back(_: Context) -> str:
    return (
        "SELECT NULL AS table_id, n.snapshot_id AS id, n.next_file_id AS next_file_id, n.next_catalog_id AS next_catalog_id, "
        f"m.files AS files, m.entries AS entries, NULL AS since, NULL AS until FROM {_LAST} AS n CROSS JOIN "
        "(SELECT max(next_file_id) AS files, max(next_catalog_id) AS entries FROM ducklake_snapshot) AS m "
        "WHERE n.next_file_id < m.files OR n.next_catalog_id < m.entries"
    )


def _no_version(_: Context) -> str:
    return (
        "SELECT x.table_id AS table_id, min(x.begin_snapshot) AS since, NULL AS until FROM ducklake_table AS x "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_schema_versions AS v WHERE v.table_id = x.table_id) GROUP BY x.table_id"
    )


def _no_version_of_change(_: Context) -> str:
    return (
        "SELECT c.table_id AS table_id, c.begin_snapshot AS id, c.begin_snapshot AS since, NULL AS until "
        "FROM (SELECT DISTINCT table_id, begin_snapshot FROM ducklake_column) AS c "
        "JOIN (SELECT table_id, min(begin_snapshot) AS first FROM ducklake_table GROUP BY table_id) AS x "
        "ON x.table_id = c.table_id AND x.first < c.begin_snapshot "
        "JOIN ducklake_snapshot AS n ON n.snapshot_id = c.begin_snapshot "
        "WHERE EXISTS (SELECT 1 FROM ducklake_schema_versions AS v WHERE v.table_id = c.table_id) "
        "AND NOT EXISTS (SELECT 1 FROM ducklake_schema_versions AS v WHERE v.table_id = c.table_id "
        "AND v.begin_snapshot = c.begin_snapshot)"
    )


def _version_twice(_: Context) -> str:
    return (
        "SELECT table_id, schema_version AS id, count(*) AS times, min(begin_snapshot) AS since, NULL AS until "
        "FROM ducklake_schema_versions WHERE table_id IS NOT NULL GROUP BY table_id, schema_version HAVING count(*) > 1"
    )


def _version_of_no_table(_: Context) -> str:
    return (
        "SELECT DISTINCT v.table_id AS id, NULL AS table_id, NULL AS since, NULL AS until FROM ducklake_schema_versions AS v "
        "WHERE v.table_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ducklake_table AS x WHERE x.table_id = v.table_id)"
    )


def _id_of_two(_: Context) -> str:
    kinds = (("table", "table_id"), ("view", "view_id"), ("schema", "schema_id"), ("macro", "macro_id"))
    parts = [f"SELECT DISTINCT '{kind}' AS kind, {key} AS id FROM ducklake_{kind}" for kind, key in kinds]
    return (
        "SELECT NULL AS table_id, id, min(kind) AS kind, max(kind) AS other, NULL AS since, NULL AS until "
        f"FROM ({' UNION ALL '.join(parts)}) AS k GROUP BY id HAVING count(*) > 1"
    )


def _file_id_of_two(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, f.data_file_id AS id, f.begin_snapshot AS since, f.end_snapshot AS until "
        "FROM ducklake_data_file AS f JOIN ducklake_delete_file AS d ON d.delete_file_id = f.data_file_id"
    )


def _file_id_twice(_: Context) -> str:
    return (
        "SELECT min(table_id) AS table_id, data_file_id AS id, count(*) AS times, min(begin_snapshot) AS since, NULL AS until "
        "FROM ducklake_data_file GROUP BY data_file_id HAVING count(*) > 1"
    )


def _option_twice(_: Context) -> str:
    return (
        'SELECT NULL AS table_id, m."key" AS id, count(*) AS times, count(DISTINCT m."value") AS differing, '
        'NULL AS since, NULL AS until FROM ducklake_metadata AS m WHERE m.scope IS NULL GROUP BY m."key" HAVING count(*) > 1'
    )


_COUNT_ON = "count on from {used} in a new snapshot"

CHECKS = (
    Check(
        "snapshot_twice", "snapshots", "error", "fails", "snapshot {id}",
        "The catalog has {times} rows of this snapshot: clients refuse to read it.",
        query=_twice, repair=Repair("keep one row, with the largest counters", catalog_mending.keep_one_snapshot),
    ),
    Check(
        "snapshot_changes_twice", "snapshots", "warning", "later", "snapshot {id}",
        "ducklake_snapshot_changes has {times} rows of this snapshot: histories list it as often.",
        query=_changes_twice, repair=Repair("keep one of equal rows", catalog_mending.keep_one_change),
    ),
    Check(
        "snapshot_changes_missing", "snapshots", "warning", "later", "snapshot {id}",
        "ducklake_snapshot_changes has no row of this snapshot: conflicts with it are not seen, and histories leave it out.",
        query=_changes_missing,
        repair=Repair("add a row without changes, which says that it was added", catalog_mending.add_changes),
    ),
    Check(
        "changes_of_no_snapshot", "snapshots", "error", "later", "snapshot {id}",
        "ducklake_snapshot_changes has a row of this snapshot, which is yet to come: its commit fails.",
        query=_changes_of_none, repair=Repair("remove the row", catalog_mending.drop_changes),
    ),
    Check(
        "next_file_id_too_small", "snapshots", "error", "later", "next file id",
        "The next file id is {next_file_id}, and {used} is in use: a new file would take it again.",
        query=_next_file, key=(), repair=Repair(_COUNT_ON, catalog_mending.count_on),
    ),
    Check(
        "next_catalog_id_too_small", "snapshots", "error", "later", "next catalog id",
        "The next catalog id is {next_catalog_id}, and {used} is in use: a new entry would take it again.",
        query=_next_catalog, key=(), repair=Repair(_COUNT_ON, catalog_mending.count_on),
    ),
    Check(
        "time_goes_back", "snapshots", "warning", "wrong", "snapshot {id}",
        "It is of {made}, before snapshot {earlier} of {made_before}: AT (TIMESTAMP => …) may find the wrong one.",
        query=_time_back, reason="which of the two times is wrong is not known",
    ),
    Check(
        "schema_version_goes_back", "snapshots", "error", "wrong", "snapshot {id}",
        "Its schema version is {now}, and {was} in snapshot {earlier}: clients keep the columns of another snapshot.",
        query=_version_back, reason="versions are named by other tables too; restore the catalog from a backup",
    ),
    Check(
        "counters_go_back", "snapshots", "warning", "later", "snapshot {id}",
        "Its counters of ids, {next_file_id} and {next_catalog_id}, are below those of earlier snapshots, {files} and {entries}.",
        query=_ids_back,
        repair=Repair("count on from the largest counters in a new snapshot", catalog_mending.count_on),
    ),
    Check(
        "schema_version_missing", "snapshots", "error", "later", "schema versions",
        "ducklake_schema_versions has no row of this table: merging its files, and reading its inlined rows, fails.",
        query=_no_version, key=("table_id",), repair=Repair("add a row of the table's begin", catalog_mending.add_version),
    ),
    Check(
        "schema_version_of_change_missing", "snapshots", "error", "later", "schema versions",
        "Columns changed in snapshot {id}, and ducklake_schema_versions has no row of it: files of both may be merged.",
        query=_no_version_of_change, repair=Repair("add the row", catalog_mending.add_version_of_change),
    ),
    Check(
        "schema_version_twice", "snapshots", "warning", "later", "schema version {id}",
        "ducklake_schema_versions has {times} rows of it: maintenance counts files as often.",
        query=_version_twice, repair=Repair("keep the first row", catalog_mending.keep_first_version),
    ),
    Check(
        "schema_version_of_no_table", "snapshots", "warning", "later", "table {id}",
        "ducklake_schema_versions has rows of it, and the catalog has no such table: maintenance fails as it looks for it.",
        query=_version_of_no_table, key=("id",), repair=Repair("remove the rows", catalog_mending.drop_versions),
    ),
    Check(
        "id_of_two_entries", "snapshots", "error", "later", "id {id}",
        "A {kind} and a {other} have it: statistics and tags of one are taken for the other's.",
        query=_id_of_two, key=("id",), reason="other tables name entries by their ids; create one of the two anew and drop it",
    ),
    Check(
        "file_id_of_two_files", "snapshots", "warning", "later", "file {id}",
        "A data file and a delete file have this id.",
        query=_file_id_of_two, reason="the list of files to delete names files by their ids; write the rows again with UPDATE",
    ),
    Check(
        "file_id_twice", "snapshots", "error", "wrong", "data file {id}",
        "{times} data files have this id: deletions and statistics of one are taken for the other's.",
        query=_file_id_twice, reason="which deletions and statistics belong to which file is not known; restore the catalog",
    ),
    Check(
        "option_twice", "snapshots", "warning", "later", "option {id}",
        "ducklake_metadata has {times} rows of it, with {differing} values.",
        query=_option_twice, key=("id",), repair=Repair("keep one of equal rows", catalog_mending.keep_one_option),
    ),
)  # fmt: skip
