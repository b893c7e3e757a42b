"""A commit that is killed with SIGKILL, at whatever step, leaves the lake as it was before or as it is after.

`DUCKLAKE_LAB_KILLS=all` kills it before every single thing it asks of the database, rather than at some of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.remote import RemoteConnection
from tests.interop.comparing import attach, detach
from tests.quack import TOKEN

pytestmark = pytest.mark.sampled(5)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres", "mysql", "quack"])
def test_the_lake_is_before_or_after(
    kind: str, new_catalog: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    uri = new_catalog(kind)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); CREATE TABLE shape (i INTEGER)")
        session.sql("INSERT INTO t VALUES (0, 'old'), (100, 'kept'); INSERT INTO shape VALUES (1)")
    seen = _look(uri)
    result = killed(uri, "1", 0)
    assert result.returncode == 0, result.stderr
    steps = int(result.stdout)
    assert steps > 15
    seen = _committed(seen, 1)
    assert _look(uri) == seen
    landed = 0
    for step in chosen(steps):
        n = landed + 2
        assert killed(uri, str(n), step).returncode == -signal.SIGKILL
        after = _look(uri)
        assert after in (seen, _committed(seen, n)), step
        # the last of all is the commit itself, which is counted before it is sent
        # of a served catalog, whose answer is counted, too
        assert step == -1 or kind == "quack" or after == seen, step
        if kind == "quack":
            check_nothing_is_open(uri)
        landed += after != seen
        seen = after
    assert landed >= 1
    if kind != "mysql":
        attach(reference, uri)
        assert reference.execute("SELECT rowid, i, s FROM t ORDER BY rowid").fetchall() == seen["rows"]
        reference.execute("INSERT INTO t VALUES (-1, 'theirs'); INSERT INTO shape (i) VALUES (2)")
        detach(reference)


def check_nothing_is_open(uri: str) -> None:
    """Checks that no transaction of a client that was killed is open on a server."""
    other = RemoteConnection(uri.removeprefix("ducklake:"), TOKEN)
    other.execute("UPDATE ducklake_metadata SET value = value || ' ' WHERE key = 'created_by'")
    other.commit()
    # refused where an older transaction may read the row as it was
    other.execute("CHECKPOINT")
    other.close()


def chosen(steps: int) -> list[int]:
    """The steps to kill at, then -1: after the commit."""
    if os.environ.get("DUCKLAKE_LAB_KILLS") == "all":
        return [*range(1, steps + 1), -1]
    return [1, steps // 3, 2 * steps // 3, steps - 2, steps - 1, steps, -1]


def killed(uri: str, work: str, step: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.interop.killed", uri, work, str(step)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def _look(uri: str) -> dict[str, Any]:
    """Return the lake's content as a reader sees it."""
    with dl.connect(uri, alias="lake") as session:
        tables = {info.table.name: [c.name for c in info.table.columns] for info in session.tables()}
        assert session.sql("FROM shape").fetchall()
        return {
            "snapshot": session.current_snapshot().snapshot_id,
            "tables": tables,
            "rows": session.sql("SELECT rowid, i, s FROM t ORDER BY rowid").fetchall(),
            "made": {name: len(session.sql(f"FROM {name}").fetchall()) for name in tables if name.startswith("made_")},
        }


def _committed(before: dict[str, Any], n: int) -> dict[str, Any]:
    """Return the lake's content after the n-th change."""
    next_id = max(row[0] for row in before["rows"]) + 1
    return {
        "snapshot": before["snapshot"] + 1,
        "tables": {**before["tables"], f"made_{n}": ["i"], "shape": [*before["tables"]["shape"], f"c{n}"]},
        "rows": [*(row for row in before["rows"] if row[1] != n - 1), (next_id, n, "new")],
        "made": {**before["made"], f"made_{n}": 2},
    }
