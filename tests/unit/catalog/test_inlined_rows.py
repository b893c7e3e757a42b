"""Few inlined rows go to DuckDB as texts, many as an Arrow table: both leave the same values."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
import pytest

from ducklake_lab.catalog.inlined_rows import _insert_arrow, _insert_texts
from ducklake_lab.duckdb.casting import cast_sql
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.model.types import DataType

#: Values of each type, as SQL.
VALUES = {
    "varchar": ["''", "'it''s'", "'ä\n\t€😀'", "'NULL'", "' 7 '", "chr(0)", "repeat('x', 5000)"],
    "boolean": ["true", "false"],
    "int8": ["-128", "127"],
    "int64": ["-9223372036854775808", "9223372036854775807"],
    "uint64": ["18446744073709551615"],
    "float64": [f"'{value}'" for value in (0.1, -0.0, 1e300, 5e-324, 1e16, 123456789012345680.0, "inf", "-inf", "nan")],
    "decimal(38,10)": ["-9999999999999999999999999999.9999999999", "0.0000000001"],
    "decimal(4,0)": ["-9999"],
    "date": ["'0001-01-01'", "'9999-12-31'"],
    "time": ["'00:00:00'", "'23:59:59.999999'"],
    "timestamp": ["'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'", "'2024-02-29 12:00:00.5'"],
    "timestamptz": ["'0001-01-02 00:00:00+00'", "'2024-03-31 01:30:00.000001+00'"],
}


@pytest.mark.parametrize("name", VALUES)
def test_texts_leave_what_arrow_leaves(name: str) -> None:
    kind = DataType(name)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'America/New_York'")
        listed = ", ".join(f"({i}::BIGINT, {value})" for i, value in enumerate([*VALUES[name], "NULL"]))
        database.execute(f"CREATE TABLE given AS SELECT i, CAST(v AS {kind.sql()}) AS v FROM (VALUES {listed}) s(i, v)")
        found = database.execute(f'SELECT i AS "{ROW_ID}", {cast_sql("v", kind)} AS v FROM given').to_arrow_table()
        rows = found.cast(pa.schema([(ROW_ID, pa.int64()), kind.field("v")]))
        for table in ("texts", "arrows"):
            database.execute(f"CREATE TABLE {table} (row_id BIGINT, begin_s BIGINT, end_s BIGINT, v {kind.sql()})")
        assert _insert_texts(database, "texts", rows, {"v": kind}, 7)
        _insert_arrow(database, "arrows", rows, {"v": kind}, 7)
        kept = [
            database.execute(f"SELECT *, v::VARCHAR FROM {t} ORDER BY row_id").fetchall() for t in ("texts", "arrows")
        ]
        given = database.execute("SELECT i, 7, NULL, v, v::VARCHAR FROM given ORDER BY i").fetchall()
    if name == "float64":
        assert [math.copysign(1, row[3]) for row in kept[0] if row[3] == 0] == [-1.0]
        kept, given = [[row[-1:] for row in rows] for rows in kept], [row[-1:] for row in given]
    assert kept[0] == kept[1] == given


@pytest.mark.parametrize("values", [pa.array([b"x"]), pa.array([[1]]), pa.array([{"a": 1}]), pa.array(range(1000))])
def test_what_is_not_plain_or_few_is_left_to_arrow(values: pa.Array) -> None:
    names = {pa.binary(): "blob", pa.int64(): "int64"}
    element = (("element", DataType("int64")),)
    nested = (
        DataType("list", element) if pa.types.is_list(values.type) else DataType("struct", (("a", DataType("int64")),))
    )
    kind = DataType(names[values.type]) if values.type in names else nested
    rows = pa.table({ROW_ID: pa.array(range(len(values)), pa.int64()), "v": values})
    with duckdb.connect() as database:
        assert not _insert_texts(database, "none", rows, {"v": kind}, 1)
