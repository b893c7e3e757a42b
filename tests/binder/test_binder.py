"""The files for Binder: by repo2docker's own rules, and what `postBuild` makes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import duckdb
import nbformat
import pytest
from repo2docker.app import Repo2Docker
from repo2docker.buildpacks import PythonBuildPack
from repo2docker.utils import is_local_pip_requirement

from tests.installed import ROOT

BINDER = ROOT / "binder"


@pytest.fixture
def dockerfile(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the Dockerfile that repo2docker makes of the repository, by the first of its build packs that takes it."""
    monkeypatch.chdir(ROOT)
    app = Repo2Docker()
    packs = (pack(app.base_image) for pack in app.buildpacks)
    chosen = next(pack for pack in packs if pack.detect())
    assert type(chosen) is PythonBuildPack
    assert chosen.python_version == "3.11"
    chosen.platform = "linux/amd64"
    text: str = chosen.render(build_args={})
    return text


def test_repo2docker_takes_them(dockerfile: str):
    # the repository is there before pip installs it, and the demo is built after that
    copied = dockerfile.index("COPY --chown=1000:1000 src/ ${REPO_DIR}/")
    installed = dockerfile.index('/bin/pip install --no-cache-dir -r "binder/requirements.txt"')
    built = dockerfile.index("RUN ./binder/postBuild")
    assert copied < installed < built
    assert 'ENV R2D_ENTRYPOINT="${REPO_DIR}/binder/start"' in dockerfile


def test_no_other_file_takes_their_place():
    """A Dockerfile or an environment.yml would come first; files beside `binder/` are not looked at."""
    assert {path.name for path in BINDER.iterdir()} == {
        "README.md",
        "postBuild",
        "requirements.txt",
        "runtime.txt",
        "start",
    }
    assert not (ROOT / ".binder").exists()


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_scripts_can_be_executed(name: str):
    assert os.access(BINDER / name, os.X_OK)
    assert (BINDER / name).read_text().startswith("#!/bin/bash\n")


def test_the_repository_is_installed_with_what_the_demo_needs():
    wanted = [line for line in (BINDER / "requirements.txt").read_text().splitlines() if is_local_pip_requirement(line)]
    assert wanted == [".[demo,jdk]"]


def test_a_session_starts_what_it_is_told_to_with_little_memory(tmp_path: Path):
    done = subprocess.run(
        [BINDER / "start", "bash", "-c", "echo $DUCKLAKE_LAB_DRIVER_MEMORY $0", "lab"],
        capture_output=True, text=True, check=True, env={"PATH": os.defpath},
    )  # fmt: skip
    assert done.stdout == "1g lab\n"


@pytest.mark.sampled(4, "executed notebooks")
def test_post_build_makes_the_lake_and_the_notebook(post_build: Path):
    notebook = nbformat.read(post_build / "demo" / "quickstart.ipynb", 4)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip())
    catalog = duckdb.connect(str(post_build / "demo" / "flights.ducklake"), read_only=True)
    ((snapshots,),) = catalog.execute("SELECT count(*) FROM ducklake_snapshot").fetchall()
    assert snapshots > 12
    catalog.close()
