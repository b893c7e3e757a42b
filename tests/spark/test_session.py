"""Statements on data files: what a session does with Spark."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.session.transactions import transactions
from ducklake_lab.spark import reader
from ducklake_lab.spark.runtime import is_connect
from ducklake_lab.transaction.commit import commit
from ducklake_lab.transaction.transaction import Transaction

pytestmark = pytest.mark.sampled(5)


@pytest.fixture
def session(new_catalog: Callable[..., str], tmp_path: Path, spark: Any) -> Iterator[dl.Session]:
    with dl.connect(new_catalog(), alias="lake", data_path=f"{tmp_path}/data", spark=spark, engine="spark") as session:
        session.sql(
            "CREATE TABLE t AS SELECT i::INTEGER AS i, 'n' || i AS s, i % 3 AS k, DATE '2020-01-01' + i::INTEGER AS day "
            "FROM range(100) AS r(i)"
        )
        yield session


def rows(session: dl.Session, sql: str) -> list[tuple[Any, ...]]:
    return session.sql(sql).fetchall()


def data_files(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "data").rglob("*") if path.is_file())


@pytest.mark.anywhere
def test_queries_over_files_and_inlined_rows(session: dl.Session) -> None:
    session.sql("INSERT INTO t VALUES (1000, NULL, 7, NULL)")
    assert rows(session, "SELECT k, count(*), min(i), max(s) FROM t GROUP BY ALL ORDER BY ALL") == [
        (0, 34, 0, "n99"),
        (1, 33, 1, "n97"),
        (2, 33, 2, "n98"),
        (7, 1, 1000, None),
    ]
    window = "SELECT i, row_number() OVER (PARTITION BY k ORDER BY i DESC) AS n FROM t QUALIFY n = 1 ORDER BY i"
    assert rows(session, window) == [(97, 1), (98, 1), (99, 1), (1000, 1)]
    # Spark's own optimizer fails on these over a union
    for condition, found in (("b.i < a.i", [(0, None), (1, 0), (99, 98), (1000, 99)]), ("b.i = a.i AND b.k = 0", None)):
        correlated = (
            f"SELECT i, (SELECT max(b.i) FROM t AS b WHERE {condition}) AS m FROM t AS a WHERE i IN (0, 1, 99, 1000)"
        )
        expected = found or [(0, 0), (1, None), (99, 99), (1000, None)]
        assert rows(session, f"SELECT i, m FROM ({correlated}) ORDER BY i") == expected
    joined = "WITH a AS (SELECT * FROM t WHERE i < 3) SELECT a.i, b.i FROM a JOIN t AS b ON a.i + 1 = b.i ORDER BY ALL"
    assert rows(session, joined) == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.anywhere
def test_few_rows_go_into_the_catalog_and_many_into_files(session: dl.Session, tmp_path: Path) -> None:
    before = data_files(tmp_path)
    assert rows(session, "INSERT INTO t SELECT * FROM t WHERE i < 10") == [(10,)]
    assert data_files(tmp_path) == before
    assert rows(session, "INSERT INTO t SELECT * FROM t WHERE i BETWEEN 10 AND 20") == [(11,)]
    assert len(data_files(tmp_path)) > len(before)
    assert [entry.kind for entry in session.snapshots()][-2:] == ["insert", "insert"]
    assert rows(session, "SELECT count(*), count(DISTINCT rowid) FROM t") == [(121, 121)]


@pytest.mark.anywhere
def test_small_and_large_deletes(session: dl.Session, tmp_path: Path) -> None:
    assert rows(session, "DELETE FROM t WHERE i < 5") == [(5,)]
    assert not [path for path in data_files(tmp_path) if "delete" in path.name]
    assert rows(session, "DELETE FROM t WHERE i < 40") == [(35,)]
    assert rows(session, "DELETE FROM t WHERE i < 60") == [(20,)]
    assert rows(session, "DELETE FROM t WHERE i < 60") == [(0,)]
    assert rows(session, "SELECT count(*), min(i) FROM t") == [(40, 60)]
    assert [rows(session, f"SELECT count(*) FROM t AT (VERSION => {n})")[0][0] for n in range(1, 5)] == [
        100,
        95,
        60,
        40,
    ]


@pytest.mark.anywhere
def test_updates_keep_row_ids(session: dl.Session) -> None:
    before = dict(rows(session, "SELECT rowid, i FROM t"))
    session.sql("UPDATE t SET s = 'big' WHERE i >= 50; UPDATE t SET s = 'one' WHERE i = 51")
    assert dict(rows(session, "SELECT rowid, i FROM t")) == before
    counts = "SELECT change_type, count(*) FROM lake.table_changes('t', 2, 3) GROUP BY ALL ORDER BY ALL"
    assert rows(session, counts) == [("update_postimage", 51), ("update_preimage", 51)]


@pytest.mark.anywhere
def test_statements_that_lose_run_again(
    session: dl.Session, new_catalog: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement, deleted, counted in (
        ("UPDATE t SET s = 'late' WHERE i < 40", 1, 39),
        ("DELETE FROM t WHERE i BETWEEN 50 AND 79", 51, 29),
        ("MERGE INTO t USING range(40, 45) AS r(i) ON t.i = r.i WHEN MATCHED THEN DELETE", 42, 4),
    ):

        def late(transaction: Transaction, deleted: int = deleted) -> object:
            monkeypatch.setattr(transactions, "commit", commit)
            with dl.connect(new_catalog(), alias="lake", engine="duckdb") as other:
                other.sql(f"DELETE FROM t WHERE i = {deleted}")
            return commit(transaction)

        monkeypatch.setattr(transactions, "commit", late)
        assert rows(session, statement) == [(counted,)], statement
    assert rows(session, "SELECT count(*), count(*) FILTER (s = 'late') FROM t") == [(64, 39)]
    assert rows(session, "FROM lake.delete_orphaned_files(dry_run => true, cleanup_all => true)") == []


@pytest.mark.anywhere
def test_a_transaction_over_files(session: dl.Session, tmp_path: Path) -> None:
    before = data_files(tmp_path)
    with session.transaction(message="all"):
        session.sql("INSERT INTO t SELECT i + 1000, s, k, day FROM t")
        session.sql("DELETE FROM t WHERE i BETWEEN 1000 AND 1049; UPDATE t SET s = 'x' WHERE i >= 1090")
        assert rows(session, "SELECT count(*), count(*) FILTER (s = 'x') FROM t") == [(150, 10)]
    assert rows(session, "SELECT count(*), count(*) FILTER (s = 'x') FROM t") == [(150, 10)]
    assert session.current_snapshot().snapshot_id == 2
    with pytest.raises(dl.BindError), session.transaction():
        session.sql("DELETE FROM t WHERE i < 50; INSERT INTO t SELECT i, s, k, day FROM t; SELECT nope FROM t")
    assert session.current_snapshot().snapshot_id == 2
    paths = {entry.path for entry in session.table("t").files()} | {
        entry.delete_path for entry in session.table("t").files() if entry.delete_path
    }
    assert {str(path) for path in data_files(tmp_path)} == paths | {str(path) for path in before}


@pytest.mark.anywhere
def test_a_failed_statement_leaves_nothing(session: dl.Session, tmp_path: Path) -> None:
    before = data_files(tmp_path)
    with pytest.raises(dl.DuckLakeError) as caught:
        session.sql(
            "INSERT INTO t SELECT i, s, k // (i - 77), day FROM t WHERE i // (i - 77) IS NOT NULL OR cast(s AS INT) > 0"
        )
    assert "\n" not in str(caught.value)
    assert data_files(tmp_path) == before
    assert session.current_snapshot().snapshot_id == 1


@pytest.mark.anywhere
def test_a_missing_data_file_is_named(session: dl.Session) -> None:
    victim = session.table("t").files()[0].path
    Path(victim).unlink()
    with pytest.raises(dl.DataFileError, match=Path(victim).name) as caught:
        session.sql("SELECT sum(i) FROM t").fetchall()
    assert "\n" not in str(caught.value)
    with pytest.raises(dl.DataFileError, match=Path(victim).name):
        session.table("t").arrow()
    with pytest.raises(dl.DataFileError, match=Path(victim).name):
        session.sql("DELETE FROM t WHERE i > 3")
    assert session.current_snapshot().snapshot_id == 1


def test_a_scan_is_made_once_for_the_same_files(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = reader.read

    def counted(spark: Any, plan: Any, **how: Any) -> Any:
        read.append(len(plan.files))
        return original(spark, plan, **how)

    monkeypatch.setattr(reader, "read", counted)
    total = "SELECT sum(i * k) FROM t"
    first = rows(session, total)
    assert rows(session, total) == rows(session, f"{total} WHERE i >= 0") == first and len(read) == 1
    session.sql("DELETE FROM t WHERE i >= 50")
    less = rows(session, total)
    assert less < first and len(read) == 2
    assert rows(session, f"{total} AT (VERSION => 1)") == first and len(read) == 2
    session.sql("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 2")
    assert rows(session, "SELECT sum(more * (i + 1) / (i + 1)) FROM t") == [(100.0,)] and len(read) == 3
    session.sql("INSERT INTO t VALUES (1000, 'x', 1, '2020-01-01', 3)")  # inlined rows are not kept
    assert rows(session, total) == rows(session, total) == [(less[0][0] + 1000,)] and len(read) == 5


@pytest.mark.anywhere
def test_results_of_the_same_table_are_apart(session: dl.Session) -> None:
    session.sql("DELETE FROM t WHERE i >= 50")
    low, high = (session.sql(f"SELECT * FROM t WHERE i {bound}").spark() for bound in ("< 30", ">= 20"))
    joined = low.join(high, low["i"] + 20 == high["i"]).select(low["i"], high["i"].alias("j"), high["s"])
    assert sorted(map(tuple, joined.collect())) == [(i, i + 20, f"n{i + 20}") for i in range(30)]
    one, other = session.table("t").spark(), session.table("t").spark()
    assert one.join(other, one["i"] + 1 == other["i"]).select(one["i"], other["s"]).count() == 49
    query = "SELECT count(*), sum(b.i - a.i) FROM t AS a JOIN t AS b ON a.i + 1 = b.i WHERE a.k < 2 AND b.s <> 'n7'"
    assert rows(session, query) == session.sql(query, engine="duckdb").fetchall()
    nested = "SELECT i, (SELECT max(b.i) FROM t AS b WHERE b.k = a.k) AS m FROM t AS a WHERE i IN (SELECT i * 2 FROM t) ORDER BY i"
    assert rows(session, nested) == session.sql(nested, engine="duckdb").fetchall()
    union = "SELECT sum(i) FROM (FROM t UNION ALL FROM t UNION ALL SELECT * FROM t AT (VERSION => 1))"
    assert rows(session, union) == [(2 * sum(range(50)) + sum(range(100)),)]


def test_a_file_that_goes_missing_after_a_query_is_named(session: dl.Session) -> None:
    rows(session, "SELECT sum(i) FROM t WHERE k = 1")
    victim = session.table("t").files()[0].path
    Path(victim).unlink()
    with pytest.raises(dl.DataFileError, match=Path(victim).name) as caught:
        rows(session, "SELECT sum(i) FROM t WHERE k = 1")
    assert "\n" not in str(caught.value)


@pytest.mark.anywhere
def test_partitions(session: dl.Session) -> None:
    session.sql("ALTER TABLE t SET PARTITIONED BY (k, month(day))")
    session.sql("INSERT INTO t SELECT i + 500, s, k, day FROM t")
    added = [entry for entry in session.table("t").files() if entry.partition]
    assert {entry.partition for entry in added} == {
        (("k", str(k)), ("month(day)", str(month))) for k in range(3) for month in range(1, 5)
    }
    assert "/k=0/month=1/" in next(entry.path for entry in added)
    result = session.sql("SELECT count(*) FROM t WHERE i >= 500 AND k = 2 AND day < DATE '2020-02-01'")
    assert result.fetchall() == [(10,)]
    assert result.info.files_read < result.info.files_total


@pytest.mark.anywhere
def test_writing_dataframes(session: dl.Session, spark: Any) -> None:
    session.write(pd.DataFrame({"S": ["p"], "I": [-1]}), "t")
    assert rows(session, "SELECT i, s, k FROM t WHERE i = -1") == [(-1, "p", None)]
    session.write(pa.table({"day": [date(2021, 1, 1)], "i": [-2]}), "main.t")
    frame = spark.range(20).selectExpr("id AS i", "'sp' AS s")
    assert session.write(frame, "t").fetchall() == [(20,)]
    assert rows(session, "SELECT count(*) FROM t") == [(122,)]
    session.write(frame, "fresh", mode="create")
    assert session.table("fresh").arrow().num_rows == 20
    session.write(frame.limit(3), "fresh", mode="overwrite")
    assert rows(session, "SELECT count(*) FROM fresh") == [(3,)]
    assert [len(session.table("fresh", at=n).arrow()) for n in (5, 6)] == [20, 3]
    with pytest.raises(dl.BindError, match="nope"):
        session.write(pa.table({"nope": [1]}), "t")
    with pytest.raises(dl.UsageError, match="Did you mean append"):
        session.write(frame, "t", mode="apend")  # type: ignore[arg-type]


@pytest.mark.anywhere
def test_results_are_lazy_and_computed_once(session: dl.Session) -> None:
    result = session.sql("SELECT i, s FROM t WHERE i < 20")
    assert (result.columns, result.types, result.in_process) == (["i", "s"], ["INTEGER", "VARCHAR"], False)
    assert result.head(3).num_rows == 3
    assert not result.in_process
    assert result.spark().where("i > 17").count() == 2
    assert result.arrow() is result.arrow()
    assert len(result.pandas()) == 20


@pytest.mark.anywhere
def test_unsigned_integers_are_integers_from_both_engines(session: dl.Session) -> None:
    session.sql("CREATE TABLE u AS SELECT i::UBIGINT AS b, i::UTINYINT AS t, [i::UBIGINT] AS l FROM range(100) r(i)")
    largest = 2**64 - 1
    session.sql(f"INSERT INTO u SELECT {largest}, 255, [{largest}, NULL] FROM range(20)")
    found = [session.sql("FROM u ORDER BY ALL", engine=engine) for engine in ("spark", "duckdb")]
    assert found[0].arrow().equals(found[1].arrow())
    assert found[0].fetchall()[-1] == (largest, 255, [largest, None])
    assert {type(row[0]) for row in found[0].fetchall()} == {int}


@pytest.mark.anywhere
def test_an_interrupt_cancels_the_jobs_and_the_session_goes_on(session: dl.Session, spark: Any) -> None:
    session.write(spark.range(40000), "many", mode="create")
    slow = "SELECT sum(sqrt(a.id * b.id)) FROM many AS a, many AS b"
    threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        session.sql(slow).fetchall()
    assert rows(session, "SELECT count(*) FROM t") == [(100,)]
    if not is_connect(spark):
        assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


@pytest.mark.anywhere
def test_progress_is_reported(session: dl.Session, spark: Any) -> None:
    session.write(spark.range(3000), "many", mode="create")
    seen: list[Any] = []
    session.on_progress = seen.append
    session.sql("SELECT sum(sqrt(a.id * b.id)) FROM many AS a, many AS b").fetchall()
    session.on_progress = None
    assert seen
    assert all(progress.tasks >= progress.tasks_done >= 0 and progress.stages > 0 for progress in seen)
