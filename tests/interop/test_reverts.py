"""The reference reads a lake after reverts of rows and definitions as this package does, at every snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, our_history, reference_history

pytestmark = pytest.mark.sampled(3)

#: Statements, each of which is one snapshot that is reverted, and what comes after it.
STEPS = [
    ("ALTER TABLE t DROP COLUMN v", "UPDATE t SET n = 1 WHERE i < 5"),
    ("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 4", "INSERT INTO t (i) SELECT range + 500 FROM range(20)"),
    ("DELETE FROM t WHERE i < 20", "CALL lake.flush_inlined_data()"),
    ("UPDATE t SET n = -1 WHERE i > 25", "CALL lake.rewrite_data_files(delete_threshold => 0)"),
    ("ALTER TABLE t SET PARTITIONED BY (i)", "INSERT INTO t (i, n) VALUES (900, 1)"),
    ("DROP TABLE p", "INSERT INTO t (i, n) VALUES (901, 1)"),
    ("DROP SCHEMA s CASCADE", "INSERT INTO t (i, n) VALUES (902, 1)"),
    ("DROP MACRO twice", "CALL lake.merge_adjacent_files()"),
]


@pytest.mark.parametrize("encrypted", [False, True])
def test_the_reference_reads_every_snapshot(
    lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection, encrypted: bool
) -> None:
    uri, data = lake_uri(), f"{tmp_path}/data"
    with dl.connect(uri, alias="lake", data_path=data, engine="duckdb", encrypted=encrypted) as session:
        session.sql("CREATE TABLE t (i INTEGER, v VARCHAR, n DOUBLE)")
        session.sql("INSERT INTO t SELECT range, 'v' || range, range / 2 FROM range(40)")
        session.sql("CREATE TABLE p (k INTEGER, v VARCHAR); ALTER TABLE p SET PARTITIONED BY (k)")
        session.sql("INSERT INTO p SELECT range % 2, 'p' || range FROM range(30)")
        session.sql("CREATE SCHEMA s; CREATE TABLE s.u AS FROM t; CREATE VIEW s.few AS FROM s.u WHERE i < 3")
        session.sql("CREATE MACRO twice(x) AS 2 * x")
        for change, later in STEPS:
            session.sql(change)
            made = session.current_snapshot().snapshot_id
            session.sql(later)
            assert session.revert(made) is not None, change
        session.sql("INSERT INTO p SELECT range % 3, 'q' || range FROM range(30)")
        ours = our_history(session, "duckdb")
    assert reference_history(reference, uri) == ours
    attach(reference, uri)
    try:
        assert reference.execute("SELECT twice(4), (SELECT count(*) FROM s.few)").fetchall() == [(8, 3)]
        if encrypted:
            return  # the reference writes encrypted files with an extension that is not here
        reference.execute("INSERT INTO p SELECT range % 3, 'r' || range FROM range(30)")
        keys = "SELECT partition_key_index FROM __ducklake_metadata_lake.ducklake_file_partition_value WHERE data_file_id = "
        newest = "(SELECT max(data_file_id) FROM __ducklake_metadata_lake.ducklake_data_file)"
        assert reference.execute(keys + newest).fetchall() == [(0,)]
        assert reference.execute("SELECT count(*) FROM p").fetchall() == [(90,)]
    finally:
        detach(reference)
