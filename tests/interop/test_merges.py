"""Merges beside the reference: it reads them at every snapshot, tidies both sides, and goes on with both."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop import everything
from tests.interop.comparing import attach, detach, normal, our_history, reference_history

#: Maintenance of a lake by the reference; it leaves the newest snapshot alone.
TIDY = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_expire_snapshots('lake', older_than => now())",
    "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",
)


class Case(NamedTuple):
    """Statements before the branch, of the lake, and of the branch; `on_conflict` of the merge."""

    before: tuple[str, ...]
    lake: tuple[str, ...]
    branch: tuple[str, ...]
    on_conflict: str | None = None


_MANY = "INSERT INTO t SELECT i, {1} FROM range({0}, {0} + 60) r(i)"
_TABLE = "CREATE TABLE t AS SELECT i::INTEGER AS k, 0 AS v FROM range(60) r(i)"
CASES = {
    "rows": Case(
        (_TABLE, "INSERT INTO t VALUES (100, 1)"),
        ("UPDATE t SET v = 1 WHERE k < 5", "DELETE FROM t WHERE k = 9", _MANY.format(200, 1), "DELETE FROM t WHERE k = 7"),
        ("UPDATE t SET v = 2 WHERE k > 55", "DELETE FROM t WHERE k = 8", _MANY.format(300, 2), "INSERT INTO t VALUES (1, 1)"),
    ),
    "conflicts": Case(
        (_TABLE,),
        ("UPDATE t SET v = 1 WHERE k < 30", "DELETE FROM t WHERE k > 50"),
        ("UPDATE t SET v = 2 WHERE k > 20", "DELETE FROM t WHERE k < 5", "INSERT INTO t VALUES (500, 5)"),
        "theirs",
    ),
    "columns": Case(
        (_TABLE, "ALTER TABLE t ADD COLUMN s STRUCT(a INTEGER)", "UPDATE t SET s = {'a': k} WHERE k < 30"),
        ("ALTER TABLE t ADD COLUMN mine INTEGER DEFAULT 7", "UPDATE t SET mine = 8 WHERE k = 1", "INSERT INTO t (k) VALUES (70)"),
        (
            "ALTER TABLE t ADD COLUMN x INTEGER",
            "INSERT INTO t SELECT i, 0, {'a': i}, 77 FROM range(100, 160) r(i)",
            "ALTER TABLE t DROP COLUMN x",
            "ALTER TABLE t ADD COLUMN s.b VARCHAR",
            "ALTER TABLE t ALTER v TYPE BIGINT",
            "INSERT INTO t SELECT i, 5000000000, {'a': i, 'b': 'new'} FROM range(200, 260) r(i)",
            "ALTER TABLE t RENAME COLUMN k TO key",
        ),
    ),
    "keys": Case(
        (_TABLE, "ALTER TABLE t SET PARTITIONED BY (v)", _MANY.format(100, "i % 3")),
        ("ALTER TABLE t SET SORTED BY (k DESC)", _MANY.format(200, "i % 3")),
        ("ALTER TABLE t SET PARTITIONED BY (bucket(4, k))", _MANY.format(300, "i % 3"), "UPDATE t SET v = 9 WHERE k = 101"),
    ),
    "vectors": Case(
        ("CALL ducklake_set_option('lake', 'write_deletion_vectors', true)", _TABLE, "DELETE FROM t WHERE k < 20"),
        ("DELETE FROM t WHERE k BETWEEN 30 AND 45",),
        ("DELETE FROM t WHERE k BETWEEN 40 AND 55", _MANY.format(100, 1), "DELETE FROM t WHERE k = 101"),
    ),
    "entries": Case(
        (_TABLE, "CREATE TABLE u AS SELECT 'u' AS x", "CREATE VIEW w AS SELECT 1 AS a", "CREATE TABLE gone AS SELECT 1 AS a"),
        ("CREATE SCHEMA s", "CREATE TABLE s.l AS SELECT 1 AS a", "COMMENT ON TABLE t IS 'lake'"),
        (
            "ALTER TABLE t RENAME TO z",
            "ALTER TABLE u RENAME TO t",
            "ALTER TABLE z RENAME TO u",
            "DROP TABLE gone",
            "CREATE OR REPLACE VIEW w AS SELECT 2 AS a",
            "CREATE SCHEMA s",
            "CREATE TABLE s.n AS SELECT i AS a, i % 2 AS b FROM range(100) r(i)",
            "ALTER TABLE s.n DROP COLUMN b",
            "ALTER TABLE s.n ADD COLUMN c INTEGER DEFAULT 4",
            "INSERT INTO s.n VALUES (1000, 5)",
            "DELETE FROM s.n WHERE a < 10",
            "COMMENT ON TABLE s.n IS 'branch'",
        ),
    ),
}  # fmt: skip


def opened(folder: Path, *, branch: bool = False) -> dl.Session:
    uri = f"ducklake:{folder}/lake.ducklake" + ("#side" if branch else "")
    data = {} if branch else {"data_path": f"{folder}/data"}
    return dl.connect(uri, alias="lake", engine="duckdb", **data)  # type: ignore[arg-type]


def uris(folder: Path) -> tuple[str, str]:
    """The lake's, and the branch's for the reference."""
    return f"ducklake:{folder}/lake.ducklake", f"ducklake:{folder}/lake.ducklake.branches/side.ducklake"


def contents(
    reference: duckdb.DuckDBPyConnection, uri: str
) -> dict[str, tuple[list[tuple[str, str]], Counter[str], int]]:
    """Columns, rows and their number in each table's statistics, as the reference reads them."""
    attach(reference, uri)
    try:
        names = reference.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake' ORDER BY ALL"
        ).fetchall()
        found = {}
        for schema, table in names:
            quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table))
            result = reference.execute(f"FROM lake.{quoted}")
            columns = [(name, str(kind)) for name, kind, *_ in result.description]
            rows = Counter(repr(normal(row)) for row in result.fetchall())
            count = reference.execute(f"SELECT count(*) FROM lake.{quoted}").fetchall()[0][0]
            found[quoted] = columns, rows, int(count)
            ids = reference.execute(f"SELECT count(*), count(DISTINCT rowid) FROM lake.{quoted}").fetchall()[0]
            assert ids == (count, count) and rows.total() == count, quoted
    finally:
        detach(reference)
    return found


def tidy(reference: duckdb.DuckDBPyConnection, uri: str, *more: str) -> None:
    attach(reference, uri)
    try:
        for statement in (*TIDY, *more):
            reference.execute(statement)
    finally:
        detach(reference)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_the_reference_reads_a_merge_and_tidies_both_sides(
    tmp_path: Path, reference: duckdb.DuckDBPyConnection, name: str
) -> None:
    case = CASES[name]
    lake, branch = uris(tmp_path)
    with opened(tmp_path) as session:
        for statement in case.before:
            session.sql(statement)
        session.branch("side")
        for statement in case.lake:
            session.sql(statement)
    attach(reference, branch)
    for statement in case.branch:
        reference.execute(statement)
    detach(reference)
    with opened(tmp_path) as session:
        session.merge("side", on_conflict=case.on_conflict)
        ours = our_history(session, "duckdb")
    assert reference_history(reference, lake) == ours
    merged, side = contents(reference, lake), contents(reference, branch)
    tidy(reference, branch)
    assert contents(reference, lake) == merged
    tidy(reference, lake)
    assert contents(reference, lake) == merged
    assert contents(reference, branch) == side
    with opened(tmp_path) as session:
        session.drop_branch("side")
        for table in session.tables():
            assert one_count(session, table) == merged[f'"{table.schema}"."{table.table.name}"'][2]
    assert contents(reference, lake) == merged


def one_count(session: dl.Session, table: dl.TableInfo) -> int:
    return int(session.sql(f'SELECT count(*) FROM "{table.schema}"."{table.table.name}"').fetchall()[0][0])


@pytest.mark.sampled(2)
def test_everything_that_came_on_a_branch_is_merged(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """Each type, ALTER and kind of file."""
    lake, branch = uris(tmp_path)
    everything.write_files(reference, tmp_path)
    with opened(tmp_path) as session:
        session.sql("CREATE TABLE kept AS SELECT 1 AS a")
        session.branch("side")
    attach(reference, branch)
    for statement in everything.script(tmp_path):
        reference.execute(statement)
    detach(reference)
    with opened(tmp_path) as session:
        session.merge("side")
    assert contents(reference, lake) == contents(reference, branch)


@pytest.mark.sampled(2)
def test_rows_of_everything_are_merged(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """Rows that the reference inserts, updates and deletes on the branch, in tables of each type and kind of file."""
    lake, branch = uris(tmp_path)
    everything.write_files(reference, tmp_path)
    attach(reference, lake, data_path=tmp_path / "data")
    for statement in everything.script(tmp_path):
        reference.execute(statement)
    detach(reference)
    with opened(tmp_path) as session:
        session.branch("side")
    names = list(contents(reference, branch))
    attach(reference, branch)
    for name in names:
        first = reference.execute(f"SELECT * FROM lake.{name} LIMIT 0").description[0][0].replace('"', '""')
        reference.execute(f"INSERT INTO lake.{name} SELECT * FROM lake.{name}")
        reference.execute(f"DELETE FROM lake.{name} WHERE rowid % 3 = 1")
        reference.execute(
            f'UPDATE lake.{name} SET "{first}" = (SELECT max("{first}") FROM lake.{name}) WHERE rowid % 3 = 0'
        )
    detach(reference)
    with opened(tmp_path) as session:
        session.merge("side")
    assert contents(reference, lake) == contents(reference, branch)
