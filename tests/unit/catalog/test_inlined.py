from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.catalog import inlined_deletions
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.inlined import can_inline
from ducklake_lab.catalog.snapshots import read_snapshot
from ducklake_lab.catalog.uri import Backend, parse_uri
from ducklake_lab.catalog.versions import written
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import DataType

pytestmark = pytest.mark.sampled(3)

_VARIANT = DataType("variant")
_NESTED = DataType("struct", (("v", _VARIANT),))


@pytest.mark.every_catalog
@pytest.mark.parametrize(
    ("kind", "backend", "version", "expected"),
    [
        (_VARIANT, "duckdb", "1.0", True),
        (_VARIANT, "sqlite", "1.0", False),
        (_VARIANT, "sqlite", "1.1", True),
        (_VARIANT, "postgresql", "1.1", True),
        (_NESTED, "duckdb", "1.1", True),
        (_NESTED, "sqlite", "1.1", False),
        (DataType("geometry"), "duckdb", "1.1", False),
        (DataType("geometry"), "postgresql", "1.1", False),
        (DataType("int32"), "sqlite", "1.0", True),
    ],
)
def test_what_can_be_kept_in_a_catalog(kind: DataType, backend: Backend, version: str, expected: bool) -> None:
    columns = [Column.build("i", DataType("int32"), 1), Column.build("c", kind, 2)]
    assert can_inline(columns, backend, written(version)) is expected


def test_rows_of_a_schema_version_that_older_writers_left_out(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
        session.sql("ALTER TABLE t ADD COLUMN s VARCHAR DEFAULT 'none'; INSERT INTO t VALUES (2, 'two')")
        session.sql("ALTER TABLE t RENAME COLUMN s TO r; INSERT INTO t VALUES (3, 'three')")
    with sqlite3.connect(tmp_path / "m.sqlite") as catalog:
        removed = catalog.execute(
            "DELETE FROM ducklake_schema_versions WHERE schema_version > "
            "(SELECT min(schema_version) FROM ducklake_inlined_data_tables)"
        )
        assert removed.rowcount == 2
    with dl.connect(uri, alias="lake") as session:
        expected = [(1, "none"), (2, "two"), (3, "three")]
        assert session.sql("FROM t ORDER BY i").fetchall() == expected
        session.sql("CALL lake.flush_inlined_data()")
        assert session.sql("FROM t ORDER BY i").fetchall() == expected


@pytest.mark.every_catalog
@pytest.mark.slow
def test_rows_are_read_under_the_names_that_they_were_written_with(
    lake_uri: Callable[..., str], tmp_path: Path
) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t (a INTEGER, b VARCHAR, p STRUCT(x INTEGER, y INTEGER))")
        session.sql("INSERT INTO t VALUES (1, 'one', {'x': 1, 'y': 2})")
        expected = {session.current_snapshot().snapshot_id: [(1, "one", {"x": 1, "y": 2})]}
        for statements, rows in (
            ("ALTER TABLE t RENAME a TO c; ALTER TABLE t RENAME b TO a", [(1, "one", {"x": 1, "y": 2})]),
            (
                "ALTER TABLE t RENAME COLUMN p.x TO z; ALTER TABLE t RENAME COLUMN p.y TO x",
                [(1, "one", {"z": 1, "x": 2})],
            ),
            ("ALTER TABLE t ALTER c SET TYPE BIGINT; INSERT INTO t VALUES (2, 'two', NULL)", None),
            ("ALTER TABLE t DROP a; ALTER TABLE t ADD COLUMN a DATE DEFAULT '2024-01-01'", None),
        ):
            session.sql("BEGIN")
            for statement in statements.split("; "):
                session.sql(statement)
            inside = session.sql("FROM t ORDER BY 1").fetchall()
            session.sql("ROLLBACK")
            before = session.current_snapshot().snapshot_id
            assert session.sql("FROM t ORDER BY 1").fetchall() == expected[before]
            for statement in statements.split("; "):
                session.sql(statement)
            found = session.sql("FROM t ORDER BY 1").fetchall()
            assert found == inside
            assert rows is None or found == rows
            expected[session.current_snapshot().snapshot_id] = found
        assert expected[max(expected)] == [
            (1, {"z": 1, "x": 2}, date(2024, 1, 1)),
            (2, None, date(2024, 1, 1)),
        ]
        for snapshot, rows in expected.items():
            assert session.sql(f"FROM t AT (VERSION => {snapshot}) ORDER BY 1").fetchall() == rows


@pytest.mark.slow
def test_a_table_made_after_a_reader_began_holds_nothing_for_it(mysql: Callable[[], str], tmp_path: Path) -> None:
    uri = f"ducklake:mysql:{mysql()}"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        session.sql("CREATE TABLE t AS SELECT range AS i FROM range(10)")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 10)")
        ((table,),) = session.sql("SELECT table_id FROM ducklake_table_info('lake')").fetchall()
        before, catalog = session.current_snapshot(), CatalogDatabase(parse_uri(uri))

        def deletes(reader: sa.Connection) -> list[list[tuple[int, int]]]:
            return list(inlined_deletions.read(reader, catalog, table, before.snapshot_id + 1).values())

        with catalog.connect() as reader:
            assert read_snapshot(reader, before.snapshot_id).snapshot_id == before.snapshot_id
            session.sql("DELETE FROM t WHERE i = 3")
            assert deletes(reader) == []
        with catalog.connect() as reader:
            assert deletes(reader) == [[(3, before.snapshot_id + 1)]]
