"""An archive of Spark's classes, with which Java starts Spark faster (class data sharing).

The first Spark of each configuration on a machine writes the archive at its exit; later ones map it. Java ignores an
archive for another Java or other jars, and then loads the classes from the jars as usual.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

import pyspark

from ducklake_lab.spark.java import Java, cache_folder

#: Bytes of free disk space required; an archive takes about 160 MB.
_ROOM = 1 << 30
#: Seconds after which an unused archive, and an unfinished one, are removed.
_UNUSED, _UNFINISHED = 30 * 86_400, 600
#: First bytes of a finished archive, in the machine's byte order; written last.
_MAGIC = 0xF00BABA8
#: Hides Java's messages on classes that cannot be archived.
_QUIET = "-Xlog:cds*=error"


def options(java: Java) -> tuple[str, ...]:
    """Returns options for the JVM of Spark's driver: to map the archive, to write it, or none if neither is possible.

    DUCKLAKE_LAB_CLASS_ARCHIVE=0 turns it off.
    """
    if os.environ.get("DUCKLAKE_LAB_CLASS_ARCHIVE") == "0" or not _has_base(java):
        return ()
    spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    try:
        if _has_files(Path(os.environ.get("SPARK_CONF_DIR") or spark / "conf")):
            return ()
        archive = _path(java, spark)
        if _is_finished(archive):
            os.utime(archive)
            return _options("-XX:SharedArchiveFile", archive)
        archive.parent.mkdir(parents=True, exist_ok=True)
        _tidy(archive.parent)
        if archive.exists() or shutil.disk_usage(archive.parent).free < _ROOM:
            return ()
    except OSError:
        return ()
    return _options("-XX:ArchiveClassesAtExit", archive)


def _options(name: str, archive: Path) -> tuple[str, ...]:
    # a colon separates two archives, and Spark splits options like a shell
    if any(character in str(archive) for character in ':"\\'):
        return ()
    return (f'"{name}={archive}"', "-Xshare:auto", _QUIET)


def _has_base(java: Java) -> bool:
    """Whether Java has the archive of its own classes, on which this one builds."""
    return os.name != "nt" and (java.home / "lib" / "server" / "classes.jsa").is_file()


def _has_files(configuration: Path) -> bool:
    """Whether Spark has configuration files: their folder would begin the class path, which an archive forbids."""
    return configuration.is_dir() and any(configuration.iterdir())


def _path(java: Java, spark: Path) -> Path:
    """Returns the path of the archive for a Java and its Spark."""
    release, jars = java.home / "release", spark / "jars"
    parts = (
        java.home,
        release.read_text(errors="replace") if release.is_file() else "",
        spark,
        jars.stat().st_mtime_ns if jars.is_dir() else 0,
        os.environ.get("SPARK_CONF_DIR", ""),
    )
    name = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]
    return cache_folder() / "classes" / f"{name}.jsa"


def _is_finished(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            start = file.read(4)
    except FileNotFoundError:
        return False
    return start in (_MAGIC.to_bytes(4, "little"), _MAGIC.to_bytes(4, "big"))


def _tidy(folder: Path) -> None:
    """Removes archives that are unused for long, and unfinished ones."""
    for archive in folder.glob("*.jsa"):
        age = time.time() - archive.stat().st_mtime
        if age > (_UNUSED if _is_finished(archive) else _UNFINISHED):
            archive.unlink(missing_ok=True)
