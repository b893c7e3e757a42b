"""NOT NULL holds for rows that are written or added, of types whose NULLs no file counts too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

#: A value of each type. Files count the NULLs of the first three.
VALUES = {
    "INTEGER": "1",
    "BLOB": "'a'",
    "UUID": "'00000000-0000-0000-0000-000000000001'",
    "INTERVAL": "'1 day'",
    "TIMETZ": "'12:00:00+00'",
    "STRUCT(a INTEGER)": "{'a': 1}",
    "INTEGER[]": "[1]",
    "MAP(VARCHAR, INTEGER)": "MAP {'a': 1}",
}
ADD = "CALL ducklake_add_data_files('lake', 't', '{}', allow_missing => true)"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data", engine="duckdb"
    ) as session:
        yield session


@pytest.mark.parametrize("kind", VALUES)
def test_no_row_of_an_added_file_is_null(session: dl.Session, tmp_path: Path, kind: str) -> None:
    value = f"CAST({VALUES[kind]} AS {kind})"
    session.sql(f"CREATE TABLE t (i BIGINT, x {kind} NOT NULL)")
    places = {name: tmp_path / f"{name} [1]*.parquet" for name in ("whole", "null", "without")}
    for name, rows in {
        "whole": f"SELECT i, {value} AS x FROM range(3000) r(i)",
        "null": f"SELECT i, CASE WHEN i <> 2999 THEN {value} END AS x FROM range(3000) r(i)",
        "without": "SELECT i FROM range(3) r(i)",
    }.items():
        duckdb.sql(f"COPY ({rows}) TO '{places[name]}' (FORMAT parquet)")
    session.sql(ADD.format(places["whole"]))
    for name in ("null", "without"):
        with pytest.raises(
            dl.ConstraintError, match=r"t\.x is NOT NULL; a row of .*\[1\]\*\.parquet has no value for it"
        ):
            session.sql(ADD.format(places[name]))
    assert session.sql("SELECT count(*), count(x) FROM t").fetchall() == [(3000, 3000)]
    session.sql("ALTER TABLE t ALTER x DROP NOT NULL")
    for name in ("null", "without"):
        session.sql(ADD.format(places[name]))
    assert session.sql("SELECT count(*), count(x) FROM t").fetchall() == [(6003, 5999)]
    with pytest.raises(dl.ConstraintError, match="the column has NULL values"):
        session.sql("ALTER TABLE t ALTER x SET NOT NULL")


def test_a_column_in_the_path_or_with_a_default_is_not_null(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t (i BIGINT, p INTEGER NOT NULL, d INTEGER DEFAULT 7)")
    duckdb.sql(
        f"COPY (SELECT 1::BIGINT AS i, 2 AS p UNION ALL SELECT 3, NULL) TO '{tmp_path}/h' (FORMAT parquet, PARTITION_BY (p))"
    )
    (whole,) = (tmp_path / "h" / "p=2").iterdir()
    session.sql("ALTER TABLE t ALTER d SET NOT NULL")
    session.sql(ADD.format(whole))
    with pytest.raises(dl.ConstraintError, match=r"t\.p is NOT NULL"):
        session.sql(ADD.format(tmp_path / "h" / "*" / "*.parquet"))
    assert session.sql("FROM t").fetchall() == [(1, 2, 7)]


@pytest.mark.parametrize("kind", VALUES)
def test_rows_older_than_the_constraint_can_be_moved(session: dl.Session, kind: str) -> None:
    session.sql(f"""
        CREATE TABLE t (i INTEGER, x {kind} NOT NULL);
        INSERT INTO t VALUES (1, CAST({VALUES[kind]} AS {kind}));
        ALTER TABLE t ALTER x DROP NOT NULL; INSERT INTO t(i) VALUES (2); DELETE FROM t WHERE i = 2;
        ALTER TABLE t ALTER x SET NOT NULL
    """)
    newest = session.current_snapshot().snapshot_id
    session.sql("CALL lake.flush_inlined_data(); CALL lake.merge_adjacent_files('t')")
    assert session.sql("SELECT i, x IS NULL FROM t").fetchall() == [(1, False)]
    found = session.sql(f"SELECT i, x IS NULL FROM t AT (VERSION => {newest - 2}) ORDER BY i").fetchall()
    assert found == [(1, False), (2, True)]
    with pytest.raises(dl.ConstraintError, match=r"t\.x is NOT NULL; a row has no value for it"):
        session.sql("INSERT INTO t SELECT i, NULL FROM range(3) r(i)")
