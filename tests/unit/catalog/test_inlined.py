from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.inlined import can_inline
from ducklake_lab.catalog.uri import Backend
from ducklake_lab.catalog.versions import written
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import DataType

_VARIANT = DataType("variant")
_NESTED = DataType("struct", (("v", _VARIANT),))


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
