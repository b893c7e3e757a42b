"""Expectations beside the reference: it keeps and ignores them, CHECK finds what it wrote; races and kills of commits that check."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach

pytestmark = pytest.mark.sampled(3)

_UNIQUE_WRITER = textwrap.dedent(
    """
    import json, sys
    import ducklake_lab as dl
    uri, worker, keys = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    done = []
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        for key in range(keys):
            while True:
                try:
                    session.sql(f"INSERT INTO t VALUES ({key}, {worker})")
                    done.append(key)
                except dl.ExpectationError:
                    pass
                except dl.TransactionError as error:
                    if "conflict" in str(error) or "lost against" in str(error):
                        continue
                    raise
                except dl.CatalogLockedError:
                    continue
                break
    print(json.dumps(done))
    """
)
_KILLED = textwrap.dedent(
    """
    import os, signal, sys
    import sqlalchemy as sa
    import ducklake_lab as dl
    uri, step = sys.argv[1], int(sys.argv[2])
    asked = 0
    def count(*_):
        global asked
        asked += 1
        if asked == step:
            os.kill(os.getpid(), signal.SIGKILL)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        sa.event.listen(sa.Engine, "before_cursor_execute", count)
        sa.event.listen(sa.Engine, "commit", count)
        session.sql("INSERT INTO t VALUES (1, 1), (2, -2), (3, 3)")
    print(asked)
    """
)


def test_the_reference_keeps_them_and_check_finds_its_rows(
    lake_uri: Callable[..., str], reference: duckdb.DuckDBPyConnection, tmp_path: Path
):
    uri = lake_uri()
    with dl.connect(uri, data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE p (k INTEGER); CREATE TABLE t (id INTEGER, v INTEGER)")
        session.sql("INSERT INTO p VALUES (1), (2); INSERT INTO t VALUES (1, 1)")
        session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0); ALTER TABLE t EXPECT one_each UNIQUE (id)")
        session.sql("ALTER TABLE t EXPECT known (v) REFERENCES p(k)")
        since = session.current_snapshot().snapshot_id
    attach(reference, uri)
    reference.execute("INSERT INTO lake.t VALUES (1, 2), (2, -1)")
    reference.execute("DELETE FROM lake.p WHERE k = 2")
    reference.execute("ALTER TABLE lake.t RENAME v TO amount")
    assert reference.execute("SELECT count(*) FROM lake.t").fetchall() == [(3,)]
    detach(reference)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        whole = {row[1]: row[5] for row in session.check("t").fetchall()}
        later = {row[1]: row[5] for row in session.check("t", since=since).fetchall()}
        assert whole == later == {"positive": 1, "one_each": 1, "known": 2}
        with pytest.raises(dl.ExpectationError, match="positive"):
            session.sql("INSERT INTO t VALUES (9, -9)")
    attach(reference, uri)
    reference.execute("ALTER TABLE lake.t DROP COLUMN amount")
    detach(reference)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        with pytest.raises(dl.CatalogError, match="which was dropped"):
            session.sql("INSERT INTO t VALUES (9)")
        session.sql("ALTER TABLE t DROP EXPECTATION positive; ALTER TABLE t DROP EXPECTATION known")
        session.sql("INSERT INTO t VALUES (9)")


def test_a_table_set_aside_is_read_by_the_reference(
    lake_uri: Callable[..., str], reference: duckdb.DuckDBPyConnection, tmp_path: Path
):
    uri = lake_uri()
    with dl.connect(uri, data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (id INTEGER, v INTEGER)")
        session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0) ON VIOLATION quarantine")
        with pytest.warns(dl.ExpectationWarning):
            session.sql("INSERT INTO t SELECT i, i - 50 FROM range(1, 101) AS r(i)")
        with pytest.warns(dl.ExpectationWarning):
            session.sql("UPDATE t SET v = v - 40 WHERE id <= 95")
    attach(reference, uri)
    assert reference.execute("SELECT count(*), min(v), count(DISTINCT rowid) FROM lake.t").fetchall() == [(50, 1, 50)]
    assert reference.execute("SELECT count(*), max(v) FROM lake.t_quarantine").fetchall() == [(90, 0)]
    detach(reference)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_of_two_writers_of_one_key_one_commits(kind: str, new_catalog: Callable[..., str], tmp_path: Path):
    uri, keys = new_catalog(kind), 12
    with dl.connect(uri, data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (id INTEGER, worker INTEGER); ALTER TABLE t EXPECT one_each UNIQUE (id)")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _UNIQUE_WRITER, uri, str(worker), str(keys)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for worker in range(3)
    ]
    done = []
    for process in writers:
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        done += json.loads(output)
    assert sorted(done) == list(range(keys))
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.sql("SELECT count(*), count(DISTINCT id) FROM t").fetchall() == [(keys, keys)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_key_that_another_commit_took_meanwhile_refuses_a_transaction(
    kind: str, new_catalog: Callable[..., str], tmp_path: Path
):
    uri = new_catalog(kind)
    with dl.connect(uri, data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as one:
        one.sql("CREATE TABLE p (k INTEGER); CREATE TABLE t (id INTEGER, v INTEGER); INSERT INTO p VALUES (1), (2)")
        one.sql("ALTER TABLE t EXPECT one_each UNIQUE (id); ALTER TABLE t EXPECT known (v) REFERENCES p(k)")
        with dl.connect(uri, alias="lake", engine="duckdb") as two:
            for ours, theirs in (
                ("INSERT INTO t VALUES (5, 1)", "INSERT INTO t VALUES (5, 1)"),
                ("INSERT INTO t VALUES (6, 2)", "DELETE FROM p WHERE k = 2"),
                ("DELETE FROM p WHERE k = 1", "INSERT INTO t VALUES (7, 1)"),
            ):
                one.sql(f"BEGIN; {ours}")
                two.sql(theirs)
                with pytest.raises(dl.DuckLakeError) as caught:
                    one.sql("COMMIT")
                assert isinstance(caught.value, dl.TransactionConflictError | dl.ExpectationError)
            assert two.sql("SELECT id FROM t ORDER BY id").fetchall() == [(5,), (7,)]
            assert [row[5] for row in two.check("t").fetchall()] == [0, 0]
            # a statement by itself runs again and finds the key
            with pytest.raises(dl.ExpectationError):
                one.sql("INSERT INTO t VALUES (7, 1)")


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_a_killed_commit_has_all_or_nothing(kind: str, new_catalog: Callable[..., str], tmp_path: Path):
    uri = new_catalog(kind)
    with dl.connect(uri, data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (id INTEGER, v INTEGER)")
        session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0) ON VIOLATION quarantine")

    def run(step: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", "-c", _KILLED, uri, str(step)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def look() -> tuple[int, int]:
        with dl.connect(uri, alias="lake", engine="duckdb") as session:
            rows = session.sql("SELECT count(*) FROM t").fetchall()[0][0]
            names = [info.table.name for info in session.tables()]
            return rows, session.sql("SELECT count(*) FROM t_quarantine").fetchall()[0][0] if len(names) > 1 else 0

    whole = run(0)
    assert whole.returncode == 0, whole.stderr
    steps, seen = int(whole.stdout), look()
    assert seen == (2, 1)
    count = steps if os.environ.get("DUCKLAKE_LAB_KILLS") == "all" else 6
    for step in sorted({max(1, steps * n // count) for n in range(1, count + 1)}):
        result = run(step)
        after = look()
        assert after in (seen, (seen[0] + 2, seen[1] + 1)), (step, result.stderr)
        seen = after
        if result.returncode != -signal.SIGKILL:
            assert result.returncode == 0, result.stderr
