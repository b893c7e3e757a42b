"""Options of lakes on every kind of catalog: set, listed, in scopes, in transactions, and kept to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE SCHEMA s; CREATE TABLE t (i INTEGER); CREATE TABLE s.u (i INTEGER)")
        yield session
        assert not session.spark_started


def rows(session: dl.Session, sql: str) -> list[tuple[Any, ...]]:
    return session.sql(sql).fetchall()


def options(session: dl.Session) -> dict[tuple[str, str, str | None], str]:
    found = rows(session, "SELECT option_name, scope, scope_entry, value FROM lake.options()")
    return {(name, scope, entry): value for name, scope, entry, value in found if name not in _OF_THE_LAKE}


_OF_THE_LAKE = ("version", "created_by", "data_path", "encrypted")


def test_options_have_scopes(session: dl.Session) -> None:
    before = session.current_snapshot().snapshot_id
    session.sql(
        "CALL lake.set_option('target_file_size', '1.5MB'); CALL lake.set_option('Parquet_Compression', 'ZSTD', table_name => 't')"
    )
    session.sql("CALL ducklake_set_option('lake', 'data_inlining_row_limit', 3, schema => 's')")
    session.sql("CALL lake.set_option('data_inlining_row_limit', 5, schema => 's', table_name => 'u')")
    session.sql("CALL lake.set_option('target_file_size', '2GiB')")
    assert options(session) == {
        ("target_file_size", "GLOBAL", None): str(2 * 1024**3),
        ("parquet_compression", "TABLE", "main.t"): "zstd",
        ("data_inlining_row_limit", "SCHEMA", "s"): "3",
        ("data_inlining_row_limit", "TABLE", "s.u"): "5",
    }
    assert session.current_snapshot().snapshot_id == before


@pytest.mark.every_catalog
@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("parquet_version", "2", "V2"),
        ("parquet_compression_level", "5", "5"),
        ("parquet_row_group_size", "1000", "1000"),
        ("parquet_row_group_size_bytes", "'10KiB'", "10240"),
        ("hive_file_pattern", "false", "false"),
        ("rewrite_delete_threshold", "0.5", "0.500000"),
        ("delete_older_than", "'1 week'", "1 week"),
        ("expire_older_than", "''", ""),
        ("auto_compact", "0", "false"),
        ("per_thread_output", "true", "true"),
        ("require_commit_message", "'true'", "true"),
        ("sort_on_insert", "false", "false"),
        ("write_deletion_vectors", "true", "true"),
    ],
)
def test_values_are_stored_as_the_reference_stores_them(session: dl.Session, key: str, value: str, stored: str) -> None:
    session.sql(f"CALL lake.set_option('{key}', {value})")
    assert options(session) == {(key, "GLOBAL", None): stored}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'target_file_sise', '1MB'", "no option target_file_sise that can be set. Did you mean target_file_size?"),
        ("'encrypted', true", "no option encrypted"),
        ("'target_file_size', '100'", "a size with its unit"),
        ("'data_inlining_row_limit', -5", "not negative"),
        ("'parquet_compression', 'zip'", "is one of uncompressed"),
        ("'parquet_version', 3", "is 1 or 2"),
        ("'parquet_row_group_size', 0", "cannot be 0"),
        ("'rewrite_delete_threshold', 1.5", "from 0 to 1"),
        ("'expire_older_than', 'a while'", "is an interval"),
        ("'hive_file_pattern', 'maybe'", "is true or false"),
        ("'auto_compact', NULL", "cannot be NULL"),
        ("'data_inlining_row_limit', 5, table_name => 'nope'", 'no table "nope"'),
        ("'data_inlining_row_limit', 5, schema => 'nope'", 'no schema "nope"'),
        ("'expire_older_than', '1 day', table_name => 't'", "an option of whole lakes"),
        ("'data_inlining_row_limit', 5, tabel => 't'", "no argument tabel"),
    ],
)
def test_mistakes_are_named(session: dl.Session, call: str, message: str) -> None:
    with pytest.raises(dl.DuckLakeError, match=message):
        session.sql(f"CALL lake.set_option({call})")
    assert options(session) == {}


def test_alter_table_sets_options_of_the_table(session: dl.Session) -> None:
    before = session.current_snapshot().snapshot_id
    session.sql("CALL lake.set_option('data_inlining_row_limit', 9, schema => 's')")
    session.sql(
        "ALTER TABLE s.u SET (data_inlining_row_limit = 2 + 1, Parquet_Compression = 'ZSTD', 'sort_on_insert' = false)"
    )
    session.sql("ALTER TABLE lake.main.t SET (target_file_size = $size)", {"size": "1MB"})
    scoped = {
        ("data_inlining_row_limit", "SCHEMA", "s"): "9",
        ("data_inlining_row_limit", "TABLE", "s.u"): "3",
        ("parquet_compression", "TABLE", "s.u"): "zstd",
        ("sort_on_insert", "TABLE", "s.u"): "false",
        ("target_file_size", "TABLE", "main.t"): "1000000",
    }
    assert options(session) == scoped
    session.sql("ALTER TABLE s.u RESET (DATA_INLINING_ROW_LIMIT, sort_on_insert); ALTER TABLE t RESET (auto_compact)")
    del scoped["data_inlining_row_limit", "TABLE", "s.u"], scoped["sort_on_insert", "TABLE", "s.u"]
    assert options(session) == scoped
    assert session.current_snapshot().snapshot_id == before
    session.sql("INSERT INTO s.u VALUES (1), (2), (3), (4)")
    assert rows(session, "SELECT count(*) FROM ducklake_list_files('lake', 'u', schema => 's')") == [(0,)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "t SET (target_file_sise = '1MB')",
            "no option target_file_sise that can be set. Did you mean target_file_size?",
        ),
        ("t RESET (sort_on_inset)", "no option sort_on_inset that can be set. Did you mean sort_on_insert?"),
        ("t SET (auto_compact = true, parquet_version = 3)", "is 1 or 2"),
        ("t SET (auto_compact = NULL)", "cannot be NULL"),
        ("t SET (parquet_compression = zstd)", "put text in single quotes: 'zstd'"),
        ("t SET (auto_compact = true, AUTO_COMPACT = false)", "auto_compact is given twice"),
        ("t RESET (auto_compact, auto_compact)", "auto_compact is given twice"),
        ("t SET ()", "expected an option and its value"),
        ("t RESET ()", "expected an option"),
        ("t SET (auto_compact)", "expected ="),
        ("t SET (auto_compact =)", "expected a value"),
        ("t RESET (auto_compact = 1)", "expected the end"),
        ("t SET (expire_older_than = '1 day')", "an option of whole lakes"),
        ("t RESET (delete_older_than)", "an option of whole lakes"),
        ("nope SET (auto_compact = true)", 'no table "nope"'),
        ("v RESET (auto_compact)", r"main\.v is a view"),
    ],
)
def test_mistakes_in_alter_table_change_nothing(session: dl.Session, statement: str, message: str) -> None:
    session.sql("CREATE VIEW v AS FROM t")
    with pytest.raises(dl.DuckLakeError, match=message):
        session.sql(f"ALTER TABLE {statement}")
    assert options(session) == {}
    session.sql("ALTER TABLE IF EXISTS nope SET (auto_compact = true); ALTER TABLE IF EXISTS nope RESET (auto_compact)")


def test_alter_table_sets_options_in_transactions(session: dl.Session) -> None:
    session.sql("ALTER TABLE t SET (data_inlining_row_limit = 7)")
    session.sql("BEGIN; ALTER TABLE t RESET (data_inlining_row_limit); ALTER TABLE t SET (auto_compact = false)")
    assert options(session) == {("auto_compact", "TABLE", "main.t"): "false"}
    session.sql("ROLLBACK")
    assert options(session) == {("data_inlining_row_limit", "TABLE", "main.t"): "7"}
    session.sql("BEGIN; ALTER TABLE t RESET (data_inlining_row_limit); INSERT INTO t VALUES (1); COMMIT")
    assert options(session) == {}
    session.sql("BEGIN; CREATE TABLE young (i INTEGER)")
    with pytest.raises(dl.UsageError, match="not committed yet"):
        session.sql("ALTER TABLE young SET (auto_compact = false)")
    session.sql("ROLLBACK")


def test_a_reset_may_not_inline_columns_with_reserved_names(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    session = dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.0")
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE r (row_id INTEGER)")
    session.sql("ALTER TABLE r SET (data_inlining_row_limit = 0); CALL lake.set_option('data_inlining_row_limit', 10)")
    with pytest.raises(dl.BindError, match=r"Cannot enable data inlining: main\.r has a column row_id"):
        session.sql("ALTER TABLE r RESET (data_inlining_row_limit)")
    assert options(session)["data_inlining_row_limit", "TABLE", "main.r"] == "0"


def test_inlining_needs_names_that_are_free(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    # lakes of 1.1 have other names of their own, which no column can have
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.0") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE r (row_id INTEGER)")
        for scope in ("", ", table_name => 'r'"):
            with pytest.raises(dl.BindError, match=r"Cannot enable data inlining: main\.r has a column row_id"):
                session.sql(f"CALL lake.set_option('data_inlining_row_limit', 10{scope})")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0, table_name => 'r')")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 10)")


def test_options_belong_to_their_transaction(session: dl.Session) -> None:
    session.sql("BEGIN; CALL lake.set_option('data_inlining_row_limit', 7)")
    assert options(session) == {("data_inlining_row_limit", "GLOBAL", None): "7"}
    session.sql("ROLLBACK")
    assert options(session) == {}
    session.sql("BEGIN; CALL lake.set_option('data_inlining_row_limit', 7); COMMIT")
    session.sql("BEGIN; CALL lake.set_option('parquet_version', 1); INSERT INTO t VALUES (1); COMMIT")
    assert len(options(session)) == 2


def test_inserts_keep_to_options(session: dl.Session) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 2, table_name => 't')")
    session.sql("CALL lake.set_option('parquet_compression', 'gzip')")
    session.sql(
        "INSERT INTO t VALUES (1), (2); INSERT INTO t VALUES (3), (4), (5); INSERT INTO s.u VALUES (1), (2), (3)"
    )
    ((path,),) = rows(session, "SELECT data_file FROM lake.list_files('t')")
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "GZIP"
    assert rows(session, "SELECT count(*) FROM ducklake_list_files('lake', 'u', schema => 's')") == [(0,)]


def test_a_commit_message_can_be_required(session: dl.Session) -> None:
    session.sql("CALL lake.set_option('require_commit_message', true)")
    with pytest.raises(dl.TransactionError, match="commit message"):
        session.sql("INSERT INTO t VALUES (1)")
    with session.transaction(author="me", message="why"):
        session.sql("INSERT INTO t VALUES (1)")
    assert rows(session, "SELECT count(*) FROM t") == [(1,)]


def test_settings_and_table_info(session: dl.Session, tmp_path: Path) -> None:
    ((kind, _, path),) = rows(session, "FROM lake.settings()")
    assert (kind, path) == (session.current_lake.location.backend, f"{tmp_path}/data/")
    session.sql("INSERT INTO t SELECT i::INTEGER FROM range(50) r(i); DELETE FROM t WHERE i < 20")
    sizes = {row[0]: row for row in rows(session, "FROM lake.table_info()")}
    assert sizes["u"][4:] == (0, 0, 0, 0)
    assert sizes["t"][4] == 1
    assert sizes["t"][5] > 0
