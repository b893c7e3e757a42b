"""Live tables: created, refreshed by keys or as a whole, explained and dropped; each class of queries is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from tests.live import QUERIES, SOURCES, differing

#: Changes of the sources, each of which all live tables are refreshed after.
CHANGES = {
    "inserts": "INSERT INTO t VALUES (100, 2, 5.5, 'n1', '2024-01-02', 0.5), (NULL, NULL, 99, NULL, NULL, 'nan'); "
    "INSERT INTO u VALUES (2, 'two', 7)",
    "deletes": "DELETE FROM t WHERE g = 3 AND k < 20; DELETE FROM u WHERE k IN (1, 9) OR k IS NULL",
    "updates": "UPDATE t SET g = 1, v = v + 1 WHERE k % 7 = 2; UPDATE u SET name = 'u0', k = k + 1 WHERE w > 8",
    "one source": "DELETE FROM t WHERE k = 5 OR v IS NULL",
    "the other": "UPDATE u SET w = NULL WHERE k = 2; INSERT INTO u VALUES (NULL, NULL, NULL), (77, 'u1', 1)",
    "maintenance": "INSERT INTO t VALUES (7, 7, 7, 'n2', '2024-01-07', 7); CALL lake.flush_inlined_data(); "
    "CALL lake.merge_adjacent_files(); DELETE FROM t WHERE k = 11",
    "back and forth": "DELETE FROM t WHERE k = 7; INSERT INTO t VALUES (7, 7, 7, 'n2', '2024-01-07', 7)",
}


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as opened:
        yield opened


def test_each_class_of_queries_is_refreshed_by_keys(session: dl.Session) -> None:
    session.sql(SOURCES)
    tables = {name: f"live {name}" for name in QUERIES}
    for name, table in tables.items():
        session.sql(f'CREATE LIVE TABLE "{table}" AS {QUERIES[name]}')
        assert differing(session, table, QUERIES[name], session.current_snapshot().snapshot_id) == [], name
    incremental: dict[str, int] = {}
    for change, statements in CHANGES.items():
        session.sql(statements)
        for name, table in tables.items():
            done = session.refresh(f'"{table}"')
            assert differing(session, table, QUERIES[name], done.snapshot) == [], (name, change)
            assert done.mode != "full", (name, change, done.reason)
            incremental[name] = incremental.get(name, 0) + (done.mode == "incremental")
    assert {name for name, count in incremental.items() if count < 4} == set()
    before = session.current_snapshot().snapshot_id
    assert {done.mode for done in session.refresh_all()} == {"nothing"}
    assert session.current_snapshot().snapshot_id == before


def test_rows_that_stay_keep_their_ids(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS k, i % 4 AS g FROM range(20) r(i)")
    session.sql("CREATE LIVE TABLE daily AS SELECT g, count(*) AS n FROM t GROUP BY g")
    before = dict(session.sql("SELECT g, rowid FROM daily").fetchall())
    session.sql("DELETE FROM t WHERE k = 5; UPDATE t SET k = 100 WHERE g = 2 AND k = 2")
    done = session.refresh("daily")
    assert (done.mode, done.rows_read, done.rows_changed) == ("incremental", 3, 2)
    after = dict(session.sql("SELECT g, rowid FROM daily").fetchall())
    assert {g for g in before if before[g] == after[g]} == {0, 2, 3}
    changes = session.sql(
        f"SELECT g, n, change_type FROM lake.table_changes('daily', {done.snapshot + 1}, {done.snapshot + 1}) ORDER BY ALL"
    ).fetchall()
    assert changes == [(1, 4, "insert"), (1, 5, "delete")]


def test_where_no_row_of_the_result_changes_the_definition_alone_moves_on(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS k FROM range(3) r(i)")
    session.sql("CREATE LIVE TABLE small AS SELECT k FROM t WHERE k < 10")
    session.sql("INSERT INTO t VALUES (50)")
    done = session.refresh("small")
    assert (done.mode, done.rows_changed) == ("incremental", 0)
    assert session.refresh("small").mode == "nothing"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT k, now() AS at FROM t", "its query gives other rows each time"),
        ("SELECT k, random() AS r FROM t", "its query gives other rows each time"),
        ("SELECT k FROM t ORDER BY k LIMIT 3", "LIMIT over the whole result"),
        ("SELECT k FROM (SELECT k FROM t ORDER BY k LIMIT 3) AS b", "LIMIT over the whole result"),
        ("SELECT k FROM (SELECT k FROM t ORDER BY k OFFSET 3) AS b", "LIMIT over the whole result"),
        ("(SELECT k FROM t ORDER BY k LIMIT 3) UNION ALL SELECT g FROM t", "LIMIT over the whole result"),
        ("SELECT k FROM (SELECT DISTINCT ON (g) g, k FROM t ORDER BY g, v % 2)", "leaves the choice among rows open"),
        ("SELECT k, count(*) AS n FROM (SELECT k FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY v % 2) = 1) GROUP BY k", "leaves the place of rows open"),
        ("SELECT p FROM (SELECT lag(k) OVER w AS p FROM t WINDOW w AS (PARTITION BY g ORDER BY v % 2)) AS b", "leaves the place of rows open"),
        ("SELECT n FROM (SELECT sum(k) OVER (PARTITION BY g ORDER BY v % 2 ROWS 1 PRECEDING) AS n FROM t) AS b", "leaves the place of rows open"),
        ("SELECT b.k FROM t JOIN (SELECT g, k FROM u QUALIFY row_number() OVER (PARTITION BY g ORDER BY k % 2) = 1) AS b USING (g)", "leaves the place of rows open"),
        ("SELECT t.s, b.k FROM t JOIN (SELECT g, k FROM u QUALIFY row_number() OVER (PARTITION BY g ORDER BY k % 2) = 1) AS b USING (g)", "leaves the place of rows open"),
        ("SELECT t.s, b.v FROM t JOIN (SELECT DISTINCT ON (g) g, v FROM t ORDER BY g, v % 2) AS b ON b.g = t.g", "leaves the choice among rows open"),
        ("SELECT n, count(*) AS c FROM (SELECT count(*) AS n FROM t GROUP BY g HAVING sum(v / 3) > 1) GROUP BY n", "last digits may differ"),
        ("SELECT g, first(k) AS k FROM t GROUP BY g", "first without ORDER BY, which"),
        ("SELECT g, list(k) AS ks FROM t GROUP BY g", "list without ORDER BY"),
        ("SELECT g, arg_max(k, v) AS k FROM t GROUP BY g", "arg_max, which chooses"),
        ("SELECT count(*) AS n, sum(v) AS v FROM t", "no column that says"),
        ("SELECT g, k, grouping(g) AS x FROM t GROUP BY ROLLUP (g, k)", "GROUPING SETS"),
        ("WITH RECURSIVE r AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM r WHERE k < 5) SELECT t.k FROM t JOIN r ON t.k = r.k", "RECURSIVE"),
        ("SELECT k FROM t WHERE k IN (SELECT max(k) FROM t)", "a subquery in an expression"),
        ("SELECT k, unnest([1, 2]) AS n FROM t", "several rows"),
        ("SELECT t.k FROM t JOIN range(5) r(i) ON t.k = r.i", "which is no table of the lake"),
        ("SELECT s COLLATE NOCASE AS s, count(*) AS n FROM t GROUP BY 1", "COLLATE"),
        ("SELECT k FROM t AT (VERSION => 1)", "of which no changes are known"),
    ],
)  # fmt: skip
def test_what_is_not_proven_is_recomputed_and_said_before(query: str, reason: str, session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS k, i % 3 AS g, i * 1.5 AS v, 's' || i AS s FROM range(10) r(i)")
    session.sql("CREATE TABLE u AS SELECT k, g FROM t WHERE k < 3")
    session.sql(f"CREATE LIVE TABLE x AS {query}")
    session.sql("INSERT INTO t VALUES (100, 1, 0.5, 'S1')")
    before = session.current_snapshot().snapshot_id
    explained = session.sql("EXPLAIN REFRESH x").fetchall()
    assert session.current_snapshot().snapshot_id == before
    assert explained[0][1] == "full"
    assert reason in explained[0][2]
    done = session.refresh("x")
    assert (done.mode, done.reason) == ("full", explained[0][2])
    if not any(word in query for word in ("random", "now", "v % 2")):
        assert differing(session, "x", query, done.snapshot) == []


@pytest.mark.parametrize(
    ("inner", "possible"),
    [
        (
            "SELECT s FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY v) = 1",
            [[("a", 1), ("z", 1)], [("b", 1), ("z", 1)]],
        ),
        ("SELECT lag(s) OVER (PARTITION BY g ORDER BY v) AS s FROM t", [[("a", 1), ("b", 1), (None, 2)]]),
    ],
)
def test_a_tie_that_is_decided_otherwise_leaves_no_row_behind(
    inner: str, possible: list[list[tuple[str | None, int]]], session: dl.Session
) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    session.sql("CREATE TABLE t (g INTEGER, v INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 5, 'a')")
    session.sql(
        "INSERT INTO t VALUES (2, 7, 'z'); ALTER TABLE t ADD COLUMN x INTEGER; INSERT INTO t VALUES (1, 5, 'b', 1)"
    )
    query = f"SELECT s, count(*) AS n FROM ({inner}) GROUP BY s"
    session.sql(f"CREATE LIVE TABLE live AS {query}")
    session.sql("CALL lake.merge_adjacent_files()")  # reads of the earlier snapshot come in another order
    session.sql("INSERT INTO t VALUES (1, 9, 'c', 1)")
    session.refresh("live")
    assert session.sql("FROM live ORDER BY s NULLS LAST").fetchall() in possible


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT g, k FROM (SELECT g, k, row_number() OVER (PARTITION BY g ORDER BY v % 2) AS n FROM t) WHERE n = 1", "g"),
        ("SELECT b.g, t.k, b.k AS o FROM t JOIN (SELECT DISTINCT ON (g) g, k FROM t ORDER BY g, v % 2) AS b ON b.g = t.g", "g"),
        ("SELECT b.g, t.k FROM t JOIN (SELECT g, rank() OVER (PARTITION BY g ORDER BY v % 2) AS n FROM t) AS b ON b.g = t.g", "g, k"),
    ],
)  # fmt: skip
def test_rows_of_one_open_choice_are_replaced_together(query: str, keys: str, session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS k, i % 3 AS g, i * 1.5 AS v FROM range(10) r(i)")
    session.sql(f"CREATE LIVE TABLE live AS {query}; INSERT INTO t VALUES (100, 1, 0.5)")
    assert session.sql("EXPLAIN REFRESH live").fetchall()[0][1:3] == ("incremental", f"rows are replaced by {keys}")
    session.refresh("live")
    assert (
        session.sql("SELECT count(*) FROM live").fetchall() == session.sql(f"SELECT count(*) FROM ({query})").fetchall()
    )


@pytest.mark.parametrize(
    ("query", "change"),
    [
        ("SELECT i, count(*) AS n FROM t GROUP BY i", "DELETE FROM t WHERE k = 1"),
        ("SELECT f, count(*) AS n FROM t GROUP BY f", "DELETE FROM t WHERE k = 1"),
        ("SELECT [f] AS f, count(*) AS n FROM t GROUP BY 1", "DELETE FROM t WHERE k = 1"),
        ("SELECT g, count(*) AS n, TRY_CAST(sum(b) AS BIGINT) AS b FROM t GROUP BY g", "DELETE FROM t WHERE k = 1"),
        ("SELECT g, count(*) AS n, count(b) AS c, TRY_CAST(sum(b) AS BIGINT) AS b FROM t GROUP BY g", "INSERT INTO t (g, b) VALUES (1, 7)"),
        ("SELECT n FROM (SELECT g, sum(b) AS n FROM t AS affected GROUP BY g) AS affected", "DELETE FROM t WHERE k = 1"),
        ("SELECT g, max(b) AS b FROM t AS __ducklake_keys GROUP BY g", "DELETE FROM t WHERE k = 1"),
    ],
)  # fmt: skip
def test_values_that_are_equal_or_null_are_those_of_the_query(query: str, change: str, session: dl.Session) -> None:
    session.sql("CREATE TABLE t (k INTEGER, g INTEGER, i INTERVAL, f DOUBLE, b BIGINT)")
    session.sql(f"INSERT INTO t VALUES (1, 1, '30 days', 0, 5), (2, 1, '1 month', '-0.0', {2**63 - 1})")
    session.sql(f"CREATE LIVE TABLE live AS {query}")
    session.sql(change)
    assert differing(session, "live", query, session.refresh("live").snapshot) == []


def test_a_variant_of_another_type_and_one_text_is_a_change(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (k INTEGER, v VARIANT); INSERT INTO t VALUES (1, 1::VARIANT)")
    session.sql("CREATE LIVE TABLE live AS SELECT k, v FROM t")
    session.sql("UPDATE t SET v = '1'::VARIANT")
    session.refresh("live")
    assert session.sql("SELECT variant_typeof(v) FROM live").fetchall() == [("VARCHAR",)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("ALTER TABLE t ADD COLUMN extra INTEGER DEFAULT 7", "the columns of main.t have changed"),
        ("ALTER TABLE t RENAME COLUMN unused TO other", "the columns of main.t have changed"),
        ("CREATE OR REPLACE TABLE t AS SELECT i AS k, 1 AS g, 2 AS unused FROM range(4) r(i)", "main.t is another table"),
        ("CREATE OR REPLACE VIEW seen AS SELECT * FROM t WHERE k > 5", "the view main.seen has changed"),
        ("INSERT INTO t (k) VALUES (1); CALL lake.expire_snapshots(versions => [2])", "have expired"),
        ("SET TimeZone = 'Asia/Tokyo'", "the setting TimeZone is Asia/Tokyo"),
    ],
)  # fmt: skip
def test_what_happened_to_a_source_is_said(change: str, reason: str, session: dl.Session) -> None:
    session.sql("SET TimeZone = 'UTC'; CREATE TABLE t AS SELECT i AS k, i % 3 AS g, 0 AS unused FROM range(10) r(i)")
    session.sql("CREATE VIEW seen AS SELECT * FROM t WHERE k > 2")
    query = "SELECT g, count(*) AS n FROM seen GROUP BY g"
    session.sql(f"CREATE LIVE TABLE x AS {query}")
    session.sql(change)
    done = session.refresh("x")
    assert done.mode == "full"
    assert reason in done.reason
    assert differing(session, "x", query, done.snapshot) == []
    assert session.refresh("x").mode == "nothing"


def test_a_changed_star_changes_the_columns_in_one_commit(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT 1 AS k; CREATE LIVE TABLE x AS SELECT * FROM t")
    session.sql("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 3")
    before = session.current_snapshot().snapshot_id
    assert session.refresh("x").mode == "full"
    assert session.current_snapshot().snapshot_id == before + 1
    assert session.sql("FROM x").fetchall() == [(1, 3)]
    session.sql("INSERT INTO t VALUES (2, 4)")
    assert session.refresh("x").mode == "incremental"
    assert session.sql("FROM x ORDER BY ALL").fetchall() == [(1, 3), (2, 4)]


def test_columns_that_stay_keep_what_is_declared_for_them(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT 1 AS k, 2 AS g, 'a' AS s; CREATE TABLE other (k INTEGER)")
    session.sql("CREATE LIVE TABLE x AS SELECT * FROM t")
    session.sql(
        "ALTER TABLE x SET PARTITIONED BY (g); ALTER TABLE x SET SORTED BY (k); COMMENT ON COLUMN x.s IS 'text'"
    )
    session.sql("ALTER TABLE x EXPECT positive CHECK (k > 0); ALTER TABLE other EXPECT known (k) REFERENCES x(k)")
    session.sql(
        "ALTER TABLE t ADD COLUMN c STRUCT(a INTEGER); ALTER TABLE t DROP COLUMN g; ALTER TABLE t ADD COLUMN g DATE"
    )
    session.sql("INSERT INTO other VALUES (1); INSERT INTO t VALUES (2, 'b', {'a': 1}, '2024-01-01')")
    assert session.refresh("x").mode == "full"
    assert session.sql("FROM x ORDER BY ALL").fetchall() == [(1, "a", None, None), (2, "b", {"a": 1}, date(2024, 1, 1))]
    assert list(session.sql("FROM x").columns) == ["k", "s", "c", "g"]
    assert session.sql(
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'x' AND column_name = 's'"
    ).fetchall() == [("text",)]
    with pytest.raises(dl.ExpectationError):
        session.sql("INSERT INTO t (k) VALUES (-1); REFRESH x")
    session.sql("UPDATE t SET k = 3 WHERE k = 2; DELETE FROM t WHERE k = -1")
    assert session.refresh("x").mode == "incremental"
    with pytest.raises(dl.ExpectationError):
        session.sql("DELETE FROM t WHERE k = 1; REFRESH x")


def test_create_or_replace_recomputes_in_one_commit(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE t AS SELECT i AS k FROM range(5) r(i); CREATE LIVE TABLE x AS SELECT k FROM t WHERE k < 2"
    )
    with pytest.raises(dl.DuckLakeError, match=r"There is a table main.x already"):
        session.sql("CREATE LIVE TABLE x AS SELECT k FROM t")
    session.sql("CREATE LIVE TABLE IF NOT EXISTS x AS SELECT k FROM t")
    assert session.sql("SELECT count(*) FROM x").fetchall() == [(2,)]
    before = session.current_snapshot().snapshot_id
    session.sql("CREATE OR REPLACE LIVE TABLE x AS SELECT k + :n AS k FROM t", {"n": 10})
    assert session.current_snapshot().snapshot_id == before + 1
    session.sql("INSERT INTO t VALUES (9)")
    assert session.refresh("x").mode == "incremental"
    assert session.sql("SELECT list(k ORDER BY k) FROM x").fetchall() == [([10, 11, 12, 13, 14, 19],)]
    with pytest.raises(dl.UsageError, match="would read itself"):
        session.sql("CREATE OR REPLACE LIVE TABLE x AS SELECT k FROM x")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO x VALUES (1)",
        "INSERT INTO x SELECT k FROM t",
        "UPDATE x SET k = 1",
        "DELETE FROM x",
        "TRUNCATE x",
        "MERGE INTO x USING t ON x.k = t.k WHEN MATCHED THEN DELETE",
        "ALTER TABLE x ADD COLUMN c INTEGER",
        "ALTER TABLE x DROP COLUMN k",
        "DROP TABLE x",
        "CREATE OR REPLACE TABLE x AS SELECT 1 AS k",
    ],
)
def test_only_its_query_changes_its_rows(statement: str, session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS k FROM range(5) r(i); CREATE LIVE TABLE x AS SELECT k FROM t")
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.UsageError, match=r"main.x is a live table, and") as error:
        session.sql(statement)
    assert "\n" not in str(error.value)
    assert session.current_snapshot().snapshot_id == before


def test_the_program_writes_no_rows_into_it(session: dl.Session) -> None:
    import pyarrow as pa

    session.sql("CREATE TABLE t AS SELECT 1 AS k; CREATE LIVE TABLE x AS SELECT k FROM t")
    rows = pa.table({"k": pa.array([1], pa.int32())})
    with pytest.raises(dl.UsageError, match="is a live table"):
        session.write(rows, "x")
    with pytest.raises(dl.UsageError, match="is a live table"):
        session.appender("x")
    assert session.refresh("x").mode == "nothing"


def test_names_that_are_no_live_tables(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT 1 AS k; CREATE LIVE TABLE x AS SELECT k FROM t")
    for statement in ("REFRESH t", "EXPLAIN REFRESH t", "DROP LIVE TABLE t"):
        with pytest.raises(dl.UsageError, match=r"main.t is no live table"):
            session.sql(statement)
    with pytest.raises(dl.EntryNotFoundError, match=r"xx.*Did you mean"):
        session.sql("REFRESH xx")
    session.sql("DROP LIVE TABLE IF EXISTS gone; DROP LIVE TABLE x")
    assert session.live().fetchall() == []
    with pytest.raises(dl.EntryExistsError, match="is no live table, and is not replaced"):
        session.sql("CREATE OR REPLACE LIVE TABLE t AS SELECT 2 AS k")


def test_a_transaction_is_left_first(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT 1 AS k; CREATE LIVE TABLE x AS SELECT k FROM t; BEGIN")
    for statement in ("REFRESH x", "REFRESH ALL", "CREATE LIVE TABLE y AS SELECT k FROM t"):
        with pytest.raises(dl.TransactionError, match="COMMIT or ROLLBACK the open transaction first"):
            session.sql(statement)
    session.sql("ROLLBACK")


def test_what_other_sessions_lack_is_refused(session: dl.Session) -> None:
    import pandas as pd

    session.sql("CREATE TABLE t AS SELECT 1 AS k")
    with pytest.raises(dl.UnsupportedFeatureError, match="which other sessions do not have"):
        session.sql("CREATE LIVE TABLE x AS SELECT * FROM frame", frame=pd.DataFrame({"a": [1]}))


def test_live_tables_over_live_tables_are_refreshed_in_order(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS k, i % 3 AS g FROM range(9) r(i)")
    session.sql("CREATE LIVE TABLE a_last AS SELECT 0 AS g, 0::BIGINT AS n FROM t")
    session.sql("CREATE LIVE TABLE b AS SELECT g, count(*) AS n FROM t GROUP BY g")
    session.sql("CREATE OR REPLACE LIVE TABLE a_last AS SELECT n, count(*) AS times FROM b GROUP BY n")
    session.sql("INSERT INTO t VALUES (20, 0)")
    assert [row[:2] for row in session.sql("REFRESH ALL").fetchall()] == [
        ("main.b", "incremental"),
        ("main.a_last", "incremental"),
    ]
    assert session.sql("FROM a_last ORDER BY ALL").fetchall() == [(3, 2), (4, 1)]
    listed = session.live().fetchall()
    assert [(row[0], row[3], row[4]) for row in listed] == [("main.b", 0, "main.t"), ("main.a_last", 0, "main.b")]


def test_a_replaced_live_table_is_refreshed_before_those_that_read_it(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS k FROM range(9) r(i)")
    session.sql(
        "CREATE LIVE TABLE z AS SELECT k FROM t; CREATE LIVE TABLE a AS SELECT k % 2 AS odd, count(*) AS n FROM z GROUP BY ALL"
    )
    session.sql("CREATE OR REPLACE LIVE TABLE z AS SELECT k FROM t WHERE k > 3; INSERT INTO t VALUES (20)")
    assert [done.table for done in session.refresh_all()] == ["main.z", "main.a"]
    assert session.sql("FROM a ORDER BY ALL").fetchall() == [(0, 4), (1, 2)]


def test_one_that_fails_leaves_none_of_the_others_behind(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE t AS SELECT 1 AS k; CREATE TABLE gone AS SELECT 1 AS k; CREATE TABLE lost AS SELECT 1 AS k"
    )
    session.sql("CREATE LIVE TABLE a AS SELECT k FROM gone; CREATE LIVE TABLE b AS SELECT k FROM t")
    session.sql("CREATE LIVE TABLE c AS SELECT a.k, t.k AS l FROM a, t; CREATE LIVE TABLE d AS SELECT k FROM lost")
    session.sql("DROP TABLE gone; ALTER TABLE lost RENAME COLUMN k TO l; INSERT INTO t VALUES (2)")
    with pytest.raises(
        dl.RefreshError, match=r"^2 of 4 live tables .*; the other 2 are\. main\.a: .* main\.d: "
    ) as raised:
        session.refresh_all()
    assert list(raised.value.failed) == ["main.a", "main.d"]
    assert [(done.table, done.mode) for done in raised.value.done] == [
        ("main.b", "incremental"),
        ("main.c", "incremental"),
    ]
    assert session.sql("FROM b ORDER BY k").fetchall() == [(1,), (2,)]
    assert session.sql("FROM c ORDER BY l").fetchall() == [(1, 1), (1, 2)]
    with pytest.raises(dl.RefreshError, match=r"main\.a: .* main\.d: "):
        session.sql("REFRESH ALL")
    session.sql("DROP LIVE TABLE a; DROP LIVE TABLE c; DROP LIVE TABLE d")
    assert [done.mode for done in session.refresh_all()] == ["nothing"]


def test_names_are_looked_up_where_it_was_made(session: dl.Session, lake_uri: Callable[..., str]) -> None:
    session.sql('CREATE SCHEMA "s 1"; USE "s 1"; CREATE TABLE "t "" x" AS SELECT 1 AS "a ""b", 2 AS "A; --"')
    session.sql(
        'CREATE LIVE TABLE lake."s 1"."l "" x" AS SELECT "a ""b", sum("A; --") AS "n\'" FROM "t "" x" GROUP BY ALL'
    )
    session.sql('INSERT INTO lake."s 1"."t "" x" VALUES (1, 5), (2, 6); USE lake.main')
    assert session.refresh('"s 1"."l "" x"').mode == "incremental"
    assert session.sql('FROM "s 1"."l "" x" ORDER BY ALL').fetchall() == [(1, 7), (2, 6)]


def test_another_alias_reads_the_same_lake(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="one", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS k; CREATE VIEW w AS SELECT * FROM one.main.t")
        session.sql("CREATE LIVE TABLE x AS SELECT k FROM one.main.t UNION ALL SELECT k FROM w")
    with dl.connect(uri, alias="two", engine="duckdb") as session:
        session.sql("INSERT INTO t VALUES (2)")
        assert session.refresh("x").mode == "incremental"
        assert session.sql("SELECT list(k ORDER BY k) FROM x").fetchall() == [([1, 1, 2, 2],)]


def test_two_refreshers_at_once_change_its_rows_once(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    uri = lake_uri()
    query = "SELECT g, count(*) AS n, list(k ORDER BY k) AS ks FROM t GROUP BY g"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i AS k, i % 3 AS g FROM range(9) r(i)")
        session.sql(f"CREATE LIVE TABLE x AS {query}")
        session.sql("INSERT INTO t VALUES (20, 0), (21, 1)")

    def refresh(number: int) -> str:
        with dl.connect(uri, alias="lake", engine="duckdb") as other:
            if number % 2:
                other.sql(f"INSERT INTO t VALUES ({100 + number}, {number % 3})")
            return other.refresh("x").mode

    with ThreadPoolExecutor(4) as pool:
        modes = list(pool.map(refresh, range(4)))
    assert set(modes) <= {"incremental", "nothing"}
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        done = session.refresh("x")
        assert done.mode in ("incremental", "nothing")
        assert differing(session, "x", query, done.snapshot) == []


def test_a_refresh_that_lost_runs_again(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS k; CREATE LIVE TABLE x AS SELECT k, count(*) AS n FROM t GROUP BY k")
        session.sql("INSERT INTO t VALUES (2)")
        staging = session._statements.live._staging
        staged, runs = staging.changed, []

        def beaten(*arguments: Any) -> Any:
            found = staged(*arguments)
            runs.append(found)
            if len(runs) == 1:
                session._lakes.release()
                with dl.connect(uri, alias="lake", engine="duckdb") as other:
                    assert other.refresh("x").rows_changed == 1
            return found

        staging.changed = beaten  # type: ignore[method-assign]
        done = session.refresh("x")
        assert (done.mode, len(runs)) == ("nothing", 1)
        assert session.sql("FROM x ORDER BY k").fetchall() == [(1, 1), (2, 1)]
