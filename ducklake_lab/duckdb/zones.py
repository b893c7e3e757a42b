"""Time zones: the process's own, and DuckDB's meaning of a time in one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb
import pyarrow as pa

from ducklake_lab.duckdb.connections import in_memory, of_thread
from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.model.quoting import quote_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@cache
def process_time_zone() -> str:
    """The zone that DuckDB takes from this process: that of TZ, or of the machine.

    Raises:
        UnsupportedFeatureError: it is none that Python knows.
    """
    with in_memory() as connection:
        return zone_of(connection)


def zone_of(connection: duckdb.DuckDBPyConnection) -> str:
    """The zone that is set in a connection.

    Raises:
        UnsupportedFeatureError: Python does not know it, so that no time could be shown in it.
    """
    ((name,),) = connection.execute("SELECT current_setting('TimeZone')").fetchall()
    if name == "Etc/Unknown":  # of a TZ that is empty
        return "UTC"
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError):
        raise UnsupportedFeatureError(
            f'The time zone "{name}" is not supported; use a name such as America/New_York or UTC, with SET TimeZone or TZ.'
        ) from None


def instant(value: datetime | date | str, zone: str) -> datetime:
    """The aware time, in the zone, that DuckDB casts a value to: a value without a zone is local.

    A local time that comes twice is the later one; one that is skipped is as long after midnight as if it were not.

    Raises:
        UsageError: a text is not a time.
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(ZoneInfo(zone))
    connection = of_thread("zones", locked=False)
    try:
        connection.execute(f"SET TimeZone = {quote_text(zone)}")
        ((micros,),) = connection.execute(
            "SELECT epoch_us(CAST(CAST($1 AS VARCHAR) AS TIMESTAMPTZ))", [str(value)]
        ).fetchall()
    except duckdb.ConversionException:
        raise UsageError(f'"{value}" is not a time; write e.g. 2024-01-15 12:30:00.') from None
    if micros is None:
        raise UsageError(f'"{value}" is no point in time; write e.g. 2024-01-15 12:30:00.')
    return (_EPOCH + timedelta(microseconds=micros)).astimezone(ZoneInfo(zone))


def in_zone(table: pa.Table, zone: str) -> pa.Table:
    """Cast times that have a zone to this zone, at any depth."""
    schema = pa.schema([field.with_type(_type_in(field.type, zone)) for field in table.schema], table.schema.metadata)
    return table if schema.equals(table.schema) else table.cast(schema)


def _type_in(kind: pa.DataType, zone: str) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, zone)
    if pa.types.is_struct(kind):
        return pa.struct([_field_in(field, zone) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_field_in(kind.key_field, zone), _field_in(kind.item_field, zone))
    if pa.types.is_list(kind):
        return pa.list_(_field_in(kind.value_field, zone))
    return kind


def _field_in(field: pa.Field, zone: str) -> pa.Field:
    return field.with_type(_type_in(field.type, zone))
