"""The optimizer is given how many rows the files of a table hold, else it joins in an order for empty tables."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.files.duckdb_query import query_of


@pytest.mark.skipif(duckdb.__version__ >= "2", reason="DuckDB 2.0 does not show the count of a file with a schema")
@pytest.mark.parametrize("inserts", [1, 3])
def test_a_scan_is_planned_with_the_rows_of_its_files(tmp_path: Path, inserts: int) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake") as session:
        session.sql("CREATE TABLE t (i BIGINT)")
        for _ in range(inserts):
            session.sql("INSERT INTO t FROM range(4321)")
        place = session._lakes.parse("t")
        relation = query_of(session._sources.scans.plan(place.lake, place.state, place.table()), "scan")
    with duckdb.connect() as connection:
        for name, rows in relation.tables.items():
            connection.register(name, rows)
        plan = "".join(part for row in connection.execute(f"EXPLAIN {relation.sql}").fetchall() for part in row)
    assert f"~{4321 * inserts:,} rows" in plan
