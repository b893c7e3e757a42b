"""Queries of larger tables in process run when their rows are asked for, and give what they would have given at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from ducklake_lab.errors import TransactionError


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", limits=Limits(eager=0)) as session:
        session.sql("CREATE TABLE t AS SELECT i, TIMESTAMPTZ '2024-07-01 12:00:00Z' AS z FROM range(1000) r(i)")
        yield session
        assert not session.spark_started


def test_no_more_rows_are_computed_than_are_shown(session: dl.Session, runs: list[str]) -> None:
    result = session.sql("SELECT i, i AS i FROM t ORDER BY i DESC")
    assert runs == [] and result.columns == ["i", "i"] and result.types == ["BIGINT", "BIGINT"]
    assert result.head(3).column(0).to_pylist() == [999, 998, 997]
    assert len(runs) == 1 and runs[0].endswith("LIMIT 3")
    assert len(result) == 1000 and len(result.fetchall()) == 1000
    assert len(runs) == 2


def test_few_rows_are_computed_once(session: dl.Session, runs: list[str]) -> None:
    result = session.sql("SELECT count(*), min(z) FROM t WHERE i > 10")
    assert result.head(51).num_rows == 1
    assert result.fetchall()[0][0] == 989
    assert len(runs) == 1


def test_rows_are_those_of_the_snapshot_and_settings_of_the_statement(session: dl.Session) -> None:
    session.sql("SET TimeZone = 'Asia/Kathmandu'")
    result = session.sql("SELECT count(*), min(z)::VARCHAR FROM t WHERE i >= 0")
    session.sql("SET TimeZone = 'UTC'; DELETE FROM t WHERE i < 500; INSERT INTO t SELECT i, now() FROM range(50) r(i)")
    assert result.fetchall() == [(1000, "2024-07-01 17:45:00+05:45")]
    assert session.sql("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]


@pytest.mark.parametrize("query", ["SELECT now() FROM t", "SELECT random() FROM t", "SELECT current_date FROM t"])
def test_what_another_run_gives_otherwise_runs_at_once(query: str, session: dl.Session, runs: list[str]) -> None:
    result = session.sql(query)
    assert len(runs) == 1
    assert result.fetchall() == result.fetchall()
    assert len(runs) == 1


def test_results_are_written_and_compared(session: dl.Session) -> None:
    session.write(session.sql("SELECT i, z FROM t WHERE i < 10"), "copied", mode="create")
    assert session.sql("SELECT count(*), sum(i) FROM copied").fetchall() == [(10, 45)]
    with pytest.raises(dl.DuckLakeError, match="ghost"):
        session.sql("SELECT ghost FROM t")


def test_rows_of_a_transaction_that_was_rolled_back(session: dl.Session) -> None:
    session.sql("BEGIN; INSERT INTO t SELECT i, now() FROM range(5000) r(i)")
    result = session.sql("SELECT i FROM t WHERE i >= 0")
    assert result.head(51).num_rows == 51
    session.sql("ROLLBACK")
    with pytest.raises(TransactionError, match="was rolled back; run the query again"):
        result.fetchall()
    assert session.sql("SELECT count(*) FROM t WHERE i >= 0").fetchall() == [(1000,)]


def test_a_snapshot_s_number_is_not_computed(session: dl.Session, runs: list[str]) -> None:
    last = session.current_snapshot().snapshot_id
    session.sql(f"SELECT i FROM t AT (VERSION => {last})")
    assert runs == []
    session.sql(f"SELECT i FROM t AT (VERSION => {last} + 0)")
    assert set(runs) == {f"SELECT ({last} + 0) AS v"}
