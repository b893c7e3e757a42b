"""Expectations of tables: what they refuse, leave out, set aside and warn of, for every door rows come by."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.model.expectations import PREFIX

Refusal = dl.ExpectationError


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as made:
        made.sql("CREATE TABLE t (id INTEGER, v INTEGER, s VARCHAR)")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dl.ExpectationWarning)
            yield made


def _rows(session: dl.Session, table: str = "t") -> list[tuple[object, ...]]:
    return sorted(session.sql(f"SELECT id, v FROM {table}").fetchall(), key=str)


def _snapshot(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


def test_a_violation_refuses_the_commit_and_shows_counts_and_rows(session: dl.Session):
    session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0)")
    before = _snapshot(session)
    with pytest.raises(
        Refusal,
        match=r"^2 rows violate positive of main.t, CHECK \(v > 0\): \(id = 1, v = -1, s = a\); .*Nothing was written",
    ) as caught:
        session.sql("INSERT INTO t VALUES (1, -1, 'a'), (2, 2, 'b'), (3, 0, 'c'), (4, NULL, 'd')")
    (outcome,) = caught.value.outcomes
    assert outcome.count == 2 and outcome.rows.column("id").to_pylist() == [1, 3]
    assert _snapshot(session) == before and _rows(session) == []
    session.sql("INSERT INTO t VALUES (2, 2, 'b'), (4, NULL, 'd')")  # unknown passes, as in SQL
    with pytest.raises(Refusal):
        session.sql("UPDATE t SET v = -v WHERE id = 2")
    with pytest.raises(Refusal):
        session.sql(
            "MERGE INTO t USING (SELECT 2 AS id, -5 AS v) AS u ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = u.v"
        )
    assert _rows(session) == [(2, 2), (4, None)]


def test_definitions_are_checked(session: dl.Session):
    session.sql("ALTER TABLE t EXPECT one CHECK (v > 0)")
    for statement, error in {
        "ALTER TABLE t EXPECT One CHECK (v > 1)": dl.EntryExistsError,
        "ALTER TABLE t EXPECT two CHECK (w > 1)": dl.BindError,
        "ALTER TABLE t EXPECT two CHECK (v + 1)": dl.BindError,
        "ALTER TABLE t EXPECT two CHECK (no_such(v))": dl.SqlError,
        "ALTER TABLE t EXPECT two CHECK (v > (SELECT max(v) FROM t))": dl.UnsupportedFeatureError,
        "ALTER TABLE t EXPECT two CHECK (random() < v)": dl.UnsupportedFeatureError,
        "ALTER TABLE t EXPECT two CHECK (COLUMNS(*) > 0)": dl.UnsupportedFeatureError,
        "ALTER TABLE t EXPECT two CHECK (COLUMNS('v') > 0)": dl.UnsupportedFeatureError,
        "ALTER TABLE t EXPECT two CHECK (unnest([v]) > 0)": dl.UnsupportedFeatureError,
        "ALTER TABLE t EXPECT two CHECK (v > generate_subscripts([v], 1))": dl.UnsupportedFeatureError,
        "ALTER TABLE t EXPECT two UNIQUE (w)": dl.BindError,
        "ALTER TABLE t EXPECT two (v) REFERENCES nowhere(id)": dl.EntryNotFoundError,
        "ALTER TABLE t EXPECT two (s) REFERENCES t(id)": dl.BindError,
        "ALTER TABLE t EXPECT two FRESH WITHIN INTERVAL 'soon'": dl.BindError,
        "ALTER TABLE t EXPECT two QUERY (SELECT w FROM t)": dl.SqlError,
        "ALTER TABLE t EXPECT two QUERY (SELECT * FROM range(3))": dl.UnsupportedFeatureError,
        "ALTER TABLE t EXPECT two QUERY (SELECT v FROM t) ON VIOLATION drop": dl.UnsupportedFeatureError,
        "ALTER TABLE t DROP EXPECTATION two": dl.EntryNotFoundError,
    }.items():
        with pytest.raises(error):
            session.sql(statement)
    assert [row[1] for row in session.check("t").fetchall()] == ["one"]
    session.sql("ALTER TABLE t DROP EXPECTATION IF EXISTS two; ALTER TABLE t DROP EXPECTATION ONE")
    session.sql("INSERT INTO t VALUES (1, -1, NULL)")
    assert session.check("t").fetchall() == []


@pytest.mark.parametrize("few", [True, False])
def test_rows_are_left_out_set_aside_and_warned_of(session: dl.Session, few: bool):
    if not few:
        session.sql("CALL set_option('data_inlining_row_limit', 0)")
    session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0) ON VIOLATION quarantine")
    session.sql("ALTER TABLE t EXPECT small CHECK (v < 100) ON VIOLATION drop")
    session.sql("ALTER TABLE t EXPECT odd CHECK (v % 2 = 1) ON VIOLATION warn")
    before = _snapshot(session)
    result = session.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, -1, 'b'), (3, 1000, 'c'), (4, 2, 'd')")
    assert result.fetchall() == [(2,)] and len(result.info.remarks) == 3
    assert _snapshot(session) == before + 1
    assert _rows(session) == [(1, 1), (4, 2)]
    aside = session.sql("SELECT id, v, s, reason, quarantined_at <= now() FROM t_quarantine").fetchall()
    assert aside == [(2, -1, "b", "positive: CHECK (v > 0)", True)]
    ids = dict(session.sql("SELECT id, rowid FROM t").fetchall())
    session.sql("UPDATE t SET v = CASE id WHEN 1 THEN -7 ELSE 3 END")
    # the update of one row is left out: it is as it was, under its row id
    assert _rows(session) == [(1, 1), (4, 3)]
    assert dict(session.sql("SELECT id, rowid FROM t").fetchall()) == ids
    assert sorted(session.sql("SELECT v FROM t_quarantine").fetchall()) == [(-7,), (-1,)]
    session.sql("ALTER TABLE t ADD COLUMN w DATE")
    session.sql("INSERT INTO t VALUES (5, -5, 'e', DATE '2025-01-01')")
    assert session.sql("SELECT count(*), max(w) FROM t_quarantine").fetchall()[0][0] == 3
    assert session.sql("SELECT id FROM t_quarantine WHERE w IS NOT NULL").fetchall() == [(5,)]


def test_warnings_name_the_rows(session: dl.Session):
    session.sql("ALTER TABLE t EXPECT odd CHECK (v % 2 = 1) ON VIOLATION warn")
    with pytest.warns(
        dl.ExpectationWarning, match=r"1 row violates odd of main.t, CHECK \(v % 2 = 1\) \(written\)"
    ) as caught:
        session.sql("INSERT INTO t VALUES (1, 2, 'x')")
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)]
    assert _rows(session) == [(1, 2)]


def test_not_null_and_unchanged_rows(session: dl.Session):
    session.sql("INSERT INTO t VALUES (1, NULL, 'old'), (2, 2, 'x')")
    session.sql("ALTER TABLE t EXPECT known NOT NULL (v, id)")
    assert session.check("t").fetchall()[0][4:6] == ("failed", 1)
    session.sql("UPDATE t SET s = s")  # changes nothing
    with pytest.raises(Refusal, match="1 row violates known"):
        session.sql("UPDATE t SET s = 'touched'")
    with pytest.raises(Refusal):
        session.sql("INSERT INTO t (id) VALUES (3)")
    session.sql("DELETE FROM t WHERE v IS NULL")
    assert session.check("t").fetchall()[0][4:6] == ("passed", 0)


@pytest.mark.parametrize("few", [True, False])
def test_unique(session: dl.Session, few: bool):
    if not few:
        session.sql("CALL set_option('data_inlining_row_limit', 0)")
    session.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')")
    session.sql("ALTER TABLE t EXPECT one_each UNIQUE (id, s)")
    for values in ("(2, 9, 'b')", "(3, 1, 'c'), (3, 2, 'c')"):
        with pytest.raises(Refusal, match="1 row violates one_each"):
            session.sql(f"INSERT INTO t VALUES {values}")
    session.sql("INSERT INTO t VALUES (2, 9, 'c'), (NULL, 1, 'b'), (NULL, 1, 'b')")
    session.sql("UPDATE t SET v = v + 1")
    session.sql("UPDATE t SET id = id + 1 WHERE id IS NOT NULL")
    with pytest.raises(Refusal):
        session.sql("UPDATE t SET id = 2, s = 'a'")
    session.sql("BEGIN; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (2, 0, 'a'); COMMIT")
    session.sql("ALTER TABLE t DROP EXPECTATION one_each")
    session.sql("ALTER TABLE t EXPECT one_each UNIQUE (id) ON VIOLATION drop")
    assert session.sql("INSERT INTO t VALUES (2, 5, 'x'), (8, 1, 'y'), (8, 2, 'z')").fetchall() == [(1,)]
    assert session.sql("SELECT v FROM t WHERE id = 8").fetchall() == [(1,)]


def test_references(session: dl.Session):
    session.sql("CREATE TABLE p (k BIGINT, name VARCHAR); INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    session.sql("ALTER TABLE t EXPECT known (v) REFERENCES p(k)")
    session.sql("INSERT INTO t VALUES (1, 1, ''), (2, 2, ''), (3, NULL, '')")
    with pytest.raises(Refusal, match="1 row violates known"):
        session.sql("INSERT INTO t VALUES (4, 9, ''), (5, 1, '')")
    with pytest.raises(Refusal, match=r"rows of main\.p go that they reference"):
        session.sql("DELETE FROM p WHERE k = 2")
    with pytest.raises(Refusal):
        session.sql("UPDATE p SET k = 20 WHERE k = 2")
    with pytest.raises(Refusal):
        session.sql("TRUNCATE p")
    session.sql("DELETE FROM p WHERE k = 3; UPDATE p SET name = 'z' WHERE k = 2")
    session.sql("BEGIN; INSERT INTO t VALUES (6, 6, ''); INSERT INTO p VALUES (6, 'later'); COMMIT")
    session.sql("BEGIN; DELETE FROM p WHERE k = 6; DELETE FROM t WHERE v = 6; COMMIT")
    for statement in ("DROP TABLE p", "ALTER TABLE p DROP COLUMN k", "CREATE OR REPLACE TABLE p AS SELECT 1 AS k"):
        with pytest.raises(dl.EntryExistsError, match="known"):
            session.sql(statement)
    session.sql("ALTER TABLE p RENAME k TO key; ALTER TABLE p RENAME TO parents")
    with pytest.raises(Refusal, match=r"main\.parents"):
        session.sql("INSERT INTO t VALUES (4, 9, '')")
    session.sql("DROP TABLE t; DROP TABLE parents")


def test_columns_follow_and_stay(session: dl.Session):
    session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0); ALTER TABLE t RENAME v TO amount")
    with pytest.raises(Refusal, match=r'CHECK \("amount" > 0\)'):
        session.sql("INSERT INTO t VALUES (1, -1, '')")
    session.sql("ALTER TABLE t ADD COLUMN v INTEGER; INSERT INTO t VALUES (1, 1, '', -1)")
    with pytest.raises(dl.EntryExistsError, match="positive of t names amount"):
        session.sql("ALTER TABLE t DROP COLUMN amount")
    session.sql("ALTER TABLE t DROP COLUMN amount CASCADE; INSERT INTO t VALUES (2, '', -1)")
    assert session.check("t").fetchall() == []


@pytest.mark.parametrize(
    ("condition", "good", "bad"),
    [
        ("n.a > 0", "{'a': 1, 'b': 1}", "{'a': -1, 'b': 1}"),
        ("n.struct_extract('a') > 0", "{'a': 1, 'b': 1}", "{'a': -1, 'b': 1}"),
        ("len(list_filter([1], lambda n: n > 1)) = 0 AND n.a > 0", "{'a': 1, 'b': 1}", "{'a': -1, 'b': 1}"),
        ("[x FOR x IN [n.a] IF x > n.b] = []", "{'a': 1, 'b': 1}", "{'a': 2, 'b': 1}"),
    ],
)
def test_conditions_on_parts_of_a_column_follow_its_name(session: dl.Session, condition: str, good: str, bad: str):
    session.sql("ALTER TABLE t ADD COLUMN n STRUCT(a INTEGER, b INTEGER)")
    session.sql(f"ALTER TABLE t EXPECT part CHECK ({condition})")
    session.sql('ALTER TABLE t RENAME COLUMN n TO "m.n"')
    with pytest.raises(Refusal):
        session.sql(f"INSERT INTO t VALUES (1, 1, 'a', {bad})")
    session.sql(f"INSERT INTO t VALUES (1, 1, 'a', {good})")
    assert _rows(session) == [(1, 1)]


def test_a_change_of_columns_that_a_condition_does_not_take_is_refused(session: dl.Session):
    session.sql("ALTER TABLE t ADD COLUMN n STRUCT(a INTEGER, b INTEGER)")
    session.sql("ALTER TABLE t EXPECT part CHECK (n.a > 0 AND len(list_filter([v], lambda x: x > v)) = 0)")
    for statement, error in {
        "ALTER TABLE t RENAME COLUMN n.a TO c": "The expectation part of t",
        "ALTER TABLE t DROP COLUMN n.a": "DROP EXPECTATION",
        "ALTER TABLE t RENAME COLUMN v TO x": "x is a parameter in",
    }.items():
        with pytest.raises(dl.BindError, match=error):
            session.sql(statement)
    session.sql(
        "ALTER TABLE t RENAME COLUMN n.b TO c; ALTER TABLE t DROP COLUMN n.c; ALTER TABLE t RENAME COLUMN v TO w"
    )
    session.sql("INSERT INTO t VALUES (1, 1, 'a', {'a': 1})")


def test_queries_and_freshness(session: dl.Session):
    session.sql("ALTER TABLE t EXPECT few QUERY (SELECT s, count(*) AS n FROM t GROUP BY s HAVING count(*) > 2)")
    session.sql(
        "ALTER TABLE t EXPECT fresh FRESH WITHIN INTERVAL 1 DAY; ALTER TABLE t EXPECT now FRESH WITHIN INTERVAL '1 microsecond'"
    )
    session.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'a')")
    with pytest.raises(Refusal, match=r"1 row violates few .*\(s = a, n = 3\)"):
        session.sql("INSERT INTO t VALUES (3, 1, 'a')")
    found = {row[1]: row[4] for row in session.check("t").fetchall()}
    assert found == {"few": "passed", "fresh": "passed", "now": "failed"}


def test_every_door(session: dl.Session, tmp_path: Path):
    session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0)")
    bad = pa.table({"id": pa.array([1], pa.int32()), "v": pa.array([-1], pa.int32()), "s": ["x"]})
    (tmp_path / "bad.csv").write_text("id,v,s\n1,-1,x\n")
    session.sql(f"COPY (SELECT 1 AS id, -1 AS v, 'x' AS s) TO '{tmp_path}/bad.parquet'")

    def appended() -> None:
        with session.appender("t") as appender:
            appender.append((1, -1, "x"))

    def in_transaction() -> None:
        with session.transaction():
            session.sql("INSERT INTO t VALUES (1, 1, 'fine')")
            session.sql("INSERT INTO t VALUES (1, -1, 'x')")

    doors: list[Callable[[], object]] = [
        lambda: session.write(bad, "t"),
        lambda: session.write(bad.to_pandas(), "t"),
        lambda: session.write(pd.DataFrame({"id": [1], "v": [-1], "s": ["x"]}), "t", mode="overwrite"),
        lambda: session.sql("INSERT INTO t SELECT * FROM rows", rows=bad),
        lambda: session.upload(f"{tmp_path}/bad.csv", "t", mode="append").apply(),
        lambda: session.sql(f"COPY t FROM '{tmp_path}/bad.csv'"),
        lambda: session.sql(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/bad.parquet')"),
        appended,
        in_transaction,
    ]
    session.sql("INSERT INTO t VALUES (7, 7, 'kept')")
    for number, door in enumerate(doors):
        with pytest.raises(Refusal):
            door()
        if session.in_transaction:
            session.sql("ROLLBACK")
        assert _rows(session) == [(7, 7)], number


@pytest.mark.parametrize("action", ["drop", "quarantine"])
def test_every_door_counts_the_rows_that_stay(session: dl.Session, tmp_path: Path, action: str):
    session.sql(f"ALTER TABLE t EXPECT positive CHECK (v > 0) ON VIOLATION {action}")
    rows = pa.table(
        {"id": pa.array([1, 2, 3], pa.int32()), "v": pa.array([1, -1, 2], pa.int32()), "s": ["x", "y", "z"]}
    )
    (tmp_path / "rows.csv").write_text("id,v,s\n1,1,x\n2,-1,y\n3,2,z\n")
    doors: list[Callable[[], dl.Result]] = [
        lambda: session.write(rows, "t"),
        lambda: session.write(rows, "t", mode="overwrite"),
        lambda: session.write(rows.to_pandas(), "t", mode="overwrite"),
        lambda: session.sql("INSERT INTO t SELECT * FROM rows", rows=rows),
        lambda: session.sql("MERGE INTO t USING rows ON false WHEN NOT MATCHED THEN INSERT *", rows=rows),
        lambda: session.sql(f"COPY t FROM '{tmp_path}/rows.csv'"),
    ]
    for number, door in enumerate(doors):
        session.sql("TRUNCATE t")
        with pytest.warns(dl.ExpectationWarning):
            done = door()
        assert done.fetchall() == [(2,)] == session.sql("SELECT count(*) FROM t").fetchall(), number
        assert len(done.info.remarks) == 1, number
        assert done.info.snapshots == [("lake", _snapshot(session))] and not done.info.uncommitted, number
    appender = session.appender("t")
    appender.append((1, 1, "x"))
    appender.append((2, -1, "y"))
    with pytest.warns(dl.ExpectationWarning):
        appender.close()
    assert appender.appended == 1


def test_previews_show_what_is_violated(session: dl.Session):
    session.sql(
        "ALTER TABLE t EXPECT positive CHECK (v > 0); ALTER TABLE t EXPECT small CHECK (v < 9) ON VIOLATION drop"
    )
    preview = session.preview("INSERT INTO t VALUES (1, -1, '<b>'), (2, 10, ''), (3, 3, '')")
    assert [(one.expectation.name, one.count) for one in preview.checks] == [("small", 1), ("positive", 1)]
    assert preview.diffs[0].summary.inserted == 2
    from ducklake_lab.widgets.preview import PreviewView

    html = PreviewView(preview).still()
    assert "refuses the commit" in html and "&lt;b&gt;" in html and "<b>'" not in html
    with pytest.raises(Refusal):
        preview.commit()
    assert preview.state == "rolled back" and _rows(session) == []


def test_a_check_since_a_snapshot_looks_at_later_rows(session: dl.Session):
    session.sql("INSERT INTO t VALUES (1, -1, ''), (2, 2, '')")
    session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0) ON VIOLATION warn")
    session.sql("ALTER TABLE t EXPECT one_each UNIQUE (id) ON VIOLATION warn")
    since = _snapshot(session)
    session.sql("INSERT INTO t VALUES (2, 5, ''), (3, -3, '')")
    whole = {row[1]: row[5] for row in session.sql("CHECK t").fetchall()}
    later = {row[1]: row[5] for row in session.sql(f"CHECK t SINCE {since}").fetchall()}
    assert whole == {"positive": 2, "one_each": 1} and later == {"positive": 1, "one_each": 1}
    assert {row[1]: row[5] for row in session.check("t", since=_snapshot(session)).fetchall()} == {
        "positive": 0,
        "one_each": 0,
    }
    assert [row[0] for row in session.check().fetchall()] == ["main.t", "main.t"]


def test_definitions_are_part_of_history(session: dl.Session):
    before = _snapshot(session)
    session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0)")
    changed = session.sql(f"SELECT changes FROM snapshots() WHERE snapshot_id = {before + 1}").fetchall()
    assert "altered" in str(changed)
    session.restore("t", before)  # columns and rows; expectations stay, as comments do
    with pytest.raises(Refusal):
        session.sql("INSERT INTO t VALUES (1, -1, '')")
    assert session._lakes.state(session._lakes.get(), before).table("main", "t").tags == ()
    state = session._lakes.state(session._lakes.get(), before + 1)
    assert [key for key, _ in state.table("main", "t").tags] == [f"{PREFIX}positive"]


def test_an_unreadable_tag_refuses_writes_and_can_be_dropped(session: dl.Session):
    with session._transactions.writing(session._lakes.get()) as transaction:
        table = transaction.state.table("main", "t")
        transaction.set_tag(table, f"{PREFIX}odd", '{"kind": "from the future"}')
    lake = session._lakes.get()
    lake.cache.forget()
    assert session.sql("SELECT * FROM t").fetchall() == []
    with pytest.raises(dl.CatalogError, match="not readable by this version"):
        session.sql("INSERT INTO t VALUES (1, 1, '')")
    session.sql("ALTER TABLE t DROP EXPECTATION odd; INSERT INTO t VALUES (1, 1, '')")


def test_hostile_conditions_of_a_catalog_do_not_run(session: dl.Session, tmp_path: Path):
    (tmp_path / "secret").write_text("x")
    for number, sql in enumerate(
        (
            f"EXISTS (SELECT 1 FROM read_text('{tmp_path}/secret'))",
            f"true) UNION ALL SELECT size FROM read_text('{tmp_path}/secret') --",
            "v > 0; DROP TABLE t",
        )
    ):
        with session._transactions.writing(session._lakes.get()) as transaction:
            table = transaction.state.table("main", "t")
            import json

            transaction.set_tag(table, f"{PREFIX}n", json.dumps({"kind": "check", "sql": sql, "columns": [["v", 2]]}))
        session._lakes.get().cache.forget()
        with pytest.raises((dl.SqlError, dl.UnsupportedFeatureError)):
            session.sql(f"INSERT INTO t VALUES ({number}, 1, '')")
    assert _rows(session) == []


def test_a_commit_without_rows_left_makes_no_snapshot(session: dl.Session):
    session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0) ON VIOLATION drop")
    before = _snapshot(session)
    assert session.sql("INSERT INTO t VALUES (1, -1, ''), (2, -2, '')").fetchall() == [(0,)]
    assert _snapshot(session) == before and _rows(session) == []


@pytest.mark.parametrize("action", ["drop", "quarantine"])
@pytest.mark.parametrize(
    "change", ["CREATE OR REPLACE TABLE t (id INTEGER, v INTEGER)", "ALTER TABLE t DROP EXPECTATION p"]
)
def test_expectations_that_are_gone_leave_no_rows_out(
    lake_uri: Callable[..., str], tmp_path: Path, change: str, action: str
):
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (id INTEGER, v INTEGER)")
        session.sql(f"ALTER TABLE t EXPECT p CHECK (v > 0) ON VIOLATION {action}; INSERT INTO t VALUES (1, 1)")
        session.sql(change)
        kept = len(_rows(session))
        with warnings.catch_warnings():
            warnings.simplefilter("error", dl.ExpectationWarning)
            assert session.sql("INSERT INTO t VALUES (2, -1)").fetchall() == [(1,)]
            with session.appender("t") as appender:
                appender.append((3, -1))
        assert appender.appended == 1
        assert len(_rows(session)) == kept + 2


def test_rows_that_are_all_left_out_are_warned_of_once(session: dl.Session):
    session.sql("ALTER TABLE t EXPECT p CHECK (v > 0) ON VIOLATION drop; INSERT INTO t VALUES (1, 1, 'a')")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", dl.ExpectationWarning)
        done = session.sql("INSERT INTO t VALUES (2, -1, 'b')")
    assert done.fetchall() == [(0,)] and len(done.info.remarks) == len(found) == 1


def test_a_lake_without_expectations_is_not_checked(session: dl.Session):
    def never(_: object) -> None:
        pytest.fail("checked")

    checks, session._transactions.checks = session._transactions.checks, never
    session.sql("INSERT INTO t VALUES (1, -1, ''); UPDATE t SET v = 2; DELETE FROM t")
    session._transactions.checks = checks
    session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0)")
    session._transactions.checks = None
    with pytest.raises(dl.TransactionError, match="cannot check"):
        session.sql("INSERT INTO t VALUES (1, 1, '')")
