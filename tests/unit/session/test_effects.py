"""Functions with effects run once, as statements of their own, and in transactions only where a ROLLBACK undoes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.session.functions import FUNCTIONS

pytestmark = pytest.mark.sampled(4)

#: A call of each function with effects.
CALLS = {
    "expire_snapshots": "ducklake_expire_snapshots('lake', older_than => now() + INTERVAL '1 day')",
    "cleanup_old_files": "ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "delete_orphaned_files": "ducklake_delete_orphaned_files('lake', cleanup_all => true)",
    "merge_adjacent_files": "lake.merge_adjacent_files()",
    "rewrite_data_files": "ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
    "flush_inlined_data": "lake.flush_inlined_data()",
    "set_option": "ducklake_set_option('lake', 'parquet_compression', 'zstd')",
    "add_data_files": "ducklake_add_data_files('lake', 't', '{folder}/more.parquet')",
    "restore": "lake.restore('t', 2)",
    "set_commit_message": "ducklake_set_commit_message('lake', 'me', 'why')",
    "add_delta_table": "lake.add_delta_table('d', '{folder}/delta')",
    "add_iceberg_table": "lake.add_iceberg_table('d', '{folder}/iceberg/n/t')",
}
#: What deletes files, which nothing brings back.
IMMEDIATE = ("cleanup_old_files", "delete_orphaned_files")

#: Statements in which a function is refused.
REFUSED = (
    "SELECT * FROM {call} WHERE false",
    "SELECT * FROM {call} LIMIT 0",
    "SELECT * FROM {call} LIMIT 1",
    "SELECT * FROM (SELECT * FROM {call})",
    "(FROM {call})",
    "WITH c AS (FROM {call}) SELECT * FROM c",
    "WITH c AS (FROM {call}) SELECT 1",
    "SELECT 1 WHERE EXISTS (FROM {call})",
    "SELECT (SELECT count(*) FROM {call})",
    "SELECT (SELECT count(*) FROM {call}) FROM {call}",
    "SELECT * FROM range(2), {call}",
    "SELECT 1 FROM {call} UNION ALL SELECT 1",
    "CREATE TEMP TABLE x AS SELECT * FROM {call}",
    "CREATE TABLE lake.x AS SELECT 1 AS a FROM {call}",
    "INSERT INTO lake.t SELECT 1 FROM {call}",
    "UPDATE lake.t SET i = 1 WHERE EXISTS (FROM {call})",
    "DELETE FROM lake.t WHERE EXISTS (FROM {call})",
    "MERGE INTO lake.t USING (SELECT 1 AS i FROM {call}) s ON t.i = s.i WHEN NOT MATCHED THEN INSERT VALUES (s.i)",
    "COPY (FROM {call}) TO '{folder}/out.csv'",
    "SUMMARIZE SELECT * FROM {call}",
    "PIVOT (FROM {call}) ON 1 USING count(*)",
    "SET VARIABLE v = (SELECT count(*) FROM {call})",
    "SELECT * FROM lake.t AT (VERSION => (SELECT 1 + 0 * count(*) FROM {call}))",
    "EXPLAIN CALL {call}",
    "EXPLAIN ANALYZE SELECT * FROM {call}",
    "EXPLAIN SELECT 1 WHERE EXISTS (FROM {call})",
    "EXPLAIN INSERT INTO lake.t SELECT 1 FROM {call}",
    "EXPLAIN CREATE TABLE lake.x AS SELECT 1 AS a FROM {call}",
    "CREATE OR REPLACE TEMP VIEW v AS FROM {call}; FROM v",
    "CREATE OR REPLACE VIEW other.v AS FROM {call}; SELECT * FROM other.v LIMIT 0",
    "CREATE OR REPLACE VIEW other.v AS FROM {call}; SUMMARIZE other.v",
    "CREATE OR REPLACE MACRO other.m() AS TABLE FROM {call}; FROM other.m()",
    "CREATE OR REPLACE MACRO other.s() AS (SELECT count(*) FROM {call}); SELECT other.s()",
    "PREPARE p AS SELECT $1; EXECUTE p((SELECT count(*) FROM {call}))",
)
#: Statements that only describe.
DESCRIBED = (
    "EXPLAIN SELECT * FROM {call}",
    "EXPLAIN FROM {call}",
    "DESCRIBE SELECT * FROM {call}",
    "PREPARE p AS SELECT * FROM {call}",
    "CREATE OR REPLACE VIEW other.v AS FROM {call}; DESCRIBE other.v; SHOW ALL TABLES",
)
#: Statements that run a function.
RUN = (
    "CALL {call}",
    "FROM {call}",
    "SELECT count(*) FROM {call}",
    "SELECT * FROM {call} ORDER BY ALL",
    "PREPARE p AS FROM {call}; EXECUTE p",
)
_TABLES = ("snapshot", "snapshot_changes", "data_file", "delete_file", "metadata", "files_scheduled_for_deletion")


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(uri: str, tmp_path: Path) -> Iterator[dl.Session]:
    """A lake in which each function has something to do; it expires snapshots only by its own."""
    duckdb.sql(f"COPY (SELECT 5::INTEGER AS i) TO '{tmp_path}/more.parquet'")
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(
            "CREATE TABLE t (i INTEGER); INSERT INTO t FROM range(100); INSERT INTO t FROM range(100, 200);"
            "DELETE FROM t WHERE i < 90; CREATE TABLE gone AS FROM range(20); DROP TABLE gone;"
            "INSERT INTO t FROM range(1000, 1100); INSERT INTO t FROM range(1100, 1200); INSERT INTO t VALUES (7);"
            "CALL expire_snapshots(versions => [5])"
        )
        (tmp_path / "data" / "main" / "orphan.parquet").write_text("nobody's")
        session.attach(f"ducklake:{tmp_path}/other.ducklake", "other", data_path=f"{tmp_path}/other")
        yield session


def call_of(function: str, folder: Path) -> str:
    """The call of a function, with the tables of other formats that it reads."""
    if function == "add_delta_table":
        write = pytest.importorskip("deltalake", reason="needs the extra [delta]").write_deltalake
        write(folder / "delta", pa.table({"i": [1]}))
    if function == "add_iceberg_table":
        catalogs = pytest.importorskip("pyiceberg.catalog.memory", reason="needs the extra [iceberg]")
        catalog = catalogs.InMemoryCatalog("c", warehouse=f"file://{folder}/iceberg")
        catalog.create_namespace("n")
        rows = pa.table({"i": [1]})
        catalog.create_table("n.t", rows.schema).append(rows)
    return CALLS[function].format(folder=folder)


def everything(session: dl.Session, folder: Path) -> dict[str, Any]:
    """The lake's metadata and files."""
    catalog = "__ducklake_metadata_lake"
    found: dict[str, Any] = {
        table: sorted(map(repr, session.sql(f"SELECT * FROM {catalog}.ducklake_{table}").fetchall()))
        for table in _TABLES
    }
    found["files"] = sorted(str(path) for path in (folder / "data").rglob("*") if path.is_file())
    return found


def test_every_function_with_effects_is_tried() -> None:
    assert {name for name, function in FUNCTIONS.items() if function.effects != "none"} == set(CALLS)
    assert {name for name, function in FUNCTIONS.items() if function.effects == "immediate"} == set(IMMEDIATE)


@pytest.mark.slow
@pytest.mark.parametrize("function", CALLS)
def test_what_only_looks_changes_nothing(function: str, session: dl.Session, tmp_path: Path) -> None:
    call = call_of(function, tmp_path)
    before = everything(session, tmp_path)
    for statement in REFUSED:
        with pytest.raises(dl.UnsupportedFeatureError):
            session.sql(statement.format(call=call, folder=tmp_path)).fetchall()
    for statement in DESCRIBED:
        session.sql(statement.format(call=call, folder=tmp_path)).fetchall()
    with pytest.raises(dl.DuckLakeError):
        session.sql(f"SELECT nope FROM {call}")
    assert everything(session, tmp_path) == before


def test_the_refusal_says_how_to_run_it(session: dl.Session) -> None:
    with pytest.raises(dl.UnsupportedFeatureError) as raised:
        session.sql(f"SELECT * FROM {CALLS['merge_adjacent_files']} LIMIT 0")
    assert str(raised.value).startswith(
        "merge_adjacent_files changes the lake lake: run it as a statement of its own, CALL"
    )


@pytest.mark.slow
@pytest.mark.parametrize("statement", RUN)
def test_a_statement_of_its_own_runs_once(statement: str, session: dl.Session, tmp_path: Path) -> None:
    newest = session.current_snapshot().snapshot_id
    result = session.sql(statement.format(call=CALLS["merge_adjacent_files"]))
    assert result.fetchall() and result.head(1).num_rows and result.arrow().num_rows
    if result.text:
        result.view().page(0, 10)
    assert session.current_snapshot().snapshot_id == newest + 1


@pytest.mark.slow
@pytest.mark.parametrize("function", CALLS)
def test_a_rollback_undoes_it(function: str, session: dl.Session, tmp_path: Path) -> None:
    call = call_of(function, tmp_path)
    before = everything(session, tmp_path)
    session.sql("BEGIN")
    if function in IMMEDIATE:
        with pytest.raises(dl.TransactionError, match="deletes files for good"):
            session.sql(f"CALL {call}")
        assert session.sql(f"CALL {call[:-1]}, dry_run => true)").fetchall()
    else:
        session.sql(f"CALL {call}").fetchall()
    session.sql("ROLLBACK")
    assert everything(session, tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("function", [*CALLS, "CHECKPOINT"])
def test_a_preview_has_no_effect(function: str, session: dl.Session, tmp_path: Path) -> None:
    call = f"CALL {CALLS[function].format(folder=tmp_path)}" if function in CALLS else "CHECKPOINT lake"
    before = everything(session, tmp_path)
    try:
        session.preview(call).rollback()
    except dl.DuckLakeError as error:
        assert function in str(error) or "preview" in str(error)  # noqa: PT017 - some can be previewed
    assert not session.in_transaction
    assert everything(session, tmp_path) == before


def test_an_expiry_commits_with_its_transaction(session: dl.Session) -> None:
    expire = f"FROM {CALLS['expire_snapshots']}"
    session.sql("BEGIN; INSERT INTO t VALUES (8)")
    before = session.current_snapshot().snapshot_id
    expired = {row[0] for row in session.sql(expire).fetchall()}
    assert 1 in expired and before not in expired
    assert not expired & {row[0] for row in session.sql("SELECT snapshot_id FROM lake.snapshots()").fetchall()}
    session.sql("COMMIT")
    left = {row[0] for row in session.sql("SELECT snapshot_id FROM lake.snapshots()").fetchall()}
    assert left == {before, before + 1}
    assert session.sql("SELECT count(*) FROM t WHERE i = 8").fetchone() == (1,)
    with pytest.raises(dl.SnapshotNotFoundError):
        session.sql("FROM t AT (VERSION => 1)")


def test_an_expiry_leaves_the_snapshot_that_its_transaction_reads(session: dl.Session, uri: str) -> None:
    session.sql("BEGIN; INSERT INTO t VALUES (8)")
    base = session.current_snapshot().snapshot_id
    with dl.connect(uri, alias="lake", engine="duckdb") as another:
        another.sql("CREATE TABLE u (i INTEGER)")
    expired = {row[0] for row in session.sql(f"FROM {CALLS['expire_snapshots']}").fetchall()}
    assert base not in expired
    session.sql("COMMIT")
    assert session.sql("SELECT count(*) FROM t WHERE i = 8").fetchone() == (1,)


def test_options_are_kept_of_a_transaction_whose_entries_come_to_nothing(session: dl.Session) -> None:
    session.sql(
        "BEGIN; CREATE TABLE x (i INTEGER); DROP TABLE x; CALL set_option('parquet_compression', 'zstd'); COMMIT"
    )
    options = dict(session.sql("SELECT option_name, value FROM lake.options()").fetchall())
    assert options["parquet_compression"] == "zstd"


def test_tags_are_refused_in_a_transaction(session: dl.Session) -> None:
    session.sql("BEGIN")
    with pytest.raises(dl.TransactionError, match="Tags"):
        session.tag("now")
    session.sql("ROLLBACK")
    assert session.tags() == {}


@pytest.mark.parametrize("function", IMMEDIATE)
def test_nothing_is_deleted_at_a_snapshot_of_the_past(function: str, session: dl.Session, tmp_path: Path) -> None:
    before = everything(session, tmp_path)
    for text in ("CALL {}", "FROM {}"):
        with pytest.raises(dl.UsageError, match="the past"):
            session.sql(text.format(CALLS[function]), at=2)
    assert everything(session, tmp_path) == before


@pytest.mark.parametrize(
    "text",
    ["COMMIT", "ROLLBACK", "PREPARE p AS COMMIT; EXECUTE p", "DETACH other", "COPY t TO '{folder}/data/out.csv'"],
)
def test_a_preview_refuses_what_no_rollback_takes_back(text: str, session: dl.Session, tmp_path: Path) -> None:
    before = everything(session, tmp_path)
    with pytest.raises(dl.UsageError, match="preview"):
        session.preview(f"INSERT INTO t VALUES (8); {text.format(folder=tmp_path)}")
    assert not session.in_transaction
    assert everything(session, tmp_path) == before
