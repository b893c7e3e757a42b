"""A lake's data path is stored, and found, as the reference stores and finds it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ducklake_lab as dl
from tests.reference import connect

pytestmark = pytest.mark.sampled(4)

#: Data paths as they are given; `{}` is the folder that all is in, which is the working directory.
GIVEN = ["sub/data/", "sub/data", "data", "./data", "sub/../data/", "{}/data", "file://{}/data", None]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _reference(uri: str, statements: str, options: str = "") -> list[tuple[object, ...]]:
    with connect() as reference:
        reference.execute(f"ATTACH '{uri}' AS lake {options}")
        return reference.execute(statements).fetchall()


def _ours(uri: str, statement: str, **options: object) -> list[tuple[object, ...]]:
    with dl.connect(uri, alias="lake", engine="duckdb", **options) as session:
        return session.sql(statement).fetchall()


CREATE = "CREATE TABLE lake.t AS SELECT range::INT AS i FROM range(100)"
ROWS = "SELECT count(i), sum(i) FROM lake.t"
STORED = "SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'data_path'"
FULL = [(100, 4950)]


@pytest.mark.parametrize("given", GIVEN)
def test_a_data_path_is_stored_and_read_as_by_the_reference(root: Path, given: str | None) -> None:
    given = given.format(root) if given is not None else None
    options = f"(DATA_PATH '{given}')" if given is not None else ""
    _reference("ducklake:sub/theirs.ducklake", CREATE, options)
    theirs = {path.parent for path in root.rglob("*.parquet")}
    for path in list(theirs):
        shutil.rmtree(path.parent.parent)
    _ours("ducklake:sub/ours.ducklake", CREATE, data_path=given)
    ours = {path.parent for path in root.rglob("*.parquet")}
    assert len(ours) == 1
    assert {str(path).replace("ours", "theirs") for path in ours} == {str(path) for path in theirs}
    stored = _ours("ducklake:sub/ours.ducklake", STORED)[0][0]
    assert str(stored).replace("ours", "theirs") == _reference("ducklake:sub/theirs.ducklake", STORED)[0][0]
    for again in (None, given):
        assert _ours("ducklake:sub/ours.ducklake", ROWS, data_path=again) == FULL
        with_path = f"(DATA_PATH '{again}')" if again is not None else ""
        assert _reference("ducklake:sub/ours.ducklake", ROWS, with_path) == FULL


def test_what_the_reference_wrote_below_a_relative_path_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _reference("ducklake:sub/m.ducklake", CREATE, "(DATA_PATH 'sub/data/')")
    assert _ours("ducklake:sub/m.ducklake", ROWS) == FULL
    assert _ours("ducklake:sub/m.ducklake", ROWS, data_path="sub/data") == FULL
    assert _ours("ducklake:sub/m.ducklake", ROWS, data_path=str(root / "sub/data")) == FULL
    with pytest.raises(dl.UsageError, match="keeps its data in sub/data/, not in other"):
        _ours("ducklake:sub/m.ducklake", ROWS, data_path="other")
    (root / "elsewhere").mkdir()
    monkeypatch.chdir(root / "elsewhere")
    uri = "ducklake:../sub/m.ducklake"
    with pytest.raises(dl.DataFileError, match=f"data path {root}/elsewhere/sub/data/ does not exist; if it was moved"):
        _ours(uri, ROWS)
    override = {"data_path": "../sub/data", "override_data_path": True}
    assert _ours(uri, ROWS, **override) == FULL
    assert _ours(uri, STORED, **override) == [("sub/data/",)]


def test_a_lake_that_was_moved_with_its_data_is_read_beside_its_catalog(root: Path) -> None:
    _reference("ducklake:m.ducklake", CREATE, "(DATA_PATH 'data/')")
    (root / "moved").mkdir()
    for name in ("m.ducklake", "data"):
        shutil.move(root / name, root / "moved" / name)
    assert _ours("ducklake:moved/m.ducklake", ROWS) == FULL
    # what is in the working directory comes first, as in the reference
    shutil.copytree(root / "moved/data", root / "data")
    shutil.rmtree(root / "moved/data")
    assert _ours("ducklake:moved/m.ducklake", ROWS) == _reference("ducklake:moved/m.ducklake", ROWS) == FULL


def test_a_new_lake_s_files_are_not_put_beside_its_catalog(root: Path) -> None:
    (root / "sub/data").mkdir()  # another lake's
    _ours("ducklake:sub/m.ducklake", "CREATE TABLE lake.t (i INT)", data_path="data")
    _ours("ducklake:sub/m.ducklake", "INSERT INTO lake.t SELECT range FROM range(100)")
    assert list((root / "sub/data").iterdir()) == []
    assert _reference("ducklake:sub/m.ducklake", ROWS) == FULL


def test_data_that_is_gone_is_said_once_and_of_the_lake(root: Path) -> None:
    _ours("ducklake:m.ducklake", CREATE, data_path=f"{root}/data")
    _ours("ducklake:m.ducklake", "UPDATE lake.t SET i = i WHERE i < 20")
    shutil.move(root / "data", root / "moved")
    message = (
        f"The lake lake has files, and its data path {root}/data/ does not exist; "
        "if it was moved, attach with data_path=… and override_data_path."
    )
    for statement in (ROWS, "UPDATE lake.t SET i = 1", "FROM lake.table_changes('t', 0, 2)"):
        with pytest.raises(dl.DataFileError) as failed:
            _ours("ducklake:m.ducklake", statement)
        assert str(failed.value) == message
    assert _ours("ducklake:m.ducklake", ROWS, data_path="moved", override_data_path=True) == FULL
