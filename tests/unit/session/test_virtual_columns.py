"""Virtual columns, against what the reference shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import ducklake_lab as dl
from tests.reference import connect
from tests.unit.sql.lakes import plan

QUERIES = (
    "SELECT file_row_number, t.i FROM t ORDER BY ALL",
    "SELECT FILE_ROW_NUMBER AS n FROM t WHERE t.file_row_number = 1",
    "SELECT file_row_number, count(*) AS c FROM t GROUP BY file_row_number ORDER BY 1",
    "SELECT * FROM t WHERE file_row_number = 0 ORDER BY i",
    "SELECT file_row_number FROM own",
    "SELECT filename, file_index, i FROM t ORDER BY i",
    "SELECT FILENAME AS f, count(*) AS n FROM t WHERE file_index > 0 GROUP BY f ORDER BY f",
    "SELECT x.file_index FROM t AS x WHERE x.filename LIKE '%_inlined_data_%' ORDER BY ALL",
    "SELECT filename, file_index, file_row_number FROM taken ORDER BY ALL",
    "SELECT file_index, i FROM t AT (VERSION => 3) ORDER BY ALL",
)


def test_spark_has_words_for_it() -> None:
    planned = plan("SELECT p.file_row_number FROM planes p WHERE file_row_number = 1")
    assert planned.columns == ("file_row_number",)
    assert planned.spark_sql.count("coalesce(`p`.`_ducklake_position`, `p`.`_ducklake_row_id`)") == 2
    assert planned.sources[0].virtual
    assert planned.sources[0].predicate is None


def test_where_a_row_is_costs_only_who_asks() -> None:
    planned = plan("SELECT p.filename, y.file_index FROM planes p, planes y, planes z WHERE z.rowid = 1")
    assert [(source.virtual, source.located) for source in planned.sources] == [
        (True, True),
        (True, True),
        (True, False),
    ]


@pytest.mark.slow
def test_file_row_number_in_files_and_of_inlined_rows(tmp_path: Path) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("SET ducklake_default_data_inlining_row_limit = 0; CREATE TABLE t (i INTEGER)")
        session.sql("CREATE TABLE own (file_row_number INTEGER)")
        session.sql("INSERT INTO t VALUES (1), (2), (3); INSERT INTO t VALUES (4), (5); DELETE FROM t WHERE i = 2")
        session.sql("SET ducklake_default_data_inlining_row_limit = 10; INSERT INTO t VALUES (6), (7)")
        session.sql("INSERT INTO own VALUES (42); ALTER TABLE t ADD COLUMN j INTEGER; INSERT INTO t VALUES (8, 1)")
        session.sql("CREATE TABLE taken (filename VARCHAR, file_row_number INTEGER, file_index VARCHAR)")
        session.sql("INSERT INTO taken SELECT 'f' || i, i, 'x' FROM range(20) AS r(i)")
        session.sql("DELETE FROM taken WHERE file_row_number = 3")
        ours = [session.sql(text, engine="duckdb").arrow().to_pylist() for text in QUERIES]
        for text in QUERIES:
            names = session.sql(text, engine="duckdb").arrow().column_names
            assert names[0].casefold() in ("file_row_number", "n", "i", "filename", "f", "file_index")
        session.sql(
            "BEGIN; INSERT INTO t VALUES (9, 9); DELETE FROM t WHERE file_index = 0; UPDATE t SET j = file_index"
        )
        changed = "SELECT j, filename LIKE '%local%' FROM t WHERE i IN (5, 9) ORDER BY i"
        assert session.sql(changed, engine="duckdb").fetchall() == [(1, True), (4, True)]
        session.sql("ROLLBACK")
        with pytest.raises(dl.BindError, match="file_row_number"):
            session.sql("SELECT file_row_number FROM (SELECT i FROM t)", engine="duckdb").arrow()
    with connect() as reference:
        reference.execute(f"ATTACH '{uri}' AS lake; USE lake")
        theirs = [reference.execute(text).to_arrow_table().to_pylist() for text in QUERIES]
    assert ours[0] == [
        {"file_row_number": n, "i": i} for n, i in ((0, 1), (0, 4), (1, 5), (2, 3), (5, 6), (6, 7), (7, 8))
    ]
    assert [[list(row.values()) for row in rows] for rows in ours] == [
        [list(row.values()) for row in rows] for rows in theirs
    ]
