"""Times on Spark mean what they mean in DuckDB, in every time zone, also where a local time comes twice or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits

pytestmark = pytest.mark.sampled(5)

ZONES = ("America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Havana", "UTC")
#: Around the changes of clocks in these zones.
STARTS = ("2024-11-01T03:30", "2024-03-09T03:00", "2024-04-05T13:00", "2024-10-04T13:00", "2024-07-01T00:00")
COLUMNS = "i INT, z TIMESTAMPTZ, n TIMESTAMP, d DATE, y TIMESTAMPTZ, s VARCHAR, ns TIMESTAMP_NS, sec TIMESTAMP_S"
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
EXPRESSIONS = [
    "z::DATE", "z::TIMESTAMP", "n::TIMESTAMPTZ", "d::TIMESTAMPTZ", "s::TIMESTAMPTZ", "hour(z)", "day(z)", "week(z)",
    "date_part('minute', z)", "epoch(z)", "epoch_us(z)", "year(z)", "ns", "sec",
    *(f"date_trunc('{unit}', z)" for unit in UNITS),
    *(f"date_diff('{unit}', z, {other})" for unit in UNITS for other in "yn"), "(z - y)::VARCHAR", "(z - n)::VARCHAR",
    "z::VARCHAR", "z + (INTERVAL 1 DAY + INTERVAL 2 HOUR)",
    "z + INTERVAL 1 DAY", "z + INTERVAL 1 HOUR", "z + INTERVAL 25 HOUR", "z - INTERVAL 1 DAY", "z + INTERVAL 1 MONTH",
    "z - INTERVAL 90 MINUTE", "z + INTERVAL (i) HOUR", "z + INTERVAL (i) DAY", "INTERVAL 3600 SECOND + z",
    "z > n", "z = n", "z > d", "n >= z", "z > TIMESTAMP '2024-11-03 01:30:00'", "z > '2024-11-03 01:30:00'",
    "z >= DATE '2024-11-03'", "z BETWEEN '2024-11-03 01:00:00' AND DATE '2024-11-04'", "coalesce(z, n)", "coalesce(n, z)",
    "CASE WHEN i % 2 = 0 THEN z ELSE n END", "z IN (TIMESTAMP '2024-11-03 01:30:00', d)", "greatest(z, n)",
    "TIMESTAMPTZ '2024-11-03 01:30:00'", "TIMESTAMPTZ '2024-11-03 01:30:00-07'", "'2024-03-10 02:30:00'::TIMESTAMPTZ",
    "current_date", "today()", "now()::DATE", "strftime(z, '%Y-%m-%d %H:%M')", "last_day(z)", "dayname(z)", "[z, n]",
    "list_transform([z], lambda x: hour(x))", "nullif(z, n)", "TRY_CAST(s AS TIMESTAMPTZ)",
]  # fmt: skip


def _rows() -> pa.Table:
    starts = [datetime.fromisoformat(text) for text in STARTS]
    moments = [start + timedelta(minutes=15 * step) for start in starts for step in range(240)]
    moments.append(datetime(1960, 2, 29, 23, 59, 59, 999999))
    whole = [moment.replace(microsecond=0) for moment in moments]
    return pa.table(
        {
            "i": pa.array([number % 50 for number in range(len(moments))], pa.int32()),
            "z": pa.array([moment.replace(tzinfo=UTC) for moment in moments], pa.timestamp("us", "UTC")),
            "n": pa.array(moments, pa.timestamp("us")),
            "d": [moment.date() for moment in moments],
            "y": pa.array([moment.replace(tzinfo=UTC) for moment in moments[::-1]], pa.timestamp("us", "UTC")),
            "s": [f"{moment:%Y-%m-%d %H:%M:%S}{'+02' if at % 7 == 0 else ''}" for at, moment in enumerate(whole)],
            "ns": pa.array(moments, pa.timestamp("ns")),
            "sec": pa.array(whole, pa.timestamp("s")),
        }
    )


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dl.Session, Any]]:
    """(a session whose table is in a file, DuckDB with the same table)."""
    folder: Path = tmp_path_factory.mktemp("zones")
    rows = _rows()
    with (
        duckdb.connect() as plain,
        dl.connect(
            f"ducklake:{folder}/x.ducklake",
            alias="lake",
            data_path=f"{folder}/d",
            spark=spark,
            engine="spark",
            limits=Limits(refused=-1),
        ) as session,
    ):
        for run in (session.sql, plain.execute):
            run(f"CREATE TABLE t ({COLUMNS})")
        session.write(rows, "t")
        plain.register("rows", rows)
        plain.execute("INSERT INTO t SELECT * FROM rows")
        yield session, plain
        session.sql("RESET TimeZone")
        session.spark  # noqa: B018 - gives Spark the zone that other tests expect


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value


@pytest.mark.parametrize("zone", ZONES)
def test_expressions_are_duckdb_s(both: tuple[dl.Session, Any], zone: str) -> None:
    session, plain = both
    for run in (session.sql, plain.execute):
        run(f"SET TimeZone = '{zone}'")
    columns = ", ".join(f"{expression} AS e{at}" for at, expression in enumerate(EXPRESSIONS))
    query = f"SELECT epoch_us(z) AS k, {columns} FROM t"
    result = session.sql(query)
    assert not result.in_process
    found = sorted(result.fetchall())
    expected = sorted(plain.execute(query).fetchall())
    assert len(found) == len(expected) > 1000
    different: dict[str, Any] = {}
    for e, f in zip(expected, found, strict=True):
        for at, expression in enumerate(EXPRESSIONS, 1):
            if _plain(e[at]) != _plain(f[at]):
                different.setdefault(expression, (e[0], e[at], f[at]))
    assert different == {}
    assert str(result.arrow().schema.field("e2").type) == f"timestamp[us, tz={zone}]"


def test_queries_whose_times_differ(both: tuple[dl.Session, Any]) -> None:
    session, plain = both
    for run in (session.sql, plain.execute):
        run("SET TimeZone = 'America/New_York'")
    result = session.sql("SELECT z FROM t UNION ALL SELECT n FROM t")
    assert not result.in_process
    assert sorted(result.fetchall()) == sorted(plain.execute("SELECT z FROM t UNION ALL SELECT n FROM t").fetchall())
    with pytest.raises(dl.UnsupportedFeatureError, match="Joining TIMESTAMP WITH TIME ZONE and TIMESTAMP"):
        session.sql("SELECT z IN (SELECT n FROM t) FROM t")


@pytest.mark.parametrize("zone", ZONES[:3])
def test_rows_found_and_written_are_those_of_the_process(both: tuple[dl.Session, Any], zone: str) -> None:
    session, _ = both
    session.sql(f"SET TimeZone = '{zone}'")
    query = "SELECT count(*), min(epoch_us(z)) FROM t WHERE z >= '2024-11-03 01:30:00' AND z < TIMESTAMP '2024-11-04'"
    assert session.sql(query).fetchall() == session.sql(query, engine="duckdb").fetchall()
    at = f"{session.current_snapshot().snapshot_time.replace(tzinfo=None)}"
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(1201,)], at
    made = {}
    for engine in ("duckdb", "spark"):
        session.sql(
            "CREATE OR REPLACE TABLE made AS SELECT n::TIMESTAMPTZ AS z, date_trunc('hour', z) AS h FROM t",
            engine=engine,
        )
        made[engine] = session.sql("SELECT epoch_us(z), epoch_us(h) FROM made ORDER BY ALL", engine="duckdb").fetchall()
    assert made["duckdb"] == made["spark"]
