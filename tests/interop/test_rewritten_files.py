"""Rewritten and restored files hold the columns of older files: they are read as those of the table all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach

Make = Callable[..., str]


@dataclass(frozen=True)
class Case:
    """A table of 200 rows that is altered, and how many of rows 0 to 3 meet a condition then."""

    column: str
    value: str
    altered: str
    counts: dict[str, int]
    key: str | None = None


CASES = {
    "FLOAT to DOUBLE": Case("f FLOAT", "0.1::FLOAT", "ALTER f TYPE DOUBLE", {"f > 0.1": 4, "f = 0.1": 0}),
    "INTEGER to DOUBLE": Case("f INTEGER", "i", "ALTER f TYPE DOUBLE", {"f > 1.5": 2, "f = 1.5": 0, "f < 1.5": 2}),
    "INTEGER to DECIMAL": Case("f INTEGER", "i", "ALTER f TYPE DECIMAL(12,2)", {"f > 1.5": 2, "f = 1.5": 0}),
    "DATE to TIMESTAMP": Case(
        "f DATE", "DATE '2020-01-01' + i::INTEGER", "ALTER f TYPE TIMESTAMP", {"f < '2020-01-01 12:00:00'": 1}
    ),
    "TIMESTAMP to TIMESTAMPTZ": Case(
        "f TIMESTAMP",
        "TIMESTAMP '2020-01-01' + to_hours(i::INTEGER)",
        "ALTER f TYPE TIMESTAMPTZ",
        {"f = '2020-01-01 00:00:00-05'": 1, "f > '2020-01-01 00:30:00-05'": 3},
    ),
    "a field renamed": Case("s STRUCT(a INTEGER, b INTEGER)", "{'a': i, 'b': 7}", "RENAME s.a TO c", {"s.c > 1": 2}),
    "fields that swap names": Case(
        "s STRUCT(a INTEGER, b INTEGER)",
        "{'a': i, 'b': 7}",
        "RENAME s.a TO x; RENAME s.b TO a; RENAME s.x TO b",
        {"s.b > 1": 2, "s.a = 7": 4},
    ),
    "a field added": Case(
        "s STRUCT(a INTEGER)", "{'a': i}", "ADD COLUMN s.b INTEGER DEFAULT 5", {"s.b = 5": 4, "s.a > 1": 2}
    ),
    "columns that swap names": Case(
        "f INTEGER, g INTEGER", "i, 7", "RENAME f TO x; RENAME g TO f; RENAME x TO g", {"g > 1": 2, "f = 7": 4}
    ),
    "a column anew": Case(
        "f INTEGER, g INTEGER", "i, 7", "DROP f; ADD COLUMN f INTEGER DEFAULT 99", {"f = 99": 4, "f = 2": 0}
    ),
    "a key of buckets": Case("f INTEGER", "i", "ALTER f TYPE DOUBLE", {"f = 2": 1, "f > 1.5": 2}, "bucket(4, f)"),
    "a key": Case("f DATE", "DATE '2020-01-01' + i::INTEGER", "ALTER f TYPE TIMESTAMP", {"f = '2020-01-02'": 1}, "f"),
}
WRITERS = ["ours", "restored", "theirs"]


def made(uri: str, data: Path, case: Case, writer: str, reference: duckdb.DuckDBPyConnection) -> None:
    """Make the table, with files rewritten after it was altered."""
    made_all(uri, data, {"t": case}, writer, reference)


def made_all(uri: str, data: Path, tables: dict[str, Case], writer: str, reference: duckdb.DuckDBPyConnection) -> None:
    """Makes a lake of tables, and rewrites files after the tables were altered."""
    with dl.connect(uri, alias="lake", data_path=str(data), engine="duckdb", ducklake_version="1.0") as session:
        for table, case in tables.items():
            session.sql(f"CREATE TABLE {table} (i INTEGER, {case.column})")
            if case.key is not None:
                session.sql(f"ALTER TABLE {table} SET PARTITIONED BY ({case.key})")
            session.sql(f"INSERT INTO {table} SELECT i, {case.value} FROM range(200) AS r(i)")
            for change in case.altered.split("; "):
                session.sql(f"ALTER TABLE {table} {change}")
            session.sql(f"DELETE FROM {table} WHERE i > 3")
        if writer == "ours":
            session.sql("CALL lake.rewrite_data_files()")
        elif writer == "restored":
            newest = session.current_snapshot().snapshot_id
            for table in tables:
                session.sql(f"DROP TABLE {table}")
                session.restore(table, to=newest)
    if writer == "theirs":
        attach(reference, uri)
        reference.execute("CALL ducklake_rewrite_data_files('lake')")
        detach(reference)


def check(session: dl.Session, case: Case) -> None:
    session.sql("SET TimeZone = 'America/New_York'")
    for condition, count in {"i >= 0": 4, **case.counts}.items():
        for query in (
            f"SELECT count(*) FROM t WHERE {condition}",
            f"SELECT count(*) FROM t WHERE {condition} AND i < 4",
        ):
            assert session.sql(query).fetchall() == [(count,)], query
        assert session.sql(f"SELECT count(*) FILTER ({condition}) FROM t").fetchall() == [(count,)], condition


@pytest.mark.sampled(4)
@pytest.mark.parametrize("writer", WRITERS)
def test_they_are_filtered_as_the_table_is(
    lake_uri: Make, tmp_path: Path, writer: str, reference: duckdb.DuckDBPyConnection
) -> None:
    uri = lake_uri()
    tables = {f"t{number}": case for number, case in enumerate(CASES.values())}
    made_all(uri, tmp_path / "data", tables, writer, reference)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql("SET TimeZone = 'America/New_York'")
        for table, case in tables.items():
            # each query in brackets is a scan of its own, with a filter of its own
            expected = {}
            for condition, count in {"i >= 0": 4, **case.counts}.items():
                expected[f"(SELECT count(*) FROM {table} WHERE {condition})"] = count
                expected[f"(SELECT count(*) FROM {table} WHERE {condition} AND i < 4)"] = count
                expected[f"(SELECT count(*) FILTER ({condition}) FROM {table})"] = count
            (found,) = session.sql(f"SELECT {', '.join(expected)}").fetchall()
            assert dict(zip(expected, found, strict=True)) == expected


@pytest.mark.sampled(8)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", CASES)
def test_spark_filters_them_as_the_table_is(
    name: str, writer: str, tmp_path: Path, spark: Any, reference: duckdb.DuckDBPyConnection
) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/lake.sqlite"
    made(uri, tmp_path / "data", CASES[name], writer, reference)
    with dl.Session(spark=spark, engine="spark") as session:
        session.attach(uri, alias="lake")
        session.use("lake")
        check(session, CASES[name])
