"""The browsers of a real lake, as a session makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.widgets import browsers
from ducklake_lab.widgets.summary import of_session


@pytest.fixture
def lake(tmp_path: Path) -> str:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t FROM range(100); INSERT INTO t FROM range(50)")
    return uri


def test_each_shows_what_the_session_has(lake: str) -> None:
    with dl.connect(lake, engine="duckdb") as session:
        assert of_session(session).facts().startswith("snapshot 3 · 1 schema · 1 table · 150 rows · ")
        assert browsers.schema(session).note.startswith("snapshot 3 · 1 schema · 1 table · 150 rows · ")
        assert browsers.rows(session, "t").passing == 150
        assert [entry.rows for entry in browsers.files(session, "t")] == [100, 50]
        assert [entry.info.snapshot_id for entry in browsers.snapshots(session)] == [0, 1, 2, 3]
        assert browsers.rows(session, "t", 2).passing == 100


@pytest.mark.parametrize("read_only", [True, False])
def test_files_offer_to_mend_where_the_lake_can_be_written(lake: str, read_only: bool) -> None:
    with dl.Session(engine="duckdb") as session:
        session.attach(lake, read_only=read_only)
        browser = browsers.files(session, "t")
    assert len(browser.findings) == 1
    assert browser.can_mend is not read_only
