"""Counts of each snapshot in the history, compared with the reference's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import detach
from tests.interop.test_encryption import _INSTALLED, _UNSAFE
from tests.reference import extension

pytestmark = pytest.mark.sampled(4)

#: Statements, each with the rows it adds to the table, removes from it and leaves in it.
STEPS = [
    ("CREATE TABLE t AS SELECT i AS id, 'x' AS v FROM range(10000) r(i)", 10000, 0, 10000),
    ("UPDATE t SET v = 'y' WHERE id < 100", 100, 100, 10000),
    ("DELETE FROM t WHERE id % 2 = 0", 0, 5000, 5000),
    ("DELETE FROM t WHERE id IN (1, 3)", 0, 2, 4998),
    ("DELETE FROM t WHERE id % 3 = 0", 0, 1666, 3332),
    ("INSERT INTO t VALUES (1, 'a'), (2, 'b')", 2, 0, 3334),
    ("INSERT INTO t VALUES (5, 'a')", 1, 0, 3335),
    ("DELETE FROM t WHERE v = 'b'", 0, 1, 3334),
    ("CALL ducklake_flush_inlined_data('lake')", 0, 0, 3334),
    ("INSERT INTO t SELECT i, 'z' FROM range(20) r(i)", 20, 0, 3354),
    ("INSERT INTO t SELECT i, 'z' FROM range(21) r(i)", 21, 0, 3375),
    ("CALL ducklake_merge_adjacent_files('lake')", 0, 0, 3375),
    ("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)", 0, 0, 3375),
    ("DELETE FROM t WHERE v = 'z' AND id < 15", 0, 30, 3345),
    ("INSERT INTO t VALUES (1, 'i'), (2, 'i')", 2, 0, 3347),
    ("DROP TABLE t", 0, 3347, 0),
]


@pytest.mark.parametrize("encrypted", [False, True])
def test_every_snapshot_counts_its_own_rows(lake_uri: Callable[..., str], encrypted: bool, tmp_path: Path) -> None:
    if encrypted:
        extension("httpfs")  # skips where there is none
    uri = lake_uri()
    with dl.Session(engine="duckdb") as session:
        session.sql(f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/data', ENCRYPTED {encrypted}); USE lake")
        for statement, *_ in STEPS:
            session.sql(statement)
    check_numbers(uri)


@pytest.mark.parametrize("encrypted", [False, True])
def test_in_a_lake_of_the_reference(encrypted: bool, tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/x.ducklake"
    if encrypted:
        reference.execute(f"LOAD '{extension('httpfs')}'" if _INSTALLED else _UNSAFE)
    reference.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/data', ENCRYPTED {encrypted}); USE lake")
    for statement, *_ in STEPS:
        reference.execute(statement)
    detach(reference)
    check_numbers(uri)


def check_numbers(uri: str) -> None:
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        entries = session.snapshots()[1:]
        assert [(e.rows_added, e.rows_removed) for e in entries] == [(added, gone) for _, added, gone, _ in STEPS]
        for entry, (_, added, gone, left) in zip(entries[:-1], STEPS, strict=False):
            number = entry.info.snapshot_id
            (table,) = session.tables(at=number)
            assert table.record_count == left, number
            files = session.table("t", at=number).files()
            inlined = session.sql(
                f"SELECT count(*) FROM t AT (VERSION => {number}) WHERE filename NOT LIKE '%.parquet'"
            ).fetchall()[0][0]
            assert sum(file.rows - file.deleted for file in files) == left - inlined, number
            assert session.table("t", at=number).history()[number - 1].rows_removed == gone
            if number > 1:
                diff = session.table("t", at=number).diff(number - 1, number)
                summary = diff.summary
                assert (summary.inserted + summary.updated, summary.deleted + summary.updated) == (added, gone)
                assert summary.unchanged == left - added
                assert [(e.rows_added, e.rows_removed) for e in diff.history] == [(added, gone)]
        assert [(e.rows_added, e.rows_removed) for e in session.snapshots(last=3)] == [(0, 30), (2, 0), (0, 3347)]


def test_files_count_what_was_deleted_at_a_snapshot(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", engine="duckdb") as session:
        for statement, *_ in STEPS[:3]:
            session.sql(statement)
        for at, expected in ((1, [(10000, 0)]), (2, [(10000, 100), (100, 0)]), (3, [(10000, 5050), (100, 50)])):
            files = session.table("t", at=at).files()
            assert sorted(((f.rows, f.deleted) for f in files), reverse=True) == expected, at
            rows = [row["rows"] for row in session.table("t", at=at).partitions()]
            assert rows == [sum(rows for rows, _ in expected)]
        changed = session.table("t", at=2).diff(1, 2).files
        assert [(file.kind, file.rows) for file in changed.only_after] == [("data", 100), ("deletes", 100)]
        assert (changed.added, changed.removed, changed.unchanged, changed.delete_files_added) == (1, 0, 1, 1)


def test_a_delete_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", engine="duckdb") as session:
        for statement, *_ in STEPS[:3]:
            session.sql(statement)
        for path in tmp_path.rglob("*-delete.parquet"):
            path.unlink()
        assert [table.record_count for table in session.tables()] == [5000]  # the catalog knows
        with pytest.raises(dl.DuckLakeError, match=r"^The delete file .*-delete\.parquet is missing; restore it"):
            session.snapshots()
