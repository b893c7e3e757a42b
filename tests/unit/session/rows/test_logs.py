"""The log of queries to catalogs, set up and read as DuckDB's extension has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl

PARSED = "FROM duckdb_logs_parsed('DuckLakeMetadata')"


def _types(session: dl.Session) -> set[str]:
    return {row[0] for row in session.sql("SELECT DISTINCT type FROM duckdb_logs").fetchall()}


@pytest.mark.every_catalog
def test_queries_to_catalogs_are_logged(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CALL enable_logging('DuckLakeMetadata')")
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
        rows = session.sql(f"SELECT catalog, query, elapsed_ms, log_level {PARSED}").fetchall()
        assert {(row[0], row[3]) for row in rows} == {("lake", "DEBUG")}
        assert all(row[2] >= 0 for row in rows)
        assert any(row[1].startswith("INSERT INTO ducklake_snapshot ") for row in rows)
        assert _types(session) == {"DuckLakeMetadata"}
        session.sql("CALL disable_logging()")
        session.sql("CALL truncate_duckdb_logs()")
        session.sql("INSERT INTO t VALUES (2)")
        assert session.sql(PARSED).fetchall() == []
        assert not session.spark_started


def test_columns_are_the_references(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/m.ducklake", alias="lake") as session:
        described = session.sql(f"DESCRIBE {PARSED}").fetchall()
    assert [(row[0], row[1]) for row in described][-5:] == [
        ("type", "VARCHAR"),
        ("log_level", "VARCHAR"),
        ("catalog", "VARCHAR"),
        ("query", "VARCHAR"),
        ("elapsed_ms", "BIGINT"),
    ]


def test_other_types_beside_it(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/m.ducklake", alias="lake", engine="duckdb") as session:
        session.sql("CALL enable_logging(['DuckLakeMetadata', 'QueryLog'])")
        session.sql("CREATE TABLE t (i INTEGER); FROM t")
        assert _types(session) == {"DuckLakeMetadata", "QueryLog"}
        session.sql(f"CALL enable_logging('DuckLakeMetadata', storage_path = '{tmp_path}/logs')")
        session.sql("FROM t")
        session.sql("CALL disable_logging()")
        assert "ducklake_snapshot" in (tmp_path / "logs" / "duckdb_log_entries.csv").read_text()
        session.sql("CALL enable_logging('QueryLog')")
        session.sql("CALL truncate_duckdb_logs()")
        session.sql("FROM t")
        assert session.sql(
            "SELECT count(*) FROM duckdb_logs WHERE starts_with(message, 'SELECT write_log')"
        ).fetchone() == (0,)
        with pytest.raises(dl.SqlError, match="Unknown log type: 'Nope'"):
            session.sql("CALL enable_logging('Nope')")


def test_the_level_decides_where_no_type_is_named(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/m.ducklake", alias="lake") as session:
        session.sql("CALL enable_logging()")
        session.sql("CREATE TABLE t (i INTEGER)")
        assert "DuckLakeMetadata" not in _types(session)
        session.sql("CALL enable_logging(level => 'debug')")
        session.sql("INSERT INTO t VALUES (1)")
        assert "DuckLakeMetadata" in _types(session)
