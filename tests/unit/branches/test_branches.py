"""Branches: where they are, what they are named, what they refuse, and what is left where making one fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.errors import (
    CatalogError,
    CatalogNotFoundError,
    DataFileError,
    EntryExistsError,
    EntryNotFoundError,
    TransactionError,
    UnsupportedFeatureError,
    UsageError,
)


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(uri: str, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS v FROM range(100) r(i); INSERT INTO t VALUES (500, 'few')")
        session.sql("DELETE FROM t WHERE i < 50")
        yield session


def count(session: dl.Session) -> int:
    return int(session.sql("SELECT count(*) FROM t").fetchall()[0][0])


def of_branch(uri: str, name: str) -> str:
    return f"{uri} #{name}" if uri.startswith(("ducklake:postgres", "ducklake:mysql")) else f"{uri}#{name}"


@pytest.mark.parametrize(
    "later",
    [
        "CALL lake.merge_adjacent_files()",
        "CALL lake.rewrite_data_files('f', delete_threshold => 0)",
        "DELETE FROM f WHERE i % 3 = 0",
        "CALL lake.flush_inlined_data()",
        "CALL ducklake_add_data_files('lake', 'f', '{file}')",
    ],
)
def test_a_branch_at_an_earlier_snapshot_gives_no_id_again(session: dl.Session, tmp_path: Path, later: str) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', '0'); CREATE TABLE f (i BIGINT)")
    session.sql("INSERT INTO f FROM range(8); INSERT INTO f FROM range(10, 18)")
    if "merge" not in later:
        session.sql("DELETE FROM f WHERE i % 7 = 1")
    file = f"{tmp_path}/data/added.parquet"
    session.sql(f"COPY (SELECT i FROM range(50, 55) r(i)) TO '{file}'")
    before, (rows,) = session.current_snapshot().snapshot_id, session.sql("SELECT count(*) FROM f").fetchall()
    session.sql(later.format(file=file))
    session.branch("old", at=before)
    session.switch("old")
    assert session.sql("SELECT count(*) FROM f").fetchall() == [rows]
    session.sql("INSERT INTO f FROM range(100, 104); DELETE FROM f WHERE i = 103")
    session.sql("CREATE TABLE other AS SELECT 1 AS i")
    assert session.sql("SELECT count(*) FROM f").fetchall() == [(rows[0] + 3,)]
    assert not session.doctor().is_ill


@pytest.mark.parametrize("limit", [0, 1000])
def test_bounds_of_a_branch_are_not_those_of_later_rows(uri: str, tmp_path: Path, limit: int) -> None:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(f"CALL lake.set_option('data_inlining_row_limit', {limit}); CREATE TABLE f (i BIGINT, n BIGINT)")
        session.sql("INSERT INTO f SELECT i, CASE WHEN i < 50 THEN i END FROM range(100) r(i)")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0); INSERT INTO f SELECT 1, 1 FROM range(20)")
        before = session.current_snapshot().snapshot_id
        session.sql("DELETE FROM f WHERE i >= 50; DELETE FROM f WHERE i = 1")
        session.sql("CALL lake.rewrite_data_files('f', delete_threshold => 0)")
        session.branch("old", at=before)
        session.switch("old")
        names = "column_id, contains_null, min_value, max_value"
        bounds = session.sql(f"SELECT {names} FROM __ducklake_metadata_lake.ducklake_table_column_stats").fetchall()
        wrong = [row for row in bounds if (row[0] == 1 and row[3] != "99") or (row[0] == 2 and not row[1])]
        assert wrong == []
        session.sql("INSERT INTO f VALUES (0, 0)")
        assert session.sql("SELECT count(*), min(i), max(i), count(n) FROM f").fetchall() == [(121, 0, 99, 71)]
        assert not session.doctor().is_ill


def test_changes_stay_on_the_branch(session: dl.Session, uri: str) -> None:
    made = session.branch("fix")
    assert (made.name, made.snapshot_id, made.parent) == ("fix", 3, None)
    assert (session.current_branch, count(session)) == (None, 51)
    session.switch("fix")
    session.sql("DELETE FROM t WHERE i > 90; CREATE SCHEMA s; CREATE TABLE s.u AS SELECT 1 AS a; USE s")
    assert session.sql("SELECT count(*) FROM main.t").fetchall() == [(41,)]
    result = session.sql("FROM u")
    assert result.info.snapshots == [("lake#fix", 6)]
    session.switch(None)
    # the lake has no schema s
    assert (session.current_schema, session.current_branch, count(session)) == ("main", None, 51)
    with dl.connect(of_branch(uri, "FIX")) as other:
        assert (other.current_branch, count(other)) == ("fix", 41)
        assert next(iter(other.branches()))["in_use"] is True


def test_branches_of_branches_belong_to_the_lake(session: dl.Session) -> None:
    session.branch("one")
    session.switch("one")
    session.sql("DELETE FROM t WHERE i > 90")
    assert session.branch("two").parent == "one"
    session.branch("old", at=2)
    session.switch("two")
    session.sql("INSERT INTO t VALUES (7, 'two')")
    assert [(row["branch"], row["parent"], row["snapshot"]) for row in session.branches()] == [
        ("old", "one", 2),
        ("one", None, 3),
        ("two", "one", 4),
    ]
    assert session.drop_branch("one").name == "one"
    assert (count(session), session.current_branch) == (42, "two")
    session.switch("old")
    assert count(session) == 101
    session.switch(None)
    assert count(session) == 51


def test_files_have_second_names(session: dl.Session) -> None:
    session.branch("linked")
    session.branch("copied", copy=True)
    for name, links in (("linked", 2), ("copied", 1)):
        session.switch(name)
        folder = Path(session.current_lake.data_path)
        files = list(folder.rglob("*.parquet"))
        assert files
        assert {os.stat(path).st_nlink for path in files} == {links}
        assert {path.stat().st_ino for path in files}.isdisjoint(
            path.stat().st_ino for path in (folder.parent.parent / "data").rglob("*.parquet")
        ) is (links == 1)


def test_tags_and_options_come_along(session: dl.Session) -> None:
    session.tag("early", 1)
    session.tag("late", 3)
    session.sql("CALL lake.set_option('parquet_compression', 'zstd', table_name => 't')")
    session.branch("b", at="early")
    session.switch("b")
    assert session.tags() == {"early": 1}
    assert [row["value"] for row in session.options() if row["option"] == "parquet_compression"] == ["zstd"]
    assert not [row for row in session.options() if str(row["option"]).startswith("ducklake_lab_branch:")]


def test_options_of_later_tables_do_not_come_along(session: dl.Session) -> None:
    before = session.current_snapshot().snapshot_id
    session.sql("CALL lake.set_option('data_inlining_row_limit', 7, table_name => 't')")
    session.sql(
        "CREATE TABLE later (i INTEGER); CALL lake.set_option('data_inlining_row_limit', 0, table_name => 'later')"
    )
    session.branch("old", at=before)
    session.switch("old")
    session.sql("CREATE TABLE own (i INTEGER)")
    found = session.sql("SELECT scope_entry, value FROM lake.options() WHERE scope = 'TABLE'").fetchall()
    assert [(entry.rpartition(".")[2], value) for entry, value in found] == [("t", "7")]


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", "-a", ".a", "a..b", "a.", "ä", "x" * 41, "a#b", "a\n"])
def test_names_that_are_no_names(session: dl.Session, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a branch"):
        session.branch(name)
    assert len(session.branches()) == 0


def test_refusals(session: dl.Session, uri: str) -> None:
    session.branch("fix")
    with pytest.raises(EntryExistsError, match='has a branch "fix"'):
        session.branch("FIX")
    with pytest.raises(EntryNotFoundError, match=r'no branch "fax".*fix'):
        session.switch("fax")
    with session.transaction(), pytest.raises(TransactionError, match="COMMIT or ROLLBACK"):
        session.branch("other")
    with session.transaction(), pytest.raises(TransactionError, match="COMMIT or ROLLBACK"):
        session.switch("fix")
    session.pin(1)
    with pytest.raises(TransactionError, match="pinned at snapshot 1"):
        session.switch("fix")
    session.pin(None)
    session.switch("fix")
    with pytest.raises(UnsupportedFeatureError, match='"fix" is in use'):
        session.drop_branch("fix")
    assert session.current_branch == "fix"
    session.switch(None)
    assert session.drop_branch("fix", dry_run=True).name == "fix"
    assert len(session.branches()) == 1
    with pytest.raises(EntryNotFoundError, match='no branch "nothing"'):
        dl.connect(of_branch(uri, "nothing"))
    with dl.connect(uri, alias="lake", read_only=True) as reading:
        with pytest.raises(TransactionError, match="read-only"):
            reading.branch("new")
        reading.switch("fix")
        with pytest.raises(TransactionError, match="read-only"):
            reading.sql("DELETE FROM t")


def test_files_with_later_rows_are_named(session: dl.Session) -> None:
    session.sql("INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (2, 'b')")
    session.sql("CALL lake.flush_inlined_data()")
    with pytest.raises(UnsupportedFeatureError, match="branch at snapshot 5 or a later one"):
        session.branch("early", at=4)
    session.branch("later", at=5)
    session.switch("later")
    assert count(session) == 53


def test_nothing_is_left_of_a_branch_that_fails(session: dl.Session, tmp_path: Path) -> None:
    file = next((tmp_path / "data").rglob("*.parquet"))
    file.rename(tmp_path / "away")
    with pytest.raises(DataFileError, match="does not exist"):
        session.branch("fix")
    assert len(session.branches()) == 0
    assert not list(tmp_path.glob("data.branches/*"))
    (tmp_path / "away").rename(file)
    session.branch("fix")
    session.switch("fix")
    assert count(session) == 51


_KILLED = """
import os, sys
import ducklake_lab as dl
from ducklake_lab.catalog.branches import registry
registry.write_branch = lambda *_: os._exit(9)
dl.connect(sys.argv[1]).branch("fix")
"""


def test_what_a_killed_process_left_is_replaced(session: dl.Session, uri: str) -> None:
    assert subprocess.run([sys.executable, "-c", _KILLED, uri], check=False).returncode == 9
    assert len(session.branches()) == 0
    session.branch("fix")
    session.switch("fix")
    assert count(session) == 51


def test_files_of_a_branch_that_was_not_finished_are_replaced(session: dl.Session, tmp_path: Path) -> None:
    left = tmp_path / "data.branches" / "fix" / "main" / "left.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"left")
    session.branch("fix")
    assert not left.exists()
    session.switch("fix")
    assert count(session) == 51


def test_a_link_out_of_the_folder_of_branches_is_not_followed(session: dl.Session, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine").write_text("mine")
    (tmp_path / "data.branches").mkdir()
    (tmp_path / "data.branches" / "fix").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataFileError, match="leads elsewhere"):
        session.branch("fix")
    assert (tmp_path / "elsewhere" / "mine").read_text() == "mine"


def test_a_list_that_cannot_be_written_keeps_the_branch(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.branch("fix")
    session.switch("fix")
    session.sql("DELETE FROM t WHERE i > 90")
    session.switch(None)

    def fails(*_: object) -> None:
        raise CatalogError("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr("ducklake_lab.branches.making.registry.remove_branch", fails)
        with pytest.raises(CatalogError, match="disk is full"):
            session.drop_branch("fix")
    session.switch("fix")
    assert count(session) == 41


def test_a_second_name_of_one_file_leaves_the_file(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session:
        session.sql("CREATE TABLE t AS FROM range(100)")
        columns = session.sql("FROM __ducklake_metadata_lake.ducklake_data_file LIMIT 0").columns
        given = {"data_file_id": "99", "path": "'./' || path"}
        values = ", ".join(given.get(name, name) for name in columns)
        session.sql(
            f"INSERT INTO __ducklake_metadata_lake.ducklake_data_file SELECT {values} "
            "FROM __ducklake_metadata_lake.ducklake_data_file"
        )
        with pytest.raises(DataFileError, match="cannot be written"):
            session.branch("fix")
        (file,) = (tmp_path / "lake.ducklake.files").rglob("*.parquet")
        assert file.stat().st_size > 0


def test_files_in_another_store_are_refused(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session:
        session.sql("CREATE TABLE t AS FROM range(100)")
        session.sql(
            "UPDATE __ducklake_metadata_lake.ducklake_data_file SET path = 's3://bucket/a.parquet', path_is_relative = false"
        )
        with pytest.raises(UnsupportedFeatureError, match=r"s3://bucket/a\.parquet is not in the same store"):
            session.branch("fix")
        assert len(session.branches()) == 0


def test_a_dropped_branch_is_gone(session: dl.Session, uri: str) -> None:
    session.branch("fix")
    session.switch("fix")
    folder = Path(session.current_lake.data_path)
    session.switch(None)
    with dl.connect(of_branch(uri, "fix")) as other:
        session.drop_branch("fix")
        assert not folder.exists()
        with pytest.raises(CatalogError):
            count(other)
    with pytest.raises(EntryNotFoundError, match="It has none"):
        session.switch("fix")
    assert count(session) == 51


@pytest.mark.parametrize(
    "text", ["{}", "[]", "nonsense", '{"snapshot": 1, "parent": null, "created": "x", "x": "../../x"}']
)
def test_a_hostile_list_of_branches_is_ignored(tmp_path: Path, text: str) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session:
        session.sql(
            f"INSERT INTO __ducklake_metadata_lake.ducklake_metadata (key, value) VALUES ('ducklake_lab_branch:x', '{text}')"
        )
        assert len(session.branches()) == 0
        with pytest.raises(EntryNotFoundError):
            session.drop_branch("x")


def test_paths_out_of_the_data_path_are_refused(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session:
        session.sql("CREATE TABLE t AS FROM range(100)")
        session.sql("UPDATE __ducklake_metadata_lake.ducklake_data_file SET path = '../../../../../away.parquet'")
        with pytest.raises(CatalogError, match="outside of the data path"):
            session.branch("fix")
        assert not list(tmp_path.rglob("away.parquet"))


@pytest.mark.parametrize("table", ["table", "schema"])
def test_folders_out_of_the_data_path_are_refused(tmp_path: Path, table: str) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        session.sql(f"UPDATE __ducklake_metadata_lake.ducklake_{table} SET path = '../../../away/'")
        with pytest.raises(CatalogError, match="outside of the data path"):
            session.branch("fix")
        assert not list(tmp_path.rglob("away"))


def test_a_file_with_a_hash_in_its_name_is_a_lake(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake"):
        pass
    (tmp_path / "lake.ducklake").rename(tmp_path / "lake.ducklake#fix")
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake#fix", data_path=f"{tmp_path}/lake.ducklake.files") as session:
        assert session.current_branch is None
    with pytest.raises(CatalogNotFoundError):
        dl.connect(f"ducklake:{tmp_path}/nothing.ducklake#fix")
