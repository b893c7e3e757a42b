"""MERGE INTO on rows in the catalog, in all of its forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from tests.merges import MERGES, TABLES, duckdb_rows

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as opened:
        opened.sql("CREATE TABLE t (i INTEGER, s VARCHAR, n INTEGER DEFAULT 7)")
        opened.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
        yield opened
        assert not opened.spark_started


def merged(session: dl.Session, text: str) -> list[tuple[Any, ...]]:
    """The count, then the table with its row ids."""
    count = session.sql(f"MERGE INTO t USING {text}").fetchone()
    assert count is not None
    return [count, *session.sql("SELECT rowid, i, s, n FROM t ORDER BY ALL").fetchall()]


def test_upsert_keeps_row_ids(session: dl.Session) -> None:
    changes = "(VALUES (1, 'x'), (9, 'z')) u(i, s) ON t.i = u.i"
    actions = "WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT (i, s) VALUES (u.i, u.s)"
    assert merged(session, f"{changes} {actions}") == [
        (2,),
        (0, 1, "x", 1),
        (1, 2, "b", 2),
        (2, 3, "c", 3),
        (3, 9, "z", 7),
    ]
    assert session.current_snapshot().snapshot_id == 3


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(SELECT 2 AS i) u USING (i) WHEN MATCHED THEN DELETE", [(0, 1, "a", 1), (2, 3, "c", 3)]),
        (
            "(SELECT 2 AS i, 'q' AS s, 5 AS n) u USING (i) WHEN MATCHED THEN UPDATE",
            [(0, 1, "a", 1), (1, 2, "q", 5), (2, 3, "c", 3)],
        ),
        (
            "(SELECT 'q' AS s, 2 AS i) u USING (i) WHEN MATCHED THEN UPDATE BY NAME",
            [(0, 1, "a", 1), (1, 2, "q", 2), (2, 3, "c", 3)],
        ),
        (
            "(SELECT 2 AS i) u USING (i) WHEN MATCHED THEN UPDATE SET (s, n) = ('k', DEFAULT)",
            [(0, 1, "a", 1), (1, 2, "k", 7), (2, 3, "c", 3)],
        ),
        (
            "(SELECT 2 AS i) u USING (i) WHEN MATCHED AND t.n > 5 THEN DELETE WHEN MATCHED THEN DO NOTHING "
            "WHEN NOT MATCHED BY SOURCE AND t.i = 3 THEN UPDATE SET s = 'gone' WHEN NOT MATCHED BY SOURCE THEN DELETE",
            [(1, 2, "b", 2), (2, 3, "gone", 3)],
        ),
        (
            "(SELECT 8 AS i) u USING (i) WHEN NOT MATCHED BY TARGET THEN INSERT DEFAULT VALUES",
            [(0, 1, "a", 1), (1, 2, "b", 2), (2, 3, "c", 3), (3, None, None, 7)],
        ),
        (
            "(SELECT 'q' AS s, 8 AS i) u USING (i) WHEN NOT MATCHED THEN INSERT BY NAME",
            [(0, 1, "a", 1), (1, 2, "b", 2), (2, 3, "c", 3), (3, 8, "q", 7)],
        ),
        (
            "t AS o ON t.i = o.i + 1 WHEN MATCHED THEN UPDATE SET s = t.s || o.s",
            [(0, 1, "a", 1), (1, 2, "ba", 2), (2, 3, "cb", 3)],
        ),
    ],
)
def test_forms(session: dl.Session, text: str, wanted: list[tuple[Any, ...]]) -> None:
    assert merged(session, text)[1:] == wanted


def test_a_query_before_it(session: dl.Session) -> None:
    session.sql("WITH w AS (SELECT 3 AS i) MERGE INTO t USING w USING (i) WHEN MATCHED THEN DELETE")
    assert session.sql("SELECT i FROM t ORDER BY i").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(
    ("text", "error", "named"),
    [
        ("(VALUES (1), (1)) u(i) USING (i) WHEN MATCHED THEN UPDATE SET n = 1", dl.ConstraintError, "several rows"),
        (
            "(VALUES (1, 1), (1, 2)) u(i, c) ON t.i = u.i WHEN MATCHED AND c = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 1",
            dl.ConstraintError,
            "several rows",
        ),
        ("(SELECT 1 AS i) u USING (i) WHEN MATCHED AND COLUMNS(*) IS NULL THEN DELETE", dl.BindError, "COLUMNS"),
        ("(SELECT 1 AS i) u USING (i) WHEN MATCHED THEN UPDATE SET n = COLUMNS(['n'])", dl.BindError, "COLUMNS"),
        ("(SELECT 1 AS i) u USING (i) WHEN MATCHED THEN ERROR 'no ' || t.s", dl.ConstraintError, "no a"),
        ("(SELECT 1 AS i) u USING (i) WHEN MATCHED THEN UPDATE SET x = 1", dl.BindError, '"x"'),
        ("(SELECT 5 AS i) u USING (i) WHEN NOT MATCHED THEN INSERT", dl.BindError, "needs 3 values"),
        ("(SELECT 1 AS i) u USING (i) WHEN MATCHED THEN INSERT", dl.SqlSyntaxError, "expected UPDATE"),
        (
            "(SELECT 1 AS i) u USING (i) WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET n = 1",
            dl.SqlSyntaxError,
            "only the last",
        ),
        ("(SELECT 1 AS i) u USING (i) WHEN MATCHED THEN DELETE RETURNING i", dl.UnsupportedFeatureError, "RETURNING"),
    ],
)
def test_errors_change_nothing(session: dl.Session, text: str, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        session.sql(f"MERGE INTO t USING {text}")
    assert session.current_snapshot().snapshot_id == 2


def test_a_wrong_name_leaves_the_transaction_open(session: dl.Session) -> None:
    session.sql("BEGIN; DELETE FROM t WHERE i = 1")
    with pytest.raises(dl.BindError):
        session.sql("UPDATE t SET nope = 1")
    session.sql("COMMIT")
    assert session.sql("SELECT count(*) FROM t").fetchone() == (2,)


def test_a_condition_that_differs_by_evaluation_is_asked_once_a_row(session: dl.Session) -> None:
    session.sql("CREATE OR REPLACE TABLE t AS SELECT range AS id, range AS v FROM range(400)")
    session.sql(
        "MERGE INTO t USING (SELECT range AS id FROM range(800)) s USING (id) "
        "WHEN MATCHED AND random() < 0.3 THEN UPDATE SET v = -1 "
        "WHEN MATCHED AND random() < 0.3 THEN DELETE "
        "WHEN NOT MATCHED AND random() < 0.5 THEN INSERT VALUES (id, -2)"
    )
    rows = session.sql("SELECT id, v FROM t ORDER BY id").fetchall()
    assert all(v in ((key, -1) if key < 400 else (-2,)) for key, v in rows)
    assert len({key for key, _ in rows}) == len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("merge", MERGES)
def test_rows_are_those_of_duckdb(session: dl.Session, merge: str) -> None:
    count = session.sql(f"{TABLES}; MERGE INTO t {merge}").fetchall()
    assert count + session.sql("SELECT * FROM t ORDER BY ALL").fetchall() == duckdb_rows(merge)
