"""A click on a cell: who set it, in which snapshot, and what else changed its row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits, Placement
from ducklake_lab.widgets.diff_browser import DiffBrowser
from ducklake_lab.widgets.preview import PreviewView
from ducklake_lab.widgets.table_view import ResultBrowser, TableBrowser

pytestmark = pytest.mark.sampled(3)

EVIL = "<script>alert(1)</script>\u202e"


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.record_statements = lambda: {"notebook": "fix.ipynb", "cell": 4}
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR, x DOUBLE)")
        session.sql("INSERT INTO t SELECT i, 'a' || (i % 3), i / 3 FROM range(50) r(i)", message="load")
        session.author = "bob"
        session.sql(f"UPDATE t SET s = '{EVIL}' WHERE i = 7", message=EVIL)
        session.sql("DELETE FROM t WHERE i = 9")
        yield session
        assert not session.spark_started


def ask(view: TableBrowser, row: int, column: int, **more: object) -> dict[str, Any]:
    assert view.has_lives
    return view.answer_life({"row": row, "column": column, **more})


def test_a_cell_says_who_set_it(session: dl.Session) -> None:
    view = TableBrowser(session.table("t").view())
    view.sort = [["i", False]]
    found = ask(view, 7, 1)
    assert (found["table"], found["row"], found["at"], found["column"]) == ("main.t", "7", 4, "s")
    shown = "<script>alert(1)</script>⟨U+202E⟩"
    assert found["set"]["cells"] == [["s", "a1", shown]]
    assert (found["set"]["kind"], found["set"]["snapshot"], found["set"]["author"]) == ("update", 3, "bob")
    assert (found["set"]["message"], found["set"]["origin"]) == (shown, "fix.ipynb [4]")
    assert found["set"]["statement"] == f"UPDATE t SET s = '{shown}' WHERE i = 7"
    assert [(one["snapshot"], one["kind"]) for one in found["changes"]] == [(2, "insert"), (3, "update")]
    assert (found["setter"], found["earlier"], found["sentence"]) == (1, 0, "")
    # the other cells of the row are those of its insert, and the one that is asked about stands first
    other = ask(view, 7, 0)
    assert (other["setter"], other["set"]["kind"], other["set"]["message"]) == (0, "insert", "load")
    assert [cell[0] for cell in ask(view, 7, 2)["set"]["cells"]] == ["x", "i", "s"]
    # rows are known by their ids, whatever their order: row 9 is gone
    assert [ask(view, at, 0)["row"] for at in (8, 9)] == ["8", "10"]


def test_rows_keep_their_lives_when_they_are_filtered(session: dl.Session) -> None:
    view = TableBrowser(session.table("t", at=2).view())
    view.filters = {"s": "= a0"}
    view.sort = [["i", True]]
    found = ask(view, 0, 1)
    assert (found["row"], found["at"], found["set"]["snapshot"]) == ("48", 2, 2)
    view.filters = {"i": "9"}
    assert [one["kind"] for one in ask(view, 0, 0)["changes"]] == ["insert"]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM t WHERE i >= 7 ORDER BY i", ["7"]),
        ("FROM t ORDER BY i LIMIT 1 OFFSET 8", ["8"]),
        ("SELECT rowid, s FROM t WHERE s = 'a2' ORDER BY i DESC", ["47"]),
        ("SELECT upper(s) AS u, i AS n, t.x FROM t WHERE x > 3 ORDER BY i", ["10"]),
        ("SELECT x FROM main.t AS r WHERE r.i = 20", ["20"]),
        ("SELECT s FROM t WHERE i IN (1, 4, 5)", ["1", "4"]),
        ("SELECT i FROM t WHERE rowid = 8 AND s LIKE 'a%' -- eight", ["8"]),
        ("SELECT s FROM t AT (VERSION => 2) WHERE i BETWEEN 7 AND 8", ["7"]),
    ],
)
def test_rows_of_a_query_are_found_in_the_table(session: dl.Session, query: str, rows: list[str]) -> None:
    view = ResultBrowser(session.sql(query))
    found = ask(view, 0, 0)
    if len(rows) > 1:
        assert found == {"rows": rows, "sentence": "2 rows of main.t show these values:"}
        found = ask(view, 0, 0, chosen=rows[1])
        rows = rows[1:]
    assert [found["row"]] == rows
    assert found["changes"][0]["kind"] == "insert"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s, count(*) AS n FROM t GROUP BY s",
        "SELECT DISTINCT s FROM t",
        "SELECT max(i) AS m FROM t",
        "SELECT a.i FROM t AS a JOIN t AS b USING (i)",
        "SELECT i FROM (FROM t)",
        "SELECT i FROM t UNION ALL SELECT i FROM t",
        "SELECT i + 1 AS j FROM t",
        "SELECT i, row_number() OVER () AS n FROM t",
        "SELECT i FROM t USING SAMPLE 3",
        "SELECT 1 AS i",
        "SELECT i FROM v",
        "SELECT i, i + 1 AS k FROM t WHERE k > 7",
        "SELECT * REPLACE (i + 1 AS i) FROM t",
        "SELECT snapshot_id FROM lake.snapshots()",
    ],
)
def test_other_rows_have_no_lives(session: dl.Session, query: str) -> None:
    session.sql("CREATE VIEW v AS FROM t")
    assert not ResultBrowser(session.sql(query)).has_lives


def test_equal_values_of_all_types_find_the_row(session: dl.Session) -> None:
    session.sql(
        """
        CREATE TABLE w AS SELECT i, CASE i WHEN 3 THEN 'nan' ELSE i / 7 END::DOUBLE AS d, i::DECIMAL(9, 2) AS m,
            TIMESTAMPTZ '2025-01-01 00:00:00Z' + to_days(i::INTEGER) AS t, {'a': [i, NULL]} AS n, ('b' || i)::BLOB AS b,
            CASE WHEN i % 2 = 0 THEN repeat('long ' || i, 200) END AS v, -i::HUGEINT AS h, INTERVAL (i) DAY AS p
        FROM range(9) r(i)
        """
    )
    view = ResultBrowser(session.sql("SELECT * EXCLUDE (i) FROM w"))
    assert not view.has_lives
    view = ResultBrowser(session.sql("SELECT d, m, t, n, b, v, h, p FROM w ORDER BY i"))
    assert [ask(view, at, 0)["row"] for at in range(9)] == [str(at) for at in range(9)]
    for name in ("d", "t", "n", "b", "h", "p"):
        view = ResultBrowser(session.sql(f"SELECT {name} FROM w ORDER BY i"))
        assert [ask(view, at, 0)["row"] for at in (3, 4)] == ["3", "4"], name


def test_the_state_that_was_read_is_asked_about(session: dl.Session) -> None:
    view = ResultBrowser(session.sql("SELECT i, s FROM t WHERE i = 7"))
    session.sql("UPDATE t SET s = 'later'; ALTER TABLE t RENAME COLUMN s TO r")
    found = ask(view, 0, 1)
    assert (found["at"], found["column"], found["set"]["snapshot"]) == (4, "s", 3)
    session.sql("DROP TABLE t")
    assert ask(view, 0, 0)["set"]["snapshot"] == 2


def test_another_lake_of_that_name_is_not_asked(session: dl.Session, tmp_path: Path) -> None:
    view = ResultBrowser(session.sql("SELECT i, s FROM t WHERE i = 7"))
    session.attach(f"ducklake:{tmp_path}/beside.ducklake", alias="beside")
    session.use("beside.main")
    assert ask(view, 0, 0)["row"] == "7"
    session.detach("lake")
    session.attach(f"ducklake:{tmp_path}/again.ducklake", alias="lake")
    session.sql("CREATE TABLE lake.main.t AS SELECT 7 AS i, 'x' AS s")
    with pytest.raises(dl.UsageError, match="another lake or branch now"):
        ask(view, 0, 0)


def test_a_value_that_is_no_column_has_the_life_of_its_row(session: dl.Session) -> None:
    view = ResultBrowser(session.sql("SELECT i, i + 1 AS j FROM t WHERE i = 7"))
    found = ask(view, 0, 1)
    assert (found["column"], found["set"], found["sentence"]) == (None, None, "This value is no column of main.t.")
    assert len(found["changes"]) == 2


def test_rows_from_spark_are_named_by_row_ids(session: dl.Session) -> None:
    # no Spark: the question alone is refused
    result = session.sql("SELECT i FROM t WHERE i = 7")
    result.info.placement = Placement("spark")
    view = ResultBrowser(result)
    with pytest.raises(dl.UnsupportedFeatureError, match="select rowid as well"):
        ask(view, 0, 0)


def test_what_is_not_committed_has_no_snapshot(session: dl.Session) -> None:
    session.sql("BEGIN; UPDATE t SET x = 0 WHERE i = 7; INSERT INTO t VALUES (100, 'new', 1)")
    view = TableBrowser(session.table("t").view())
    view.sort = [["i", True]]
    with pytest.raises(dl.EntryNotFoundError, match="is not committed yet"):
        ask(view, 0, 0)
    view.filters = {"i": "7"}
    found = ask(view, 0, 2)
    assert (found["at"], found["set"]["snapshot"]) == (4, 2)
    assert found["sentence"] == "Changes that are not committed have no snapshot yet."
    assert not ResultBrowser(session.sql("SELECT i FROM t")).has_lives
    session.sql("CREATE TABLE fresh AS SELECT 1 AS a")
    assert not TableBrowser(session.table("fresh").view()).has_lives
    session.sql("ROLLBACK")


def test_expired_snapshots_are_said(session: dl.Session) -> None:
    session.sql("CALL lake.expire_snapshots(versions => [2])")
    view = TableBrowser(session.table("t").view())
    view.filters = {"i": "8"}
    found = ask(view, 0, 0)
    # that the row began there is certain
    assert (found["set"]["snapshot"], found["set"]["time"], found["set"]["author"]) == (2, "", "")
    assert found["sentence"] == "This snapshot has expired, and its author with it."
    session.sql("CALL lake.expire_snapshots(versions => [1])")
    found = ask(view, 0, 0)
    assert found["set"] is None and found["known_from"] == 3
    assert found["sentence"] == "Set before snapshot 3; earlier snapshots have expired."


def test_cells_of_a_diff(session: dl.Session) -> None:
    session.sql("UPDATE t SET x = -1 WHERE i = 7; INSERT INTO t VALUES (60, 'z', 0)")
    view = DiffBrowser(session.table("t").diff(2, 6))
    assert view.has_lives
    view.every, view.sort = True, [["i", False]]
    names = [name for name, *_ in view.columns]

    def asked(row: int, column: str) -> dict[str, Any]:
        return view.answer_life({"row": row, "column": names.index(column)})

    updated, deleted, inserted = asked(0, "s"), asked(1, "s"), asked(2, "i")
    assert (updated["at"], updated["set"]["snapshot"], asked(0, "x")["set"]["snapshot"]) == (6, 3, 5)
    # a row that is gone has the life that it had
    assert (deleted["row"], deleted["at"], deleted["set"]["kind"]) == ("9", 2, "insert")
    assert (inserted["at"], inserted["set"]["snapshot"]) == (6, 6)
    assert not DiffBrowser(session.table("t").diff(2, 6, key=["i"])).has_lives
    assert not DiffBrowser(session.compare("FROM t", 2, 6)).has_lives


def test_dropped_columns_of_a_diff(session: dl.Session) -> None:
    session.sql("ALTER TABLE t RENAME COLUMN s TO r; ALTER TABLE t DROP COLUMN x; UPDATE t SET r = 'q' WHERE i = 7")
    view = DiffBrowser(session.table("t").diff(4, 7))
    view.every = True
    names = [name for name, *_ in view.columns]
    assert view.answer_life({"row": 0, "column": names.index("r")})["set"]["cells"] == [
        ["r", "<script>alert(1)</script>⟨U+202E⟩", "q"]
    ]
    found = view.answer_life({"row": 0, "column": names.index("x")})
    assert (found["at"], found["column"]) == (4, "x")


def test_cells_of_a_preview(session: dl.Session) -> None:
    view = PreviewView(session.preview("UPDATE t SET s = 'c' WHERE i IN (7, 8); INSERT INTO t VALUES (70, 'n', 1)"))
    # columns: mark, row id, s, i, x
    found = view.answer_life({"table": 0, "row": 0, "cell": 2})
    assert (found["row"], found["column"], found["at"], found["set"]["snapshot"]) == ("7", "s", 4, 3)
    assert found["sentence"] == "Changes that are not committed have no snapshot yet."
    assert view.answer_life({"table": 0, "row": 1, "cell": 0})["set"]["snapshot"] == 2
    assert view.answer_life({"table": 0, "row": 2, "cell": 3}) == {
        "sentence": "No snapshot up to 4 has this value of i."
    }
    view.commit()
    assert view.answer_life({"table": 0, "row": 0, "cell": 2})["sentence"] == ""


def test_a_large_scan_is_asked_lazily(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", limits=Limits(eager=0)) as session:
        session.sql("CREATE TABLE t AS SELECT i, i % 7 AS k FROM range(1000) AS r(i)")
        result = session.sql("SELECT i, k FROM t ORDER BY i")
        result._repr_html_()
        view = ResultBrowser(result, shows=())
        assert not view.whole
        assert ask(view, 49, 1)["row"] == "49"
        assert not view.whole and not session.spark_started
