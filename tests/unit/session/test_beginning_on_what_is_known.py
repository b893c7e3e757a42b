"""Inserts that begin on what the process knows of a lake: whatever others did meanwhile counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.transaction import commit
from ducklake_lab.transaction.transaction import Transaction

pytestmark = pytest.mark.sampled(3)

Pair = tuple[dl.Session, dl.Session]


@pytest.fixture
def pair(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[Pair]:
    """Two sessions; the first knows the lake from its own commit."""
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as one, dl.connect(uri, alias="lake") as two:
        one.sql("CREATE TABLE t (i INTEGER)")
        one.sql("INSERT INTO t VALUES (1)")
        yield one, two


def facts(session: dl.Session) -> list[tuple[object, ...]]:
    """Statistics of t: its records, its next row id and the bounds of its columns."""
    return session.sql(
        "SELECT record_count, next_row_id, min_value, max_value FROM __ducklake_metadata_lake.ducklake_table_stats "
        "JOIN __ducklake_metadata_lake.ducklake_table_column_stats USING (table_id) ORDER BY column_id"
    ).fetchall()


def asked(session: dl.Session, text: str) -> int:
    """Count the queries that a statement sends to the catalog."""
    found: list[str] = []

    def before(_conn: object, _cursor: object, sent: str, *_: object) -> None:
        found.extend([sent] * sent.startswith("SELECT ducklake_"))

    sa.event.listen(sa.Engine, "before_cursor_execute", before)
    try:
        session.sql(text)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", before)
    return len(found)


def test_it_asks_once(pair: Pair) -> None:
    assert asked(pair[0], "INSERT INTO t VALUES (2)") <= 1
    assert facts(pair[0]) == [(2, 2, "1", "2")]


@pytest.mark.every_catalog
def test_rows_of_others_are_counted(pair: Pair) -> None:
    one, two = pair
    for i in range(3):
        one.sql(f"INSERT INTO t VALUES ({i})")
        two.sql(f"INSERT INTO t VALUES ({i * 10}), ({-i})")
    one.sql("INSERT INTO t VALUES (5)")
    assert facts(two) == [(11, 11, "-2", "20")]
    assert two.sql("SELECT count(*), count(DISTINCT rowid), max(rowid) FROM t").fetchall() == [(11, 11, 10)]
    assert one.current_snapshot().snapshot_id == 9


@pytest.mark.parametrize(
    ("theirs", "ours", "rows"),
    [
        ("ALTER TABLE t ADD COLUMN j INTEGER", "INSERT INTO t VALUES (2, 3)", [(1, None), (2, 3)]),
        ("ALTER TABLE t RENAME COLUMN i TO k", "INSERT INTO t (k) VALUES (2)", [(1,), (2,)]),
        ("ALTER TABLE t ALTER i SET DEFAULT 7", "INSERT INTO t VALUES (DEFAULT)", [(1,), (7,)]),
        ("ALTER TABLE t ALTER i TYPE BIGINT", "INSERT INTO t VALUES (3000000000)", [(1,), (3_000_000_000,)]),
        ("DROP TABLE t; CREATE TABLE t (a VARCHAR)", "INSERT INTO t VALUES ('x')", [("x",)]),
        ("ALTER TABLE t RENAME TO u; CREATE TABLE t (i INTEGER)", "INSERT INTO t VALUES (2)", [(2,)]),
    ],
)
def test_changed_entries_are_seen(pair: Pair, theirs: str, ours: str, rows: list[object]) -> None:
    one, two = pair
    two.sql(theirs)
    one.sql(ours)
    assert two.sql("FROM t ORDER BY 1").fetchall() == rows


def test_new_tables_are_seen_and_dropped_ones_are_not(pair: Pair) -> None:
    one, two = pair
    two.sql("CREATE SCHEMA s; CREATE TABLE s.u (i INTEGER)")
    one.sql("INSERT INTO s.u VALUES (1)")
    assert two.sql("FROM s.u").fetchall() == [(1,)]
    two.sql("DROP TABLE t")
    with pytest.raises(dl.EntryNotFoundError, match="There is no table"):
        one.sql("INSERT INTO t VALUES (2)")
    assert one.current_snapshot().snapshot_id == 6


@pytest.mark.slow
def test_a_constraint_counts_as_it_is_now(pair: Pair) -> None:
    one, two = pair
    two.sql("ALTER TABLE t ALTER i SET NOT NULL")
    with pytest.raises(dl.ConstraintError):
        one.sql("INSERT INTO t VALUES (NULL)")
    one.sql("INSERT INTO t VALUES (2)")
    two.sql("ALTER TABLE t ALTER i DROP NOT NULL")
    one.sql("INSERT INTO t VALUES (NULL)")
    assert two.sql("SELECT count(*), count(i) FROM t").fetchall() == [(3, 2)]


def test_changed_options_are_seen(pair: Pair, tmp_path: Path) -> None:
    one, two = pair
    two.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    one.sql("INSERT INTO t VALUES (2)")
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    two.sql("CALL lake.set_option('data_inlining_row_limit', 10)")
    one.sql("INSERT INTO t VALUES (3)")
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    two.sql("CALL lake.set_option('require_commit_message', true)")
    with pytest.raises(dl.TransactionError, match="requires a commit message"):
        one.sql("INSERT INTO t VALUES (4)")
    assert two.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,), (3,)]


@pytest.mark.slow
def test_an_appender_sees_what_others_changed(pair: Pair, tmp_path: Path) -> None:
    one, two = pair
    with one.appender("t", rows=2) as rows:
        rows.extend([(2,), (3,)])
        two.sql("INSERT INTO t VALUES (100)")
        rows.extend([(4,), (5,)])
        two.sql("ALTER TABLE t ADD COLUMN j INTEGER DEFAULT 7")
        two.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        rows.extend([{"i": 6}, {"i": 7}])
    assert rows.appended == 6
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert two.sql("SELECT count(*), sum(i), sum(j), count(DISTINCT rowid) FROM t").fetchall() == [(8, 128, 56, 8)]
    assert facts(two)[0] == (8, 8, "1", "100")


@pytest.mark.every_catalog
@pytest.mark.slow
def test_what_changes_between_its_beginning_and_its_commit_counts(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    begun: list[bool] = []
    settle = commit._try

    def interrupted(transaction: Transaction, *, queue: bool) -> object:
        begun.append(transaction.known is not None)
        if len(begun) == 1:
            two.sql("ALTER TABLE t ADD COLUMN j INTEGER DEFAULT 5")
        return settle(transaction, queue=queue)

    monkeypatch.setattr(commit, "_try", interrupted)
    one.sql("INSERT INTO t (i) VALUES (2)")
    monkeypatch.undo()
    assert begun[-1] is False
    assert two.sql("FROM t ORDER BY i").fetchall() == [(1, 5), (2, 5)]


def test_an_error_after_the_commit_does_not_repeat_it(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = pair

    def fails(_transaction: Transaction) -> None:
        raise dl.DataFileError("The files cannot be removed.")

    monkeypatch.setattr(Transaction, "committed", fails)
    with pytest.raises(dl.DataFileError, match="cannot be removed"):
        one.sql("INSERT INTO t VALUES (2)")
    monkeypatch.undo()
    assert one.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,)]
