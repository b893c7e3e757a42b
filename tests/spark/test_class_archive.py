"""The archive of classes: when it is written and mapped, and that Java takes what it wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ducklake_lab.spark import class_archive
from ducklake_lab.spark.java import Java, find_java

pytestmark = pytest.mark.sampled(5)

_FINISHED = class_archive._MAGIC.to_bytes(4, sys.byteorder) + b"classes"
#: Starts Spark, and prints which archives its JVM has mapped.
_START = """
from ducklake_lab.spark import runtime
spark = runtime.start({"spark.master": "local[1]"})
assert spark.range(5).count() == 5
with open(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps") as maps:
    print(len({line.split()[-1] for line in maps if "/ducklake-lab/classes/" in line}))
runtime.stop(spark)
"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java with an archive of its own classes; the cache folder is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    base = tmp_path / "jdk" / "lib" / "server" / "classes.jsa"
    base.parent.mkdir(parents=True)
    base.touch()
    return Java(tmp_path / "jdk", 17)


def archive_of(options: tuple[str, ...]) -> Path:
    return Path(options[0].strip('"').partition("=")[2])


def test_the_first_writes_and_the_next_maps(java: Java) -> None:
    first = class_archive.options(java)
    assert first[0].startswith('"-XX:ArchiveClassesAtExit=')
    archive = archive_of(first)
    archive.write_bytes(_FINISHED)
    os.utime(archive, (1, 1))
    assert class_archive.options(java)[0] == f'"-XX:SharedArchiveFile={archive}"'
    assert archive.stat().st_mtime > time.time() - 60  # it was used


def test_another_class_path_has_an_archive_of_its_own(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    archives = {archive_of(class_archive.options(java))}
    monkeypatch.setenv("SPARK_CONF_DIR", "/nowhere")
    archives.add(archive_of(class_archive.options(java)))
    (java.home / "release").write_text('JAVA_VERSION="17.0.16"')
    archives.add(archive_of(class_archive.options(java)))
    assert len(archives) == 3


def test_settings_in_files(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    assert class_archive.options(java) != ()
    (folder / "spark-defaults.conf").touch()
    assert class_archive.options(java) == ()


def test_what_is_being_written_is_left_alone(java: Java) -> None:
    archive = archive_of(class_archive.options(java))
    archive.write_bytes(bytes(64))
    assert class_archive.options(java) == ()
    # its writer is gone
    os.utime(archive, (1, 1))
    assert class_archive.options(java)[0].startswith('"-XX:ArchiveClassesAtExit=')
    assert not archive.exists()


def test_what_nothing_used_for_long_goes(java: Java) -> None:
    folder = archive_of(class_archive.options(java)).parent
    for name, age in (("old.jsa", 31), ("new.jsa", 29)):
        (folder / name).write_bytes(_FINISHED)
        os.utime(folder / name, (time.time() - age * 86_400,) * 2)
    class_archive.options(java)
    assert [path.name for path in folder.iterdir()] == ["new.jsa"]


@pytest.mark.parametrize("name", ["a:b", 'a"b', "a\\b"])
def test_names_that_an_option_cannot_hold(
    java: Java, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    assert class_archive.options(java) == ()


def test_without_room_or_rights_or_a_base(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 40, 1 << 40, 1 << 20))
        assert class_archive.options(java) == ()
    with monkeypatch.context() as off:
        off.setenv("DUCKLAKE_LAB_CLASS_ARCHIVE", "0")
        assert class_archive.options(java) == ()
    with monkeypatch.context() as no_folder:
        (tmp_path / "file").touch()
        no_folder.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        assert class_archive.options(java) == ()
    assert class_archive.options(java) != ()
    assert class_archive.options(Java(tmp_path / "other", 17)) == ()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads what a process has mapped from /proc")
def test_java_maps_what_it_wrote(tmp_path: Path) -> None:
    if not class_archive._has_base(find_java()):
        pytest.skip("Java has no archive of its own classes")
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "a b")}

    def start() -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", _START], env=environment, capture_output=True, text=True, timeout=300, check=True
        )
        return done.stdout, done.stderr

    assert start() == ("0\n", "")
    folder, deadline = tmp_path / "a b" / "ducklake-lab" / "classes", time.monotonic() + 300
    while not any(class_archive._is_finished(path) for path in folder.glob("*.jsa")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert start() == ("1\n", "")
