"""Names of snapshots: they stand for ids, keep snapshots from expiry, and leave other clients alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from tests.interop.comparing import attach, detach

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(uri: str, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i; INSERT INTO t VALUES (2); DELETE FROM t WHERE i = 1")
        assert session.tag("q3-close", 2) == 2
        yield session


def rows(session: dl.Session, text: str, **given: Any) -> list[Any]:
    return session.sql(text, **given).fetchall()


@pytest.mark.slow
def test_a_tag_stands_wherever_an_id_does(session: dl.Session) -> None:
    assert rows(session, "SELECT i FROM t AT (VERSION => 'q3-close') ORDER BY i") == [(1,), (2,)]
    assert rows(session, "SELECT i FROM t AT (VERSION => 'q3-' || 'close') ORDER BY i") == [(1,), (2,)]
    assert rows(session, "SELECT i FROM t AT (VERSION => '1')") == [(1,)]
    assert rows(session, "FROM t ORDER BY i", at="q3-close") == [(1,), (2,)]
    assert session.table("t", at="q3-close").arrow().num_rows == 2
    assert [info.table.name for info in session.tables(at="q3-close")] == ["t"]
    assert session.state(at="q3-close").snapshot.snapshot_id == 2
    assert session.table("t").diff("q3-close").summary.deleted == 1
    session.tag("now")
    assert session.table("t").diff("q3-close", "now").summary.deleted == 1
    session.restore("t", "q3-close")
    assert rows(session, "FROM t ORDER BY i") == [(1,), (2,)]
    assert session.table("t").diff("q3-close", "now").summary.deleted == 1


def test_tags_make_no_snapshot_move_and_go(session: dl.Session, uri: str) -> None:
    before = session.current_snapshot()
    assert session.tag("latest") == 3
    assert session.tag("q3-close", 1) == 1
    with dl.connect(uri, alias="lake") as other:
        assert other.tags() == {"latest": 3, "q3-close": 1}
        assert other.untag("latest") == 3
    assert session.tags() == {"q3-close": 1}
    assert session.current_snapshot() == before


@pytest.mark.parametrize("name", ["", " x", "12", "2024-01-01", "2024-01-01 10:00", "a\nb", "x" * 101])
def test_names_that_could_mean_something_else_are_refused(name: str, session: dl.Session) -> None:
    with pytest.raises(dl.UsageError):
        session.tag(name)
    assert session.tags() == {"q3-close": 2}


@pytest.mark.parametrize("name", ["q3 close", "Quartal 3/2024", "%_'\"", "größer", "<b>x</b>"])
def test_other_names_are_names(name: str, session: dl.Session) -> None:
    session.tag(name, 1)
    assert session.tags()[name] == 1
    assert rows(session, "SELECT count(*) FROM t AT (VERSION => :name)", params={"name": name}) == [(1,)]
    session.untag(name)
    assert session.tags() == {"q3-close": 2}


def test_what_is_not_there_is_named(session: dl.Session) -> None:
    for run in (
        lambda: session.sql("FROM t AT (VERSION => 'q3-close.')"),
        lambda: session.table("t", at="q3-close.").schema,
        lambda: session.untag("q3-close."),
        lambda: session.restore("t", "q3-close."),
    ):
        with pytest.raises(
            dl.SnapshotNotFoundError, match=r'no snapshot with the tag "q3-close\."\. Did you mean q3-close\?'
        ):
            run()
    with pytest.raises(dl.SnapshotNotFoundError, match="There is no snapshot 99"):
        session.tag("x", 99)


@pytest.mark.every_catalog
@pytest.mark.slow
def test_tagged_snapshots_stay(session: dl.Session) -> None:
    session.sql("CALL lake.expire_snapshots(older_than => now())")
    assert [entry.info.snapshot_id for entry in session.snapshots()] == [2, 3]
    with pytest.raises(dl.CatalogError, match='Snapshot 2 has the tag "q3-close" and cannot expire; untag it first'):
        session.sql("CALL lake.expire_snapshots(versions => [2])")
    assert rows(session, "SELECT i FROM t AT (VERSION => 'q3-close') ORDER BY i") == [(1,), (2,)]
    session.untag("q3-close")
    session.sql("CALL lake.expire_snapshots(versions => [2])")
    assert [entry.info.snapshot_id for entry in session.snapshots()] == [3]


def test_a_read_only_lake_takes_none(session: dl.Session, uri: str) -> None:
    with dl.connect(uri, alias="lake", read_only=True) as other:
        assert other.tags() == {"q3-close": 2}
        for change in (lambda: other.tag("x"), lambda: other.untag("q3-close")):
            with pytest.raises(dl.TransactionError, match="read-only"):
                change()


def test_histories_show_them(session: dl.Session) -> None:
    session.tag("<b>bold</b>", 2)
    with session.transaction(message="said"):
        session.sql("INSERT INTO t VALUES (9)")
    history = session.snapshots()
    assert [entry.message for entry in history] == ["", "", "[<b>bold</b>] [q3-close]", "", "said"]
    html = history._repr_html_()
    assert "&lt;b&gt;bold" in html and "<b>bold" not in html
    browser = SnapshotBrowser(history)
    browser.query = "tag:q3"
    assert [entry.info.snapshot_id for entry in browser.shown] == [2]
    browser.query = "q3-close"
    assert [entry.info.snapshot_id for entry in browser.shown] == [2]


def test_the_reference_reads_and_keeps_them(
    lake_uri: Callable[..., str], catalog: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i")
        session.tag("q3-close")
    attach(reference, uri)
    reference.execute("INSERT INTO t VALUES (2); CALL lake.set_option('target_file_size', '10MB')")
    assert reference.execute("FROM t ORDER BY i").fetchall() == [(1,), (2,)]
    if duckdb.__version__ != "1.5.2":  # which fails at options that it does not know
        assert len(reference.execute("FROM lake.options() WHERE option_name LIKE '%q3-close'").fetchall()) == 1
    detach(reference)
    with dl.connect(uri, alias="lake") as session:
        assert session.tags() == {"q3-close": 1}
        assert session.sql("SELECT i FROM t AT (VERSION => 'q3-close')").fetchall() == [(1,)]


@pytest.mark.slow
def test_statements_say_what_they_are_for(session: dl.Session) -> None:
    session.sql("CALL lake.set_option('require_commit_message', true)")
    with pytest.raises(dl.TransactionError, match="requires a commit message"):
        session.sql("INSERT INTO t VALUES (7)")
    session.sql("INSERT INTO t VALUES (7); UPDATE t SET i = 8 WHERE i = 7; FROM t", message='it\'s "said"')
    session.sql("BEGIN; INSERT INTO t VALUES (9)", message="first")
    session.sql("INSERT INTO t VALUES (10)", message="last")
    session.sql("INSERT INTO t VALUES (11); COMMIT")
    session.preview("DELETE FROM t WHERE i > 8", message="previewed").commit()
    with session.transaction(message="whole"):
        session.sql("INSERT INTO t VALUES (12)")
    found = [entry.info.commit_message for entry in session.snapshots(last=5)]
    assert found == ['it\'s "said"', 'it\'s "said"', "last", "previewed", "whole"]
