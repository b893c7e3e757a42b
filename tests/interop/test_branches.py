"""Branches beside the reference: the same lake up to where they began, and two lakes from there on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.branches import making
from ducklake_lab.catalog.uri import parse_uri
from tests.interop import everything
from tests.interop.comparing import attach, by_row_id, detach, metadata, our_history

History = dict[tuple[int, str], list[list[Any]]]

#: Snapshots whose files hold rows of one snapshot each, so that a branch can begin at any.
SCRIPT = [
    "CREATE TABLE t (i INTEGER, s VARCHAR)",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO t SELECT i, 'x' FROM range(10, 50) AS r(i)",
    "DELETE FROM t WHERE i = 2",
    "UPDATE t SET s = 'z' WHERE i BETWEEN 3 AND 20",
    "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7",
    "CREATE SCHEMA other",
    "CREATE TABLE other.u AS SELECT i, i * 2 AS d FROM range(30) r(i)",
    "ALTER TABLE t RENAME s TO label",
    "DELETE FROM t WHERE i BETWEEN 30 AND 45",
    "INSERT INTO t VALUES (100, 'late', 1)",
    "DROP TABLE other.u",
    "CREATE VIEW v AS SELECT count(*) AS n FROM t",
]


@contextmanager
def attached(reference: duckdb.DuckDBPyConnection, branch: dl.Session) -> Iterator[None]:
    """Attaches a branch to the reference as `lake`."""
    location = branch.current_lake.location
    schema = f" (METADATA_SCHEMA '{location.schema}')" if location.schema is not None else ""
    uri = location.uri or parse_uri(branch_base(branch)).uri
    reference.execute(f"ATTACH '{uri}' AS lake{schema}; USE lake")
    try:
        yield
    finally:
        detach(reference)


def branch_base(branch: dl.Session) -> str:
    return str(branch.current_lake.location.url.set(drivername="postgresql").render_as_string(hide_password=False))


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        yield session


def theirs(reference: duckdb.DuckDBPyConnection, branch: dl.Session, snapshots: range) -> list[list[list[Any]]]:
    """The rows of the table t at snapshots, as the reference reads the branch."""
    with attached(reference, branch):
        query = "SELECT rowid, snapshot_id, * FROM t AT (VERSION => {})"
        return [by_row_id(reference.execute(query.format(at)).fetchall()) for at in snapshots]


@pytest.mark.sampled(3)
def test_a_branch_at_each_snapshot_is_the_lake_up_to_it(
    session: dl.Session, reference: duckdb.DuckDBPyConnection
) -> None:
    for statement in SCRIPT:
        session.sql(statement)
    history = our_history(session, "duckdb")
    for at in (2, 5, 9, len(SCRIPT)):
        session.branch(f"at-{at}", at=at)
        session.switch(f"at-{at}")
        assert session.current_snapshot().snapshot_id == at
        assert our_history(session, "duckdb") == {key: rows for key, rows in history.items() if key[0] <= at}
        wanted = range(2, at + 1)
        assert theirs(reference, session, wanted) == [history[n, '"main"."t"'] for n in wanted]
        # what follows is a lake's own life: ids go on, and count(*) is exact
        before = session.sql("SELECT count(*) FROM t").fetchall()[0][0]
        session.sql("INSERT INTO t (i) SELECT 1000 + i FROM range(25) r(i)")
        with attached(reference, session):
            assert reference.execute("SELECT count(*) FROM t").fetchall() == [(before + 25,)]
            assert reference.execute("SELECT count(DISTINCT rowid) FROM t").fetchall() == [(before + 25,)]
        session.switch(None)
    assert our_history(session, "duckdb") == history


@pytest.mark.sampled(5)
def test_each_type_and_file_is_taken_over(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    everything.write_files(reference, tmp_path)
    attach(reference, uri, data_path=tmp_path / "data")
    for statement in everything.script(tmp_path):
        reference.execute(statement)
    detach(reference)
    with dl.connect(uri, alias="lake") as session:
        session.branch("all")
        session.switch("all")
        branch = session.current_lake.location.uri
    assert branch is not None
    expected, found = metadata(reference, uri), metadata(reference, branch)
    expected["ducklake_metadata"] = [row for row in expected["ducklake_metadata"] if "ducklake_lab" not in row[0]]
    found["ducklake_metadata"] = [row for row in found["ducklake_metadata"] if "ducklake_lab" not in row[0]]
    # added files get paths of their own below the branch's data path
    for rows, name in ((expected, "lake"), (found, "branch")):
        for table in ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion"):
            assert rows[table] or table.endswith("deletion"), name
    assert found["ducklake_files_scheduled_for_deletion"] == []
    for table in expected:
        if table not in ("ducklake_files_scheduled_for_deletion", "ducklake_data_file"):
            assert found[table] == expected[table], table
    assert _readable(reference, branch) == _readable(reference, uri)


def _readable(reference: duckdb.DuckDBPyConnection, uri: str) -> dict[str, list[str]]:
    attach(reference, uri)
    names = reference.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake' ORDER BY ALL"
    ).fetchall()
    found = {}
    for schema, table in names:
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table))
        found[quoted] = sorted(map(repr, reference.execute(f"SELECT rowid, * FROM lake.{quoted}").fetchall()))
    detach(reference)
    assert len(found) > 20
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", ["lake", "branch"])
def test_maintenance_of_one_side_leaves_the_other_whole(
    session: dl.Session, reference: duckdb.DuckDBPyConnection, first: str
) -> None:
    # the reference cannot rewrite files of a table with inlined rows from before an ALTER
    statements = [statement for statement in SCRIPT[:-3] if not statement.startswith("ALTER")]
    for statement in statements:
        session.sql(statement)
    base = our_history(session, "duckdb")
    session.branch("fix")

    def tidy(call: Callable[[str], object]) -> None:
        call("DELETE FROM t WHERE i > 12")
        call("INSERT INTO t (i) SELECT 500 + i FROM range(40) r(i)")
        call("CALL ducklake_merge_adjacent_files('lake')")
        call("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)")
        call("CALL ducklake_expire_snapshots('lake', older_than => now())")
        call("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
        call("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")

    session.switch("fix" if first == "branch" else None)
    with attached(reference, session):
        tidy(reference.execute)
    session.switch("fix" if first == "lake" else None)
    assert our_history(session, "duckdb") == base
    wanted = range(2, len(statements) + 1)
    assert theirs(reference, session, wanted) == [base[n, '"main"."t"'] for n in wanted]
    tidy(session.sql)
    for name in ("fix", None):
        session.switch(name)
        assert session.sql("SELECT count(*) FROM t WHERE i >= 500").fetchall() == [(40,)]
        with attached(reference, session):
            assert reference.execute("SELECT count(*) FROM t WHERE i >= 500").fetchall() == [(40,)]
    session.switch(None)
    session.drop_branch("fix")
    assert session.sql("SELECT count(*), count(DISTINCT rowid) FROM t WHERE i >= 500").fetchall() == [(40, 40)]


@pytest.mark.parametrize("statement", ["DELETE FROM t WHERE i % 3 = 0", "CALL ducklake_merge_adjacent_files('lake')"])
def test_the_reference_commits_while_a_branch_is_made(
    statement: str,
    new_catalog: Callable[..., str],
    tmp_path: Path,
    reference: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
):
    rows = "SELECT rowid, i FROM t WHERE i >= 0 ORDER BY ALL"
    make, uri = making.make_place, new_catalog("postgres")

    def beside(*places: Any) -> None:
        attach(reference, uri)
        reference.execute(statement)
        detach(reference)
        make(*places)

    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', '0'); CREATE TABLE t (i INTEGER)")
        session.sql("INSERT INTO t FROM range(1000); INSERT INTO t FROM range(1000, 2000)")
        if statement.startswith("DELETE"):
            session.sql("DELETE FROM t WHERE i % 7 = 0")
        before = session.sql(rows).fetchall()
        with monkeypatch.context() as patch:
            patch.setattr(making, "make_place", beside)
            session.branch("fix")
        session.switch("fix")
        assert session.sql(rows).fetchall() == before
        session.sql("INSERT INTO t VALUES (-1)")
        assert session.sql(rows).fetchall() == before
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(len(before) + 1,)]
        assert not session.doctor().is_ill
