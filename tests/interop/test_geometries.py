"""Geometries with a coordinate system: what lakes keep of them, from SQL and from programs, as the reference reads it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from tests.reference import connect

pytestmark = pytest.mark.sampled(2)

_POINT = "'POINT (1 2)'::GEOMETRY('OGC:CRS84')"
#: Values of Arrow, and the types of their columns in a lake.
_VALUES = {
    "plain": ("'POINT (1 2)'::GEOMETRY", "GEOMETRY"),
    "coordinate system": (_POINT, "GEOMETRY"),
    "list": (f"[{_POINT}, NULL]", "GEOMETRY[]"),
    "struct": (f"{{'p': {_POINT}, 'n': 1}}", "STRUCT(p GEOMETRY, n INTEGER)"),
    "map": (f"MAP {{'a': {_POINT}}}", "MAP(VARCHAR, GEOMETRY)"),
    "missing": ("NULL::GEOMETRY('OGC:CRS84')", "GEOMETRY"),
}


def _geoarrow(value: str) -> pa.Table:
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {value} AS g, 1 AS a").to_arrow_table()


def _read_by_reference(lake: str, tables: tuple[str, ...]) -> dict[str, list[tuple[object, ...]]]:
    with connect() as reference:
        reference.execute(f"ATTACH '{lake}' AS lake")
        query = "SELECT typeof(g), g::VARCHAR, a FROM lake.{}"
        return {table: reference.execute(query.format(table)).fetchall() for table in tables}


@pytest.mark.parametrize("limit", [0, 100], ids=["files", "inlined"])
@pytest.mark.parametrize("kind", _VALUES)
def test_geoarrow_is_written_as_geometries(tmp_path: Path, kind: str, limit: int) -> None:
    value, expected = _VALUES[kind]
    rows = _geoarrow(value)
    with duckdb.connect() as connection:
        ((text,),) = connection.execute(f"SELECT CAST({value} AS {expected})::VARCHAR").fetchall()
    lake, tables = f"ducklake:{tmp_path}/lake.ducklake", ("made", "appended", "queried", "computed")
    with dl.connect(lake) as session:
        session.sql(f"CALL ducklake_set_option('lake', 'data_inlining_row_limit', {limit})")
        session.write(rows, "made", mode="create")
        session.sql(f"CREATE TABLE appended (g {expected}, a INTEGER)")
        session.write(rows, "appended")
        session.sql("CREATE TABLE queried AS FROM frame", frame=rows)
        session.sql(f"CREATE TABLE computed AS SELECT {value} AS g, 1 AS a")
        assert session.sql("SELECT typeof(g), g::VARCHAR FROM frame", frame=rows).fetchall() == [(expected, text)]
        ours = {table: session.sql(f"SELECT typeof(g), g::VARCHAR, a FROM {table}").fetchall() for table in tables}
    assert ours == _read_by_reference(lake, tables) == {table: [(expected, text, 1)] for table in tables}
