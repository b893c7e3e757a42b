"""DuckDB gets the values of a slice, however deep its structs are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.unsliced import unsliced

INNER = pa.StructArray.from_arrays([pa.array(range(6))], ["w"])
OUTER = pa.StructArray.from_arrays([INNER], ["d"])
PLACES = pa.array([0, 1, 2], pa.int32())
ARRAYS = {
    "slice": OUTER.slice(2, 3),
    "slice within": pa.StructArray.from_arrays([INNER.slice(2, 2)], ["d"]),
    "slice within a slice": pa.StructArray.from_arrays([INNER.slice(1, 4)], ["d"]).slice(1, 2),
    "list": pa.ListArray.from_arrays(PLACES, OUTER.slice(2, 2)),
    "fixed size": pa.FixedSizeListArray.from_arrays(pa.StructArray.from_arrays([INNER.slice(2, 4)], ["d"]), 2).slice(1),
    "map": pa.MapArray.from_arrays(PLACES, pa.array(["a", "b"]), OUTER.slice(2, 2)),
    "nulls": pa.array([{"d": {"w": i}} if i % 2 else None for i in range(5)]).slice(2, 3),
    "deep": pa.array([[{"a": {"b": {"c": [i, None]}}}] for i in range(5)]).slice(2, 2),
    "empty": OUTER.slice(3, 0),
    "flat": pa.array([{"s": "x"}, {"s": None}]).slice(1),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_the_values_are_those_of_the_slice(name: str) -> None:
    values = ARRAYS[name]
    table = pa.table({"i": pa.array(range(len(values))), "v": values})
    with dl.Session(engine="duckdb") as session:
        assert (
            session.sql("SELECT v FROM rows ORDER BY i", rows=table).arrow().column(0).to_pylist() == values.to_pylist()
        )


def test_what_duckdb_reads_rightly_is_not_copied() -> None:
    table = pa.table({"flat": pa.array([{"s": "x"}, {"s": None}]), "whole": OUTER.slice(0, 2)}).slice(0, 2)
    assert unsliced(table) is table
    assert unsliced(reader := table.to_reader()) is reader


@pytest.mark.parametrize("rows", [3, 3000])
def test_slices_are_written_and_looked_through(tmp_path: Path, rows: int) -> None:
    numbers = range(2 * rows)
    table = pa.table({"i": pa.array(numbers), "v": pa.array([{"d": {"w": n}} for n in numbers])}).slice(rows)
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        session.write(table, "t", mode="create")
        assert session.sql("SELECT count(*) FROM t WHERE v.d.w IS DISTINCT FROM i").fetchall() == [(0,)]
        with session.appender("t") as appender:
            appender.extend(table.slice(1))
        assert session.sql("SELECT count(*), count(*) FILTER (v.d.w = i) FROM t").fetchall() == [(2 * rows - 1,) * 2]
        view = session.sql("SELECT i, v FROM t ORDER BY i").view()
        page = session.sql("SELECT v FROM page", page=view.page(2, 2)).fetchall()
        assert page == [({"d": {"w": row["i"]}},) for row in view.page(2, 2).to_pylist()]
