"""The kernel calls an output fresh where every change since left alone the part of a table that its query read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.magics.questions import Questions
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.model.reads import RecordedPart
from ducklake_lab.scan import changes
from ducklake_lab.scan.predicate_forms import form_of, predicate_of
from ducklake_lab.session.rows import matching_changes
from ducklake_lab.widgets import recorded
from tests import reference

pytestmark = pytest.mark.every_catalog

FLIGHTS = "SELECT carrier, sum(delay) AS late FROM flights WHERE month = 1 GROUP BY ALL ORDER BY late"


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=str(tmp_path / "data"), engine="duckdb") as opened:
        opened.sql(
            "CREATE TABLE flights (month INTEGER, carrier VARCHAR, delay INTEGER, moment TIMESTAMP, s STRUCT(a INTEGER, b INTEGER));"
            "ALTER TABLE flights SET PARTITIONED BY (month)"
        )
        for month in (1, 2, 3):
            opened.sql(f"INSERT INTO flights {flights(month)}")
        opened.sql("CREATE TABLE carriers (code VARCHAR, name VARCHAR); INSERT INTO carriers VALUES ('UA', 'United')")
        yield opened


def flights(month: int, rows: int = 40) -> str:
    return (
        f"SELECT {month}, CASE WHEN i % 2 = 0 THEN 'UA' ELSE 'DL' END, i, TIMESTAMP '2013-0{month}-01' + i * INTERVAL 1 HOUR, "
        f"{{'a': i, 'b': 0}} FROM range({rows}) r(i)"
    )


@pytest.fixture
def reads(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    def read(text: str, source: str | None = None, **params: object) -> list[dict[str, Any]]:
        monkeypatch.setattr(recorded, "source", lambda: f"%%ducklake\n{text}" if source is None else source)
        metadata = recorded.record_of(session.sql(text, params or None))
        found: list[dict[str, Any]] = json.loads(json.dumps(metadata))[recorded.KEY]["reads"]
        return found

    return read


def ask(session: dl.Session, reads: list[dict[str, Any]]) -> list[tuple[str, int]]:
    answer = Questions(lambda: {"s": session}).ask("moved_on", {"reads": reads})["reads"]
    return [(table["state"], table["ahead"]) for one in answer for table in one["tables"]]


INSERT_2 = f"INSERT INTO flights {flights(2)}"
INSERT_1 = f"INSERT INTO flights {flights(1)}"
INLINED_2 = "INSERT INTO flights VALUES (2, 'UA', 5, NULL, NULL)"
INLINED_1 = "INSERT INTO flights VALUES (1, 'UA', 5, NULL, NULL)"
SAME, AHEAD = ("same", 0), ("ahead", 1)


@pytest.mark.parametrize(
    ("query", "change", "state"),
    [
        # rows of another part
        (FLIGHTS, INSERT_2, SAME),
        (FLIGHTS, INSERT_1, AHEAD),
        (FLIGHTS, INLINED_2, SAME),
        (FLIGHTS, INLINED_1, AHEAD),
        (FLIGHTS, f"{INSERT_2}; {INSERT_1}; {INLINED_2}", AHEAD),
        (FLIGHTS, "DELETE FROM flights WHERE month = 2", SAME),
        (FLIGHTS, "DELETE FROM flights WHERE month = 3 AND delay < 3", SAME),
        (FLIGHTS, "DELETE FROM flights WHERE month = 1 AND delay < 3", AHEAD),
        (FLIGHTS, "UPDATE flights SET delay = 0 WHERE month = 2", SAME),
        (FLIGHTS, "UPDATE flights SET delay = 0 WHERE month = 1 AND delay = 7", AHEAD),
        (FLIGHTS, "UPDATE flights SET month = 1 WHERE month = 2 AND delay = 7", AHEAD),
        (FLIGHTS, "UPDATE flights SET month = 2 WHERE month = 1", AHEAD),
        (FLIGHTS, f"{INLINED_2}; DELETE FROM flights WHERE month = 2 AND moment IS NULL", SAME),
        (FLIGHTS, f"{INLINED_1}; DELETE FROM flights WHERE month = 1 AND moment IS NULL", ("ahead", 2)),
        (FLIGHTS, f"{INSERT_2}; CALL lake.merge_adjacent_files(); CALL lake.flush_inlined_data()", SAME),
        (FLIGHTS, "DELETE FROM flights WHERE month = 2 AND delay < 30; CALL lake.rewrite_data_files()", SAME),
        ("SELECT * FROM flights WHERE month = 1 LIMIT 3", INSERT_2, SAME),
        ("SELECT * FROM flights WHERE moment < TIMESTAMP '2013-01-20'", INSERT_2, SAME),
        ("SELECT * FROM flights WHERE moment < TIMESTAMP '2013-02-01 03:00:00'", INSERT_2, AHEAD),
        ("SELECT * FROM flights WHERE delay > 100", INLINED_1, SAME),
        ("SELECT * FROM flights WHERE month IN (1, 3)", INSERT_2, SAME),
        ("SELECT * FROM flights WHERE s.a > 100", INSERT_2, SAME),
        ("SELECT * FROM flights WHERE s.b = 0", INSERT_2, AHEAD),
        ("SELECT count(*) FROM flights WHERE month = 1", INSERT_2, SAME),
        # several reads of one table, and of several
        ("SELECT a.delay FROM flights a, flights b WHERE a.month = 1 AND b.month = 3", INSERT_2, SAME),
        ("SELECT a.delay FROM flights a, flights b WHERE a.month = 1 AND b.month = 3", f"INSERT INTO flights {flights(3)}", AHEAD),
        ("SELECT a.delay FROM flights a, flights b WHERE a.month = 1", INSERT_2, AHEAD),
        ("WITH f AS (FROM flights WHERE month = 1) SELECT * FROM f UNION ALL SELECT * FROM f", INSERT_2, SAME),
        ("WITH f AS (FROM flights) SELECT delay FROM f WHERE month = 1 UNION ALL SELECT month FROM f", INSERT_2, AHEAD),
        ("SELECT (SELECT max(delay) FROM flights WHERE month = 1) AS m", INSERT_2, SAME),
        ("SELECT (SELECT max(delay) FROM flights) AS m FROM flights WHERE month = 1", INSERT_2, AHEAD),
        ("SELECT month FROM flights WHERE month = 1 OR delay = 2", INSERT_2, AHEAD),
        ("SELECT count(*) FILTER (WHERE month = 1) FROM flights", INSERT_2, AHEAD),
        ("SELECT carrier, max(delay) FROM flights GROUP BY carrier HAVING max(month) = 1", INSERT_2, AHEAD),
        # columns
        (FLIGHTS, "ALTER TABLE flights ADD COLUMN speed INTEGER DEFAULT 3", SAME),
        (FLIGHTS, "ALTER TABLE flights DROP COLUMN moment", SAME),
        (FLIGHTS, "ALTER TABLE flights RENAME COLUMN moment TO time", SAME),
        (FLIGHTS, "ALTER TABLE flights RENAME COLUMN moment TO late", AHEAD),
        (FLIGHTS, "ALTER TABLE flights ADD COLUMN late INTEGER", AHEAD),
        (FLIGHTS, 'ALTER TABLE flights ADD COLUMN "LATE" INTEGER', AHEAD),
        (FLIGHTS, "ALTER TABLE flights DROP COLUMN delay; ALTER TABLE flights ADD COLUMN delay INTEGER", ("ahead", 2)),
        (FLIGHTS, "ALTER TABLE flights RENAME COLUMN delay TO d", AHEAD),
        (FLIGHTS, "ALTER TABLE flights ALTER delay SET DATA TYPE BIGINT", AHEAD),
        (FLIGHTS, "ALTER TABLE flights ALTER delay SET DEFAULT 7", SAME),
        (FLIGHTS, "ALTER TABLE flights ADD COLUMN s.c INTEGER", SAME),
        (FLIGHTS, f"ALTER TABLE flights ADD COLUMN speed INTEGER; {INSERT_2.replace(' FROM', ', 1 FROM')}", SAME),
        ("SELECT s.a FROM flights", "ALTER TABLE flights ADD COLUMN s.c INTEGER", AHEAD),
        ("SELECT delay FROM flights", INLINED_2, AHEAD),
        ("SELECT delay FROM flights", "UPDATE flights SET carrier = 'AA' WHERE month = 2", AHEAD),
        ("SELECT count(*) FROM flights", "ALTER TABLE flights ADD COLUMN speed INTEGER", SAME),
        ("SELECT * FROM flights", "ALTER TABLE flights ADD COLUMN speed INTEGER", AHEAD),
        ("FROM flights", "ALTER TABLE flights DROP COLUMN moment", AHEAD),
        ("SELECT flights FROM flights", "ALTER TABLE flights ADD COLUMN speed INTEGER", AHEAD),
        ("SELECT f.* EXCLUDE (delay) FROM flights f", "ALTER TABLE flights ADD COLUMN speed INTEGER", AHEAD),
        ("SELECT COLUMNS('.*a.*') FROM flights", "ALTER TABLE flights ADD COLUMN area INTEGER", AHEAD),
        ("SELECT a FROM flights AS f(m, a)", "ALTER TABLE flights DROP COLUMN carrier", AHEAD),
        ("PIVOT flights ON carrier USING sum(delay)", "ALTER TABLE flights ADD COLUMN speed INTEGER", AHEAD),
        ("SELECT code FROM flights NATURAL JOIN (SELECT code, code AS carrier FROM carriers)", "ALTER TABLE flights ADD COLUMN code VARCHAR", AHEAD),
        ("SELECT name FROM flights, carriers WHERE code = carrier", "ALTER TABLE flights ADD COLUMN name VARCHAR", AHEAD),
        ("SELECT name FROM flights, carriers WHERE code = carrier", "ALTER TABLE flights ADD COLUMN speed VARCHAR", SAME),
        ("SELECT rowid FROM flights", "ALTER TABLE flights ADD COLUMN speed VARCHAR", AHEAD),
        # neither rows nor columns
        ("FROM flights", "COMMENT ON TABLE flights IS 'all'; COMMENT ON COLUMN flights.delay IS 'minutes'", SAME),
        ("FROM flights", "ALTER TABLE flights SET SORTED BY (delay); ALTER TABLE flights RESET PARTITIONED BY", SAME),
        ("FROM flights", "CALL lake.set_option('target_file_size', '1MB', table_name => 'flights')", SAME),
        # places of rows
        ("SELECT filename FROM flights WHERE month = 1", f"{INSERT_2}; CALL lake.merge_adjacent_files()", ("ahead", 2)),
        ("SELECT max(rowid) FROM flights WHERE month = 1", f"{INSERT_1}; CALL lake.merge_adjacent_files()", ("ahead", 2)),
        # answers that differ by themselves
        ("SELECT * FROM flights WHERE month = 1 AND random() < 2", INSERT_2, AHEAD),
    ],
)  # fmt: skip
def test_what_left_the_part_alone(
    session: dl.Session, reads: Callable[..., Any], query: str, change: str, state: tuple[str, int]
) -> None:
    before = reads(query)
    assert set(ask(session, before)) == {SAME}
    rows = session.sql(query).fetchall()
    session.sql(change)
    answer = max(ask(session, before), key=lambda one: one[1])
    assert answer == state
    if answer == SAME:
        assert sorted(session.sql(query).fetchall(), key=repr) == sorted(rows, key=repr)


def test_without_a_predicate_each_change_of_rows_counts(session: dl.Session, reads: Callable[..., Any]) -> None:
    session.sql("CREATE VIEW january AS SELECT * FROM flights WHERE month = 1; CREATE MACRO one() AS 1")
    for query, source, params in (
        ("FROM flights WHERE month = :m", None, {"m": 1}),
        ("FROM flights WHERE month = 1", "session.sql(f'FROM flights WHERE month = {m}')", {}),
        ("FROM january", None, {}),
        ("FROM flights WHERE month = one()", None, {}),
        ("FROM flights WHERE month = 1 AND carrier <> 'password=hunter2hunter2'", None, {}),
    ):
        found = reads(query, source, **params)
        assert "where" not in json.dumps(found)
        session.sql(INSERT_2)
        assert ask(session, found) == [AHEAD], query


@pytest.mark.parametrize(
    "condition",
    [f"{'(' * 300}month = 1{')' * 300}", " OR ".join(f"month = {i}" for i in range(900)), f"{'NOT ' * 300}month = 1"],
    ids=("deep", "long", "negated"),
)
def test_deep_and_long_queries_have_a_record(session: dl.Session, reads: Callable[..., Any], condition: str) -> None:
    found = reads(f"SELECT delay FROM flights WHERE {condition}")
    session.sql("ALTER TABLE flights ADD COLUMN speed INTEGER")
    assert ask(session, found) == [SAME]
    session.sql("INSERT INTO flights (month) VALUES (1)")
    assert ask(session, found) == [AHEAD]


def test_columns_behind_views_are_read(session: dl.Session, reads: Callable[..., Any]) -> None:
    session.sql(
        "CREATE VIEW late AS SELECT carrier, month FROM flights WHERE delay > 10; CREATE VIEW all_of_it AS FROM flights"
    )
    session.sql(
        "CREATE TEMP VIEW mine AS SELECT carrier FROM late; CREATE MACRO soon(x) AS TABLE SELECT x, carrier FROM late"
    )
    ids = {column.name: column.column_id for column in session.state().table("main", "flights").columns}
    for query, read in (
        ("SELECT carrier FROM late", ("carrier", "month", "delay")),
        ("SELECT carrier FROM mine", ("carrier", "month", "delay")),
        ("WITH own AS (SELECT carrier AS month FROM late) SELECT month FROM own", ("carrier", "month", "delay")),
        ("SELECT carrier FROM all_of_it", None),
        ("SELECT carrier FROM soon(1)", None),
    ):
        (table,) = reads(query)[0]["tables"]
        expected = sorted(ids[name] for name in read) if read is not None else "*"
        assert table["columns"] in (expected, "*") if "mine" in query else table["columns"] == expected, query


def test_the_record_holds_ids_and_what_the_cell_says(session: dl.Session, reads: Callable[..., Any]) -> None:
    (table,) = reads(FLIGHTS)[0]["tables"]
    ids = {column.name: column.column_id for column in session.state().table("main", "flights").columns}
    assert table["columns"] == sorted(ids[name] for name in ("month", "carrier", "delay"))
    assert table["names"] == ["late"]
    assert table["where"] == {"column": ids["month"], "op": "=", "value": {"integer": "1"}}
    (table,) = reads("FROM flights WHERE month = 1")[0]["tables"]
    assert sorted(table) == ["columns", "id", "name", "schema", "uuid", "where"] and table["columns"] == "*"
    assert reads("FROM flights AT (VERSION => 4) WHERE month = 1")[0]["tables"][0].keys() == {
        "id",
        "name",
        "schema",
        "uuid",
    }


def test_uncommitted_reads_have_no_part(session: dl.Session, reads: Callable[..., Any]) -> None:
    session.sql("BEGIN")
    session.sql(INSERT_2)
    assert reads(FLIGHTS)[0]["tables"][0].keys() == {"id", "name", "schema", "uuid"}
    session.sql("ROLLBACK")


def test_expired_snapshots_prove_nothing_of_parts(session: dl.Session, reads: Callable[..., Any]) -> None:
    found = reads(FLIGHTS)
    session.sql(INSERT_2)
    assert ask(session, found) == [SAME]
    session.sql(INSERT_2)
    session.sql(f"CALL lake.expire_snapshots(versions => [{found[0]['snapshot'] + 1}])")
    assert ask(session, found) == [AHEAD]


def test_a_column_that_comes_back_is_the_same(session: dl.Session, reads: Callable[..., Any]) -> None:
    found = reads("SELECT delay FROM flights")
    session.sql("ALTER TABLE flights RENAME COLUMN delay TO other")
    session.sql("ALTER TABLE flights RENAME COLUMN other TO delay")
    assert ask(session, found) == [SAME]


def test_renamed_tables_keep_their_part(session: dl.Session, reads: Callable[..., Any]) -> None:
    found = reads(FLIGHTS)
    session.sql(f"{INSERT_2}; ALTER TABLE flights RENAME TO trips")
    assert ask(session, found) == [("renamed", 0)]
    session.sql(INSERT_1.replace("flights", "trips"))
    assert ask(session, found) == [("ahead", 1)]


@pytest.mark.parametrize(
    "part",
    [
        {"where": 1},
        {"where": {"column": 99, "op": "=", "value": {"integer": "2"}}},
        {"where": {"column": 1, "op": "; DROP", "value": {"integer": "2"}}},
        {"where": {"column": 1, "op": "=", "value": {"integer": "2 OR 1"}}},
        {"where": {"column": 1, "op": "=", "value": {"integer": 2}}},
        {"where": {"column": 1, "op": "=", "value": {"text": "2"}}},
        {"where": {"column": 1, "op": "=", "value": {"double": "nan"}}},
        {"where": {"column": 1, "op": "=", "value": {"date": "9" * 40}}},
        {"where": {"column": True, "null": True}},
        {"where": {"column": 1, "prefix": "x"}},
        {"where": {"and": []}},
        {"where": {"column": 1, "in": [{"integer": "2"}] * 1000}},
        {"where": [[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]},
        {"columns": "all"},
        {"columns": [1], "names": [2]},
        {"columns": [True]},
    ],
)
def test_a_part_of_anybody_proves_nothing(session: dl.Session, reads: Callable[..., Any], part: dict[str, Any]) -> None:
    (state,) = reads("FROM flights")
    state["tables"][0] |= part
    session.sql(INSERT_2)
    session.sql("ALTER TABLE flights ADD COLUMN speed INTEGER")
    assert ask(session, [state]) == [("ahead", 2)]


def test_what_is_no_query_is_marked_by_each_change(session: dl.Session, reads: Callable[..., Any]) -> None:
    _, metadata = session.table("flights").view()._repr_mimebundle_()
    shown = metadata[recorded.KEY]["reads"]
    found = reads("FROM flights")
    session.sql("COMMENT ON COLUMN flights.delay IS 'minutes'")
    assert (ask(session, shown), ask(session, found)) == ([AHEAD], [SAME])


def test_an_empty_record_of_columns_is_one_of_none() -> None:
    assert RecordedPart.of({"columns": []}).columns == frozenset()
    assert RecordedPart.of({}).columns is None


def test_other_clients_changes_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "theirs.ducklake"
    query = "SELECT n FROM t WHERE g = 1"
    monkeypatch.setattr(recorded, "source", lambda: query)
    with dl.connect(f"ducklake:{path}", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i AS n, i % 2 AS g FROM range(100) r(i) WHERE i % 2 = 1")
        found = recorded.record_of(session.sql(query))[recorded.KEY]["reads"]

    def theirs(*statements: str) -> list[tuple[str, int]]:
        with reference.connect() as other:
            other.execute(f"ATTACH 'ducklake:{path}' AS theirs; USE theirs")
            for statement in statements:
                other.execute(statement)
        with dl.connect(f"ducklake:{path}", alias="lake", engine="duckdb") as session:
            return ask(session, found)

    assert theirs("INSERT INTO t SELECT i, 2 FROM range(100) r(i)", "INSERT INTO t VALUES (7, 0)") == [SAME]
    assert theirs("ALTER TABLE t ADD COLUMN more INTEGER", "COMMENT ON TABLE t IS 'x'") == [SAME]
    assert theirs("DELETE FROM t WHERE g = 2 AND n < 50", "DELETE FROM t WHERE g = 0") == [SAME]
    assert theirs("CALL theirs.merge_adjacent_files()", "CALL ducklake_flush_inlined_data('theirs')") == [SAME]
    assert theirs("INSERT INTO t VALUES (7, 1, NULL)") == [AHEAD]


@pytest.mark.parametrize(
    "predicate",
    [
        Comparison(("n",), ">=", 3),
        Comparison(("n",), "!=", 10**30),
        Comparison(("f",), "<", 0.1),
        InList(("t",), ("a", "b\n'\u202e")),
        StartsWith(("t",), "UA"),
        NullTest(("s", "a"), False),
        And((Comparison(("d",), "=", Moment(0, "date")), Or((NullTest(("n",), True), Comparison(("b",), "=", True))))),
    ],
)
def test_predicates_come_back_from_their_forms(session: dl.Session, predicate: Predicate) -> None:
    session.sql("CREATE TABLE k (n INTEGER, f DOUBLE, t VARCHAR, s STRUCT(a INTEGER), d DATE, b BOOLEAN)")
    table = session.state().table("main", "k")
    form = json.loads(json.dumps(form_of(table, predicate)))
    assert predicate_of(table, form) == predicate
    session.sql("ALTER TABLE k RENAME COLUMN n TO m; ALTER TABLE k DROP COLUMN t")
    later = session.state().table("main", "k")
    found = predicate_of(later, form)
    if "t" in str(predicate.column if not isinstance(predicate, And | Or) else ""):
        assert found is None or isinstance(predicate, NullTest)
    else:
        assert found is not None


def test_long_predicates_have_no_form(session: dl.Session) -> None:
    table = session.state().table("main", "flights")
    assert form_of(table, InList(("month",), tuple(range(1000)))) is None
    assert form_of(table, Comparison(("carrier",), "=", "x" * 1000)) is None
    assert form_of(table, Comparison(("carrier",), "=", b"x")) is None


def test_one_look_at_a_table_answers_for_all_outputs(
    session: dl.Session, reads: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def read_changed(*given: Any) -> Any:
        looked.append(given[4])
        return changes.read_changed(*given)

    monkeypatch.setattr(matching_changes, "read_changed", read_changed)
    found = []
    for delay in range(3):
        found += reads(f"SELECT carrier FROM flights WHERE month = 1 AND delay = {delay}")
        session.sql(f"INSERT INTO flights (month, delay) VALUES (1, {delay})")
    found += reads("SELECT carrier FROM flights WHERE month = 3")
    session.sql(INSERT_2)
    first = found[0]["snapshot"]
    assert ask(session, found) == [AHEAD, AHEAD, AHEAD, SAME] and looked == [first + 1]
    many = [one for delay in range(60) for one in reads(f"SELECT carrier FROM flights WHERE delay = {100 + delay}")]
    session.sql(INSERT_2)
    assert ask(session, many) == [SAME] * 50 + [AHEAD] * 10 and len(looked) == 2
