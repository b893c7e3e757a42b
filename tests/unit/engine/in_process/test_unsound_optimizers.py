"""Optimizers of DuckDB that answer wrongly are off: a join leaves the rows alone among which a LIMIT within it chooses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

_KEYS = [0, *[1] * 6, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, None, None, None]
_CHOSEN = "(SELECT k FROM t ORDER BY k, g, s LIMIT 5 OFFSET 1)"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        rows = ", ".join(f"({'NULL' if key is None else key}, {number % 4}, 's')" for number, key in enumerate(_KEYS))
        session.sql(f"CREATE TABLE t (k INTEGER, g INTEGER, s VARCHAR); INSERT INTO t VALUES {rows}")
        session.sql(
            "CREATE TABLE u (k INTEGER, n VARCHAR); INSERT INTO u VALUES (2, 'x'), (3, 'y'), (NULL, 'x'), (8, 'y')"
        )
        yield session


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT k FROM {_CHOSEN} AS x JOIN u USING (k)",
        f"SELECT k FROM {_CHOSEN} AS x SEMI JOIN u USING (k)",
        f"SELECT x.k, n FROM u LEFT JOIN {_CHOSEN} AS x USING (k) ORDER BY ALL",
        f"SELECT k FROM {_CHOSEN} AS x WHERE k IN (SELECT k FROM u)",
        f"WITH x AS {_CHOSEN} SELECT count(*) FROM x JOIN u USING (k)",
        f"SELECT k, count(*) FROM (SELECT k FROM {_CHOSEN} GROUP BY k) AS x JOIN u USING (k) GROUP BY k",
    ],
)
def test_a_limit_within_a_join_chooses_among_all_rows(session: dl.Session, query: str) -> None:
    with duckdb.connect() as plain:
        for name in ("t", "u"):
            plain.register(f"{name}_rows", session.sql(f"FROM {name}").arrow())
            plain.execute(f"CREATE TABLE {name} AS FROM {name}_rows")
        plain.execute("SET disabled_optimizers = 'join_filter_pushdown'")
        expected = plain.execute(query).fetchall()
    assert list(session.table("t").files()), "the rows are in a file"
    assert session.sql(query).fetchall() == expected
    session.sql(f"CREATE VIEW v AS {query}")
    assert session.sql("FROM v").fetchall() == expected


def test_a_window_that_sorts_by_null_keeps_its_rows(session: dl.Session) -> None:
    query = "SELECT k FROM t WHERE k < 3 QUALIFY row_number() OVER (PARTITION BY k ORDER BY NULL) <= 2 ORDER BY k"
    assert session.sql(query).fetchall() == [(0,), (1,), (1,), (2,), (2,)]
