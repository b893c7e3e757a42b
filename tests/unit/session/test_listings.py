"""Listings of databases, schemas, tables and columns by DuckDB, with those of the lakes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(new_catalog: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.Session() as opened:
        opened.sql(f"ATTACH '{new_catalog()}' AS lake (DATA_PATH '{tmp_path}/data')")
        opened.sql("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t (i INTEGER NOT NULL, d DECIMAL(5,2) DEFAULT 1.5)")
        opened.sql("CREATE TABLE lake.u AS SELECT 1 AS k; CREATE TABLE mine (k INTEGER); CREATE TEMP TABLE tt (x DATE)")
        yield opened


def test_tables_and_columns(session: dl.Session) -> None:
    tables = "SELECT database_name, schema_name, table_name, estimated_size FROM duckdb_tables() ORDER BY ALL"
    assert session.sql(tables).fetchall() == [
        ("lake", "main", "u", 1),
        ("lake", "s", "t", 0),
        ("memory", "main", "mine", 0),
        ("temp", "main", "tt", 0),
    ]
    columns = (
        "SELECT column_name, column_index, data_type, is_nullable, column_default, numeric_precision, data_type_id"
    )
    assert session.sql(
        f"{columns} FROM duckdb_columns() WHERE database_name = 'lake' AND schema_name = 's'"
    ).fetchall() == [
        ("i", 1, "INTEGER", False, "NULL", 32, 13),
        ("d", 2, "DECIMAL(5,2)", True, "'1.5'", 5, 21),
    ]
    sql = session.sql("SELECT sql FROM duckdb_tables() WHERE table_name = 't'").fetchone()
    assert sql == ("CREATE TABLE t(i INTEGER DEFAULT(NULL) NOT NULL, d DECIMAL(5,2) DEFAULT('1.5'));",)


def test_databases_and_schemas(session: dl.Session) -> None:
    assert session.sql("SHOW DATABASES").fetchall() == [("lake",), ("memory",)]
    assert session.sql("SELECT type, readonly FROM duckdb_databases() WHERE database_name = 'lake'").fetchall() == [
        ("ducklake", False)
    ]
    path = session.lakes[0].data_path
    assert session.sql("SELECT tags['data_path'] FROM duckdb_databases() WHERE database_name = 'lake'").fetchall() == [
        (path,)
    ]
    session.sql('CREATE VIEW lake.v("select") AS FROM lake.u; INSERT INTO lake.s.t (i) FROM range(100)')
    sql = session.sql("SELECT sql FROM duckdb_views() WHERE database_name = 'lake'").fetchall()
    assert sql == [('CREATE VIEW v ("select") AS SELECT * FROM "lake".u;',)]
    sizes = session.sql("SELECT database_size FROM pragma_database_size() WHERE database_name = 'lake'").fetchall()
    assert sizes != [("0 bytes",)] and sizes[0][0].endswith(" bytes")
    schemas = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake' ORDER BY 1"
    assert session.sql(schemas).fetchall() == [("main",), ("s",)]


@pytest.mark.slow
def test_a_catalog_database_with_a_name_is_listed(session: dl.Session, tmp_path: Path) -> None:
    assert session.sql("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'ducklake_table'").fetchone() == (0,)
    with pytest.raises(dl.EntryExistsError, match="cannot both be b"):
        session.sql(f"ATTACH 'ducklake:{tmp_path}/b.ducklake' AS b (METADATA_CATALOG 'b')")
    session.sql(f"ATTACH 'ducklake:{tmp_path}/b.ducklake' AS b (METADATA_CATALOG 'meta')")
    found = "SELECT database_name, column_count FROM duckdb_tables() WHERE table_name = 'ducklake_table'"
    assert session.sql(found).fetchall() == [("meta", 8)]
    assert ("meta",) in session.sql("SHOW DATABASES").fetchall()


def test_information_schema(session: dl.Session) -> None:
    tables = "SELECT table_catalog, table_name, table_type FROM information_schema.tables ORDER BY ALL"
    assert session.sql(tables).fetchall() == [
        ("lake", "t", "BASE TABLE"),
        ("lake", "u", "BASE TABLE"),
        ("memory", "mine", "BASE TABLE"),
        ("temp", "tt", "LOCAL TEMPORARY"),
    ]
    columns = "SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = 't' ORDER BY 1"
    assert session.sql(columns).fetchall() == [("d", "YES"), ("i", "NO")]


@pytest.mark.slow
def test_show_and_describe(session: dl.Session) -> None:
    assert session.sql("SHOW TABLES").fetchall() == [("mine",), ("tt",)]
    assert session.sql("SHOW TABLES FROM lake.s").fetchall() == [("t",)]
    assert session.sql("SHOW TABLES FROM memory").fetchall() == [("mine",)]
    session.sql("USE lake.s")
    assert session.sql("SHOW TABLES").fetchall() == [("t",), ("tt",), ("u",)]
    assert ("lake", "main", "u", ["k"], ["INTEGER"], False) in session.sql("SHOW ALL TABLES").fetchall()
    assert session.sql("DESCRIBE t").fetchall() == [
        ("i", "INTEGER", "NO", None, "NULL", None),
        ("d", "DECIMAL(5,2)", "YES", None, "'1.5'", None),
    ]
    assert session.sql("DESCRIBE tt").fetchall() == [("x", "DATE", "YES", None, None, None)]
    assert session.sql("DESCRIBE SELECT sum(i), d FROM t GROUP BY d").fetchall()[0][:2] == ("sum(i)", "HUGEINT")


def test_names_of_what_is_in_use(session: dl.Session) -> None:
    session.sql("USE lake.s")
    assert session.sql("SELECT current_database(), current_schema()").fetchall() == [("lake", "s")]
    assert session.sql("FROM current_snapshot()").fetchall() == session.sql("FROM lake.current_snapshot()").fetchall()
    with pytest.raises(dl.BindError, match="mine"):
        session.sql("FROM mine")
    session.sql("USE memory")
    assert session.sql("SELECT current_database()").fetchall() == [("memory",)]


def test_views_that_double_at_each_level_have_unknown_columns(new_catalog: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(new_catalog(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v0 AS FROM t")
        for level in range(1, 25):  # as a client writes them that does not bind them
            query = f"SELECT x.a FROM v{level - 1} AS x, v{level - 1} AS y"
            session.sql(
                "INSERT INTO __ducklake_metadata_lake.ducklake_view (view_id, view_uuid, begin_snapshot, schema_id, view_name, "
                f"dialect, sql) VALUES ({level + 90}, '{uuid.uuid4()}', 1, 0, 'v{level}', 'duckdb', '{query}')"
            )
        with pytest.raises(
            dl.UnsupportedFeatureError, match=r"^The view main\.v24 stands for more than 1,000 views"
        ) as e:
            session.sql("FROM v24")
        assert "\n" not in str(e.value)
        shown = "SELECT view_name, column_count FROM duckdb_views() WHERE database_name = 'lake'"
        for _ in range(2):
            counts = dict(session.sql(shown).fetchall())
            assert len(counts) == 25 and (counts["v0"], counts["v3"], counts["v24"]) == (1, 1, 0)
        assert len(session.sql("SHOW TABLES").fetchall()) == 26
        tables = {name: names for _, _, name, names, _, _ in session.sql("SHOW ALL TABLES").fetchall()}
        assert len(tables) == 26 and (tables["v3"], tables["v24"]) == (["a"], [])


def test_views_are_described_once(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("CREATE VIEW lake.v AS FROM lake.u; CREATE VIEW lake.s.w(x) AS SELECT i FROM lake.s.t; USE lake")
    system = session._sources.names.system
    asked: list[str] = []
    found = system._query_columns
    monkeypatch.setattr(system, "_query_columns", lambda query, *rest: asked.append(query) or found(query, *rest))
    shown = session.sql("SHOW ALL TABLES").fetchall()
    assert [row[2:4] for row in shown if row[2] in "vw"] == [("v", ["k"]), ("w", ["x"])]
    assert len(asked) == 2
    # the next statement asks again: what a view reads may have changed
    session.sql("ALTER TABLE lake.u ADD COLUMN z INTEGER")
    shown = session.sql("SHOW ALL TABLES").fetchall()
    assert [row[3] for row in shown if row[2] == "v"] == [["k", "z"]]
    assert len(asked) == 4


def test_a_view_that_pivots_into_too_many_columns_is_refused(new_catalog: Callable[..., str], tmp_path: Path) -> None:
    lists = " ".join(f"c{n} IN ({', '.join(map(str, range(50)))})" for n in range(5))
    columns = ", ".join(f"{n} AS c{n}" for n in range(5))
    query = f"SELECT * FROM (SELECT {columns}) PIVOT (count(*) FOR {lists})"
    with dl.connect(new_catalog(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE VIEW v AS SELECT 1 AS i")
        session.sql(f"UPDATE __ducklake_metadata_lake.ducklake_view SET sql = '{query}'")
        assert session.sql("SHOW ALL TABLES").fetchall() == [("lake", "main", "v", [], [], False)]
        for text in ("FROM v", query):
            with pytest.raises(dl.DuckLakeError, match="limit of 100000"):
                session.sql(text)
