"""Values at the edges of every type, sent both ways between us and the reference: in files and inlined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, metadata
from tests.type_matrix import VALUES, document

pytestmark = pytest.mark.sampled(4)

#: Rows of NULL beside the values: few are inlined, many go to a file.
PLACES = {"inlined": 1, "file": 12}


def statements(place: str, *, one_by_one: bool = False) -> list[str]:
    """Tables of every type, then their values and rows of NULL."""
    made, filled = [], []
    for number, (sql, values) in enumerate(VALUES.values()):
        rows = [f"CAST({value} AS {sql})" for value in values] + ["NULL"] * PLACES[place]
        listed = ", ".join(f"({i}, {row})" for i, row in enumerate(rows))
        made.append(f"CREATE TABLE t{number} (i INTEGER, v {sql})")
        filled.append(f"INSERT INTO t{number} VALUES {listed}")
    # the reference numbers the tables of a transaction in any order
    return made + filled if one_by_one else ["BEGIN", *made, "COMMIT", *filled]


def texts(run: Callable[[str], Any]) -> dict[str, list[tuple[Any, ...]]]:
    """DuckDB's texts of all values, by type."""
    parts = [f"SELECT '{name}', i, CAST(v AS VARCHAR) AS v FROM t{number}" for number, name in enumerate(VALUES)]
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in VALUES}
    for name, *row in run(" UNION ALL ".join(parts) + " ORDER BY ALL").fetchall():
        found[name].append(tuple(row))
    assert all(found.values())
    return found


@pytest.mark.parametrize("place", PLACES)
def test_every_type_goes_both_ways(
    place: str, lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    theirs, ours = lake_uri("theirs"), lake_uri("ours")
    attach(reference, theirs, data_path=tmp_path / "theirs")
    for statement in statements(place):
        reference.execute(statement)
    expected = texts(reference.execute)
    detach(reference)
    with dl.connect(theirs, alias="lake") as session:
        assert texts(lambda sql: session.sql(sql, engine="duckdb")) == expected
    with dl.connect(ours, alias="lake", data_path=f"{tmp_path}/ours") as session:
        for statement in statements(place):
            session.sql(statement)
        assert not session.spark_started
        assert texts(lambda sql: session.sql(sql, engine="duckdb")) == expected
    attach(reference, ours)
    assert texts(reference.execute) == expected
    detach(reference)


@pytest.mark.parametrize("place", PLACES)
def test_statistics_of_every_type_are_the_references(
    place: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    attach(reference, f"ducklake:{tmp_path}/theirs.ducklake", data_path=tmp_path / "theirs")
    for statement in statements(place, one_by_one=True):
        reference.execute(statement)
    detach(reference)
    with dl.connect(f"ducklake:{tmp_path}/ours.ducklake", alias="lake", data_path=f"{tmp_path}/ours") as session:
        for statement in statements(place, one_by_one=True):
            session.sql(statement)
    theirs, found = (metadata(reference, f"ducklake:{tmp_path}/{name}.ducklake") for name in ("theirs", "ours"))
    assert found.keys() == theirs.keys()
    for table, rows in theirs.items():
        assert found[table] == rows, table


def test_the_document_is_what_is_tested() -> None:
    assert (Path(__file__).parents[2] / "docs" / "types.md").read_text() == document()
