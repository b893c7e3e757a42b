"""Repairs of files, deletions, row ids and inlined rows. Each returns the changes, or says why there are none."""

from __future__ import annotations

from ducklake_lab.catalog import inlined, versions
from ducklake_lab.catalog.columns import read_columns
from ducklake_lab.doctor import footers
from ducklake_lab.doctor.check import Row
from ducklake_lab.doctor.context import NEWEST, Context, dead_condition
from ducklake_lab.doctor.plan import (
    Change,
    NoRepairError,
    Plan,
    Record,
    Statement,
    distinct,
    dropped,
    number,
    only,
    read,
    replaced,
    table_of_hit,
    update,
)
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.quoting import quote_identifier

# Data files


def forget_doubled_file(context: Context, row: Row) -> Plan:
    one = only(read(context, "ducklake_data_file", data_file_id=row["id"]), f"data file {row['id']}")
    other = only(read(context, "ducklake_data_file", data_file_id=row["other"]), f"data file {row['other']}")
    if one["row_id_start"] is None or one["row_id_start"] != other["row_id_start"]:
        raise NoRepairError(
            "the rows have other ids, so that it may have been added twice on purpose; DELETE them by rowid"
        )
    if read(context, "ducklake_delete_file", data_file_id=row["other"]):
        raise NoRepairError(f"deletions name data file {row['other']}")
    marks = context.delete_tables.get(number(row["table_id"]))
    if marks is not None and read(context, marks, file_id=row["other"]):
        raise NoRepairError(f"deletions in the catalog name data file {row['other']}")
    if (one["begin_snapshot"], one["end_snapshot"]) != (other["begin_snapshot"], other["end_snapshot"]):
        raise NoRepairError("the two begin or end with other snapshots")
    plan = Plan(table_id=table_of_hit(row))
    for table in ("ducklake_data_file", "ducklake_file_column_stats", "ducklake_file_partition_value"):
        plan.changes += [Change(table, record, None) for record in read(context, table, data_file_id=row["other"])]
    return plan


def _data_file(context: Context, row: Row) -> tuple[Record, str]:
    record = only(read(context, "ducklake_data_file", data_file_id=row["id"]), f"data file {row['id']}")
    return record, context.place(table_of_hit(row), str(record["path"]), record["path_is_relative"])


def measure_data_file(context: Context, row: Row) -> Plan:
    record, path = _data_file(context, row)
    footer = footers.read_footer(context, path, record["encryption_key"])
    if record["record_count"] != footer.rows and record["file_size_bytes"] != footer.bytes:
        raise NoRepairError(f"the file has {footer.rows} rows in {footer.bytes} bytes; it may be another one")
    footers.check_whole(context, path, record["encryption_key"])
    change = update(
        "ducklake_data_file",
        record,
        record_count=footer.rows,
        file_size_bytes=footer.bytes,
        footer_size=footer.size,
        file_format="parquet",
    )
    return Plan([change], table_of_hit(row))


def recount_data_file(context: Context, row: Row) -> Plan:
    record, path = _data_file(context, row)
    footer = footers.read_footer(context, path, record["encryption_key"])
    if record["file_size_bytes"] != footer.bytes:
        raise NoRepairError(f"the file has {footer.bytes} bytes too, not those of the catalog; it may be another one")
    start, count = record["row_id_start"], record["record_count"]
    if start is not None and footer.rows > number(count):
        ends = f"row_id_start >= {number(start) + number(count):d} AND row_id_start < {number(start) + footer.rows:d}"
        query = f"SELECT 1 FROM ducklake_data_file WHERE table_id = {number(row['table_id']):d} AND {ends}"
        if context.rows(query):
            raise NoRepairError("another file begins with the row ids that its further rows would have")
    return Plan([update("ducklake_data_file", record, record_count=footer.rows)], table_of_hit(row))


def unschedule(context: Context, row: Row) -> Plan:
    table = "ducklake_files_scheduled_for_deletion"
    return Plan(dropped(context, table, path=row["scheduled"], data_file_id=row["scheduled_id"]))


# Deletions


def move_delete_file(context: Context, row: Row) -> Plan:
    record = only(read(context, "ducklake_delete_file", delete_file_id=row["id"]), f"delete file {row['id']}")
    path = context.place(table_of_hit(row), str(record["path"]), record["path_is_relative"])
    if not context.storage.exists(path):
        raise NoRepairError(f"there is no file {path}, so that the data file's id may be the wrong one")
    return Plan([update("ducklake_delete_file", record, table_id=row["table_id"])], table_of_hit(row))


def _marks(context: Context, row: Row) -> tuple[str, list[Record]]:
    name = context.delete_tables[number(row["table_id"])]
    return name, read(context, name, file_id=row["id"], row_id=row["position"])


def keep_first_mark(context: Context, row: Row) -> Plan:
    name, marks = _marks(context, row)
    first = min(marks, key=lambda mark: number(mark["begin_snapshot"]))
    return Plan(replaced(name, marks, [first]), table_of_hit(row))


def drop_outside_mark(context: Context, row: Row) -> Plan:
    _, path = _data_file(context, row)
    record = only(read(context, "ducklake_data_file", data_file_id=row["id"]), f"data file {row['id']}")
    footer = footers.read_footer(context, path, record["encryption_key"])
    position = row["position"]
    if position is not None and 0 <= number(position) < footer.rows:
        raise NoRepairError(f"the file has {footer.rows} rows, so that its count in the catalog is wrong")
    name, marks = _marks(context, row)
    return Plan([Change(name, mark, None) for mark in distinct(marks)], table_of_hit(row))


# Row ids


def raise_next_row_id(context: Context, row: Row) -> Plan:
    return _next_row_id(context, row, number(row["wanted"]))


def raise_next_row_id_to(context: Context, row: Row) -> Plan:
    return _next_row_id(context, row, number(row["row_id"]) + 1)


def _next_row_id(context: Context, row: Row, wanted: int) -> Plan:
    record = only(read(context, "ducklake_table_stats", table_id=row["table_id"]), "the table's statistics")
    return Plan([update("ducklake_table_stats", record, next_row_id=wanted)], table_of_hit(row))


def make_table_stats(context: Context, row: Row) -> Plan:
    table_id = number(row["table_id"])
    (files,) = context.rows(
        "SELECT sum(record_count) AS records, sum(file_size_bytes) AS bytes, max(row_id_start + record_count) AS next_row_id "
        f"FROM ducklake_data_file WHERE table_id = {table_id:d}"
    )
    if context.rows(
        f"SELECT 1 FROM ducklake_data_file WHERE table_id = {table_id:d} AND (row_id_start IS NULL OR partial_max IS NOT NULL)"
    ):
        raise NoRepairError("some files hold row ids of their own; the largest is known after they were read")
    next_row_id, records = number(files["next_row_id"] or 0), number(files["records"] or 0)
    row_id = context.inlined_columns[0]
    for of, name in context.readable:
        if of == table_id:
            (kept,) = context.rows(f"SELECT count(*) AS n, max({row_id}) AS last FROM {quote_identifier(name)}")
            next_row_id = max(next_row_id, number(kept["last"]) + 1 if kept["last"] is not None else 0)
            records += number(kept["n"])
    new: Record = {
        "table_id": table_id,
        "record_count": records,
        "next_row_id": next_row_id,
        "file_size_bytes": number(files["bytes"] or 0),
    }
    return Plan([Change("ducklake_table_stats", None, new)], table_id)


def join_table_stats(context: Context, row: Row) -> Plan:
    records = read(context, "ducklake_table_stats", table_id=row["table_id"])
    kept: Record = {name: max(number(one[name] or 0) for one in records) for name in records[0]}
    return Plan(replaced("ducklake_table_stats", records, [kept]), table_of_hit(row))


def drop_table_stats(context: Context, row: Row) -> Plan:
    return Plan(dropped(context, "ducklake_table_stats", table_id=row["id"]))


# Inlined rows


def name_inlined_table(context: Context, row: Row) -> Plan:
    name, table_id = str(row["name"]), number(row["table_id"])
    _, version = context.data_tables[name]
    columns = versioned_columns(context, table_id, version)
    there = set(versions.version.columns_of(context.connection, name))
    if columns is None or there != {*context.inlined_columns, *columns}:
        raise NoRepairError("its columns are not those that the table had at that schema version")
    row_id, begin, _ = context.inlined_columns
    used = context.rows(
        f"SELECT 1 FROM ducklake_data_file AS f WHERE f.partial_max IS NOT NULL AND f.table_id = {table_id:d}"
    )
    (ids,) = context.rows(
        f"SELECT min({row_id}) AS low, max({row_id}) AS high, max({begin}) AS last FROM {quote_identifier(name)}"
    )
    low, high = number(ids["low"]), number(ids["high"])
    ranged = context.rows(
        f"SELECT 1 FROM ducklake_data_file AS f WHERE f.table_id = {table_id:d} AND (f.row_id_start IS NULL "
        f"OR (f.row_id_start <= {high:d} AND f.row_id_start + f.record_count > {low:d}))"
    )
    if used or ranged:
        raise NoRepairError("files may hold its rows already, since a flush writes them there")
    if number(ids["last"]) > context.newest:
        raise NoRepairError("some of its rows begin with a snapshot that is yet to come")
    new: Record = {"table_id": table_id, "table_name": name, "schema_version": version}
    return Plan([Change("ducklake_inlined_data_tables", None, new)], table_id)


def versioned_columns(context: Context, table_id: int, version: int) -> list[str] | None:
    """Return the names of the columns that inlined rows of a schema version have; None where the catalog does not say."""
    try:
        begin = inlined._begin_of_version(context.connection, table_id, version)
    except CatalogError:
        return None
    return [column.name for column in read_columns(context.connection, table_id, begin)]


def drop_inlined_name(context: Context, row: Row) -> Plan:
    name = str(row["name"])
    if name in context.data_tables and context.rows(f"SELECT 1 FROM {quote_identifier(name)} LIMIT 1"):
        raise NoRepairError("it holds rows, and may be the only copy")
    return Plan(dropped(context, "ducklake_inlined_data_tables", table_id=row["id"], table_name=name))


def name_once(context: Context, row: Row) -> Plan:
    records = read(context, "ducklake_inlined_data_tables", table_id=row["table_id"], table_name=row["name"])
    named_table = context.data_tables.get(str(row["name"]))
    kept = [one for one in distinct(records) if named_table is None or one["schema_version"] == named_table[1]]
    return Plan(replaced("ducklake_inlined_data_tables", records, kept[:1] or records[:1]), table_of_hit(row))


def inlined_end_never(context: Context, row: Row) -> Plan:
    name = str(row["name"])
    _, begin, end = context.inlined_columns
    sql = f"UPDATE {quote_identifier(name)} SET {end} = NULL WHERE {end} > {NEWEST} AND {begin} <= {NEWEST}"
    return Plan(table_id=table_of_hit(row), statements=[Statement(name, sql, f"let {row['n']} inlined rows go on")])


def drop_dead_rows(context: Context, row: Row) -> Plan:
    name = str(row["name"])
    sql = f"DELETE FROM {quote_identifier(name)} WHERE {dead_condition(*context.inlined_columns)}"
    statement = Statement(name, sql, f"remove {row['n']} rows that no snapshot sees")
    return Plan(table_id=table_of_hit(row), statements=[statement])
