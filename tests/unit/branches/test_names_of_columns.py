"""Sort keys and expectations follow the columns that they name, in merges, reverts and restores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from tests.unit.branches.test_merging import on_branch, rows

#: On one side a key or an expectation that names a column.
NAMING = ["ALTER TABLE t SET SORTED BY (a DESC, i + a)", "ALTER TABLE t EXPECT positive CHECK (a > 0)"]


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i, i + 1 AS a FROM range(20) r(i)")
        yield session


def check_renamed(session: dl.Session, naming: str) -> None:
    expected = ["z", "(i + z)"] if "SORTED" in naming else ['CHECK ("z" > 0)']
    table = session.state().table("main", "t")
    if table.sort is not None:
        assert [key.expression for key in table.sort.keys] == expected
    else:
        assert [row[2] for row in session.sql("CHECK t").fetchall()] == expected
        with pytest.raises(dl.ExpectationError):
            session.sql("INSERT INTO t VALUES (100, -1)")
    session.sql("INSERT INTO t SELECT i + 100, i + 1 FROM range(30) r(i)")
    assert rows(session, "SELECT count(*), sum(z) FROM t") == [(50, 210 + 465)]


@pytest.mark.parametrize("naming", NAMING)
@pytest.mark.parametrize("here", [True, False])
def test_a_merge_names_columns_as_they_are(session: dl.Session, naming: str, here: bool) -> None:
    session.branch("fix")
    one, other = (naming, "ALTER TABLE t RENAME a TO z") if here else ("ALTER TABLE t RENAME a TO z", naming)
    session.sql(one)
    on_branch(session, other)
    session.merge("fix")
    check_renamed(session, naming)


@pytest.mark.parametrize("naming", NAMING)
@pytest.mark.parametrize("here", [True, False])
def test_a_merge_that_drops_a_named_column_is_refused(session: dl.Session, naming: str, here: bool) -> None:
    session.branch("fix")
    one, other = (naming, "ALTER TABLE t DROP COLUMN a") if here else ("ALTER TABLE t DROP COLUMN a", naming)
    session.sql(one)
    on_branch(session, other)
    with pytest.raises(dl.UnsupportedFeatureError, match="has no column a with the branch"):
        session.merge("fix")


@pytest.mark.parametrize("naming", NAMING)
@pytest.mark.parametrize("undo", ["revert", "restore"])
def test_a_name_that_comes_back_is_named(session: dl.Session, naming: str, undo: str) -> None:
    session.sql("ALTER TABLE t RENAME a TO z; ALTER TABLE t RENAME z TO y")
    session.sql(naming.replace("a ", "y ").replace("+ a", "+ y"))
    if undo == "revert":
        session.revert(3)
    else:
        session.restore("t", 2)
    check_renamed(session, naming)


@pytest.mark.parametrize("naming", NAMING)
@pytest.mark.parametrize("undo", ["revert", "restore"])
def test_a_named_column_that_would_go_is_refused(session: dl.Session, naming: str, undo: str) -> None:
    session.sql("ALTER TABLE t ADD COLUMN y INTEGER")
    session.sql(naming.replace("a ", "y ").replace("+ a", "+ y"))
    with pytest.raises(dl.UnsupportedFeatureError, match="no column y"):
        _ = session.revert(2) if undo == "revert" else session.restore("t", 1)


def test_names_that_change_places_change_at_once(session: dl.Session) -> None:
    session.sql("ALTER TABLE t SET SORTED BY (i, a DESC); ALTER TABLE t EXPECT less CHECK (i < a)")
    session.branch("fix")
    on_branch(session, "ALTER TABLE t RENAME a TO x", "ALTER TABLE t RENAME i TO a", "ALTER TABLE t RENAME x TO i")
    session.sql("COMMENT ON TABLE t IS 'here'")
    session.merge("fix")
    table = session.state().table("main", "t")
    assert table.sort is not None and [key.expression for key in table.sort.keys] == ["a", "i"]
    assert [row[2] for row in session.sql("CHECK t").fetchall()] == ['CHECK ("a" < "i")']


def test_sort_keys_that_both_sides_renamed_are_no_conflict(session: dl.Session) -> None:
    session.sql("ALTER TABLE t SET SORTED BY (i, a DESC)")
    session.branch("fix")
    session.sql("ALTER TABLE t RENAME i TO k")
    on_branch(session, "ALTER TABLE t RENAME a TO z")
    session.merge("fix")
    table = session.state().table("main", "t")
    assert table.sort is not None and [key.expression for key in table.sort.keys] == ["k", "z"]


def test_a_reference_knows_a_new_column_by_its_id_in_the_lake(session: dl.Session) -> None:
    session.sql("CREATE TABLE p AS SELECT 1 AS k")
    session.branch("fix")
    on_branch(
        session,
        "ALTER TABLE p ADD COLUMN x INTEGER",
        "UPDATE p SET x = 7",
        "ALTER TABLE t EXPECT up (a) REFERENCES p(x)",
        "CREATE TABLE c (x INTEGER)",
        "ALTER TABLE c EXPECT up (x) REFERENCES p(x)",
    )
    session.sql("ALTER TABLE p ADD COLUMN y INTEGER; UPDATE p SET y = 8")
    session.merge("fix")
    session.sql("INSERT INTO c VALUES (7); INSERT INTO t VALUES (50, 7)")
    for statement in ("INSERT INTO c VALUES (8)", "INSERT INTO t VALUES (51, 8)"):
        with pytest.raises(dl.ExpectationError):
            session.sql(statement)


def test_an_expectation_knows_a_new_column_by_its_id_in_the_lake(session: dl.Session) -> None:
    session.branch("fix")
    on_branch(
        session,
        "ALTER TABLE t ADD COLUMN x INTEGER",
        "ALTER TABLE t EXPECT given NOT NULL (x)",
        "UPDATE t SET x = i",
        "ALTER TABLE t EXPECT small CHECK (x < 100)",
    )
    session.sql("ALTER TABLE t ADD COLUMN y INTEGER")
    session.merge("fix")
    session.sql("INSERT INTO t (i, a, x) VALUES (50, 51, 50)")
    for value in ("NULL", "100"):
        with pytest.raises(dl.ExpectationError):
            session.sql(f"INSERT INTO t (i, a, x, y) VALUES (51, 52, {value}, 1)")
    assert rows(session, "SELECT count(*) FROM t") == [(21,)]
