"""Live tables beside the reference: it reads them, what it writes is noticed, and a refresh is killed at each step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach
from tests.live import QUERIES, SOURCES, differing

_QUERY = "SELECT g, count(*) AS n, list(k ORDER BY k) AS ks FROM t GROUP BY g"


def _run(reference: duckdb.DuckDBPyConnection, uri: str, *statements: str) -> list[tuple[object, ...]]:
    attach(reference, uri)
    try:
        for statement in statements:
            found = reference.execute(statement).fetchall()
    finally:
        detach(reference)
    return found


def test_the_reference_reads_them_and_its_changes_of_sources_are_followed(
    lake_uri: Callable[..., str], reference: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(SOURCES)
        for name, query in QUERIES.items():
            session.sql(f'CREATE LIVE TABLE "{name}" AS {query}')
    _run(
        reference,
        uri,
        "INSERT INTO lake.t VALUES (200, 2, 5, 'n1', '2024-01-01', 1), (NULL, NULL, NULL, NULL, NULL, NULL)",
        "UPDATE lake.t SET g = 1 WHERE k < 5",
        "DELETE FROM lake.u WHERE w > 9",
        "INSERT INTO lake.u VALUES (NULL, 'theirs', 2)",
    )
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        for name, query in QUERIES.items():
            done = session.refresh(f'"{name}"')
            assert done.mode != "full", (name, done.reason)
            assert differing(session, name, query, done.snapshot) == [], name
    for name, query in QUERIES.items():
        if "twice" in query:
            continue  # the reference looks macros of a lake up by their qualified names
        text = (
            f'(FROM lake."{name}" EXCEPT ALL FROM ({query})) UNION ALL (FROM ({query}) EXCEPT ALL FROM lake."{name}")'
        )
        assert _run(reference, uri, "USE lake", text) == [], name


@pytest.mark.parametrize(
    "theirs",
    [
        "INSERT INTO lake.x VALUES (9, 9, [9])",
        "DELETE FROM lake.x WHERE g = 0",
        "UPDATE lake.x SET n = 0 WHERE g = 1",
        "ALTER TABLE lake.x ADD COLUMN theirs INTEGER",
        "ALTER TABLE lake.x DROP COLUMN n",
    ],
)
def test_what_the_reference_wrote_into_one_is_noticed(
    theirs: str, lake_uri: Callable[..., str], reference: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i AS k, i % 3 AS g FROM range(9) r(i)")
        session.sql(f"CREATE LIVE TABLE x AS {_QUERY}")
    _run(reference, uri, theirs, "CALL ducklake_flush_inlined_data('lake')")
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        done = session.refresh("x")
        assert done.mode == "full"
        assert "changed its rows, and was no refresh" in done.reason or "columns of its query" in done.reason
        assert differing(session, "x", _QUERY, done.snapshot) == []
        assert session.refresh("x").mode == "nothing"


def test_maintenance_by_the_reference_changes_nothing(
    lake_uri: Callable[..., str], reference: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i AS k, i % 3 AS g FROM range(9) r(i)")
        session.sql(f"CREATE LIVE TABLE x AS {_QUERY}")
    _run(reference, uri, "INSERT INTO lake.t VALUES (50, 1)", "CALL ducklake_flush_inlined_data('lake')")
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.refresh("x").mode == "incremental"
    _run(
        reference,
        uri,
        "CALL ducklake_flush_inlined_data('lake')",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.0)",
    )
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        done = session.refresh("x")
        assert done.mode == "nothing", done.reason
        session.sql("INSERT INTO t VALUES (51, 2)")
        done = session.refresh("x")
        assert done.mode == "incremental"
        assert differing(session, "x", _QUERY, done.snapshot) == []


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
@pytest.mark.sampled(3)
def test_a_killed_refresh_leaves_it_as_it_was_or_as_it_is_after(
    kind: str, new_catalog: Callable[..., str], tmp_path: Path
) -> None:
    uri = new_catalog(kind)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i AS k, i % 3 AS g FROM range(9) r(i)")
        session.sql(f"CREATE LIVE TABLE x AS {_QUERY}")
    for number in (-2, -1):  # the first commit after a change of the schema asks for more
        _change(uri, number)
        result = _refresh(uri, 0)
        assert result.returncode == 0, result.stderr
    steps = int(result.stdout)
    assert steps > 15
    every = [*range(1, steps + 1), -1]
    chosen = (
        every if os.environ.get("DUCKLAKE_LAB_KILLS") == "all" else [1, steps // 2, steps - 2, steps - 1, steps, -1]
    )
    killed = 0
    for number, step in enumerate(chosen, 1):
        before = _rows(uri)
        after = _change(uri, number)
        result = _refresh(uri, step)
        # one that asks for less has come to its end
        assert result.returncode in (0, -signal.SIGKILL), result.stderr
        killed += result.returncode != 0
        assert _rows(uri) in (before, after), step
        with dl.connect(uri, alias="lake", engine="duckdb") as session:
            done = session.refresh("x")
            assert done.mode in ("incremental", "nothing"), done.reason
            assert differing(session, "x", _QUERY, done.snapshot) == []
            assert session.refresh("x").mode == "nothing"
    assert killed >= len(chosen) - 2


def _change(uri: str, number: int) -> list[tuple[object, ...]]:
    """Changes the source, and returns the rows that the live table is to have."""
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql(f"INSERT INTO t VALUES ({100 + number}, {number % 3}); DELETE FROM t WHERE k = {number}")
        return session.sql(f"{_QUERY} ORDER BY g").fetchall()


def _rows(uri: str) -> list[tuple[object, ...]]:
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        return session.sql("FROM x ORDER BY g").fetchall()


def _refresh(uri: str, step: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.interop.killed_refresh", uri, str(step)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
