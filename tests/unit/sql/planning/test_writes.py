"""Plans of INSERT, DELETE and UPDATE, run in DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.sql import QueryPlan
from tests.unit.sql.lakes import plan

DATA = {
    "planes": pa.table({"tailnum": ["N1", "N2", "N3"], "year": pa.array([1990, 1991, None], pa.int32())}),
    "airlines": pa.table({"carrier": ["N1", "N1", "N3"], "name": ["A", "A", "C"]}),
}


def rows(query: QueryPlan) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for source in query.sources:
            table = DATA[source.name.name]
            if source.virtual:
                for number, name in enumerate(VIRTUAL_COLUMNS):
                    values = [number * 100 + index for index in range(table.num_rows)]
                    table = table.append_column(name, pa.array(values, pa.int64()))
            connection.register(source.view, table)
        return sorted(connection.execute(query.duckdb_sql).fetchall(), key=repr)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO planes VALUES ('a', 1), (NULL, 2.5), ('c', DEFAULT), (4, '5')",
         [("4", 5), ("a", 1), ("c", 1999), (None, 3)]),
        ("INSERT INTO planes (year) VALUES (1)", [(None, 1)]),
        ("INSERT INTO planes (tailnum) SELECT 'x'", [("x", 1999)]),
        ("INSERT INTO planes (year, tailnum) SELECT 7, 'x'", [("x", 7)]),
        ("INSERT INTO planes BY NAME SELECT 8 AS Year, 'y' AS tailnum", [("y", 8)]),
        ("INSERT INTO planes BY NAME SELECT 'y' AS tailnum", [("y", 1999)]),
        ("INSERT INTO planes DEFAULT VALUES", [(None, 1999)]),
        ("INSERT INTO planes SELECT tailnum, year + 1 FROM planes WHERE year > 1990", [("N2", 1992)]),
        ("WITH a AS (SELECT 'q' AS t) INSERT INTO planes SELECT t, 1 FROM a", [("q", 1)]),
        ("INSERT INTO planes SELECT year, year FROM planes WHERE year = 1990", [("1990", 1990)]),
    ],
)  # fmt: skip
def test_insert_gives_every_column_in_order(text: str, expected: list[tuple[Any, ...]]) -> None:
    result = plan(text)
    assert result.columns == ("tailnum", "year")
    assert rows(result) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO planes VALUES (1)", "table planes has 2 columns but 1 value was supplied (line 1, column 13)."),
        ("INSERT INTO planes SELECT 1, 2, 3", "table planes has 2 columns but 3 values were supplied (line 1, column 13)."),
        ("INSERT INTO planes (year) VALUES (1, 2)",
         "INSERT INTO planes names 1 column but 2 values were supplied (line 1, column 13)."),
        ("INSERT INTO planes (yaer) VALUES (1)", 'planes has no column "yaer" (line 1, column 21). Did you mean year?'),
        ("INSERT INTO planes (year, year) VALUES (1, 2)", 'Column "year" is given twice (line 1, column 27).'),
        ("INSERT INTO planes BY NAME SELECT 1 AS yaer",
         'planes has no column "yaer", which INSERT BY NAME got. Did you mean year?'),
        ("UPDATE planes SET yaer = 1", 'planes has no column "yaer" (line 1, column 19). Did you mean year?'),
        ("UPDATE planes SET year = 1, year = 2", 'Column "year" is set twice (line 1, column 29).'),
        ("UPDATE planes SET year = yaer", 'planes has no column "yaer" (line 1, column 26). Did you mean year?'),
        ("DELETE FROM planes WHERE yaer = 1", 'planes has no column "yaer" (line 1, column 26). Did you mean year?'),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(text: str, message: str) -> None:
    with pytest.raises(BindError) as caught:
        plan(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("DELETE FROM planes", [0, 1, 2]),
        ("DELETE FROM planes AS p WHERE p.year = 1991", [1]),
        ("DELETE FROM planes WHERE year IS NULL OR rowid = 200", [0, 2]),
        ("DELETE FROM planes USING airlines WHERE tailnum = carrier", [0, 2]),
        ("DELETE FROM planes WHERE tailnum IN (SELECT carrier FROM airlines WHERE name = 'C')", [2]),
    ],
)
def test_delete_gives_the_places_of_the_rows(text: str, matched: list[int]) -> None:
    result = plan(text)
    assert result.columns == tuple(VIRTUAL_COLUMNS)
    assert rows(result) == [(n, 100 + n, 200 + n, 300 + n) for n in matched]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UPDATE planes SET year = 2000.5 WHERE tailnum = 'N1'", {0: ("N1", 2001)}),
        ("UPDATE planes p SET tailnum = lower(p.tailnum), year = year + 1 WHERE year > 1990", {1: ("n2", 1992)}),
        ("UPDATE planes SET year = DEFAULT WHERE year IS NULL", {2: ("N3", 3)}),
        ("UPDATE planes SET (tailnum, year) = ('z', 1) WHERE rowid = 201", {1: ("z", 1)}),
        ("UPDATE planes SET tailnum = name FROM airlines WHERE tailnum = carrier", {0: ("A", 1990), 2: ("C", None)}),
        ("UPDATE planes SET year = (SELECT count(*) FROM airlines) WHERE year IS NULL", {2: ("N3", 3)}),
    ],
)
def test_update_gives_the_places_and_the_new_rows(text: str, expected: dict[int, tuple[Any, ...]]) -> None:
    result = plan(text)
    assert result.columns == (*VIRTUAL_COLUMNS, "tailnum", "year")
    assert rows(result) == [(n, 100 + n, 200 + n, 300 + n, *row) for n, row in expected.items()]


def test_a_write_spark_cannot_compute_is_refused_before_anything_runs() -> None:
    with pytest.raises(UnsupportedFeatureError, match="nextval"):
        plan("UPDATE planes SET year = nextval('numbers')")
