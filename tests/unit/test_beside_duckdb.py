"""Reads DuckDB's sqllogictest files, and compares the answers of their statements."""

from __future__ import annotations

from pathlib import Path

import duckdb

import ducklake_lab as dl
from tests.corpus.beside_duckdb import compare, statements

_FILE = """# name: test/sql/a.test
statement ok
CREATE TABLE t (i INTEGER PRIMARY KEY, s VARCHAR);

foreach kind <signed>

query I
SELECT max(i)::${kind} FROM t
----
3

endloop

loop n 0 2

statement ok
INSERT INTO t VALUES (${n}, 'x')

endloop

statement error
SELECT none FROM t
----
not found
"""


def test_loops_are_written_out() -> None:
    found = statements(_FILE)
    assert [one.sql for one in found] == [
        "CREATE TABLE t (i INTEGER , s VARCHAR)",
        *(f"SELECT max(i)::{kind} FROM t" for kind in ("tinyint", "smallint", "integer", "bigint", "hugeint")),
        "INSERT INTO t VALUES (0, 'x')",
        "INSERT INTO t VALUES (1, 'x')",
        "SELECT none FROM t",
    ]
    assert [one.is_error for one in found] == [False] * 8 + [True]


def test_answers_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "a.test"
    file.write_text(
        "statement ok\nCREATE TABLE t AS SELECT 1 AS i, 0.1 + 0.2 AS d\n\n"
        "query I\nSELECT * FROM t\n\nquery I\nSELECT v FROM other\n\nquery I\nSELECT none FROM t\n\n"
        "query I\nSELECT v FROM u\n"
    )
    with duckdb.connect() as beside, dl.connect(f"ducklake:{tmp_path}/x.ducklake", engine="duckdb") as session:
        beside.execute("CREATE TABLE other AS SELECT 1 AS v; CREATE TABLE u AS SELECT 2 AS v")
        session.sql("CREATE TABLE u AS SELECT 3 AS v")
        kinds = [kind for kind, _ in compare(file, session, beside, "duckdb")]
    assert kinds == ["same", "same", "failed", "same", "differs"]
