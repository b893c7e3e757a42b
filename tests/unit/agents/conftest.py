"""A lake that an attacker has prepared, and what must not change."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

CANARY = "canary-8f1c"


@dataclass(frozen=True)
class Prepared:
    """A lake, a file outside of it, and the name of a file that must not appear."""

    folder: Path
    canary: Path
    marker: Path

    @property
    def uri(self) -> str:
        return f"ducklake:{self.folder / 'lake.ducklake'}"

    def digests(self) -> dict[str, str]:
        """Digests of the lake's catalog and files, without branches."""
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and ".branches" not in str(path)
        }


def _view(name: str, schema: int, sql: str, number: int) -> str:
    text = sql.replace("'", "''")
    return (
        "INSERT INTO ducklake_view (view_id, view_uuid, begin_snapshot, end_snapshot, schema_id, view_name, dialect, sql, "
        f"column_aliases) VALUES ({number}, uuid(), 1, NULL, {schema}, '{name}', 'duckdb', '{text}', NULL)"
    )


def _macro(name: str, kind: str, sql: str, number: int) -> list[str]:
    text = sql.replace("'", "''")
    return [
        f"INSERT INTO ducklake_macro (schema_id, macro_id, macro_name, begin_snapshot) VALUES (0, {number}, '{name}', 1)",
        "INSERT INTO ducklake_macro_impl (macro_id, impl_id, dialect, sql, type) "
        f"VALUES ({number}, 0, 'duckdb', '{text}', '{kind}')",
        "INSERT INTO ducklake_macro_parameters (macro_id, impl_id, column_id, parameter_name, parameter_type, "
        f"default_value, default_value_type) VALUES ({number}, 0, 0, 'x', 'unknown', NULL, 'unknown')",
    ]


def prepare(root: Path) -> Prepared:
    """Make a lake with hostile views, macros, defaults and names of tables."""
    folder = root / "lake"
    folder.mkdir()
    canary = root / "outside.csv"
    canary.write_text(f"a\n{CANARY}\n")
    made = Prepared(folder, canary, root / "marker")
    with dl.connect(made.uri, "lake", data_path=str(folder / "files"), engine="duckdb") as session:
        session.sql("CREATE TABLE orders (id INTEGER, name VARCHAR)")
        session.sql("INSERT INTO orders SELECT i, 'n' || i FROM range(50) r(i)")
        session.sql("INSERT INTO orders VALUES (100, 'inlined')")
        session.sql("CREATE SCHEMA nested")
        session.sql("CREATE VIEW fine AS SELECT id + 1 AS next FROM orders")
        session.sql("CREATE MACRO twice(x) AS x * 2")
        session.sql("CREATE TABLE defaulted (a INTEGER, b VARCHAR DEFAULT 'x')")
        session.sql("CREATE TABLE odd (a INTEGER)")
    crafts = [
        _view("leaky_view", 0, f"SELECT * FROM read_text('{canary}')", 9001),
        _view("outer_view", 0, "SELECT * FROM leaky_view", 9002),
        _view("loop_view", 0, "SELECT * FROM loop_view", 9003),
        _view("deep_view", 0, f"SELECT 1 /* */ FROM '{canary}'", 9004),
        *_macro("leaky_macro", "scalar", f"(SELECT content FROM read_text('{canary}'))", 9010),
        *_macro("upper", "scalar", f"(SELECT content FROM read_text('{canary}'))", 9011),
        *_macro("leaky_rows", "table", f"SELECT * FROM read_text('{canary}')", 9012),
        "UPDATE ducklake_view SET schema_id = (SELECT schema_id FROM ducklake_schema WHERE schema_name = 'nested') "
        "WHERE view_id = 9004",
        "UPDATE ducklake_column SET default_value_type = 'expression', "
        f"default_value = '(SELECT content FROM read_text(''{canary}''))' WHERE column_name = 'b'",
        f"UPDATE ducklake_table SET table_name = '{canary}' WHERE table_name = 'odd'",
    ]
    with duckdb.connect(str(folder / "lake.ducklake")) as catalog:
        for craft in crafts:
            catalog.execute(craft)
    return made


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(tmp_path_factory.mktemp("agents"))
