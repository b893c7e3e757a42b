"""Lakes of 1.0 and before, brought to 1.1: as the independent implementation does, readable at every snapshot."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.uri import parse_uri
from tests.independent import KINDS, history, open_lake
from tests.interop.comparing import attach, detach
from tests.interop.test_independent import Make, check_history, run
from tests.interop.test_independent_written import content
from tests.interop.test_old_lakes import check_rows, uri
from tests.old_lakes.make import unpack

pytestmark = pytest.mark.sampled(5)

SCRIPT = """
CREATE SCHEMA lake.other; USE lake;
CREATE TABLE n (i INTEGER, s VARCHAR, d DATE, st STRUCT(a INTEGER, b VARCHAR));
INSERT INTO n VALUES (1, 'one', '2024-02-29', {'a': 1, 'b': 'x'}), (2, NULL, NULL, NULL);
INSERT INTO n SELECT i, 'row ' || i, NULL, NULL FROM range(10, 200) AS r(i);
DELETE FROM n WHERE i = 2; DELETE FROM n WHERE i = 50; DELETE FROM n WHERE i > 150;
ALTER TABLE n ADD COLUMN e DOUBLE DEFAULT 1.5;
ALTER TABLE n ADD COLUMN st.c INTEGER DEFAULT 7;
ALTER TABLE n RENAME COLUMN st.c TO d;
INSERT INTO n VALUES (3, 'three', NULL, NULL, NULL);
CREATE TABLE other.few AS SELECT 1 AS i;
CREATE VIEW v AS SELECT count(*) AS c FROM n;
COMMENT ON TABLE n IS 'numbers';
ALTER TABLE n ADD COLUMN f INTEGER;
INSERT INTO n (i, f) VALUES (4, 5)
"""


def copied(place: str, kind: str, new_catalog: Make) -> str:
    """A second catalog with the same tables."""
    other = new_catalog(kind, "copy")
    if kind == "sqlite":
        shutil.copy(place.split(":", 2)[2], other.split(":", 2)[2])
        return other
    source, target = (sa.create_engine(parse_uri(uri).url) for uri in (place, other))
    with source.connect() as reader, target.begin() as writer:
        metadata = sa.MetaData()
        metadata.reflect(source)
        metadata.create_all(writer)
        for table in metadata.sorted_tables:
            rows = [dict(row) for row in reader.execute(sa.select(table)).mappings()]
            if rows:
                writer.execute(table.insert(), rows)
    source.dispose()
    target.dispose()
    return other


@pytest.mark.parametrize("kind", KINDS)
def test_the_metadata_is_as_the_independent_implementation_leaves_it(
    kind: str, new_catalog: Make, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    place = new_catalog(kind)
    reference.execute(f"ATTACH '{place}' AS lake (DATA_PATH '{tmp_path}/data/')")
    reference.execute(SCRIPT)
    detach(reference)
    # what earlier writers left behind: no row for the version of a table of inlined rows
    last = "(SELECT MAX(schema_version) FROM ducklake_schema_versions WHERE table_id = 2)"
    run(place, f"DELETE FROM ducklake_schema_versions WHERE schema_version = {last}")
    theirs = copied(place, kind, new_catalog)
    catalog = open_lake(theirs, version="1.1", automatic_migration=True)
    assert str(catalog.spec_version()) == "1.1"
    dl.connect(place, ducklake_version="1.1", automatic_migration=True).close()
    found, expected = content(place), content(theirs)
    assert set(found) == set(expected) >= {"ducklake_view_column_tag"}
    for name, listed in expected.items():
        assert found[name] == listed, name
    assert len(found["ducklake_schema_versions"]) == 7
    check_history(place, history(catalog))
    with dl.connect(place, alias="lake", engine="duckdb") as session:
        # the field lost its default when it was renamed, and got it again
        for at in (11, 15):
            assert session.sql(f"SELECT st.d FROM n AT (VERSION => {at}) WHERE i = 1").fetchall() == [(7,)], at
        session.sql(
            "INSERT INTO n (i) VALUES (1000); CREATE SCHEMA other.deep; CREATE TABLE other.deep.t AS SELECT 2 AS i"
        )
    check_history(place, history(open_lake(place)))


def test_bounds_that_were_spelled_as_another_type_are_cleared(
    lake_uri: Make, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    place = lake_uri()
    if ":mysql:" in place:
        pytest.skip("lakes in MySQL are not migrated")
    reference.execute(f"ATTACH '{place}' AS lake (DATA_PATH '{tmp_path}/data/')")
    columns = "i INTEGER, kept FLOAT, f FLOAT, d DECIMAL(9,1), s STRUCT(x FLOAT)"
    reference.execute(f"CREATE TABLE lake.t ({columns}); CREATE TABLE lake.later (f FLOAT)")
    reference.execute("INSERT INTO lake.t SELECT i, 0.1, 0.1, 0.1, {'x': 0.1} FROM range(100) AS r(i)")
    for column in ("i TYPE BIGINT", "f TYPE DOUBLE", "d TYPE FLOAT", "s TYPE STRUCT(x DOUBLE)"):
        reference.execute(f"ALTER TABLE lake.t ALTER {column}")
    detach(reference)
    dl.connect(place, automatic_migration=True, ducklake_version="1.1").close()
    with dl.connect(place, alias="lake", engine="duckdb") as session:
        for stats in ("ducklake_file_column_stats", "ducklake_table_column_stats"):
            found = session.sql(
                f"SELECT column_name, min_value, max_value FROM __ducklake_metadata_lake.{stats} AS s "
                "JOIN (SELECT DISTINCT table_id, column_id, column_name FROM __ducklake_metadata_lake.ducklake_column) AS c "
                "USING (table_id, column_id) WHERE column_name <> 's' ORDER BY ALL"
            ).fetchall()
            bounds = {"d": (None, None), "f": (None, None), "i": ("0", "99"), "kept": ("0.1", "0.1"), "x": (None, None)}
            assert {name: (low, high) for name, low, high in found} == bounds
        assert session.sql("SELECT count(*), max(f) FROM t WHERE f > 0.1").fetchall() == [(100, 0.10000000149011612)]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize("spec", ["0.1", "0.4", "1.1-dev1"])
def test_other_versions_are_brought_to_1_1(spec: str, kind: str, tmp_path: Path) -> None:
    expected = unpack(spec, kind, tmp_path)
    options = {} if spec == "1.1-dev1" else {"ducklake_version": "1.1"}
    with dl.connect(uri(tmp_path, kind), alias="lake", automatic_migration=True, engine="duckdb", **options) as session:
        found = session.sql("SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'version'")
        assert found.fetchall() == [("1.1",)]
        check_rows(session, expected)
        session.sql("INSERT INTO notes VALUES (9, 'new', true, 2, NULL)")
        assert session.sql("SELECT s FROM notes WHERE i = 9").fetchall() == [("new",)]


def test_nothing_is_migrated_without_being_asked(
    lake_uri: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "DEFAULT", versions.written("1.0"))
    place = lake_uri()
    dl.connect(place, data_path=f"{tmp_path}/data/", ducklake_version="1.0").close()
    with pytest.raises(
        dl.CatalogVersionError, match=r"is of version 1\.0, not 1\.1; attach it with automatic_migration"
    ):
        dl.connect(place, ducklake_version="1.1")
    with dl.connect(place, alias="lake", automatic_migration=True) as session:
        found = session.sql("SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'version'")
        assert found.fetchall() == [("1.0",)]
    if ":mysql:" in place:
        with pytest.raises(dl.UnsupportedFeatureError, match="MySQL cannot undo a migration"):
            dl.connect(place, automatic_migration=True, ducklake_version="1.1")
        with dl.connect(place, ducklake_version="1.0"):
            return
    dl.connect(place, automatic_migration=True, ducklake_version="1.1").close()
    with pytest.raises(dl.CatalogVersionError, match=r"is of version 1\.1, not 1\.0; there is no way back"):
        dl.connect(place, automatic_migration=True, ducklake_version="1.0")


def test_with_duckdb_2_a_migration_ends_at_1_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"ducklake:sqlite:{tmp_path}/x.sqlite"
    dl.connect(place, data_path=f"{tmp_path}/data/", ducklake_version="1.0").close()
    monkeypatch.setattr(versions, "DEFAULT", versions.written("1.1"))
    for migrated, version in ((False, "1.0"), (True, "1.1"), (True, "1.1")):
        with dl.connect(place, alias="lake", automatic_migration=migrated) as session:
            found = session.sql("SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'version'")
            assert found.fetchall() == [(version,)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_migration_that_is_refused_changes_nothing(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    place = new_catalog(kind)
    options = {"data_path": f"{tmp_path}/data/", "ducklake_version": "1.0"}
    with dl.connect(place, alias="lake", engine="duckdb", **options) as session:
        session.sql("CREATE TABLE a (i INTEGER); CREATE TABLE b (_ducklake_row_id INTEGER)")
        session.sql("INSERT INTO a VALUES (1)")
    before = content(place)
    with pytest.raises(dl.CatalogError, match=r"could not be migrated from version 1\.0 to 1\.1; it was left as"):
        dl.connect(place, automatic_migration=True, ducklake_version="1.1")
    assert content(place) == before


@pytest.mark.parametrize("spec", ["0.1", "0.3", "0.4"])
def test_an_old_catalog_that_cannot_reach_1_1_stays_as_it_was(spec: str, tmp_path: Path) -> None:
    unpack(spec, "sqlite", tmp_path)
    place = uri(tmp_path, "sqlite")
    run(
        place,
        "CREATE TABLE IF NOT EXISTS ducklake_inlined_data_tables (table_id BIGINT, table_name TEXT, schema_version BIGINT)",
    )
    run(place, "CREATE TABLE odd (x BIGINT)", "INSERT INTO ducklake_inlined_data_tables VALUES (1, 'odd', 1)")
    before = Path(place.split(":", 2)[2]).read_bytes()
    with pytest.raises(dl.CatalogError, match="odd of inlined rows has other columns"):
        dl.connect(place, automatic_migration=True, ducklake_version="1.1")
    assert Path(place.split(":", 2)[2]).read_bytes() == before


def test_json_is_inlined_in_postgres_as_the_reference_does(
    new_catalog: Make, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    place = new_catalog("postgres")
    values = ("""'["a\\\\b"]'""", "'{\"ü\": 1}'", "NULL")
    rows = ", ".join(f"({i}, {value})" for i, value in enumerate(values))
    with dl.connect(place, alias="lake", data_path=f"{tmp_path}/data/", engine="duckdb") as session:
        session.sql(f"CREATE TABLE n (i INTEGER, j JSON); INSERT INTO n VALUES {rows}")
    attach(reference, place)
    reference.execute(f"INSERT INTO lake.n VALUES {rows}; CREATE TABLE lake.o (i INTEGER, j JSON)")
    reference.execute(f"INSERT INTO lake.o VALUES {rows}")
    shown = "SELECT i, j::VARCHAR FROM lake.{} ORDER BY i"
    expected = [(0, '["a\\\\b"]'), (1, '{"ü": 1}'), (2, None)]
    assert reference.execute(shown.format("o")).fetchall() == expected
    assert reference.execute(shown.format("n")).fetchall() == sorted([*expected, *expected], key=str)
    detach(reference)
    with dl.connect(place, alias="lake", engine="duckdb") as session:
        session.sql(f"INSERT INTO o VALUES {rows}")
        for name in ("n", "o"):
            assert session.sql(shown.format(name)).fetchall() == sorted([*expected, *expected], key=str)
        assert not list(tmp_path.rglob("*.parquet"))


def test_inlined_rows_in_postgres_get_the_types_of_now(new_catalog: Make, tmp_path: Path) -> None:
    place = new_catalog("postgres")
    columns = "i INTEGER, s VARCHAR, j JSON, d DATE, t TIMESTAMP, z TIMESTAMPTZ"
    with dl.connect(place, alias="lake", data_path=f"{tmp_path}/data/", engine="duckdb") as session:
        session.sql(f"SET TimeZone = 'Europe/Paris'; CREATE TABLE n ({columns})")
        session.sql(
            "INSERT INTO n VALUES (1, 'ünï%s :x', '{\"a\": 1}', '2024-02-29', '2024-02-29 12:30:00.123456', "
            "'2024-07-01 12:00:00+02'), (2, '', '[]', '0044-03-15 (BC)', '0044-03-15 (BC) 10:00:00', "
            "'0044-03-15 (BC) 10:00:00+00'), (3, NULL, NULL, NULL, NULL, NULL), "
            "(4, 'x', '1', 'infinity', '-infinity', 'infinity')"
        )
        assert not list(tmp_path.rglob("*.parquet"))
        shown = "SELECT i, s, j::VARCHAR, d::VARCHAR, t::VARCHAR, epoch_us(z) FROM n WHERE i < 4 ORDER BY i"
        expected = session.sql(shown).fetchall()
        endless = "SELECT d::VARCHAR, t::VARCHAR, z::VARCHAR FROM n WHERE i = 4"
        assert session.sql(endless).fetchall() == [("infinity", "-infinity", "infinity")]

    def types() -> dict[str, str]:
        engine = sa.create_engine(parse_uri(place).url)
        query = "SELECT column_name, udt_name FROM information_schema.columns WHERE table_name LIKE 'ducklake_inlined_data_1_%%'"
        with engine.connect() as connection:
            found = dict(connection.exec_driver_sql(query).all())
        engine.dispose()
        return {name: kind for name, kind in found.items() if not name.endswith(("row_id", "_snapshot"))}

    now = types()
    earlier = "TIMESTAMP", "TIMESTAMPTZ"
    before_christ = r"regexp_replace({0}, ' \(BC\)(.*)$', E'\\1 BC')"
    run(
        place,
        "ALTER TABLE ducklake_inlined_data_1_1 ALTER s TYPE VARCHAR USING convert_from(s, 'UTF8'), "
        "ALTER j TYPE JSON USING convert_from(j, 'UTF8')::JSON, "
        f"ALTER d TYPE DATE USING {before_christ.format('d')}::DATE, "
        f"ALTER t TYPE {earlier[0]} USING {before_christ.format('t')}::TIMESTAMP, "
        f"ALTER z TYPE {earlier[1]} USING {before_christ.format('z')}::TIMESTAMPTZ",
    )
    assert (
        types() == {"i": "int4", "s": "varchar", "j": "json", "d": "date", "t": "timestamp", "z": "timestamptz"} != now
    )
    with dl.connect(place, alias="lake", automatic_migration=True, ducklake_version="1.1", engine="duckdb") as session:
        assert types() == now
        session.sql("SET TimeZone = 'Europe/Paris'")
        assert session.sql(shown).fetchall() == expected
        assert session.sql(endless).fetchall() == [("infinity", "-infinity", "infinity")]
        assert session.sql("SELECT count(*) FROM n WHERE d < DATE '2000-01-01'").fetchall() == [(1,)]
        session.sql("INSERT INTO n (i, s, j) VALUES (5, 'a\\b', '[\"a\\\\b\"]')")
        assert session.sql("SELECT s, j::VARCHAR, j->>0 FROM n WHERE i = 5").fetchall() == [
            ("a\\b", '["a\\\\b"]', "a\\b")
        ]


def test_the_reference_of_1_0_does_not_open_it(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    place = f"ducklake:{tmp_path}/lake.ducklake"
    dl.connect(place, ducklake_version="1.1").close()
    with pytest.raises(duckdb.Error, match=r"1\.1"):
        attach(reference, place)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_a_session_notes_that_its_lake_was_migrated(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    place = new_catalog(kind)
    options = {"data_path": f"{tmp_path}/data/", "ducklake_version": "1.0"}
    with dl.connect(place, alias="lake", engine="duckdb", **options) as session:
        session.sql("CREATE TABLE a AS SELECT 1 AS i")
        dl.connect(place, automatic_migration=True, ducklake_version="1.1").close()
        for statement in ("SELECT * FROM a", "INSERT INTO a VALUES (2)", "CREATE TABLE b (i INTEGER)"):
            with pytest.raises(dl.CatalogVersionError, match=r"was of version 1\.0.*attach it again"):
                session.sql(statement).fetchall()
