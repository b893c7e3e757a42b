from datetime import UTC, date, datetime, timedelta, timezone

import duckdb
import pyarrow as pa
import pytest

from ducklake_lab.duckdb.zones import in_zone, instant, zone_of
from ducklake_lab.errors import UnsupportedFeatureError, UsageError

NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2024, 7, 1, 12), datetime(2024, 7, 1, 16, tzinfo=UTC)),
        (datetime(2024, 11, 3, 1, 30), datetime(2024, 11, 3, 6, 30, tzinfo=UTC)),
        (datetime(2024, 3, 10, 2, 30), datetime(2024, 3, 10, 7, 30, tzinfo=UTC)),
        (date(2024, 1, 15), datetime(2024, 1, 15, 5, tzinfo=UTC)),
        ("2024-07-01 12:00:00.5", datetime(2024, 7, 1, 16, 0, 0, 500000, tzinfo=UTC)),
        ("2024-07-01 12:00:00+02", datetime(2024, 7, 1, 10, tzinfo=UTC)),
        (datetime(2024, 7, 1, 12, tzinfo=timezone(timedelta(hours=2))), datetime(2024, 7, 1, 10, tzinfo=UTC)),
    ],
)
def test_times_without_a_zone_are_local(value: datetime | date | str, expected: datetime) -> None:
    found = instant(value, NEW_YORK)
    assert found.astimezone(UTC) == expected
    assert str(found.tzinfo) == NEW_YORK


@pytest.mark.parametrize("text", ["soon", "", "infinity"])
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f'^"{text}" is n'):
        instant(text, NEW_YORK)


def test_a_zone_that_python_does_not_know_is_refused() -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'SystemV/EST5EDT'")
        with pytest.raises(UnsupportedFeatureError, match='time zone "SystemV/EST5EDT" is not supported'):
            zone_of(connection)
        connection.execute("SET TimeZone = 'asia/kathmandu'")
        assert zone_of(connection) == "Asia/Kathmandu"


def test_zones_change_at_any_depth_and_instants_do_not() -> None:
    utc, local = pa.timestamp("us", "UTC"), pa.timestamp("us", NEW_YORK)
    moment = datetime(2024, 7, 1, tzinfo=UTC)

    def table(kind: pa.DataType) -> pa.Table:
        nested = pa.struct([("m", pa.map_(pa.string(), kind)), ("n", pa.timestamp("us"))])
        rows = {"z": [moment], "l": [[{"m": [("k", moment)], "n": datetime(2024, 7, 1)}]]}
        return pa.table(rows, schema=pa.schema([pa.field("z", kind, metadata={"k": "v"}), ("l", pa.list_(nested))]))

    assert in_zone(table(utc), NEW_YORK).equals(table(local), check_metadata=True)
    assert in_zone(table(local), "UTC").equals(table(utc), check_metadata=True)
