"""Rows of many partitions are written at once: a file for each, with its rows in their order."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach

pytestmark = pytest.mark.sampled(3)

_KEYS = 130  # more than the files that DuckDB keeps open


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "ENCRYPTED", "hive_file_pattern", "parquet_row_group_size_bytes"])
def test_each_partition_has_a_file(options: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", encrypted=options == "ENCRYPTED") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR, k VARCHAR); ALTER TABLE t SET PARTITIONED BY (k)")
        if options.islower():
            value = "false" if options == "hive_file_pattern" else "'100KB'"
            session.sql(f"CALL lake.set_option('{options}', {value})")
        rows = (
            f"SELECT i::INTEGER AS i, 's' || i AS s, nullif('a/b ' || i % {_KEYS}, 'a/b 7') AS k FROM range(5000) r(i)"
        )
        session.sql(f"INSERT INTO t {rows}")
        expected = session.sql(f"{rows} ORDER BY i").fetchall()
        assert session.sql("FROM t ORDER BY i").fetchall() == expected
        # files come in the order of the first row of each partition, and rows keep theirs
        ids = session.sql("SELECT i FROM t ORDER BY rowid").fetchall()
        assert ids == [(i,) for k in range(_KEYS) for i in range(k, 5000, _KEYS)]
    files = _files(tmp_path / "data")
    assert len(files) == _KEYS
    assert {path.parent for path in files} == {path.parent for path in files if path.name.startswith("ducklake-")}
    assert len({path.parent for path in files}) == (1 if options in ("ENCRYPTED", "hive_file_pattern") else _KEYS)
    if options != "ENCRYPTED":
        assert {tuple(pq.read_schema(path).names) for path in files} == {("i", "s", "k")}
    attach(reference, uri)
    assert reference.execute("FROM t ORDER BY i").fetchall() == expected
    assert reference.execute("SELECT i FROM t WHERE k IS NULL ORDER BY rowid LIMIT 2").fetchall() == [(7,), (137,)]


def test_a_table_may_have_any_column(tmp_path: Path) -> None:
    # in lakes of 1.1 the name would be reserved
    place = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(place, data_inlining_row_limit=0, ducklake_version="1.0") as session:
        session.sql("CREATE TABLE t (_DuckLake_lab_group INTEGER, k INTEGER); ALTER TABLE t SET PARTITIONED BY (k)")
        session.sql("INSERT INTO t SELECT i, i % 3 FROM range(9) r(i)")
        assert session.sql("SELECT _ducklake_lab_group, k FROM t ORDER BY 1").fetchall() == [
            (i, i % 3) for i in range(9)
        ]


def test_a_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t (i INTEGER NOT NULL, k INTEGER); ALTER TABLE t SET PARTITIONED BY (k)")
        with pytest.raises(dl.ConstraintError, match=r"t\.i is NOT NULL"):
            session.sql("INSERT INTO t SELECT nullif(i, 900), i % 9 FROM range(1000) r(i)")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(0,)]
    assert _files(tmp_path / "data") == []


def test_new_versions_keep_their_row_ids(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_inlining_row_limit=0) as session:
        session.sql("CREATE TABLE t (i INTEGER, k INTEGER); ALTER TABLE t SET PARTITIONED BY (k)")
        session.sql("INSERT INTO t SELECT i, i % 9 FROM range(90) r(i)")
        before = session.sql("SELECT i, rowid FROM t ORDER BY i").fetchall()
        session.sql("UPDATE t SET k = (k + 1) % 5")
        assert session.sql("SELECT i, rowid FROM t ORDER BY i").fetchall() == before
        assert session.sql("SELECT DISTINCT k FROM t ORDER BY k").fetchall() == [(k,) for k in range(5)]
