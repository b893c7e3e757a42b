"""Marks of a catalog's files, which prove the newest snapshot while the files are unchanged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.file_marks import FileMark, mark_of

pytestmark = pytest.mark.sampled(3)

SETTLES = 2.6
STEP = 2_500_000_000


@pytest.mark.parametrize("ending", ["", ".wal", "-wal", "-journal"])
def test_each_file_counts(tmp_path: Path, ending: str) -> None:
    catalog = tmp_path / "c.db"
    catalog.write_text("a")
    before = mark_of(catalog)
    Path(f"{catalog}{ending}").write_text("b" if ending else "ab")
    assert mark_of(catalog).files != before.files


def test_contents_of_the_same_size_count_by_their_time(tmp_path: Path) -> None:
    catalog = tmp_path / "c.db"
    catalog.write_text("a")
    before = mark_of(catalog)
    time.sleep(0.02)
    catalog.write_text("b")
    os.utime(catalog, ns=(0, before.files[0][3] if before.files[0] else 0))
    assert mark_of(catalog).files != before.files


def test_a_change_that_is_too_new_settles_nothing() -> None:
    def settled(*ages: int) -> bool:
        return FileMark(tuple((1, 2, 3, 10 * STEP - age, 10 * STEP - age) for age in ages), 10 * STEP).is_settled

    assert settled(2 * STEP, STEP + 1)
    assert not settled(2 * STEP, STEP)
    assert not settled(-STEP)
    assert FileMark((None, None), 0).is_settled


@pytest.mark.slow
def test_a_query_of_a_quiet_lake_opens_no_catalog(
    lake_uri: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, opened = lake_uri(), []
    with (
        dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as reader,
        dl.connect(uri, alias="lake") as writer,
    ):
        writer.sql("CREATE TABLE t AS SELECT 1 AS i")
        on_server = reader.current_lake.location.path is None
        begun = CatalogDatabase._begun
        monkeypatch.setattr(CatalogDatabase, "_begun", lambda self: (opened.append(1), begun(self))[1])

        def rows() -> tuple[list[tuple[int]], bool]:
            opened.clear()
            found = reader.sql("SELECT i FROM t WHERE i > 0 ORDER BY i").fetchall()
            return found, bool(opened)

        assert rows() == ([(1,)], True)
        assert rows() == ([(1,)], True)  # changed a moment ago
        time.sleep(SETTLES)
        rows()
        assert rows() == ([(1,)], on_server)
        writer.sql("INSERT INTO t VALUES (2)")
        assert rows() == ([(1,), (2,)], True)
        time.sleep(SETTLES)
        rows()
        assert rows() == ([(1,), (2,)], on_server)
        reader.sql("SET TimeZone = 'Asia/Kathmandu'")
        offset = reader.current_snapshot().snapshot_time.utcoffset()
        assert offset == timedelta(hours=5, minutes=45)
        rows()  # a read is planned for one time zone
        assert rows() == ([(1,), (2,)], on_server)
        reader.sql("BEGIN; INSERT INTO t VALUES (3); ROLLBACK")
        assert rows()[0] == [(1,), (2,)]
        reader.sql("BEGIN; INSERT INTO t VALUES (3)")
        assert rows()[0] == [(1,), (2,), (3,)]
        reader.sql("COMMIT")
        assert rows()[0] == [(1,), (2,), (3,)]
