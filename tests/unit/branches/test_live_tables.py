"""Live tables on branches: rows that came from another history are computed anew by the next refresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl

QUERY = "SELECT i % 2 AS p, sum(amount) AS a, count(*) AS n FROM o GROUP BY ALL"


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE o (i INTEGER, amount INTEGER); INSERT INTO o VALUES (1, 5), (2, 7)")
        session.sql(f"CREATE LIVE TABLE daily AS {QUERY}")
        session.branch("b")
        yield session


def _on_branch(session: dl.Session, *statements: str) -> None:
    session.switch("b")
    for statement in statements:
        session.sql(statement)
    session.switch(None)


def _check(session: dl.Session) -> None:
    session.sql("REFRESH daily")
    assert sorted(session.sql("FROM daily").fetchall()) == sorted(session.sql(QUERY).fetchall())
    assert session.refresh("daily").mode == "nothing"


def test_a_refresh_on_the_branch_beside_a_commit_of_the_lake(session: dl.Session):
    _on_branch(session, "INSERT INTO o VALUES (9, 9)", "REFRESH daily")
    session.sql("INSERT INTO o VALUES (4, 100)")  # its snapshot has the number of one of the branch
    session.merge("b")
    _check(session)


def test_refreshes_on_both_sides_are_no_conflict_of_definitions(session: dl.Session):
    _on_branch(session, "INSERT INTO o VALUES (9, 9)", "REFRESH daily")
    session.sql("INSERT INTO o VALUES (4, 100); REFRESH daily")
    session.merge("b")
    _check(session)


def test_a_live_table_of_the_branch_comes_to_the_lake(session: dl.Session):
    _on_branch(session, "CREATE LIVE TABLE other AS SELECT max(amount) AS m FROM o")
    session.sql("INSERT INTO o VALUES (4, 100)")
    session.merge("b")
    assert session.refresh("other").mode == "full"
    assert session.sql("FROM other").fetchall() == [(100,)]


def test_a_rebased_branch_computes_anew(session: dl.Session):
    _on_branch(session, "INSERT INTO o VALUES (9, 9)", "REFRESH daily")
    session.sql("INSERT INTO o VALUES (4, 100); REFRESH daily")
    session.rebase("b")
    session.switch("b")
    _check(session)


@pytest.mark.parametrize(
    "statement", ["INSERT INTO o VALUES (9, 9)", "UPDATE o SET amount = 0", "DELETE FROM o WHERE i = 1"]
)
def test_a_reverted_refresh(session: dl.Session, statement: str):
    session.sql(f"{statement}; REFRESH daily")
    session.revert(session.current_snapshot().snapshot_id)
    _check(session)
    session.sql("INSERT INTO o VALUES (2, 1)")
    session.revert(session.current_snapshot().snapshot_id - 2)
    _check(session)


def test_a_restored_live_table(session: dl.Session):
    at = session.current_snapshot().snapshot_id
    session.sql("INSERT INTO o VALUES (9, 9); REFRESH daily")
    session.restore("daily", at)
    _check(session)
    session.restore("o", at)
    _check(session)
