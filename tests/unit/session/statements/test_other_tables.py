"""The other tables of UPDATE and DELETE: they do not see the table that changes, as in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

_TABLES = (
    "CREATE TABLE t AS SELECT range AS i, [range, range + 1] AS l, 0 AS v FROM range(5)",
    "CREATE TABLE u AS SELECT range AS i, range * 10 AS w FROM range(3)",
)


@pytest.fixture
def both(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[tuple[dl.Session, duckdb.DuckDBPyConnection]]:
    with (
        dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session,
        duckdb.connect() as plain,
    ):
        for statement in _TABLES:
            session.sql(statement)
            plain.execute(statement)
        yield session, plain


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET v = w FROM (SELECT w FROM u WHERE u.i = t.i) s",
        "UPDATE t SET v = w FROM (SELECT w FROM u WHERE u.i = l[1]) s",
        "UPDATE t SET v = s.e FROM unnest(t.l) AS s(e)",
        "UPDATE t SET v = b.w FROM u JOIN u b ON b.i = t.i",
        "DELETE FROM t USING (SELECT 1 FROM u WHERE u.i = t.i) s",
        "DELETE FROM t USING u JOIN u b ON b.i = t.i",
        "UPDATE t SET v = COLUMNS(['i'])",
        "UPDATE t SET v = 1 WHERE COLUMNS(*) IS NOT NULL",
        "DELETE FROM t WHERE COLUMNS(['i']) = 1",
    ],
)
def test_what_duckdb_refuses_is_refused(both: tuple[dl.Session, duckdb.DuckDBPyConnection], statement: str) -> None:
    session, plain = both
    with pytest.raises(duckdb.BinderException):
        plain.execute(statement)
    with pytest.raises(dl.BindError):
        session.sql(statement)
    assert session.sql("SELECT count(*), sum(v) FROM t").fetchall() == [(5, 0)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET v = s.e FROM u, unnest([u.w]) AS s(e) WHERE u.i = t.i",
        "UPDATE t SET v = s.w FROM u, LATERAL (SELECT u.w + 1 AS w) s WHERE u.i = t.i",
        "UPDATE t SET v = (SELECT max(w) FROM u WHERE u.i = t.i) WHERE i < 3",
        "DELETE FROM t USING u JOIN u b ON b.i = u.i WHERE t.i = b.i AND (SELECT COLUMNS(['w']) FROM u WHERE u.i = t.i) > 5",
    ],
)
def test_what_duckdb_takes_is_taken(both: tuple[dl.Session, duckdb.DuckDBPyConnection], statement: str) -> None:
    session, plain = both
    assert session.sql(statement).fetchall() == plain.execute(statement).fetchall()
    rows = "SELECT i, v FROM t ORDER BY ALL"
    assert session.sql(rows).fetchall() == plain.execute(rows).fetchall()
