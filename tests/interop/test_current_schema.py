"""Unqualified names after `USE lake.schema`: the current schema comes first and then main, as in the reference."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.reference import connect

pytestmark = pytest.mark.sampled(1)

_ENTRIES = (
    "CREATE TABLE a AS SELECT 1 AS i",
    "CREATE SCHEMA s",
    "CREATE TABLE s.b AS SELECT 10 AS i",
    "CREATE MACRO seven() AS 7",
    "CREATE MACRO rows_of() AS TABLE FROM a",
    "CREATE VIEW va AS FROM a",
    "CREATE TABLE s.two AS SELECT 3 AS i",
    "CREATE TABLE main.two AS SELECT 4 AS i",
    "CREATE MACRO s.which() AS 's'",
    "CREATE MACRO main.which() AS 'main'",
    # kinds do not hide each other
    "CREATE MACRO s.a() AS 1",
    "CREATE TABLE gone AS SELECT 1 AS i",
    "CREATE VIEW seen AS SELECT 1 AS i",
    "CREATE MACRO made() AS 1",
    "USE lake.s",
)
_STATEMENTS = (
    "FROM a",
    "SELECT seven(), which()",
    "FROM rows_of()",
    "FROM va",
    "FROM two",
    "FROM a JOIN b ON true",
    "SELECT seven() FROM a USING SAMPLE 100%",
    "SELECT a.i, main.a.i FROM a",
    "SHOW TABLES",
    "DESCRIBE a",
    "DESCRIBE va",
    "SUMMARIZE va",
    "FROM a AT (VERSION => 1)",
    "UPDATE a SET i = 2",
    "FROM lake.main.a",
    "INSERT INTO a VALUES (3)",
    "DELETE FROM a WHERE i = 3",
    "MERGE INTO a USING (SELECT 2 AS i) x ON a.i = x.i WHEN MATCHED THEN UPDATE SET i = 5",
    "FROM a",
    "ALTER TABLE a ADD COLUMN j INTEGER",
    "FROM a",
    "COMMENT ON TABLE a IS 'x'",
    "SELECT comment FROM duckdb_tables() WHERE table_name = 'a'",
    # what is made is made in the current schema
    "CREATE TABLE a2 AS FROM a",
    "FROM lake.s.a2",
    "CREATE TABLE IF NOT EXISTS gone (x INTEGER)",
    "FROM lake.s.gone",
    "DROP TABLE gone",
    "FROM lake.main.gone",
    "DROP TABLE gone",
    "FROM lake.main.gone",
    "DROP VIEW seen",
    "FROM lake.main.seen",
    "DROP MACRO made",
    "SELECT lake.main.made()",
    "CREATE VIEW sees AS FROM a",
    "FROM sees",
    "CREATE OR REPLACE TABLE a AS SELECT 77 AS i",
    "FROM a",
    "FROM lake.main.a",
    "FROM sees",
    "TRUNCATE two",
    "FROM main.two",
    "TRUNCATE va",
    "ALTER VIEW va RENAME TO vb",
    "FROM vb",
    "CREATE VIEW vb AS SELECT 9 AS i",
    "FROM vb",
    "DROP VIEW vb",
    "FROM vb",
    "USE lake.main",
    "FROM s.sees",
    "FROM b",
    "SELECT which()",
)


def test_the_current_schema_comes_first_and_then_main(tmp_path: Path) -> None:
    with (
        connect() as reference,
        dl.connect(f"ducklake:{tmp_path}/a.ducklake", "lake", data_path=f"{tmp_path}/a", engine="duckdb") as session,
    ):
        reference.execute(f"ATTACH 'ducklake:{tmp_path}/b.ducklake' AS lake (DATA_PATH '{tmp_path}/b')")
        reference.execute("USE lake")
        for text in _ENTRIES:
            reference.execute(text)
            session.sql(text)
        for text in _STATEMENTS:
            expected: object
            try:
                expected = reference.execute(text).fetchall()
            except duckdb.Error:
                with pytest.raises(dl.DuckLakeError):
                    session.sql(text).fetchall()
                continue
            found = session.sql(text).fetchall()
            assert text.startswith("USE") or found == expected, text


def test_rows_that_are_written_find_their_table(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", "lake", data_path=f"{tmp_path}/a", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i; CREATE SCHEMA s; USE lake.s")
        session.write(session.sql("SELECT 2 AS i").arrow(), "t", mode="append")
        assert session.sql("FROM lake.main.t ORDER BY i").fetchall() == [(1,), (2,)]
        with session.appender("t") as appender:
            appender.append({"i": 3})
        assert session.table("t").arrow().num_rows == 3
        session.write(session.sql("SELECT 9 AS i").arrow(), "t", mode="create")
        assert session.sql("FROM t").fetchall() == [(9,)]
        assert session.sql("SELECT count(*) FROM main.t").fetchall() == [(3,)]
