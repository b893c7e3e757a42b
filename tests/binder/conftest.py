"""Image of Binder, made once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.installed import ROOT, Installed


@pytest.fixture(scope="session")
def post_build(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `postBuild` has run quietly, as in an image: the wheel, Java from pip, nothing else."""
    folder = tmp_path_factory.mktemp("binder")
    (folder / "binder").mkdir()
    shutil.copy(ROOT / "binder" / "postBuild", folder / "binder")
    shutil.copytree(ROOT / "notebooks", folder / "notebooks")
    tools = folder / "tools"
    tools.mkdir()
    for tool in Path("/usr/bin").iterdir():
        if not tool.name.startswith(("java", "jlpm", "node", "npm", "npx", "python")):
            (tools / tool.name).symlink_to(tool)
    environment = {name: value for name, value in installed.environment.items() if not name.startswith("JAVA")} | {
        "PATH": f"{installed.python.parent}{os.pathsep}{tools}",
        "HOME": str(folder / "home"),
    }
    assert shutil.which("java", path=environment["PATH"]) is None
    done = subprocess.run(
        [folder / "binder" / "postBuild"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout + done.stderr == ""
    return folder
