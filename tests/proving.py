"""A whole run in parts: what passed is left out when it goes on, while sources and packages stay as they are."""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.installed import ROOT


def state() -> str:
    """Return a digest of all sources of the repository and of the installed packages.

    Raises:
        UsageError: the repository is not one of git.
    """
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True)
    if done.returncode:
        raise pytest.UsageError("--go-on needs a checkout of git, which knows what belongs to the sources.")
    found = hashlib.sha256()
    for name in sorted(filter(None, done.stdout.decode().split("\0"))):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b""
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    packages = sorted(f"{one.name}=={one.version}" for one in distributions())
    return hashlib.sha256(f"{found.hexdigest()} {packages}".encode()).hexdigest()


def begin(file: Path, now: str) -> list[str]:
    """Return the ids of the tests that passed in a state; a file of another state begins anew.

    Args:
        file: its first line is the state; a line for each test that passed follows, with its seconds and its id.
    """
    text = file.read_text() if file.exists() else ""
    # the last line of a run that was killed may be cut, and its test runs again
    first, *passed = text[: text.rfind("\n") + 1].splitlines() or [""]
    if first != now:
        passed = []
    file.write_text("".join(f"{line}\n" for line in (now, *passed)))
    return [line.partition("\t")[2] for line in passed]


def seconds(file: Path) -> dict[str, float]:
    """Return how long the tests in a file took, by their ids."""
    lines = (line.partition("\t") for line in file.read_text().splitlines()[1:])
    return {test: float(took) for took, _, test in lines}


class Passed:
    """Notes the tests that pass.

    Args:
        in_groups: ids end with the group that pytest-xdist puts a test in.
    """

    def __init__(self, file: Path, *, in_groups: bool) -> None:
        self._file = file
        self._in_groups = in_groups
        self._took: defaultdict[str, float] = defaultdict(float)
        self._others: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._took[report.nodeid] += report.duration
        if not report.passed:
            self._others.add(report.nodeid)
        if report.when == "teardown" and report.nodeid not in self._others:
            test = report.nodeid.rpartition("@")[0] if self._in_groups else report.nodeid
            with self._file.open("a") as file:
                file.write(f"{self._took[report.nodeid]:.2f}\t{test}\n")
