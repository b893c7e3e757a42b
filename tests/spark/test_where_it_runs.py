"""Behaviour on a cluster and behind Spark Connect, compared with this process.

Tests marked `anywhere` run again there. They show what can differ: types and rows that cross to executors or to a client,
files that executors write and read, work in Python workers, errors, interrupts and progress. What only the driver does, such
as plans, retries and caches, is the same everywhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

#: Files with tests marked `anywhere`, which run together, and how many such tests they have at least.
_FILES = {
    ("test_session.py",): 15,
    ("test_reader.py",): 14,
    ("test_deletes.py", "test_row_by_row.py", "test_stream_states.py"): 6,
    ("test_found_rows.py", "test_feeds.py", "test_merge.py"): 13,
}


#: Tests of Spark's catalog that run again on a cluster; a client of Spark Connect has no catalogs of lakes.
_OF_CATALOGS = {
    "test_catalog_writes.py": (
        "deletes_updates_and_merges",
        "many_changed_rows",
        "overwrites_replace",
        "a_statement_that_loses",
    ),
    "test_catalog_streams.py": ("goes_from_table_to_table",),
}


@pytest.mark.timeout(900)
@pytest.mark.sampled(6)
@pytest.mark.parametrize("names", _FILES, ids=lambda names: names[0])
@pytest.mark.parametrize("where", ["cluster", "connect"])
def test_sessions_behave_the_same(where: str, names: tuple[str, ...], pytestconfig: pytest.Config) -> None:
    _run(where, names, ["-m", "anywhere"], _FILES[names], pytestconfig)


@pytest.mark.timeout(900)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", _OF_CATALOGS)
def test_catalogs_behave_the_same_on_a_cluster(name: str, spark_jar: None, pytestconfig: pytest.Config) -> None:
    chosen = _OF_CATALOGS[name]
    _run("cluster", [name], ["-k", " or ".join(chosen)], len(chosen), pytestconfig)


def _run(where: str, names: Sequence[str], choice: Sequence[str], least: int, pytestconfig: pytest.Config) -> None:
    """Runs tests elsewhere in another process, as a process has one Spark; at least so many pass, and none is skipped."""
    if pytestconfig.getoption("--spark") != "local":
        pytest.skip("runs the suite elsewhere already")
    files = [str(Path(__file__).parent / name) for name in names]
    options = ["-q", "-p", "no:cacheprovider", *choice, "--everything", "--spark", where]
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
    assert "skipped" not in last and passed is not None and int(passed[1]) >= least, last
