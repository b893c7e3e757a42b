"""The snapshots at which an answer changed, and the few that are asked for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        yield session


def lines(session: dl.Session, query: str, *bounds: Any, **options: Any) -> list[tuple[int, Any]]:
    return [(row[0], row[-1]) for row in session.when(query, *bounds, **options).fetchall()]


def filled(session: dl.Session, batches: int = 12, rows: int = 30) -> None:
    """A table of the numbers from 0 on; batch n is snapshot n + 1."""
    for batch in range(batches):
        low = batch * rows
        into = "CREATE TABLE t AS" if batch == 0 else "INSERT INTO t"
        session.sql(
            f"{into} SELECT i, i % 3 AS g, 'n' || i AS s FROM range({low}, {low + rows}) r(i)", message=f"batch {batch}"
        )


def asked(runs: list[str]) -> int:
    """Count the runs of a query with a sum, where the table is there."""
    return sum("sum(" in sql and "ducklake_src" in sql for sql in runs)


def test_a_line_per_change(session: dl.Session) -> None:
    session.author = "Ada"
    filled(session, 4)
    found = session.when("SELECT max(i) FROM t")
    assert found.columns == ["snapshot_id", "time", "author", "message", "answer"]
    assert found.types == ["BIGINT", "TIMESTAMP WITH TIME ZONE", "VARCHAR", "VARCHAR", "BIGINT"]
    rows = found.fetchall()
    assert [(number, author, message, answer) for number, _, author, message, answer in rows] == [
        (n + 1, "Ada", f"batch {n}", 30 * n + 29) for n in range(4)
    ]
    times = {entry.info.snapshot_id: entry.info.snapshot_time for entry in session.snapshots()}
    assert all(moment == times[number] for number, moment, *_ in rows)


@pytest.mark.parametrize(
    ("query", "kind", "answers"),
    [
        ("SELECT max(s) FROM t WHERE i < 3", "VARCHAR", ["n2", "n1"]),
        ("SELECT i FROM t WHERE i IN (2, 500)", "BIGINT", [2, None, 500]),
        ("SELECT count(*) AS n, max(i) AS i FROM t WHERE i < 3", "STRUCT(n BIGINT, i BIGINT)", [{"n": 3, "i": 2}, {"n": 2, "i": 1}]),
        ("SELECT i, s FROM t WHERE i < 2 OR i = 500 ORDER BY i DESC", "STRUCT(i BIGINT, s VARCHAR)[]", [
            [{"i": 1, "s": "n1"}, {"i": 0, "s": "n0"}],
            [{"i": 500, "s": "x"}, {"i": 1, "s": "n1"}, {"i": 0, "s": "n0"}],
        ]),
        ("SELECT i FROM t WHERE i > 400", "BIGINT", [None, 500]),
        ("SELECT i AS a, i AS a FROM t WHERE i = 500", 'STRUCT(a BIGINT, "a (2)" BIGINT)', [None, {"a": 500, "a (2)": 500}]),
    ],
)  # fmt: skip
def test_forms_of_answers(session: dl.Session, query: str, kind: str, answers: list[Any]) -> None:
    filled(session, 1)
    session.sql("DELETE FROM t WHERE i = 2; INSERT INTO t VALUES (500, 1, 'x')")
    found = session.when(query)
    assert found.types[-1] == kind
    assert [row[-1] for row in found.fetchall()] == answers


def test_columns_that_change_give_texts(session: dl.Session) -> None:
    filled(session, 1, 2)
    session.sql("ALTER TABLE t ADD COLUMN more INTEGER")
    assert lines(session, "SELECT * FROM t WHERE i = 1") == [
        (1, "{'i': 1, 'g': 1, 's': n1}"),
        (2, "{'i': 1, 'g': 1, 's': n1, 'more': NULL}"),
    ]


@pytest.mark.parametrize("options", [{}, {"monotonic": True}])
def test_statistics_prove_most_snapshots(session: dl.Session, runs: list[str], options: dict[str, Any]) -> None:
    filled(session)
    session.sql("UPDATE t SET g = 7 WHERE i = 95")
    runs.clear()
    assert lines(session, "SELECT sum(g) FROM t WHERE i BETWEEN 90 AND 110", **options) == [
        (1, None),
        (4, 21),
        (13, 26),
    ]
    assert asked(runs) == 3


def test_rows_prove_what_statistics_do_not(session: dl.Session, runs: list[str]) -> None:
    filled(session)
    session.sql("INSERT INTO t VALUES (1, 7, 'n1')")  # inlined
    session.sql("INSERT INTO t SELECT i, 2, 'n1' FROM range(1, 300) r(i)")
    session.sql("DELETE FROM t WHERE i = 200")
    session.sql("DELETE FROM t WHERE i = 1 AND g = 2")
    session.sql("DELETE FROM t WHERE i = 1 AND g = 7")
    runs.clear()
    # every file has texts below and above
    assert lines(session, "SELECT sum(g) FROM t WHERE s = 'n1' AND i = 1") == [
        (1, 1),
        (13, 8),
        (14, 10),
        (16, 8),
        (17, 1),
    ]
    assert asked(runs) == 5


def test_other_tables_and_maintenance_change_nothing(session: dl.Session, runs: list[str]) -> None:
    filled(session, 3)
    session.sql("INSERT INTO t VALUES (1000, 5, 'x'); DELETE FROM t WHERE i = 4")
    session.sql("CREATE TABLE other AS SELECT 1 AS x; INSERT INTO other VALUES (2); CREATE VIEW w AS FROM other")
    session.sql(
        "CALL lake.flush_inlined_data(); CALL lake.merge_adjacent_files(); CALL lake.rewrite_data_files(delete_threshold => 0)"
    )
    runs.clear()
    assert lines(session, "SELECT sum(g) FROM t", 3) == [(3, 90), (4, 95), (5, 94)]
    assert asked(runs) == 3


def test_views_and_macros_are_read_as_they_were(session: dl.Session) -> None:
    filled(session, 2)
    session.sql(
        """
        CREATE VIEW v AS SELECT count(*) AS n FROM t WHERE i < 45;
        CREATE MACRO scaled(x) AS x * 10;
        DELETE FROM t WHERE i = 44;
        DELETE FROM t WHERE i = 50;
        CREATE OR REPLACE VIEW v AS SELECT count(*) AS n FROM t WHERE i < 10;
        CREATE OR REPLACE MACRO scaled(x) AS x * 100;
        """
    )
    assert lines(session, "SELECT n FROM v") == [(3, 45), (5, 44), (7, 10)]
    assert lines(session, "SELECT scaled(n) FROM v") == [(4, 450), (5, 440), (7, 100), (8, 1000)]


def test_tables_that_come_and_go(session: dl.Session) -> None:
    filled(session, 1)
    session.sql(
        "DROP TABLE t; CREATE TABLE t AS SELECT 7::BIGINT AS i; ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t"
    )
    assert lines(session, "SELECT max(i) FROM t") == [(1, 29), (2, None), (3, 7), (4, None), (5, 7)]
    assert lines(session, "SELECT max(i) FROM t", 2) == [(2, None), (3, 7), (4, None), (5, 7)]
    assert lines(session, "SELECT max(g) FROM t") == [(1, 2), (2, None)]
    with pytest.raises(dl.DuckLakeError, match='no table "nothing"'):
        session.when("FROM nothing")
    with pytest.raises(dl.DuckLakeError, match='no column "nothing"'):
        session.when("SELECT nothing FROM t")


def test_what_no_table_proves_is_asked_everywhere(session: dl.Session, runs: list[str]) -> None:
    filled(session, 3)
    runs.clear()
    assert len(lines(session, "SELECT count(DISTINCT filename), sum(g) FROM t", 1)) == 3
    assert asked(runs) == 3
    assert lines(session, "SELECT sum(g) FROM t AT (VERSION => 2)") == [(0, 60)]


def test_ranges_tags_and_pins(session: dl.Session) -> None:
    filled(session, 6)
    session.tag("third", 3)
    every = [(n, 30 * n - 1) for n in range(1, 7)]
    assert lines(session, "SELECT max(i) FROM t", "third", 5) == every[2:5]
    session.pin(4)
    assert lines(session, "SELECT max(i) FROM t") == every[:4]
    session.pin(None)
    assert lines(session, "SELECT max(i) FROM t WHERE i < :most", params={"most": 45}) == [(1, 29), (2, 44)]
    session.sql("CALL lake.expire_snapshots(versions => [1, 2, 4])")
    assert lines(session, "SELECT max(i) FROM t") == [every[2], every[4], every[5]]
    with pytest.raises(dl.SnapshotNotFoundError, match="swap them"):
        session.when("FROM t", 5, 3)
    with pytest.raises(dl.SnapshotNotFoundError):
        session.when("FROM t", 2)


@pytest.mark.parametrize("query", ["SELECT random() FROM t", "SELECT now() FROM t", "SELECT nextval('s') FROM t"])
def test_answers_that_differ_by_run_are_refused(session: dl.Session, query: str) -> None:
    filled(session, 1)
    with pytest.raises(dl.DuckLakeError) as error:
        session.when(query)
    assert "\n" not in str(error.value)


def test_long_answers_are_refused(session: dl.Session) -> None:
    filled(session, 1, 10_001)
    with pytest.raises(dl.UsageError, match="more than 10,000 rows"):
        session.when("FROM t")


def test_uncommitted_changes_are_no_snapshot(session: dl.Session) -> None:
    filled(session, 2)
    with session.transaction():
        session.sql("DELETE FROM t")
        assert lines(session, "SELECT count(*) FROM t") == [(1, 30), (2, 60)]
