"""Queries at each snapshot of a lake whose tables, views and macros change, beside the reference."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.reference import connect

_HISTORY = (
    "CREATE TABLE t AS SELECT 1 AS i, 'a' AS s",
    "CREATE VIEW v AS FROM t",
    "CREATE MACRO m(x) AS x + 1",
    "CREATE MACRO tm() AS TABLE FROM t",
    "INSERT INTO t VALUES (2, 'b')",
    "ALTER TABLE t ADD COLUMN k INTEGER DEFAULT 7",
    "INSERT INTO t VALUES (3, 'c', 9)",
    "ALTER TABLE t RENAME s TO r",
    "CREATE OR REPLACE VIEW v AS SELECT i, r FROM t WHERE i > 1",
    "CREATE OR REPLACE MACRO m(x) AS x * 10",
    "DELETE FROM t WHERE i = 2",
    "ALTER TABLE t ALTER i TYPE BIGINT",
    "DROP VIEW v",
    "DROP TABLE t",
    "CREATE TABLE t AS SELECT 'new' AS z",
    "CREATE SCHEMA s2",
    "CREATE TABLE s2.t AS SELECT 5 AS q",
)
#: {0} is a snapshot, {1} an earlier one.
_QUERIES = (
    "FROM t AT (VERSION => {0})",
    "FROM v AT (VERSION => {0})",
    "FROM v AS x AT (VERSION => {0})",
    "SELECT x.*, x.rowid FROM t AS x AT (VERSION => {0})",
    "SELECT x.p FROM t x(p) AT (VERSION => {0})",
    "SELECT a.i, b.i FROM t a AT (VERSION => {0}) JOIN t AS b AT (VERSION => {1}) USING (i)",
    "SELECT count(*) FROM t a, t AS b AT (VERSION => {0})",
    "SELECT max(i), min(i), sum(i), count(*) FROM t x AT (VERSION => {0})",
    "SELECT (SELECT count(*) FROM t AS y AT (VERSION => {0})) AS n FROM (FROM t AS z AT (VERSION => {0})) w",
    "DESCRIBE FROM t AS x AT (VERSION => {0})",
    "SELECT x.q FROM s2.t x AT (VERSION => {0})",
    "FROM ducklake_table_changes('lake', 'main', 't', {1}, {0})",
)
_ATTACHED = ("SHOW TABLES", "FROM t", "SELECT m(5)", "FROM v", "FROM tm()", "FROM t AS x AT (VERSION => 2)")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("travel")
    uri = f"ducklake:{folder}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{folder}/data", engine="duckdb") as session:
        for statement in _HISTORY:
            session.sql(statement)
    return uri


def _answers(run: Any, queries: list[str]) -> list[list[str] | None]:
    """Returns the sorted rows of each query, None where it fails."""
    found: list[list[str] | None] = []
    for query in queries:
        try:
            found.append(sorted(map(repr, run(query).fetchall())))
        except (dl.DuckLakeError, duckdb.Error):
            found.append(None)
    return found


@pytest.mark.parametrize("query", _QUERIES)
def test_each_snapshot(query: str, uri: str) -> None:
    queries = [query.format(at, max(0, at - 2)) for at in range(len(_HISTORY) + 2)]
    with connect() as reference:
        reference.execute(f"ATTACH '{uri}' AS lake; USE lake")
        expected = _answers(reference.execute, queries)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert dict(zip(queries, _answers(session.sql, queries), strict=True)) == dict(
            zip(queries, expected, strict=True)
        )
    assert any(expected)


@pytest.mark.parametrize("at", range(len(_HISTORY) + 1))
def test_a_lake_that_is_attached_at_a_snapshot(at: int, uri: str) -> None:
    with connect() as reference:
        reference.execute(f"ATTACH '{uri}' AS lake (SNAPSHOT_VERSION {at}); USE lake")
        expected = _answers(reference.execute, list(_ATTACHED))
    with dl.connect(uri, alias="lake", engine="duckdb", snapshot_version=at) as session:
        assert _answers(session.sql, list(_ATTACHED)) == expected


@pytest.mark.parametrize(
    "query", ["SELECT x.i, x.s FROM t AS x AT (VERSION => 5)", "SELECT x.p FROM t x(p) AT (VERSION => 5)"]
)
def test_an_alias_before_the_snapshot_on_spark(query: str, uri: str) -> None:
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        expected = sorted(session.sql(query).fetchall())
    with dl.connect(uri, alias="lake", engine="spark") as session:
        assert sorted(map(tuple, session.sql(query).spark().collect())) == expected
