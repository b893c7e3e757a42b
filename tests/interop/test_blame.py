"""Blame and life of rows in lakes that the reference has written."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach

pytestmark = pytest.mark.sampled(3)


def test_deletion_vectors_that_the_reference_replaced(
    tmp_path: Path, catalog: str, new_catalog: object, reference: duckdb.DuckDBPyConnection
) -> None:
    """The reference drops a replaced vector from the catalog, so that rows seem to have been deleted later."""
    uri = new_catalog(catalog)  # type: ignore[operator]
    attach(reference, uri, data_path=tmp_path / "data")
    for sql in (
        "CALL lake.set_option('write_deletion_vectors', true)",
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t SELECT i, 'a' FROM range(100) r(i)",
        "UPDATE t SET s = 'b' WHERE i < 20",
        "UPDATE t SET s = 'c' WHERE i < 40",
        "UPDATE t SET s = 'd' WHERE i BETWEEN 30 AND 60",
    ):
        reference.execute(sql)
    detach(reference)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        table = session.table("t")
        blamed = table.blame("i IN (5, 25, 35, 50, 70)").fetchall()
        assert {row[0]: row[2:5] for row in blamed if row[1] == "s"} == {
            5: ("c", "b", 4),
            25: ("c", "a", 4),
            35: ("d", "c", 5),
            50: ("d", "a", 5),
            70: ("a", None, 2),
        }
        assert {row[4] for row in blamed if row[1] == "i"} == {2}
        lives = {row_id: [row[:2] for row in table.life(row_id).fetchall()] for row_id in (5, 25, 35, 70)}
        assert lives == {
            5: [(2, "insert"), (3, "update"), (4, "update")],
            25: [(2, "insert"), (4, "update")],
            35: [(2, "insert"), (4, "update"), (5, "update")],
            70: [(2, "insert")],
        }
