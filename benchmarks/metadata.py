"""Metadata statements, compared with the reference: definitions, many tables, many files. No Spark, no data files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import duckdb

import ducklake_lab as dl
from benchmarks.catalogs import Place, places
from benchmarks.measure import Comparison, compare
from tests import reference

TABLES = 5_000
FILES = 100_000
SNAPSHOTS = 150_000


def run(folder: Path, rounds: int, *, tables: int = TABLES, files: int = FILES) -> Iterator[Comparison]:
    """All comparisons, on DuckDB and on PostgreSQL, as they are finished.

    Args:
        folder: an empty one, for lakes and a PostgreSQL server.
    """
    for kind, place in places(folder):
        if kind != "SQLite":
            yield from _compare(kind, place, folder, rounds, tables, files)


def _compare(kind: str, place: Place, folder: Path, rounds: int, tables: int, files: int) -> Iterator[Comparison]:
    ours, theirs, many = (f"ducklake:{place(name)}" for name in ("ours", "theirs", "many"))
    with reference.connect() as connection:
        with dl.connect(ours, alias="lake", data_path=f"{folder}/{kind}-ours") as session:
            connection.execute(f"ATTACH '{theirs}' AS lake (DATA_PATH '{folder}/{kind}-theirs'); USE lake")
            yield from _commits(kind, session, connection, rounds * 5)
            connection.execute("USE memory; DETACH lake")
        fill(connection, many, f"{folder}/{kind}-many", tables, files)
        yield compare(
            f"{kind}: attach with {SNAPSHOTS:,} snapshots, first query",
            "DuckDB",
            lambda: _our_first(many),
            lambda: _their_first(connection, many),
            rounds,
        )
        yield compare(
            f"{kind}: attach, list {tables:,} tables",
            "DuckDB",
            lambda: _our_tables(many),
            lambda: _their_tables(connection, many),
            rounds,
        )
        yield compare(
            f"{kind}: attach, EXPLAIN of 1 of {files:,} files",
            "DuckDB",
            lambda: _our_plan(many),
            lambda: _their_plan(connection, many),
            rounds,
        )
        yield compare(
            f"{kind}: attach, SELECT that skips {files:,} files",
            "DuckDB",
            lambda: _our_skipping(many),
            lambda: _their_skipping(connection, many),
            rounds,
        )


def _commits(
    kind: str, session: dl.Session, connection: duckdb.DuckDBPyConnection, rounds: int
) -> Iterator[Comparison]:
    numbers = itertools.count()
    yield compare(
        f"{kind}: CREATE TABLE",
        "DuckDB",
        lambda: session.sql(f"CREATE TABLE a{next(numbers)} (i INTEGER, s VARCHAR)"),
        lambda: connection.execute(f"CREATE TABLE a{next(numbers)} (i INTEGER, s VARCHAR)"),
        rounds,
    )


def fill(
    connection: duckdb.DuckDBPyConnection, uri: str, data_path: str, tables: int, files: int, folders: int = 0
) -> None:
    """A lake with many tables by its catalog alone; `wide` has many files, `ducklake-0.parquet` on, of 1,000 rows each.

    Args:
        folders: that the files are in by turns, `part=0` on; 0 for the table's own folder.
    """
    folder = f"'part=' || range % {folders} || '/' || " if folders else ""
    Path(data_path).mkdir()
    connection.execute(
        f"ATTACH '{uri}' AS many (DATA_PATH '{data_path}'); CREATE TABLE many.wide (i BIGINT, s VARCHAR)"
    )
    meta = "__ducklake_metadata_many.ducklake_"
    columns = "(1, 'i', 'int64'), (2, 's', 'varchar')"
    connection.execute(
        f"INSERT INTO {meta}table SELECT 10 + range, uuid(), 1, NULL, 0, 't' || range, 't' || range || '/', true "
        f"FROM range({tables})"
    )
    connection.execute(
        f"INSERT INTO {meta}column (column_id, begin_snapshot, table_id, column_order, column_name, column_type, "
        f"nulls_allowed) SELECT c, 1, 10 + range, c, n, y, true FROM range({tables}), (VALUES {columns}) AS k(c, n, y)"
    )
    connection.execute(
        f"INSERT INTO {meta}data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative, file_format, "
        f"record_count, file_size_bytes, footer_size, row_id_start) "
        f"SELECT range, 1, 1, {folder}'ducklake-' || range || '.parquet', true, 'parquet', 1000, 5000, 300, range * 1000 "
        f"FROM range({files})"
    )
    bounds = "(1, range * 1000, range * 1000 + 999), (2, 0, 9)"
    connection.execute(
        f"INSERT INTO {meta}file_column_stats (data_file_id, table_id, column_id, value_count, null_count, min_value, "
        f"max_value) SELECT range, 1, c, 1000, 0, low::VARCHAR, high::VARCHAR FROM range({files}), "
        f"LATERAL (VALUES {bounds}) AS k(c, low, high)"
    )
    connection.execute(
        f"INSERT INTO {meta}table_stats VALUES (1, {files} * 1000, {files} * 1000, {files} * 5000);"
        f"UPDATE {meta}snapshot SET next_catalog_id = {tables} + 10, next_file_id = {files} WHERE snapshot_id = 1"
    )
    connection.execute(
        f"INSERT INTO {meta}snapshot SELECT 2 + range, now() + to_milliseconds(range), 1, {tables} + 10, {files} "
        f"FROM range({SNAPSHOTS});"
        f"INSERT INTO {meta}snapshot_changes SELECT 2 + range, 'inserted_into_table:1', 'loader', 'batch ' || range, NULL "
        f"FROM range({SNAPSHOTS})"
    )
    connection.execute("DETACH many")


def _our_first(uri: str) -> None:
    with dl.connect(uri, alias="many", engine="duckdb") as session:
        assert session.sql(_FIRST).fetchall() == [(0,)]


def _their_first(connection: duckdb.DuckDBPyConnection, uri: str) -> None:
    connection.execute(f"ATTACH '{uri}' AS many")
    assert connection.execute(_FIRST).fetchall() == [(0,)]
    connection.execute("DETACH many")


def _our_tables(uri: str) -> None:
    with dl.connect(uri, alias="many") as session:
        assert len(session.tables()) > TABLES // 100


def _their_tables(connection: duckdb.DuckDBPyConnection, uri: str) -> None:
    connection.execute(f"ATTACH '{uri}' AS many")
    connection.execute("SELECT * FROM duckdb_tables() WHERE database_name = 'many'").fetchall()
    connection.execute("DETACH many")


_FIRST = "SELECT count(*) FROM many.t7"
#: We look for the files of an EXPLAIN; the reference does so only when it runs the query.
_SELECTIVE = "EXPLAIN SELECT s FROM many.wide WHERE i = 4200"
#: Both look for files, and the statistics leave none.
_SKIPPING = "SELECT s FROM many.wide WHERE i = -1"


def _our_plan(uri: str) -> None:
    with dl.connect(uri, alias="many", engine="duckdb") as session:
        ((_, text),) = session.sql(_SELECTIVE).fetchall()
        assert " 1 of " in text, text


def _their_plan(connection: duckdb.DuckDBPyConnection, uri: str) -> None:
    connection.execute(f"ATTACH '{uri}' AS many")
    connection.execute(_SELECTIVE).fetchall()
    connection.execute("DETACH many")


def _our_skipping(uri: str) -> None:
    with dl.connect(uri, alias="many", engine="duckdb") as session:
        assert session.sql(_SKIPPING).fetchall() == []


def _their_skipping(connection: duckdb.DuckDBPyConnection, uri: str) -> None:
    connection.execute(f"ATTACH '{uri}' AS many")
    assert connection.execute(_SKIPPING).fetchall() == []
    connection.execute("DETACH many")
