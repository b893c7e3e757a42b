"""Compiles the Spark catalog to a jar: `python extensions/spark-catalog/build.py`.

It needs a JDK of version 17 or newer and PySpark, whose jars it compiles against. The jar holds the digest of its sources, so that
an unchanged one is not built again.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).resolve().parent
JAR = FOLDER.parents[1] / "ducklake_lab" / "spark" / "ducklake-lab-spark.jar"
STAMP = "META-INF/sources.sha256"


def digest() -> str:
    """Returns the digest of the sources."""
    found = hashlib.sha256()
    for path in sorted((FOLDER / "src").rglob("*.java")):
        found.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def is_built() -> bool:
    """Whether the jar was built of these sources."""
    if not JAR.is_file():
        return False
    with zipfile.ZipFile(JAR) as jar:
        return STAMP in jar.namelist() and jar.read(STAMP).decode() == digest()


def compiler() -> str | None:
    """Returns the path of `javac`, or None."""
    return shutil.which("javac")


def build() -> Path:
    """Compiles the sources; returns the jar's path.

    Raises:
        RuntimeError: there is no compiler, or no PySpark, or the compiler found an error.
    """
    javac, pyspark = compiler(), find_spec("pyspark")
    if javac is None:
        raise RuntimeError("javac was not found; install a JDK of version 17 or newer.")
    if pyspark is None or pyspark.origin is None:
        raise RuntimeError("PySpark is not installed, whose jars the compiler needs.")
    jars = Path(pyspark.origin).parent / "jars"
    with TemporaryDirectory() as folder:
        sources = sorted(map(str, (FOLDER / "src").rglob("*.java")))
        command = [javac, "--release", "17", "-nowarn", "-proc:none", "-classpath", f"{jars}/*", "-d", folder, *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"javac failed:\n{done.stderr[-4000:]}")
        partial = JAR.with_suffix(".part")
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as jar:
            jar.writestr(zipfile.ZipInfo(STAMP), digest(), zipfile.ZIP_DEFLATED)
            for path in sorted(Path(folder).rglob("*.class")):
                # the same bytes for the same sources
                jar.writestr(
                    zipfile.ZipInfo(path.relative_to(folder).as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED
                )
        partial.replace(JAR)
    return JAR


if __name__ == "__main__":
    if not is_built():
        build()
    sys.stdout.write(f"{JAR}\n")
