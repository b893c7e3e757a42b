"""Columns with the names of their table, schema and lake before them: found as the reference finds them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach

SETUP = (
    "CREATE TABLE t (c INT, st STRUCT(x INT))",
    "INSERT INTO t VALUES (1, {'x': 2}), (2, {'x': 3})",
    "CREATE SCHEMA s2",
    "CREATE TABLE s2.t (c INT)",
    "INSERT INTO s2.t VALUES (10)",
    "CREATE VIEW v AS SELECT c + 1 AS c FROM t",
)
TAKEN = (
    "SELECT lake.main.t.c FROM t",
    "SELECT lake.main.t.st.x FROM t",
    "SELECT main.t.st.x, main.t.c FROM t",
    "SELECT lake.t.c FROM t",
    "SELECT lake.main.t.c, lake.s2.t.c FROM t, s2.t",
    "SELECT s2.t.c FROM t, lake.s2.t",
    "SELECT (SELECT lake.main.t.c) FROM t",
    "SELECT a.c FROM t a JOIN t ON lake.main.t.c = a.c",
    "SELECT count(lake.main.t.c), lake.main.t.st FROM t GROUP BY lake.main.t.st",
    "SELECT lake.main.v.c FROM v WHERE main.v.c > 2",
    "SELECT LAKE.Main.T.C FROM t",
    # columns of the SELECT list that are called like a table: its columns and its rows come first
    "SELECT sum(t.c) AS t, sum(t.c) - 1 FROM t",
    "SELECT st AS u, u.c FROM t AS u",
    "SELECT c AS u FROM t AS u WHERE u.c > 1 GROUP BY u.c HAVING sum(u.c) > 1 ORDER BY u.c",
    "SELECT c AS t, t FROM t",
    "SELECT st AS t, (t).c, st AS x, (x).x, alias.x FROM t",
    "SELECT c + 1 AS d, d + 1, c + 1 AS c, c FROM t ORDER BY d, t.c",
    "SELECT c AS u, row_number() OVER (ORDER BY u.c) FROM t AS u QUALIFY u.c > 1",
)
REFUSED = (
    "SELECT lake.main.t.c FROM t AS t",
    "SELECT lake.main.t.c FROM t AS u",
    "SELECT lake.main.t.nope FROM t",
    "SELECT lake.s2.t.c FROM t",
    "SELECT other.main.t.c FROM t",
    "SELECT c FROM t, main.t",
    "SELECT st AS y, y.x FROM t",
    "SELECT st AS y FROM t WHERE y.x > 1",
    "SELECT st AS y FROM t ORDER BY y.x",
    "SELECT st AS y, t.y FROM t",
)


def test_columns_are_qualified_as_in_the_reference(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/x.ducklake"
    attach(reference, uri, data_path=tmp_path)
    for statement in SETUP:
        reference.execute(statement)
    expected = {query: sorted(reference.execute(query).fetchall(), key=repr) for query in TAKEN}
    for query in REFUSED:
        with pytest.raises(duckdb.BinderException):
            reference.execute(query)
    detach(reference)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert {query: sorted(session.sql(query).fetchall(), key=repr) for query in TAKEN} == expected
        for query in REFUSED:
            with pytest.raises(dl.BindError):
                session.sql(query)
        session.sql("UPDATE t SET c = lake.main.t.c + 1 WHERE main.t.c = 2; DELETE FROM t WHERE lake.main.t.c = 1")
        assert session.sql("SELECT c FROM t").fetchall() == [(3,)]
