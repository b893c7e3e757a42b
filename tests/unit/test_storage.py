from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from ducklake_lab.errors import DataFileError
from ducklake_lab.file_paths import RealPaths, hadoop_uri, is_below, is_local, join, real_path
from ducklake_lab.storage import Storage, fault_of


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
    path = f"{tmp_path}/none.parquet"
    for call in (Storage().size, lambda path: Storage().open_input(path).__enter__()):
        with pytest.raises(DataFileError, match=r"none\.parquet does not exist"):
            call(path)
    (tmp_path / "there").write_bytes(b"12")
    sizes = Storage().sizes([path, f"file://{tmp_path}/there", f"{tmp_path}/there/x", str(tmp_path)])
    assert list(sizes.values()) == [None, 2, None, None]


def test_faults_of_sizes() -> None:
    assert fault_of({"a": 1, "b": None}, {"a": 1, "b": 5}) is None
    assert fault_of({"a": 1, "b": None}, {"a": 1, "b": None}) == "the file b, which does not exist"
    assert fault_of({"a": 1000}, {"a": 2}) == "the file a, which has 2 bytes rather than 1,000"


def test_nothing_stays_of_a_file_that_could_not_be_filled(tmp_path: Path) -> None:
    path = f"{tmp_path}/x"
    with pytest.raises(ZeroDivisionError), Storage().open_output(path) as sink:
        sink.write(bytes(1 // 0))
    assert not Path(path).exists()
    Path(path).mkdir()
    for call in (Storage().size, lambda path: Storage().open_output(path).__enter__()):
        with pytest.raises(DataFileError, match=f"The file {path} "):
            call(path)


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.touch()
    Storage().check_regular([str(file), str(tmp_path), "s3://bucket/x", f"{tmp_path}/none"])
    for path in (str(pipe), f"file://{pipe}", "/dev/zero"):
        with pytest.raises(DataFileError, match="is no regular file"):
            Storage().check_regular([path])
        with pytest.raises(DataFileError, match="is no regular file"), Storage().open_input(path):
            pass
