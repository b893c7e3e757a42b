"""A lake of everything: each type, each ALTER, each kind of file, keywords and odd names; statements that carry its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from tests.interop import test_nested_columns as nested
from tests.type_matrix import VALUES

#: Tables whose rows are few, and stay in the catalog.
_INLINED = ("typed_inlined", "nested_inlined", "altered_inlined", "inlined", "few_deleted", "flushed")
_MORE = "SELECT i, 'new', i % 3 FROM range({}, {}) r(i)"


def _typed(name: str, kinds: dict[str, str], value: Callable[[str], str]) -> Iterator[str]:
    """A table of a column for each type; its rows hold the values at the edges, and NULL."""
    columns = ", ".join(f'"{column}" {kind}' for column, kind in kinds.items())
    yield f"CREATE TABLE {name} (i INTEGER, {columns})"
    rows = []
    for place in range(max(len(VALUES[column][1]) for column in kinds) + 1):
        cells = []
        for column in kinds:
            sql, values = VALUES[column]
            cells.append(value(f"CAST({values[place]} AS {sql})") if place < len(values) else "NULL")
        rows.append(f"({place}, {', '.join(cells)})")
    yield f"INSERT INTO {name} VALUES {', '.join(rows)}"


def _types(inlined: bool) -> Iterator[str]:
    # a column of this type keeps all rows of its table out of the catalog
    kept = {name: sql for name, (sql, _) in VALUES.items() if not (inlined and name == "geometry")}
    end = "_inlined" if inlined else ""
    yield from _typed(f"typed{end}", kept, lambda value: value)
    # DuckDB writes no variant that is a part of something to Parquet
    kept = {name: sql for name, sql in kept.items() if name != "variant"}
    deep = {name: f"STRUCT(v {sql}, l {sql}[], m MAP(VARCHAR, {sql}))" for name, sql in kept.items()}
    yield from _typed(f"nested{end}", deep, lambda v: f"{{'v': {v}, 'l': [{v}, NULL], 'm': MAP {{'k': {v}}}}}")


def _altered(name: str) -> Iterator[str]:
    """Each ALTER of a whole column, with a row written after each."""
    yield f"CREATE TABLE {name} (i INTEGER, a TINYINT, b VARCHAR, c VARCHAR, d DATE, f FLOAT)"
    yield f"INSERT INTO {name} VALUES (1, 1, 'b', 'c', '2024-01-31', 1.5), (2, NULL, NULL, NULL, NULL, NULL)"
    for number, change in enumerate(
        (
            "RENAME a TO aa",
            "ADD COLUMN n INTEGER",
            "ADD COLUMN w VARCHAR DEFAULT 'it''s'",
            "RENAME b TO x",
            "RENAME c TO b",
            "RENAME x TO c",
            "DROP COLUMN d",
            "ADD COLUMN d VARCHAR",
            "ALTER aa SET TYPE BIGINT",
            "ALTER f SET TYPE DOUBLE",
            "ALTER n SET DEFAULT 8",
            "ALTER w DROP DEFAULT",
            "ALTER i SET NOT NULL",
            "ALTER i DROP NOT NULL",
        )
    ):
        yield f"ALTER TABLE {name} {change}"
        yield f"INSERT INTO {name} (i) VALUES ({10 + number})"


def _nested_altered() -> Iterator[str]:
    yield from (nested.CREATE, *(f"INSERT INTO ev VALUES {row}" for row in nested.ROWS), *nested.ALTERS)
    yield f"INSERT INTO ev VALUES {nested.AFTER}"


def _kinds(data: Path) -> Iterator[str]:
    """A table for each kind of file."""
    for name in ("plain", "deleted", "deleted_twice", "vector", "few_deleted", "merged", "rewritten"):
        yield f"CREATE TABLE {name} (i INTEGER, s VARCHAR, p INTEGER)"
        yield f"INSERT INTO {name} SELECT i, 'v' || i, i % 3 FROM range(100) r(i)"
    yield "DELETE FROM deleted WHERE i % 4 = 0"
    yield "DELETE FROM deleted_twice WHERE i < 40"
    yield "DELETE FROM deleted_twice WHERE i % 2 = 0"
    yield "UPDATE deleted_twice SET s = 'z' WHERE i > 80"
    yield "CALL lake.set_option('write_deletion_vectors', true, table_name => 'vector')"
    yield "DELETE FROM vector WHERE i % 3 = 1"
    yield "DELETE FROM few_deleted WHERE i IN (3, 5)"
    yield "UPDATE few_deleted SET s = 'few' WHERE i IN (7, 11)"
    for first in (100, 120):
        yield f"INSERT INTO merged {_MORE.format(first, first + 20)}"
    yield "CALL ducklake_merge_adjacent_files('lake', 'merged')"
    yield "DELETE FROM merged WHERE i BETWEEN 90 AND 110"
    yield "DELETE FROM rewritten WHERE i % 5 < 3"
    yield "CALL ducklake_rewrite_data_files('lake', 'rewritten', delete_threshold => 0.1)"
    for name in ("inlined", "flushed"):
        yield f"CREATE TABLE {name} (i INTEGER, s VARCHAR, p INTEGER)"
        yield f"INSERT INTO {name} {_MORE.format(0, 5)}"
        yield f"INSERT INTO {name} {_MORE.format(5, 9)}"
        yield f"DELETE FROM {name} WHERE i IN (1, 6)"
        yield f"UPDATE {name} SET s = 'z' WHERE i = 4"
    yield "CALL ducklake_flush_inlined_data('lake', table_name => 'flushed')"
    yield "DELETE FROM flushed WHERE i = 7"
    yield "CREATE TABLE added (i BIGINT, v VARCHAR, st STRUCT(a BIGINT, b VARCHAR), p INTEGER, extra VARCHAR DEFAULT 'e')"
    yield f"CALL ducklake_add_data_files('lake', 'added', '{data}/hive/**/*.parquet', allow_missing => true)"
    yield "ALTER TABLE added RENAME v TO renamed"
    yield "ALTER TABLE added RENAME st.a TO aa"
    yield "DELETE FROM added WHERE i % 5 = 0"
    yield "CREATE TABLE parted (i INTEGER, s VARCHAR, p INTEGER, d DATE)"
    yield "ALTER TABLE parted SET PARTITIONED BY (p, year(d), bucket(2, i))"
    yield "INSERT INTO parted SELECT i, 'v', nullif(i % 3, 2), DATE '2023-12-20' + i::INTEGER FROM range(30) r(i)"
    yield "ALTER TABLE parted RESET PARTITIONED BY"
    yield "INSERT INTO parted SELECT i, 'w', 9, NULL FROM range(30, 50) r(i)"
    yield "CREATE TABLE sorted (i INTEGER, s VARCHAR, p INTEGER)"
    yield "ALTER TABLE sorted SET SORTED BY (p DESC NULLS FIRST, i ASC)"
    yield "INSERT INTO sorted SELECT i, 'v', nullif(i % 3, 2) FROM range(40) r(i)"


def _named() -> Iterator[str]:
    for schema, name in (('"select"', '"from"'), ('"a.b"', '"q""t"'), ('"Ünïcode ☃"', '"Upper Case"')):
        table = f"{schema}.{name}"
        yield f"CREATE SCHEMA {schema}"
        yield f'CREATE TABLE {table} (i INTEGER, "order" VARCHAR, "x.y" INTEGER, "a""b" VARCHAR, "日本" DATE, "UP" INTEGER)'
        yield f"INSERT INTO {table} SELECT i, 'o', i * 2, 'q', DATE '2024-01-31', -i FROM range(20) r(i)"
        yield f'ALTER TABLE {table} RENAME "x.y" TO "group"'
        yield f"""DELETE FROM {table} WHERE "group" = 4"""


def script(data: Path) -> Iterator[str]:
    """The statements that make the lake; one snapshot each, at most."""
    yield "CALL lake.set_option('data_inlining_row_limit', 0)"
    tables = [*_types(False), *_types(True), *_altered("altered"), *_altered("altered_inlined")]
    for sql in (*tables, *_nested_altered(), *_kinds(data), *_named()):
        yield sql
        words = sql.split(" ")
        if words[:2] == ["CREATE", "TABLE"] and words[2] in _INLINED:
            yield f"CALL lake.set_option('data_inlining_row_limit', 20, table_name => '{words[2]}')"


def write_files(connection: duckdb.DuckDBPyConnection, data: Path) -> None:
    """Files of others in folders of Hive: without field ids, with columns in another order and narrower types."""
    connection.execute(
        "COPY (SELECT {'b': i::VARCHAR, 'A': i::INTEGER} AS ST, 'v' || i AS v, i::SMALLINT AS I, i % 3 AS p "
        f"FROM range(30) r(i)) TO '{data}/hive' (FORMAT parquet, PARTITION_BY (p))"
    )
