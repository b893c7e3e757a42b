"""Selective queries read as few files as they do in the reference, and give the same rows."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from tests import reference

QUERIES = [
    "l_shipdate = '1995-06-17'",
    "l_shipdate BETWEEN '1994-01-01' AND '1994-03-31'",
    "l_shipdate <= DATE '1992-12-01' - INTERVAL 90 DAY",
    "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' MONTH",
    "l_shipdate IN ('1995-06-17', '1998-02-01')",
    "l_shipdate < TIMESTAMP '1992-02-03 04:05:06' OR l_shipdate > '1998-11-01'",
    "year(l_shipdate) = 1996 AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01",
    "date_trunc('month', l_shipdate) = '1997-05-01'",
    "extra.shipped::DATE = '1995-06-17'",
    "extra['line'] > 5 AND extra.shipped > '1998-11-20'",
    "extra.shipped::DATE IN ('1995-06-17', '1995-06-18')",
    "l_shipdate IS NULL",
    "month LIKE '1996-05%'",
    "l_quantity::BIGINT > 100::BIGINT",
    "l_shipdate IN (SELECT day FROM days WHERE holiday)",
]
BUCKETS = [
    "bucketed = 3",
    "bucketed IN (3, 3)",
    "s = 'x77'",
    "d = '2000-02-01'",
    "bucketed IS NULL",
    "s IN ('x77', 'x78') AND bucketed = 27",
]
JOINS = [
    "lineitem JOIN days ON l_shipdate = day WHERE holiday",
    "lineitem JOIN days d ON d.day = l_shipdate AND d.holiday AND l_discount > 0",
    "lineitem SEMI JOIN days ON l_shipdate = day AND holiday",
    "days LEFT JOIN lineitem ON l_shipdate = day WHERE holiday AND l_quantity > 0",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pruning")
    with reference.connect("tpch") as connection:
        connection.execute("CALL dbgen(sf = 0.003)")
        connection.execute(f"ATTACH 'ducklake:{folder}/lake.ducklake' AS lake (DATA_PATH '{folder}/data')")
        lineitem = (
            "SELECT *, strftime(l_shipdate, '%Y-%m') AS month, {'line': l_linenumber, "
            "'shipped': l_shipdate + INTERVAL 5 HOUR} AS extra FROM memory.lineitem"
        )
        connection.execute(f"CREATE TABLE lake.lineitem AS {lineitem} LIMIT 0")
        for year in range(1992, 1999):
            for half in ("quarter(l_shipdate) < 3", "quarter(l_shipdate) > 2"):
                connection.execute(f"INSERT INTO lake.lineitem {lineitem} WHERE year(l_shipdate) = {year} AND {half}")
        connection.execute("CREATE TABLE lake.days (day DATE, holiday BOOLEAN)")
        connection.execute(
            "INSERT INTO lake.days SELECT DATE '1992-01-01' + i::INT, i IN (1262, 1264) FROM range(2500) r(i)"
        )
        connection.execute("CREATE TABLE lake.buckets (bucketed BIGINT, s VARCHAR, d DATE)")
        connection.execute(
            "ALTER TABLE lake.buckets SET PARTITIONED BY (bucket(4, bucketed), bucket(3, s), bucket(2, d))"
        )
        connection.execute(
            "INSERT INTO lake.buckets SELECT i % 50, 'x' || i, DATE '2000-01-01' + i::INT FROM range(500) r(i)"
        )
        connection.execute("INSERT INTO lake.buckets SELECT NULL, NULL, NULL FROM range(20)")
    return folder


def _files_read(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    text = connection.execute(f"EXPLAIN ANALYZE {query}").fetchall()[0][1]
    return sum(map(int, re.findall(r"Total Files Read: (\d+)", text)))


def test_no_more_files_are_read_than_by_the_reference(lake: Path) -> None:
    with (
        reference.connect() as connection,
        dl.connect(f"ducklake:{lake}/lake.ducklake", limits=Limits(joined=0)) as session,
    ):
        texts = [f"SELECT count(l_comment), sum(l_quantity) FROM lineitem WHERE {where}" for where in QUERIES]
        texts += [f"SELECT count(s), sum(bucketed) FROM buckets WHERE {where}" for where in BUCKETS]
        texts += [f"SELECT count(*), sum(l_quantity) FROM {source}" for source in JOINS]
        ours = [session.sql(text, engine="duckdb") for text in texts]
        rows = [result.fetchall() for result in ours]
        read = [result.info.files_read for result in ours]
        assert all(result.info.files_read < result.info.files_total for result in ours)
        session.detach("lake")
        connection.execute(f"ATTACH 'ducklake:{lake}/lake.ducklake' AS lake; USE lake")
        assert rows == [connection.execute(text).fetchall() for text in texts]
        theirs = [_files_read(connection, text) for text in texts]
        more = {text: (a, b) for text, a, b in zip(texts, read, theirs, strict=True) if a > b}
        assert not more
