"""Patches of diffs: what they hold, what is refused, and where they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main
from ducklake_lab.diff import compute, patch

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(tmp_path: Path, lake_uri: Callable[..., str]) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(
            "CREATE TABLE t (k INTEGER, v BIGINT, n VARCHAR); INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')"
        )
        yield session


def newest(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


def test_a_patch_writes_the_cells_that_differ_and_no_others(session: dl.Session) -> None:
    start = newest(session)
    session.sql(
        "UPDATE t SET v = 10 WHERE k = 1; UPDATE t SET n = 'it''s', v = NULL WHERE k = 2; DELETE FROM t WHERE k = 3"
    )
    end = newest(session)
    found = session.table("t").diff(start).patch().splitlines()
    comment = [line for line in found if line.startswith("--")]
    assert comment[0] == (
        f"-- Turns main.t as of snapshot {start} into what it is as of snapshot {end}: 0 rows inserted, 2 updated, 1 deleted."
    )
    assert any("no row ids of inserted rows" in line for line in comment)
    assert found[len(comment) :] == [
        "BEGIN TRANSACTION;",
        'DELETE FROM "main"."t" WHERE rowid IN (2);',
        'UPDATE "main"."t" AS t SET "v" = CAST(p."v" AS BIGINT)',
        "FROM (VALUES",
        '  (0, 10)) AS p(row_id, "v")',
        "WHERE t.rowid = p.row_id;",
        'UPDATE "main"."t" AS t SET "v" = CAST(p."v" AS BIGINT), "n" = CAST(p."n" AS VARCHAR)',
        "FROM (VALUES",
        "  (1, NULL, 'it''s')) AS p(row_id, \"v\", \"n\")",
        "WHERE t.rowid = p.row_id;",
        "COMMIT;",
    ]


@pytest.mark.slow
def test_a_patch_makes_one_snapshot_that_ours_reads(session: dl.Session) -> None:
    start = newest(session)
    session.sql("UPDATE t SET v = 10 WHERE k = 1; DELETE FROM t WHERE k = 3; INSERT INTO t VALUES (4, 4, NULL)")
    end = newest(session)
    session.sql(session.table("t").diff(start).patch(revert=True))
    assert newest(session) == end + 1
    assert session.sql("FROM t ORDER BY ALL").fetchall() == [(1, 1, "a"), (2, 2, "b"), (3, 3, "c")]
    assert "Nothing differs" in session.table("t").diff(end, end).patch()


def test_a_transaction_is_patched_before_it_is_committed(session: dl.Session) -> None:
    with session.transaction() as tx:
        session.sql("UPDATE t SET v = 10 WHERE k = 1")
        found = tx.diff().patch()
        with pytest.raises(dl.UsageError, match="ROLLBACK is their way back"):
            tx.diff().patch(revert=True)
        tx.rollback()
    session.sql(found)
    assert session.sql("SELECT v FROM t WHERE k = 1").fetchall() == [(10,)]


@pytest.mark.slow
def test_what_is_refused(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    start = newest(session)
    session.sql("ALTER TABLE t ADD COLUMN s STRUCT(a INTEGER); ALTER TABLE t ALTER k SET DATA TYPE BIGINT")
    retyped = newest(session)
    with pytest.raises(dl.UnsupportedFeatureError, match="makes INTEGER of column k, which is BIGINT"):
        session.table("t").diff(start).patch(revert=True)
    session.sql("ALTER TABLE t ADD COLUMN s.b INTEGER")
    with pytest.raises(dl.UnsupportedFeatureError, match="s has other fields"):
        session.table("t").diff(retyped).patch()
    dropped = newest(session)
    session.sql("ALTER TABLE t DROP COLUMN v")
    with pytest.raises(dl.UnsupportedFeatureError, match=f"Column v was dropped.* %ducklake restore t {dropped}"):
        session.table("t").diff(dropped).patch(revert=True)
    session.sql("DELETE FROM t")
    monkeypatch.setattr(patch, "MAX_ROWS", 2)
    with pytest.raises(dl.UsageError, match="3 rows differ, and a patch holds 2: diff fewer snapshots"):
        session.table("t").diff(dropped).patch()
    session.sql("CREATE TABLE r (rowid INTEGER); INSERT INTO r VALUES (1)")
    with pytest.raises(dl.UnsupportedFeatureError, match="r has a column rowid"):
        session.table("r").diff(newest(session) - 1).patch()
    with session.transaction() as tx:
        session.sql("CREATE TABLE made AS SELECT 1 AS a")
        with pytest.raises(dl.UnsupportedFeatureError, match="Only one of the two states has the table"):
            tx.diff().patch()
        tx.rollback()


@pytest.mark.slow
def test_a_key_must_find_one_row_each(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("INSERT INTO t VALUES (2, 20, 'unchanged')")
    start = newest(session)
    session.sql("UPDATE t SET n = 'x' WHERE v = 2; INSERT INTO t VALUES (7, 7, NULL)")
    with pytest.raises(dl.UsageError, match="k is no key: 1 more rows"):
        session.table("t").diff(start, key=["k"]).patch()
    assert "rowid" not in session.table("t").diff(start, key=["k", "v"]).patch()
    monkeypatch.setattr(compute, "reading", lambda _plan: None)
    with pytest.raises(dl.UsageError, match="too many rows to check that k is a key"):
        session.table("t").diff(start, key=["k"]).patch()


@pytest.mark.slow
def test_names_that_would_end_a_comment(session: dl.Session) -> None:
    session.sql('CREATE TABLE "x\n; DROP TABLE t; --" (i INTEGER)')
    start = newest(session)
    session.sql('INSERT INTO "x\n; DROP TABLE t; --" VALUES (1)')
    found = session.table('"x\n; DROP TABLE t; --"').diff(start).patch()
    assert found.index("\nBEGIN TRANSACTION") < found.index('"x\n; DROP')
    session.sql(found)
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(3,)]


@pytest.mark.slow
def test_files(session: dl.Session, tmp_path: Path) -> None:
    start = newest(session)
    session.sql("UPDATE t SET n = 'a' || chr(13) || chr(10) WHERE k = 1")
    diff = session.table("t").diff(start)
    for name, made in (("d.sql", diff.patch()), ("d.JSON", diff.to_json()), ("d.html", diff.to_html())):
        diff.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().decode() == made
    with pytest.raises(dl.UsageError, match=r"as \.html, \.json or \.sql, not d\.txt"):
        diff.save(tmp_path / "d.txt")
    with pytest.raises(dl.UsageError, match="cannot be written to"):
        diff.save(tmp_path / "missing" / "d.sql")


def test_at_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/lake.sqlite"
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i; UPDATE t SET i = 2")
        expected = session.table("t").diff(1).patch(revert=True)
    assert main(["diff", uri, "t", "1", "--patch", f"{tmp_path}/back.sql", "--revert"]) == 0
    assert (tmp_path / "back.sql").read_text() == expected
    assert main(["diff", uri, "t", "1", "--revert"]) == 2
    assert "--patch FILE" in capsys.readouterr().err
    assert main(["diff", uri, "t", "1", "--changed", "i", "--kind", "updated"]) == 0
    assert "→ 0  i=1→2" in capsys.readouterr().out
