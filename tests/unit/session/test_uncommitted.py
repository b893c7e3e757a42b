"""The line under a result says whether changes of the open transaction are in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.result import render, summary
from ducklake_lab.widgets.text import render as as_text


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS FROM range(100) AS r(i); CREATE VIEW v AS FROM t")
        yield session


def line(session: dl.Session, text: str) -> str:
    return summary(session.sql(text))


READS = ("SELECT count(*) FROM t", "SELECT max(i) FROM t", "FROM v", "SELECT * FROM t JOIN v USING (i)")


@pytest.mark.parametrize("change", ["INSERT INTO t VALUES (7)", "DELETE FROM t WHERE i < 50", "CREATE TABLE u (i INT)"])
def test_uncommitted_changes_are_named_beside_the_snapshot(change: str, session: dl.Session) -> None:
    session.sql("BEGIN")
    for text in READS:
        assert "uncommitted" not in line(session, text)
    assert change.startswith("CREATE") or "snapshot 2 + uncommitted changes" in line(session, change)
    session.sql(change)
    for text in READS:
        result = session.sql(text)
        for shown in (summary(result), render(result), as_text(result)):
            assert "snapshot 2 + uncommitted changes" in shown, text
    explained = session.sql("EXPLAIN SELECT sum(t.i) FROM t, t AT (VERSION => 2) AS before").fetchone()
    assert explained is not None
    first, second = explained[1].splitlines()[:2]
    assert "snapshot 2 + uncommitted changes, reads" in first and "snapshot 2, reads" in second
    assert "uncommitted" not in line(session, "FROM t AT (VERSION => 2)")
    assert "uncommitted" not in line(session, "SELECT count(*) FROM t AT (VERSION => 2)")
    assert "snapshot 3" in line(session, "COMMIT")
    for text in READS:
        assert "snapshot 3" in line(session, text) and "uncommitted" not in line(session, text)


def test_a_statement_that_changes_nothing_leaves_the_snapshot(session: dl.Session) -> None:
    session.sql("BEGIN")
    assert "uncommitted" not in line(session, "DELETE FROM t WHERE i < 0")
    assert "uncommitted" not in line(session, "SELECT count(*) FROM t")
    session.sql("ROLLBACK")
    assert "uncommitted" not in line(session, "UPDATE t SET i = 0 WHERE i < 0")
