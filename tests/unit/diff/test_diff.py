"""Diffs of real lakes, in process: pairing, net effect, schema, segments, two tables, transactions."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.diff import baseline_stats
from ducklake_lab.diff.diff import Diff
from ducklake_lab.widgets.diff_text import text

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(tmp_path: Path, lake_uri: Callable[..., str]) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


def counts(diff: Diff) -> tuple[int, int, int, int]:
    s = diff.summary
    return s.inserted, s.deleted, s.updated, s.unchanged


def newest(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


@pytest.mark.slow
def test_a_range_is_folded_to_its_net_effect(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    start = newest(session)
    session.sql("UPDATE t SET s = 'x' WHERE i = 1")
    session.sql("UPDATE t SET s = 'a' WHERE i = 1")  # as it was
    session.sql("UPDATE t SET s = 'y' WHERE i = 2")
    session.sql("UPDATE t SET s = 'z' WHERE i = 2")
    session.sql("INSERT INTO t VALUES (4, 'd')")
    session.sql("DELETE FROM t WHERE i IN (3, 4)")  # 4 came and went
    diff = session.table("t").diff(start)
    assert counts(diff) == (0, 1, 1, 1)
    assert diff.summary.cells == 1
    assert [(row.kind, row.changed) for row in diff.rows()] == [("updated", ("s",)), ("deleted", ())]
    assert diff.rows()[0].after == {"i": 2, "s": "z"}
    assert [entry.info.snapshot_id for entry in diff.history] == list(range(start + 1, start + 7))
    assert "6 snapshots" in diff._repr_html_()


def test_a_snapshot_beside_itself_is_committed(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    session.sql("INSERT INTO t VALUES (2)")
    for at in (newest(session) - 1, newest(session)):
        diff = session.table("t").diff(at, at)
        assert diff.end is not None and diff.end.snapshot_id == at
        assert f"snapshot {at} → {at}" in text(diff)
    session.sql("BEGIN; ALTER TABLE t ADD COLUMN s VARCHAR")
    assert session.table("t").diff(newest(session)).end is None
    session.sql("ROLLBACK; BEGIN; INSERT INTO t VALUES (3)")
    assert session.table("t").diff(newest(session)).end is None
    session.sql("ROLLBACK")


def test_bins_have_edges_of_their_own_and_the_values_at_the_ends(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i BIGINT, f DOUBLE, d DATE)")
    start = newest(session)
    session.sql(
        "INSERT INTO t SELECT 12345678900 + i, 1e6 + i / 1000, DATE '2024-01-01' + i::INTEGER FROM range(100) r(i)"
    )
    found = [column.histogram for column in session.table("t").diff(start).columns]
    assert all(histogram is not None and len(set(histogram.labels)) == len(histogram.labels) for histogram in found)
    ends = [(histogram.smallest, histogram.largest) for histogram in found if histogram is not None]
    assert ends == [("12345678900", "12345678999"), ("1000000.0", "1000000.099"), ("2024-01-01", "2024-04-09")]


def test_extremes_have_bins(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (f DOUBLE)")
    start = newest(session)
    session.sql("INSERT INTO t SELECT (i - 10) * 1.7e307 FROM range(21) r(i)")
    (column,) = session.table("t").diff(start).columns
    assert column.histogram is not None
    assert (sum(column.histogram.after), column.histogram.smallest, column.histogram.largest) == (
        21,
        "-1.7e+308",
        "1.7e+308",
    )
    assert sum(session.table("t").view().profile("f").bins) == 21


def test_categories_that_are_not_listed_are_counted(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (s VARCHAR)")
    start = newest(session)
    session.sql("INSERT INTO t SELECT 'v' || least(i, 40) % 41 FROM range(200) r(i)")
    diff = session.table("t").diff(start)
    histogram = diff.columns[0].histogram
    assert histogram is not None
    assert (len(histogram.labels), histogram.more) == (8, 33)
    assert (histogram.labels[0], histogram.after[0]) == ("v40", 160)
    assert "33 rarer values" in diff._repr_html_()
    assert diff.plot().layout.annotations[1].text == "s, 33 rarer not shown"


@pytest.mark.slow
def test_values_read_as_in_results(session: dl.Session) -> None:
    values = (
        "{'tags': ['a', NULL]}", "MAP {'k': ['v']}", "INTERVAL '1 month 2 days'", "TIME '12:34:56.5'", "DATE '-infinity'",
        "TIMESTAMP 'infinity'", "DATE '0044-03-15 (BC)'", "TIMESTAMPTZ '2024-06-01 12:00:00+02'", "'1.50'::DECIMAL(9, 2)",
        "1e20::FLOAT", "'{\"a\": [1]}'::JSON", "'6ccc6a3b-1a6e-4a6b-9d83-d2e4a3b1c001'::UUID",
    )  # fmt: skip
    listed = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
    session.sql(f"CREATE TABLE t AS SELECT {listed} LIMIT 0")
    start = newest(session)
    session.sql(f"INSERT INTO t SELECT {listed}")
    diff = session.table("t").diff(start)
    texts = session.sql(f"SELECT {', '.join(f'c{i}::VARCHAR' for i in range(len(values)))} FROM t").fetchall()[0]
    page = " ".join(html.unescape(re.sub("<[^>]+>", " ", diff._repr_html_())).split())
    assert " ".join(texts) in page
    assert "  ".join(f"c{i}={shown}" for i, shown in enumerate(texts)) in text(diff)


@pytest.mark.slow
def test_columns_that_were_renamed_dropped_and_added_are_told_as_such(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, was VARCHAR, gone INTEGER); INSERT INTO t VALUES (1, 'a', 7), (2, 'b', 8)")
    start = newest(session)
    session.sql("ALTER TABLE t RENAME COLUMN was TO name; ALTER TABLE t DROP COLUMN gone")
    session.sql("ALTER TABLE t ADD COLUMN gone VARCHAR; UPDATE t SET name = 'B', gone = 'new' WHERE i = 2")
    diff = session.table("t").diff(start)
    assert [(change.kind, (change.after or change.before or ("",))[0]) for change in diff.schema] == [
        ("renamed", "name"),
        ("added", "gone"),
        ("dropped", "gone"),
    ]
    (row,) = diff.rows()
    assert row.before == {"i": 2, "name": "b", "gone": None, "gone (dropped)": 8}
    assert row.after == {"i": 2, "name": "B", "gone": "new"}
    assert [column.renamed_from for column in diff.columns] == [None, "was", None]
    assert "was was" in diff._repr_html_().replace("</span>", "").replace('<span class="dlk-soft">', "")


def test_a_table_made_anew_needs_a_key(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (NULL, 'n')")
    start = newest(session)
    session.sql("CREATE OR REPLACE TABLE t (i INTEGER, s VARCHAR, more DOUBLE)")
    session.sql("INSERT INTO t VALUES (1, 'a', NULL), (2, 'B', NULL), (4, 'd', 0.5), (NULL, 'n', NULL)")
    with pytest.raises(dl.UsageError, match='key=\\["id"\\] or --key'):
        session.table("t").diff(start)
    diff = session.table("t").diff(start, key=["I"])
    assert counts(diff) == (1, 1, 1, 2)
    assert [(change.kind, change.after) for change in diff.schema] == [("added", ("more", "DOUBLE"))]
    assert {row.kind: (row.before or row.after or {})["i"] for row in diff.rows()} == {
        "updated": 2,
        "deleted": 3,
        "inserted": 4,
    }


def test_two_tables_are_compared_by_key(session: dl.Session) -> None:
    session.sql("CREATE TABLE a (id INTEGER, x INTEGER, only_a INTEGER); INSERT INTO a VALUES (1, 1, 0), (2, 2, 0)")
    session.sql("CREATE TABLE b (x INTEGER, id INTEGER); INSERT INTO b VALUES (1, 1), (5, 2), (6, 3)")
    diff = session.table("a").diff(newest(session), other="b", key=["id"])
    assert counts(diff) == (1, 0, 1, 1)
    assert diff.other == "lake.main.b"
    assert [(change.kind, (change.before or ("",))[0]) for change in diff.schema] == [("dropped", "only_a")]
    with pytest.raises(dl.EntryNotFoundError, match='no column "nr" to pair'):
        session.table("a").diff(newest(session), other="b", key=["nr"])


def test_a_key_that_is_none_is_told(session: dl.Session) -> None:
    session.sql("CREATE TABLE a (id INTEGER); INSERT INTO a VALUES (1), (1), (1)")
    with pytest.raises(dl.UsageError, match="id is no key: in the earlier state 2 rows"):
        session.table("a").diff(0 + newest(session), other="a", key=["id"]) if False else _other(session)


def _other(session: dl.Session) -> Diff:
    session.sql("CREATE TABLE b (id INTEGER); INSERT INTO b VALUES (1)")
    return session.table("a").diff(newest(session), other="b", key=["id"])


def test_segments_say_where_changes_concentrate(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, carrier VARCHAR, n INTEGER, fixed INTEGER)")
    carriers = ["UA" if n % 10 < 3 else "it's" for n in range(1000)]
    rows = {"i": range(1000), "carrier": carriers, "n": pa.nulls(1000, pa.int32()), "fixed": [1] * 1000}
    session.write(pa.table({name: values if name == "n" else pa.array(values) for name, values in rows.items()}), "t")
    start = newest(session)
    session.sql("UPDATE t SET n = 5 WHERE carrier = 'UA' AND i < 100")
    diff = session.table("t").diff(start)
    told = {pattern.condition: pattern.share for pattern in diff.patterns}
    assert told["carrier = 'UA'"] == 1.0
    assert not any("fixed" in condition for condition in told)
    assert not any(condition == "n IS NULL" for condition in told)  # so are all others


@pytest.mark.slow
def test_segments_are_ranked_by_how_rare_they_are_among_unchanged_rows(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE t AS SELECT i::INTEGER AS id, CASE WHEN i % 100 = 0 THEN 2400 ELSE i % 2000 END AS arrival, "
        "(i * 7919 % 9973)::DOUBLE AS delay, CASE WHEN i % 4 = 0 THEN 'B6' ELSE 'UA' END AS \"the carrier\" FROM range(10000) r(i)"
    )
    start = newest(session)
    session.sql("UPDATE t SET arrival = 0 WHERE arrival = 2400 OR id IN (1, 2, 3, 4, 6); DELETE FROM t WHERE id = 7")
    diff = session.table("t").diff(start)
    first, second, *others = [pattern for pattern in diff.patterns if pattern.kind == "updated"]
    assert (first.condition, first.rows, first.unchanged_share) == ("arrival = 2400", 100, 0.0)
    assert second.condition == "\"the carrier\" = 'B6'"
    assert not any("delay" in pattern.condition for pattern in others)  # holds for as many of all others
    changed = f"SELECT id FROM t AT (VERSION => {start}) WHERE arrival = 2400 OR id IN (1, 2, 3, 4, 6)"
    for pattern in (first, second, *others):
        ((updated, same, all_updated, all_same),) = session.sql(
            f"""SELECT count(*) FILTER (u AND c), count(*) FILTER (NOT u AND id <> 7 AND c), count(*) FILTER (u),
            count(*) FILTER (NOT u AND id <> 7)
            FROM (SELECT id, id IN ({changed}) AS u, {pattern.condition} AS c FROM t AT (VERSION => {start}))"""
        ).fetchall()
        assert pattern.rows == updated
        assert (pattern.share, pattern.unchanged_share) == (updated / all_updated, same / all_same)
    assert "arrival = 2400</code>, <b>0%</b> of unchanged rows" in diff._repr_html_()
    assert "95% of updated rows have arrival = 2400, 0% of unchanged rows" in text(diff)


def test_a_range_is_that_of_all_rows_unless_a_few_lie_far_away(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i::INTEGER AS id, 0 AS v FROM range(10000) r(i)")
    start = newest(session)
    session.sql("UPDATE t SET v = 1 WHERE id < 1000")
    conditions = {one.condition: (one.share, one.rows) for one in session.table("t").diff(start).patterns}
    assert conditions == {"id BETWEEN 0 AND 999": (1.0, 1000)}
    start = newest(session)
    session.sql("UPDATE t SET v = 2 WHERE id < 990 OR id > 9989")
    conditions = {one.condition: (one.share, one.rows) for one in session.table("t").diff(start).patterns}
    ((condition, (share, rows)),) = [item for item in conditions.items() if "id BETWEEN" in item[0]]
    ((inside,),) = session.sql(f"SELECT count(*) FROM t WHERE v = 2 AND {condition}").fetchall()
    assert (rows, share) == (inside, inside / 1000)
    assert 0.94 < share < 1.0


def test_segments_of_a_table_too_large_to_compare(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_stats, "MAX_COMPARED_ROWS", 99)
    session.sql("CREATE TABLE t AS SELECT i::INTEGER AS id, i % 7 AS n, 1 AS same FROM range(100) r(i)")
    start = newest(session)
    session.sql("DELETE FROM t WHERE n = 3")
    (pattern,) = session.table("t").diff(start).patterns
    assert (pattern.condition, pattern.share, pattern.unchanged_share) == ("n = 3", 1.0, None)


@pytest.mark.slow
def test_without_a_snapshot_the_last_change_is_shown(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); CREATE TABLE other (i INTEGER)")
    with pytest.raises(dl.SnapshotNotFoundError, match=r"Snapshot 1 made main\.t; there is no earlier state"):
        session.table("t").diff()
    session.sql("INSERT INTO t FROM range(5)")
    session.sql("UPDATE t SET i = 10 WHERE i > 2")
    changed = newest(session)
    session.sql("INSERT INTO other VALUES (1); CALL lake.flush_inlined_data()")
    assert newest(session) > changed
    diff = session.table("t").diff()
    assert (diff.start.snapshot_id, diff.end.snapshot_id, counts(diff)) == (changed - 1, changed, (0, 0, 2, 3))
    before = session.table("t").diff(end=changed - 1)
    assert (before.end.snapshot_id, counts(before)) == (changed - 1, (5, 0, 0, 0))
    with session.transaction() as tx:
        session.sql("DELETE FROM t WHERE i = 10")
        assert counts(session.table("t").diff()) == (0, 2, 0, 3)
        assert counts(session.table("t").diff(end=changed)) == (0, 0, 2, 3)
        tx.rollback()
    with pytest.raises(dl.UsageError, match=r"Say which snapshot of main\.t is compared with other"):
        session.table("t").diff(other="other")


@pytest.mark.slow
def test_the_open_transaction_as_diffs(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2); CREATE TABLE gone AS SELECT 1 AS a")
    with session.transaction() as tx:
        session.sql("UPDATE t SET i = 3 WHERE i = 2; CREATE TABLE made (x INTEGER); INSERT INTO made VALUES (7)")
        session.sql("DROP TABLE gone")
        found = {diff.table: counts(diff) for diff in tx.diffs()}
        assert found == {"main.gone": (0, 1, 0, 0), "main.made": (1, 0, 0, 0), "main.t": (0, 0, 1, 1)}
        assert counts(tx.diff("made")) == (1, 0, 0, 0)
        with pytest.raises(dl.UsageError, match="say which"):
            tx.diff()
        tx.rollback()


@pytest.mark.slow
def test_a_preview_is_committed_or_rolled_back(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2)")
    before = newest(session)
    preview = session.preview("DELETE FROM t WHERE i = 1")
    assert (preview.state, counts(preview.diffs[0])) == ("open", (0, 1, 0, 1))
    with pytest.raises(dl.TransactionError, match="open already"):
        session.preview("DELETE FROM t")
    preview.rollback()
    assert (preview.state, newest(session)) == ("rolled back", before)
    with pytest.raises(dl.TransactionError, match="rolled back already"):
        preview.commit()

    preview = session.preview("DELETE FROM t WHERE i = :gone", {"gone": 2})
    snapshot = preview.commit(message="two is gone", author="ana")
    assert snapshot is not None
    assert (preview.state, session.snapshots()[-1].info.commit_message) == ("committed", "two is gone")

    preview = session.preview("INSERT INTO t VALUES (9)")
    session.sql("COMMIT")  # in another cell
    assert preview.state == "committed"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT 1", dl.UsageError, "change nothing"),
        ("INSERT INTO t VALUES (3); COMMIT", dl.UsageError, "leave BEGIN, COMMIT and ROLLBACK out"),
        ("PREPARE a AS COMMIT; INSERT INTO t VALUES (3); EXECUTE a", dl.UsageError, "leave BEGIN, COMMIT"),
        ("INSERT INTO t VALUES (3); ROLLBACK; INSERT INTO t VALUES (4)", dl.UsageError, "leave BEGIN, COMMIT"),
        ("COPY t TO '{folder}/a.csv'; INSERT INTO t VALUES (3)", dl.UsageError, "COPY has effects"),
        ("ATTACH '{folder}/a.db' AS a", dl.UsageError, "ATTACH has effects"),
        ("DETACH lake", dl.UsageError, "DETACH has effects"),
        ("CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b'); DELETE FROM t", dl.UsageError, "CREATE has effects"),
        ("INSTALL spatial", dl.UsageError, "INSTALL has effects"),
        ("INSERT INTO t VALUES (3); SELECT nothing", dl.DuckLakeError, "nothing"),
    ],
)
def test_what_cannot_be_previewed_changes_nothing(
    session: dl.Session, text: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    session.sql("CREATE TABLE t (i INTEGER)")
    secrets = session.sql("FROM duckdb_secrets()").fetchall()  # the user may have some
    with pytest.raises(error, match=message):
        session.preview(text.format(folder=folder))
    session.sql("BEGIN; ROLLBACK")
    assert session.sql("FROM t").fetchall() == [] and session.current_snapshot().snapshot_id == 1
    assert list(folder.iterdir()) == [] and session.sql("FROM duckdb_secrets()").fetchall() == secrets


def test_machines_and_pages(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t (d DATE, b BLOB, x DOUBLE, l INTEGER[], m DECIMAL(5,2))")
    start = newest(session)
    session.sql("INSERT INTO t VALUES (DATE '2026-03-02', '\\xAB'::BLOB, 'nan', [1, NULL], 1.5)")
    diff = session.table("t").diff(start)
    (row,) = json.loads(diff.to_json())["rows"]
    assert row["after"] == {"d": "2026-03-02", "b": "ab", "x": "nan", "l": [1, None], "m": "1.50"}
    page = diff.to_html(tmp_path / "diff.html")
    assert (tmp_path / "diff.html").read_text() == page
    assert page.startswith("<!doctype html>")
    assert not any(mark in page for mark in ("http://", "https://", "<script", "<link"))


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, ["k"]])
def test_back_in_time_is_the_mirror_image(session: dl.Session, key: list[str] | None) -> None:
    session.sql("CREATE TABLE t AS SELECT i::INTEGER AS k, 0 AS v FROM range(200) r(i)")
    start = newest(session)
    session.sql(
        "UPDATE t SET v = 1 WHERE k = 5; DELETE FROM t WHERE k BETWEEN 10 AND 60; UPDATE t SET v = 2 WHERE k > 150"
    )
    session.sql("INSERT INTO t VALUES (500, 1), (501, 2)")
    end = newest(session)
    forth, back = session.table("t").diff(start, end, key=key), session.table("t").diff(end, start, key=key)
    assert counts(forth) == (2, 51, 50, 99)
    assert counts(back) == (51, 2, 50, 99)
    mirrored = {"inserted": "deleted", "deleted": "inserted", "updated": "updated"}
    assert [(row.row_id, row.kind, row.before, row.after) for row in back.rows(1000)] == [
        (row.row_id, mirrored[row.kind], row.after, row.before) for row in forth.rows(1000)
    ]


@pytest.mark.slow
def test_a_column_that_is_back_is_in_no_statement(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT 1 AS k, 2 AS v")
    whole = newest(session)
    session.sql("ALTER TABLE t DROP COLUMN v")
    start = newest(session)
    session.restore("t", whole)
    diff = session.table("t").diff(start)
    for make in (diff.sql, diff.patch):
        with pytest.raises(dl.UnsupportedFeatureError, match="Column v was dropped before the earlier state"):
            make()
    assert 'DROP COLUMN "v"' in session.table("t").diff(whole, start).patch()
