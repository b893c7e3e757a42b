"""The wheel, built and installed as users get it, in an environment of its own without Node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel; its dependencies are those of the environment of the tests.

    Attributes:
        python: its interpreter.
        environment: what processes in it get; PATH has no Node.
    """

    wheel: Path
    python: Path
    environment: dict[str, str]

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Run `python arguments…` and return its output, errors included."""
        done = subprocess.run(
            [self.python, *arguments], env=self.environment, cwd=cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """The wheel of the repository, or of a source distribution, as pip builds it."""
    # quicker than an isolated build by what pip would install
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Installed:
    """Installs the wheel without its dependencies, which are found where the tests find them."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-compile", wheel],
        check=True,
    )
    ours = Path(sysconfig.get_path("purelib"))
    # after the wheel's own files; `.pth` files in there, such as that of an editable installation, are not read
    (site / "dependencies.pth").write_text(f"{ours}\n")
    tools = folder / "tools"
    tools.mkdir()
    for tool in ("sh", "env", "uname", "dirname", "java"):
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    share = Path(sys.prefix) / "share" / "jupyter"
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "JPY", "PYDEVD", "PYTHONPATH", "VIRTUAL_ENV"))
    } | {
        "PATH": f"{folder / 'bin'}{os.pathsep}{tools}",
        # JupyterLab itself, and the extensions of ipywidgets and anywidget, are dependencies too; the wheel's extension
        # goes before the one that `make lab` may have linked there
        "JUPYTER_PATH": f"{folder / 'share' / 'jupyter'}{os.pathsep}{share}",
        "JUPYTERLAB_DIR": str(share / "lab"),
    }
    assert shutil.which("node", path=environment["PATH"]) is None
    return Installed(wheel, python, environment)
