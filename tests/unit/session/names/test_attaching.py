"""Attaching what is no lake, or what is not there: one line, and nothing is attached or made."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.attach_options import AttachOptions
from tests.reference import connect as reference

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dl.Session]:
    """A session in a folder with files that are no lakes."""
    monkeypatch.chdir(tmp_path)
    Path("orders.csv").write_text("a,b\n1,2\n")
    Path("empty.db").write_bytes(b"")
    Path("notes.txt").write_text("not a database\n" * 500)
    Path("folder.d").mkdir()
    sqlite = sqlite3.connect("plain.sqlite")
    sqlite.execute("CREATE TABLE t (a INTEGER)")
    sqlite.commit()
    sqlite.close()
    with dl.Session(engine="duckdb") as session:
        yield session


def _files() -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("orders.csv", "orders.csv is not a duckdb database file"),
        ("empty.db", "empty.db is not a duckdb database file"),
        ("notes.txt", "notes.txt is not a duckdb database file"),
        ("plain.sqlite", "plain.sqlite is not a duckdb database file"),
        ("sqlite:notes.txt", "notes.txt is not a sqlite database file"),
        ("folder.d", "folder.d is a folder; name the catalog's file"),
        ("sqlite:folder.d", "folder.d is a folder; name the catalog's file"),
        ("no/such/x.ducklake", "no/such does not exist; check the path, or attach with create_folders"),
        ("sqlite:no/such/x.db", "no/such does not exist; check the path, or attach with create_folders"),
        ("notes.txt/x.ducklake", "notes.txt does not exist; check the path"),
    ],
)
def test_what_is_no_lake_is_left_alone(session: dl.Session, uri: str, message: str) -> None:
    before = _files()
    for attach in (lambda: session.attach(f"ducklake:{uri}"), lambda: session.sql(f"ATTACH 'ducklake:{uri}' AS x")):
        with pytest.raises(dl.CatalogError, match=message) as caught:
            attach()
        assert "\n" not in str(caught.value)
        assert session.lakes == []
    assert _files() == before
    with pytest.raises(dl.UsageError, match="No lake is attached"):
        session.current_snapshot()


def test_the_reference_makes_no_folders_either(session: dl.Session) -> None:
    with reference() as connection, pytest.raises(duckdb.IOException):
        connection.execute("ATTACH 'ducklake:no/such/x.ducklake' AS x")
    assert not Path("no").exists()


def test_folders_are_made_where_that_is_wanted(session: dl.Session) -> None:
    lake = session.attach("ducklake:no/such/x.ducklake", create_folders=True)
    assert lake.created
    session.detach("x")
    assert not session.attach("ducklake:no/such/x.ducklake").created
    with pytest.raises(dl.CatalogNotFoundError, match=r"y/y cannot be made: Not a directory\."):
        session.attach("ducklake:orders.csv/y/y/z.ducklake", create_folders=True)


@pytest.mark.slow
@pytest.mark.parametrize("length", [200, 255, 256, 1000])
def test_long_names(session: dl.Session, length: int) -> None:
    session.attach("ducklake:long.ducklake", "lake", data_inlining_row_limit=0)
    name, other = "t" * length, "é" * length
    for table in (name, f'"{other}"', f"{name}.{name}"):
        if "." in table:
            session.sql(f"CREATE SCHEMA {name}")
        session.sql(f"CREATE TABLE {table} (a INTEGER); INSERT INTO {table} SELECT * FROM range(20)")
        session.sql(f"DELETE FROM {table} WHERE a < 15; UPDATE {table} SET a = a + 1 WHERE a = 19")
    session.close()
    with reference() as connection:
        connection.execute("ATTACH 'ducklake:long.ducklake' AS lake; USE lake")
        for table in (name, f'"{other}"', f"{name}.{name}"):
            assert connection.execute(f"SELECT list(a ORDER BY a) FROM {table}").fetchall() == [([15, 16, 17, 18, 20],)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "value"),
    [
        (f"SELECT {'(' * 900}a{')' * 900} FROM t", 1),
        (f"SELECT {' + '.join(['a'] * 500)} FROM t", 500),
        (f"SELECT a FROM t WHERE {' OR '.join(f'a = {i}' for i in range(500))}", 1),
        (f"SELECT {'CASE WHEN a > 1 THEN 1 ELSE ' * 200}2{' END' * 200} FROM t", 2),
    ],
)
def test_deep_expressions(session: dl.Session, sql: str, value: int) -> None:
    session.attach("ducklake:deep.ducklake")
    session.sql("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
    assert session.sql(sql).fetchall() == [(value,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql", [f"SELECT {'(' * 20000}1{')' * 20000}", f"UPDATE t SET a = {'abs(' * 9000}a{')' * 9000}"]
)
def test_expressions_that_are_too_deep(session: dl.Session, sql: str) -> None:
    session.attach("ducklake:deep.ducklake")
    session.sql("CREATE TABLE t (a INTEGER)")
    with pytest.raises(dl.UnsupportedFeatureError, match="nested too deeply"):
        session.sql(sql)


def _lost(folder: Path) -> Callable[[], None]:
    """A file in the folder's place, which root cannot write through either."""
    kept = folder.with_name("kept")
    folder.rename(kept)
    folder.write_text("a file")

    def back() -> None:
        folder.unlink()
        kept.rename(folder)

    return back


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t SELECT * FROM range(20)",
        "CREATE TABLE u AS SELECT * FROM range(20)",
        "BEGIN; INSERT INTO p SELECT 1, 2 FROM range(20); COMMIT",
    ],
)
def test_where_data_cannot_be_written_that_is_the_error(session: dl.Session, sql: str) -> None:
    session.attach("ducklake:ro.ducklake", "lake", data_inlining_row_limit=0)
    session.sql("CREATE TABLE t AS SELECT * FROM range(20); CREATE TABLE p (a INTEGER, b INTEGER)")
    session.sql("ALTER TABLE p SET PARTITIONED BY (a)")
    before = session.current_snapshot().snapshot_id
    back = _lost(Path("ro.ducklake.files"))
    with pytest.raises(dl.DataFileError, match=r"ro.ducklake.files/main/.(/a=1)? cannot be made: Not a directory\."):
        session.sql(sql)
    back()
    if session.in_transaction:
        session.sql("ROLLBACK")
    assert session.current_snapshot().snapshot_id == before
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(20,)]


def test_a_folder_that_takes_no_files(session: dl.Session) -> None:
    """Deleting what was begun fails as writing does; the error is the write's."""
    session.attach("ducklake:ro.ducklake", "lake", data_inlining_row_limit=0)
    session.sql("CREATE TABLE t AS SELECT * FROM range(20)")
    folder = Path("ro.ducklake.files/main/t")
    folder.rename("kept")
    folder.symlink_to("/proc/self")  # nobody can make or delete files there
    with pytest.raises(dl.DataFileError, match="A data file cannot be written: Cannot open file") as caught:
        session.sql("INSERT INTO t SELECT * FROM range(20)")
    assert "\n" not in str(caught.value)


@pytest.mark.every_catalog
def test_a_catalog_that_has_lost_a_table(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.connect(uri, "lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
        session.sql("DROP TABLE __ducklake_metadata_lake.ducklake_data_file")
        for fails in (session.tables, session.health, session.table("t").files, lambda: session.sql("FROM t")):
            with pytest.raises(dl.CatalogError, match="damaged: its table ducklake_data_file is missing") as caught:
                fails()
            assert "\n" not in str(caught.value)
        with pytest.raises(dl.DuckLakeError) as caught:
            session.sql("DELETE FROM t")
        assert "\n" not in str(caught.value)
        session.sql("DROP TABLE __ducklake_metadata_lake.ducklake_snapshot")
        with pytest.raises(dl.CatalogError, match=r"damaged: its table ducklake_(data_file|snapshot) is missing"):
            session.sql("FROM t")
    with pytest.raises(dl.CatalogError, match=r"damaged: its table ducklake_(data_file|snapshot) is missing"):
        dl.connect(uri)


def test_attach_takes_every_option_there_is() -> None:
    _, _, _, *taken = inspect.signature(dl.Session.attach).parameters.values()
    known = {field.name: field.default for field in fields(AttachOptions)}
    assert {parameter.name: parameter.default for parameter in taken} == known
