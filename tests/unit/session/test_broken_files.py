"""Data and delete files that cannot be read: one line names the file and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.wording import worded_of_file
from tests.reference import installed

pytestmark = pytest.mark.sampled(3)

#: Writing encrypted files needs it.
ENCRYPTS = pytest.mark.skipif(not installed("httpfs"), reason="needs duckdb-extension-httpfs")
#: In a process of its own: what a process wrote it need not read.
MAKE = """
import sys, ducklake_lab as dl
options = {"encrypted": True} if sys.argv[2] == "encrypted" else {}
with dl.connect(sys.argv[1], engine="duckdb", **options) as session:
    session.sql("CREATE TABLE t AS SELECT i, 'x' || i AS s FROM range(3000) AS r(i)")
    session.sql("DELETE FROM t WHERE i % 3 = 0")
"""


READ = """
import sys, ducklake_lab as dl
with dl.connect(sys.argv[1], engine="duckdb") as session:
    for text in ("SELECT sum(i) FROM t", "UPDATE t SET i = 0 WHERE i = 4", "CALL l.rewrite_data_files('t', delete_threshold => 0)"):
        try:
            session.sql(text).fetchall()
        except dl.DataFileError as error:
            print(error)
"""


@pytest.fixture(scope="module", params=["plain", pytest.param("encrypted", marks=ENCRYPTS)])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bool]:
    folder = tmp_path_factory.mktemp("broken")
    subprocess.run([sys.executable, "-c", MAKE, f"ducklake:{folder}/l.ducklake", request.param], check=True)
    return folder, request.param == "encrypted"


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _mixed(path: Path) -> None:
    good = path.read_bytes()
    path.write_bytes(good[:40] + bytes(255 - one for one in good[40:-8]) + good[-8:])


NO_PARQUET = "is no Parquet file, or its end is missing; restore it from a backup."
DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (Path.unlink, "is missing; restore it from a backup"),
    (lambda path: path.write_text("no Parquet, but some words of a text file"), NO_PARQUET),
    (lambda path: path.write_bytes(b""), NO_PARQUET),
    (_cut, NO_PARQUET),
    (_mixed, "is damaged; restore it from a backup."),
]


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "said"), DAMAGE)
@pytest.mark.parametrize("kind", ["data", "delete"])
def test_an_error_names_the_file_and_what_to_do(
    lake: tuple[Path, bool], tmp_path: Path, kind: str, damage: Callable[[Path], object], said: str
) -> None:
    made, encrypted = lake
    # what was read of a path is kept, and the paths of passed tests come again
    folder = shutil.copytree(made, tmp_path / uuid.uuid4().hex)
    path = next(one for one in folder.rglob("*.parquet") if one.stem.endswith("-delete") == (kind == "delete"))
    damage(path)
    moved = {"data_path": f"{folder}/l.ducklake.files/", "override_data_path": True}
    with (
        dl.connect(f"ducklake:{folder}/l.ducklake", engine="duckdb", **moved) as session,
        pytest.raises(dl.DataFileError) as caught,
    ):
        session.sql("SELECT sum(i), max(s) FROM t WHERE i % 2 = 0").fetchall()
    message = str(caught.value)
    assert message.startswith(f"The {kind} file {path} ")
    if encrypted and damage is _mixed:
        assert "restore it from a backup" in message
    else:
        assert said in message
    assert ("DELETE its rows" in message) == (kind == "data" and damage is Path.unlink)


@pytest.mark.slow
@ENCRYPTS
def test_a_wrong_key(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", MAKE, f"ducklake:{tmp_path}/l.ducklake", "encrypted"], check=True)
    for table in ("ducklake_delete_file", "ducklake_data_file"):
        with duckdb.connect(f"{tmp_path}/l.ducklake") as catalog:
            catalog.execute(f"UPDATE {table} SET encryption_key = 'MDEyMzQ1Njc4OWFiY2RlZg=='")
        with (
            dl.connect(f"ducklake:{tmp_path}/l.ducklake", engine="duckdb") as session,
            pytest.raises(dl.DataFileError, match=r"^The \w+ file /.*parquet does not open with the key in the cat"),
        ):
            session.sql("SELECT sum(i), max(s) FROM t WHERE i % 2 = 0").fetchall()


def test_a_damaged_file_among_others_is_found(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/l.ducklake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
        for start in range(3):
            session.sql(f"INSERT INTO t SELECT i, 'x' || i FROM range({start}, 3000) AS r(i)")
    broken = sorted(tmp_path.rglob("*.parquet"))[1]
    _mixed(broken)
    with (
        dl.connect(f"ducklake:{tmp_path}/l.ducklake", engine="duckdb") as session,
        pytest.raises(dl.DataFileError) as caught,
    ):
        session.sql("SELECT sum(i), max(s) FROM t WHERE i % 2 = 0").fetchall()
    assert str(caught.value) == f"The data file {broken} is damaged; restore it from a backup."


def test_a_file_that_may_not_be_read_is_not_called_missing() -> None:
    text = 'IO Error: Cannot open file "/x/a.parquet": Permission denied'
    said = "The data file /x/a.parquet cannot be read: permission denied; let this user read it."
    assert worded_of_file(text, "/x/a.parquet", "data file") == said


@pytest.mark.parametrize("damage", [damage for damage, _ in DAMAGE[:4]])
def test_files_that_cannot_be_added(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    path = tmp_path / "a.parquet"
    duckdb.sql("SELECT i FROM range(1000) AS r(i)").write_parquet(str(path))
    damage(path)
    with dl.connect(f"ducklake:{tmp_path}/l.ducklake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i BIGINT)")
        with pytest.raises(dl.DataFileError) as caught:
            session.sql(f"CALL ducklake_add_data_files('l', 't', '{path}')")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(0,)]
    missing = f"There is no file {path}; nothing was added."
    cut = f"The file {path} is no Parquet file, or its end is missing; nothing was added."
    assert str(caught.value) == (missing if damage is Path.unlink else cut)


def test_pipes_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    with dl.connect(f"ducklake:{tmp_path}/l.ducklake", engine="duckdb", data_path=f"{tmp_path}/data/") as session:
        session.sql("CREATE TABLE t AS SELECT i FROM range(100) r(i); DELETE FROM t WHERE i % 3 = 0")
        with pytest.raises(dl.DataFileError, match=r"pipe\.parquet is no regular file.*; nothing was added\."):
            session.sql(f"CALL ducklake_add_data_files('l', 't', '{tmp_path}/pipe.parquet')")
        for path in (f"{tmp_path}/*.parquet", "/dev/zero"):  # DuckDB's patterns leave them out
            with pytest.raises(dl.DataFileError, match=r"There is no file .*; nothing was added"):
                session.sql(f"CALL ducklake_add_data_files('l', 't', '{path}')")
        deletes = next(tmp_path.rglob("*-delete.parquet"))
        for path in (deletes, *(set((tmp_path / "data").rglob("*.parquet")) - {deletes})):
            path.unlink()
            os.mkfifo(path)
            # another lake of the same files, as a session keeps what it wrote
            command = [sys.executable, "-c", READ, f"ducklake:{tmp_path}/l.ducklake"]
            said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
            assert len(said) == 3 and all(path.name in line and "no regular file" in line for line in said), said
