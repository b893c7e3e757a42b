"""Names of joins in parentheses, beside DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

_TABLES = (
    "CREATE TABLE t (k INTEGER, s VARCHAR, v INTEGER)",
    "INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (1, 'b', 30)",
    "CREATE TABLE b (k INTEGER, w INTEGER)",
    "INSERT INTO b VALUES (1, 5)",
)
#: Queries that answer, or fail in both.
_QUERIES = (
    "SELECT * FROM ((SELECT k FROM t) a JOIN b ON a.k = b.k) j",
    "SELECT j.* FROM ((SELECT k FROM t) a JOIN b ON a.k = b.k) AS j",
    "SELECT m, n, j.w FROM ((SELECT k FROM t) a JOIN b ON a.k = b.k) j(m, n)",
    "SELECT a.k FROM ((SELECT k FROM t) a JOIN b ON a.k = b.k) j",
    "SELECT * FROM (t JOIN b ON t.k = b.k) j(a, b, c, d, e)",
    "SELECT * FROM (t JOIN b ON t.k = b.k) j JOIN t u ON u.k = j.k_1",
    "SELECT * FROM b JOIN (t JOIN b ON t.k = b.k) AS j(x) ON j.x = b.k",
    "SELECT * EXCLUDE k_1, k_1 FROM (t CROSS JOIN b) j",
    "SELECT j FROM (t JOIN b ON t.k = b.k) j",
    "SELECT rowid FROM (t JOIN b ON t.k = b.k) j",
    "SELECT i.w, j.w FROM (b NATURAL JOIN t) j, (b NATURAL JOIN t) i",
    # DuckDB drops the name after USING
    "SELECT * FROM (t JOIN (SELECT k, v FROM t) c USING (k)) j(x)",
    "SELECT t.k, c.v FROM (t JOIN (SELECT k, v FROM t) c USING (k)) j",
    "SELECT j.k FROM (t JOIN b USING (k)) j",
    "SELECT j.k_1 FROM (t JOIN b USING (k) JOIN b c ON c.k = t.k) j",
)


@pytest.mark.parametrize("query", _QUERIES)
def test_names_of_joins_in_parentheses(tmp_path: Path, query: str) -> None:
    with (
        dl.connect(f"ducklake:{tmp_path}/x.ducklake", data_path=f"{tmp_path}/data") as session,
        duckdb.connect() as plain,
    ):
        for text in _TABLES:
            session.sql(text)
            plain.execute(text)
        try:
            expected = plain.execute(query)
        except duckdb.Error:
            with pytest.raises(dl.DuckLakeError):
                session.sql(query)
            return
        names = [column[0] for column in expected.description or ()]
        rows = expected.fetchall()
        found = session.sql(query)
        assert list(found.columns) == names
        assert sorted(found.fetchall(), key=str) == sorted(rows, key=str)
