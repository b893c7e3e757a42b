"""Comments of views' columns, on every kind of catalog: written, shown, kept and dropped with their view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.schema import of_catalog, render
from ducklake_lab.widgets.schema_browser import SchemaBrowser

pytestmark = pytest.mark.sampled(3)

Stored = list[tuple[int, str, int, int | None, str | None]]


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(uri: str, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.1") as session:
        session.sql("CREATE SCHEMA a; CREATE SCHEMA a.b; CREATE TABLE a.b.n (i INTEGER, t VARCHAR)")
        session.sql("CREATE VIEW a.b.v (x) AS SELECT i, t FROM n")
        yield session
        assert not session.spark_started


def comments(session: dl.Session, view: str = "v") -> dict[str, str | None]:
    found = session.sql(
        f"SELECT column_name, comment FROM duckdb_columns() WHERE database_name = 'lake' AND table_name = '{view}' "
        "ORDER BY column_index"
    )
    return dict(found.fetchall())


def stored(session: dl.Session) -> Stored:
    found = session.sql(
        "SELECT view_id, column_name, begin_snapshot, end_snapshot, value "
        "FROM __ducklake_metadata_lake.ducklake_view_column_tag WHERE key = 'comment' ORDER BY ALL"
    )
    return found.fetchall()


@pytest.mark.slow
def test_comments_go_by_the_names_in_the_query(session: dl.Session) -> None:
    session.sql("COMMENT ON COLUMN a.b.v.X IS 'a number'; COMMENT ON COLUMN lake.a.b.v.t IS 'it''s text'")
    first = session.current_snapshot().snapshot_id - 1
    assert comments(session) == {"x": "a number", "t": "it's text"}
    assert [row[1:] for row in stored(session)] == [
        ("i", first, None, "a number"),
        ("t", first + 1, None, "it's text"),
    ]
    session.sql("COMMENT ON COLUMN a.b.v.x IS 'other'; COMMENT ON COLUMN a.b.v.T IS NULL")
    assert comments(session) == {"x": "other", "t": None}
    assert [row[1:] for row in stored(session)] == [
        ("i", first, first + 2, "a number"),
        ("i", first + 2, None, "other"),
        ("t", first + 1, first + 3, "it's text"),
        ("t", first + 3, None, None),
    ]
    assert [entry.changes for entry in session.snapshots()][-1] == ("commented on column t of a.b.v",)
    session.sql("COMMENT ON COLUMN a.b.v.x IS 'other'")
    assert session.current_snapshot().snapshot_id == first + 3


@pytest.mark.slow
def test_comments_live_as_long_as_their_view(session: dl.Session) -> None:
    session.sql("COMMENT ON COLUMN a.b.v.x IS 'a number'; ALTER VIEW a.b.v RENAME TO w")
    assert comments(session, "w") == {"x": "a number", "t": None}
    ((view_id, _, begin, end, _),) = stored(session)
    assert end is None
    session.sql("CREATE OR REPLACE VIEW a.b.w AS SELECT i AS x FROM n")
    assert comments(session, "w") == {"x": None}
    assert stored(session) == [(view_id, "i", begin, session.current_snapshot().snapshot_id, "a number")]
    session.sql("COMMENT ON COLUMN a.b.w.x IS 'again'; DROP VIEW a.b.w")
    assert all(end is not None for _, _, _, end, _ in stored(session))
    session.sql("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)")
    assert stored(session) == []


@pytest.mark.slow
def test_comments_belong_to_their_transaction(session: dl.Session) -> None:
    session.sql("BEGIN; CREATE VIEW young (one) AS SELECT 1 AS c; COMMENT ON COLUMN young.one IS 'early'")
    session.sql("COMMENT ON COLUMN young.one IS 'late'; ALTER VIEW young RENAME TO old")
    assert comments(session, "old") == {"one": "late"}
    session.sql("ROLLBACK; BEGIN; CREATE VIEW young (one) AS SELECT 1 AS c; COMMENT ON COLUMN young.one IS 'early'")
    session.sql("COMMIT")
    assert comments(session, "young") == {"one": "early"}
    assert [row[1:2] for row in stored(session)] == [("c",)]


def test_a_drop_by_another_conflicts(session: dl.Session, uri: str) -> None:
    with dl.connect(uri, alias="lake") as other:
        session.sql("BEGIN; COMMENT ON COLUMN a.b.v.x IS 'kept'")
        other.sql("DROP VIEW a.b.v")
    with pytest.raises(dl.TransactionConflictError):
        session.sql("COMMIT")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("a.b.v.i", 'a.b.v has no column "i"'),
        ("a.b.v.tt", "Did you mean t?"),
        ("twice.p", 'the view\'s query has several columns named "c"'),
        ("gone.k", "main.gone are not known: its query cannot be bound"),
    ],
)
def test_mistakes_write_nothing(session: dl.Session, column: str, message: str) -> None:
    session.sql("CREATE VIEW twice (p, q) AS SELECT 1 AS c, 2 AS c")
    session.sql("CREATE TABLE g (i INTEGER); CREATE VIEW gone (k) AS FROM g; DROP TABLE g")
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.DuckLakeError) as raised:
        session.sql(f"COMMENT ON COLUMN {column} IS 'x'")
    assert message in str(raised.value)
    assert (stored(session), session.current_snapshot().snapshot_id) == ([], before)


def test_a_lake_of_1_0_refuses_them_by_name(uri: str, tmp_path: Path) -> None:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.0") as session:
        session.sql("CREATE VIEW v AS SELECT 1 AS c")
        with pytest.raises(dl.UnsupportedFeatureError, match=r"DuckLake 1\.0 has no comments of view columns"):
            session.sql("COMMENT ON COLUMN v.c IS 'x'")


@pytest.mark.slow
def test_histories_name_entries_of_nested_schemas(session: dl.Session) -> None:
    session.sql("CREATE SCHEMA b; CREATE TABLE b.n (i INTEGER); INSERT INTO a.b.n VALUES (1, 'x'); DROP TABLE b.n")
    session.sql("DROP VIEW a.b.v; DROP SCHEMA b")
    assert [entry.changes for entry in session.table("a.b.n").history()] == [
        ("created table a.b.n",),
        ("inserted into a.b.n",),
    ]
    assert [entry.tables for entry in session.table("a.b.n").history()] == [("a.b.n",), ("a.b.n",)]
    assert [entry.changes[0] for entry in session.snapshots()][-3:] == [
        "dropped table b.n",
        "dropped view a.b.v",
        "dropped schema b",
    ]


@pytest.mark.slow
def test_browsers_show_them_and_descend_into_schemas(session: dl.Session) -> None:
    session.sql('COMMENT ON COLUMN a.b.v.x IS \'<a> number\'; CREATE SCHEMA "a.b"; CREATE TABLE "a.b".n (k DATE)')
    tree = of_catalog("lake", *session.catalog())
    drawn = render(tree)
    assert "x: &lt;a&gt; number" in drawn
    assert drawn.count("<details") == drawn.count("</details>")
    a, b = drawn.index("<b>a</b>"), drawn.index("<b>b</b>")
    assert a < b < drawn.index("</details>", b) < drawn.index("<b>a.b</b>")
    assert "</details>" not in drawn[a:b]
    assert repr(tree).splitlines()[:3] == ["a", "  b", "    n  (0 rows · 2 columns · 0 B)"]
    browser = SchemaBrowser(tree)
    assert [(name, len(entries), depth) for name, entries, _, depth in browser.nodes] == [
        ("a", 0, 0),
        ("b", 2, 1),
        ("a.b", 1, 0),
        ("main", 0, 0),
    ]
    ((n, *_), (v, *_)) = browser.nodes[1][1]
    assert browser.answer_columns({"index": v})["rows"][0] == [0, "x", "", "", "<a> number"]
    assert "FROM lake.a.b.n\n" in browser.answer_choose({"index": n})["sql"]
    assert 'FROM lake."a.b".n\n' in browser.answer_choose({"index": browser.nodes[2][1][0][0]})["sql"]
    browser.selected = ["a.b", "v"]
    assert browser.selected == ['"a"."b"', "v"]
    browser.query = "number"
    assert browser.matches == [v]
    session.sql("COMMENT ON COLUMN a.b.n.i IS 'a Weight'")
    told = SchemaBrowser(of_catalog("lake", *session.catalog()))
    told.query = "weight"
    assert [told.nodes[1][1][at][1] for at in told.matches] == ["n"]
    with pytest.raises(dl.EntryNotFoundError, match=r"Did you mean a\.b\.v"):
        browser.selected = ["a.b", "w"]
