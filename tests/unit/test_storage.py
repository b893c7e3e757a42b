from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from ducklake_lab.errors import DataFileError
from ducklake_lab.storage import RealPaths, Storage, hadoop_uri, is_below, is_local, join, real_path


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/tmp/a b.parquet", "file:/tmp/a%20b.parquet"),
        ("/tmp/100%/x", "file:/tmp/100%25/x"),
        ("/tmp/s=a%20b/x", "file:/tmp/s=a%2520b/x"),
        ("/tmp/[1]{2}#?/x", "file:/tmp/%5B1%5D%7B2%7D%23%3F/x"),
        ("/tmp/é/日本", "file:/tmp/é/日本"),
        ("/tmp//a///b", "file:/tmp/a/b"),
        ("file:///tmp/a b", "file:/tmp/a%20b"),
        ("s3://bucket/a b/c", "s3://bucket/a%20b/c"),
    ],
)
def test_hadoop_uri(path: str, uri: str) -> None:
    assert hadoop_uri(path) == uri


def test_join_puts_one_slash() -> None:
    assert join("/a/", "/b") == join("/a", "b") == "/a/b"


def test_only_paths_and_file_urls_are_local() -> None:
    assert is_local("/a") and is_local("file:///a")
    assert not is_local("s3://bucket/a")


def test_files_come_and_go(tmp_path: Path) -> None:
    storage = Storage()
    source, target = f"{tmp_path}/x.bin", f"{tmp_path}/a b/c%/y.bin"
    with storage.open_output(source) as sink:
        sink.write(b"12345")
    storage.move(source, target)
    assert not storage.exists(source)
    assert storage.size(target) == 5
    assert storage.list_files(str(tmp_path)) == [target]
    with storage.open_input(target) as file:
        assert file.read() == b"12345"
    storage.delete([target, source])
    assert storage.list_files(str(tmp_path)) == []


def test_a_missing_folder_has_no_files(tmp_path: Path) -> None:
    assert Storage().list_files(f"{tmp_path}/none") == []
    Storage().delete_folder(f"{tmp_path}/none")


def test_links_are_neither_listed_nor_followed(tmp_path: Path) -> None:
    (tmp_path / "inside/sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for name in ("inside/sub/a", "outside/b"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "inside/link").symlink_to(tmp_path / "outside")
    (tmp_path / "inside/file").symlink_to(tmp_path / "outside/b")
    storage, folder = Storage(), f"{tmp_path}/inside"
    assert storage.list_files(folder) == [f"{folder}/sub/a"]
    assert storage.list_files(f"file://{folder}") == [f"file://{folder}/sub/a"]
    assert [name for name, _ in storage.list_changed(folder)] == ["sub/a"]
    storage.delete_folder(folder)
    assert not (tmp_path / "inside").exists() and (tmp_path / "outside/b").exists()


@pytest.mark.slow
def test_real_paths_of_many_are_those_of_each(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "b" / "g").symlink_to(tmp_path / "a" / "b" / "f")
    parts = ["", "a", "b", "f", "g", "link", "up", "none", ".", ".."]
    real = RealPaths().of
    for path in product(parts, repeat=4):
        local = f"{tmp_path}/{'/'.join(path)}"
        assert real(local) == real_path(local), local
    assert real(f"file://{tmp_path}/link/b/g") == f"{tmp_path}/a/b/f"
    assert real("s3://bucket/a/../b") == "s3://bucket/a/../b"


def test_below_is_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "inside")
    (tmp_path / "inside/out").symlink_to(tmp_path)
    (tmp_path / "inside/round").symlink_to(tmp_path / "inside")
    assert is_below(f"{tmp_path}/link/a", f"{tmp_path}/link")
    assert is_below(f"{tmp_path}/inside/round/a", f"{tmp_path}/inside/")
    assert not is_below(f"{tmp_path}/inside/out/a", f"{tmp_path}/inside")
    assert not is_below(f"{tmp_path}/inside/../a", f"{tmp_path}/inside")
    assert is_below("s3://bucket/a/b", "s3://bucket/a")
    assert not is_below("s3://bucket/ab", "s3://bucket/a")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for call in (Storage().open_input, Storage().size):
        with pytest.raises(DataFileError, match=r"none\.parquet does not exist"):
            call(f"{tmp_path}/none.parquet")
