"""Temporary views over lakes: expanded where they are read, on every engine, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import BindError, DuckLakeError, SqlError, UnsupportedFeatureError

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i, 'a' || i AS s FROM range(5) r(i)")
        yield session


def rows(session: dl.Session, text: str, **given: Any) -> list[Any]:
    return session.sql(text, **given).fetchall()


@pytest.mark.slow
def test_it_reads_the_newest_rows_of_a_lake(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(5) r(i)")
        session.sql("CREATE TEMP VIEW late AS SELECT i + :n AS j FROM t WHERE i > 2", {"n": 10})
        assert rows(session, "FROM late ORDER BY j") == [(13,), (14,)]
        session.sql("INSERT INTO t VALUES (99)")
        assert rows(session, "FROM late ORDER BY j") == [(13,), (14,), (109,)]
        assert rows(session, "SELECT count(*) FROM late AT (VERSION => 1)") == [(2,)]
        assert rows(session, "SELECT late.j FROM late JOIN t ON t.i + 10 = late.j ORDER BY 1 DESC LIMIT 1") == [(109,)]
        assert session.sql("DELETE FROM t WHERE i IN (SELECT j - 10 FROM late)").fetchall() == [(3,)]
        assert rows(session, "FROM late") == []
        with dl.connect(uri, alias="lake") as other, pytest.raises(BindError, match='no table "late"'):
            other.sql("FROM late")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM two ORDER BY ALL", [("a3", 3), ("a4", 4)]),
        ('SELECT "First" FROM two WHERE i = 3', [("a3",)]),
        (
            "DESCRIBE two",
            [("First", "VARCHAR", "YES", None, "NULL", None), ("i", "INTEGER", "YES", None, "NULL", None)],
        ),
        ("SELECT column_name, max FROM (SUMMARIZE two)", [("First", "a4"), ("i", "4")]),
        ('PIVOT two ON "First" USING sum(i)', [(3, 4)]),
        ("SHOW TABLES", [("t",), ("two",)]),
        (
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'two' AND column_name <> 'i'",
            [("First", "VARCHAR")],
        ),
        ("WITH two AS (SELECT 1 AS one) FROM two", [(1,)]),
        ("USE memory; SELECT count(*) FROM two; ", [(2,)]),
    ],
)
def test_it_is_a_view_as_others_are(text: str, expected: list[Any], session: dl.Session) -> None:
    session.sql('CREATE TEMPORARY VIEW two ("First") AS SELECT s, i FROM t WHERE i > 2')
    assert rows(session, text) == expected


def test_it_hides_a_table_that_it_may_read(session: dl.Session) -> None:
    session.sql("CREATE TEMP VIEW t AS SELECT * FROM t WHERE i = 3")
    assert rows(session, "FROM t") == [(3, "a3")]
    assert rows(session, "FROM t", t=pa.table({"handed": [1]})) == [(1,)]
    assert rows(session, "FROM t", variables={"t": pa.table({"handed": [1]})}) == [(3, "a3")]
    assert rows(session, "SELECT count(*) FROM lake.main.t") == [(5,)]
    session.sql("CREATE TEMP VIEW u AS SELECT count(*) AS n FROM t")
    assert rows(session, "FROM u") == [(1,)]
    session.sql("DROP VIEW t")
    assert rows(session, "SELECT count(*) FROM t") == [(5,)]


def test_names_mean_what_they_meant_when_it_was_made(session: dl.Session) -> None:
    session.sql("CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 'other' AS s")
    session.sql("CREATE TEMP VIEW v AS SELECT count(*) AS n FROM t; USE lake.other")
    assert rows(session, "FROM v") == [(5,)]
    session.sql("USE memory; CREATE TEMP VIEW w AS SELECT count(*) AS n FROM lake.other.t; USE lake")
    assert rows(session, "FROM w") == [(1,)]


def test_existing_ones_are_replaced_kept_or_refused(session: dl.Session) -> None:
    session.sql("CREATE TEMP VIEW v AS SELECT 1 AS a FROM t LIMIT 1")
    with pytest.raises(SqlError, match="already exists"):
        session.sql("CREATE TEMP VIEW v AS SELECT 2 AS b FROM t")
    session.sql("CREATE TEMP VIEW IF NOT EXISTS v AS SELECT 3 AS c FROM t")
    assert rows(session, "FROM v") == [(1,)]
    session.sql("CREATE OR REPLACE TEMP VIEW v AS SELECT 4 AS d FROM t LIMIT 1")
    assert rows(session, "FROM v") == [(4,)]
    session.sql("ALTER VIEW v RENAME TO w")
    assert rows(session, "FROM w") == [(4,)]
    session.sql("DROP VIEW w; CREATE TEMP TABLE w AS SELECT 5 AS e")
    assert rows(session, "FROM w") == [(5,)]
    session.sql("CREATE OR REPLACE TEMP VIEW local AS SELECT 6 AS f")
    assert rows(session, "FROM local") == [(6,)]


def test_it_does_not_read_itself(session: dl.Session) -> None:
    session.sql("CREATE TEMP VIEW v AS FROM t; CREATE OR REPLACE TEMP VIEW v AS FROM v")
    with pytest.raises(BindError, match='In the view v: There is no table "v"'):
        session.sql("FROM v")


def test_a_rollback_brings_back_what_there_was(session: dl.Session) -> None:
    session.sql(
        "CREATE TEMP VIEW v AS SELECT 1 AS a FROM t LIMIT 1; CREATE TEMP VIEW gone AS SELECT 2 AS b FROM t LIMIT 1"
    )
    session.sql("BEGIN; CREATE OR REPLACE TEMP VIEW v AS SELECT 3 AS c FROM t LIMIT 1; DROP VIEW gone")
    session.sql("CREATE TEMP VIEW new AS SELECT 4 AS d FROM t")
    assert rows(session, "FROM v") == [(3,)]
    session.sql("ROLLBACK")
    assert rows(session, "FROM v") == [(1,)]
    assert rows(session, "FROM gone") == [(2,)]
    with pytest.raises(BindError, match='no table "new"'):
        session.sql("FROM new")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("CREATE TEMP VIEW v AS SELECT z FROM t", BindError, 't has no column "z"'),
        ("CREATE TEMP VIEW v AS SELECT z FROM tt", BindError, 'no table "tt"'),
        ("CREATE TEMP VIEW v (a, b, c) AS FROM t", BindError, "v names 3 columns, but its query has 2"),
        ("CREATE TEMP VIEW lake.v AS FROM t", UnsupportedFeatureError, "A temporary view has no schema; call it v"),
        ("CREATE TEMP MACRO m() AS TABLE FROM t", UnsupportedFeatureError, "use CREATE TEMP VIEW"),
        ("USE memory; CREATE VIEW v AS FROM lake.t", UnsupportedFeatureError, "use CREATE TEMP VIEW"),
        ("CREATE VIEW stored AS FROM seen", BindError, 'no table "seen"'),
        ("FROM temp.seen", SqlError, "bare_name_only"),
        ("INSERT INTO seen VALUES (1, 'x')", DuckLakeError, "seen"),
    ],
)
def test_what_it_cannot_be_is_refused(text: str, error: type[Exception], message: str, session: dl.Session) -> None:
    session.sql("CREATE TEMP VIEW seen AS FROM t")
    before = session.current_snapshot()
    with pytest.raises(error, match=message):
        session.sql(text)
    session.sql("USE lake")
    assert rows(session, "SELECT count(*) FROM seen") == [(5,)]
    assert session.current_snapshot() == before


def test_it_reads_what_the_program_has_when_it_is_read(session: dl.Session) -> None:
    import pandas as pd

    session.sql("CREATE TEMP VIEW v AS SELECT s FROM t JOIN df USING (i)", df=pd.DataFrame({"i": [1]}))
    assert rows(session, "FROM v", df=pd.DataFrame({"i": [2]})) == [("a2",)]
    with pytest.raises(BindError, match='In the view v: There is no table "df"'):
        session.sql("FROM v")
