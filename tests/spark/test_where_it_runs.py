"""Behaviour on a cluster and behind Spark Connect, compared with this process.

Tests marked `anywhere` run again there. They show what can differ: types and rows that cross to executors or to a client,
files that executors write and read, work in Python workers, errors, interrupts and progress. What only the driver does, such
as plans, retries and caches, is the same everywhere.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

#: Files with tests marked `anywhere`, which run together, and how many such tests they have at least.
_FILES = {
    ("test_session.py",): 15,
    ("test_reader.py",): 14,
    ("test_deletes.py", "test_row_by_row.py", "test_stream_states.py"): 6,
}
#: Likewise, of catalogs of Spark, which a client of Spark Connect does not have.
_OF_CATALOGS = {("test_catalog_writes.py", "test_keyed_joins.py"): 5}


@pytest.mark.timeout(900)
@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("where", "names"),
    [*itertools.product(("cluster", "connect"), _FILES), *itertools.product(("cluster",), _OF_CATALOGS)],
    ids=lambda given: given if isinstance(given, str) else given[0],
)
def test_sessions_behave_the_same(where: str, names: tuple[str, ...], pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--spark") != "local":
        pytest.skip("runs the suite elsewhere already")
    files = [str(Path(__file__).parent / name) for name in names]
    options = ["-q", "-p", "no:cacheprovider", "-m", "anywhere", "--everything", "--spark", where]
    # a process has one Spark
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    last = done.stdout.splitlines()[-1]
    passed = re.search(r"(\d+) passed", last)
    assert "skipped" not in last and passed is not None and int(passed[1]) >= (_FILES | _OF_CATALOGS)[names], last
