"""Parts of nested columns are found by field id, at every depth: by every reader, and by every statement that carries rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.session.rows.sources import Sources
from tests.interop.comparing import attach, detach, normal, our_history, reference_history

pytestmark = pytest.mark.sampled(5)

CREATE = (
    "CREATE TABLE ev (a INTEGER, b STRUCT(x INTEGER, y VARCHAR), "
    "m MAP(VARCHAR, STRUCT(p INTEGER, q INTEGER)), l STRUCT(i INTEGER, r STRUCT(s INTEGER, u INTEGER))[])"
)
#: Rows of the table as it is made, with NULL at every depth.
ROWS = (
    "(1, {'x': 1, 'y': 'a'}, MAP {'k': {'p': 1, 'q': 2}}, [{'i': 1, 'r': {'s': 5, 'u': 6}}])",
    "(2, NULL, NULL, NULL)",
    "(3, {'x': NULL, 'y': NULL}, MAP {'k': NULL}, [NULL, {'i': 2, 'r': NULL}])",
)
#: Every ALTER of a part: rename, swap, add with and without a default, drop and add again, widen.
ALTERS = (
    "ALTER TABLE ev RENAME b.x TO xx",
    "ALTER TABLE ev ADD COLUMN b.z INTEGER",
    "ALTER TABLE ev ADD COLUMN b.w INTEGER DEFAULT 7",
    "ALTER TABLE ev RENAME m.value.p TO t",
    "ALTER TABLE ev RENAME m.value.q TO p",
    "ALTER TABLE ev RENAME m.value.t TO q",
    "ALTER TABLE ev RENAME l.element.r.s TO s2",
    "ALTER TABLE ev DROP COLUMN b.y",
    "ALTER TABLE ev ADD COLUMN b.y VARCHAR",
    "ALTER TABLE ev ADD COLUMN l.element.r.n INTEGER",
    "ALTER TABLE ev DROP COLUMN l.element.r.s2",
    "ALTER TABLE ev ALTER b SET TYPE STRUCT(xx BIGINT, z INTEGER, w INTEGER, y VARCHAR)",
    "ALTER TABLE ev RENAME b TO c",
)
AFTER = (
    "(4, {'xx': 40000000000, 'z': 3, 'w': 9, 'y': 'd'}, MAP {'k': {'q': 1, 'p': 2}}, [{'i': 1, 'r': {'u': 5, 'n': 1}}])"
)
#: Statements that carry all columns of rows from file to file.
CARRIERS = (
    "UPDATE ev SET a = a + 10 WHERE c.xx = 1 OR a = 2",
    "MERGE INTO ev USING (SELECT 3 AS a) AS n ON ev.a = n.a WHEN MATCHED THEN UPDATE SET a = 30",
    "INSERT INTO ev SELECT a + 100, c, m, l FROM ev",
    "DELETE FROM ev WHERE c.xx = 1 AND a > 100",
    "CREATE TABLE copied AS SELECT * FROM ev",
    "UPDATE ev SET m = MAP {'n': m['k']} WHERE m['k'].q = 1",
)
#: Queries of some parts only, where Spark's reader forgets the columns' field ids.
PARTS = (
    "SELECT a, c.xx, c.y FROM ev",
    "SELECT a, m['k'].q FROM ev",
    "SELECT a, l[1].r.n FROM ev",
    "SELECT a FROM ev WHERE c.xx = 1 OR m['k'].p = 2",
)
LIMITS = {"files": 0, "inlined": 10}


@pytest.fixture
def ours(spark: Any) -> Iterator[dl.Session]:
    with dl.Session(spark=spark) as session:
        yield session


def _make(reference: duckdb.DuckDBPyConnection, uri: str, folder: Path, limit: int) -> None:
    """A lake of the reference's, with rows written before and after each change of the table."""
    reference.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{folder}'); USE lake")
    reference.execute(f"CALL lake.set_option('data_inlining_row_limit', {limit})")
    for sql in (CREATE, *(f"INSERT INTO ev VALUES {row}" for row in ROWS)):
        reference.execute(sql)
    for alter in ALTERS:
        reference.execute(alter)
        reference.execute("INSERT INTO ev (a) VALUES (0)")
    reference.execute(f"INSERT INTO ev VALUES {AFTER}")


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_each_snapshot_reads_as_in_the_reference(
    tmp_path: Path,
    reference: duckdb.DuckDBPyConnection,
    new_catalog: Callable[..., str],
    ours: dl.Session,
    limit: int,
) -> None:
    uri = new_catalog()
    _make(reference, uri, tmp_path / "data", limit)
    parts = {query: _sorted(reference.execute(query).fetchall()) for query in PARTS}
    detach(reference)
    known = reference_history(reference, uri)
    ours.attach(uri, alias="lake")
    ours.use("lake")
    for engine in ("duckdb", "spark"):
        assert our_history(ours, engine) == known, engine
        assert {query: _sorted(ours.sql(query, engine=engine).fetchall()) for query in PARTS} == parts, engine


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_rows_keep_their_parts_when_statements_carry_them(
    tmp_path: Path,
    reference: duckdb.DuckDBPyConnection,
    new_catalog: Callable[..., str],
    ours: dl.Session,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
) -> None:
    uri, theirs = new_catalog("sqlite", "ours"), new_catalog("sqlite", "theirs")
    for lake in (uri, theirs):
        _make(reference, lake, tmp_path / ("data" if lake == uri else "their_data"), limit)
        if lake == theirs:
            for sql in CARRIERS:
                reference.execute(sql)
        detach(reference)
    known = {table: _last(reference, theirs, table) for table in ("ev", "copied")}
    ours.attach(uri, alias="lake")
    ours.use("lake")
    for way in ("Spark", "in workers", "in process"):
        with monkeypatch.context() as patched:
            if way != "in process":
                patched.setattr(ours, "engine", "spark")
            if way == "Spark":
                patched.setattr(Sources, "row_query", lambda self, plan, loaded: None)
            ours.sql("BEGIN")
            for sql in CARRIERS:
                ours.sql(sql)
        for table, rows in known.items():
            assert _sorted(ours.sql(f"FROM {table}", engine="duckdb").fetchall()) == rows, (way, table)
        ours.sql("COMMIT" if way == "in process" else "ROLLBACK")
    ours.detach("lake")
    assert {table: _last(reference, uri, table) for table in known} == known


def _last(reference: duckdb.DuckDBPyConnection, uri: str, table: str) -> list[list[Any]]:
    attach(reference, uri)
    rows = _sorted(reference.execute(f"FROM {table}").fetchall())
    detach(reference)
    return rows


def _sorted(rows: list[tuple[Any, ...]]) -> list[Any]:
    return sorted(map(normal, rows), key=repr)
