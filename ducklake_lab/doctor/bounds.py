"""Repairs of statistics."""

from __future__ import annotations

import pyarrow as pa

from ducklake_lab.doctor.check import Row
from ducklake_lab.doctor.contents import plan_of, read_rows, seen_files, table_of
from ducklake_lab.doctor.context import Context
from ducklake_lab.doctor.plan import Change, NoRepairError, Plan, Record, Statement, only, read, replaced, update
from ducklake_lab.duckdb.bounds import extremes, smallest_and_largest
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.types import FLOATS, DataType

_FILE, _TABLE = "ducklake_file_column_stats", "ducklake_table_column_stats"


def _ids(row: Row) -> tuple[int, int]:
    return int(str(row["table_id"])), int(str(row["column_id"]))


def measure_column(context: Context, row: Row) -> Plan:
    table_id, column_id = _ids(row)
    record = only(
        read(context, _FILE, data_file_id=row["id"], column_id=column_id), f"statistics of data file {row['id']}"
    )
    files = seen_files(context, table_id, int(str(row["id"])))
    table = table_of(context, files[0]) if files else None
    column = next((one for one in table.columns if one.column_id == column_id), None) if table is not None else None
    if not files or table is None or column is None or column.children:
        new = update(_FILE, record, min_value=None, max_value=None, value_count=None, null_count=None)
        return Plan([new, *_widened(context, row, None, None, has_nulls=True)], table_id)
    try:
        rows = read_rows(plan_of(context, files[0], table, [column_id]))
    except DuckLakeError as error:
        raise NoRepairError(f"the file cannot be read: {error}") from None
    values = rows.column(column.name)
    (bounds,) = extremes([(_without_nan(values, column.data_type), column.data_type)])
    nulls = values.null_count
    new = update(
        _FILE,
        record,
        min_value=bounds.low,
        max_value=bounds.high,
        value_count=len(values) - nulls,
        null_count=nulls,
        contains_nan=_contains_nan(values, column.data_type),
        min_is_exact=None if bounds.low is None else True,
        max_is_exact=None if bounds.high is None else True,
    )
    has_nan = new.new is not None and bool(new.new["contains_nan"])
    return Plan([new, *_widened(context, row, bounds.low, bounds.high, has_nulls=nulls > 0, has_nan=has_nan)], table_id)


def _contains_nan(values: pa.ChunkedArray, data_type: DataType) -> bool | None:
    """Return whether a column has NaN; None for types that have none."""
    if data_type.name not in FLOATS:
        return None
    answer = evaluate("SELECT count(*) FILTER (isnan(v)) > 0 FROM rows", {"rows": pa.table({"v": values})})
    return bool(answer.column(0)[0].as_py())


def _without_nan(values: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    if data_type.name not in FLOATS:
        return values
    return evaluate("SELECT v FROM rows WHERE NOT isnan(v)", {"rows": pa.table({"v": values})}).column(0)


def _widened(
    context: Context, row: Row, low: str | None, high: str | None, *, has_nulls: bool, has_nan: bool = False
) -> list[Change]:
    """Return changes after which the table's statistics hold those of a file; without bounds they hold anything."""
    table_id, column_id = _ids(row)
    records = read(context, _TABLE, table_id=table_id, column_id=column_id)
    if len(records) != 1:
        return []
    record = records[0]
    values: Record = {"contains_null": True} if has_nulls else {}
    values |= {"contains_nan": True} if has_nan else {}
    if low is None or high is None:
        # a file without values has no bounds, and needs none
        if has_nulls and row.get("value_count") == 0:
            return [update(_TABLE, record, **values)]
        values |= {"min_value": None, "max_value": None, "min_is_exact": None, "max_is_exact": None}
    elif record["min_value"] is not None and record["max_value"] is not None:
        kind = _type_of(context, table_id, column_id)
        ends = [str(record["min_value"]), str(record["max_value"]), low, high]
        least, largest = smallest_and_largest(ends, kind)
        values |= {"min_value": least, "max_value": largest}
    return [update(_TABLE, record, **values)] if values else []


def _type_of(context: Context, table_id: int, column_id: int) -> DataType:
    types = context.rows(
        f"SELECT column_type FROM ducklake_column WHERE table_id = {table_id:d} AND column_id = {column_id:d} "
        "ORDER BY begin_snapshot DESC LIMIT 1"
    )
    if not types:
        raise NoRepairError("the column's type is not known")
    return DataType(str(types[0]["column_type"]))


def widen_table_bounds(context: Context, row: Row) -> Plan:
    table_id, column_id = _ids(row)
    record = only(read(context, _TABLE, table_id=table_id, column_id=column_id), "the column's statistics")
    kind = _type_of(context, table_id, column_id)
    of_files = context.rows(
        "SELECT DISTINCT s.min_value AS low, s.max_value AS high FROM ducklake_file_column_stats AS s "
        "JOIN ducklake_data_file AS f ON f.data_file_id = s.data_file_id WHERE f.end_snapshot IS NULL "
        f"AND s.table_id = {table_id:d} AND s.column_id = {column_id:d}"
    )
    ends = [str(one[name]) for one in of_files for name in ("low", "high") if one[name] is not None]
    ends += [str(record[name]) for name in ("min_value", "max_value") if record[name] is not None]
    least, largest = smallest_and_largest(ends, kind)
    change = update(
        _TABLE,
        record,
        min_value=least if record["min_value"] is not None else None,
        max_value=largest if record["max_value"] is not None else None,
    )
    return Plan([change], table_id)


def admit_nulls(context: Context, row: Row) -> Plan:
    table_id, column_id = _ids(row)
    record = only(read(context, _TABLE, table_id=table_id, column_id=column_id), "the column's statistics")
    return Plan([update(_TABLE, record, contains_null=True)], table_id)


def keep_one_of_file(context: Context, row: Row) -> Plan:
    table_id, column_id = _ids(row)
    records = read(context, _FILE, data_file_id=row["id"], column_id=column_id, table_id=table_id)
    return Plan(replaced(_FILE, records, [_common(records)]), table_id)


def keep_one_of_table(context: Context, row: Row) -> Plan:
    table_id, column_id = _ids(row)
    records = read(context, _TABLE, table_id=table_id, column_id=column_id)
    return Plan(replaced(_TABLE, records, [{**_common(records), "contains_null": _any(records)}]), table_id)


def _common(records: list[Record]) -> Record:
    """Return what all rows say; None for the rest, which promises nothing."""
    return {name: value if all(one[name] == value for one in records) else None for name, value in records[0].items()}


def _any(records: list[Record]) -> object:
    return records[0]["contains_null"] if len({one["contains_null"] for one in records}) == 1 else True


def move_stats(context: Context, row: Row) -> Plan:
    records = read(context, _FILE, data_file_id=row["id"], table_id=row["other_table"])
    if read(context, _FILE, data_file_id=row["id"], table_id=row["table_id"]):
        raise NoRepairError("the file has statistics for its own table too")
    return Plan([update(_FILE, one, table_id=row["table_id"]) for one in records], int(str(row["table_id"])))


def drop_dangling_stats(_: Context, row: Row) -> Plan:
    sql = (
        "DELETE FROM ducklake_file_column_stats WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file AS f "
        "WHERE f.data_file_id = ducklake_file_column_stats.data_file_id)"
    )
    statement = Statement(_FILE, sql, f"remove {row['statistics']} rows of files that have gone")
    return Plan(statements=[statement])
