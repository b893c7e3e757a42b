"""The wheel and the source distribution: one version, all files, and JupyterLab finds its extension."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import ducklake_lab
from tests.installed import ROOT, Installed

pytestmark = pytest.mark.sampled(3)

JAR = "ducklake_lab/spark/ducklake-lab-spark.jar"
EXTENSION = "share/jupyter/labextensions/jupyterlab-ducklake/"


def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_jupyterlab_finds_the_extension_enabled(installed: Installed):
    listed = installed.run("-m", "jupyterlab.labextensions", "list")
    line = next(line for line in listed.splitlines() if "jupyterlab-ducklake" in line)
    assert f"v{ducklake_lab.__version__}" in line
    assert re.search(r"enabled.*OK.*python, ducklake-lab", re.sub(r"\x1b\[\d*m", "", line))


def test_the_wheel_is_what_is_imported(installed: Installed, tmp_path: Path):
    printed = installed.run("-c", "import ducklake_lab as dl; print(dl.__version__, dl.__file__)", cwd=tmp_path)
    version, path = printed.split()
    assert version == ducklake_lab.__version__
    assert Path(path).is_relative_to(installed.python.parents[1])


def test_a_lake_can_be_made_with_it(installed: Installed, tmp_path: Path):
    code = "import ducklake_lab as dl\nwith dl.connect('ducklake:x.ducklake') as s: s.sql('CREATE TABLE t (a INT)')\n"
    installed.run("-c", f"{code}with dl.connect('ducklake:x.ducklake') as s: print(s.tables())", cwd=tmp_path)
    assert (tmp_path / "x.ducklake").is_file()


def test_the_wheel_holds_what_it_should(installed: Installed):
    names = files(installed.wheel)
    assert "ducklake_lab/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(f"{EXTENSION}install.json" in name for name in names)
    assert any(re.search(f"{EXTENSION}static/remoteEntry.*js", name) for name in names)
    assert not [name for name in names if "node_modules" in name or name.startswith(("tests/", "docs/"))]
    if shutil.which("javac") is not None:
        assert JAR in names
    for kind in ("css", "js"):
        assert any(name.startswith("ducklake_lab/widgets/static/") and name.endswith(f".{kind}") for name in names)
    assert {f"ducklake_lab/web/static/{name}" for name in ("icon.svg", "page.css", "page.html", "page.js")} <= names


def test_metadata_has_one_version_and_the_extras(installed: Installed):
    with zipfile.ZipFile(installed.wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
        package = next(name for name in archive.namelist() if name.endswith(f"{EXTENSION}package.json"))
        assert json.loads(archive.read(package))["version"] == metadata["Version"] == ducklake_lab.__version__
    assert set(metadata.get_all("Provides-Extra", [])) >= {"postgres", "mysql", "jdk", "dev"}
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_the_source_distribution_makes_the_same_wheel_without_node(installed: Installed, tmp_path: Path):
    build = [sys.executable, "-m", "build", "--no-isolation"]
    subprocess.run([*build, "--sdist", "--outdir", tmp_path, ROOT], check=True, capture_output=True)
    (packed,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        assert not [name for name in archive.getnames() if "node_modules" in name]
    shutil.unpack_archive(packed, tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    environment = {**os.environ, "PATH": installed.environment["PATH"]}
    assert shutil.which("node", path=environment["PATH"]) is None
    done = subprocess.run(
        [*build, "--wheel", "--outdir", tmp_path, source], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert files(wheel) == files(installed.wheel)


def test_an_editable_installation_needs_no_node(tmp_path: Path):
    """Its build calls nothing outside Python: PATH is empty, and the extension's folder stays as it is."""
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("node_modules", ".yarn", "lib", "labextension", "__pycache__")
    for name in ("ducklake_lab", "extensions"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    code = "import hatchling.build as b; print(b.build_editable('.'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=source, env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not [name for name in files(source / done.stdout.strip().splitlines()[-1]) if "labextensions" in name]


def test_without_a_jdk_the_wheel_lacks_the_jar_and_says_so(tmp_path: Path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("node_modules", ".yarn", "lib", "labextension", "__pycache__", "*.jar")
    for name in ("ducklake_lab", "extensions"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, source]
    environment = {**os.environ, "PATH": "", "DUCKLAKE_LAB_LABEXTENSION": "0"}
    done = subprocess.run(build, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lacks the Spark catalog" in done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert JAR not in files(wheel)


def test_the_footprint_is_printed(installed: Installed, capsys: pytest.CaptureFixture[str]):
    printed = installed.run(ROOT / "benchmarks" / "footprint.py")
    own = re.search(r"installed size +ducklake-lab ([\d.]+) MB, \d+ requirements \d+ MB", printed)
    assert own is not None and 0.5 < float(own[1]) < 10
    assert re.search(r"import ducklake_lab +\d+ ms", printed)
    with capsys.disabled():
        print(f"\n{printed}")
