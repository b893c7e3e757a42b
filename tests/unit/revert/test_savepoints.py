"""A revert that fails leaves the open transaction as it was: what was staged before is committed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    """A lake with `t (i, v, w)` of 60 rows in a file, the first ones without `v`, and two inlined ones."""
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as opened:
        opened.sql("CREATE TABLE t (i INTEGER, v VARCHAR, w INTEGER)")
        opened.sql("INSERT INTO t SELECT i, CASE WHEN i > 30 THEN 'v' || i END, i FROM range(60) r(i)")
        opened.sql("INSERT INTO t VALUES (100, NULL, 100), (101, 'v101', 101)")
        yield opened


#: A snapshot, what came later, and the refusal of its revert.
REFUSED = {
    "rows without a value": (
        "DELETE FROM t WHERE i < 35 OR i = 100",
        "ALTER TABLE t ALTER v SET NOT NULL",
        dl.ConstraintError,
        r"32 rows of main\.t would have no value in v with snapshot \d+, and v is NOT NULL, row 0 first; ALTER v DROP NOT NULL",
    ),
    "cells without a value": (
        "UPDATE t SET v = 'x' WHERE v IS NULL",
        "ALTER TABLE t ALTER v SET NOT NULL",
        dl.ConstraintError,
        r"32 rows of main\.t would have no value in v",
    ),
    "younger rows without a value": (
        "BEGIN; ALTER TABLE t ALTER w DROP NOT NULL; DELETE FROM t WHERE i < 40; COMMIT",
        "INSERT INTO t SELECT 200 + i, 'x', NULL FROM range(30) r(i)",
        dl.ConstraintError,
        r"Column w of main\.t cannot become NOT NULL with snapshot \d+",
    ),
    "the name of a table": (
        "BEGIN; UPDATE t SET w = 0 WHERE i < 40; DROP TABLE p; COMMIT",
        "CREATE VIEW p AS SELECT 1 AS x",
        dl.EntryExistsError,
        r"main\.p cannot come back, as another table or view has the name now",
    ),
    "the name of a macro": (
        "BEGIN; UPDATE t SET w = 0 WHERE i < 40; DROP MACRO m; COMMIT",
        "CREATE MACRO m(x) AS x",
        dl.EntryExistsError,
        "The macro m cannot come back",
    ),
    "the schema of a view": (
        "BEGIN; UPDATE t SET w = 0 WHERE i < 40; DROP VIEW s.v; COMMIT",
        "DROP SCHEMA s",
        dl.EntryNotFoundError,
        "The schema of v has been dropped since",
    ),
}


@pytest.mark.parametrize(("change", "later", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_a_refused_revert_changes_nothing(
    session: dl.Session, tmp_path: Path, change: str, later: str, error: type[dl.DuckLakeError], message: str
) -> None:
    session.sql("ALTER TABLE t ALTER w SET NOT NULL; CREATE TABLE p (i INTEGER); CREATE MACRO m(x) AS 2 * x")
    session.sql("CREATE SCHEMA s; CREATE VIEW s.v AS SELECT 1 AS i")
    session.sql(change)
    made = session.current_snapshot().snapshot_id
    session.sql(later)
    before, count = files(tmp_path), session.current_snapshot().snapshot_id
    with pytest.raises(error, match=message):
        session.revert_preview(made)
    with pytest.raises(error, match=message):
        session.revert(made)
    assert files(tmp_path) == before and session.current_snapshot().snapshot_id == count

    session.sql("BEGIN")
    session.sql("UPDATE t SET v = 'mine' WHERE i BETWEEN 50 AND 55")
    session.sql("INSERT INTO t SELECT 300 + i, 'mine', 0 FROM range(20) r(i)")
    session.sql("DELETE FROM t WHERE i IN (56, 101)")
    mine, staged = session.sql("SELECT rowid, * FROM t ORDER BY ALL").fetchall(), files(tmp_path)
    with pytest.raises(error, match=message):
        session.revert(made)
    assert session.sql("SELECT rowid, * FROM t ORDER BY ALL").fetchall() == mine
    assert files(tmp_path) == staged
    session.sql("DELETE FROM t WHERE i = 57")
    session.sql("COMMIT")
    assert session.sql("SELECT rowid, * FROM t ORDER BY ALL").fetchall() == [row for row in mine if row[1] != 57]
    assert session.current_snapshot().snapshot_id == count + 1


def files(folder: Path) -> set[str]:
    return {str(path) for path in (folder / "data").rglob("*.parquet")}
