"""SET, options of ATTACH, and what a transaction reads while others commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.reference import connect

pytestmark = pytest.mark.sampled(3)


def test_settings_of_lakes(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("SET ducklake_default_data_inlining_row_limit = 2; CREATE TABLE t (i INTEGER)")
        session.sql("INSERT INTO t FROM range(3)")
        assert len(session.sql("FROM lake.list_files('t')")) == 1
        session.sql("RESET ducklake_default_data_inlining_row_limit; INSERT INTO t FROM range(3)")
        assert len(session.sql("FROM lake.list_files('t')")) == 1
        session.sql(
            "SET ducklake_max_retry_count = 3; SET ducklake_retry_wait_ms = 5; SET ducklake_retry_backoff = 1.5"
        )
        assert session.current_lake.session.retry == {"max_retry_count": 3, "retry_wait_ms": 5, "retry_backoff": 1.5}
        session.sql("SET ducklake_target_file_size = '10KiB'")
        assert session.current_lake.session.forced == {"target_file_size": "10240"}
        session.sql("SET threads = 2; PRAGMA enable_progress_bar")
        for text in (
            "SET ducklake_retry_wait_ms = 'soon'",
            "SET ducklake_target_file_size = 'big'",
            "SET ducklake_x = 1",
        ):
            with pytest.raises(dl.UsageError, match="ducklake_"):
                session.sql(text)


def test_an_option_of_attach_serves_where_the_lake_has_none(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.Session() as session:
        session.sql(f"ATTACH '{lake_uri()}' AS lake (DATA_PATH '{tmp_path}/data', DATA_INLINING_ROW_LIMIT 0)")
        session.sql("USE lake; CREATE TABLE t AS SELECT 1 AS i")
        assert len(session.sql("FROM lake.list_files('t')")) == 1


@pytest.mark.every_catalog
def test_two_lakes_in_one_catalog_database(catalog: str, lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.Session() as session:
        if catalog in ("sqlite", "mysql"):
            with pytest.raises(dl.UnsupportedFeatureError, match="METADATA_SCHEMA"):
                session.sql(f"ATTACH '{uri}' AS a (DATA_PATH '{tmp_path}/a', METADATA_SCHEMA 's')")
            return
        for name in ("a", "b"):
            session.sql(f"ATTACH '{uri}' AS {name} (DATA_PATH '{tmp_path}/{name}', METADATA_SCHEMA 'of_{name}')")
            session.sql(f"CREATE TABLE {name}.t AS SELECT '{name}' AS s")
        assert session.sql("SELECT a.s || b.s FROM a.t AS a, b.t AS b").fetchall() == [("ab",)]
        assert session.sql("SELECT count(*) FROM __ducklake_metadata_a.ducklake_table").fetchone() == (1,)


@pytest.mark.every_catalog
@pytest.mark.slow
def test_a_transaction_reads_what_it_read_first(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri, data = lake_uri(), f"{tmp_path}/data"
    with dl.connect(uri, "lake", data_path=data) as one, dl.connect(uri, "lake", data_path=data) as two:
        one.sql("CREATE TABLE t (i INTEGER)")
        two.sql("BEGIN")
        assert two.sql("SELECT count(*) FROM t").fetchone() == (0,)
        one.sql("INSERT INTO t VALUES (1)")
        assert two.sql("SELECT count(*) FROM t").fetchone() == (0,)
        two.sql("INSERT INTO t VALUES (2)")
        assert two.sql("FROM t").fetchall() == [(2,)]
        two.sql("COMMIT")
        assert two.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,)]
        two.sql("SET immediate_transaction_mode = true; BEGIN")
        one.sql("INSERT INTO t VALUES (3)")
        assert two.sql("SELECT count(*) FROM t").fetchone() == (2,)
        two.sql("ROLLBACK")
        assert two.sql("SELECT count(*) FROM t").fetchone() == (3,)


def test_wrong_options_of_attach(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.Session() as session:
        attach = f"ATTACH '{lake_uri()}' AS lake"
        with pytest.raises(dl.UsageError, match="type of catalog"):
            session.sql(f"{attach} (DATA_PATH '{tmp_path}/data', META_TYPE 'nope')")
        session.sql(f"{attach} (DATA_PATH '{tmp_path}/data'); DETACH lake")
        with pytest.raises(dl.UsageError, match="READ_WRITE"):
            session.sql(f"{attach} (SNAPSHOT_VERSION 0, READ_WRITE)")
        session.sql(f"{attach} (DATA_PATH '{tmp_path}/other', OVERRIDE_DATA_PATH true)")
        assert session.lakes[0].data_path == f"{tmp_path}/other/"


def test_a_lake_is_replaced_once_the_other_is_open(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/one.ducklake", alias="lake") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i")
        with pytest.raises(dl.CatalogNotFoundError):
            session.sql(f"ATTACH OR REPLACE 'ducklake:{tmp_path}/two.ducklake' AS lake (CREATE_IF_NOT_EXISTS false)")
        assert session.sql("FROM lake.t").fetchall() == [(1,)]
        session.sql(f"ATTACH OR REPLACE 'ducklake:{tmp_path}/two.ducklake' AS lake")
        with pytest.raises(dl.BindError):
            session.sql("FROM lake.t")
        session.sql(f"ATTACH OR REPLACE 'ducklake:{tmp_path}/one.ducklake' AS lake")
        assert session.sql("FROM lake.t").fetchall() == [(1,)]


@pytest.mark.parametrize(("text", "size"), [("1K", 1000), ("1.5 kb", 1500), ("512 MiB", 2**29), ("3bytes", 3)])
def test_sizes_have_units(text: str, size: int, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session:
        session.sql(f"CALL lake.set_option('target_file_size', '{text}')")
        sql = "SELECT value FROM lake.options() WHERE option_name = 'target_file_size'"
        assert session.sql(sql).fetchall() == [(str(size),)]
        for bad in ("1024", "1gig", "-1"):
            with pytest.raises(dl.UsageError, match="a size with its unit"):
                session.sql(f"CALL lake.set_option('target_file_size', '{bad}')")


@pytest.mark.slow
def test_inserts_in_process_split_at_the_size_files_aim_at(tmp_path: Path) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t (id INTEGER, s VARCHAR); CREATE TABLE p (k INTEGER, id INTEGER)")
        session.sql("ALTER TABLE p SET PARTITIONED BY (k)")
        session.sql("CALL lake.set_option('target_file_size', '512MB', table_name => 't')")
        session.sql("INSERT INTO t SELECT i, concat('long', i) FROM range(300000) t(i)")
        assert len(session.sql("FROM lake.list_files('t')")) == 1

        session.sql("SET ducklake_target_file_size = '10KB'")
        session.sql("INSERT INTO t SELECT i, concat('long', i) FROM range(300000, 600000) t(i)")
        session.sql("INSERT INTO p SELECT i % 2, i FROM range(500000) t(i)")
        files = session.sql("FROM lake.list_files('t')").arrow()
        session.sql("ALTER TABLE t ALTER s SET NOT NULL")
        with pytest.raises(dl.ConstraintError):
            session.sql("INSERT INTO t SELECT i, CASE WHEN i < 299999 THEN 'x' END FROM range(300000) t(i)")
    with connect() as reference:
        reference.execute(f"ATTACH '{uri}' AS lake")
        found = reference.execute(
            "SELECT record_count, row_id_start FROM __ducklake_metadata_lake.ducklake_data_file "
            "WHERE table_id = (SELECT table_id FROM __ducklake_metadata_lake.ducklake_table WHERE table_name = 't') "
            "ORDER BY data_file_id"
        ).fetchall()
        assert found == [(300000, 0), (122880, 300000), (122880, 422880), (54240, 545760)]
        assert reference.execute("SELECT count(*), bool_and(rowid = id) FROM lake.t").fetchone() == (600000, True)
        assert reference.execute("SELECT count(DISTINCT filename), count(*) FROM lake.p").fetchone() == (6, 500000)
    assert files.num_rows == 4
    # nothing is left of files on the way to their place, nor of those of the statement that failed
    assert len(list((tmp_path / "data" / "main" / "t").iterdir())) == 4


@pytest.mark.parametrize("setting", ["SET default_collation = 'NOCASE'", "PRAGMA default_collation = NOCASE"])
def test_a_default_collation_skips_no_file_and_no_row(tmp_path: Path, setting: str) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session, duckdb.connect() as beside:
        for text in (
            "CREATE TABLE t AS SELECT i::INTEGER AS i, 'a' || i AS s FROM range(20) r(i)",
            "INSERT INTO t SELECT i, 'B' || i FROM range(20) r(i)",
            "CREATE TABLE u AS SELECT * FROM (VALUES ('A3'), ('b4')) v(s)",
            setting,
            "DELETE FROM t WHERE s = 'A1'",
            "UPDATE t SET i = 100 WHERE s = 'b1'",
        ):
            session.sql(text)
            beside.execute(text)
        for query in (
            "SELECT count(*) FROM t WHERE s = 'A2'",
            "SELECT min(s), max(s), sum(i) FROM t",
            "SELECT s, i FROM t JOIN u USING (s) ORDER BY s",
            "SELECT count(*) FROM t WHERE s IN (SELECT s FROM u)",
        ):
            assert session.sql(query).fetchall() == beside.sql(query).fetchall()
        session.sql("RESET default_collation")
        assert session.sql("SELECT count(*) FROM t WHERE s = 'A2'").fetchone() == (0,)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SET schema = 's'", "The setting schema is not supported with a lake in use"),
        ("SET SESSION search_path TO 'lake.s'", "The setting search_path"),
        ("PRAGMA search_path = 'lake.s'", "The setting search_path"),
        ("SET \"schema\" = 's'", "The setting schema"),
        ("RESET schema", "The setting schema"),
        ("SET preserve_identifier_case = 'f'", "preserve_identifier_case = false is not supported"),
        ("SET preserve_identifier_case = false", "preserve_identifier_case = false is not supported"),
    ],
)
def test_settings_that_lakes_do_not_follow_are_refused(tmp_path: Path, text: str, named: str) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session:
        session.sql("CREATE SCHEMA s; SET preserve_identifier_case = true")
        with pytest.raises(dl.UnsupportedFeatureError, match=named):
            session.sql(text)
        session.sql("DETACH lake; USE memory; CREATE SCHEMA s; SET schema = 's'")
        assert session.sql("SELECT current_schema()").fetchone() == ("s",)
