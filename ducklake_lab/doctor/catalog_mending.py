"""Repairs of snapshots, counters, versions of the schema, and entries."""

from __future__ import annotations

from ducklake_lab.doctor.check import Row
from ducklake_lab.doctor.context import Context
from ducklake_lab.doctor.plan import (
    Change,
    NoRepairError,
    Plan,
    Record,
    distinct,
    dropped,
    number,
    only,
    read,
    replaced,
    table_of_hit,
    update,
)


def keep_one_snapshot(context: Context, row: Row) -> Plan:
    records = read(context, "ducklake_snapshot", snapshot_id=row["id"])
    if len({(one["schema_version"]) for one in records}) > 1:
        raise NoRepairError("the rows have other schema versions")
    last = max(records, key=lambda one: (number(one["next_file_id"]), number(one["next_catalog_id"])))
    kept = {**last, "next_catalog_id": max(number(one["next_catalog_id"]) for one in records)}
    return Plan(replaced("ducklake_snapshot", records, [kept]))


def _keep_equal(table: str, records: list[Record], table_id: int | None = None) -> Plan:
    kept = distinct(records)
    if len(kept) > 1:
        raise NoRepairError("the rows differ, and which is right is not known")
    return Plan(replaced(table, records, kept), table_id)


def keep_one_change(context: Context, row: Row) -> Plan:
    return _keep_equal("ducklake_snapshot_changes", read(context, "ducklake_snapshot_changes", snapshot_id=row["id"]))


def keep_one_option(context: Context, row: Row) -> Plan:
    return _keep_equal("ducklake_metadata", read(context, "ducklake_metadata", key=row["id"], scope=None))


def add_changes(_: Context, row: Row) -> Plan:
    new: Record = {
        "snapshot_id": row["id"],
        "changes_made": "",
        "author": None,
        "commit_message": "The row of this snapshot was missing; what it changed is not known.",
        "commit_extra_info": None,
    }
    return Plan([Change("ducklake_snapshot_changes", None, new)])


def drop_changes(context: Context, row: Row) -> Plan:
    return Plan(dropped(context, "ducklake_snapshot_changes", snapshot_id=row["id"]))


def count_on(context: Context, _: Row) -> Plan:
    (snapshots,) = context.rows(
        "SELECT max(next_file_id) AS files, max(next_catalog_id) AS entries FROM ducklake_snapshot"
    )
    (used,) = context.rows(
        "SELECT (SELECT max(data_file_id) FROM ducklake_data_file) AS d, (SELECT max(delete_file_id) FROM ducklake_delete_file) "
        "AS e, (SELECT max(schema_id) FROM ducklake_schema) AS s, (SELECT max(table_id) FROM ducklake_table) AS t, "
        "(SELECT max(view_id) FROM ducklake_view) AS v, (SELECT max(macro_id) FROM ducklake_macro) AS m, "
        "(SELECT max(partition_id) FROM ducklake_partition_info) AS p"
    )

    def beyond(*names: str) -> int:
        return max((number(used[name]) + 1 for name in names if used[name] is not None), default=0)

    return Plan(
        next_file_id=max(number(snapshots["files"]), beyond("d", "e")),
        next_catalog_id=max(number(snapshots["entries"]), beyond("s", "t", "v", "m", "p")),
    )


def add_version(context: Context, row: Row) -> Plan:
    (first,) = context.rows(
        f"SELECT min(begin_snapshot) AS begin_snapshot FROM ducklake_table WHERE table_id = {number(row['table_id']):d}"
    )
    return _version_row(context, row, number(first["begin_snapshot"]))


def add_version_of_change(context: Context, row: Row) -> Plan:
    return _version_row(context, row, number(row["id"]))


def _version_row(context: Context, row: Row, begin: int) -> Plan:
    newest = context.rows(
        f"SELECT max(schema_version) AS schema_version FROM ducklake_snapshot WHERE snapshot_id = {begin:d}"
    )
    if newest[0]["schema_version"] is None:
        raise NoRepairError(f"snapshot {begin} has expired, and with it the schema version that began then")
    new: Record = {
        "begin_snapshot": begin,
        "schema_version": newest[0]["schema_version"],
        "table_id": row["table_id"],
    }
    return Plan([Change("ducklake_schema_versions", None, new)], table_of_hit(row))


def keep_first_version(context: Context, row: Row) -> Plan:
    records = read(context, "ducklake_schema_versions", table_id=row["table_id"], schema_version=row["id"])
    first = min(records, key=lambda one: number(one["begin_snapshot"]))
    return Plan(replaced("ducklake_schema_versions", records, [first]), table_of_hit(row))


def drop_versions(context: Context, row: Row) -> Plan:
    return Plan(dropped(context, "ducklake_schema_versions", table_id=row["id"]))


# Entries


def _versions(context: Context, row: Row) -> tuple[str, list[Record]]:
    table = str(row["of_table"])
    key = {
        "ducklake_data_file": "data_file_id",
        "ducklake_delete_file": "delete_file_id",
        "ducklake_partition_info": "partition_id",
        "ducklake_sort_info": "sort_id",
    }.get(table, f"{table.removeprefix('ducklake_')}_id")
    where: dict[str, object] = {key: row["id"]}
    if table == "ducklake_column":
        where["table_id"] = row["table_id"]
    return table, read(context, table, **where)


def end_never(context: Context, row: Row) -> Plan:
    table, versions = _versions(context, row)
    wrong = [
        one for one in versions if one["begin_snapshot"] == row["first_one"] and one["end_snapshot"] == row["last_one"]
    ]
    if any(number(one["begin_snapshot"]) > number(row["first_one"]) for one in versions):
        raise NoRepairError("a later version of it begins, at which it may have to end")
    return Plan([update(table, one, end_snapshot=None) for one in distinct(wrong)], table_of_hit(row))


def end_version(context: Context, row: Row) -> Plan:
    table, versions = _versions(context, row)
    first = only([one for one in versions if one["begin_snapshot"] == row["first_one"]], f"{row['kind']} {row['id']}")
    only([one for one in versions if one["begin_snapshot"] == row["other"]], f"{row['kind']} {row['id']}")
    begins = [
        number(one["begin_snapshot"])
        for one in versions
        if one["end_snapshot"] is None or number(one["begin_snapshot"]) < number(one["end_snapshot"])
    ]
    following = min(begin for begin in begins if begin > number(row["first_one"]))
    return Plan([update(table, first, end_snapshot=following)], table_of_hit(row))


def keep_one_version(context: Context, row: Row) -> Plan:
    table, versions = _versions(context, row)
    same = [one for one in versions if one["begin_snapshot"] == row["first_one"]]
    return _keep_equal(table, same, table_of_hit(row))


def end_partitioning(context: Context, row: Row) -> Plan:
    one = only(read(context, "ducklake_partition_info", partition_id=row["id"]), f"partitioning {row['id']}")
    other = only(read(context, "ducklake_partition_info", partition_id=row["other"]), f"partitioning {row['other']}")
    first, second = sorted((one, other), key=lambda record: number(record["begin_snapshot"]))
    if first["begin_snapshot"] == second["begin_snapshot"]:
        raise NoRepairError("both begin with one snapshot")
    return Plan([update("ducklake_partition_info", first, end_snapshot=second["begin_snapshot"])], table_of_hit(row))
