"""Health of a lake's files, and the calls that improve it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl


@pytest.mark.slow
def test_small_worn_and_inlined_is_found_and_mended(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(
            """
            CREATE TABLE t (i INTEGER, p VARCHAR); ALTER TABLE t SET PARTITIONED BY (p);
            INSERT INTO t SELECT r, 'a' FROM range(50) AS s(r); INSERT INTO t SELECT r, 'a' FROM range(50) AS s(r);
            INSERT INTO t SELECT r, 'b' FROM range(50) AS s(r);
            CREATE TABLE worn (i INTEGER); INSERT INTO worn SELECT r FROM range(100) AS s(r);
            DELETE FROM worn WHERE i < 30;
            CREATE TABLE kept (i INTEGER); CREATE TABLE few (i INTEGER); INSERT INTO few VALUES (1);
            CALL lake.set_option('data_inlining_row_limit', '200', table_name => 'kept');
            INSERT INTO kept SELECT r FROM range(120) AS s(r);
            """
        )
        told = {(one.table, one.problem) for one in session.health()}
        assert told == {
            ("main.kept", "120 rows are kept in the catalog"),
            ("main.t", "2 of 3 files can be merged: each is smaller than 25% of the target size"),
            ("main.worn", "1 of 1 files have at least 20% of their rows deleted"),
        }
        (finding,) = session.health("kept")
        assert finding.effect == "120 rows would be written to Parquet"
        assert finding.call == "CALL lake.flush_inlined_data(schema_name => 'main', table_name => 'kept')"
        assert "flush_inlined_data" in session.health("kept")._repr_html_()
        assert not session.health("few")
        session.health().apply()
        assert not session.health()
        assert [len(session.table(name).files()) for name in ("t", "worn", "kept", "few")] == [2, 1, 1, 0]
        assert session.sql("SELECT count(*), (SELECT count(*) FROM worn) FROM kept").fetchall() == [(120, 70)]


def test_statistics_are_read_when_they_are_looked_at(new_catalog: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(new_catalog(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT r AS i, {'x': r * 2} AS s FROM range(50) AS q(r)")
        session.sql("INSERT INTO t SELECT r, {'x': NULL} FROM range(50, 80) AS q(r)")
        files = session.table("t").files()
        assert tuple(files.types) == ("i", "s.x")
        assert [one.max_value for one in files.of_column("i")] == ["49", "79"]
        files.look_at(files[:1])
        assert set(files[0].stats) == {"i", "s.x"} and files[0].stats["s.x"].max_value == "98"
        assert files[1].stats["s.x"].null_count == 30
        assert set(files.times(files)) == {entry.data_file.begin_snapshot for entry in files}
        session.sql("CREATE OR REPLACE TABLE t (i INTEGER)")
        assert files.of_column("s.x")[0].max_value == "98"  # still those of its snapshot
