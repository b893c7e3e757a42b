"""Commands of `make`, printed and not run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[2]


def _last_command(folder: Path, uid: int, *arguments: str) -> str:
    asked = folder / "id"
    asked.write_text(f"#!/bin/sh\necho {uid}\n")
    asked.chmod(0o755)
    done = subprocess.run(
        ["make", "--dry-run", *arguments],
        cwd=_REPOSITORY,
        env={"PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="no make on PATH")
@pytest.mark.parametrize(("uid", "root"), [(0, " --allow-root"), (1000, ""), (100, "")])
def test_jupyterlab_runs_as_any_user_with_options(tmp_path: Path, uid: int, root: str):
    command = _last_command(tmp_path, uid, "lab", "VENV=v", "DEMO=d", "LAB_ARGS=--no-browser --port 9000")
    assert command.split() == f"v/bin/jupyter lab d/quickstart.ipynb{root} --no-browser --port 9000".split()
    assert _last_command(tmp_path, uid, "lab", "VENV=v", "DEMO=d").split() == command.split()[: 4 if root else 3]
