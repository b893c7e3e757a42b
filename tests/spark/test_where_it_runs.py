"""The same behaviour on a cluster and behind Spark Connect as in this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_SUITE = (
    "test_session.py",
    "test_reader.py",
    "test_deletes.py",
    "test_row_by_row.py::test_large_files_are_read_in_parts",
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", ["cluster", "connect"])
def test_sessions_behave_the_same(where: str, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--spark") != "local":
        pytest.skip("runs the suite elsewhere already")
    here = Path(__file__).parent
    files = [str(here / name) for name in _SUITE]
    # a process has one Spark
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--spark", where, *files],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout.splitlines()[-1]
