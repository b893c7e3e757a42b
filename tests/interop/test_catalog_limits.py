"""Values that a catalog's database cannot keep: they go to files, or statistics omit them, as in the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach

pytestmark = pytest.mark.sampled(5)

_ALIKE = "a" * 63
#: Columns that hold the row `(0, 1, 2, …)`, and whether its values are texts of 60 characters.
_TABLES: dict[str, tuple[list[str], bool]] = {
    "alike": ([f"{_ALIKE}1", f"{_ALIKE}2"], False),
    "long": (["ä" * 32, "b" * 70], False),
    "system": (["ctid", "xmin", "tableoid", "oid"], False),
    "many": ([f"c{i}" for i in range(2_100)], False),
    "large": ([f"c{i}" for i in range(1_000)], False),
    "texts": ([f"c{i}" for i in range(400)], True),
}


@pytest.mark.parametrize("shape", _TABLES)
def test_columns_that_no_table_can_have(
    shape: str, catalog: str, lake_uri: Callable[..., str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    names, are_texts = _TABLES[shape]
    uri, kind = lake_uri(), "VARCHAR" if are_texts else "BIGINT"
    value = (lambda number: f"{number:060d}") if are_texts else (lambda number: number)
    row = [value(number) for number in range(len(names))]
    columns = ", ".join(f'"{name}" {kind}' for name in names)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t ({columns})")
        session.sql(f"INSERT INTO t VALUES ({', '.join(map(repr, row))})")
        first, last = names[0], names[-1]
        session.sql(f'INSERT INTO t ("{first}") VALUES ({row[-1]!r})')
        session.sql(f'UPDATE t SET "{last}" = {row[0]!r} WHERE "{last}" IS NULL')
        seen = session.sql(f'FROM t ORDER BY "{first}"').fetchall()
        assert seen[0] == tuple(row)
        assert (seen[1][0], seen[1][-1]) == (row[-1], row[0])
    if catalog != "mysql":  # which the reference does not keep as it says
        reference = request.getfixturevalue("reference")
        attach(reference, uri)
        assert reference.execute(f'FROM t ORDER BY "{first}"').fetchall() == seen
        detach(reference)


_WRITES = (
    "INSERT INTO t VALUES (1, 'x' || chr(0)), (2, 'a')",
    "INSERT INTO t VALUES (3, 'b')",
    "INSERT INTO t SELECT range, CASE WHEN range = 7 THEN chr(0) ELSE 'm' || range END FROM range(5, 505)",
    "INSERT INTO t VALUES (4, NULL)",
)
_READS = (
    "FROM t ORDER BY i",
    "SELECT i FROM t WHERE s < 'b' ORDER BY i",
    "SELECT i FROM t WHERE s >= 'x' ORDER BY i",
    "SELECT min(s), max(s), count(s) FROM t",
    "SELECT count(*) FROM t WHERE contains(s, chr(0))",
)


def _metadata(place: str) -> list[Any]:
    with psycopg.connect(place) as connection:
        return [
            connection.execute(query).fetchall()
            for query in (
                "SELECT column_id, contains_null, min_value, max_value FROM ducklake_table_column_stats ORDER BY 1",
                "SELECT column_id, value_count, null_count, min_value, max_value FROM ducklake_file_column_stats ORDER BY 1",
            )
        ]


def test_nul_bytes_as_the_reference_keeps_them(
    postgres: Callable[[], str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    ours, theirs = postgres(), postgres()
    attach(reference, f"ducklake:postgres:{theirs}", data_path=tmp_path / "theirs")
    reference.execute("CREATE TABLE t (i INTEGER, s VARCHAR)")
    with dl.connect(
        f"ducklake:postgres:{ours}", alias="lake", data_path=f"{tmp_path}/ours", engine="duckdb"
    ) as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
        for statement in _WRITES:
            session.sql(statement)
            reference.execute(statement)
            assert _metadata(ours) == _metadata(theirs), statement
        expected = [reference.execute(query).fetchall() for query in _READS]
        assert [session.sql(query).fetchall() for query in _READS] == expected
    detach(reference)
    with dl.connect(f"ducklake:postgres:{theirs}", alias="lake", engine="duckdb") as session:
        assert [session.sql(query).fetchall() for query in _READS] == expected
    attach(reference, f"ducklake:postgres:{ours}")
    assert [reference.execute(query).fetchall() for query in _READS] == expected
    detach(reference)


def test_a_column_of_nulls_has_the_bounds_of_its_first_value(
    postgres: Callable[[], str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    ours, theirs = postgres(), postgres()
    statements = [
        "INSERT INTO t VALUES (NULL), (NULL)",
        "INSERT INTO t VALUES ('x'), (NULL)",
        "INSERT INTO t VALUES ('y')",
    ]
    attach(reference, f"ducklake:postgres:{theirs}", data_path=tmp_path / "theirs")
    reference.execute("CREATE TABLE t (s VARCHAR)")
    with dl.connect(
        f"ducklake:postgres:{ours}", alias="lake", data_path=f"{tmp_path}/ours", engine="duckdb"
    ) as session:
        session.sql("CREATE TABLE t (s VARCHAR)")
        for statement in statements:
            session.sql(statement)
            reference.execute(statement)
            assert _metadata(ours) == _metadata(theirs), statement
    detach(reference)


@pytest.mark.parametrize("nested", ["{'a': s}", "[s]", "MAP {s: 1}", "{'a': [s]}"])
def test_nul_bytes_in_nested_values(
    nested: str, postgres: Callable[[], str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    place = postgres()
    with dl.connect(f"ducklake:postgres:{place}", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t AS SELECT {nested} AS v FROM (SELECT 'x' AS s) WHERE false")
        for text in ("'x'", "'x' || chr(0)", "'b'"):
            session.sql(f"INSERT INTO t SELECT {nested} FROM (SELECT {text} AS s)")
        seen = session.sql("FROM t ORDER BY v").fetchall()
        assert len(seen) == 3
        assert len(session.table("t").files()) == 1
        assert session.sql("SELECT count(*) FROM t WHERE contains(v::VARCHAR, chr(0))").fetchall() == [(1,)]
    attach(reference, f"ducklake:postgres:{place}")
    assert reference.execute("FROM t ORDER BY v").fetchall() == seen
    detach(reference)


def test_nul_bytes_that_the_catalog_cannot_keep_are_named(postgres: Callable[[], str], tmp_path: Path) -> None:
    place = f"ducklake:postgres:{postgres()}"
    with dl.connect(place, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE p (s VARCHAR, i INTEGER); ALTER TABLE p SET PARTITIONED BY (s)")
        with pytest.raises(
            dl.TransactionError, match=r"A value of main\.p\.s, by which the table is partitioned, has a NUL"
        ):
            session.sql("INSERT INTO p SELECT 'q' || chr(0), range FROM range(40)")
        with pytest.raises(dl.TransactionError, match="A text outside of rows, such as a name"):
            session.sql("INSERT INTO p VALUES ('a', 1)", message="x\0y")
        assert session.sql("FROM p").fetchall() == []
