"""A table of more files than one query of DuckDB's is given: the same rows, row ids and places as the reference's."""

from __future__ import annotations

from pathlib import Path

import ducklake_lab as dl
from benchmarks.maintenance import build
from tests import reference

_FILES = 1100
_QUERIES = (
    "SELECT count(*), sum(i), count(DISTINCT rowid), sum(rowid), sum(snapshot_id) FROM lake.t",
    "SELECT filename, file_index, file_row_number, rowid FROM lake.t WHERE i = 8 ORDER BY rowid",
    "SELECT rowid, i FROM lake.t ORDER BY rowid DESC LIMIT 60",
)


def test_rows_of_all_files_are_read_and_deleted(tmp_path: Path) -> None:
    build(tmp_path / "lake", _FILES)
    uri = f"ducklake:{tmp_path}/lake/lake.ducklake"
    for statement, left in (
        (None, 50),
        ("DELETE FROM t WHERE i = 7", 49),
        ("UPDATE t SET d = 0 WHERE rowid % 7 = 3", 49),
    ):
        with dl.connect(uri, alias="lake", engine="duckdb") as session:
            if statement is not None:
                session.sql(statement)
            ours = [session.sql(query).fetchall() for query in _QUERIES]
        with reference.connect() as connection:
            connection.execute(f"ATTACH '{uri}' AS lake (READ_ONLY)")
            theirs = [connection.execute(query).fetchall() for query in _QUERIES]
        assert ours[0] == theirs[0] and ours[0][0][0] == _FILES * left
        assert ours[1] == theirs[1] and len(ours[1]) == _FILES
        assert ours[2] == theirs[2]
